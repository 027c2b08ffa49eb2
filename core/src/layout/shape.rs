//! The layouts by name, the rates that they can keep, and the numbers that decide the bits that an element sets.

/// A layout by name, as chosen by users and kept in the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Layout {
    /// One 512-bit block for an element; the default.
    Blocked = 1,
    /// The textbook filter.
    Classic = 2,
    /// Parquet's split block filter.
    Parquet = 3,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 3] = [Layout::Blocked, Layout::Classic, Layout::Parquet];

    /// The layout with this stored code.
    pub fn from_code(code: u8) -> Option<Layout> {
        Layout::ALL.into_iter().find(|&l| l as u8 == code)
    }

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Blocked => "blocked",
            Layout::Classic => "classic",
            Layout::Parquet => "parquet",
        }
    }

    /// The layout with this name.
    pub fn named(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|l| l.name() == name)
    }

    /// Bits of a block.
    pub const fn block_bits(self) -> u64 {
        match self {
            Layout::Blocked => 512,
            Layout::Classic => 1,
            Layout::Parquet => 256,
        }
    }

    /// Bytes of the dense payload of `blocks` blocks.
    pub fn payload_bytes(self, blocks: u64) -> u64 {
        match self {
            Layout::Classic => blocks.div_ceil(8),
            _ => blocks.saturating_mul(self.block_bits() / 8),
        }
    }
}

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

/// The smallest rate that a layout can keep at any size.
pub fn least_fpr(layout: Layout) -> f64 {
    match layout {
        Layout::Parquet => 1e-6,
        _ => 1e-9,
    }
}

/// The greatest rate that a filter may promise: it finds half of the absent elements.
pub const GREATEST_FPR: f64 = 0.5;

/// Whether a filter of a layout may promise a rate.
pub fn is_possible_fpr(layout: Layout, fpr: f64) -> bool {
    (least_fpr(layout)..=GREATEST_FPR).contains(&fpr)
}
