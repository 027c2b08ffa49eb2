//! Values of variable length (PostgreSQL's *varlena*, such as text): reading them in place, and
//! making them.
//!
//! ```text
//! short          length 1 byte  │ bytes                 up to 126 bytes, at any address
//! long           length 4 bytes │ bytes                 aligned to 4 bytes or more
//! compressed     length 4 bytes │ length once it is whole, 4 bytes │ compressed bytes
//! out of line    mark 1 byte │ kind 1 byte │ where the value is in the TOAST table
//! ```
//!
//! The first byte tells which of these a value is. To *detoast* a value is to make it short or
//! long: to decompress it and to fetch what is out of line.

use super::toast::fetch_large;
use crate::pg::call::guard::MemoryOfCall;
use pg_bloom_core::memory::List;
use pg_bloom_core::{Buffer, interrupt};
use pgrx::{
    pg_sys, set_varsize_4b, varatt_is_1b, varatt_is_1b_e, varatt_is_4b_u, vardata_any, varsize_any,
    varsize_any_exhdr,
};
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::ops::Deref;

/// The bytes of the length before a long value.
const LENGTH_BYTES: usize = offset_of!(pg_sys::varlena, vl_dat);
/// The bytes of the length before a short value.
const SHORT_LENGTH_BYTES: usize = offset_of!(pg_sys::varattrib_1b, va_data);
/// The bytes of a value that is out of line.
const OUT_OF_LINE_BYTES: usize =
    offset_of!(pg_sys::varattrib_1b_e, va_data) + size_of::<pg_sys::varatt_external>();
/// The bytes before the compressed bytes of a value: two lengths.
const COMPRESSED_PREFIX_BYTES: usize = 2 * LENGTH_BYTES;

/// Returns how many bytes the value at the start of `bytes` has, its length included. `bytes` are
/// those of a row that may be damaged.
///
/// `None` if there are too few bytes to know, or if the value has a form that isn't in tables. A
/// long value that isn't aligned also gives `None`: only damage can have moved it.
#[inline(always)]
pub fn length_of(bytes: &[u8]) -> Option<usize> {
    let value: *const pg_sys::varlena = bytes.as_ptr().cast();
    if bytes.is_empty() {
        return None;
    }
    // SAFETY: there is a first byte, which tells the form of the value and the length of a short
    // one.
    unsafe {
        if varatt_is_1b_e(value) {
            let kind = u32::from(*bytes.get(1)?);
            let is_in_toast_table = kind == pg_sys::vartag_external::VARTAG_ONDISK;
            return is_in_toast_table.then_some(OUT_OF_LINE_BYTES);
        }
        if varatt_is_1b(value) {
            return Some(varsize_any(value));
        }
    }

    if bytes.len() < LENGTH_BYTES || !value.cast::<u32>().is_aligned() {
        return None;
    }
    // SAFETY: the length is in the first four bytes, which exist and are aligned.
    let length = unsafe { varsize_any(value) };
    // SAFETY: the same four bytes tell whether the value is compressed.
    let is_compressed = unsafe { !varatt_is_4b_u(value) };
    let least_length = if is_compressed { COMPRESSED_PREFIX_BYTES } else { LENGTH_BYTES };
    if length < least_length { None } else { Some(length) }
}

/// Returns the bytes of a value after its length. There are none if the length is damaged and less
/// than its own bytes.
///
/// # Safety
/// The value must be whole and uncompressed, and exist for `'a`.
#[inline(always)]
unsafe fn contents<'a>(value: *const pg_sys::varlena) -> &'a [u8] {
    // SAFETY: the caller promises that the value exists, with as many bytes as its length says.
    unsafe {
        let length_bytes = if varatt_is_1b(value) { SHORT_LENGTH_BYTES } else { LENGTH_BYTES };
        let first_byte = value.cast::<u8>().add(length_bytes);
        std::slice::from_raw_parts(first_byte, varsize_any(value).saturating_sub(length_bytes))
    }
}

/// A value of variable length, whole and uncompressed: the datum itself if it is so already, else a
/// copy in the current memory. The copy is freed with that memory, or before by [`Value::free`].
pub struct Value<'a> {
    pointer: *mut pg_sys::varlena,
    is_copy: bool,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Value<'a> {
    /// Returns the value of a datum, fetched from its TOAST table if it is out of line, and
    /// decompressed: without copying if it is stored so already, otherwise as a copy in the current
    /// memory context. Raises an error if it can't be fetched or decompressed.
    ///
    /// # Safety
    /// The datum must be of a type of variable length, not NULL, and stay valid for `'a`.
    #[inline(always)]
    pub unsafe fn detoast(datum: pg_sys::Datum) -> Self {
        // SAFETY: the caller promises a value of variable length.
        if let Some(value) = unsafe { Value::in_place(datum) } {
            return value;
        }
        let given = datum.cast_mut_ptr();
        // SAFETY: the caller promises a value of variable length.
        let pointer = unsafe {
            match fetch_large(datum) {
                Some(pointer) => pointer,
                None => pg_sys::pg_detoast_datum_packed(given),
            }
        };
        Value::detoasted(given, pointer)
    }

    /// Returns the value that detoasting `given` has made: `given` itself or a copy.
    fn detoasted(given: *mut pg_sys::varlena, pointer: *mut pg_sys::varlena) -> Self {
        let is_copy = !std::ptr::eq(pointer, given);
        Value { pointer, is_copy, lifetime: PhantomData }
    }

    /// Returns the value of a datum without copying it and without calling PostgreSQL. `None` if
    /// the value is out of line or compressed.
    ///
    /// # Safety
    /// The datum must be of a type of variable length, not NULL, and stay valid for `'a`.
    #[inline(always)]
    pub unsafe fn in_place(datum: pg_sys::Datum) -> Option<Self> {
        let pointer: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: the caller promises a value of variable length.
        let is_in_place = unsafe {
            varatt_is_4b_u(pointer) || (varatt_is_1b(pointer) && !varatt_is_1b_e(pointer))
        };
        is_in_place.then_some(Value { pointer, is_copy: false, lifetime: PhantomData })
    }

    /// Returns the value of a datum as [`Value::detoast`] does, but aligned and with a length of
    /// four bytes, so that it can be read as the struct of its type: PostgreSQL stores short values
    /// with a length of one byte and without alignment. Raises an error if it can't be fetched or
    /// decompressed.
    ///
    /// # Safety
    /// The datum must be of a type of variable length, not NULL, and stay valid for `'a`.
    pub unsafe fn detoast_aligned(datum: pg_sys::Datum) -> Self {
        let given: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: the caller promises a value of variable length.
        let pointer = unsafe {
            if varatt_is_4b_u(given) {
                given
            } else {
                match fetch_large(datum) {
                    Some(pointer) => pointer,
                    None => pg_sys::pg_detoast_datum(given),
                }
            }
        };
        Value::detoasted(given, pointer)
    }

    /// Copies the value of a datum to the end of `words`, aligned to 8 bytes, and returns the
    /// position in the list at which it begins. `None`, with nothing appended, if the value is out
    /// of line, in a TOAST table. A *short* value, with a length of one byte, gets a length of four
    /// bytes; a compressed one stays compressed.
    ///
    /// Raises an error if there is no memory.
    ///
    /// # Safety
    /// As for [`Value::detoast`].
    pub unsafe fn append_to(datum: pg_sys::Datum, words: &mut List<u64>) -> Option<usize> {
        let pointer: *const pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: the caller promises a value of variable length.
        let is_short = unsafe { varatt_is_1b(pointer) };
        // SAFETY: the value has a short header, so that its first byte says whether it is out of
        // line.
        if is_short && unsafe { varatt_is_1b_e(pointer) } {
            return None;
        }

        // A short value is copied without its length, which is then written in four bytes.
        let length_bytes = if is_short { LENGTH_BYTES } else { 0 };
        // SAFETY: the value is whole now, with the length that its header says.
        let copied: &[u8] = unsafe {
            if is_short {
                let first_byte = vardata_any(pointer).cast();
                std::slice::from_raw_parts(first_byte, varsize_any_exhdr(pointer))
            } else {
                std::slice::from_raw_parts(pointer.cast(), varsize_any(pointer))
            }
        };

        let start = words.len();
        let count = (length_bytes + copied.len()).div_ceil(size_of::<u64>());
        words.reserve_exact(count);
        words.resize(start + count, 0);
        // SAFETY: the new words have room for the length and the copied bytes.
        unsafe {
            let value: *mut pg_sys::varlena = words.as_mut_ptr().add(start).cast();
            let target = value.cast::<u8>().add(length_bytes);
            copied.as_ptr().copy_to_nonoverlapping(target, copied.len());
            if is_short {
                set_varsize_4b(value, (length_bytes + copied.len()) as i32);
            }
        }
        Some(start)
    }

    /// Returns the pointer to the value, which begins with its length.
    pub fn pointer(&self) -> *mut pg_sys::varlena {
        self.pointer
    }

    /// Takes over a value that was allocated by `palloc`.
    ///
    /// # Safety
    /// `pointer` must be a whole, uncompressed value that nobody else frees, and exist for `'a` or
    /// until it is freed.
    pub unsafe fn owned(pointer: *mut pg_sys::varlena) -> Self {
        Value { pointer, is_copy: true, lifetime: PhantomData }
    }

    /// Returns the bytes after the length.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the value exists as long as `self`.
        unsafe { contents(self.pointer) }
    }

    /// Returns the bytes after the length for as long as the datum is valid. A copy is then freed
    /// only with its memory.
    #[inline(always)]
    pub fn into_bytes(self) -> &'a [u8] {
        // SAFETY: the value exists for `'a`: `self` was the only one that could free it before.
        unsafe { contents(self.pointer) }
    }

    /// Frees the value if it is a copy.
    #[inline(always)]
    pub fn free(self) {
        if self.is_copy {
            // SAFETY: the copy was allocated by palloc, and `self` was its only owner.
            unsafe { pg_sys::pfree(self.pointer.cast()) };
        }
    }
}

impl Deref for Value<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

/// A new value of variable length in PostgreSQL's memory. It is the buffer that core writes its
/// results into. It must not outlive the call in which it was made.
pub struct PgBuffer {
    pointer: *mut pg_sys::varlena,
    memory: MemoryOfCall,
}

impl PgBuffer {
    /// Returns a new value of variable length in PostgreSQL's memory, whose `len` bytes after the
    /// length `write` has written. Raises an error if there is no memory, or if the value would
    /// exceed a gigabyte.
    ///
    /// # Safety
    /// `write` must write all bytes.
    unsafe fn written(len: usize, write: impl FnOnce(&mut [MaybeUninit<u8>])) -> Self {
        let total = len.saturating_add(LENGTH_BYTES);
        // SAFETY: the allocation has room for the length and `len` bytes. The current memory lives
        // as long as the call; code that changes it promises not to use what was allocated
        // afterwards.
        unsafe {
            let pointer: *mut pg_sys::varlena = pg_sys::palloc(total).cast();
            set_varsize_4b(pointer, total as i32);
            let first_byte = pointer.cast::<MaybeUninit<u8>>().add(LENGTH_BYTES);
            write(std::slice::from_raw_parts_mut(first_byte, len));
            PgBuffer { pointer, memory: MemoryOfCall::new() }
        }
    }

    /// Returns a value with these bytes after its length.
    pub fn copy_of(bytes: &[u8]) -> Self {
        // SAFETY: `write_copy` writes all bytes.
        unsafe { PgBuffer::written(bytes.len(), |target| interrupt::write_copy(target, bytes)) }
    }

    /// Shortens the value to `len` bytes after its length, unless it has fewer.
    pub fn truncate(&mut self, len: usize) {
        if len < self.bytes().len() {
            // SAFETY: the value gets shorter than what was allocated.
            unsafe { set_varsize_4b(self.pointer, (len + LENGTH_BYTES) as i32) };
        }
    }

    /// Returns the value as the result of a function.
    pub fn into_datum(self) -> pg_sys::Datum {
        pg_sys::Datum::from(self.pointer)
    }

    /// Returns the value as an argument for PostgreSQL, valid as long as `self` exists.
    pub(in crate::pg) fn datum(&self) -> pg_sys::Datum {
        self.memory.check();
        pg_sys::Datum::from(self.pointer)
    }

    /// Returns the bytes after the length.
    pub fn bytes(&self) -> &[u8] {
        self.memory.check();
        // SAFETY: the value exists as long as the call, which was just checked to be under way.
        unsafe { contents(self.pointer) }
    }
}

impl Buffer for PgBuffer {
    fn zeroed(len: usize) -> Self {
        // SAFETY: `write_zeros` writes all bytes.
        unsafe { PgBuffer::written(len, interrupt::write_zeros) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.check();
        // SAFETY: as in `bytes`, and `self` is borrowed mutably. The value is a long one.
        unsafe {
            let first_byte = self.pointer.cast::<u8>().add(LENGTH_BYTES);
            std::slice::from_raw_parts_mut(first_byte, varsize_any_exhdr(self.pointer))
        }
    }
}

/// Returns the result of an output function: a C string of `\x` and the hexadecimal digits of
/// `bytes`. Raises an error if there is no memory.
pub fn hex_string(bytes: &[u8]) -> pg_sys::Datum {
    const PREFIX: &CStr = c"\\x";
    let prefix_bytes = PREFIX.count_bytes();
    let len = prefix_bytes + bytes.len() * 2;
    // The digits of the largest value are more than the gigabyte that `palloc` allows.
    let flags = pg_sys::MCXT_ALLOC_HUGE as i32;
    // SAFETY: the allocation has room for the text and the zero byte that ends it.
    unsafe {
        let text: *mut c_char =
            pg_sys::MemoryContextAllocExtended(pg_sys::CurrentMemoryContext, len + 1, flags).cast();
        PREFIX.as_ptr().copy_to_nonoverlapping(text, prefix_bytes);
        let mut end = text.add(prefix_bytes);
        for chunk in bytes.chunks(interrupt::STRIDE_BYTES) {
            let written = pg_sys::hex_encode(chunk.as_ptr().cast(), chunk.len(), end);
            end = end.add(written as usize);
            interrupt::check();
        }
        end.write(0);
        pg_sys::Datum::from(text)
    }
}

impl AsRef<[u8]> for Value<'_> {
    fn as_ref(&self) -> &[u8] {
        self.deref()
    }
}
