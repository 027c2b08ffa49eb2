//! The compact text of JSON, which is the same for equal values: no blanks, keys in [`compare_keys`],
//! numbers as [`super::numeric`] writes them, strings as [`write_string`] does.

use super::Sink;
use std::cmp::Ordering;

/// Writes a string, given in UTF-8, between quotes. What must be escaped is: `"`, `\` and bytes
/// below 32, these as `\b`, `\f`, `\n`, `\r`, `\t` or `\u00xx` in lower case.
pub fn write_string(text: &[u8], into: &mut impl Sink) {
    into.write(b"\"");
    let mut rest = text;
    while let Some(plain) = rest
        .iter()
        .position(|&byte| byte < 32 || byte == b'"' || byte == b'\\')
    {
        into.write(&rest[..plain]);
        escape(rest[plain], into);
        rest = &rest[plain + 1..];
    }
    into.write(rest);
    into.write(b"\"");
}

fn escape(byte: u8, into: &mut impl Sink) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let short = match byte {
        8 => b'b',
        9 => b't',
        10 => b'n',
        12 => b'f',
        13 => b'r',
        b'"' | b'\\' => byte,
        _ => {
            let digits = [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ];
            return into.write(&[b'\\', b'u', b'0', b'0', digits[0], digits[1]]);
        }
    };
    into.write(&[b'\\', short]);
}

/// Which of two keys, in UTF-8, comes first: the shorter, and of two of a length that with the
/// smaller bytes.
pub fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests;
