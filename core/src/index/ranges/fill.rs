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
use crate::index::page::{Damage, Pages};
use crate::memory;
use std::ops::Range;

/// The columns of a tile, by the bits of some of its pages.
#[derive(Clone, Debug)]
pub struct Fill {
    pub columns: Columns,
    /// An estimate of the distinct elements of each column; a lower bound if all of its bits are
    /// set.
    pub loads: Vec<f64>,
    /// Blocks that were counted.
    blocks: f64,
    /// The sum over blocks of the rate of each column there.
    rates: [f64; MAX_WIDTH as usize],
}

/// How many bits of each column are set in a block, in rows of so many bytes.
fn ones_of(block: &[u8], bytes: usize) -> [u16; MAX_WIDTH as usize] {
    let mut ones = [0u16; MAX_WIDTH as usize];
    // A counter of a byte has room for so many rows.
    for rows in block.chunks(usize::from(u8::MAX) * bytes) {
        let mut counters = [0u64; MAX_WIDTH as usize / 8];
        for row in rows.chunks_exact(bytes) {
            for (counter, &byte) in counters.iter_mut().zip(row) {
                // The bits of a byte as eight counters of a byte each, the first bit's in the
                // highest.
                *counter += u64::from(byte).wrapping_mul(0x8040_2010_0804_0201) >> 7
                    & 0x0101_0101_0101_0101;
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

/// An estimate of the distinct elements of a column with `ones` of `bits` bits set; a lower bound
/// if all are.
pub(super) fn elements(shape: TileShape, bits: f64, ones: f64) -> f64 {
    let clear = (bits - ones).max(0.5) / bits;
    let stays = (1.0 - 1.0 / f64::from(shape.block_bits())).powi(i32::from(shape.num_hashes));
    clear.ln() / (-(1.0 - stays) / shape.blocks() as f64).ln_1p()
}

impl Fill {
    /// Reads at most so many of a tile's pages, evenly spread. Errors: [`Damage`]; those of
    /// reading.
    pub fn of<P: Pages>(pages: &mut P, tile: &TileAddress, most: u32) -> Result<Fill, P::Error> {
        let shape = tile.shape;
        let (width, bytes, bits) =
            (shape.width.columns() as usize, shape.width.bytes(), shape.block_bits());
        let mut columns = Columns::even(shape.width, shape.columns_per_slot);
        let (mut ones, mut rates) = ([0; MAX_WIDTH as usize], [0.0; MAX_WIDTH as usize]);
        let read = shape.pages.min(most.max(1));
        for i in 0..read {
            let at =
                tile.first_page + (u64::from(i) * u64::from(shape.pages) / u64::from(read)) as u32;
            pages.with(at, |page| {
                let payload = tile.payload(page, at)?.unwrap_or(&[]);
                for block in payload.chunks_exact(shape.size.block_bits() as usize * bytes) {
                    let (rows, last_row) = block.split_at(bits as usize * bytes);
                    if !last_row.is_empty() {
                        columns = Columns::read(shape, last_row, at)?;
                    }
                    let of_block = ones_of(rows, bytes).into_iter().take(width);
                    for ((own, sum), rate) in of_block.zip(&mut ones).zip(&mut rates) {
                        *sum += u64::from(own);
                        *rate +=
                            (f64::from(own) / f64::from(bits)).powi(i32::from(shape.num_hashes));
                    }
                }
                Ok::<_, Damage>(())
            })??;
        }
        let blocks = u64::from(read) * u64::from(shape.width.blocks_per_page());
        let all = blocks as f64 * f64::from(bits);
        let load = |&ones: &u64| if ones == 0 { 0.0 } else { elements(shape, all, ones as f64) };
        Ok(Fill {
            columns,
            loads: memory::collect(ones[..width].iter().map(load)),
            blocks: blocks as f64,
            rates,
        })
    }

    /// An estimate of the distinct elements of a slot with these columns.
    pub fn elements(&self, columns: &Range<u32>) -> f64 {
        self.loads[columns.start as usize..columns.end as usize].iter().sum()
    }

    /// The false positive rate that a slot with these columns has now.
    pub fn rate(&self, columns: &Range<u32>) -> f64 {
        let rates = &self.rates[columns.start as usize..columns.end as usize];
        rates.iter().sum::<f64>() / rates.len() as f64 / self.blocks
    }
}

#[cfg(test)]
mod tests;
