//! Lookups: which ranges may have a key, or keys that meet a condition.
//!
//! A lookup probes the tiles of each level that have no slot above, and those whose slot above may
//! have what it looks for. It reads one page of each for each hash that it asks for, and holds one
//! lock at a time. The pages of the tiles that come next are announced meanwhile, so that those
//! that have to be read from disk are read together.
//!
//! ```text
//! level 1     every lookup probes: tile 0                      it reports its slots 3 and 7
//! level 0     every lookup probes: no tile, as all are below level 1
//!             reported: tiles 3 and 7                          tile 3 reports ranges 390 and 401
//! ```

use super::directory::Directory;
use super::shape::Level;
use super::tile::TileAddress;
use crate::conditions::Condition;
use crate::conditions::alternatives::Alternatives;
use crate::index::page::Pages;
use crate::memory::List;
use std::iter;

/// Which of the tiles that may have a match are probed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    AllTiles,
    /// Of each level at most this many of the tiles that every lookup probes, and at most as many
    /// of those that the level above reports. The tiles are evenly spread.
    Sample {
        most_tiles: u32,
    },
}

/// A slot of a tile that may match, as probing the tile has shown.
struct ProbedSlot<T> {
    /// The number of the slot, counted from the first one of the tile.
    slot_in_tile: u32,
    /// Which of several conditions may hold in the slot; `()` if there is one only.
    candidates: T,
}

/// A slot of a level that may match.
struct MatchingSlot<T> {
    /// The number of the slot: a range on level 0, a tile of the level below on another level.
    slot: u32,
    /// How many slots it stands for; 1 if all tiles are probed.
    weight: f64,
    /// As in [`ProbedSlot`].
    candidates: T,
}

/// Calls `found` with each range that may have the key with this hash, in ascending order.
///
/// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
/// can't be read.
pub fn search<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    hash: u64,
    found: impl FnMut(u32),
) -> Result<(), P::Error> {
    search_condition(directory, pages, &Condition::Has(hash), found)
}

/// Announces (prefetches) the pages of the index that [`search`] reads first for this hash: one
/// page of each tile that every lookup probes, from the highest level down. Stops when no more
/// pages can be announced now.
pub fn announce_search<P: Pages>(directory: &Directory, pages: &mut P, hash: u64) {
    for level in Level::ALL.into_iter().rev() {
        for ordinal in 0..directory.tiles_without_slot_above(level) {
            if !pages.can_announce() {
                return;
            }
            if let Some(tile) = directory.tile(level, ordinal) {
                pages.announce(tile.probe(hash).page);
            }
        }
    }
}

/// Calls `found` with each range that may have keys with which a condition holds, in ascending
/// order. The condition must not be unknown.
///
/// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
/// can't be read.
pub fn search_condition<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    condition: &Condition,
    mut found: impl FnMut(u32),
) -> Result<(), P::Error> {
    search_for_condition(directory, pages, condition, Extent::AllTiles, |range| found(range.slot))
}

/// Finds the ranges of the table in which a condition with several alternatives, such as
/// `a OR b OR c`, may hold. Calls `found` for each with the number of the range and the numbers of
/// the alternatives that may hold in it, which are indexes of `alternatives.choices`. Both ascend.
///
/// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
/// can't be read.
pub fn search_alternatives<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    alternatives: &Alternatives,
    mut found: impl FnMut(u32, &[u32]),
) -> Result<(), P::Error> {
    let target = SeveralAlternatives {
        alternatives,
        all_numbers: (0..alternatives.choices.len() as u32).collect(),
    };
    search_levels(directory, pages, &target, Extent::AllTiles, |range| {
        found(range.slot, &range.candidates);
    })
}

/// Calls `found` with a sample of the ranges that [`search_condition`] would find: with the number
/// of each range, and with how many ranges it stands for. The sum of these is an estimate of how
/// many ranges a search would find.
///
/// On each level at most `most_tiles` tiles are probed that every lookup probes, and at most as
/// many of those whose slot in the level above may match. They are evenly spread.
///
/// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
/// can't be read.
pub fn sample_ranges<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    condition: &Condition,
    most_tiles: u32,
    mut found: impl FnMut(u32, f64),
) -> Result<(), P::Error> {
    let extent = Extent::Sample { most_tiles };
    search_for_condition(directory, pages, condition, extent, |range| {
        found(range.slot, range.weight);
    })
}

/// Returns about how many ranges [`search_condition`] would find, by a sample as that of
/// [`sample_ranges`].
///
/// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
/// can't be read.
pub fn estimate_ranges<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    condition: &Condition,
    most_tiles: u32,
) -> Result<f64, P::Error> {
    let mut ranges = 0.0;
    sample_ranges(directory, pages, condition, most_tiles, |_range, weight| ranges += weight)?;
    Ok(ranges)
}

/// Calls `found` with the ranges of the table that may have a row that meets a condition, in
/// ascending order. `extent` says whether all tiles of the index are probed for that, or a sample.
/// The condition says which keys such a row has.
///
/// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
/// can't be read.
fn search_for_condition<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    condition: &Condition,
    extent: Extent,
    found: impl FnMut(MatchingSlot<()>),
) -> Result<(), P::Error> {
    let target = OneCondition { condition, first_hash: condition.first_hash() };
    search_levels(directory, pages, &target, extent, found)
}

/// What a lookup looks for: a condition, or several conditions of which one must hold.
trait LookupTarget {
    /// Which of several conditions may hold in a slot of a tile (a range of the table, or a tile of
    /// the level below); `()` if there is one condition only.
    type Candidates;

    /// Reads a tile, and returns its slots in which one of `candidates` may hold, in ascending
    /// order.
    ///
    /// Fails if a page is not one of the tile, or if it can't be read.
    fn probe<P: Pages>(
        &self,
        pages: &mut P,
        tile: &TileAddress,
        candidates: &Self::Candidates,
    ) -> Result<impl Iterator<Item = ProbedSlot<Self::Candidates>>, P::Error>;

    /// Returns the hash of the key that [`LookupTarget::probe`] looks for first in a tile where
    /// these conditions may hold, so that the page with its bits can be prefetched; `None` if it
    /// looks for no key.
    fn first_hash(&self, candidates: &Self::Candidates) -> Option<u64>;

    /// Returns all conditions: nothing rules one out before the first tile is read.
    fn all_candidates(&self) -> &Self::Candidates;
}

/// A single condition.
struct OneCondition<'c> {
    condition: &'c Condition,
    /// The first key that the condition asks for.
    first_hash: Option<u64>,
}

impl LookupTarget for OneCondition<'_> {
    type Candidates = ();

    /// Returns the slots of a tile in which the condition may hold. There are no candidates to tell
    /// apart, since there is one condition only.
    ///
    /// The page for the first key has been announced (prefetched) before. The pages for the other
    /// keys are announced here, and only if some slot of the tile may have the first key: otherwise
    /// they mostly need not be read.
    fn probe<P: Pages>(
        &self,
        pages: &mut P,
        tile: &TileAddress,
        (): &(),
    ) -> Result<impl Iterator<Item = ProbedSlot<()>>, P::Error> {
        let all_slots = u128::MAX; // a bit for each slot of the tile
        let mut find_key = |hash| -> Result<u128, P::Error> {
            let slots = slots_with_key(pages, tile, hash)?;
            let is_first = Some(hash) == self.first_hash;
            if is_first && slots != 0 {
                announce_other_keys(pages, tile, self.condition);
            }
            Ok(slots)
        };
        let slots = self.condition.slots(all_slots, &mut find_key)?;
        Ok(numbers_of_bits(slots).map(|slot_in_tile| ProbedSlot { slot_in_tile, candidates: () }))
    }

    fn first_hash(&self, (): &()) -> Option<u64> {
        self.first_hash
    }

    fn all_candidates(&self) -> &() {
        &()
    }
}

/// Several conditions of which one must hold. The candidates of a slot are their numbers.
struct SeveralAlternatives<'a> {
    alternatives: &'a Alternatives,
    all_numbers: List<u32>,
}

impl LookupTarget for SeveralAlternatives<'_> {
    type Candidates = List<u32>;

    fn probe<P: Pages>(
        &self,
        pages: &mut P,
        tile: &TileAddress,
        candidates: &List<u32>,
    ) -> Result<impl Iterator<Item = ProbedSlot<List<u32>>>, P::Error> {
        let probed_slots = probe_alternatives(pages, tile, self.alternatives, candidates)?;
        Ok(probed_slots.into_iter())
    }

    /// What is required beside all alternatives is looked for first; if that has no key, the first
    /// alternative.
    fn first_hash(&self, candidates: &List<u32>) -> Option<u64> {
        if let Some(hash) = self.alternatives.required.first_hash() {
            return Some(hash);
        }
        let first = *candidates.first()?;
        self.alternatives.choices[first as usize].first_hash()
    }

    fn all_candidates(&self) -> &List<u32> {
        &self.all_numbers
    }
}

/// Announces (prefetches) the pages of a tile that a lookup reads next, if its condition is an AND.
/// The lookup has just found that the first key may be in some slots of the tile, so it will look
/// for the other keys in the same tile. Does nothing for other conditions.
fn announce_other_keys<P: Pages>(pages: &mut P, tile: &TileAddress, condition: &Condition) {
    let Condition::All(conditions) = condition else {
        return;
    };
    for other in conditions.iter().skip(1) {
        if !pages.can_announce() {
            return;
        }
        if let Some(hash) = other.first_hash() {
            pages.announce(tile.probe(hash).page);
        }
    }
}

/// Searches the index from the highest level down to level 0, and calls `found` with the ranges of
/// the table that may have a match, in ascending order.
///
/// Each level consists of tiles. A tile has a Bloom filter for each of its *slots*: ranges of the
/// table on level 0, tiles of the level below on another level. So a tile is probed if its own slot
/// in the level above may have a match, or if it has no such slot.
///
/// A slot that may match is passed on with two notes, to the level below or, on level 0, to
/// `found`:
///
/// - `weight`: how many slots it stands for, if `extent` says that only a sample of the tiles is
///   probed. Otherwise it is 1.
/// - `candidates`: which conditions may hold in it, if `target` has several. Only these are looked
///   for on the level below.
///
/// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
/// can't be read.
fn search_levels<P: Pages, S: LookupTarget>(
    directory: &Directory,
    pages: &mut P,
    target: &S,
    extent: Extent,
    mut found: impl FnMut(MatchingSlot<S::Candidates>),
) -> Result<(), P::Error> {
    // The slots of the level above that may have a match. Each is a tile of this level.
    let mut matching_slots_above: List<MatchingSlot<S::Candidates>> = List::new();
    for level in Level::ALL.into_iter().rev() {
        let to_probe = TilesToProbe {
            target,
            without_slot_above: EvenSample::new(directory.tiles_without_slot_above(level), extent),
            with_slot_above: EvenSample::new(matching_slots_above.len() as u32, extent),
            matching_slots_above: &matching_slots_above,
        };

        let mut matching_slots = List::new();
        to_probe.probe_all(directory, level, pages, |matching| match level {
            // A slot of level 0 is a range of the table.
            Level::Zero => found(matching),
            Level::One | Level::Two => matching_slots.push(matching),
        })?;
        matching_slots_above = matching_slots;
    }
    Ok(())
}

/// The tiles of a level that are probed: first those that have no slot above, which every lookup
/// probes, then those whose slot above may have a match.
struct TilesToProbe<'t, S: LookupTarget> {
    target: &'t S,
    /// Which tiles without a slot above are probed.
    without_slot_above: EvenSample,
    /// Which of `matching_slots_above` are the slots of tiles that are probed.
    with_slot_above: EvenSample,
    matching_slots_above: &'t [MatchingSlot<S::Candidates>],
}

/// A tile that is probed.
struct TileToProbe<'t, T> {
    ordinal: u32,
    /// How many tiles it stands for; 1 if all are probed.
    weight: f64,
    candidates: &'t T,
}

impl<'t, S: LookupTarget> TilesToProbe<'t, S> {
    /// Returns how many tiles are probed.
    fn count(&self) -> u32 {
        self.without_slot_above.sample_size + self.with_slot_above.sample_size
    }

    /// Probes these tiles of `level`, and calls `found` with their slots that may have a match, in
    /// ascending order. While a tile is probed, pages of the next ones are prefetched.
    ///
    /// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
    /// can't be read.
    fn probe_all<P: Pages>(
        &self,
        directory: &Directory,
        level: Level,
        pages: &mut P,
        mut found: impl FnMut(MatchingSlot<S::Candidates>),
    ) -> Result<(), P::Error> {
        let mut next_to_announce = 0;
        for number in 0..self.count() {
            // This tile is read at once, so announcing begins with the one after it.
            let first_to_announce = next_to_announce.max(number + 1);
            next_to_announce = self.announce_from(first_to_announce, directory, level, pages);

            let to_probe = self.tile_at(number);
            // The level above may report a tile that was added after this directory was read. Its
            // rows came after the lookup began.
            let Some(tile) = directory.tile(level, to_probe.ordinal) else {
                continue;
            };
            for probed in self.target.probe(pages, &tile, to_probe.candidates)? {
                found(MatchingSlot {
                    slot: tile.first_slot.saturating_add(probed.slot_in_tile),
                    weight: to_probe.weight,
                    candidates: probed.candidates,
                });
            }
        }
        Ok(())
    }

    /// Announces (prefetches) a page of each of the next tiles of `level` that are probed, from
    /// tile number `first` in the list of all such tiles on: as many pages as `pages` allows now.
    /// Returns the number of the first tile whose page is not announced yet.
    ///
    /// A tile has several pages. The page with the bits of the key that is looked for first is
    /// announced.
    fn announce_from<P: Pages>(
        &self,
        first: u32,
        directory: &Directory,
        level: Level,
        pages: &mut P,
    ) -> u32 {
        let mut number = first;
        while number < self.count() && pages.can_announce() {
            let next = self.tile_at(number);
            if let Some(tile) = directory.tile(level, next.ordinal)
                && let Some(hash) = self.target.first_hash(next.candidates)
            {
                pages.announce(tile.probe(hash).page);
            }
            number += 1;
        }
        number
    }

    /// Returns an entry of the list of the tiles that are probed, by its number, which counts from
    /// 0 and must be below [`TilesToProbe::count`].
    ///
    /// The list has two parts. Tiles that every lookup probes come first. Then come tiles that have
    /// a *slot above*, which is a Bloom filter of all keys of the tile, in a tile of the level
    /// above: those whose slot may have a match. Each part is a sample of such tiles, or all of
    /// them. The weight of a tile is how many tiles it stands for.
    ///
    /// Example: 4 of 20 tiles without a slot above have the numbers 0 to 3, and weight 20 / 4 = 5.
    /// After them, 4 of 8 tiles with a matching slot have the numbers 4 to 7. Each stands for 2. If
    /// its slot was found by a sample as well, and has weight 3, the tile has weight 3 · 2 = 6.
    fn tile_at(&self, number: u32) -> TileToProbe<'t, S::Candidates> {
        let tiles_without_slot = self.without_slot_above.sample_size;
        if number < tiles_without_slot {
            return TileToProbe {
                ordinal: self.without_slot_above.member(number),
                weight: self.without_slot_above.weight(),
                // No level above has ruled out a candidate.
                candidates: self.target.all_candidates(),
            };
        }

        let number_in_part = number - tiles_without_slot;
        let index = self.with_slot_above.member(number_in_part);
        let slot_above = &self.matching_slots_above[index as usize];
        TileToProbe {
            // Slots of the level above are numbered as the tiles of this level.
            ordinal: slot_above.slot,
            weight: slot_above.weight * self.with_slot_above.weight(),
            candidates: &slot_above.candidates,
        }
    }
}

/// A sample of `count` numbered things, evenly spread, or all of them. A sample of three among ten
/// has the numbers 0, 3 and 6.
struct EvenSample {
    count: u32,
    sample_size: u32,
}

impl EvenSample {
    fn new(count: u32, extent: Extent) -> EvenSample {
        let sample_size = match extent {
            Extent::AllTiles => count,
            Extent::Sample { most_tiles } => count.min(most_tiles.max(1)),
        };
        EvenSample { count, sample_size }
    }

    /// Returns how many things each member of the sample stands for.
    fn weight(&self) -> f64 {
        f64::from(self.count) / f64::from(self.sample_size.max(1))
    }

    /// Returns which of the things is member `i` of the sample; both count from 0.
    fn member(&self, i: u32) -> u32 {
        (u64::from(i) * u64::from(self.count) / u64::from(self.sample_size.max(1))) as u32
    }
}

/// Returns the numbers of the bits that are set, in ascending order.
fn numbers_of_bits(mut bits: u128) -> impl Iterator<Item = u32> {
    iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let lowest = bits.trailing_zeros();
        // Clears the lowest bit that is set.
        bits &= bits - 1;
        Some(lowest)
    })
}

/// Returns the slots of a tile that may have a key: bit i is set for slot i.
///
/// Fails with [`Damage`](super::Damage) if the page is not one of the tile, or if it can't be read.
fn slots_with_key<P: Pages>(
    pages: &mut P,
    tile: &TileAddress,
    hash: u64,
) -> Result<u128, P::Error> {
    let probe = tile.probe(hash);
    let slots = pages.with_page(probe.page, |page| probe.slots(page))??;
    Ok(slots)
}

/// Reads a tile to find out where a query with several alternatives, such as `a OR b OR c`, may
/// have a match. Returns the slots of the tile in which at least one alternative may hold, in
/// ascending order, and with each slot the numbers of these alternatives. A slot is what the tile
/// has a Bloom filter for: a range of the table, or a tile of the level below.
///
/// `alternatives.choices` has the alternatives by their numbers, and `alternatives.required` is a
/// condition that must hold beside one of them. Only the alternatives with the numbers in
/// `candidates` are looked at: the level above has ruled out the others.
///
/// Fails with [`Damage`](super::Damage) if a page is not one of the tile, or if it can't be read.
fn probe_alternatives<P: Pages>(
    pages: &mut P,
    tile: &TileAddress,
    alternatives: &Alternatives,
    candidates: &[u32],
) -> Result<List<ProbedSlot<List<u32>>>, P::Error> {
    let mut probe_tile = |hash| slots_with_key(pages, tile, hash);
    let all_slots = u128::MAX; // a bit for each slot of the tile
    let possible_slots = alternatives.required.slots(all_slots, &mut probe_tile)?;

    let mut matches = List::new();
    for &number in candidates {
        let alternative = &alternatives.choices[number as usize];
        let slots = alternative.slots(possible_slots, &mut probe_tile)?;
        for slot in numbers_of_bits(slots) {
            matches.push(AlternativeMatch { slot, number });
        }
    }

    // The matches were found by alternative, and are wanted by slot.
    matches.sort_unstable();
    let matches_by_slot = matches.chunk_by(|a, b| a.slot == b.slot);
    let probed_slots = matches_by_slot.map(|of_slot| ProbedSlot {
        slot_in_tile: of_slot[0].slot,
        candidates: of_slot.iter().map(|matching| matching.number).collect(),
    });
    Ok(probed_slots.collect())
}

/// One of several conditions that may hold in a slot of a tile. Matches are sorted by slot first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct AlternativeMatch {
    slot: u32,
    number: u32,
}
