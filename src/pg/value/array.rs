//! Arrays.

use crate::pg::call::{Call, Element};
use crate::pg::catalog::{self, Storage};
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// The elements of argument `i`, an array that stores its elements as `element_type` does, without NULLs. Empty if the
/// argument is NULL.
pub fn elements(call: &Call, i: usize, element_type: pg_sys::Oid) -> Vec<Element> {
    call.check_declared(i, catalog::is_array);
    // SAFETY: by declaration the argument is an array.
    call.datum(i).map_or(Vec::new(), |datum| unsafe { elements_of_type(datum, Some(element_type)) })
}

/// The elements of an array, in memory of the current context; those that are NULL are left out.
///
/// # Safety
/// The datum must be an array.
pub unsafe fn elements_of(array: pg_sys::Datum) -> Vec<Element> {
    // SAFETY: promised by the caller.
    unsafe { elements_of_type(array, None) }
}

/// The type of an array's elements.
///
/// # Safety
/// The datum must be an array.
pub unsafe fn element_type(array: pg_sys::Datum) -> pg_sys::Oid {
    // SAFETY: promised by the caller.
    unsafe { (*pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>()).elemtype }
}

/// The elements of an array, which must be kept as those of this type are if one is said.
///
/// # Safety
/// The datum must be an array.
unsafe fn elements_of_type(datum: pg_sys::Datum, element_type: Option<pg_sys::Oid>) -> Vec<Element> {
    let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
    // SAFETY: promised by the caller. The results are arrays of `count` items in the memory of this call.
    unsafe {
        let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
        // An array of varchar may be passed on as one of text.
        let own_type = (*array).elemtype;
        let storage = catalog::storage(own_type);
        let is_as_said = element_type.is_none_or(|oid| oid == own_type || catalog::storage(oid) == storage);
        assert!(is_as_said, "elements of an array");
        pg_sys::deconstruct_array(
            array,
            own_type,
            i32::from(storage.len),
            storage.by_value,
            storage.align,
            &mut values,
            &mut nulls,
            &mut count,
        );
        let mut elements = memory::list(count as usize);
        for i in (0..count as usize).filter(|&i| !*nulls.add(i)) {
            memory::push(&mut elements, Element { datum: *values.add(i) });
        }
        elements
    }
}

/// An array of type `array_type` with these elements of type `element_type`.
///
/// # Safety
/// The elements must be of that type, and so be the array's.
pub unsafe fn array_of(array_type: pg_sys::Oid, element_type: pg_sys::Oid, elements: Vec<Element>) -> pg_sys::Datum {
    match array_type {
        pg_sys::INT2VECTOROID => return int2vector(&elements),
        pg_sys::OIDVECTOROID => return oidvector(&elements),
        _ => {}
    }
    let storage = catalog::storage(element_type);
    let mut values: Vec<pg_sys::Datum> = memory::collect(elements.iter().map(|element| element.datum));
    // SAFETY: promised by the caller: the values are of the type, which is kept as `storage` says.
    unsafe {
        let array = pg_sys::construct_array(
            values.as_mut_ptr(),
            values.len() as i32,
            element_type,
            i32::from(storage.len),
            storage.by_value,
            storage.align,
        );
        pg_sys::Datum::from(array)
    }
}

/// An `int2vector`: an array whose subscripts begin at 0 and which has one dimension even if it is empty.
fn int2vector(elements: &[Element]) -> pg_sys::Datum {
    let numbers: Vec<i16> = memory::collect(elements.iter().map(|element| element.datum.value() as i16));
    // SAFETY: the function copies as many numbers as are given.
    unsafe { pg_sys::Datum::from(pg_sys::buildint2vector(numbers.as_ptr(), numbers.len() as i32)) }
}

/// An `oidvector`, which is the same of object identifiers.
fn oidvector(elements: &[Element]) -> pg_sys::Datum {
    let oids: Vec<pg_sys::Oid> =
        memory::collect(elements.iter().map(|element| pg_sys::Oid::from(element.datum.value() as u32)));
    // SAFETY: the function copies as many identifiers as are given.
    unsafe { pg_sys::Datum::from(pg_sys::buildoidvector(oids.as_ptr(), oids.len() as i32)) }
}

/// Lengths and lower bounds of an array's dimensions.
///
/// # Safety
/// `array` must be a whole, aligned array, which lives for `'a`.
unsafe fn dimensions<'a>(array: *const pg_sys::ArrayType) -> (&'a [i32], &'a [i32]) {
    // SAFETY: promised by the caller; lengths and lower bounds are behind the fixed part.
    unsafe {
        let count = usize::try_from((*array).ndim).unwrap_or(0);
        let numbers: *const i32 = array.add(1).cast();
        std::slice::from_raw_parts(numbers, 2 * count).split_at(count)
    }
}

/// Calls `start` with length and lower bound of each dimension of an array, then `member` with each of its elements;
/// `None` is NULL.
///
/// # Safety
/// `array` must be a whole, aligned array of elements that are kept as `storage` says.
pub unsafe fn each_element<C>(
    array: *const pg_sys::ArrayType,
    storage: Storage,
    context: &mut C,
    start: impl FnOnce(&mut C, &[i32], &[i32]),
    mut member: impl FnMut(&mut C, Option<pg_sys::Datum>),
) {
    // SAFETY: promised by the caller. Behind the dimensions are a bit for each element if there are NULLs, then the
    // NULL elements.
    unsafe {
        let (lengths, lower_bounds) = dimensions(array);
        start(context, lengths, lower_bounds);
        let count = if lengths.is_empty() { 0 } else { lengths.iter().map(|&length| length as usize).product() };
        let bitmap: *const u8 = lower_bounds.as_ptr_range().end.cast();
        let has_nulls = (*array).dataoffset != 0;
        let first = if has_nulls { (*array).dataoffset as usize } else { after_header(lengths.len()) };
        let mut at: *const u8 = array.cast::<u8>().add(first);
        for i in 0..count {
            if has_nulls && *bitmap.add(i / 8) >> (i % 8) & 1 == 0 {
                member(context, None);
                continue;
            }
            at = storage.align(at);
            member(context, Some(storage.fetch(at)));
            at = at.add(storage.length(at));
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
