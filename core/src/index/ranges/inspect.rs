//! What an index promises and holds, and what a lookup costs.

use super::directory::Directory;
use super::fill::Fill;
use super::rate::{mean, share};
use super::shape::{Level, MAX_WIDTH};
use super::tile::TileAddress;
use crate::index::page::Pages;
use crate::memory;
use crate::sizing::greatest_load;

/// A range is overfull if, for its number of elements, the expected odds of a false positive are
/// higher than promised by this factor. The rate of its bits varies too much to be judged, since it
/// has few blocks. In a tile that keeps its rate as a whole, a range with a quarter more elements
/// than the others may have four times their rate.
const OVERFULL: f64 = 5.0;

/// What a lookup is expected to read, if every tile keeps its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Pages of the index for an absent key: the metapage, one page of each tile that every lookup
    /// probes, one of each tile that the level above reports wrongly. A present key needs one more
    /// for each tile that has it, unless every lookup probes that tile. Directory pages are not
    /// counted: sessions keep their contents.
    pub pages: f64,
    /// The share of ranges that are read unnecessarily for an absent key.
    pub fpr: f64,
    /// How many ranges are read unnecessarily for each tile that has a key.
    pub beside_present: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Ranges that have elements.
    pub ranges: u64,
    /// Their elements, each counted in every range that has it: an estimate.
    pub elements: f64,
    /// Bits of all tiles.
    pub bits: u64,
    /// The share of ranges with elements that are read unnecessarily for an absent key, by the
    /// present bits.
    pub fpr: f64,
    pub overfull: u64,
}

impl Directory {
    pub fn expectation(&self) -> Expectation {
        let mut expected = Expectation {
            pages: 1.0 + f64::from(self.always_probed()),
            fpr: 0.0,
            beside_present: 0.0,
        };
        let (mut ranges, mut tiles) = (0.0, 0.0);
        // From tile to tile of level 0 the highest level above it rises.
        let first_of_two =
            self.covered_from[Level::One as usize].and_then(|first| self.tile(Level::One, first));
        for run in &self.levels[Level::Zero as usize] {
            let TileAddress { shape, first_slot, ordinal, .. } = run.first;
            let (slots, fpr) = (f64::from(shape.slots()), self.options.promised(first_slot.into()));
            let end = run.end_tile();
            let one = self.tiles_alone(Level::Zero).clamp(ordinal, end);
            let two = first_of_two.map_or(end, |tile| tile.first_slot.clamp(one, end));
            for (top, count) in Level::ALL
                .into_iter()
                .zip([one - ordinal, two - one, end - two].map(f64::from))
            {
                let rate = share(fpr, Level::Zero, top);
                expected.fpr += count * slots * fpr;
                expected.beside_present += count * (slots - 1.0) * rate;
                expected.pages += if top == Level::Zero { 0.0 } else { count * fpr / rate };
                (ranges, tiles) = (ranges + count * slots, tiles + count);
            }
        }
        for tile in self.tiles_from(Level::One, self.tiles_alone(Level::One)) {
            let range = self
                .tile(Level::Zero, tile.first_slot)
                .map_or(0, |below| below.first_slot);
            expected.pages += share(self.options.promised(range.into()), Level::Two, Level::Two);
        }
        let promised = if ranges > 0.0 { expected.fpr / ranges } else { self.options.promised(0) };
        expected.fpr = self.options.fpr.unwrap_or(promised);
        expected.beside_present /= f64::max(tiles, 1.0);
        expected
    }

    /// How many distinct elements a range has, in the mean of a sample: a page or two of the tile
    /// in the middle, which has those of up to 128 ranges. `None` if these have no elements.
    /// Errors: as [`Directory::survey`].
    pub fn elements_per_range<P: Pages>(&self, pages: &mut P) -> Result<Option<f64>, P::Error> {
        const PAGES: u32 = 2;
        let Some(tile) = self.tile(Level::Zero, self.tiles(Level::Zero) / 2) else {
            return Ok(None);
        };
        let fill = Fill::of(pages, &tile, PAGES)?;
        let loads = fill.columns.slots().map(|columns| fill.elements(&columns));
        Ok(mean(&memory::collect(loads.filter(|&load| load > 0.0))))
    }

    /// Counts the bits of all tiles: reads all of their pages. Errors: [`super::Damage`]; those of
    /// reading.
    pub fn survey<P: Pages>(&self, pages: &mut P) -> Result<Survey, P::Error> {
        // The rates at which lookups probe the tiles of the level below that have a slot in this
        // one.
        let mut probed: Vec<f64> = Vec::new();
        let mut survey = Survey::default();
        for level in Level::ALL.into_iter().rev() {
            let mut below = Vec::new();
            for tile in self.tiles_from(level, 0) {
                let fill = Fill::of(pages, &tile, u32::MAX)?;
                survey.bits += u64::from(tile.shape.pages)
                    * u64::from(tile.shape.size.block_bits() * MAX_WIDTH);
                let covered = tile.ordinal.checked_sub(self.tiles_alone(level));
                let rate =
                    covered.map_or(1.0, |slot| probed.get(slot as usize).copied().unwrap_or(1.0));
                if level > Level::Zero {
                    fill.columns
                        .slots()
                        .for_each(|columns| memory::push(&mut below, rate * fill.rate(&columns)));
                    continue;
                }
                let most = self.most_elements(&tile);
                for columns in fill.columns.slots() {
                    let elements = fill.elements(&columns);
                    if elements > 0.0 {
                        survey.ranges += 1;
                        survey.elements += elements;
                        survey.overfull += u64::from(elements > most * columns.len() as f64);
                        survey.fpr += fill.rate(&columns) * rate;
                    }
                }
            }
            probed = below;
        }
        survey.fpr /= survey.ranges.max(1) as f64;
        Ok(survey)
    }

    /// The most elements of a column in a tile of ranges that are not too many.
    fn most_elements(&self, tile: &TileAddress) -> f64 {
        let promised = self.options.promised(tile.first_slot.into());
        let own = share(promised, Level::Zero, self.top(tile.ordinal));
        let rate = OVERFULL * own / (1.0 + (OVERFULL - 1.0) * own);
        let bits = tile.shape.blocks() as f64 * f64::from(tile.shape.block_bits());
        greatest_load(bits, 1e-4, |elements| tile.shape.rate(elements) <= rate)
    }
}
