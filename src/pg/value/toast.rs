//! Values out of line: large values that PostgreSQL has moved to a table of their own, the TOAST
//! table. They are read in pieces that can be cancelled, or only in parts.
//!
//! ```text
//! in the row    mark 1 byte │ kind 1 byte │ varatt_external: size, and where the value is
//! ```

use crate::pg::call::error::{Error, Result, SqlState, raise};
use crate::pg::call::interrupt::check_for_interrupts;
use pgrx::pg_sys;
use std::mem::offset_of;

/// How many bytes of a large value are fetched at once: a few milliseconds' work.
const PIECE_BYTES: usize = 1 << 20;
/// The bytes before the `varatt_external` of a value out of line: the mark and the kind.
const POINTER_START: usize = offset_of!(pg_sys::varattrib_1b_e, va_data);
/// The bytes of the length before a value.
const LENGTH_BYTES: usize = size_of::<u32>();

/// The bytes of a `varatt_external`, which identify a value out of line: no two that exist at a
/// time have the same.
pub type Identity = [u8; size_of::<pg_sys::varatt_external>()];

/// Returns the bytes that identify a value stored out of line, in a TOAST table: no two such values
/// that exist at a time have the same. `None` for a value that is stored in its row. Reads nothing
/// from the TOAST table.
///
/// # Safety
/// The datum must be of a type of variable length, and not NULL.
#[inline(always)]
pub unsafe fn identity(datum: pg_sys::Datum) -> Option<Identity> {
    let pointer: *const pg_sys::varlena = datum.cast_mut_ptr();
    // SAFETY: the caller promises a value of variable length; the second byte of a value with this
    // mark is its kind.
    let is_in_toast_table = unsafe {
        pgrx::varatt_is_1b_e(pointer)
            && u32::from(pgrx::vartag_1b_e(pointer)) == pg_sys::vartag_external::VARTAG_ONDISK
    };
    if !is_in_toast_table {
        return None;
    }
    // SAFETY: a `varatt_external` follows the mark and the kind, at any alignment.
    Some(unsafe { std::ptr::read_unaligned(pointer.cast::<u8>().add(POINTER_START).cast()) })
}

/// Returns where a value out of line is stored, given the bytes that identify it.
pub fn external(identity: &Identity) -> pg_sys::varatt_external {
    // SAFETY: an identity has the bytes of this struct, whose fields are numbers.
    unsafe { std::ptr::read_unaligned(identity.as_ptr().cast()) }
}

/// Returns whether a value out of line is compressed. A slice of such a value costs as much as all
/// that is before it.
pub fn is_compressed(external: &pg_sys::varatt_external) -> bool {
    // The other bits say how the bytes are compressed.
    let stored_bytes = (external.va_extinfo & pg_sys::VARLENA_EXTSIZE_MASK) as usize;
    let bytes = (external.va_rawsize as usize).saturating_sub(LENGTH_BYTES);
    stored_bytes < bytes
}

/// Fetches a large value that is stored out of line and not compressed, in pieces, so that it can
/// be cancelled. Returns the whole value, allocated by `palloc`; `None` for any other value, which
/// PostgreSQL should fetch.
///
/// Raises an error if the stored value is damaged.
///
/// # Safety
/// The datum must be of a type of variable length, and not NULL.
#[inline(never)]
pub unsafe fn fetch_large(datum: pg_sys::Datum) -> Option<*mut pg_sys::varlena> {
    // SAFETY: the caller promises a value of variable length.
    let identity = unsafe { identity(datum)? };
    let external = external(&identity);
    let total = external.va_rawsize as usize;
    if total <= 2 * PIECE_BYTES || is_compressed(&external) {
        return None;
    }

    // SAFETY: the allocation has room for the length and the bytes, all of which are written.
    unsafe {
        let value: *mut pg_sys::varlena = pg_sys::palloc(total).cast();
        pgrx::set_varsize_4b(value, total as i32);
        let first_byte = value.cast::<u8>().add(LENGTH_BYTES);
        fetch_pieces(datum.cast_mut_ptr(), first_byte, total - LENGTH_BYTES)
            .unwrap_or_else(|error| raise(error));
        Some(value)
    }
}

/// Copies the `length` bytes of a value that is stored out of line, in a TOAST table, to `target`,
/// piece by piece. The user can cancel this between two pieces.
///
/// Fails with XX001 if the stored value has fewer bytes.
///
/// # Safety
/// `pointer` must be a value out of line, and `target` have room for `length` bytes.
pub unsafe fn fetch_pieces(
    pointer: *mut pg_sys::varlena,
    target: *mut u8,
    length: usize,
) -> Result<()> {
    for start in (0..length).step_by(PIECE_BYTES) {
        let wanted = PIECE_BYTES.min(length - start);
        // SAFETY: the caller promises a value out of line and a target with room for it. A slice is
        // a whole, uncompressed value of its own, and the target has room for its bytes.
        unsafe {
            let piece = slice(pointer, start, wanted)?;
            if pgrx::varsize_any_exhdr(piece) != wanted {
                return Err(Error::new(
                    SqlState::ERRCODE_DATA_CORRUPTED,
                    "missing data in a value that is stored out of line",
                ));
            }
            let bytes: *const u8 = pgrx::vardata_any(piece).cast();
            bytes.copy_to_nonoverlapping(target.add(start), wanted);
            pg_sys::pfree(piece.cast());
        }
        check_for_interrupts();
    }
    Ok(())
}

/// Returns `length` bytes of a value out of line from byte `start` on, as a value of their own,
/// allocated by `palloc`. It is shorter if the value ends before.
///
/// Fails with 54000 beyond 2 GB.
///
/// # Safety
/// `pointer` must be a value out of line.
pub unsafe fn slice(
    pointer: *mut pg_sys::varlena,
    start: usize,
    length: usize,
) -> Result<*mut pg_sys::varlena> {
    let (Ok(start), Ok(length)) = (i32::try_from(start), i32::try_from(length)) else {
        return Err(Error::new(
            SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "value is too large to be read in slices",
        ));
    };
    // SAFETY: the caller promises a value of variable length.
    Ok(unsafe { pg_sys::pg_detoast_datum_slice(pointer, start, length) })
}
