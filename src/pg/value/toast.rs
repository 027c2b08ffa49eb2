//! Values out of line (TOAST): which one it is, all of it in pieces that can be cancelled, slices
//! of it.

use crate::pg::call::error::{Error, Result, SqlState, raise};
use crate::pg::call::interrupt::check_for_interrupts;
use pgrx::pg_sys;

/// Bytes of a large value that are fetched at once.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes of the length and tag before a pointer to a value out of line.
const POINTER_START: usize = 2;

/// What tells one value out of line from another: `varatt_external`.
pub type Identity = [u8; size_of::<pg_sys::varatt_external>()];

/// The TOAST identity of a value, if it is out of line on disk.
///
/// # Safety
/// The datum must be of a type of variable length.
#[inline(always)]
pub unsafe fn identity(datum: pg_sys::Datum) -> Option<Identity> {
    let pointer: *const pg_sys::varlena = datum.cast_mut_ptr();
    // SAFETY: promised by the caller; the tag says what follows it.
    unsafe {
        let on_disk = pgrx::varatt_is_1b_e(pointer)
            && u32::from(pgrx::vartag_1b_e(pointer)) == pg_sys::vartag_external::VARTAG_ONDISK;
        on_disk.then(|| std::ptr::read_unaligned(pointer.cast::<u8>().add(POINTER_START).cast()))
    }
}

/// Whether a value out of line is compressed: slices of it cost as much as all before them.
pub fn is_compressed(external: &pg_sys::varatt_external) -> bool {
    /// Bits of the size; the others say how it is compressed.
    const SIZE: u32 = (1 << 30) - 1;
    ((external.va_extinfo & SIZE) as usize)
        < (external.va_rawsize as usize).saturating_sub(size_of::<u32>())
}

/// All of a large value out of line, fetched in pieces so that it can be cancelled; `None` if it is
/// no such value.
///
/// # Safety
/// The datum must be of a type of variable length.
#[inline(never)]
pub unsafe fn fetch_large(datum: pg_sys::Datum) -> Option<*mut pg_sys::varlena> {
    // SAFETY: promised by the caller. The memory has room for the length and the bytes; all of them
    // are written.
    unsafe {
        let external = identity(datum)?;
        let external =
            std::ptr::read_unaligned(external.as_ptr().cast::<pg_sys::varatt_external>());
        let (total, before) = (external.va_rawsize as usize, size_of::<u32>());
        if total <= 2 * PIECE_BYTES || is_compressed(&external) {
            return None;
        }
        let value: *mut pg_sys::varlena = pg_sys::palloc(total).cast();
        pgrx::set_varsize_4b(value, total as i32);
        let bytes = value.cast::<u8>().add(before);
        fetch_pieces(datum.cast_mut_ptr(), bytes, total - before)
            .unwrap_or_else(|error| raise(error));
        Some(value)
    }
}

/// Copies all of a value out of line to memory with room for it, a piece at a time.
///
/// # Safety
/// `pointer` must be one to such a value of `length` bytes, and `memory` have room for them.
pub unsafe fn fetch_pieces(
    pointer: *mut pg_sys::varlena,
    memory: *mut u8,
    length: usize,
) -> Result<()> {
    for from in (0..length).step_by(PIECE_BYTES) {
        let wanted = PIECE_BYTES.min(length - from);
        // SAFETY: promised by the caller. A slice is a whole, uncompressed value; there is room for
        // what is copied.
        unsafe {
            let piece = slice(pointer, from, wanted)?;
            if pgrx::varsize_any_exhdr(piece) != wanted {
                let message = "missing data in a value that is stored out of line";
                return Err(Error::new(SqlState::ERRCODE_DATA_CORRUPTED, message));
            }
            std::ptr::copy_nonoverlapping(
                pgrx::vardata_any(piece).cast(),
                memory.add(from),
                wanted,
            );
            pg_sys::pfree(piece.cast());
        }
        check_for_interrupts();
    }
    Ok(())
}

/// `length` bytes of a value out of line, or as many as it has from there: from palloc. Errors:
/// 54000 beyond 2 GB.
///
/// # Safety
/// `pointer` must be one to such a value.
pub unsafe fn slice(
    pointer: *mut pg_sys::varlena,
    from: usize,
    length: usize,
) -> Result<*mut pg_sys::varlena> {
    let (Ok(from), Ok(length)) = (i32::try_from(from), i32::try_from(length)) else {
        return Err(Error::new(
            SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "value is too large to be read in slices",
        ));
    };
    // SAFETY: promised by the caller.
    Ok(unsafe { pg_sys::pg_detoast_datum_slice(pointer, from, length) })
}
