//! The start of a filter: enough to read its header, without the rest of a value out of line.

use crate::pg::call::Call;
use crate::pg::call::error::Result;
use crate::pg::value::varlena::Value;
use pg_bloom_core::filter::slices::{START_BYTES, Start};
use pgrx::{pg_sys, varatt_is_1b, varatt_is_1b_e, varatt_is_4b_u};

/// Reads argument `i`, a filter, as far as its header goes: that and the bytes of the whole value, or `None` if it is
/// NULL. Of a value out of line only the first slice is fetched, of a compressed one only the start is made.
///
/// # Errors
/// 22P03 for a damaged value.
pub fn start<T>(call: &Call, i: usize, read: impl FnOnce(&Start<'_>, usize) -> T) -> Result<Option<T>> {
    let Some(datum) = call.datum(i) else { return Ok(None) };
    let given: *mut pg_sys::varlena = datum.cast_mut_ptr();
    // SAFETY: by declaration the argument is of variable length; a slice is a copy in the memory of this call.
    let (value, length) = unsafe {
        if varatt_is_4b_u(given) || (varatt_is_1b(given) && !varatt_is_1b_e(given)) {
            let value = Value::detoast(datum);
            let length = value.len();
            (value, length)
        } else {
            let length = pg_sys::toast_raw_datum_size(datum).saturating_sub(size_of::<u32>());
            (Value::owned(pg_sys::pg_detoast_datum_slice(given, 0, START_BYTES as i32)), length)
        }
    };
    Ok(Some(read(&Start::parse(value.bytes(), length)?, length)))
}
