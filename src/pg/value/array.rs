//! Arrays: reading their elements, and making them.
//!
//! ```text
//! ArrayType │ length of each dimension │ lower bound of each │ null bitmap │ padding │ elements
//! ```
//!
//! The null bitmap exists only if there are NULLs; it has a 0 for each NULL and a 1 for each other
//! element. The elements that aren't NULL follow each other, each aligned as its type says.

use super::varlena;
use crate::pg::call::error::{Error, SqlState, raise};
use crate::pg::call::{Call, SqlValue};
use crate::pg::catalog::{self, Storage};
use pg_bloom_core::memory::List;
use pgrx::pg_sys;

/// Returns the elements of the array in argument `i` of a call, in their order and without NULLs;
/// none if the argument is NULL. The script must declare the argument as an array.
///
/// `element_type` is the type as which the caller reads the elements. Panics unless the array
/// stores its elements as values of this type are stored: an array of varchar may be read as one of
/// text.
pub fn elements(call: &Call, i: usize, element_type: pg_sys::Oid) -> List<SqlValue> {
    call.check_declared(i, catalog::is_array);
    let Some(datum) = call.datum(i) else {
        return List::new();
    };
    // SAFETY: the script declares the argument as an array.
    unsafe {
        let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
        let own_type = (*array).elemtype;
        let is_stored_alike = own_type == element_type
            || catalog::storage(own_type) == catalog::storage(element_type);
        assert!(is_stored_alike, "an array of other elements");
        elements_of(array.into())
    }
}

/// Returns the elements of an array, without its NULLs. They point into the array or, if it is out
/// of line or compressed, into a copy in the current memory context.
///
/// # Safety
/// The datum must be an array, and not NULL.
pub unsafe fn elements_of(array: pg_sys::Datum) -> List<SqlValue> {
    let mut values = std::ptr::null_mut();
    let mut nulls = std::ptr::null_mut();
    let mut num_items = 0;
    // SAFETY: the caller promises an array. `values` and `nulls` are then arrays of `num_items`
    // items.
    unsafe {
        let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast();
        let element_type = (*array).elemtype;
        let Storage { len, by_value, align } = catalog::storage(element_type);
        pg_sys::deconstruct_array(
            array,
            element_type,
            len.into(),
            by_value,
            align,
            &mut values,
            &mut nulls,
            &mut num_items,
        );

        let num_items = num_items as usize;
        let mut elements = List::with_capacity(num_items);
        for i in 0..num_items {
            let is_null = *nulls.add(i);
            if !is_null {
                elements.push(SqlValue { datum: *values.add(i) });
            }
        }
        pg_sys::pfree(values.cast());
        pg_sys::pfree(nulls.cast());
        elements
    }
}

/// Returns a new array of type `array_type`, with one dimension and copies of these elements, in
/// the current memory context. Panics if `array_type` isn't a type of arrays.
///
/// # Safety
/// The elements must be of the element type of `array_type`.
pub unsafe fn array_of(array_type: pg_sys::Oid, elements: List<SqlValue>) -> pg_sys::Datum {
    let count = elements.len() as i32;
    let values = elements.iter().map(|element| element.datum);
    // SAFETY: the caller promises elements of the array's element type, and PostgreSQL copies them
    // as values of that type are stored.
    unsafe {
        match array_type {
            // The subscripts of these two types begin at 0, and an empty one has a dimension, too.
            pg_sys::INT2VECTOROID => {
                let numbers: List<i16> = values.map(|value| value.value() as i16).collect();
                pg_sys::buildint2vector(numbers.as_ptr(), count).into()
            }
            pg_sys::OIDVECTOROID => {
                let oids: List<pg_sys::Oid> =
                    values.map(|value| (value.value() as u32).into()).collect();
                pg_sys::buildoidvector(oids.as_ptr(), count).into()
            }
            _ => {
                let element_type = catalog::element_type(array_type).expect("a type of arrays");
                let Storage { len, by_value, align } = catalog::storage(element_type);
                let mut values: List<pg_sys::Datum> = values.collect();
                pg_sys::construct_array(
                    values.as_mut_ptr(),
                    count,
                    element_type,
                    len.into(),
                    by_value,
                    align,
                )
                .into()
            }
        }
    }
}

/// Reads an array: calls `start` with the lengths and the lower bounds of its dimensions, and then
/// `member` with each element, `None` for a NULL. Both also get `context`, which both may change.
///
/// PostgreSQL may not have checked the array, as one that is read from a table's page: raises XX001
/// if the array is damaged.
///
/// # Safety
/// `array` must be a whole, uncompressed and aligned value, whose elements are stored as `storage`
/// says.
pub unsafe fn each_element<C>(
    array: *const pg_sys::ArrayType,
    storage: Storage,
    context: &mut C,
    start: impl FnOnce(&mut C, &[i32], &[i32]),
    mut member: impl FnMut(&mut C, Option<pg_sys::Datum>),
) {
    // SAFETY: the caller promises a whole, aligned value.
    let parts = unsafe { ArrayParts::of(array) }.unwrap_or_else(|| raise_damaged());
    start(context, parts.lengths, parts.lower_bounds);

    let mut unread = parts.elements;
    for i in 0..parts.num_elements {
        if parts.is_null(i) {
            member(context, None);
            continue;
        }
        let (value, rest) = storage.split_first_value(unread).unwrap_or_else(|| raise_damaged());
        // SAFETY: `split_first_value` has checked that the value is within the array.
        let datum = unsafe { storage.fetch(value.as_ptr()) };
        member(context, Some(datum));
        unread = rest;
    }
}

#[cold]
fn raise_damaged() -> ! {
    raise(
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, "invalid array")
            .detail("The value is damaged."),
    )
}

/// The parts of an array, as the drawing at the top of this file has them.
struct ArrayParts<'a> {
    lengths: &'a [i32],
    lower_bounds: &'a [i32],
    num_elements: usize,
    null_bitmap: Option<&'a [u8]>,
    /// The bytes of the elements that aren't NULL.
    elements: &'a [u8],
}

impl<'a> ArrayParts<'a> {
    /// Returns where the parts of an array are: the lengths and lower bounds of its dimensions, the
    /// bits that say which elements are NULL, and the bytes of the others. `None` if these parts
    /// don't fit into the array's bytes: the value is damaged.
    ///
    /// # Safety
    /// `array` must be aligned, and have as many bytes as it says, which exist for `'a`.
    unsafe fn of(array: *const pg_sys::ArrayType) -> Option<ArrayParts<'a>> {
        // SAFETY: the caller promises that the bytes exist, as many as the first one or four say.
        let whole: &'a [u8] =
            unsafe { std::slice::from_raw_parts(array.cast(), pgrx::varsize_any(array.cast())) };
        let (head, behind_head) = whole.split_at_checked(size_of::<pg_sys::ArrayType>())?;
        // SAFETY: the head has the bytes of the struct, and is aligned.
        let head: &pg_sys::ArrayType = unsafe { &*head.as_ptr().cast() };

        let num_dimensions = usize::try_from(head.ndim).ok()?;
        if num_dimensions > pg_sys::MAXDIM as usize {
            return None;
        }
        let numbers_bytes = 2 * num_dimensions * size_of::<i32>();
        let numbers = behind_head.get(..numbers_bytes)?;
        // SAFETY: there are as many bytes. They follow a struct of numbers of this size, so they
        // are aligned.
        let numbers = unsafe {
            std::slice::from_raw_parts(numbers.as_ptr().cast::<i32>(), 2 * num_dimensions)
        };
        let (lengths, lower_bounds) = numbers.split_at(num_dimensions);
        let num_elements = num_elements(lengths)?;

        let end_of_numbers = size_of::<pg_sys::ArrayType>() + numbers_bytes;
        let null_bitmap;
        let start_of_elements;
        if head.dataoffset == 0 {
            null_bitmap = None;
            start_of_elements = end_of_numbers.next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize);
        } else {
            let bitmap_bytes = num_elements.div_ceil(8);
            null_bitmap = Some(whole.get(end_of_numbers..)?.get(..bitmap_bytes)?);
            start_of_elements = usize::try_from(head.dataoffset).ok()?;
        }

        // An array without elements may end before the place where they would begin.
        let elements = if num_elements == 0 { &[] } else { whole.get(start_of_elements..)? };
        Some(ArrayParts { lengths, lower_bounds, num_elements, null_bitmap, elements })
    }

    /// Returns whether element `i` is NULL.
    fn is_null(&self, i: usize) -> bool {
        match self.null_bitmap {
            Some(bitmap) => bitmap[i / 8] >> (i % 8) & 1 == 0,
            None => false,
        }
    }
}

/// Returns how many elements an array with these dimensions has; `None` if a length is negative, or
/// if they are more than can be counted.
fn num_elements(lengths: &[i32]) -> Option<usize> {
    if lengths.is_empty() {
        return Some(0);
    }
    let mut product: usize = 1;
    for &length in lengths {
        product = product.checked_mul(usize::try_from(length).ok()?)?;
    }
    Some(product)
}

/// The length (`typlen`) of a type whose values begin with their own length.
const VARIABLE_LENGTH: i16 = -1;
/// The length (`typlen`) of a type whose values end with a zero byte.
const C_STRING: i16 = -2;

impl Storage {
    /// Returns the alignment of values of the type, in bytes.
    #[inline(always)]
    fn alignment(&self) -> usize {
        match self.align as u8 {
            b'c' => 1,
            b's' => align_of::<i16>(),
            b'i' => align_of::<i32>(),
            _ => align_of::<f64>(),
        }
    }

    /// Splits bytes of an array or a row, in which values follow each other, after the first value,
    /// which is of this type. Returns the value's bytes and the bytes after it; `None` if the bytes
    /// end before the value does.
    ///
    /// Before a value there may be *padding*, zero bytes that move it to an address that is a
    /// multiple of its type's alignment. They are in neither part.
    #[inline(always)]
    pub fn split_first_value<'a>(&self, values: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        // A value of variable length may begin with one byte for its length instead of four, and
        // has no padding then. That byte is never 0, and so differs from padding.
        let has_short_length = self.len == VARIABLE_LENGTH && *values.first()? != 0;
        let padding = if has_short_length {
            0
        } else {
            let address = values.as_ptr().addr();
            address.wrapping_neg() & (self.alignment() - 1)
        };

        let value = values.get(padding..)?;
        let length = match self.len {
            VARIABLE_LENGTH => varlena::length_of(value)?,
            C_STRING => value.iter().position(|&byte| byte == 0)? + 1,
            fixed_length => usize::try_from(fixed_length).ok()?,
        };
        value.split_at_checked(length)
    }

    /// Returns PostgreSQL's datum for the value that is stored at `address`: the value itself if
    /// the type is passed by value, else a pointer to the address. `self` says how the type is
    /// stored.
    ///
    /// # Safety
    /// There must be such a value.
    #[inline(always)]
    pub unsafe fn fetch(&self, address: *const u8) -> pg_sys::Datum {
        // SAFETY: the caller promises a value at this address.
        unsafe {
            match (self.by_value, self.len) {
                (true, 1) => pg_sys::Datum::from(*address),
                (true, 2) => pg_sys::Datum::from(address.cast::<i16>().read()),
                (true, 4) => pg_sys::Datum::from(address.cast::<i32>().read()),
                (true, _) => pg_sys::Datum::from(address.cast::<u64>().read()),
                (false, _) => pg_sys::Datum::from(address.cast_mut()),
            }
        }
    }
}
