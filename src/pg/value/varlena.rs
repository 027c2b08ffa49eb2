//! Values of variable length: reading them in place, and making them.

use super::toast::fetch_large;
use crate::pg::call::guard::Held;
use pg_bloom_core::{Buffer, interrupt, memory};
use pgrx::{
    pg_sys, set_varsize_4b, varatt_is_1b, varatt_is_1b_e, varatt_is_4b_u, vardata_any, varsize_any,
    varsize_any_exhdr,
};
use std::ffi::c_char;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

/// Bytes of the length before a value.
const LENGTH_BYTES: usize = 4;

/// Bytes of a value that says how long it is, if it can be in a table and these are enough to know.
/// Damage may have moved it: a long one that isn't aligned, as it is read, is none.
#[inline(always)]
pub fn length_of(bytes: &[u8]) -> Option<usize> {
    /// Bytes of a value that is out of line.
    const OUT_OF_LINE: usize = 2 + size_of::<pg_sys::varatt_external>();
    /// Bytes before what is compressed: the length, and how long it is once it is whole.
    const COMPRESSED_START: usize = 2 * LENGTH_BYTES;
    let value: *const pg_sys::varlena = bytes.as_ptr().cast();
    bytes.first()?;
    // SAFETY: the first byte says which kind it is, and of a short one the length.
    unsafe {
        if varatt_is_1b_e(value) {
            return (u32::from(*bytes.get(1)?) == pg_sys::vartag_external::VARTAG_ONDISK)
                .then_some(OUT_OF_LINE);
        }
        if varatt_is_1b(value) {
            return Some(varsize_any(value));
        }
    }
    if bytes.len() < LENGTH_BYTES || !value.cast::<u32>().is_aligned() {
        return None;
    }
    // SAFETY: the length of a long value is in its first four bytes, which are there and aligned.
    let (length, is_plain) = unsafe { (varsize_any(value), varatt_is_4b_u(value)) };
    (length >= if is_plain { LENGTH_BYTES } else { COMPRESSED_START }).then_some(length)
}

/// The bytes of a value after its length; none if damage has made that less than itself.
///
/// # Safety
/// The value must be whole, uncompressed and there for `'a`.
#[inline(always)]
unsafe fn contents<'a>(value: *const pg_sys::varlena) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe {
        let before = if varatt_is_1b(value) { 1 } else { LENGTH_BYTES };
        std::slice::from_raw_parts(
            value.cast::<u8>().add(before),
            varsize_any(value).saturating_sub(before),
        )
    }
}

/// A value of variable length, whole and uncompressed: the argument itself where it is so already,
/// else a copy in the current memory, which is freed with that unless [`Value::free`] does it
/// before.
pub struct Value<'a> {
    pointer: *mut pg_sys::varlena,
    copied: bool,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Value<'a> {
    /// # Safety
    /// The datum must be of a type of variable length, and stay valid for `'a`.
    #[inline(always)]
    pub unsafe fn detoast(datum: pg_sys::Datum) -> Self {
        // SAFETY: promised by the caller. The common cases need no call of PostgreSQL.
        unsafe {
            Value::in_place(datum).unwrap_or_else(|| {
                let given = datum.cast_mut_ptr();
                let pointer =
                    fetch_large(datum).unwrap_or_else(|| pg_sys::pg_detoast_datum_packed(given));
                Value {
                    pointer,
                    copied: !std::ptr::eq(pointer, given),
                    lifetime: PhantomData,
                }
            })
        }
    }

    /// The same for what is whole and uncompressed as it was given; `None` for anything else.
    /// Doesn't call PostgreSQL.
    ///
    /// # Safety
    /// As for [`Value::detoast`].
    #[inline(always)]
    pub unsafe fn in_place(datum: pg_sys::Datum) -> Option<Self> {
        let pointer: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: promised by the caller.
        let is_in_place = unsafe {
            varatt_is_4b_u(pointer) || (varatt_is_1b(pointer) && !varatt_is_1b_e(pointer))
        };
        is_in_place.then_some(Value { pointer, copied: false, lifetime: PhantomData })
    }

    /// The same with a length of four bytes before it and aligned as its type is, for what is not
    /// read byte by byte.
    ///
    /// # Safety
    /// As for [`Value::detoast`].
    pub unsafe fn detoast_aligned(datum: pg_sys::Datum) -> Self {
        let given: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: promised by the caller.
        let pointer = unsafe {
            if varatt_is_4b_u(given) {
                given
            } else {
                fetch_large(datum).unwrap_or_else(|| pg_sys::pg_detoast_datum(given))
            }
        };
        Value {
            pointer,
            copied: !std::ptr::eq(pointer, given),
            lifetime: PhantomData,
        }
    }

    /// Appends a value to these words, as it is or with a length of four bytes before it, and says
    /// where; `None` if it is out of line. Compressed it stays so. Takes memory if there is no
    /// room.
    ///
    /// # Safety
    /// As for [`Value::detoast`].
    pub unsafe fn append_to(datum: pg_sys::Datum, words: &mut Vec<u64>) -> Option<usize> {
        let pointer: *const pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: promised by the caller; the words have room for what is copied, a short length
        // grown to four bytes.
        unsafe {
            let is_short = varatt_is_1b(pointer);
            if is_short && varatt_is_1b_e(pointer) {
                return None;
            }
            let (from, skipped, bytes): (*const u8, _, _) = match is_short {
                true => (vardata_any(pointer).cast(), LENGTH_BYTES, varsize_any_exhdr(pointer)),
                false => (pointer.cast(), 0, varsize_any(pointer)),
            };
            let (start, count) = (words.len(), (skipped + bytes).div_ceil(size_of::<u64>()));
            memory::reserve(words, count);
            words.resize(start + count, 0);
            let value: *mut pg_sys::varlena = words.as_mut_ptr().add(start).cast();
            from.copy_to_nonoverlapping(value.cast::<u8>().add(skipped), bytes);
            if is_short {
                set_varsize_4b(value, (skipped + bytes) as i32);
            }
            Some(start)
        }
    }

    /// With the length before it.
    pub fn pointer(&self) -> *mut pg_sys::varlena {
        self.pointer
    }

    /// # Safety
    /// `pointer` must be a whole, uncompressed value from palloc, valid for `'a` or until it is
    /// freed.
    pub unsafe fn owned(pointer: *mut pg_sys::varlena) -> Self {
        Value { pointer, copied: true, lifetime: PhantomData }
    }

    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the value lives as long as `self`.
        unsafe { contents(self.pointer) }
    }

    /// The bytes for as long as the value is there: a copy is not given back before its memory is.
    #[inline(always)]
    pub fn into_bytes(self) -> &'a [u8] {
        // SAFETY: the value lives for `'a`, and nobody is left to free it before.
        unsafe { contents(self.pointer) }
    }

    /// Gives a copy back before the call's memory is.
    #[inline(always)]
    pub fn free(self) {
        if self.copied {
            // SAFETY: the copy was made by `detoast` with palloc, and `self` was its only owner.
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

/// A new value of variable length in PostgreSQL's memory, for the core to write into, which must be
/// gone with its call.
pub struct PgBuffer {
    pointer: *mut pg_sys::varlena,
    held: Held,
}

impl PgBuffer {
    /// A buffer whose `len` bytes are written by `write`.
    ///
    /// # Safety
    /// It must write all of them.
    unsafe fn written(len: usize, write: impl FnOnce(&mut [MaybeUninit<u8>])) -> Self {
        let total = len.saturating_add(LENGTH_BYTES);
        // SAFETY: memory that is there as long as the call, or until whoever changed it promised to
        // be done. The allocation has room for length and bytes, or raises an error.
        unsafe {
            let pointer: *mut pg_sys::varlena = pg_sys::palloc(total).cast();
            set_varsize_4b(pointer, total as i32);
            write(std::slice::from_raw_parts_mut(
                pointer.cast::<MaybeUninit<u8>>().add(LENGTH_BYTES),
                len,
            ));
            PgBuffer { pointer, held: Held::new() }
        }
    }

    pub fn copy_of(bytes: &[u8]) -> Self {
        // SAFETY: all bytes are written.
        unsafe { PgBuffer::written(bytes.len(), |into| interrupt::write_copy(into, bytes)) }
    }

    pub fn truncate(&mut self, len: usize) {
        if len < self.bytes().len() {
            // SAFETY: shorter than what was allocated.
            unsafe { set_varsize_4b(self.pointer, (len + LENGTH_BYTES) as i32) };
        }
    }

    pub fn into_datum(self) -> pg_sys::Datum {
        pg_sys::Datum::from(self.pointer)
    }

    /// The value, for as long as this is there.
    pub(in crate::pg) fn datum(&self) -> pg_sys::Datum {
        self.held.check();
        pg_sys::Datum::from(self.pointer)
    }

    pub fn bytes(&self) -> &[u8] {
        self.held.check();
        // SAFETY: the value is there as long as the call, which borrows of it can't outlive, and is
        // borrowed.
        unsafe { contents(self.pointer) }
    }
}

impl Buffer for PgBuffer {
    fn zeroed(len: usize) -> Self {
        // SAFETY: all bytes are written.
        unsafe { PgBuffer::written(len, interrupt::write_zeros) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.held.check();
        // SAFETY: as above, and borrowed for writing; it has a length of four bytes.
        unsafe {
            let first = self.pointer.cast::<u8>().add(LENGTH_BYTES);
            std::slice::from_raw_parts_mut(first, varsize_any_exhdr(self.pointer))
        }
    }
}

/// A C string as a result: `\x` and the hexadecimal digits of these bytes.
pub fn hex_string(bytes: &[u8]) -> pg_sys::Datum {
    let (len, huge) = (2 + bytes.len() * 2, pg_sys::MCXT_ALLOC_HUGE as i32);
    // SAFETY: so many bytes are allocated, and written; twice the largest value may be more than a
    // gigabyte.
    unsafe {
        let text: *mut c_char =
            pg_sys::MemoryContextAllocExtended(pg_sys::CurrentMemoryContext, len + 1, huge).cast();
        c"\\x".as_ptr().copy_to_nonoverlapping(text, 2);
        let mut end = text.add(2);
        for bytes in bytes.chunks(interrupt::STRIDE_BYTES) {
            end = end.add(pg_sys::hex_encode(bytes.as_ptr().cast(), bytes.len(), end) as usize);
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
