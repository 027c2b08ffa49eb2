//! Memory whose size depends on data.
//!
//! Results are written into a [`Buffer`], which the caller allocates as it likes. Everything else
//! that grows with the data is a [`List`]: if there is too little memory, it calls the installed
//! hook, which ends the operation with an error. Rust's own `Vec` would abort the process, so
//! `clippy.toml` disallows it.
//!
//! | module | what it has |
//! |---|---|
//! | `hook` | the hook |
//! | `list` | the list |

use crate::interrupt;

mod hook;
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a list is a `Vec` inside")]
mod list;

pub use hook::{exhausted, set_hook};
pub use list::List;

/// Memory for the result of an operation. The caller chooses the type, and so how it is allocated.
pub trait Buffer {
    /// Allocates `len` bytes, all 0.
    fn zeroed(len: usize) -> Self;

    /// Returns all bytes of the buffer, to read or write.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Buffer for List<u8> {
    fn zeroed(len: usize) -> Self {
        List::zeroed(len)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

#[allow(clippy::disallowed_types, reason = "callers want a `Vec`")]
impl Buffer for Vec<u8> {
    fn zeroed(len: usize) -> Self {
        List::zeroed(len).into()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Returns the bytes that a text stands for: `\x`, and two hexadecimal digits for each byte, in
/// lower or upper case, as PostgreSQL shows a `bytea`. Returns `None` for any other text.
///
/// Checks for interrupts, so a user can cancel it.
pub fn from_hex<B: Buffer>(text: &[u8]) -> Option<B> {
    let digits = text.strip_prefix(b"\\x")?;
    let (pairs, unpaired) = digits.as_chunks::<2>();
    if !unpaired.is_empty() {
        return None;
    }

    let mut buffer = B::zeroed(pairs.len());
    let bytes = buffer.bytes_mut().iter_mut();
    for (byte, &[high, low]) in interrupt::cancellable(bytes.zip(pairs)) {
        *byte = hex_digit(high)? << 4 | hex_digit(low)?;
    }
    Some(buffer)
}

/// Returns the number, from 0 to 15, that a hexadecimal digit stands for; `None` for any other
/// character.
fn hex_digit(character: u8) -> Option<u8> {
    let digit = char::from(character).to_digit(16)?;
    Some(digit as u8)
}

#[cfg(test)]
mod tests;
