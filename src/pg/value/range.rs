//! Ranges and multiranges.

use pgrx::pg_sys::{self, RangeBound};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeEntry(*mut pg_sys::TypeCacheEntry);

impl RangeEntry {
    pub fn of(oid: pg_sys::Oid) -> RangeEntry {
        // SAFETY: raises an error if that is no type; entries of the type cache live as long as the
        // process.
        RangeEntry(unsafe { pg_sys::lookup_type_cache(oid, pg_sys::TYPECACHE_RANGE_INFO as i32) })
    }

    /// The lower and the upper bound of a range; `None` if it is empty.
    ///
    /// # Safety
    /// `range` must be a whole, aligned range of this type.
    pub unsafe fn bounds(self, range: *const pg_sys::RangeType) -> Option<[RangeBound; 2]> {
        let ([mut lower, mut upper], mut is_empty) = ([RangeBound::default(); 2], false);
        // SAFETY: promised by the caller.
        unsafe { pg_sys::range_deserialize(self.0, range, &mut lower, &mut upper, &mut is_empty) };
        (!is_empty).then_some([lower, upper])
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
    /// `multirange` must be a whole, aligned one of ranges of this type, with more than `i` of
    /// them.
    pub unsafe fn bounds_in(self, multirange: *const Multirange, i: u32) -> [RangeBound; 2] {
        let [mut lower, mut upper] = [RangeBound::default(); 2];
        // SAFETY: promised by the caller; the function sets both bounds.
        unsafe { guarded!(multirange_get_bounds(self.0, multirange, i, &mut lower, &mut upper)) };
        [lower, upper]
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
        lower: *mut RangeBound,
        upper: *mut RangeBound,
    );
}
