//! The numbers that decide the bits that an element sets.

use super::name::Layout;

/// The most hashes (k) that a filter may have.
pub const MAX_HASHES: u32 = 64;

/// Layout, number of hashes and number of blocks, which decide the bits that an element sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The layout.
    pub layout: Layout,
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// Blocks of the payload.
    pub blocks: u64,
}

impl Shape {
    /// Bits of the payload.
    pub fn num_bits(self) -> u64 {
        self.blocks * self.layout.block_bits()
    }

    /// Bytes of the payload.
    pub fn payload_bytes(self) -> u64 {
        self.layout.payload_bytes(self.blocks)
    }
}
