//! The options of an index: `WITH (fpr = 0.0001, pages_per_range = 8)`. What is not said depends on the operator class,
//! and for an index over keys the rate on the size of the table.
//!
//! They say how the index is built: `ALTER INDEX … SET` takes effect at the next REINDEX.

use crate::error::invalid_parameter;
use crate::pg::call::error::{Error, Result};
use crate::pg::method::reloptions::{self, OptionSet};
use crate::pg::storage::relation::{Options, Relation};
use pg_bloom_core::index::ranges::{MAX_FPR, MAX_PAGES_PER_RANGE, MAX_PART_FPR, MIN_FPR};
use pgrx::pg_sys::{self, Datum, relopt_type};
use std::mem::offset_of;
use std::sync::OnceLock;

/// What PostgreSQL keeps of a rate and a number of pages that are not said.
const NO_FPR: f64 = f64::MIN;
const NO_PAGES: i32 = 0;

/// The options as PostgreSQL keeps them in the relation cache.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stored {
    length: i32,
    pages_per_range: i32,
    fpr: f64,
}

// SAFETY: what `parse` makes; numbers only.
unsafe impl Options for Stored {}

/// The options of an index, as far as they were given.
#[derive(Clone, Copy, Debug)]
pub struct IndexOptions {
    /// The share of ranges that are read unnecessarily for an absent key.
    pub fpr: Option<f64>,
    /// Heap pages of a range.
    pub pages_per_range: Option<u32>,
}

static KIND: OnceLock<OptionSet> = OnceLock::new();

pub fn define() {
    let kind = OptionSet::new();
    kind.real(c"fpr", c"Share of all ranges that are read unnecessarily for an absent key", NO_FPR);
    kind.integer(
        c"pages_per_range",
        c"Number of table pages that have one Bloom filter",
        NO_PAGES,
        1..=MAX_PAGES_PER_RANGE.cast_signed(),
    );
    KIND.set(kind).ok();
}

/// Parses the options of an index, and checks them if `validate`.
///
/// # Errors
/// 22023 for an invalid rate.
///
/// # Safety
/// The datum must be what PostgreSQL passes to amoptions.
pub unsafe fn parse(options: Datum, validate: bool) -> Result<*mut pg_sys::bytea> {
    let entries = [
        (c"fpr", relopt_type::RELOPT_TYPE_REAL, offset_of!(Stored, fpr)),
        (c"pages_per_range", relopt_type::RELOPT_TYPE_INT, offset_of!(Stored, pages_per_range)),
    ];
    let Some(&kind) = KIND.get() else { return Ok(std::ptr::null_mut()) };
    // SAFETY: promised by the caller; the entries are fields of that struct.
    let parsed: *mut Stored = unsafe { reloptions::parse(options, validate, kind, &entries) };
    // SAFETY: null, or the options that were just made.
    let stored = unsafe { parsed.as_ref() };
    if let Some(stored) = stored.filter(|stored| validate && stored.fpr != NO_FPR)
        && !is_possible(stored.fpr, MAX_PART_FPR)
    {
        let hint = "It is the share of all ranges that are read unnecessarily for an absent key. \
            Leave it out for the default.";
        return Err(refused(format!("option \"fpr\" is {}", stored.fpr)).hint(hint));
    }
    Ok(parsed.cast())
}

fn is_possible(fpr: f64, most: f64) -> bool {
    (MIN_FPR..=most).contains(&fpr)
}

/// The error for an invalid rate.
fn refused(message: String) -> Error {
    let (least, keys) = (decimal(MIN_FPR), MAX_FPR);
    invalid_parameter(message).detail(format!(
        "It must be between {least} and {keys}, or up to {MAX_PART_FPR} in an operator class over parts of values."
    ))
}

/// A small number as people write it.
fn decimal(number: f64) -> String {
    format!("{number:.7}").trim_end_matches('0').to_owned()
}

pub fn are_given(index: Relation) -> bool {
    index.options::<Stored>().is_some()
}

pub fn are_pages_given(index: Relation) -> bool {
    index.options::<Stored>().is_some_and(|stored| stored.pages_per_range != NO_PAGES)
}

/// The options of an index whose operator class allows a rate of at most `most`. ALTER INDEX SET can't know that.
///
/// # Errors
/// 22023 for a rate that it can't have.
pub fn of(index: Relation, most: f64) -> Result<IndexOptions> {
    let stored = index.options::<Stored>();
    let fpr = stored.map(|stored| stored.fpr).filter(|&fpr| fpr != NO_FPR);
    if let Some(fpr) = fpr.filter(|&fpr| !is_possible(fpr, most)) {
        let message = format!("option \"fpr\" of index \"{}\" is {fpr}", index.name());
        return Err(refused(message).hint("Leave it out, or remove it with ALTER INDEX ... RESET (fpr)."));
    }
    let pages = stored.map(|stored| stored.pages_per_range).filter(|&pages| pages != NO_PAGES);
    Ok(IndexOptions { fpr, pages_per_range: pages.map(i32::cast_unsigned) })
}
