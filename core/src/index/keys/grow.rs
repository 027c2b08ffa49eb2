//! New tiles: when they are added, how wide, how large.
//!
//! ```text
//! level 0   |8|  32 |  32 |   64   |     128      |     128      |     128      |     128      | …
//! ranges     0 8    40    72      136            264            392            520            648
//!            ╰───── alone: every lookup probes these ─────────────╯╰── below level 1 ──────────────▶
//! level 1                                                          | 8 slots | 8 | 8 | 8 | 16 | 16 | 32 | 32 | …
//! ```
//!
//! On level 1 these are followed by two of 64 slots, then tiles of 128.
//!
//! A small table has narrow tiles, since a tile has its full size from the start. With widths of 8, 32 and 128 a lookup
//! would read one page less, but an index of 60,000 rows, 65 per page, would have 5.2 bytes per row instead of 4.6. A
//! tile that would end after the first 512 ranges has a slot in level 1.
//!
//! On level 1 a tile above eight tiles of level 0 has about 80 pages, one above 128 about 1,300. Each has its full size
//! at once, and each costs every lookup one page. If each were as wide as all before it, an index of 1,000,000 to
//! 6,000,000 rows would have 3.8 bytes per row on average and 4.6 at worst. With the widths above these are 3.4 and
//! 3.8, for three more pages per lookup. Tiles are never moved or widened; REINDEX makes wide ones.
//!
//! A tile is sized by what the one before it holds, of which up to 16 pages are read: by the exact rates of those of
//! its slots that look complete ([`typical`]). So the second tile corrects a wrong guess for the first tile of an empty
//! table, which has 8 slots, and a change of the rows' width is followed after 128 ranges. The first tile of level 1 is
//! sized for the sum of the ranges below it. That is too much if keys are repeated between ranges; the next tile
//! corrects it.
//!
//! Allocating pages only counts them: the file is extended when a page gets its first bit.

use super::directory::Directory;
use super::fill::Fill;
use super::level::Level;
use super::meta::open_runs;
use super::rate::{self, Rates, Target, typical};
use super::tile::{MAX_WIDTH, TileShape, Width};
use crate::error::{Error, Result};
use crate::index::page::{PageNumber, Pages};

/// Pages of the tile before that are read to learn from.
const PAGES_READ: u32 = 16;

/// A directory with more tiles.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The new contents of the metapage: [`Directory::write_meta`].
    pub directory: Directory,
    /// A directory page to write with the same WAL record: its number and its bytes. PostgreSQL's header is zero.
    pub closed: Option<(PageNumber, Vec<u8>)>,
}

/// The width of a tile of level 0 that begins with this range.
pub const fn next_width(first_range: u64) -> u32 {
    match first_range {
        0..8 => 8,
        8..72 => 32,
        72..136 => 64,
        _ => MAX_WIDTH,
    }
}

/// The width of a tile of level 1 that follows others with this number of slots.
fn next_width_above(slots: u64) -> Width {
    let wanted = if slots < 64 { slots / 4 + 8 } else { slots / 2 };
    Width::within(u32::try_from(wanted).unwrap_or(u32::MAX))
}

impl Directory {
    /// Adds tiles for ranges up to this one, or as many as level 1 has slots for. Call it again until the range has a
    /// tile.
    ///
    /// The caller must hold the exclusive lock of the metapage, and the directory must be current. Pages of tiles are
    /// read, so a session that holds the lock of such a page must not wait for the metapage. Then the caller writes the
    /// metapage and the closed page, if there is one, with one WAL record, and releases the lock. Nothing else changes:
    /// pages of new tiles are read as empty until they get bits.
    ///
    /// # Errors
    /// [`crate::Class::TooLarge`] if there are too few numbers left for pages or ranges; those of reading.
    pub fn grow<P: Pages>(&self, pages: &mut P, range: u32) -> std::result::Result<Growth, P::Error>
    where
        P::Error: From<Error>,
    {
        let rates = Rates::of(self.options.size, self.options.fpr)?;
        let start = self.end_slot(Level::Zero);
        let width = Width::holding(next_width(start));
        let covered = self.covered_from.is_some() || start + u64::from(width.slots()) > self.options.ranges_alone();
        let target = rates.target(Level::Zero, covered);
        let seen = self.loads_of_last(pages, Level::Zero)?;
        let lower = self.next_shape(Level::Zero, width, target, &seen, f64::from(self.options.guess));
        let upper = if covered && self.free_slots() == 0 {
            let slots = self.end_slot(Level::One) - u64::from(self.covered_from.unwrap_or(0));
            let width = next_width_above(slots);
            let below = rate::mean(&seen).unwrap_or(f64::from(self.options.guess)) * f64::from(MAX_WIDTH);
            let seen = self.loads_of_last(pages, Level::One)?;
            Some(self.next_shape(Level::One, width, rates.above, &seen, below))
        } else {
            None
        };
        Ok(self.grown(range, covered, lower, upper)?)
    }

    /// This directory with the tile of level 1, if there is one, and as many tiles of level 0 as are needed and
    /// possible.
    fn grown(&self, range: u32, covered: bool, lower: TileShape, upper: Option<TileShape>) -> Result<Growth> {
        let mut directory = self.clone();
        directory.chain.generation = self.chain.generation.wrapping_add(1);
        let is_full = self.open.len() + 2 > open_runs(self.options.size);
        let closed = if is_full { Some(directory.close()?) } else { None };
        if covered && directory.covered_from.is_none() {
            directory.covered_from = Some(self.tiles(Level::Zero));
        }
        if let Some(upper) = upper {
            directory.push(upper, 1)?;
        }
        let missing = (u64::from(range) + 1).saturating_sub(self.end_slot(Level::Zero));
        // Only tiles of full width are added several at once.
        let wanted = missing.div_ceil(u64::from(lower.width.slots()));
        let tiles = if covered { wanted.min(directory.free_slots()) } else { 1 };
        directory.push(lower, tiles.max(1) as u32)?;
        Ok(Growth { directory, closed })
    }

    /// Slots of level 1 without a tile.
    fn free_slots(&self) -> u64 {
        self.end_slot(Level::One).saturating_sub(u64::from(self.tiles(Level::Zero)))
    }

    /// The loads of those slots of a level's last tile that look complete.
    fn loads_of_last<P: Pages>(&self, pages: &mut P, level: Level) -> std::result::Result<Vec<f64>, P::Error> {
        let last = self.tiles(level).checked_sub(1).and_then(|last| self.tile(level, last));
        let Some(tile) = last else { return Ok(Vec::new()) };
        Ok(typical(&Fill::of(pages, &tile, PAGES_READ)?.loads()))
    }

    /// The shape of the next tiles of a level, for the loads seen in the last one. If that is empty, the same shape
    /// again if it has this width, else one for a guess.
    fn next_shape(&self, level: Level, width: Width, target: Target, seen: &[f64], guess: f64) -> TileShape {
        let empty = self.last_run(level).filter(|_| seen.is_empty()).map(|last| last.shape);
        match empty.filter(|last| (last.width, last.num_hashes) == (width, target.num_hashes)) {
            Some(last) => last,
            None if seen.is_empty() => self.shape_for(level, width, target, &[guess.max(1.0)]),
            None => self.shape_for(level, width, target, seen),
        }
    }

    /// The shape of the next tiles of a level: that of its last one, if it may stay.
    pub(super) fn shape_for(&self, level: Level, width: Width, target: Target, loads: &[f64]) -> TileShape {
        let needed = rate::pages_for(self.options.size, level, width, target, loads);
        let shape = TileShape { level, width, num_hashes: target.num_hashes, pages: needed };
        match self.last_run(level) {
            Some(last)
                if last.shape == (TileShape { pages: last.shape.pages, ..shape })
                    && rate::may_stay(last.shape.pages, needed) =>
            {
                last.shape
            }
            _ => shape,
        }
    }
}
