//! Arrays, rows, ranges and multiranges: reading their members.

use super::call::Element;
use super::canonical::Reader;
use super::catalog::{self, Storage};
use super::rowtype::RowType;
use super::varlena::Value;
use pg_bloom_core::canonical::Sink;
use pg_bloom_core::canonical::members::{self, flags};
use pg_bloom_core::hash::Stream;
use pgrx::pg_sys;

/// What the values of a type are made of.
pub enum Parts {
    /// An array of these elements.
    Array(Member),
    /// A row of these columns, as many as its type has; there is none for a column that was dropped.
    Row(RowType, Vec<Option<Member>>),
    /// A range.
    Range(RangeType),
    /// A multirange of these ranges.
    Multirange(RangeType),
}

/// Members of one type.
pub struct Member {
    reader: Reader,
    storage: Storage,
}

/// A type of ranges.
pub struct RangeType {
    entry: *mut pg_sys::TypeCacheEntry,
    bound: Member,
}

impl Parts {
    /// Writes the canonical bytes of an element that is made of these parts.
    pub(super) fn write(&self, element: Element, into: &mut Stream) {
        catalog::check_stack_depth();
        // SAFETY: values made of others are of variable length. Each is read as what its type says.
        unsafe {
            if let Parts::Row(row, _) = self {
                row.check(element.datum);
            }
            let value = Value::detoast_aligned(element.datum);
            match self {
                Parts::Array(member) => write_array(value.pointer().cast(), member, into),
                Parts::Row(row, columns) => {
                    row.each_column(value.pointer().cast(), |i, datum| {
                        if let Some(member) = &columns[i] {
                            member.write(datum, into);
                        }
                    });
                }
                Parts::Range(range) => range.write(value.pointer().cast(), into),
                Parts::Multirange(range) => range.write_many(value.pointer().cast(), into),
            }
            value.free();
        }
    }
}

impl Member {
    /// Members that are read like this and kept like that.
    pub fn new(reader: Reader, storage: Storage) -> Member {
        Member { reader, storage }
    }

    /// Writes a member; `None` is NULL.
    fn write(&self, datum: Option<pg_sys::Datum>, into: &mut Stream) {
        match datum {
            Some(datum) => self.reader.write_member(Element { datum }, into),
            None => members::null(into),
        }
    }
}

/// Writes the canonical bytes of an array.
///
/// # Safety
/// `array` must be a whole, aligned array of such members.
unsafe fn write_array(array: *const pg_sys::ArrayType, member: &Member, into: &mut Stream) {
    // SAFETY: promised by the caller. Behind the fixed part are lengths and lower bounds, then a bit for each element if there
    // are NULLs, then the elements that are none.
    unsafe {
        let dimensions = usize::try_from((*array).ndim).unwrap_or(0);
        let lengths: *const i32 = array.add(1).cast();
        let lengths = std::slice::from_raw_parts(lengths, 2 * dimensions);
        let (lengths, lower_bounds) = lengths.split_at(dimensions);
        members::array(lengths.iter().copied().zip(lower_bounds.iter().copied()), into);
        let count = if dimensions == 0 { 0 } else { lengths.iter().map(|&length| length as usize).product() };
        let bitmap: *const u8 = lower_bounds.as_ptr_range().end.cast();
        let has_nulls = (*array).dataoffset != 0;
        let start = if has_nulls { (*array).dataoffset as usize } else { after_header(dimensions) };
        let mut at: *const u8 = array.cast::<u8>().add(start);
        for i in 0..count {
            if has_nulls && *bitmap.add(i / 8) >> (i % 8) & 1 == 0 {
                members::null(into);
                continue;
            }
            at = member.storage.align(at);
            member.write(Some(member.storage.fetch(at)), into);
            at = at.add(member.storage.length(at));
        }
    }
}

/// Where the elements of an array without NULLs start.
fn after_header(dimensions: usize) -> usize {
    (size_of::<pg_sys::ArrayType>() + 2 * dimensions * size_of::<i32>())
        .next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize)
}

impl Storage {
    /// Where a value that starts at `at` or behind some padding starts.
    ///
    /// # Safety
    /// `at` must be within a value that such values follow each other in.
    unsafe fn align(&self, at: *const u8) -> *const u8 {
        // SAFETY: promised by the caller. A short length is never zero, as padding is, and needs no alignment.
        if self.len == -1 && unsafe { *at } != 0 {
            return at;
        }
        let alignment = match self.align as u8 {
            b'c' => 1,
            b's' => align_of::<i16>(),
            b'i' => align_of::<i32>(),
            _ => align_of::<f64>(),
        };
        at.wrapping_add(at.align_offset(alignment))
    }

    /// The value at `at`.
    ///
    /// # Safety
    /// There must be one.
    unsafe fn fetch(&self, at: *const u8) -> pg_sys::Datum {
        // SAFETY: promised by the caller.
        unsafe {
            match (self.by_value, self.len) {
                (true, 1) => pg_sys::Datum::from(*at),
                (true, 2) => pg_sys::Datum::from(at.cast::<i16>().read()),
                (true, 4) => pg_sys::Datum::from(at.cast::<i32>().read()),
                (true, _) => pg_sys::Datum::from(at.cast::<u64>().read()),
                (false, _) => pg_sys::Datum::from(at.cast_mut()),
            }
        }
    }

    /// Bytes of the value at `at`.
    ///
    /// # Safety
    /// There must be one.
    unsafe fn length(&self, at: *const u8) -> usize {
        // SAFETY: promised by the caller.
        unsafe {
            match self.len {
                -1 => pgrx::varsize_any(at.cast()),
                -2 => std::ffi::CStr::from_ptr(at.cast()).to_bytes_with_nul().len(),
                length => length as usize,
            }
        }
    }
}

impl RangeType {
    /// The type `oid` of ranges with such bounds.
    pub fn of_range(oid: pg_sys::Oid, bound: Member) -> RangeType {
        RangeType { entry: catalog::range_entry(oid), bound }
    }

    /// Writes the canonical bytes of a range.
    ///
    /// # Safety
    /// `range` must be a whole, aligned one of this type.
    unsafe fn write(&self, range: *const pg_sys::RangeType, into: &mut Stream) {
        let (mut lower, mut upper) = (pg_sys::RangeBound::default(), pg_sys::RangeBound::default());
        let mut is_empty = false;
        // SAFETY: promised by the caller; the entry of the type cache lives as long as the process.
        unsafe { pg_sys::range_deserialize(self.entry, range, &mut lower, &mut upper, &mut is_empty) };
        if is_empty { into.write(&[flags::EMPTY]) } else { self.write_bounds(&lower, &upper, into) }
    }

    /// Writes the canonical bytes of a multirange.
    ///
    /// # Safety
    /// `multirange` must be a whole, aligned one of ranges of this type.
    #[cfg(not(feature = "pg13"))]
    unsafe fn write_many(&self, multirange: *const Multirange, into: &mut Stream) {
        // SAFETY: promised by the caller; `multirange_get_bounds` sets both bounds of range `i`.
        unsafe {
            let count = (*multirange).range_count;
            members::multirange(count, into);
            for i in 0..count {
                let (mut lower, mut upper) = (pg_sys::RangeBound::default(), pg_sys::RangeBound::default());
                multirange_get_bounds(self.entry, multirange, i, &mut lower, &mut upper);
                self.write_bounds(&lower, &upper, into);
            }
        }
    }

    /// There are none in this version.
    #[cfg(feature = "pg13")]
    unsafe fn write_many(&self, _multirange: *const Multirange, _into: &mut Stream) {}

    fn write_bounds(&self, lower: &pg_sys::RangeBound, upper: &pg_sys::RangeBound, into: &mut Stream) {
        let mut set = 0;
        for (is_set, flag) in [
            (lower.infinite, flags::NO_LOWER),
            (upper.infinite, flags::NO_UPPER),
            (lower.inclusive, flags::LOWER_IN),
            (upper.inclusive, flags::UPPER_IN),
        ] {
            set |= if is_set { flag } else { 0 };
        }
        into.write(&[set]);
        for bound in [lower, upper].into_iter().filter(|bound| !bound.infinite) {
            self.bound.write(Some(bound.val), into);
        }
    }
}

/// The start of a multirange, which pgrx doesn't declare, and neither the function that reads it.
#[repr(C)]
struct Multirange {
    length: i32,
    oid: pg_sys::Oid,
    range_count: u32,
}

#[cfg(not(feature = "pg13"))]
unsafe extern "C-unwind" {
    /// Raises no error.
    fn multirange_get_bounds(
        ranges: *mut pg_sys::TypeCacheEntry,
        multirange: *const Multirange,
        i: u32,
        lower: *mut pg_sys::RangeBound,
        upper: *mut pg_sys::RangeBound,
    );
}
