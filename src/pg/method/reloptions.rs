//! Options of relations that an access method defines.

use pgrx::pg_sys;
use std::ffi::CStr;
use std::ops::RangeInclusive;

#[derive(Clone, Copy)]
pub struct OptionSet(pg_sys::relopt_kind::Type);

/// Where an option is kept: its name, its type, and how many bytes it is from the start of the struct.
pub type StoredOption = (&'static CStr, pg_sys::relopt_type::Type, usize);

/// What changing an option locks: as for other access methods, whose options say how the index is built.
const LOCK: pg_sys::LOCKMODE = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;

impl OptionSet {
    pub fn new() -> OptionSet {
        // SAFETY: asks for a number that nobody else has.
        OptionSet(unsafe { pg_sys::add_reloption_kind() })
    }

    /// Adds a number, in which range the caller checks.
    pub fn real(self, name: &'static CStr, description: &'static CStr, default: f64) {
        let (name, description, most) = (name.as_ptr(), description.as_ptr(), f64::INFINITY);
        // SAFETY: PostgreSQL copies the names.
        unsafe { pg_sys::add_real_reloption(self.0, name, description, default, -most, most, LOCK) };
    }

    pub fn integer(self, name: &'static CStr, description: &'static CStr, default: i32, range: RangeInclusive<i32>) {
        let (name, description) = (name.as_ptr(), description.as_ptr());
        // SAFETY: PostgreSQL copies the names.
        unsafe { pg_sys::add_int_reloption(self.0, name, description, default, *range.start(), *range.end(), LOCK) };
    }
}

/// The options of a relation as a struct that begins with its length; null if there are none.
///
/// # Safety
/// The entries must be fields of `T`, of the types that the options of `kind` have: no later one has the name of
/// another.
pub unsafe fn parse<T>(options: pg_sys::Datum, validate: bool, kind: OptionSet, entries: &[StoredOption]) -> *mut T {
    let entry = |&(name, opttype, offset): &StoredOption| {
        // Newer versions have a field more, which may be zero.
        let mut entry = pg_sys::relopt_parse_elt::default();
        (entry.optname, entry.opttype, entry.offset) = (name.as_ptr(), opttype, offset as i32);
        entry
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let (first, count) = (entries.as_ptr(), entries.len() as i32);
    // SAFETY: promised by the caller. Raises an error for an option that is not one of the kind's.
    unsafe { pg_sys::build_reloptions(options, validate, kind.0, size_of::<T>(), first, count).cast() }
}
