//! Arrays.

use super::call::{Call, Element};
use super::catalog;
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// The elements of argument `i`, an array whose elements have type `element_type`; those that are NULL are left out. Empty
/// if the argument is NULL.
pub fn elements(call: &Call, i: usize, element_type: pg_sys::Oid) -> Vec<Element> {
    let Some(datum) = call.datum(i) else { return Vec::new() };
    let storage = catalog::storage(element_type);
    let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
    // SAFETY: by declaration the argument is an array; its elements' type is the one that the parser says. The results are
    // arrays of `count` items in the memory of this call.
    unsafe {
        let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
        pg_sys::deconstruct_array(
            array,
            element_type,
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
pub fn array_of(array_type: pg_sys::Oid, element_type: pg_sys::Oid, elements: Vec<Element>) -> pg_sys::Datum {
    match array_type {
        pg_sys::INT2VECTOROID => return int2vector(&elements),
        pg_sys::OIDVECTOROID => return oidvector(&elements),
        _ => {}
    }
    let storage = catalog::storage(element_type);
    let mut values: Vec<pg_sys::Datum> = memory::collect(elements.iter().map(|element| element.datum));
    // SAFETY: the values are of the type, which is kept as `storage` says; their number was that of an array's elements.
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
    // SAFETY: the function copies as many numbers as it is told.
    unsafe { pg_sys::Datum::from(pg_sys::buildint2vector(numbers.as_ptr(), numbers.len() as i32)) }
}

/// An `oidvector`, which is the same of object identifiers.
fn oidvector(elements: &[Element]) -> pg_sys::Datum {
    let oids: Vec<pg_sys::Oid> =
        memory::collect(elements.iter().map(|element| pg_sys::Oid::from(element.datum.value() as u32)));
    // SAFETY: the function copies as many identifiers as it is told.
    unsafe { pg_sys::Datum::from(pg_sys::buildoidvector(oids.as_ptr(), oids.len() as i32)) }
}
