//! What an index promises and holds, and what a lookup costs.

use super::directory::{Directory, TileRun};
use super::fill::Fill;
use super::rate::{mean, rate_of_level};
use super::shape::{Level, MAX_WIDTH, TileShape};
use super::tile::TileAddress;
use crate::index::page::Pages;
use crate::memory::List;
use crate::sizing::greatest_load;

/// A range is overfull if the odds of a false positive that its number of keys leads to are higher
/// than promised by this factor.
///
/// The rate of its bits varies too much to be judged, since a range has few blocks. In a tile that
/// keeps its rate as a whole, a range with a quarter more keys than the others may have four times
/// their rate.
const OVERFULL: f64 = 5.0;

/// What a lookup is expected to read, if every tile keeps its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Pages of the index for an absent key: the metapage, one page of each tile that every lookup
    /// probes, one of each tile that the level above reports by mistake. A present key needs one
    /// more for each tile that has it, unless every lookup probes that tile. Directory pages are
    /// not counted: sessions keep their contents.
    pub index_pages: f64,
    /// The share of ranges that are read by mistake for an absent key.
    pub fpr: f64,
    /// How many ranges are read by mistake for each tile that has a key.
    pub beside_match: f64,
}

/// Sums over tiles of level 0, each of which has the filters of neighbouring ranges of the table.
/// An [`Expectation`] is computed from them.
#[derive(Default)]
struct LevelZeroSums {
    tiles: f64,
    ranges: f64,
    /// Ranges that are read by mistake in a lookup of a key that no row has.
    false_positives: f64,
    /// For each tile, how many of its ranges are read by mistake if another one of them has the key
    /// that is looked up; these numbers are added up.
    false_positives_beside_match: f64,
    /// Pages of the index that are read in a lookup of a key that no row has. It begins with those
    /// that every lookup reads. Pages of tiles that a level above reports by mistake are added.
    index_pages: f64,
}

/// Neighbouring tiles of one shape whose keys have bits on the same levels.
struct SimilarTiles {
    shape: TileShape,
    /// The range whose promised rate is taken for all of these tiles: the first one of their run,
    /// which is all neighbouring tiles of this shape. It may be in a tile before these.
    near_range: u32,
    /// How many tiles there are; may be 0.
    count: u32,
    /// The highest level of the index that has bits of the keys in these tiles.
    highest_level: Level,
}

impl LevelZeroSums {
    /// Adds to the sums what a lookup is expected to read by mistake because of some tiles of level
    /// 0, each of which has the Bloom filters of up to 128 neighbouring ranges of the table.
    ///
    /// A range is read if its filter on level 0 reports the key, and so do the filters of the
    /// levels above, each of which has the keys of a whole tile. So the false positive rates of the
    /// levels multiply.
    ///
    /// Example: level 0 has the rate 0.005, and level 1 has 0.02, so both together have 0.0001. A
    /// tile has 128 ranges.
    ///
    /// - If no row has the key, a page of the tile is read with probability 0.02. Of its ranges,
    ///   128 · 0.0001 = 0.0128 are read by mistake.
    /// - If one of the ranges has the key, level 1 reports the tile rightly. Of the other ranges,
    ///   127 · 0.005 = 0.635 are read by mistake.
    fn add_tiles(&mut self, directory: &Directory, tiles: SimilarTiles) {
        let fpr_of_all_levels = directory.options.promised_fpr(tiles.near_range.into());
        let fpr_of_level_zero = rate_of_level(fpr_of_all_levels, Level::Zero, tiles.highest_level);

        let tile_count = f64::from(tiles.count);
        let ranges_per_tile = f64::from(tiles.shape.slots());
        let ranges = tile_count * ranges_per_tile;
        self.tiles += tile_count;
        self.ranges += ranges;

        // A lookup of a key that no row has. Without a level above, it reads a page of each tile as
        // every lookup does, so not by mistake.
        self.false_positives += ranges * fpr_of_all_levels;
        let has_level_above = tiles.highest_level > Level::Zero;
        if has_level_above {
            let fpr_of_levels_above = fpr_of_all_levels / fpr_of_level_zero;
            self.index_pages += tile_count * fpr_of_levels_above;
        }

        // A lookup of a key that one range of a tile has: only level 0 can rule out the others.
        let other_ranges = ranges_per_tile - 1.0;
        self.false_positives_beside_match += tile_count * other_ranges * fpr_of_level_zero;
    }

    /// Adds what a lookup is expected to read because of a *run*: neighbouring tiles of level 0
    /// that have one shape.
    ///
    /// Levels were added while the table grew. So the first tiles of a run may have their keys on
    /// level 0 only. The tiles after them also have a filter of all of their keys on level 1, and
    /// the last ones have one on level 2 as well. Each of these three groups has its own false
    /// positive rates, and is added by itself. A group may be empty.
    ///
    /// Example: of a run of the tiles 10 to 29, level 1 has filters for the tiles from 4 on, and
    /// level 2 for those from 25 on. So no tile has level 0 only, 15 tiles have two levels, and 5
    /// tiles have three.
    fn add_run(&mut self, directory: &Directory, run: &TileRun) {
        let first_tile = run.first.ordinal;
        let end_tile = run.end_tile();

        let begin_level_one = directory
            .tiles_without_slot_above(Level::Zero)
            .clamp(first_tile, end_tile);
        let begin_level_two = match first_tile_below_level_two(directory) {
            Some(tile) => tile.clamp(begin_level_one, end_tile),
            None => end_tile,
        };

        let tiles_by_highest_level = [
            (Level::Zero, begin_level_one - first_tile),
            (Level::One, begin_level_two - begin_level_one),
            (Level::Two, end_tile - begin_level_two),
        ];
        for (highest_level, count) in tiles_by_highest_level {
            let shape = run.first.shape;
            let near_range = run.first.first_slot;
            self.add_tiles(directory, SimilarTiles { shape, near_range, count, highest_level });
        }
    }
}

impl Expectation {
    /// Returns what a lookup is expected to read: how many pages of the index, and how many ranges
    /// of the table by mistake. It is computed for an index whose filters all have the false
    /// positive rate that they were made for.
    ///
    /// The directory says where the *tiles* of the index are. A tile of level 0 has the Bloom
    /// filters of neighbouring ranges of the table. A tile of a level above has filters of whole
    /// tiles of the level below: a filter with all keys of each. The first tiles of each level have
    /// no such filter above them, so every lookup reads a page of each of these. It reads a page of
    /// another tile only if the filter above reports the tile. If no row has the key that is looked
    /// up, the filter does that by mistake.
    pub fn for_directory(directory: &Directory) -> Expectation {
        let metapage = 1.0;
        let tiles_always_read = f64::from(directory.always_probed());
        let mut sums = LevelZeroSums {
            index_pages: metapage + tiles_always_read,
            ..LevelZeroSums::default()
        };
        for run in &directory.runs[Level::Zero] {
            sums.add_run(directory, run);
        }
        // Added one by one: in another order the sum is rounded differently.
        let index_pages = level_one_fprs(directory).fold(sums.index_pages, |sum, fpr| sum + fpr);

        let mean_fpr = match directory.options.fpr {
            Some(chosen_fpr) => chosen_fpr,
            None if sums.ranges > 0.0 => sums.false_positives / sums.ranges,
            // An index without ranges: the rate of the first one that will come.
            None => directory.options.promised_fpr(0),
        };

        Expectation {
            index_pages,
            fpr: mean_fpr,
            beside_match: sums.false_positives_beside_match / sums.tiles.max(1.0),
        }
    }
}

/// Returns the false positive rate of each filter on level 2 that is for a tile of level 1: with
/// this probability a lookup of a key that no row has reads a page of the tile by mistake.
fn level_one_fprs(directory: &Directory) -> impl Iterator<Item = f64> {
    let first_with_filter = directory.tiles_without_slot_above(Level::One);
    let tiles_with_filter = directory.tiles_from(Level::One, first_with_filter);
    tiles_with_filter.map(|tile| {
        let range = first_range(directory, &tile);
        let fpr_of_all_levels = directory.options.promised_fpr(range.into());
        let highest_level = Level::Two;
        rate_of_level(fpr_of_all_levels, Level::Two, highest_level)
    })
}

/// Returns the first tile of level 0 whose keys are in a filter of level 2 as well; `None` if there
/// is none.
fn first_tile_below_level_two(directory: &Directory) -> Option<u32> {
    let first_of_level_one = directory.first_with_slot_above[Level::One]?;
    let tile_of_level_one = directory.tile(Level::One, first_of_level_one)?;
    // The slots of level 1 are numbered as the tiles of level 0.
    Some(tile_of_level_one.first_slot)
}

/// Returns the first range that has bits in a tile of level 1; 0 if that range is not known.
fn first_range(directory: &Directory, tile_of_level_one: &TileAddress) -> u32 {
    let tile_below = directory.tile(Level::Zero, tile_of_level_one.first_slot);
    tile_below.map_or(0, |tile| tile.first_slot)
}

/// Estimates how many distinct keys a range of the table has on average, from one tile: the one in
/// the middle of level 0, which has Bloom filters of up to 128 neighbouring ranges. Ranges without
/// keys don't count. Reads at most two pages of the tile.
///
/// Returns `None` if the index has no tile, or if none of these ranges has keys.
///
/// Fails with [`Damage`](super::Damage) if a page is not one of the tile, or if it can't be read.
pub fn mean_keys_per_range<P: Pages>(
    directory: &Directory,
    pages: &mut P,
) -> Result<Option<f64>, P::Error> {
    const MOST_PAGES: u32 = 2;
    let middle = directory.tile_count(Level::Zero) / 2;
    let Some(tile) = directory.tile(Level::Zero, middle) else {
        return Ok(None);
    };
    let fill = Fill::read(pages, &tile, MOST_PAGES)?;
    let keys_per_range = fill.slot_columns.slots().map(|columns| fill.keys(&columns));
    let of_ranges_with_keys = keys_per_range.filter(|&keys| keys > 0.0).collect::<List<_>>();
    Ok(mean(&of_ranges_with_keys))
}

/// What an index holds, by all of its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Ranges that have keys.
    pub ranges: u64,
    /// Their keys, each counted in every range that has it: an estimate.
    pub keys: f64,
    /// Bits of all tiles.
    pub bits: u64,
    /// The share of ranges with keys that are read by mistake for an absent key, by the present
    /// bits.
    pub fpr: f64,
    /// Ranges with so many keys that they are read by mistake much more often than promised.
    pub overfull: u64,
}

/// Sums over the ranges of the table that have keys. A [`Survey`] is computed from them.
#[derive(Default)]
struct SurveySums {
    ranges: u64,
    keys: f64,
    overfull: u64,
    /// How many of these ranges a lookup of a key that no row has reads by mistake, on average.
    false_positives: f64,
}

impl Survey {
    /// Returns what an index holds: how many ranges of the table have keys, how many keys they
    /// have, and how often a lookup of a key that no row has reports a range by mistake. Reads all
    /// pages of all tiles, and counts their bits.
    ///
    /// A tile of level 0 has the Bloom filters of neighbouring ranges of the table. A tile of a
    /// level above has filters (*slots*) of whole tiles of the level below. A lookup reads a tile
    /// only if the tile's filter on the level above reports the key. So the levels are read from
    /// the highest down, and each says which share of the lookups of absent keys read each tile of
    /// the level below.
    ///
    /// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
    /// can't be read.
    pub fn read<P: Pages>(directory: &Directory, pages: &mut P) -> Result<Survey, P::Error> {
        let all_pages = u32::MAX;
        let mut bits = 0;
        let mut sums = SurveySums::default();
        // For each slot of the level above, the share of lookups that read its tile of this level.
        // The highest level has no level above.
        let mut read_shares_of_slots_above: List<f64> = List::new();
        for level in Level::ALL.into_iter().rev() {
            let mut read_shares_of_slots = List::new();
            for tile in directory.tiles_from(level, 0) {
                let fill = Fill::read(pages, &tile, all_pages)?;
                let read_share = share_of_lookups(directory, &tile, &read_shares_of_slots_above);
                bits += bits_of_tile(&tile);
                if level == Level::Zero {
                    sums.add_ranges_of_tile(directory, &tile, &fill, read_share);
                } else {
                    for columns_of_slot in fill.slot_columns.slots() {
                        let read_share_of_slot = read_share * fill.rate(&columns_of_slot);
                        read_shares_of_slots.push(read_share_of_slot);
                    }
                }
            }
            read_shares_of_slots_above = read_shares_of_slots;
        }

        Ok(Survey {
            ranges: sums.ranges,
            keys: sums.keys,
            bits,
            fpr: sums.false_positives / sums.ranges.max(1) as f64,
            overfull: sums.overfull,
        })
    }
}

impl SurveySums {
    /// Adds the ranges of the table that have their Bloom filters in a tile of level 0 to the sums.
    /// Ranges without keys are left out. `fill` has the counts of the tile's bits.
    ///
    /// `read_share` is the share of the lookups of absent keys that read the tile: the levels above
    /// rule it out for the others. A range is read by mistake if the tile is read and its own
    /// columns report the key. Example: if one lookup in 50 reads the tile, and the range has a
    /// false positive rate of 1/200, one lookup in 10,000 reads the range.
    fn add_ranges_of_tile(
        &mut self,
        directory: &Directory,
        tile: &TileAddress,
        fill: &Fill,
        read_share: f64,
    ) {
        let most_keys_per_column = most_keys_per_column(directory, tile);
        // The keys of a range are in one column (Bloom filter), or spread over several.
        for columns_of_range in fill.slot_columns.slots() {
            let keys = fill.keys(&columns_of_range);
            if keys > 0.0 {
                let most_keys = most_keys_per_column * columns_of_range.len() as f64;
                let fpr_of_range = fill.rate(&columns_of_range);
                self.ranges += 1;
                self.keys += keys;
                self.overfull += u64::from(keys > most_keys);
                self.false_positives += fpr_of_range * read_share;
            }
        }
    }
}

/// Returns the share of lookups of absent keys that read a tile. A lookup reads it if the filter of
/// the tile on the level above, its slot, reports the key; `read_shares_of_slots_above` says how
/// often each slot does. The first tiles of a level have no such filter, and every lookup reads
/// them.
fn share_of_lookups(
    directory: &Directory,
    tile: &TileAddress,
    read_shares_of_slots_above: &[f64],
) -> f64 {
    let every_lookup = 1.0;
    let tiles_without_slot = directory.tiles_without_slot_above(tile.shape.level);
    if tile.ordinal < tiles_without_slot {
        return every_lookup;
    }

    // The first tile with a slot has the first slot of the level above.
    let slot = tile.ordinal - tiles_without_slot;
    let read_share = read_shares_of_slots_above.get(slot as usize);
    read_share.copied().unwrap_or(every_lookup)
}

/// Returns the bits of all pages of a tile.
fn bits_of_tile(tile: &TileAddress) -> u64 {
    let bits_per_page = tile.shape.size.block_bits() * MAX_WIDTH;
    u64::from(tile.shape.pages) * u64::from(bits_per_page)
}

/// Returns how many keys a range of the table may have before it counts as *overfull*: before
/// lookups report it by mistake much more often than the index promises, see [`OVERFULL`]. `tile`
/// is the tile of level 0 that has the keys of the range, in one column (Bloom filter) or spread
/// over several. The number of keys is that for each column.
fn most_keys_per_column(directory: &Directory, tile: &TileAddress) -> f64 {
    const PRECISION: f64 = 1e-4;

    let fpr_of_all_levels = directory.options.promised_fpr(tile.first_slot.into());
    let highest_level = directory.highest_level_of_tile(tile.ordinal);
    let promised = rate_of_level(fpr_of_all_levels, Level::Zero, highest_level);

    // Odds are r / (1 - r) for a rate r. They can be five times as high even where the rate can't.
    // Solving r / (1 - r) = OVERFULL · promised / (1 - promised) for r gives this.
    let most_rate = OVERFULL * promised / (1.0 + (OVERFULL - 1.0) * promised);
    let bits_of_column = tile.shape.blocks() as f64 * f64::from(tile.shape.block_bits());
    greatest_load(bits_of_column, PRECISION, |keys| tile.shape.rate(keys) <= most_rate)
}
