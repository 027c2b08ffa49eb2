//! Ranges and multiranges: reading their bounds.

use pgrx::pg_sys::{self, RangeBound};

/// What PostgreSQL's cache knows about a type of ranges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeEntry(*mut pg_sys::TypeCacheEntry);

impl RangeEntry {
    /// Returns the entry for a type. Raises an error if there is no such type.
    pub fn of(oid: pg_sys::Oid) -> RangeEntry {
        // SAFETY: entries of PostgreSQL's type cache live as long as the process.
        RangeEntry(unsafe { pg_sys::lookup_type_cache(oid, pg_sys::TYPECACHE_RANGE_INFO as i32) })
    }

    /// Returns the lower and the upper bound of a range; `None` if it is empty.
    ///
    /// # Safety
    /// `range` must be a whole, aligned range of this type.
    pub unsafe fn bounds(self, range: *const pg_sys::RangeType) -> Option<[RangeBound; 2]> {
        let mut lower = RangeBound::default();
        let mut upper = RangeBound::default();
        let mut is_empty = false;
        // SAFETY: the caller promises a whole, aligned range of this type.
        unsafe { pg_sys::range_deserialize(self.0, range, &mut lower, &mut upper, &mut is_empty) };
        if is_empty { None } else { Some([lower, upper]) }
    }

    /// Returns the number of ranges in a multirange.
    ///
    /// # Safety
    /// `multirange` must be a whole, aligned multirange.
    pub unsafe fn count(multirange: *const Multirange) -> u32 {
        // SAFETY: the caller promises a whole, aligned multirange.
        unsafe { (*multirange).range_count }
    }

    /// Returns the lower and the upper bound of range `i` of a multirange, whose ranges are never
    /// empty.
    ///
    /// # Safety
    /// `multirange` must be a whole, aligned multirange with more than `i` ranges of this type.
    pub unsafe fn bounds_in(self, multirange: *const Multirange, i: u32) -> [RangeBound; 2] {
        let mut lower = RangeBound::default();
        let mut upper = RangeBound::default();
        // SAFETY: the caller promises a multirange of this type with more than `i` ranges.
        unsafe { guarded!(multirange_get_bounds(self.0, multirange, i, &mut lower, &mut upper)) };
        [lower, upper]
    }
}

// pgrx declares neither this struct nor the function that reads it.

/// The start of a multirange (PostgreSQL's `MultirangeType`).
#[repr(C)]
pub struct Multirange {
    length: i32,
    oid: pg_sys::Oid,
    range_count: u32,
}

unsafe extern "C-unwind" {
    fn multirange_get_bounds(
        ranges: *mut pg_sys::TypeCacheEntry,
        multirange: *const Multirange,
        i: u32,
        lower: *mut RangeBound,
        upper: *mut RangeBound,
    );
}
