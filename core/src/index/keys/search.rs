//! Lookups, and where an element's bits belong.
//!
//! ```text
//! lookup   metapage ──▶ tiles alone            ──────────────────────────▶ ranges
//!                   └─▶ tiles of level 1 ──▶ tiles that may have it ──▶ ranges
//!
//! adding   level 1: a page, its slot = the tile          1. under the share lock: are all bits set?
//!          level 0: a page, its slot = the range         2. if not: exclusive lock, level 1 before level 0
//! ```
//!
//! A lookup reads one page of each tile that it probes, and holds one lock at a time.

use super::directory::Directory;
use super::level::Level;
use super::tile::{Mark, Slots, TileAddress};
use crate::index::page::Pages;
use crate::memory;
use crate::parts::Condition;

/// Where the bits of one element belong for one range: at most two pages.
///
/// # Adding an element
///
/// 1. For each mark, under the share lock of its page: [`Mark::is_set`]. A page after the end of the file has no bits.
///    If all are set, there is nothing to do: the backend that set them held the exclusive lock until it had inserted
///    the WAL record, which therefore precedes our commit.
/// 2. For the others: take the exclusive locks of their pages in the order of [`Places::in_lock_order`], level 1 before
///    level 0, extending the file if necessary. Compute [`Mark::deltas`] of each. In one critical section change the
///    bytes, mark the buffers dirty and write one record of these one or two pages.
///
/// The metapage is never locked while a page of a tile is. If [`Directory::places`] returns `None`, [`Directory::grow`]
/// comes first, with a record of its own: of the metapage and at most one directory page.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Its bits in level 1, if the tile of its range has a slot there.
    pub upper: Option<Mark>,
    /// Its bits in level 0.
    pub lower: Mark,
}

impl Places {
    /// The marks in the one order in which their pages may be locked.
    pub fn in_lock_order(&self) -> impl Iterator<Item = &Mark> {
        self.upper.iter().chain([&self.lower])
    }
}

impl Directory {
    /// Where an element of a range belongs; `None` if the range has no tile yet.
    pub fn places(&self, range: u32, hash: u64) -> Option<Places> {
        let tile = self.tile_of(Level::Zero, range)?;
        let mark = |tile: TileAddress, slot| Some(tile.probe(hash).mark(tile.slot(slot)?));
        let upper = if tile.ordinal >= self.tiles_alone() {
            // The check of the directory promises it.
            Some(mark(self.tile_of(Level::One, tile.ordinal)?, tile.ordinal)?)
        } else {
            None
        };
        Some(Places { upper, lower: mark(tile, range)? })
    }

    /// Calls `found` with each range that may have an element.
    ///
    /// # Errors
    /// Those of [`Directory::search_for`].
    pub fn search<P: Pages>(&self, pages: &mut P, hash: u64, found: impl FnMut(u32)) -> Result<(), P::Error> {
        self.search_for(pages, &Condition::Has(hash), found)
    }

    /// Calls `found` with each range that may have elements with which a condition holds, in ascending order. It must
    /// not be unknown.
    ///
    /// A range without a tile is one without elements. Rows that a session may see were given their bits before they
    /// were committed, so a directory that was current when the lookup began knows all tiles that matter.
    ///
    /// # Errors
    /// [`super::Damage`] for a page that is not of its tile; those of reading.
    pub fn search_for<P: Pages>(
        &self,
        pages: &mut P,
        condition: &Condition,
        mut found: impl FnMut(u32),
    ) -> Result<(), P::Error> {
        for tile in self.tiles_from(Level::Zero, 0).take(self.tiles_alone() as usize) {
            probe(pages, &tile, condition)?.for_each(|slot| found(tile.first_slot + slot));
        }
        let mut candidates = Vec::new();
        for tile in self.tiles_from(Level::One, 0) {
            for slot in probe(pages, &tile, condition)? {
                // A tile that was added after this directory was read.
                let Some(below) = self.tile(Level::Zero, tile.first_slot.saturating_add(slot)) else { continue };
                if let Condition::Has(hash) = *condition {
                    pages.prefetch(below.probe(hash).page);
                }
                memory::push(&mut candidates, below);
            }
        }
        for tile in candidates {
            probe(pages, &tile, condition)?.for_each(|slot| found(tile.first_slot + slot));
        }
        Ok(())
    }

    /// How many ranges [`Directory::search_for`] would find, by at most so many tiles, evenly spread.
    ///
    /// # Errors
    /// Those of [`Directory::search_for`].
    pub fn ranges_expected<P: Pages>(&self, pages: &mut P, condition: &Condition, most: u32) -> Result<f64, P::Error> {
        let tiles = self.tiles(Level::Zero);
        let probed = tiles.min(most.max(1));
        let (mut found, mut slots) = (0, 0);
        for i in 0..probed {
            let ordinal = (u64::from(i) * u64::from(tiles) / u64::from(probed)) as u32;
            let Some(tile) = self.tile(Level::Zero, ordinal) else { continue };
            slots += u64::from(tile.shape.width.slots());
            let above = if ordinal < self.tiles_alone() { None } else { self.tile_of(Level::One, ordinal) };
            let is_candidate = match above {
                Some(above) => probe(pages, &above, condition)?.any(|slot| above.first_slot + slot == ordinal),
                None => true,
            };
            if is_candidate {
                found += u64::from(probe(pages, &tile, condition)?.len());
            }
        }
        Ok(found as f64 * self.end_slot(Level::Zero) as f64 / slots.max(1) as f64)
    }
}

/// The slots of a tile for which a condition may hold.
fn probe<P: Pages>(pages: &mut P, tile: &TileAddress, condition: &Condition) -> Result<Slots, P::Error> {
    let mut having = |hash| {
        let probe = tile.probe(hash);
        Ok(pages.with(probe.page, |page| probe.slots(page))??.0)
    };
    condition.slots(u128::MAX, &mut having).map(Slots)
}
