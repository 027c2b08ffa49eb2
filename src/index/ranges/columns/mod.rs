//! The column of an index over ranges: the keys of its values, which are hashes, and the conditions
//! of lookups on them.
//!
//! | module | the keys of a value |
//! |---|---|
//! | `element` | the element |
//! | `array` | the array as a whole, and its members |
//! | `text` | the windows of a text |
//! | `json`, `jsonpath` | the values of a document by their paths, and its keys |
//! | `words` | the words of a tsvector |
//! | `class` | the operator classes over parts, and what their operators are |
//!
//! Here are also the keys of many rows, as a build gathers them.

mod array;
pub mod class;
pub mod element;
mod json;
mod jsonpath;
mod text;
mod words;

use array::ArrayColumn;
use class::{PARTS, Strategy};
use element::ElementColumn;
use text::TextColumn;

use crate::element::with_value;
use crate::index::page::unhashed;
use crate::index::session::{self, IndexColumn};
use crate::pg::call::{Element, Result};
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::Key;
use crate::pg::storage::relation::Relation;
use crate::pg::value::varlena::Value;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::text::{Windows, each_window};
use pg_bloom_core::index::ranges::Directory;
use pg_bloom_core::memory;
use pgrx::pg_sys::Oid;

pub type Index<'r> = session::Index<'r, RangesColumn>;

pub enum RangesColumn {
    Element(ElementColumn),
    Array(Box<ArrayColumn>),
    Text(TextColumn),
    Json,
    Words,
}

impl IndexColumn for RangesColumn {
    type Directory = Directory;

    fn of(relation: Relation) -> Result<RangesColumn> {
        let support = relation.support_function(PARTS);
        if support == Oid::INVALID {
            return Ok(RangesColumn::Element(ElementColumn::of(relation)?));
        }
        let (family, _, _) = relation.column_class();
        class::check(family, support)?;
        Ok(match support.to_u32() {
            class::ARRAY => RangesColumn::Array(Box::new(ArrayColumn::of(relation)?)),
            class::TEXT => RangesColumn::Text(TextColumn::of(relation)?),
            class::JSON => RangesColumn::Json,
            // No other class but that of words was allowed.
            _ => RangesColumn::Words,
        })
    }
}

impl RangesColumn {
    /// Whether the keys of a value in memory are hashed without calling PostgreSQL, which could
    /// fail.
    pub fn is_hashed_in_place(&self) -> bool {
        match self {
            RangesColumn::Element(elements) => elements.hasher().is_in_place(),
            RangesColumn::Array(arrays) => arrays.member.hasher().is_in_place(),
            RangesColumn::Text(_) | RangesColumn::Json | RangesColumn::Words => true,
        }
    }

    /// Calls `visit` with each key of a value, as often as the value has it. XX000 for an element
    /// without a hash.
    ///
    /// # Safety
    /// The value must be of the column's type.
    #[inline]
    pub unsafe fn each_key(&self, value: Element, mut visit: impl FnMut(u64)) -> Result<()> {
        // SAFETY: promised by the caller: values of the last three columns are of variable length.
        unsafe {
            match self {
                RangesColumn::Element(elements) => {
                    visit(elements.hasher().hash(value).ok_or_else(unhashed)?)
                }
                RangesColumn::Array(arrays) => return arrays.each_key(value, visit),
                RangesColumn::Text(texts) => with_value(value, |text| {
                    each_window(text, texts.encoding, |window| {
                        window.hashes().for_each(&mut visit)
                    });
                }),
                RangesColumn::Json => {
                    with_value(value, |document| json::each_key(document, &mut visit))
                }
                RangesColumn::Words => with_value(value, |words| words::each_word(words, visit)),
            }
        }
        Ok(())
    }
}

impl Index<'_> {
    /// Returns how long PostgreSQL takes to compare a row with a value of a scan key, where LIKE takes
    /// 1.
    pub fn comparison_time(&self, scan_key: &Key) -> usize {
        let support = self.relation.support_function(PARTS);
        class::strategy(support, scan_key.strategy).map_or(1, Strategy::comparison_time)
    }

    /// What the keys of a row must be that matches all of these keys of a scan. XX000 also for a
    /// strategy that the operator class doesn't have.
    ///
    /// # Safety
    /// The keys must be those of a scan of the index.
    pub unsafe fn condition(&self, keys: &[Key]) -> Result<Condition> {
        let of_key = |key: &Key| -> Result<Condition> {
            let strategy = class::strategy(self.relation.support_function(PARTS), key.strategy)?;
            // SAFETY: promised by the caller: a key has values of the type that its operator takes.
            // Of texts that is a text, and of words a tsquery: both are of variable length.
            let condition_of = |asked: Element| unsafe {
                match self.column() {
                    // Its class has no such strategy.
                    RangesColumn::Element(_) => Ok(Condition::Unknown),
                    RangesColumn::Array(arrays) => arrays.condition(strategy, asked),
                    RangesColumn::Text(texts) => {
                        Ok(texts.condition(strategy, &Value::detoast(asked.datum)))
                    }
                    RangesColumn::Json if strategy.is_of_jsonpath() => {
                        Ok(jsonpath::condition(strategy, asked))
                    }
                    RangesColumn::Json => Ok(json::condition(strategy, asked)),
                    RangesColumn::Words => Ok(words::condition(&Value::detoast(asked.datum))),
                }
            };
            Ok(Condition::any(memory::try_collect(key.sought().into_iter().map(condition_of))?))
        };
        // A nested loop asks again and again.
        // SAFETY: conditions are in Rust's memory.
        let conditions = unsafe { in_scratch(|| memory::try_collect(keys.iter().map(of_key)))? };
        Ok(Condition::all(conditions))
    }
}

/// Items that are gathered before those are looked for that are there several times.
pub const FEW: usize = 1 << 16;

/// The keys of many rows, in memory that depends on how many of them are distinct.
pub struct GatheredKeys<'c> {
    pub column: &'c RangesColumn,
    /// Those of texts, and those of others.
    windows: Windows,
    hashes: Vec<u64>,
    /// How many hashes were left when those were removed that were there several times.
    distinct: usize,
}

impl<'c> GatheredKeys<'c> {
    pub fn new(column: &'c RangesColumn) -> GatheredKeys<'c> {
        GatheredKeys {
            column,
            windows: Windows::default(),
            hashes: Vec::new(),
            distinct: 0,
        }
    }

    /// Adds the keys of a row, and returns how many it has. Fails if a key can't be hashed.
    ///
    /// # Safety
    /// The value must be of the type of the index's column.
    pub unsafe fn add(&mut self, value: Element) -> Result<usize> {
        if let RangesColumn::Text(texts) = self.column {
            // SAFETY: a text is of variable length.
            return Ok(unsafe { with_value(value, |text| self.windows.add(text, texts.encoding)) });
        }
        let hashes = &mut self.hashes;
        let before = hashes.len();
        // SAFETY: promised by the caller.
        unsafe { self.column.each_key(value, |hash| memory::push(hashes, hash))? };
        let count = hashes.len() - before;
        if hashes.len() > FEW.max(2 * self.distinct) {
            keep_distinct(hashes);
            self.distinct = hashes.len();
        }
        Ok(count)
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty() && self.windows.is_empty()
    }

    /// Their hashes; those of elements may repeat. After them there are none.
    pub fn take(&mut self) -> Vec<u64> {
        match self.column {
            RangesColumn::Text(_) => return self.windows.take(),
            RangesColumn::Element(_) => {}
            _ => keep_distinct(&mut self.hashes),
        }
        self.distinct = 0;
        std::mem::take(&mut self.hashes)
    }
}

/// Sorts items, and drops those that are there several times.
pub fn keep_distinct<T: Ord>(items: &mut Vec<T>) {
    items.sort_unstable();
    items.dedup();
}
