//! How much an index may have of everything.

/// The most hashes (k) of a tile: what the words of a level have bits for, less the one for the block.
pub const MAX_HASHES: usize = 60;

/// Tiles that end within so many ranges have no slot in level 1.
pub const RANGES_ALONE: u64 = 512;
