//! A column of JSON documents. A document has two sorts of key for the index: its *leaves*, which
//! are the values without others in them, each hashed with its path; and its *names*, which the
//! operator `?` finds: the keys of an object at the top, or the strings in an array there.
//!
//! Example: `{"user": {"id": 7, "tags": ["a", "b"]}}` has the leaves 7 at `user.id`, "a" at
//! `user.tags`, "b" at `user.tags`, and the name `user`. Arrays are no part of a path, since `@>`
//! finds a member at any place of an array.

use super::class::{MOST_PARTS, Strategy, unknown_strategy};
use crate::element::jsonb::{self, Scalar, each_scalar};
use crate::pg::call::{Result, SqlValue};
use crate::pg::value::array;
use crate::pg::value::varlena::Value;
use pg_bloom_core::canonical::Sink;
use pg_bloom_core::conditions::{self, Condition, JsonPath, Leaf};
use pg_bloom_core::memory::List;

/// Calls `visit` with each key of a JSON document: the hashes of its leaves, the values without
/// others in them, each with its path, and of the names that the operator `?` finds at its top.
pub fn each_key(document: &[u8], visit: &mut impl FnMut(u64)) {
    each_leaf(document, visit);
    jsonb::each_key(document, |key| visit(conditions::key(key)));
}

/// Returns the condition on a document's keys that is necessary for an operator of the query to
/// hold: `document @> asked`, `document ? asked` and the others, by `strategy`.
///
/// The *keys* of a document are hashes: of each *leaf*, a value that has no others in it, with its
/// path, and of each name at its top. `@>` and `=` need all leaves of `asked`, of which at most 256
/// are looked up; `?`, `?|` and `?&` need the names that they ask for. What PostgreSQL allocates
/// for that is in the current memory context. The operators of jsonpath are in the module
/// `jsonpath`. Fails with XX000 for theirs, and for the strategy of an operator that isn't one of
/// jsonb.
///
/// # Safety
/// The value must be of the type of the operator's right side.
pub unsafe fn condition(strategy: Strategy, asked: SqlValue) -> Result<Condition> {
    Ok(match strategy {
        // SAFETY: the right side of `?` is a text.
        Strategy::HasKey => unsafe { has_key(asked) },
        Strategy::HasAnyKey | Strategy::HasAllKeys => {
            // SAFETY: the right side of `?|` and `?&` is an array of texts.
            let conditions: List<Condition> = unsafe {
                let names = array::elements_of(asked.datum);
                names.into_iter().map(|name| has_key(name)).collect()
            };
            if strategy == Strategy::HasAnyKey {
                Condition::any(conditions)
            } else {
                Condition::all(conditions)
            }
        }
        // Equal documents have the same leaves.
        Strategy::Contains | Strategy::Equal => {
            let mut hashes = List::new();
            // SAFETY: the right side of both is a document.
            each_leaf(&unsafe { Value::detoast(asked.datum) }, &mut |hash| hashes.push(hash));
            Condition::all_of(hashes, MOST_PARTS)
        }
        _ => return Err(unknown_strategy(strategy as i16)),
    })
}

/// Returns the condition that a document has this name.
///
/// # Safety
/// The name must be a text.
unsafe fn has_key(name: SqlValue) -> Condition {
    // SAFETY: promised by the caller; a text is of variable length.
    Condition::Has(conditions::key(&unsafe { Value::detoast(name.datum) }))
}

/// Calls `visit` with the hash of each leaf of a document.
fn each_leaf(jsonb: &[u8], visit: &mut impl FnMut(u64)) {
    each_scalar(jsonb, JsonPath::ROOT, JsonPath::key, |path, scalar| {
        visit(hash_of_leaf(path, &scalar));
    });
}

/// Returns the hash of a leaf: a value that has no others in it, at a path of a document.
pub fn hash_of_leaf(path: JsonPath, scalar: &Scalar<'_>) -> u64 {
    match *scalar {
        Scalar::Null => path.leaf(Leaf::Null, |_| ()),
        Scalar::Bool(false) => path.leaf(Leaf::False, |_| ()),
        Scalar::Bool(true) => path.leaf(Leaf::True, |_| ()),
        Scalar::Number(number) => {
            path.leaf(Leaf::Number, |stream| jsonb::write_numeric(number, stream))
        }
        Scalar::String(string) => path.leaf(Leaf::String, |stream| stream.write(string)),
    }
}
