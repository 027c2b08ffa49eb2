//! The compact text of JSON, which is the same for equal values: no blanks, members of an object in
//! the order of [`compare_keys`], numbers as [`super::numeric`] writes them, strings as
//! [`write_string`] does.

use super::Sink;
use std::cmp::Ordering;

/// Bytes below this one are control characters, which JSON doesn't allow in strings.
const FIRST_PRINTABLE: u8 = 32;

/// Writes a string, given as UTF-8, as JSON: between quotes, with only those bytes escaped that
/// must be: `"`, `\` and control characters.
pub fn write_string(text: &[u8], into: &mut impl Sink) {
    into.write(b"\"");
    let mut rest = text;
    while let Some(plain) = rest.iter().position(|&byte| must_be_escaped(byte)) {
        into.write(&rest[..plain]);
        write_escaped(rest[plain], into);
        rest = &rest[plain + 1..];
    }
    into.write(rest);
    into.write(b"\"");
}

fn must_be_escaped(byte: u8) -> bool {
    byte < FIRST_PRINTABLE || byte == b'"' || byte == b'\\'
}

/// Writes a byte of a JSON string as an escape sequence. A byte for which JSON has a short form,
/// such as `\n`, is written as that; any other one as `\u00xx`, with two lower-case hexadecimal
/// digits. The byte must be ASCII.
fn write_escaped(byte: u8, into: &mut impl Sink) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let character = match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0C => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ => {
            let high = DIGITS[usize::from(byte >> 4)];
            let low = DIGITS[usize::from(byte & 15)];
            return into.write(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    into.write(&[b'\\', character]);
}

/// Compares two keys of an object, given as UTF-8: a shorter one comes first; keys of one length
/// are compared byte by byte.
pub fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests;
