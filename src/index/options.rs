//! The options of an index: `WITH (fpr = 0.0001, pages_per_range = 8)`. The default of an option
//! depends on the operator class, and that of the rate, for an index of elements, on the size of
//! the table. `ALTER INDEX … SET` takes effect at the next REINDEX.

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

/// The values of options that the user has not given.
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

/// PostgreSQL's number for the options of this access method; unset before [`define`].
static KIND: OnceLock<relopt_kind::Type> = OnceLock::new();

/// Makes the options of indexes, `fpr` and `pages_per_range`, known to PostgreSQL. To be called
/// once, when the library is loaded.
pub fn define() {
    // Changing an option locks the index as it does for other access methods whose options say how
    // an index is built.
    const LOCK: LOCKMODE = pg_sys::AccessExclusiveLock as LOCKMODE;
    // SAFETY: PostgreSQL copies the names and the descriptions.
    unsafe {
        let kind = pg_sys::add_reloption_kind();
        // Any rate is let through: which ones are possible is checked by `parse` and `given`, whose
        // errors have a hint.
        pg_sys::add_real_reloption(
            kind,
            c"fpr".as_ptr(),
            c"Share of all ranges that are read unnecessarily for an absent key".as_ptr(),
            NO_FPR,
            f64::NEG_INFINITY,
            f64::INFINITY,
            LOCK,
        );
        pg_sys::add_int_reloption(
            kind,
            c"pages_per_range".as_ptr(),
            c"Number of table pages that have one Bloom filter".as_ptr(),
            NO_PAGES,
            1,
            MAX_PAGES_PER_RANGE.cast_signed(),
            LOCK,
        );
        KIND.set(kind).ok();
    }
}

/// Parses the options of an index, as PostgreSQL's function `amoptions` must: returns them as a
/// value that PostgreSQL keeps with the index; null if none are given.
///
/// If `validate` is true, fails with 22023 for a false positive rate that no index can have, and
/// raises PostgreSQL's error for an option that doesn't exist. PostgreSQL doesn't validate options
/// that are stored already.
///
/// # Safety
/// The datum must be the one that PostgreSQL passes to amoptions.
pub unsafe fn parse(options: Datum, validate: bool) -> Result<*mut pg_sys::bytea> {
    let Some(&kind) = KIND.get() else {
        return Ok(std::ptr::null_mut());
    };
    let fields = [
        field(c"fpr", relopt_type::RELOPT_TYPE_REAL, offset_of!(Stored, fpr)),
        field(
            c"pages_per_range",
            relopt_type::RELOPT_TYPE_INT,
            offset_of!(Stored, pages_per_range),
        ),
    ];
    // SAFETY: the caller promises the datum; the fields are those of `Stored`, and have the types
    // of the options.
    let parsed: *mut Stored = unsafe {
        pg_sys::build_reloptions(
            options,
            validate,
            kind,
            size_of::<Stored>(),
            fields.as_ptr(),
            fields.len() as i32,
        )
        .cast()
    };
    // SAFETY: the result is null or a `Stored`.
    let stored = unsafe { parsed.as_ref() };
    if validate
        && let Some(fpr) = stored.and_then(|stored| stored.impossible_fpr(MAX_FPR_MANY_KEYS))
    {
        return Err(impossible_fpr(format!("option \"fpr\" is {fpr}")).hint(
            "It is the share of all ranges that are read unnecessarily for an absent key. \
             Leave it out for the default.",
        ));
    }
    Ok(parsed.cast())
}

/// Returns PostgreSQL's struct that says where it puts the value of an option with this name and
/// type: at `offset` bytes in [`Stored`].
#[allow(
    clippy::field_reassign_with_default,
    reason = "before version 18 these are all fields, and the form with `..` is refused"
)]
fn field(
    name: &'static CStr,
    option_type: relopt_type::Type,
    offset: usize,
) -> pg_sys::relopt_parse_elt {
    // Newer versions have a further field, for which zero is right.
    let mut field = pg_sys::relopt_parse_elt::default();
    field.optname = name.as_ptr();
    field.opttype = option_type;
    field.offset = offset as i32;
    field
}

impl Stored {
    /// Returns the rate that the user has given.
    fn fpr(&self) -> Option<f64> {
        Some(self.fpr).filter(|&fpr| fpr != NO_FPR)
    }

    /// Returns the rate that the user has given, if it is less than any index can have, or more
    /// than `most`.
    fn impossible_fpr(&self, most: f64) -> Option<f64> {
        self.fpr().filter(|fpr| !(MIN_FPR..=most).contains(fpr))
    }
}

/// Returns the error for a rate that an index can't have.
fn impossible_fpr(message: String) -> Error {
    invalid_parameter(message).detail(format!(
        "It must be between {MIN_FPR} and {MAX_FPR_ONE_KEY}, or up to {MAX_FPR_MANY_KEYS} in an operator class over parts of values."
    ))
}

fn stored(index: Relation) -> Option<Stored> {
    // SAFETY: PostgreSQL keeps a copy of the `Stored` that `parse` has made.
    unsafe { index.options() }
}

/// Returns whether an index has options.
pub fn are_given(index: Relation) -> bool {
    stored(index).is_some()
}

/// The options of an index that the user has given.
#[derive(Default)]
pub struct GivenOptions {
    pub fpr: Option<f64>,
    pub pages_per_range: Option<u32>,
}

/// Returns the options that the user has given for an index, each `None` if it isn't given.
/// `most_fpr` is the largest false positive rate that the index's operator class allows. Fails with
/// 22023 for a larger one, which ALTER INDEX SET lets through, since it doesn't know the class.
pub fn given(index: Relation, most_fpr: f64) -> Result<GivenOptions> {
    let Some(stored) = stored(index) else {
        return Ok(GivenOptions::default());
    };
    if let Some(fpr) = stored.impossible_fpr(most_fpr) {
        let message = format!("option \"fpr\" of index \"{}\" is {fpr}", index.name());
        return Err(impossible_fpr(message)
            .hint("Leave it out, or remove it with ALTER INDEX ... RESET (fpr)."));
    }
    let pages = Some(stored.pages_per_range).filter(|&pages| pages != NO_PAGES);
    Ok(GivenOptions {
        fpr: stored.fpr(),
        pages_per_range: pages.map(i32::cast_unsigned),
    })
}
