//! Arrays.

use super::varlena;
use crate::pg::call::error::{Error, SqlState, raise};
use crate::pg::call::{Call, Element};
use crate::pg::catalog::{self, Storage};
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// The elements of argument `i`, an array that stores them as `element_type` does, without NULLs;
/// none of a NULL.
pub fn elements(call: &Call, i: usize, element_type: pg_sys::Oid) -> Vec<Element> {
    call.check_declared(i, catalog::is_array);
    let Some(datum) = call.datum(i) else {
        return Vec::new();
    };
    // SAFETY: by declaration the argument is an array.
    unsafe {
        let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
        // An array of varchar may be passed on as one of text.
        let own_type = (*array).elemtype;
        let is_as_said = own_type == element_type
            || catalog::storage(own_type) == catalog::storage(element_type);
        assert!(is_as_said, "elements of an array");
        elements_of(array.into())
    }
}

/// The elements of an array, in memory of the current context; those that are NULL are left out.
///
/// # Safety
/// The datum must be an array.
pub unsafe fn elements_of(array: pg_sys::Datum) -> Vec<Element> {
    let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
    // SAFETY: promised by the caller. The results are arrays of `count` items in the memory of this
    // call.
    unsafe {
        let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast();
        let (of, Storage { len, by_value, align }) =
            ((*array).elemtype, catalog::storage((*array).elemtype));
        pg_sys::deconstruct_array(
            array,
            of,
            len.into(),
            by_value,
            align,
            &mut values,
            &mut nulls,
            &mut count,
        );
        let mut elements = memory::with_capacity(count as usize);
        for i in (0..count as usize).filter(|&i| !*nulls.add(i)) {
            memory::push(&mut elements, Element { datum: *values.add(i) });
        }
        elements
    }
}

/// An array of this type with these elements. Panics for another type.
///
/// # Safety
/// The elements must be of the type that those of such an array have.
pub unsafe fn array_of(array_type: pg_sys::Oid, elements: Vec<Element>) -> pg_sys::Datum {
    let (values, count) = (elements.iter().map(|element| element.datum), elements.len() as i32);
    // SAFETY: promised by the caller: the values are of the type, which is kept as its storage
    // says. All are copied.
    unsafe {
        match array_type {
            // Subscripts of these begin at 0, and they have one dimension even if they are empty.
            pg_sys::INT2VECTOROID => {
                let numbers: Vec<i16> = memory::collect(values.map(|value| value.value() as i16));
                pg_sys::buildint2vector(numbers.as_ptr(), count).into()
            }
            pg_sys::OIDVECTOROID => {
                let oids: Vec<pg_sys::Oid> =
                    memory::collect(values.map(|value| (value.value() as u32).into()));
                pg_sys::buildoidvector(oids.as_ptr(), count).into()
            }
            _ => {
                let of = catalog::element_type(array_type).expect("a type of arrays");
                let Storage { len, by_value, align } = catalog::storage(of);
                let mut values: Vec<pg_sys::Datum> = memory::collect(values);
                pg_sys::construct_array(values.as_mut_ptr(), count, of, len.into(), by_value, align)
                    .into()
            }
        }
    }
}

/// Calls `start` with length and lower bound of each dimension of an array, then `member` with each
/// of its elements; `None` is NULL. A damaged array is an error: this reads them where PostgreSQL
/// hasn't looked at them.
///
/// # Safety
/// `array` must be whole and aligned, of elements that are kept as `storage` says.
pub unsafe fn each_element<C>(
    array: *const pg_sys::ArrayType,
    storage: Storage,
    context: &mut C,
    start: impl FnOnce(&mut C, &[i32], &[i32]),
    mut member: impl FnMut(&mut C, Option<pg_sys::Datum>),
) {
    // SAFETY: promised by the caller.
    let Parts { lengths, lower_bounds, count, nulls, mut elements } =
        unsafe { Parts::of(array) }.unwrap_or_else(|| damaged());
    start(context, lengths, lower_bounds);
    for i in 0..count {
        if nulls.is_some_and(|nulls| nulls[i / 8] >> (i % 8) & 1 == 0) {
            member(context, None);
            continue;
        }
        let (at, rest) = storage.first_of(elements).unwrap_or_else(|| damaged());
        // SAFETY: it is within the array.
        member(context, Some(unsafe { storage.fetch(at.as_ptr()) }));
        elements = rest;
    }
}

#[cold]
fn damaged() -> ! {
    raise(
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, "invalid array")
            .detail("The value is damaged."),
    )
}

/// What an array is made of.
///
/// ```text
/// ArrayType │ lengths │ lower bounds │ a bit for each element, if there are NULLs │ padding │ elements without NULLs
/// ```
struct Parts<'a> {
    lengths: &'a [i32],
    lower_bounds: &'a [i32],
    count: usize,
    nulls: Option<&'a [u8]>,
    elements: &'a [u8],
}

impl<'a> Parts<'a> {
    /// `None` for a damaged array.
    ///
    /// # Safety
    /// `array` must be aligned, and have as many bytes as it says, which live for `'a`.
    unsafe fn of(array: *const pg_sys::ArrayType) -> Option<Parts<'a>> {
        // SAFETY: promised by the caller.
        let whole: &'a [u8] =
            unsafe { std::slice::from_raw_parts(array.cast(), pgrx::varsize_any(array.cast())) };
        let (head, numbers) = whole.split_at_checked(size_of::<pg_sys::ArrayType>())?;
        // SAFETY: there are as many bytes, aligned.
        let pg_sys::ArrayType { ndim, dataoffset, .. } =
            unsafe { *head.as_ptr().cast::<pg_sys::ArrayType>() };
        let dimensions = usize::try_from(ndim)
            .ok()
            .filter(|&count| count <= pg_sys::MAXDIM as usize)?;
        let (numbers, _) = numbers.split_at_checked(2 * dimensions * size_of::<i32>())?;
        // SAFETY: as many bytes, behind a head whose size is a multiple of a number's.
        let numbers =
            unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast::<i32>(), 2 * dimensions) };
        let (lengths, lower_bounds) = numbers.split_at(dimensions);
        let product = |all: usize, &length: &i32| all.checked_mul(usize::try_from(length).ok()?);
        let count = if dimensions == 0 { 0 } else { lengths.iter().try_fold(1, product)? };
        let end = size_of::<pg_sys::ArrayType>() + size_of_val(numbers);
        let (nulls, first) = match dataoffset {
            0 => (None, end.next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize)),
            offset => {
                (Some(whole.get(end..)?.get(..count.div_ceil(8))?), usize::try_from(offset).ok()?)
            }
        };
        // An array without elements may end before where they would begin.
        let elements = if count == 0 { &[] } else { whole.get(first..)? };
        Some(Parts { lengths, lower_bounds, count, nulls, elements })
    }
}

impl Storage {
    #[inline(always)]
    fn alignment(&self) -> usize {
        match self.align as u8 {
            b'c' => 1,
            b's' => align_of::<i16>(),
            b'i' => align_of::<i32>(),
            _ => align_of::<f64>(),
        }
    }

    /// The first of the values of an array or a row, and those after it; `None` if they end before
    /// its end.
    #[inline(always)]
    pub fn first_of<'a>(&self, values: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        // A short length is never zero, as padding is, and needs no alignment.
        let is_packed = self.len == -1 && *values.first()? != 0;
        let address = values.as_ptr().addr();
        let padding = if is_packed { 0 } else { address.wrapping_neg() & (self.alignment() - 1) };
        let value = values.get(padding..)?;
        let length = match self.len {
            -1 => varlena::length_of(value)?,
            -2 => value.iter().position(|&byte| byte == 0)? + 1,
            length => usize::try_from(length).ok()?,
        };
        value.split_at_checked(length)
    }

    /// # Safety
    /// There must be such a value.
    #[inline(always)]
    pub unsafe fn fetch(&self, at: *const u8) -> pg_sys::Datum {
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
}
