//! A column of JSON documents: the keys of one are the hashes of its values by their paths, and of
//! its own keys.

use super::class::{MOST_PARTS, Strategy};
use crate::element::jsonb::{self, Scalar, each_scalar};
use crate::pg::call::Element;
use crate::pg::value::array;
use crate::pg::value::varlena::Value;
use pg_bloom_core::canonical::Sink;
use pg_bloom_core::conditions::{self, Condition, JsonPath, Leaf};
use pg_bloom_core::memory;

/// Calls `visit` with the hash of each value of a document, and of each of its keys.
pub fn each_key(document: &[u8], visit: &mut impl FnMut(u64)) {
    each_leaf(document, visit);
    jsonb::each_key(document, |key| visit(conditions::key(key)));
}

/// Returns what a document must have in it for which an operator holds with this value, in the memory
/// of the call. Operators of jsonpath are for the module `jsonpath`.
///
/// # Safety
/// The value must be of the type of the operator's other side.
pub unsafe fn condition(strategy: Strategy, asked: Element) -> Condition {
    match strategy {
        // SAFETY: the other side of this operator is a text.
        Strategy::HasKey => unsafe { has_key(asked) },
        Strategy::HasAnyKey | Strategy::HasAllKeys => {
            // SAFETY: the other side of these operators is an array of texts.
            let keys = unsafe {
                let keys = array::elements_of(asked.datum);
                memory::collect(keys.into_iter().map(|key| has_key(key)))
            };
            if strategy == Strategy::HasAnyKey {
                Condition::any(keys)
            } else {
                Condition::all(keys)
            }
        }
        // What is equal has the same leaves.
        _ => {
            let mut hashes = Vec::new();
            // SAFETY: the other side of all others is a document.
            each_leaf(&unsafe { Value::detoast(asked.datum) }, &mut |hash| {
                memory::push(&mut hashes, hash)
            });
            Condition::all_of(hashes, MOST_PARTS)
        }
    }
}

/// # Safety
/// The key must be a text.
unsafe fn has_key(key: Element) -> Condition {
    // SAFETY: promised by the caller; a text is of variable length.
    Condition::Has(conditions::key(&unsafe { Value::detoast(key.datum) }))
}

/// Calls `visit` with the hash of each value of a document.
fn each_leaf(jsonb: &[u8], visit: &mut impl FnMut(u64)) {
    each_scalar(jsonb, JsonPath::ROOT, JsonPath::key, |path, scalar| {
        visit(hash_of_leaf(path, &scalar));
    });
}

/// The hash of a value, which has no others in it, at a path of a document.
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
