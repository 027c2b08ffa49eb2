//! What an index promises and holds, and what a lookup costs.

use super::directory::{Directory, TileRun};
use super::fill::Fill;
use super::rate::{mean, rate_of_level};
use super::shape::{Level, MAX_WIDTH};
use super::tile::TileAddress;
use crate::index::page::Pages;
use crate::memory;
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
    /// probes, one of each tile that the level above reports wrongly. A present key needs one more
    /// for each tile that has it, unless every lookup probes that tile. Directory pages are not
    /// counted: sessions keep their contents.
    pub index_pages: f64,
    /// The share of ranges that are read unnecessarily for an absent key.
    pub fpr: f64,
    /// How many ranges are read unnecessarily for each tile that has a key.
    pub beside_match: f64,
}

/// Sums over the tiles of level 0, from which an [`Expectation`] is computed.
struct LevelZeroSums {
    tiles: f64,
    ranges: f64,
    /// Ranges that are read unnecessarily for an absent key.
    wrong_ranges: f64,
    /// Ranges that a tile reports unnecessarily if it has the key, for all tiles together.
    beside_matches: f64,
    /// Pages of the index that are read for an absent key.
    index_pages: f64,
}

impl LevelZeroSums {
    /// Adds some tiles of a run, which is a list of neighbouring tiles of one shape, to the sums.
    /// `tiles` is their number. The keys in them have bits up to `highest_level`.
    fn add(&mut self, directory: &Directory, run: &TileRun, highest_level: Level, tiles: f64) {
        let slots = f64::from(run.first.shape.slots());
        let promised = directory.options.promised_fpr(run.first.first_slot.into());
        let rate_of_slot = rate_of_level(promised, Level::Zero, highest_level);

        self.tiles += tiles;
        self.ranges += tiles * slots;
        self.wrong_ranges += tiles * slots * promised;
        // Of a tile that has the key, all slots but one are wrong with the rate of level 0 alone.
        self.beside_matches += tiles * (slots - 1.0) * rate_of_slot;
        // The promise is the product of the rates of all levels. Without that of level 0 it is the
        // rate at which the levels above report a tile wrongly.
        if highest_level > Level::Zero {
            self.index_pages += tiles * promised / rate_of_slot;
        }
    }
}

impl Expectation {
    /// Returns what a lookup is expected to read of an index with this directory, and of its table.
    ///
    /// It is the sum over all tiles. A lookup of an absent key probes a tile of level 0 if level 1
    /// reports it wrongly, and a tile of level 1 if level 2 does; it always probes a tile that no
    /// level above has bits of.
    pub fn for_directory(directory: &Directory) -> Expectation {
        let metapage = 1.0;
        let mut sums = LevelZeroSums {
            tiles: 0.0,
            ranges: 0.0,
            wrong_ranges: 0.0,
            beside_matches: 0.0,
            index_pages: metapage + f64::from(directory.always_probed()),
        };
        for run in &directory.runs[Level::Zero] {
            // The first tiles of a run may have no level above them, the next ones level 1, and the
            // last ones level 2 as well.
            let first = run.first.ordinal;
            let end = run.end_tile();
            let first_below_one = directory.uncovered_tiles(Level::Zero).clamp(first, end);
            let first_below_two = first_tile_below_level_two(directory)
                .map_or(end, |tile| tile.clamp(first_below_one, end));
            sums.add(directory, run, Level::Zero, f64::from(first_below_one - first));
            sums.add(directory, run, Level::One, f64::from(first_below_two - first_below_one));
            sums.add(directory, run, Level::Two, f64::from(end - first_below_two));
        }

        let first_covered = directory.uncovered_tiles(Level::One);
        for tile in directory.tiles_from(Level::One, first_covered) {
            let range = first_range(directory, &tile);
            let promised = directory.options.promised_fpr(range.into());
            sums.index_pages += rate_of_level(promised, Level::Two, Level::Two);
        }

        let mean_fpr = if sums.ranges > 0.0 {
            sums.wrong_ranges / sums.ranges
        } else {
            directory.options.promised_fpr(0)
        };
        Expectation {
            index_pages: sums.index_pages,
            fpr: directory.options.fpr.unwrap_or(mean_fpr),
            beside_match: sums.beside_matches / sums.tiles.max(1.0),
        }
    }
}

/// Returns the first tile of level 0 that has bits on level 2 as well; `None` if there is none.
fn first_tile_below_level_two(directory: &Directory) -> Option<u32> {
    let first_covered = directory.first_covered[Level::One]?;
    let tile_of_level_one = directory.tile(Level::One, first_covered)?;
    Some(tile_of_level_one.first_slot)
}

/// Returns the first range that has bits in a tile of level 1; 0 if that range is not known.
fn first_range(directory: &Directory, tile_of_level_one: &TileAddress) -> u32 {
    let tile_below = directory.tile(Level::Zero, tile_of_level_one.first_slot);
    tile_below.map_or(0, |tile| tile.first_slot)
}

/// Returns how many distinct keys a range has on average, by a sample: a page or two of the tile in
/// the middle, which has the keys of up to 128 ranges. `None` if these have no keys.
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
    let of_ranges_with_keys = memory::collect(keys_per_range.filter(|&keys| keys > 0.0));
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
    /// The share of ranges with keys that are read unnecessarily for an absent key, by the present
    /// bits.
    pub fpr: f64,
    /// Ranges with so many keys that they are read unnecessarily much more often than promised.
    pub overfull: u64,
}

impl Survey {
    /// Reads all pages of all tiles, and counts their bits: those of level 0 say how many keys each
    /// range has, and those of the levels above how often a tile below is probed.
    ///
    /// Fails with [`Damage`](super::Damage) if a page is not what the directory says, or if a page
    /// can't be read.
    pub fn read<P: Pages>(directory: &Directory, pages: &mut P) -> Result<Survey, P::Error> {
        let mut survey = Survey::default();
        // How often a lookup of an absent key probes each tile of a level that has a slot above, as
        // a share of the lookups.
        let mut probe_rates: Vec<f64> = Vec::new();
        for level in Level::ALL.into_iter().rev() {
            let mut probe_rates_below = Vec::new();
            for tile in directory.tiles_from(level, 0) {
                let fill = Fill::read(pages, &tile, u32::MAX)?;
                let slot_above = tile.ordinal.checked_sub(directory.uncovered_tiles(level));
                // Every lookup probes a tile without a slot above.
                let probe_rate = slot_above
                    .and_then(|slot| probe_rates.get(slot as usize).copied())
                    .unwrap_or(1.0);

                survey.bits += bits_of_tile(&tile);
                if level == Level::Zero {
                    survey.add_ranges(directory, &tile, &fill, probe_rate);
                } else {
                    for columns in fill.slot_columns.slots() {
                        memory::push(&mut probe_rates_below, probe_rate * fill.rate(&columns));
                    }
                }
            }
            probe_rates = probe_rates_below;
        }

        survey.fpr /= survey.ranges.max(1) as f64;
        Ok(survey)
    }

    /// Adds the ranges of a tile of level 0, which lookups of absent keys probe at this rate. Until
    /// all ranges were added, [`Survey::fpr`] is the sum of their rates.
    fn add_ranges(
        &mut self,
        directory: &Directory,
        tile: &TileAddress,
        fill: &Fill,
        probe_rate: f64,
    ) {
        let most_keys_per_column = most_keys_per_column(directory, tile);
        for columns in fill.slot_columns.slots() {
            let keys = fill.keys(&columns);
            if keys > 0.0 {
                let is_overfull = keys > most_keys_per_column * columns.len() as f64;
                self.ranges += 1;
                self.keys += keys;
                self.overfull += u64::from(is_overfull);
                self.fpr += fill.rate(&columns) * probe_rate;
            }
        }
    }
}

/// Returns the bits of all pages of a tile.
fn bits_of_tile(tile: &TileAddress) -> u64 {
    let bits_per_page = tile.shape.size.block_bits() * MAX_WIDTH;
    u64::from(tile.shape.pages) * u64::from(bits_per_page)
}

/// Returns the most keys of a column in a tile of level 0 with which its range is not overfull.
fn most_keys_per_column(directory: &Directory, tile: &TileAddress) -> f64 {
    let promised = directory.options.promised_fpr(tile.first_slot.into());
    let highest_level = directory.highest_level(tile.ordinal);
    let rate_of_tile = rate_of_level(promised, Level::Zero, highest_level);

    // The rate r with r / (1 - r) = OVERFULL · p / (1 - p), p being the promised one: odds can be
    // five times as high even where the rate can't.
    let most_rate = OVERFULL * rate_of_tile / (1.0 + (OVERFULL - 1.0) * rate_of_tile);
    let bits = tile.shape.blocks() as f64 * f64::from(tile.shape.block_bits());
    greatest_load(bits, 1e-4, |keys| tile.shape.rate(keys) <= most_rate)
}
