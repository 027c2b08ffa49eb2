//! The column of an index over parts: the parts of its values, and the condition of what it is compared with.

use super::class::{Class, Strategy};
use super::words;
use crate::element::jsonb::{Scalar, each_key, each_scalar};
use crate::element::{Column, numeric};
use crate::index::page::unhashed;
use crate::index::session::{self, Kind};
use crate::index::validate::PARTS;
use crate::pg::call::Element;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::catalog::{self, Shape, Storage};
use crate::pg::method::scan::Key;
use crate::pg::regex;
use crate::pg::storage::relation::Relation;
use crate::pg::value::array;
use crate::pg::value::encoding;
use crate::pg::value::varlena::{PgBuffer, Value};
use pg_bloom_core::canonical::Sink;
use pg_bloom_core::index::keys::Directory;
use pg_bloom_core::memory;
use pg_bloom_core::parts::text::{self, Encoding, StandIns};
use pg_bloom_core::parts::{self, Condition, JsonPath, Leaf};
use pgrx::pg_sys::{self, Datum, Oid};

/// An index over parts in use.
pub type Index<'r> = session::Index<'r, PartsColumn>;

/// The most parts of an array or a document that are looked for, all of which a row must have.
const MOST_PARTS: usize = 256;

/// A column of values with parts.
pub struct PartsColumn {
    /// Which parts they have.
    pub class: Class,
    /// For arrays.
    array: Option<ArrayColumn>,
    /// What the bytes of texts are.
    pub encoding: Encoding,
    /// That of the column, under which the operators of the query compare.
    collation: Oid,
}

/// A column of arrays: how one is hashed as a whole, and a member of it.
struct ArrayColumn {
    whole: Column,
    member: Column,
    storage: Storage,
}

impl Kind for PartsColumn {
    type Directory = Directory;

    fn of(relation: Relation) -> Result<PartsColumn> {
        let (family, _, collation) = relation.column_class();
        let class = Class::checked(family, relation.support_function(PARTS))?;
        // That of a text may have been altered to one with the same bytes, such as citext: they are read as texts.
        let own_type = if class == Class::Text { pg_sys::TEXTOID } else { relation.column_type() };
        let column_type = catalog::base_type(own_type);
        let column = |oid| Column::new(relation.handler(), oid, collation);
        // It refuses what can't be in an index; a tsvector always can.
        let whole = if class == Class::Words { None } else { Some(column(column_type)?) };
        let array = match (whole, catalog::shape(column_type)) {
            (Some(whole), Shape::Array(member)) => {
                Some(ArrayColumn { whole, member: column(member)?, storage: catalog::storage(member) })
            }
            _ => None,
        };
        let encoding = if encoding::is_utf8() { Encoding::Utf8 } else { Encoding::Other };
        Ok(PartsColumn { class, array, encoding, collation })
    }
}

impl PartsColumn {
    /// Whether the parts of a value in memory are hashed without calling PostgreSQL, which could fail.
    pub fn is_hashed_in_place(&self) -> bool {
        self.array.as_ref().is_none_or(|array| array.member.hasher().is_in_place())
    }

    /// Calls `visit` with the hash of each part of a value, as often as the value has it.
    ///
    /// # Errors
    /// XX000 for a member that has no hash, which none is.
    ///
    /// # Safety
    /// The value must be of the column's type.
    pub unsafe fn each_part(&self, value: Datum, mut visit: impl FnMut(u64)) -> Result<()> {
        if let Some(array) = &self.array {
            // SAFETY: promised by the caller.
            visit(unsafe { array.whole.hasher().hash(Element { datum: value }) }.ok_or_else(unhashed)?);
            // SAFETY: promised by the caller.
            return unsafe { array.each_member(value, |hash| hash.into_iter().for_each(&mut visit)) };
        }
        // SAFETY: values of the other classes are of variable length.
        let value = unsafe { Value::detoast(value) };
        match self.class {
            Class::Text => {
                text::each_window(&value, self.encoding, |window| window.hashes().for_each(&mut visit));
            }
            Class::Words => words::each_word(&value, visit),
            Class::Json => {
                each_leaf(&value, &mut visit);
                each_key(&value, |key| visit(parts::key(key)));
            }
            Class::Array => {}
        }
        value.free();
        Ok(())
    }

    /// What the parts of a row must be that matches a key of a scan.
    ///
    /// # Errors
    /// As [`PartsColumn::each_part`]; XX000 for a strategy that the operator class doesn't have.
    ///
    /// # Safety
    /// The key must be one of a scan of the index.
    pub unsafe fn condition(&self, key: &Key) -> Result<Condition> {
        let strategy = self.class.strategy(key.strategy).ok_or_else(|| {
            let message = format!("strategy {} is none of the operator class", key.strategy);
            Error::new(SqlState::ERRCODE_INTERNAL_ERROR, message)
        })?;
        let conditions = key.sought().into_iter().map(|asked| self.condition_of(strategy, asked));
        Ok(Condition::any(memory::try_collect(conditions)?))
    }

    /// What the parts of a row must be for which an operator holds with this value.
    fn condition_of(&self, strategy: Strategy, asked: Element) -> Result<Condition> {
        if let Some(array) = &self.array {
            return array.condition(strategy, asked);
        }
        if matches!(strategy, Strategy::HasAnyKey | Strategy::HasAllKeys) {
            // SAFETY: the other side of these operators is an array of texts.
            let keys = unsafe { array::elements_of(asked.datum) };
            let keys = memory::collect(keys.into_iter().map(|key| condition_of_key(key.datum)));
            return Ok(if strategy == Strategy::HasAnyKey { Condition::any(keys) } else { Condition::all(keys) });
        }
        if strategy == Strategy::HasKey {
            return Ok(condition_of_key(asked.datum));
        }
        // SAFETY: the other side of all others is of variable length.
        let value = unsafe { Value::detoast(asked.datum) };
        let condition = match (self.class, strategy) {
            (Class::Text, Strategy::Like) => text::like(&value, self.encoding, false),
            (Class::Text, Strategy::LikeIgnoringCase) => text::like(&value, self.encoding, true),
            (Class::Text, Strategy::Regex) => self.matching(&value, false),
            (Class::Text, Strategy::RegexIgnoringCase) => self.matching(&value, true),
            (Class::Text, _) => text::having(&value, self.encoding),
            (Class::Words, _) => words::condition(&value),
            _ => {
                // What is equal has the same leaves.
                let mut hashes = Vec::new();
                each_leaf(&value, &mut |hash| memory::push(&mut hashes, hash));
                Condition::all_of(hashes, MOST_PARTS)
            }
        };
        value.free();
        Ok(condition)
    }

    /// What the windows of a text must be in which a regular expression has a match.
    fn matching(&self, expression: &Value, ignore_case: bool) -> Condition {
        let stand_ins = match self.encoding {
            Encoding::Utf8 => StandIns::new(expression, ignore_case),
            Encoding::Other => None,
        };
        let replaced = stand_ins.as_ref().map(|stand_ins| PgBuffer::copy_of(&stand_ins.pattern).into_datum());
        let pointer = replaced.map_or(expression.pointer(), |datum| datum.cast_mut_ptr());
        // SAFETY: either is a text in the memory of the call.
        let Some(mut automaton) = (unsafe { regex::automaton(pointer, ignore_case, self.collation) }) else {
            return Condition::Unknown;
        };
        if let Some(stand_ins) = &stand_ins {
            automaton.colors.iter_mut().flatten().flatten().for_each(|c| *c = stand_ins.original(*c));
        }
        automaton.condition(self.encoding)
    }
}

impl ArrayColumn {
    /// Calls `visit` with the hash of each member of an array; `None` is NULL.
    ///
    /// # Safety
    /// The value must be an array of such members.
    unsafe fn each_member(&self, value: Datum, mut visit: impl FnMut(Option<u64>)) -> Result<()> {
        let mut failed = false;
        let hasher = self.member.hasher();
        // SAFETY: promised by the caller.
        let hash = |datum| unsafe { hasher.hash(Element { datum }) };
        let member = |_: &mut (), member: Option<Datum>| match member.map(hash) {
            None => visit(None),
            Some(Some(hash)) => visit(Some(parts::member(hash))),
            Some(None) => failed = true,
        };
        // SAFETY: promised by the caller.
        unsafe {
            let array = Value::detoast_aligned(value);
            array::each_element(array.pointer().cast(), self.storage, &mut (), |(), _, _| (), member);
            array.free();
        }
        if failed { Err(unhashed()) } else { Ok(()) }
    }

    /// What the parts of an array must be for which an operator holds with this one.
    fn condition(&self, strategy: Strategy, asked: Element) -> Result<Condition> {
        if strategy == Strategy::Equal {
            // SAFETY: the other side of the operator is such an array.
            return Ok(Condition::Has(unsafe { self.whole.hasher().hash(asked) }.ok_or_else(unhashed)?));
        }
        let (mut hashes, mut has_null) = (Vec::new(), false);
        // SAFETY: both sides of the operators are arrays of one type.
        unsafe {
            self.each_member(asked.datum, |hash| match hash {
                Some(hash) => memory::push(&mut hashes, hash),
                None => has_null = true,
            })?;
        }
        Ok(match strategy {
            Strategy::Contains if has_null => Condition::NONE,
            Strategy::Contains => Condition::all_of(hashes, MOST_PARTS),
            _ => Condition::any(hashes.into_iter().map(Condition::Has)),
        })
    }
}

/// Calls `visit` with the hash of each value of a JSON document.
fn each_leaf(jsonb: &[u8], visit: &mut impl FnMut(u64)) {
    each_scalar(jsonb, JsonPath::ROOT, JsonPath::key, |path, scalar| {
        visit(match scalar {
            Scalar::Null => path.leaf(Leaf::Null, |_| ()),
            Scalar::Bool(is_true) => path.leaf(if is_true { Leaf::True } else { Leaf::False }, |_| ()),
            Scalar::Number(number) => path.leaf(Leaf::Number, |stream| numeric::write(number, stream)),
            Scalar::String(string) => path.leaf(Leaf::String, |stream| stream.write(string)),
        });
    });
}

/// What a JSON document must have in which there is this key, a text.
fn condition_of_key(key: Datum) -> Condition {
    // SAFETY: a text is of variable length.
    let key = unsafe { Value::detoast(key) };
    let condition = Condition::Has(parts::key(&key));
    key.free();
    condition
}
