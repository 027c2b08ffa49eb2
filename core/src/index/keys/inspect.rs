//! What an index promises and holds, and what a lookup costs.

use super::directory::Directory;
use super::fill::Fill;
use super::level::Level;
use super::rate::{MAX_PART_FPR, MIN_FPR, split};
use super::tile::{MAX_WIDTH, TileAddress, TileShape};
use crate::index::page::Pages;
use crate::memory;
use crate::sizing::search::greatest_load;

/// A range is overfull if its elements lead one to expect a rate that is higher than promised by this factor. The rate
/// of its bits varies too much to be judged, since it has few blocks. In a tile that keeps its rate as a whole, a range
/// with a quarter more elements than the others may have four times their rate.
const OVERFULL: f64 = 5.0;

/// What a lookup is expected to read, if every tile keeps its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Pages of the index for an absent key: the metapage, one page of each tile that every lookup probes, one of each
    /// tile that level 1 reports wrongly. A present key needs one more for each tile that has it, unless every lookup
    /// probes that tile. Directory pages are not counted: sessions keep their contents.
    pub pages: f64,
    /// The share of ranges that are read unnecessarily for an absent key.
    pub fpr: f64,
    /// How many ranges are read unnecessarily for each tile that has a key.
    pub beside_present: f64,
}

/// What the bits of an index say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Ranges that have elements.
    pub ranges: u64,
    /// An estimate of their elements, each counted in every range that has it.
    pub elements: f64,
    /// Bits of all tiles.
    pub bits: u64,
    /// The share of ranges with elements that are read unnecessarily for an absent key, by the present bits.
    pub fpr: f64,
    /// Ranges with so many elements that their rate is expected to be over five times the promised one.
    pub overfull: u64,
}

impl Survey {
    /// Bits per element.
    pub fn bits_per_element(&self) -> f64 {
        self.bits as f64 / self.elements.max(1.0)
    }
}

impl Directory {
    /// What a lookup is expected to read.
    pub fn expectation(&self) -> Expectation {
        let fpr = self.options.fpr.clamp(MIN_FPR, MAX_PART_FPR);
        let (below, above) = split(fpr);
        let always = f64::from(self.tiles_alone()) + f64::from(self.tiles(Level::One));
        let covered = f64::from(self.tiles(Level::Zero) - self.tiles_alone());
        let rate = if covered > 0.0 { below } else { fpr };
        Expectation { pages: 1.0 + always + covered * above, fpr, beside_present: f64::from(MAX_WIDTH - 1) * rate }
    }

    /// How many distinct elements a range has, in the mean of a sample: a page or two of the tile in the middle, which
    /// has those of up to 128 ranges. `None` if these have no elements.
    ///
    /// # Errors
    /// As [`Directory::survey`].
    pub fn elements_per_range<P: Pages>(&self, pages: &mut P) -> Result<Option<f64>, P::Error> {
        const PAGES: u32 = 2;
        let Some(tile) = self.tile(Level::Zero, self.tiles(Level::Zero) / 2) else { return Ok(None) };
        let loads = Fill::of(pages, &tile, PAGES)?.loads();
        let (sum, count) =
            loads.iter().filter(|&&load| load > 0.0).fold((0.0, 0.0), |(s, n), load| (s + load, n + 1.0));
        Ok((count > 0.0).then(|| sum / count))
    }

    /// Counts the bits of all tiles: reads every page of the index that has any.
    ///
    /// # Errors
    /// [`super::Damage`] for a page that is not what it should be; those of reading.
    pub fn survey<P: Pages>(&self, pages: &mut P) -> Result<Survey, P::Error> {
        // The rates at which lookups probe the tiles of level 0 that have a slot in level 1.
        let mut probed = Vec::new();
        let mut survey = Survey::default();
        for tile in self.tiles_from(Level::One, 0) {
            let fill = Fill::of(pages, &tile, u32::MAX)?;
            survey.bits += tile.shape.blocks() * u64::from(tile.size.block_bits() * tile.shape.width.slots());
            (0..tile.shape.width.slots()).for_each(|slot| memory::push(&mut probed, fill.rate(slot as u8)));
        }
        let (below, _) = split(self.options.fpr);
        let mut known = None;
        for tile in self.tiles_from(Level::Zero, 0) {
            let fill = Fill::of(pages, &tile, u32::MAX)?;
            survey.bits += tile.shape.blocks() * u64::from(tile.size.block_bits() * tile.shape.width.slots());
            let covered = tile.ordinal.checked_sub(self.tiles_alone());
            let (probed, promised) = match covered {
                Some(slot) => (probed.get(slot as usize).copied().unwrap_or(1.0), below),
                None => (1.0, self.options.fpr),
            };
            let limit = most_elements(&mut known, &tile, promised * OVERFULL);
            for slot in (0..tile.shape.width.slots() as u8).filter(|&slot| fill.ones(slot) > 0) {
                let elements = fill.elements(slot);
                survey.ranges += 1;
                survey.elements += elements;
                survey.fpr += fill.rate(slot) * probed;
                survey.overfull += u64::from(elements > limit);
            }
        }
        survey.fpr /= survey.ranges.max(1) as f64;
        Ok(survey)
    }
}

/// The most elements with which a slot of a tile has at most this rate; `known` is the last answer.
fn most_elements(known: &mut Option<(TileShape, f64, f64)>, tile: &TileAddress, rate: f64) -> f64 {
    if let Some((shape, r, most)) = *known
        && (shape, r) == (tile.shape, rate)
    {
        return most;
    }
    if rate >= 1.0 {
        return f64::INFINITY;
    }
    let bits = tile.shape.blocks() as f64 * f64::from(tile.size.block_bits());
    let most = greatest_load(bits, 1e-4, |elements| tile.shape.rate(tile.size, elements) <= rate);
    *known = Some((tile.shape, rate, most));
    most
}
