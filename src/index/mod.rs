//! The access method `bloom_filter`: an index that keeps a Bloom filter for each range of a table's
//! pages.
//!
//! Tiles, pages and the directory as bytes are `pg_bloom_core::index::ranges` and `filters`, which
//! also say what makes "no" certain. This room has what PostgreSQL calls.
//!
//! | module | what it does |
//! |---|---|
//! | `handler` | what PostgreSQL calls, and the way from there |
//! | `ranges` | the index over ranges of a table's pages: of elements, and of what is in values |
//! | `filters` | the index over a column of filters |
//! | `kind` | what each kind does for PostgreSQL's verbs |
//! | `options` | `fpr`, `pages_per_range` |
//! | `explain` | what EXPLAIN (ANALYZE) shows of scans, from PostgreSQL 18 on |
//! | `named_index` | an index that a user names in SQL |
//! | `session` | what a session keeps of an index |
//! | `live_rows` | the rows that an index must have |
//! | `page` | pages in buffers, and of an index that is being built; damage |
//!
//! This file tells the kind of an index by its operator class, and has the functions
//! `bloom_index_info` and `bloom_index_check` for indexes of any kind.

#[cfg(not(feature = "before_pg18"))]
mod explain;
mod filters;
mod handler;
mod kind;
mod live_rows;
mod named_index;
mod options;
mod page;
mod ranges;
mod session;

pub use ranges::may_have;

use filters::FILTERS;
use kind::IndexKind;
use named_index::NamedIndex;
use ranges::RANGES;

use crate::key_condition::KEY_OF_ELEMENT;
use crate::pg::call::{Call, Outcome};
use crate::pg::catalog::operators;
use crate::pg::storage::relation::Relation;
use crate::pg::value::row::row_of_parameters;
use pgrx::pg_sys::{Datum, Oid};

/// Defines the options of indexes, and lets EXPLAIN show what their scans did. Panics the second
/// time.
pub fn define() {
    options::define();
    #[cfg(not(feature = "before_pg18"))]
    explain::define();
}

/// Returns whether an index is one over ranges whose keys are elements.
pub fn is_over_elements(index: Relation) -> bool {
    let has = |function| index.support_function(function) != Oid::INVALID;
    index.is_index_by(c"bloom_filter") && !has(KEY_OF_ELEMENT) && !has(ranges::PARTS_CLASS_FUNCTION)
}

/// Returns the kind of an index.
#[inline]
fn kind_of(index: Relation) -> &'static IndexKind {
    kind(index.support_function(KEY_OF_ELEMENT) != Oid::INVALID)
}

/// Returns whether an operator class is one that an index can have; reports what is wrong with it,
/// as INFO.
fn validate(class: Oid) -> bool {
    let (family, declared) = operators::operator_class(class);
    let has_key = operators::family_function(family, declared, KEY_OF_ELEMENT).is_some();
    (kind(has_key).validate)(family, declared)
}

/// Returns the kind of indexes with an operator class that has a function which makes the key of an
/// element, or none. Only operator classes over filters have one.
#[inline]
fn kind(has_key: bool) -> &'static IndexKind {
    if has_key { &FILTERS } else { &RANGES }
}

/// Implements `bloom_index_info(index regclass) → record`: the sizes and rates of an index.
fn info(call: &Call) -> Outcome {
    let named = NamedIndex::argument(call)?;
    let info = (kind_of(named.index()).info)(&named)?;
    Ok(Some(row_of_parameters(call, &info.out_parameters())))
}

/// Implements `bloom_index_check(index regclass) → bigint`.
fn check(call: &Call) -> Outcome {
    let named = NamedIndex::argument(call)?;
    Ok(Some(Datum::from((kind_of(named.index()).check)(&named)?)))
}

pg_functions! {
    bloom_index_info => info;
    bloom_index_check => check;
}
