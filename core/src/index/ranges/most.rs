//! The most pages that a tile can have been made with, by all that the metapage and the directory pages say.
//!
//! How many pages a tile has follows from the elements that its slots were expected to have, which are not stored. But
//! they come from somewhere:
//!
//! ```text
//! level 0    those of all rows of the build, of a range full of them where each has one, or the guess,
//!              or what the tile before it has room for if all bits are set
//! above      those of 128 slots of the level below, or what the tile before it has room for
//! ```
//!
//! So a run that says more is damaged, however right its checksum is, and can't make an insertion write gigabytes.

use super::directory::Options;
use super::fill::elements;
use super::level::Level;
use super::rate::MAX_TILE_PAGES;
use super::shape::{MAX_WIDTH, TileShape, Width};
use crate::index::page::PageSize;

/// Pages that a tile may have beyond those that it needs: a level above is rounded up, and a shape may stay.
const ROUNDED: f64 = 64.0;
const STAYED: f64 = 1.1;

/// Bits of an element at a rate of 1 / 2^32, the lowest that is promised, in the limit of many blocks.
const fn most_bits(size: PageSize) -> f64 {
    match size.bytes() {
        1024 => 3600.0,
        2048 => 460.0,
        4096 => 165.0,
        _ => 94.0,
    }
}

/// The most elements that slots of each level were expected to have, by the runs so far.
pub(super) struct Most {
    size: PageSize,
    elements: [f64; 3],
}

impl Most {
    /// Before the first run, of an index that was built from so many rows with so many keys in the mean; 0 where each
    /// row has one.
    pub fn new(options: &Options, rows: u64, keys_per_row: u16) -> Most {
        let rows = rows as f64;
        let built = match keys_per_row {
            // A page has at most as many rows as it has room for their pointers, of four bytes.
            0 => rows.min(f64::from(options.pages_per_range) * (options.size.bytes() / 4) as f64),
            u16::MAX if rows > 0.0 => f64::INFINITY,
            // It is rounded, and a key of text may have two hashes.
            keys => rows * 2.0 * (f64::from(keys) + 0.5),
        };
        Most { size: options.size, elements: [built.max(options.guess.into()).max(1.0), 0.0, 0.0] }
    }

    /// The most pages of another tile of this level and width.
    pub fn pages(&self, level: Level, width: Width) -> u64 {
        let blocks = self.elements_of(level) * most_bits(self.size) / f64::from(self.size.block_bits());
        let pages = blocks / f64::from(width.blocks_per_page()) * STAYED + ROUNDED;
        // Those of a level above are counted as if they were the narrowest.
        let narrower = Width::MIN.blocks_per_page() / width.blocks_per_page();
        (pages as u64).min(MAX_TILE_PAGES * u64::from(narrower))
    }

    fn elements_of(&self, level: Level) -> f64 {
        let below = level.below().map_or(0.0, |below| self.elements_of(below) * f64::from(MAX_WIDTH));
        self.elements[level as usize].max(below)
    }

    /// Takes note of a run: the next tile of its level may be made for what this one has.
    pub fn add(&mut self, shape: TileShape) {
        let bits = shape.blocks() as f64 * f64::from(self.size.block_bits());
        // A slot of level 2 may be a tile of another width.
        let wider = if shape.level == Level::Two { f64::from(MAX_WIDTH / Width::MIN.columns()) } else { 1.0 };
        let full = elements(shape, self.size, bits, bits) * wider;
        let known = &mut self.elements[shape.level as usize];
        *known = known.max(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::ranges::target;

    #[test]
    fn no_element_has_more_bits() {
        for bytes in [1024, 2048, 4096, 8192, 16384, 32768] {
            let size = PageSize::new(bytes).unwrap();
            let needed = target(size, 0.5f64.powi(32)).bits;
            assert!(needed <= most_bits(size) && (bytes > 8192 || needed > 0.98 * most_bits(size)), "{needed}");
        }
    }
}
