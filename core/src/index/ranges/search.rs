//! Lookups, and where an element's bits belong.
//!
//! A lookup probes the tiles of each level that have no slot above, and those whose slot above may
//! have what it looks for. It reads one page of each for each hash that it asks for, and holds one
//! lock at a time.

use super::directory::Directory;
use super::shape::Level;
use super::tile::{Mark, TileAddress};
use crate::conditions::Condition;
use crate::conditions::alternatives::Alternatives;
use crate::index::page::Pages;
use crate::memory;
use std::iter;

impl Directory {
    /// Where the bits of an element belong, from the highest level down; `None` if the range has no
    /// tile yet.
    ///
    /// To add an element, take the exclusive locks of the pages in the order of their numbers, and
    /// write the [`changes`](super::changes) of each, with one record. A page that has none needs
    /// nothing: the backend that set its bits held the lock until it had inserted the WAL record,
    /// which therefore precedes our commit. The metapage is never locked while a page of a tile is.
    pub fn places(&self, range: u32, hash: u64) -> Option<Vec<Mark>> {
        let (mut marks, mut slot) = (Vec::new(), range);
        for level in Level::ALL {
            let tile = self.tile_of(level, slot)?;
            marks.push(tile.probe(hash).mark((slot - tile.first_slot) as u8));
            if tile.ordinal < self.tiles_alone(level) {
                break;
            }
            // The check of the directory promises that there is a slot above.
            slot = tile.ordinal;
        }
        marks.reverse();
        Some(marks)
    }

    /// Calls `found` with each range that may have an element. Errors: those of
    /// [`Directory::search_for`].
    pub fn search<P: Pages>(
        &self,
        pages: &mut P,
        hash: u64,
        found: impl FnMut(u32),
    ) -> Result<(), P::Error> {
        self.search_for(pages, &Condition::Has(hash), found)
    }

    /// Calls `found` with each range that may have elements with which a condition holds, in
    /// ascending order. It must not be unknown. Errors: [`super::Damage`] for a page that is not of
    /// its tile; those of reading.
    pub fn search_for<P: Pages>(
        &self,
        pages: &mut P,
        condition: &Condition,
        mut found: impl FnMut(u32),
    ) -> Result<(), P::Error> {
        self.sample(pages, condition, u32::MAX, |range, _| found(range))
    }

    /// Calls `found` with each range for which one of some alternatives may hold, in ascending
    /// order, and with the numbers of these alternatives, which ascend. Errors: those of
    /// [`Directory::search_for`].
    pub fn search_each<P: Pages>(
        &self,
        pages: &mut P,
        alternatives: &Alternatives,
        mut found: impl FnMut(u32, &[u32]),
    ) -> Result<(), P::Error> {
        let all = memory::collect(0..alternatives.each.len() as u32);
        let probe =
            |tile: &TileAddress, numbers: &Vec<u32>| probe_each(pages, tile, alternatives, numbers);
        self.walk(u32::MAX, &all, probe, |range, _, numbers| found(range, &numbers))
    }

    /// About how many ranges [`Directory::search_for`] would find: those of a sample. Errors: as
    /// there.
    pub fn ranges_expected<P: Pages>(
        &self,
        pages: &mut P,
        condition: &Condition,
        most: u32,
    ) -> Result<f64, P::Error> {
        let mut ranges = 0.0;
        self.sample(pages, condition, most, |_, weight| ranges += weight)?;
        Ok(ranges)
    }

    /// Calls `found` with some of the ranges that [`Directory::search_for`] would find, and how
    /// many each stands for: of a level at most `most` of the tiles that every lookup probes are
    /// probed, evenly spread, and at most as many of those that the level above reports. Errors: as
    /// there.
    pub fn sample<P: Pages>(
        &self,
        pages: &mut P,
        condition: &Condition,
        most: u32,
        mut found: impl FnMut(u32, f64),
    ) -> Result<(), P::Error> {
        let probe = |tile: &TileAddress, (): &()| {
            let slots = each(condition.slots(u128::MAX, &mut having(pages, tile))?);
            // A sample reads few of them.
            if most == u32::MAX
                && let (Condition::Has(hash), Some(below)) = (condition, tile.shape.level.below())
            {
                let reported = slots
                    .clone()
                    .filter_map(|slot| self.tile(below, tile.first_slot.saturating_add(slot)));
                reported.for_each(|tile| pages.prefetch(tile.probe(*hash).page));
            }
            Ok::<_, P::Error>(slots.map(|slot| (slot, ())))
        };
        self.walk(most, &(), probe, |range, weight, ()| found(range, weight))
    }

    /// Probes tiles from the highest level down, as [`Directory::sample`] does. `probe` returns the
    /// slots of a tile that may have what is looked for, each with what is to be known when its own
    /// tile is probed, which is `all` where there is none above. Calls `found` with ranges, how
    /// many each stands for, and what was said of it.
    fn walk<T, E, I: IntoIterator<Item = (u32, T)>>(
        &self,
        most: u32,
        all: &T,
        mut probe: impl FnMut(&TileAddress, &T) -> Result<I, E>,
        mut found: impl FnMut(u32, f64, T),
    ) -> Result<(), E> {
        // Tiles by their numbers, and how many each of them stands for.
        let mut reported: Vec<(u32, f64, T)> = Vec::new();
        for level in Level::ALL.into_iter().rev() {
            let alone = evenly(self.tiles_alone(level), most)
                .map(|(ordinal, weight)| (ordinal, weight, all));
            let sample = evenly(reported.len() as u32, most).map(|(i, more)| {
                let (ordinal, weight, own) = &reported[i as usize];
                (*ordinal, weight * more, own)
            });
            let mut below = Vec::new();
            for (ordinal, weight, own) in alone.chain(sample) {
                // One that was added after this directory was read is not known.
                let Some(tile) = self.tile(level, ordinal) else {
                    continue;
                };
                for (slot, own) in probe(&tile, own)? {
                    let slot = tile.first_slot.saturating_add(slot);
                    match level {
                        Level::Zero => found(slot, weight, own),
                        _ => memory::push(&mut below, (slot, weight, own)),
                    }
                }
            }
            reported = below;
        }
        Ok(())
    }
}

/// At most so many of the numbers below `count`, evenly spread, and how many each of them stands
/// for.
fn evenly(count: u32, most: u32) -> impl Iterator<Item = (u32, f64)> {
    let picked = count.min(most.max(1));
    let weight = f64::from(count) / f64::from(picked.max(1));
    (0..picked).map(move |i| ((u64::from(i) * u64::from(count) / u64::from(picked)) as u32, weight))
}

/// The numbers of the bits that are set.
fn each(mut bits: u128) -> impl Iterator<Item = u32> + Clone {
    iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(bit)
    })
}

/// From a hash to the slots of a tile that may have it.
fn having<P: Pages>(
    pages: &mut P,
    tile: &TileAddress,
) -> impl FnMut(u64) -> Result<u128, P::Error> {
    |hash| {
        let probe = tile.probe(hash);
        Ok(pages.with(probe.page, |page| probe.slots(page))??)
    }
}

/// The slots of a tile for which one of the alternatives with these numbers may hold, and which of
/// them.
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
        each(slots).for_each(|slot| memory::push(&mut found, (slot, number)));
    }
    found.sort_unstable();
    let of_slot = |pairs: &[(u32, u32)]| {
        (pairs[0].0, memory::collect(pairs.iter().map(|&(_, number)| number)))
    };
    Ok(memory::collect(found.chunk_by(|a, b| a.0 == b.0).map(of_slot)))
}
