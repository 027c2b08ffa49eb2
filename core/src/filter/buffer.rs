//! Memory for results.

use crate::memory;

/// Memory that an operation writes its result into; the caller chooses how it is allocated.
pub trait Buffer {
    /// A buffer of `len` zero bytes.
    fn zeroed(len: usize) -> Self;
    /// Its bytes.
    fn bytes(&self) -> &[u8];
    /// Its bytes, for writing.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Drops all bytes from `len` on.
    fn truncate(&mut self, len: usize);
}

impl Buffer for Vec<u8> {
    fn zeroed(len: usize) -> Self {
        memory::zeroed(len)
    }
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
    fn truncate(&mut self, len: usize) {
        Vec::truncate(self, len);
    }
}
