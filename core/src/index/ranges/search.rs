//! Lookups, and where an element's bits belong.
//!
//! ```text
//! lookup   metapage ──▶ tiles of level 2 ──▶ tiles of level 1 that may have it ─┐
//!                   ├─▶ tiles of level 1 without a slot in level 2 ─────────────┴▶ tiles of level 0 ─┐
//!                   └─▶ tiles of level 0 without a slot in level 1 ──────────────────────────────────┴▶ ranges
//!
//! adding   on each level: a page, its slot =             under the exclusive lock: bits that are not set yet
//!          the tile below, on level 0 the range
//! ```
//!
//! A lookup reads one page of each tile that it probes for each hash that it asks for, and holds one lock at a time.

use super::directory::Directory;
use super::shape::Level;
use super::tile::{Mark, Slots, TileAddress};
use crate::conditions::Condition;
use crate::conditions::alternatives::Alternatives;
use crate::index::page::Pages;
use crate::memory;

/// Where the bits of one element belong for one range: at most a page of each level.
///
/// # Adding an element
///
/// Take the exclusive locks of the pages in the order of their numbers, extending the file if necessary, and compute
/// the [`changes`](super::changes) of each. In one critical section change the bytes, mark the buffers dirty and write
/// one record of these pages. A page that has no changes needs nothing: the backend that set its bits held the lock
/// until it had inserted the WAL record, which therefore precedes our commit.
///
/// The metapage is never locked while a page of a tile is. If [`Directory::places`] returns `None`, [`Directory::grow`]
/// comes first, with a separate record: of the metapage and at most one directory page.
#[derive(Clone, Copy, Debug)]
pub struct Places([Option<Mark>; Places::MOST]);

impl Places {
    /// The most marks.
    pub const MOST: usize = Level::ALL.len();

    /// The marks, from the highest level down.
    pub fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter().rev().flatten()
    }
}

impl Directory {
    /// Where an element of a range belongs; `None` if the range has no tile yet.
    pub fn places(&self, range: u32, hash: u64) -> Option<Places> {
        let mut places = Places([None; Places::MOST]);
        let mut slot = range;
        for (level, place) in Level::ALL.into_iter().zip(&mut places.0) {
            let tile = self.tile_of(level, slot)?;
            *place = Some(tile.probe(hash).mark(tile.slot(slot)?));
            if tile.ordinal >= self.tiles_alone(level) {
                // The check of the directory promises that there is a slot above.
                slot = tile.ordinal;
            } else {
                break;
            }
        }
        Some(places)
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
        let mut reported = Vec::new();
        for level in Level::ALL.into_iter().rev() {
            let alone = self.tiles_from(level, 0).take(self.tiles_alone(level) as usize);
            let mut below = Vec::new();
            for tile in alone.chain(reported) {
                for slot in probe(pages, &tile, condition)?.map(|slot| tile.first_slot.saturating_add(slot)) {
                    match level.below().map(|level| self.tile(level, slot)) {
                        None => found(slot),
                        Some(Some(tile)) => {
                            if let Condition::Has(hash) = *condition {
                                pages.prefetch(tile.probe(hash).page);
                            }
                            memory::push(&mut below, tile);
                        }
                        // A tile that was added after this directory was read.
                        Some(None) => {}
                    }
                }
            }
            reported = below;
        }
        Ok(())
    }

    /// Calls `found` with each range for which one of some alternatives may hold, in ascending order, and with the
    /// numbers of these alternatives, which ascend.
    ///
    /// # Errors
    /// Those of [`Directory::search_for`].
    pub fn search_each<P: Pages>(
        &self,
        pages: &mut P,
        alternatives: &Alternatives,
        mut found: impl FnMut(u32, &[u32]),
    ) -> Result<(), P::Error> {
        let all = memory::collect(0..alternatives.each.len() as u32);
        let mut reported: Vec<(TileAddress, Vec<u32>)> = Vec::new();
        for level in Level::ALL.into_iter().rev() {
            let mut below = Vec::new();
            let mut visit = |tile: &TileAddress, numbers: &[u32]| -> Result<(), P::Error> {
                for (slot, numbers) in probe_each(pages, tile, alternatives, numbers)? {
                    let slot = tile.first_slot.saturating_add(slot);
                    match level.below().map(|level| self.tile(level, slot)) {
                        None => found(slot, &numbers),
                        Some(Some(tile)) => memory::push(&mut below, (tile, numbers)),
                        // A tile that was added after this directory was read.
                        Some(None) => {}
                    }
                }
                Ok(())
            };
            for tile in self.tiles_from(level, 0).take(self.tiles_alone(level) as usize) {
                visit(&tile, &all)?;
            }
            for (tile, numbers) in reported {
                visit(&tile, &numbers)?;
            }
            reported = below;
        }
        Ok(())
    }

    /// About how many ranges [`Directory::search_for`] would find: those of a sample.
    ///
    /// # Errors
    /// Those of [`Directory::search_for`].
    pub fn ranges_expected<P: Pages>(&self, pages: &mut P, condition: &Condition, most: u32) -> Result<f64, P::Error> {
        let mut ranges = 0.0;
        self.sample(pages, condition, most, |_, weight| ranges += weight)?;
        Ok(ranges)
    }

    /// Calls `found` with some of the ranges that [`Directory::search_for`] would find, and how many each stands for.
    /// Of the tiles that it would probe on a level at most `most` are probed, evenly spread, of those that every lookup
    /// probes and of those that the level above reports.
    ///
    /// # Errors
    /// Those of [`Directory::search_for`].
    pub fn sample<P: Pages>(
        &self,
        pages: &mut P,
        condition: &Condition,
        most: u32,
        mut found: impl FnMut(u32, f64),
    ) -> Result<(), P::Error> {
        // Tiles by their numbers, and how many each of them stands for.
        let mut reported: Vec<(u32, f64)> = Vec::new();
        for level in Level::ALL.into_iter().rev() {
            let alone = evenly(self.tiles_alone(level), most);
            let sample = evenly(reported.len() as u32, most).map(|(i, more)| {
                let (ordinal, weight) = reported[i as usize];
                (ordinal, weight * more)
            });
            let mut below = Vec::new();
            for (ordinal, weight) in alone.chain(sample) {
                let Some(tile) = self.tile(level, ordinal) else { continue };
                for slot in probe(pages, &tile, condition)?.map(|slot| tile.first_slot.saturating_add(slot)) {
                    match level {
                        Level::Zero => found(slot, weight),
                        _ => memory::push(&mut below, (slot, weight)),
                    }
                }
            }
            reported = below;
        }
        Ok(())
    }
}

/// At most so many of the numbers below `count`, evenly spread, and how many each of them stands for.
fn evenly(count: u32, most: u32) -> impl Iterator<Item = (u32, f64)> {
    let picked = count.min(most.max(1));
    let weight = f64::from(count) / f64::from(picked.max(1));
    (0..picked).map(move |i| ((u64::from(i) * u64::from(count) / u64::from(picked)) as u32, weight))
}

/// The slots of a tile for which a condition may hold.
fn probe<P: Pages>(pages: &mut P, tile: &TileAddress, condition: &Condition) -> Result<Slots, P::Error> {
    condition.slots(u128::MAX, &mut having(pages, tile)).map(Slots)
}

/// From a hash to the slots of a tile that may have it.
fn having<P: Pages>(pages: &mut P, tile: &TileAddress) -> impl FnMut(u64) -> Result<u128, P::Error> {
    |hash| {
        let probe = tile.probe(hash);
        Ok(pages.with(probe.page, |page| probe.slots(page))??.0)
    }
}

/// The slots of a tile for which one of the alternatives with these numbers may hold, and which of them.
fn probe_each<P: Pages>(
    pages: &mut P,
    tile: &TileAddress,
    alternatives: &Alternatives,
    numbers: &[u32],
) -> Result<Vec<(u32, Vec<u32>)>, P::Error> {
    let mut having = having(pages, tile);
    let possible = alternatives.every.slots(u128::MAX, &mut having)?;
    let mut found = Vec::new();
    for &number in numbers {
        let slots = alternatives.each[number as usize].slots(possible, &mut having)?;
        Slots(slots).for_each(|slot| memory::push(&mut found, (slot, number)));
    }
    found.sort_unstable();
    let of_slot = |pairs: &[(u32, u32)]| (pairs[0].0, memory::collect(pairs.iter().map(|&(_, number)| number)));
    Ok(memory::collect(found.chunk_by(|a, b| a.0 == b.0).map(of_slot)))
}
