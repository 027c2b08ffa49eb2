//! Text in the encoding of the database, and its conversion from and to UTF-8.
//!
//! A database in the encoding SQL_ASCII has bytes of any encoding; PostgreSQL doesn't convert them.

use crate::pg::version;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// How many bytes of a text are converted where only its start is of interest.
const MOST_BYTES_OF_START: usize = 256;

fn database_encoding() -> i32 {
    // SAFETY: this reads a variable of the process.
    unsafe { pg_sys::GetDatabaseEncoding() }
}

fn is_sql_ascii() -> bool {
    database_encoding() == pg_sys::pg_enc::PG_SQL_ASCII as i32
}

/// Returns whether the database is in UTF-8.
pub fn is_utf8() -> bool {
    database_encoding() == pg_sys::pg_enc::PG_UTF8 as i32
}

/// Returns the name of the database's encoding if its text must be converted to get UTF-8; `None`
/// for UTF-8 and SQL_ASCII.
pub fn foreign_encoding() -> Option<&'static str> {
    if is_utf8() || is_sql_ascii() {
        return None;
    }
    Some(database_encoding_name())
}

/// Returns the names of all encodings whose text must be converted to get UTF-8.
pub fn foreign_encodings() -> impl Iterator<Item = &'static str> {
    let as_they_are = [pg_sys::pg_enc::PG_UTF8, pg_sys::pg_enc::PG_SQL_ASCII];
    (0..pg_sys::pg_enc::_PG_LAST_ENCODING_)
        .filter(move |encoding| !as_they_are.contains(encoding))
        .map(|encoding| version::encoding_name(encoding as i32))
}

/// Returns the name of the database's encoding.
pub fn database_encoding_name() -> &'static str {
    version::encoding_name(database_encoding())
}

/// Returns text of the database as a Rust string.
///
/// In an SQL_ASCII database, bytes that aren't UTF-8 are written as `\xe9`. A backslash that is
/// followed by `x` and two digits becomes `\x5c`, so that different texts stay different.
pub fn utf8(bytes: &[u8]) -> String {
    if is_sql_ascii() {
        return escaped(bytes);
    }
    with_utf8(bytes, |text| String::from_utf8_lossy(text).into_owned())
}

/// Returns a C string of the database as a Rust string; `None` if it is null.
///
/// # Safety
/// `text` must be null or end in a zero byte.
pub unsafe fn utf8_of(text: *const std::ffi::c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller promises a C string.
    let text = unsafe { CStr::from_ptr(text) };
    Some(utf8(text.to_bytes()))
}

/// Returns the start of a text of the database as a Rust string: up to 256 bytes, and whole
/// characters.
pub fn start_of(bytes: &[u8]) -> String {
    if bytes.len() <= MOST_BYTES_OF_START {
        return utf8(bytes);
    }
    // SAFETY: the function reads no more bytes than are given. It returns how many bytes the whole
    // characters among the first ones have.
    let length = unsafe {
        pg_sys::pg_mbcliplen(bytes.as_ptr().cast(), bytes.len() as i32, MOST_BYTES_OF_START as i32)
    };
    utf8(&bytes[..length as usize])
}

/// Returns bytes of any encoding as a string: UTF-8 stays as it is, and other bytes become `\x` and
/// two digits. A backslash that was in the bytes, before an `x` and two digits, is written as
/// `\x5c`, so that different bytes have different strings.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (index, character) in valid.char_indices() {
            if looks_escaped(&valid.as_bytes()[index..]) {
                text.push_str("\\x5c");
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Returns whether a text begins with what [`escaped`] would write for a byte.
fn looks_escaped(text: &[u8]) -> bool {
    match text {
        [b'\\', b'x', a, b, ..] => a.is_ascii_hexdigit() && b.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Converts text of the database to UTF-8, and returns what `use_utf8` returns for that. Text of an
/// SQL_ASCII database stays as it is. Raises an error if the text can't be converted.
pub fn with_utf8<T>(text: &[u8], use_utf8: impl FnOnce(&[u8]) -> T) -> T {
    let utf8 = pg_sys::pg_enc::PG_UTF8 as i32;
    converted(text, database_encoding(), utf8, use_utf8)
}

/// Converts UTF-8 to text of the database. Raises an error if a character isn't in the database's
/// encoding.
pub fn from_utf8(text: &str) -> List<u8> {
    let utf8 = pg_sys::pg_enc::PG_UTF8 as i32;
    converted(text.as_bytes(), utf8, database_encoding(), List::copy_of)
}

/// Returns the text of a message in the encoding of the database, as PostgreSQL expects it. A zero
/// byte, which a C string can't have, ends it.
pub fn message(text: String) -> CString {
    let needs_no_conversion = text.is_ascii() || foreign_encoding().is_none();
    let mut bytes = if needs_no_conversion {
        List::from(text.into_bytes())
    } else {
        from_utf8(&text)
    };
    if let Some(length) = bytes.iter().position(|&byte| byte == 0) {
        bytes.truncate(length);
    }
    CString::new(bytes).unwrap_or_default()
}

/// Returns the bytes of a name without the zero bytes that fill the rest of its array. Damage may
/// have left none; then the name has all bytes.
pub fn name_bytes(name: &pg_sys::NameData) -> &[u8] {
    // SAFETY: an array of C's characters is one of bytes.
    let bytes = unsafe { &*name.data.as_ptr().cast::<[u8; pg_sys::NAMEDATALEN as usize]>() };
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Returns a name of the database as a Rust string.
pub fn name(name: &pg_sys::NameData) -> String {
    utf8(name_bytes(name))
}

/// Calls `use_text` with a text that is converted from one encoding to another, given by their
/// numbers, and returns its result. Raises an error if the text can't be converted.
fn converted<T>(
    text: &[u8],
    source_encoding: i32,
    target_encoding: i32,
    use_text: impl FnOnce(&[u8]) -> T,
) -> T {
    let given = text.as_ptr().cast_mut();
    let length = text.len() as i32;
    // SAFETY: the function reads `text`. It returns the same pointer if nothing has to be
    // converted, else a C string that was allocated by palloc.
    unsafe {
        let converted =
            pg_sys::pg_do_encoding_conversion(given, length, source_encoding, target_encoding);
        if std::ptr::eq(converted, given) {
            return use_text(text);
        }
        let result = use_text(CStr::from_ptr(converted.cast()).to_bytes());
        pg_sys::pfree(converted.cast());
        result
    }
}
