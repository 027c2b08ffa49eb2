//! Text in the encoding of the database.

use pg_bloom_core::memory;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

fn database_encoding() -> i32 {
    // SAFETY: reads a global of the process.
    unsafe { pg_sys::GetDatabaseEncoding() }
}

/// The encoding of the database, unless text in it is UTF-8 or to be taken as is.
pub fn foreign_encoding() -> Option<&'static str> {
    if is_utf8() || database_encoding() == pg_sys::pg_enc::PG_SQL_ASCII as i32 {
        return None;
    }
    // SAFETY: the name is a static C string.
    unsafe { CStr::from_ptr(pg_sys::GetDatabaseEncodingName()) }
        .to_str()
        .ok()
}

pub fn is_utf8() -> bool {
    database_encoding() == pg_sys::pg_enc::PG_UTF8 as i32
}

/// Text of the database as a Rust string. In an SQL_ASCII database bytes may be anything: those
/// that are no UTF-8 are shown as `\xe9`, and the backslash of what only looks like that as `\x5c`,
/// so that texts stay different.
pub fn utf8(bytes: &[u8]) -> String {
    if database_encoding() == pg_sys::pg_enc::PG_SQL_ASCII as i32 {
        return escaped(bytes);
    }
    with_utf8(bytes, |text| String::from_utf8_lossy(text).into_owned())
}

/// A C string in the encoding of the database as a Rust string; `None` if it is null.
///
/// # Safety
/// It must be null or end in a zero byte.
pub unsafe fn utf8_of(text: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: promised by the caller.
    (!text.is_null()).then(|| utf8(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

/// The start of a text of the database as a Rust string, whole if it is short.
pub fn start_of(bytes: &[u8]) -> String {
    const MOST_BYTES: usize = 256;
    if bytes.len() <= MOST_BYTES {
        return utf8(bytes);
    }
    // SAFETY: reads no more than the bytes given, and says how many of them are whole characters.
    let whole = unsafe {
        pg_sys::pg_mbcliplen(bytes.as_ptr().cast(), bytes.len() as i32, MOST_BYTES as i32)
    };
    utf8(&bytes[..whole as usize])
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (at, character) in valid.char_indices() {
            let rest = &valid.as_bytes()[at..];
            let looks_escaped = matches!(rest, [b'\\', b'x', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
            if looks_escaped { text.push_str("\\x5c") } else { text.push(character) }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// What `work` makes of text of the database in UTF-8.
pub fn with_utf8<T>(text: &[u8], work: impl FnOnce(&[u8]) -> T) -> T {
    converted(text, database_encoding(), pg_sys::pg_enc::PG_UTF8 as i32, work)
}

pub fn from_utf8(text: &str) -> Vec<u8> {
    converted(text.as_bytes(), pg_sys::pg_enc::PG_UTF8 as i32, database_encoding(), memory::copy)
}

/// Text in UTF-8 for a message, which PostgreSQL takes to be in the encoding of the database, up to
/// a zero byte.
pub fn message(text: String) -> CString {
    let is_as_it_is = text.is_ascii() || foreign_encoding().is_none();
    let mut bytes = if is_as_it_is { text.into_bytes() } else { from_utf8(&text) };
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

/// The bytes of a name, without the zero bytes that it ends in: all of them, if damage left none.
pub fn name_bytes(name: &pg_sys::NameData) -> &[u8] {
    // SAFETY: characters of C are bytes.
    let bytes = unsafe { &*name.data.as_ptr().cast::<[u8; pg_sys::NAMEDATALEN as usize]>() };
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

pub fn name(name: &pg_sys::NameData) -> String {
    utf8(name_bytes(name))
}

fn converted<T>(text: &[u8], from: i32, to: i32, work: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: the conversion reads `text` and returns it or a C string in the memory of this call.
    unsafe {
        let given = text.as_ptr().cast_mut();
        let converted = pg_sys::pg_do_encoding_conversion(given, text.len() as i32, from, to);
        if std::ptr::eq(converted, given) {
            return work(text);
        }
        let result = work(CStr::from_ptr(converted.cast()).to_bytes());
        pg_sys::pfree(converted.cast());
        result
    }
}
