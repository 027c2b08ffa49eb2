//! The column of an index over ranges: which keys its values have, and what a lookup asks of the
//! keys. A key is a hash of 64 bits.
//!
//! | module | the keys of a value |
//! |---|---|
//! | `element` | the element |
//! | `array` | the array as a whole, and its members |
//! | `text` | the windows of a text |
//! | `json`, `jsonpath` | the values of a document by their paths, and its keys |
//! | `words` | the words of a tsvector |
//! | `class` | the operator classes with several keys a value, and what their operators ask |
//!
//! [`GatheredKeys`] has the keys of many rows, for CREATE INDEX.

mod array;
pub mod class;
pub mod element;
mod json;
mod jsonpath;
mod text;
mod words;

use array::ArrayColumn;
use class::{PARTS_CLASS_FUNCTION, Strategy};
use element::ElementColumn;
use text::TextColumn;

use crate::element::with_value;
use crate::index::page::unhashed;
use crate::index::session::{self, IndexColumn};
use crate::pg::call::{Result, SqlValue};
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::Key;
use crate::pg::storage::relation::{ColumnClass, Relation};
use crate::pg::value::varlena::Value;
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::text::{Windows, each_window};
use pg_bloom_core::index::ranges::Directory;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Oid;

pub type RangesIndex<'r> = session::OpenIndex<'r, RangesColumn>;

/// The column of an index over ranges, by the sort of its keys.
pub enum RangesColumn {
    /// One key: the value itself.
    Element(ElementColumn),
    Array(Box<ArrayColumn>),
    Text(TextColumn),
    Json,
    /// The words of a tsvector.
    Tsvector,
}

impl IndexColumn for RangesColumn {
    type Directory = Directory;

    /// Returns a description of the column of an index over ranges of a table's pages. The index
    /// keeps hashes of what values have in them, by its operator class. Support function 3 of the
    /// class, which is never called, says which class it is:
    ///
    /// | operator class | support function 3 | the index keeps the hash of |
    /// |---|---|---|
    /// | those of elements | none | a value as a whole |
    /// | `array_ops` | `arrayoverlap` | an array and each of its members |
    /// | `jsonb_ops` | `jsonb_contains` | each value of a document with its path, and each key |
    /// | `tsvector_ops` | `ts_match_vq` | each word |
    /// | `text_ngram_ops` | `textlike` | each window of a text: characters that follow each other |
    ///
    /// Fails with 0A000 for a column or an operator class that such an index can't have.
    fn describe_column(index: Relation) -> Result<RangesColumn> {
        let class_function = index.support_function(PARTS_CLASS_FUNCTION);
        if class_function == Oid::INVALID {
            return Ok(RangesColumn::Element(ElementColumn::of_index(index)?));
        }
        let ColumnClass { family, declared, .. } = index.column_class();
        class::check(family, declared, class_function)?;
        Ok(match class_function.to_u32() {
            class::ARRAY_OPS => RangesColumn::Array(Box::new(ArrayColumn::of_index(index)?)),
            class::TEXT_NGRAM_OPS => RangesColumn::Text(TextColumn::of_index(index)?),
            class::JSONB_OPS => RangesColumn::Json,
            class::TSVECTOR_OPS => RangesColumn::Tsvector,
            // The check allows no other class.
            _ => return Err(class::unknown_class()),
        })
    }
}

impl RangesColumn {
    /// Returns whether the keys of a value in memory are computed without calling PostgreSQL, and
    /// so without failing.
    pub fn is_hashed_in_place(&self) -> bool {
        match self {
            RangesColumn::Element(elements) => elements.hasher().is_in_place(),
            RangesColumn::Array(arrays) => arrays.member.hasher().is_in_place(),
            RangesColumn::Text(_) | RangesColumn::Json | RangesColumn::Tsvector => true,
        }
    }

    /// Calls `visit` with each key of a value, as often as the value has it. A *key* is a hash of
    /// what the index keeps: of the value itself, of its members, words or leaves, or of each
    /// window of a text, some characters that follow each other. Fails with XX000 if an element, or
    /// a member of an array, has no hash.
    ///
    /// # Safety
    /// The value must be of the column's type.
    #[inline]
    pub unsafe fn each_key(&self, value: SqlValue, mut visit: impl FnMut(u64)) -> Result<()> {
        // SAFETY: the caller promises the column's type, and texts, documents and tsvectors are of
        // variable length.
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
                RangesColumn::Tsvector => with_value(value, |words| words::each_word(words, visit)),
            }
        }
        Ok(())
    }
}

impl RangesIndex<'_> {
    /// Returns how long PostgreSQL takes to compare a row with a value of a scan key, where LIKE
    /// takes 1.
    pub fn comparison_time(&self, scan_key: &Key) -> usize {
        let class_function = self.relation.support_function(PARTS_CLASS_FUNCTION);
        class::strategy(class_function, scan_key.strategy).map_or(1, Strategy::comparison_time)
    }

    /// Returns the condition on a row's keys that is necessary for the row to match all of these
    /// scan keys, the comparisons of a query with the column. A row's *keys* are the hashes of the
    /// parts of its value. Fails with XX000 for an operator that the index's operator class doesn't
    /// have, and if a value that is asked for has no hash; raises 2201B for an invalid regular
    /// expression.
    ///
    /// # Safety
    /// The scan keys must be those of a scan of the index.
    pub unsafe fn condition(&self, scan_keys: &[Key]) -> Result<Condition> {
        // SAFETY: promised by the caller.
        let condition_of = |scan_key: &Key| unsafe { self.condition_of_scan_key(scan_key) };
        // A nested loop repeats the lookup many times, so what PostgreSQL allocates for one is
        // freed.
        // SAFETY: conditions are in Rust's memory.
        let conditions = unsafe {
            in_scratch(|| scan_keys.iter().map(condition_of).collect::<Result<List<_>>>())?
        };
        Ok(Condition::all(conditions))
    }

    /// Returns the condition on a row's keys, the hashes of the parts of its value, that is
    /// necessary for the row to match at least one of the values of a scan key. A scan key is a
    /// comparison of the query with the column. Fails with XX000 for an operator that the index's
    /// operator class doesn't have.
    ///
    /// # Safety
    /// The scan key must be one of a scan of the index.
    unsafe fn condition_of_scan_key(&self, scan_key: &Key) -> Result<Condition> {
        let class_function = self.relation.support_function(PARTS_CLASS_FUNCTION);
        let strategy = class::strategy(class_function, scan_key.strategy)?;
        // SAFETY: promised by the caller: a scan key has values of the type that its operator
        // takes.
        let condition_of = |asked| unsafe { self.condition_of_value(strategy, asked) };
        let values = scan_key.sought().into_iter();
        Ok(Condition::any(values.map(condition_of).collect::<Result<List<_>>>()?))
    }

    /// Returns the condition on a row's keys, the hashes of the parts of its value, that is
    /// necessary for an operator (by its strategy) to hold between that value and `asked`.
    /// `Unknown` is a condition that restricts nothing. Fails with XX000 for a strategy that the
    /// column's file has no condition for.
    ///
    /// # Safety
    /// The value must be of the type of the operator's right side.
    unsafe fn condition_of_value(&self, strategy: Strategy, asked: SqlValue) -> Result<Condition> {
        // SAFETY: promised by the caller. The right side of `@?` and of `@@` is a jsonpath for
        // documents, that of `@@` is a tsquery for tsvectors, which is of variable length.
        unsafe {
            match self.column() {
                // The class of elements has none of these strategies.
                RangesColumn::Element(_) => Ok(Condition::Unknown),
                RangesColumn::Array(arrays) => arrays.condition(strategy, asked),
                RangesColumn::Text(texts) => texts.condition(strategy, asked),
                RangesColumn::Json => match strategy {
                    Strategy::PathExists => Ok(jsonpath::of_existence(asked)),
                    Strategy::PathMatches => Ok(jsonpath::of_match(asked)),
                    _ => json::condition(strategy, asked),
                },
                RangesColumn::Tsvector => match strategy {
                    Strategy::Matches => Ok(words::condition(&Value::detoast(asked.datum))),
                    _ => Err(class::unknown_strategy(strategy as i16)),
                },
            }
        }
    }
}

/// A list shorter than this isn't searched for items that it has several times.
pub const SHORT_LIST: usize = 1 << 16;

/// The keys of many rows. Keys that rows share are kept once: whenever the list has grown to twice
/// its distinct keys, the others are removed.
pub struct GatheredKeys<'c> {
    pub column: &'c RangesColumn,
    /// The keys of texts.
    windows: Windows,
    /// The keys of other values.
    hashes: List<u64>,
    /// How many hashes were left when those that were there several times were last removed.
    num_distinct: usize,
}

impl<'c> GatheredKeys<'c> {
    /// Returns an empty list for the keys of a column's values.
    pub fn new(column: &'c RangesColumn) -> GatheredKeys<'c> {
        GatheredKeys {
            column,
            windows: Windows::default(),
            hashes: List::new(),
            num_distinct: 0,
        }
    }

    /// Adds the keys of a row's value, and returns how many they are, counted as often as the value
    /// has them. If the list has more than 65,536 hashes, and twice as many as were distinct when
    /// they were last counted, repeated ones are removed. Fails with XX000 if an element, or a
    /// member of an array, has no hash.
    ///
    /// # Safety
    /// The value must be of the type of the index's column.
    pub unsafe fn add(&mut self, value: SqlValue) -> Result<usize> {
        if let RangesColumn::Text(texts) = self.column {
            // SAFETY: a text is of variable length.
            return Ok(unsafe { with_value(value, |text| self.windows.add(text, texts.encoding)) });
        }
        let hashes = &mut self.hashes;
        let num_before = hashes.len();
        // SAFETY: promised by the caller.
        unsafe { self.column.each_key(value, |hash| hashes.push(hash))? };
        let num_added = hashes.len() - num_before;
        if hashes.len() > SHORT_LIST.max(2 * self.num_distinct) {
            keep_distinct(hashes);
            self.num_distinct = hashes.len();
        }
        Ok(num_added)
    }

    /// Returns whether no key was added since the keys were last taken.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty() && self.windows.is_empty()
    }

    /// Returns all keys that were added since the last call, and forgets them. Each is there once,
    /// except for the keys of elements, which may be repeated.
    pub fn take(&mut self) -> List<u64> {
        match self.column {
            RangesColumn::Text(_) => return self.windows.take(),
            RangesColumn::Element(_) => {}
            _ => keep_distinct(&mut self.hashes),
        }
        self.num_distinct = 0;
        std::mem::take(&mut self.hashes)
    }
}

/// Sorts items, and removes those that are there several times.
pub fn keep_distinct<T: Ord>(items: &mut List<T>) {
    items.sort_unstable();
    items.dedup();
}
