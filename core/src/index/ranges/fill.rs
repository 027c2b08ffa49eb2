//! How full the columns of a tile are, and estimates of their elements from the bits.
//!
//! ```text
//! share of clear bits of a column with n elements     (1 - (1 - q^k) / B)^n        q = 1 - 1/510
//! elements, from the share f of set bits              ln(1 - f) / ln(1 - (1 - q^k) / B)
//! rate now                                            mean over blocks of f^k
//! ```
//!
//! Elements are spread evenly over the pages of a tile, so a few pages of a large tile suffice.

use super::shape::{Columns, MAX_WIDTH, TileShape};
use super::tile::TileAddress;
use crate::index::page::{Damage, PageNumber, PageSize, Pages};
use std::ops::Range;

/// Set bits of the columns of a tile, in those of its pages that were counted.
#[derive(Clone, Debug)]
pub struct Fill {
    shape: TileShape,
    size: PageSize,
    /// Blocks that were counted.
    blocks: u64,
    columns: Columns,
    /// Bits that are set, column by column.
    ones: [u64; MAX_WIDTH as usize],
    /// The sum over blocks of the rate of each.
    rates: [f64; MAX_WIDTH as usize],
}

/// The bits of a byte as eight counters of a byte each, the first bit's in the highest.
fn counters_of(byte: u8) -> u64 {
    u64::from(byte).wrapping_mul(0x8040_2010_0804_0201) >> 7 & 0x0101_0101_0101_0101
}

/// How many bits of each column are set in a block, in rows of so many bytes.
fn ones_of(block: &[u8], bytes: usize) -> [u16; MAX_WIDTH as usize] {
    let mut ones = [0u16; MAX_WIDTH as usize];
    // A counter of a byte has room for so many rows.
    for rows in block.chunks(usize::from(u8::MAX) * bytes) {
        let mut counters = [0u64; MAX_WIDTH as usize / 8];
        for row in rows.chunks_exact(bytes) {
            for (counter, &byte) in counters.iter_mut().zip(row) {
                *counter += counters_of(byte);
            }
        }
        for (ones, counts) in ones.as_chunks_mut::<8>().0.iter_mut().zip(counters) {
            for (ones, count) in ones.iter_mut().zip(counts.to_be_bytes()) {
                *ones += u16::from(count);
            }
        }
    }
    ones
}

/// An estimate of the distinct elements of a column with `ones` of `bits` bits set; a lower bound if all are.
pub(super) fn elements(shape: TileShape, size: PageSize, bits: f64, ones: f64) -> f64 {
    let clear = (bits - ones).max(0.5) / bits;
    let stays = (1.0 - 1.0 / f64::from(shape.block_bits(size))).powi(i32::from(shape.num_hashes));
    clear.ln() / (-(1.0 - stays) / shape.blocks() as f64).ln_1p()
}

impl Fill {
    /// Reads at most so many of a tile's pages, evenly spread. Errors: [`Damage`]; those of reading.
    pub fn of<P: Pages>(pages: &mut P, tile: &TileAddress, most: u32) -> Result<Fill, P::Error> {
        const MOST: usize = MAX_WIDTH as usize;
        let TileAddress { shape, size, .. } = *tile;
        let columns = Columns::even(shape.width, shape.columns_per_slot);
        let mut fill = Fill { shape, size, blocks: 0, columns, ones: [0; MOST], rates: [0.0; MOST] };
        let read = shape.pages.min(most.max(1));
        for i in 0..read {
            let at = tile.first_page + (u64::from(i) * u64::from(shape.pages) / u64::from(read)) as u32;
            pages.with(at, |page| fill.add(tile.payload(page, at)?, at))??;
        }
        Ok(fill)
    }

    /// Counts the bits of one of its pages; without a payload it has none.
    fn add(&mut self, payload: Option<&[u8]>, page: PageNumber) -> Result<(), Damage> {
        let (bytes, bits) = (self.shape.width.bytes(), self.shape.block_bits(self.size));
        self.blocks += u64::from(self.shape.width.blocks_per_page());
        for block in payload.unwrap_or(&[]).chunks_exact(self.size.block_bits() as usize * bytes) {
            let (rows, last_row) = block.split_at(bits as usize * bytes);
            if !last_row.is_empty() {
                self.columns = Columns::read(self.shape, last_row, page)?;
            }
            let ones = ones_of(rows, bytes);
            let columns = self.shape.width.columns() as usize;
            for ((&ones, sum), rate) in ones.iter().zip(&mut self.ones).zip(&mut self.rates).take(columns) {
                *sum += u64::from(ones);
                let fill = f64::from(ones) / f64::from(bits);
                *rate += fill.powi(i32::from(self.shape.num_hashes));
            }
        }
        Ok(())
    }

    /// The columns of each slot.
    pub fn slots(&self) -> impl Iterator<Item = Range<u32>> {
        self.columns.slots()
    }

    /// An estimate of the distinct elements of a column; a lower bound if all of its bits are set.
    pub fn elements(&self, column: u32) -> f64 {
        let ones = self.ones[column as usize] as f64;
        if ones == 0.0 {
            return 0.0;
        }
        elements(self.shape, self.size, self.blocks as f64 * f64::from(self.shape.block_bits(self.size)), ones)
    }

    /// The false positive rate that a slot with these columns has now.
    pub fn rate(&self, columns: Range<u32>) -> f64 {
        let (count, first, end) = (columns.len() as f64, columns.start as usize, columns.end as usize);
        self.rates[first..end].iter().sum::<f64>() / count / self.blocks.max(1) as f64
    }

    /// An estimate of the elements of each column.
    pub fn loads(&self) -> Vec<f64> {
        (0..self.shape.width.columns()).map(|column| self.elements(column)).collect()
    }
}

#[cfg(test)]
mod tests;
