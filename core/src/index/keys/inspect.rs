//! What an index promises, what it holds, and what a question costs.

use super::address::Level;
use super::directory::Directory;
use super::fill::Fill;
use super::rate::{MAX_FPR, MIN_FPR, split};
use super::tile::{MAX_WIDTH, TileAddress, TileShape};
use crate::index::page::Pages;

/// A range is overfull when it has so many elements that the rate expected of it is so many times what was promised.
/// Its rate itself varies too much to be judged, as its blocks are few; and where the tile as a whole keeps its rate, a
/// range with a quarter more elements than the others may have four times as much.
const OVERFULL: f64 = 5.0;

/// What a question is expected to read, if every tile keeps its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Pages of the index for a key that is absent: the metapage, those of tiles that every question asks, those of
    /// tiles that level 1 reports wrongly. A key that is present reads one more for each tile that has it, if that is
    /// not always asked. Directory pages are not counted: sessions keep what they read of them.
    pub pages: f64,
    /// The share of ranges that are read in vain for an absent key.
    pub fpr: f64,
    /// How many ranges are read in vain for each tile that has a key.
    pub beside_present: f64,
}

/// What the bits of an index say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Ranges that have elements.
    pub ranges: u64,
    /// Their elements, each counted in every range that has it; an estimate.
    pub elements: f64,
    /// Bits of all tiles.
    pub bits: u64,
    /// The share of ranges with elements that are read in vain for an absent key, as the bits are now.
    pub fpr: f64,
    /// Ranges with more elements than give five times the rate that was promised for them.
    pub overfull: u64,
}

impl Survey {
    /// Bits per element.
    pub fn bits_per_element(&self) -> f64 {
        self.bits as f64 / self.elements.max(1.0)
    }
}

impl Directory {
    /// What a question is expected to read.
    pub fn expectation(&self) -> Expectation {
        let fpr = self.options.fpr.clamp(MIN_FPR, MAX_FPR);
        let (below, above) = split(fpr);
        let asked = f64::from(self.tiles_alone()) + f64::from(self.tiles(Level::One));
        let covered = f64::from(self.tiles(Level::Zero) - self.tiles_alone());
        let rate = if covered > 0.0 { below } else { fpr };
        Expectation { pages: 1.0 + asked + covered * above, fpr, beside_present: f64::from(MAX_WIDTH - 1) * rate }
    }

    /// Counts the bits of all tiles: reads every page of the index that has any.
    ///
    /// # Errors
    /// [`super::Damage`] for a page that is not what it should be; those of reading.
    pub fn survey<P: Pages>(&self, pages: &mut P) -> Result<Survey, P::Error> {
        // The rates at which tiles of level 0 are asked, from the first that is not asked always.
        let mut asked = Vec::new();
        let mut survey = Survey::default();
        for tile in self.tiles_from(Level::One, 0) {
            let fill = Fill::of(pages, &tile, u32::MAX)?;
            survey.bits += tile.shape.blocks() * u64::from(tile.size.block_bits() * tile.shape.width.slots());
            asked.extend((0..tile.shape.width.slots()).map(|slot| fill.rate(slot as u8)));
        }
        let (below, _) = split(self.options.fpr);
        let mut known = None;
        for tile in self.tiles_from(Level::Zero, 0) {
            let fill = Fill::of(pages, &tile, u32::MAX)?;
            survey.bits += tile.shape.blocks() * u64::from(tile.size.block_bits() * tile.shape.width.slots());
            let covered = tile.ordinal.checked_sub(self.tiles_alone());
            let (asked, promised) = match covered {
                Some(slot) => (asked.get(slot as usize).copied().unwrap_or(1.0), below),
                None => (1.0, self.options.fpr),
            };
            let limit = most_elements(&mut known, &tile, promised * OVERFULL);
            for slot in (0..tile.shape.width.slots() as u8).filter(|&slot| fill.ones(slot) > 0) {
                let elements = fill.elements(slot);
                survey.ranges += 1;
                survey.elements += elements;
                survey.fpr += fill.rate(slot) * asked;
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
    // So many elements throw twice as often as there are bits.
    let (mut enough, mut too_many) = (0.0, tile.shape.blocks() as f64 * f64::from(tile.size.block_bits()) * 2.0);
    while too_many - enough > 0.5 + enough * 1e-4 {
        let middle = (enough + too_many) / 2.0;
        if tile.shape.rate(tile.size, middle) <= rate {
            enough = middle;
        } else {
            too_many = middle;
        }
    }
    *known = Some((tile.shape, rate, enough));
    enough
}
