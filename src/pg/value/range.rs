//! Ranges and multiranges.

use crate::pg::catalog;
use pgrx::pg_sys;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeEntry(*mut pg_sys::TypeCacheEntry);

/// The bounds of a range that is not empty.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub lower: pg_sys::RangeBound,
    pub upper: pg_sys::RangeBound,
}

impl RangeEntry {
    pub fn of(oid: pg_sys::Oid) -> RangeEntry {
        RangeEntry(catalog::range_entry(oid))
    }

    /// The bounds of a range; `None` if it is empty.
    ///
    /// # Safety
    /// `range` must be a whole, aligned range of this type.
    pub unsafe fn bounds(self, range: *const pg_sys::RangeType) -> Option<Bounds> {
        let (mut lower, mut upper) = (pg_sys::RangeBound::default(), pg_sys::RangeBound::default());
        let mut is_empty = false;
        // SAFETY: promised by the caller; the entry of the type cache lives as long as the process.
        unsafe { pg_sys::range_deserialize(self.0, range, &mut lower, &mut upper, &mut is_empty) };
        (!is_empty).then_some(Bounds { lower, upper })
    }

    /// # Safety
    /// `multirange` must be a whole, aligned multirange.
    pub unsafe fn count(multirange: *const Multirange) -> u32 {
        // SAFETY: promised by the caller.
        unsafe { (*multirange).range_count }
    }

    /// The bounds of range `i` of a multirange, none of which is empty.
    ///
    /// # Safety
    /// `multirange` must be a whole, aligned one of ranges of this type, with more than `i` of them.
    pub unsafe fn bounds_in(self, multirange: *const Multirange, i: u32) -> Bounds {
        let (mut lower, mut upper) = (pg_sys::RangeBound::default(), pg_sys::RangeBound::default());
        // SAFETY: promised by the caller; the function sets both bounds.
        unsafe { guarded!(multirange_get_bounds(self.0, multirange, i, &mut lower, &mut upper)) };
        Bounds { lower, upper }
    }
}

/// The start of a multirange, which pgrx doesn't declare, and neither the function that reads it.
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
        lower: *mut pg_sys::RangeBound,
        upper: *mut pg_sys::RangeBound,
    );
}
