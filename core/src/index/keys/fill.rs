//! How full the slots of a tile are, and estimates of their elements from the bits.
//!
//! ```text
//! share of clear bits of a slot with n elements       (1 - (1 - q^k) / B)^n        q = 1 - 1/510
//! elements, from the share f of set bits              ln(1 - f) / ln(1 - (1 - q^k) / B)
//! rate now                                            mean over blocks of f^k
//! ```
//!
//! Elements are spread evenly over the pages of a tile, so a few pages of a large tile suffice.

use super::tile::{MAX_WIDTH, TileAddress, TileShape};
use crate::index::page::{Damage, PageSize, Pages};

/// Set bits of the slots of a tile, in those of its pages that were counted.
#[derive(Clone, Debug)]
pub struct Fill {
    shape: TileShape,
    size: PageSize,
    /// Blocks that were counted.
    blocks: u64,
    /// Bits that are set, slot by slot.
    ones: [u64; MAX_WIDTH as usize],
    /// The sum over blocks of the rate of each.
    rates: [f64; MAX_WIDTH as usize],
}

/// An estimate of the distinct elements of a slot of which `ones` of `bits` bits are set. If all are, it is only a
/// lower bound.
pub(super) fn elements(shape: TileShape, size: PageSize, bits: f64, ones: f64) -> f64 {
    let clear = (bits - ones).max(0.5) / bits;
    let stays = (1.0 - 1.0 / f64::from(size.block_bits())).powi(i32::from(shape.num_hashes));
    clear.ln() / (-(1.0 - stays) / shape.blocks() as f64).ln_1p()
}

impl Fill {
    /// That of no pages.
    pub fn new(tile: &TileAddress) -> Fill {
        const SLOTS: usize = MAX_WIDTH as usize;
        Fill { shape: tile.shape, size: tile.size, blocks: 0, ones: [0; SLOTS], rates: [0.0; SLOTS] }
    }

    /// Reads at most so many of a tile's pages, evenly spread.
    ///
    /// # Errors
    /// [`Damage`] for a page that is not of this tile; those of reading.
    pub fn of<P: Pages>(pages: &mut P, tile: &TileAddress, most: u32) -> Result<Fill, P::Error> {
        let mut fill = Fill::new(tile);
        let read = tile.shape.pages.min(most.max(1));
        for i in 0..read {
            let at = tile.first_page + (u64::from(i) * u64::from(tile.shape.pages) / u64::from(read)) as u32;
            pages.with(at, |page| {
                fill.add(tile.payload(page, at)?);
                Ok::<_, Damage>(())
            })??;
        }
        Ok(fill)
    }

    /// Counts the bits of one of its pages; `None` is a page without bits.
    pub fn add(&mut self, payload: Option<&[u8]>) {
        let bytes = self.shape.width.bytes();
        self.blocks += u64::from(self.shape.width.blocks_per_page());
        let slots = self.shape.width.slots() as usize;
        for block in payload.unwrap_or(&[]).chunks_exact(self.size.block_bits() as usize * bytes) {
            let mut ones = [0u16; MAX_WIDTH as usize];
            for row in block.chunks_exact(bytes) {
                for (byte, ones) in row.iter().zip(ones.as_chunks_mut::<8>().0) {
                    for (bit, ones) in ones.iter_mut().enumerate() {
                        *ones += u16::from(byte >> bit & 1);
                    }
                }
            }
            for ((&ones, sum), rate) in ones.iter().zip(&mut self.ones).zip(&mut self.rates).take(slots) {
                *sum += u64::from(ones);
                let fill = f64::from(ones) / f64::from(self.size.block_bits());
                *rate += fill.powi(i32::from(self.shape.num_hashes));
            }
        }
    }

    /// Bits of a slot that were counted.
    fn bits(&self) -> f64 {
        self.blocks as f64 * f64::from(self.size.block_bits())
    }

    /// The bits that are set for a slot.
    pub fn ones(&self, slot: u8) -> u64 {
        self.ones[usize::from(slot)]
    }

    /// An estimate of the distinct elements of a slot. If all of its bits are set, the estimate is only a lower bound.
    pub fn elements(&self, slot: u8) -> f64 {
        let ones = self.ones(slot) as f64;
        if ones == 0.0 {
            return 0.0;
        }
        elements(self.shape, self.size, self.bits(), ones)
    }

    /// The false positive rate that a slot has now.
    pub fn rate(&self, slot: u8) -> f64 {
        if self.blocks == 0 { 0.0 } else { self.rates[usize::from(slot)] / self.blocks as f64 }
    }

    /// An estimate of the elements of each slot.
    pub fn loads(&self) -> Vec<f64> {
        (0..self.shape.width.slots()).map(|slot| self.elements(slot as u8)).collect()
    }
}
