//! The options of an index: `WITH (fpr = 0.0001, pages_per_range = 8)`. What is not said depends on
//! the operator class, and for an index over keys the rate on the size of the table.
//! `ALTER INDEX … SET` takes effect at the next REINDEX.

use crate::error::invalid_parameter;
use crate::pg::call::error::{Error, Result};
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::ranges::{
    MAX_FPR_MANY_KEYS, MAX_FPR_ONE_KEY, MAX_PAGES_PER_RANGE, MIN_FPR,
};
use pgrx::pg_sys::{self, Datum, LOCKMODE, relopt_kind, relopt_type};
use std::ffi::CStr;
use std::mem::offset_of;
use std::sync::OnceLock;

/// What stands for a rate and a number of pages that are not said.
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

static KIND: OnceLock<relopt_kind::Type> = OnceLock::new();

pub fn define() {
    // What changing an option locks: as for other access methods, whose options say how the index
    // is built.
    const LOCK: LOCKMODE = pg_sys::AccessExclusiveLock as LOCKMODE;
    let of_fpr = c"Share of all ranges that are read unnecessarily for an absent key".as_ptr();
    let of_pages = c"Number of table pages that have one Bloom filter".as_ptr();
    let (any, most_pages) = (f64::INFINITY, MAX_PAGES_PER_RANGE.cast_signed());
    // SAFETY: asks for a number that nobody else has. PostgreSQL copies the names.
    unsafe {
        let kind = pg_sys::add_reloption_kind();
        // In which range a rate is `parse` checks.
        pg_sys::add_real_reloption(kind, c"fpr".as_ptr(), of_fpr, NO_FPR, -any, any, LOCK);
        pg_sys::add_int_reloption(
            kind,
            c"pages_per_range".as_ptr(),
            of_pages,
            NO_PAGES,
            1,
            most_pages,
            LOCK,
        );
        KIND.set(kind).ok();
    }
}

/// Parses the options of an index, and checks them if `validate`: 22023 for an invalid rate.
///
/// # Safety
/// The datum must be what PostgreSQL passes to amoptions.
pub unsafe fn parse(options: Datum, validate: bool) -> Result<*mut pg_sys::bytea> {
    let entry = |name: &'static CStr, opttype, offset: usize| {
        // Newer versions have a field more, which may be zero.
        let mut entry = pg_sys::relopt_parse_elt::default();
        (entry.optname, entry.opttype, entry.offset) = (name.as_ptr(), opttype, offset as i32);
        entry
    };
    let entries = [
        entry(c"fpr", relopt_type::RELOPT_TYPE_REAL, offset_of!(Stored, fpr)),
        entry(
            c"pages_per_range",
            relopt_type::RELOPT_TYPE_INT,
            offset_of!(Stored, pages_per_range),
        ),
    ];
    let Some(&kind) = KIND.get() else {
        return Ok(std::ptr::null_mut());
    };
    // SAFETY: promised by the caller; the entries are fields of that struct, of the types that the
    // options have. The result is null, or has the options. Raises an error for an option that is
    // not one of the kind's.
    let (parsed, stored) = unsafe {
        let (bytes, first, count) = (size_of::<Stored>(), entries.as_ptr(), entries.len() as i32);
        let parsed: *mut Stored =
            pg_sys::build_reloptions(options, validate, kind, bytes, first, count).cast();
        (parsed, parsed.as_ref())
    };
    match stored
        .filter(|_| validate)
        .and_then(|stored| stored.refused_fpr(MAX_FPR_MANY_KEYS))
    {
        Some(fpr) => Err(refused(format!("option \"fpr\" is {fpr}")).hint(
            "It is the share of all ranges that are read unnecessarily for an absent key. \
             Leave it out for the default.",
        )),
        None => Ok(parsed.cast()),
    }
}

impl Stored {
    fn fpr(&self) -> Option<f64> {
        Some(self.fpr).filter(|&fpr| fpr != NO_FPR)
    }

    /// A rate that is given and can't be, where it is at most this.
    fn refused_fpr(&self, most: f64) -> Option<f64> {
        self.fpr().filter(|fpr| !(MIN_FPR..=most).contains(fpr))
    }
}

/// The error for an invalid rate.
fn refused(message: String) -> Error {
    invalid_parameter(message).detail(format!(
        "It must be between {MIN_FPR} and {MAX_FPR_ONE_KEY}, or up to {MAX_FPR_MANY_KEYS} in an operator class over parts of values."
    ))
}

fn stored(index: Relation) -> Option<Stored> {
    // SAFETY: what `parse` makes; numbers only.
    unsafe { index.options() }
}

pub fn are_given(index: Relation) -> bool {
    stored(index).is_some()
}

/// The rate and the pages of a range of an index, as far as they were given, whose operator class
/// allows a rate of at most `most`: 22023 for a larger one. ALTER INDEX SET can't know that.
pub fn of(index: Relation, most: f64) -> Result<(Option<f64>, Option<u32>)> {
    let Some(stored) = stored(index) else {
        return Ok((None, None));
    };
    if let Some(fpr) = stored.refused_fpr(most) {
        let message = format!("option \"fpr\" of index \"{}\" is {fpr}", index.name());
        return Err(
            refused(message).hint("Leave it out, or remove it with ALTER INDEX ... RESET (fpr).")
        );
    }
    let pages = Some(stored.pages_per_range).filter(|&pages| pages != NO_PAGES);
    Ok((stored.fpr(), pages.map(i32::cast_unsigned)))
}
