//! How full the columns of a tile are, and estimates of their keys from the bits.
//!
//! ```text
//! share of clear bits of a column with n keys     (1 - (1 - q^k) / B)^n        q = 1 - 1/510
//! keys, from the share f of set bits              ln(1 - f) / ln(1 - (1 - q^k) / B)
//! rate now                                        mean over blocks of f^k
//! ```
//!
//! A key has k throws into the 510 bits of one of B blocks. It leaves a given bit of that block
//! clear with probability q^k, so it sets a given bit of the column with probability (1 - q^k) / B.
//!
//! Example: a column has B = 16 blocks, its keys have k = 9 hashes, and 1,000 of its 8,160 bits are
//! set. Then q^k = 0.98249 and (1 - q^k) / B = 0.0010943. The share of set bits is f = 0.12255, so
//! the column has ln(0.87745) / ln(0.9989057) = 119.4 keys.
//!
//! Keys are spread evenly over the pages of a tile, so a few pages of a large tile suffice.

use super::shape::{MAX_WIDTH, SlotColumns, TileShape};
use super::tile::TileAddress;
use crate::index::page::{Damage, PageNumber, Pages};
use crate::memory::List;
use std::ops::Range;

/// The columns of a tile, by the bits of some of its pages.
#[derive(Clone, Debug)]
pub struct Fill {
    /// Which columns each slot has.
    pub slot_columns: SlotColumns,
    /// An estimate of the distinct keys of each column; a lower bound if all of its bits are set.
    pub keys_per_column: List<f64>,
    /// How many blocks of each column were counted.
    blocks_counted: f64,
    /// For each column, the sum of the false positive rates of these blocks.
    rate_sums: [f64; MAX_WIDTH as usize],
}

/// The bits of the columns of a tile, as far as its pages were read.
struct BitCounts {
    slot_columns: SlotColumns,
    /// How many bits are set in each column.
    ones: [u64; MAX_WIDTH as usize],
    /// For each column, the sum of the false positive rates of its blocks.
    rate_sums: [f64; MAX_WIDTH as usize],
}

impl BitCounts {
    /// Adds the bits that are set in one page of a tile to the counts of its columns. A tile is a
    /// table of bits: its columns are Bloom filters, and a *slot*, which is what the tile
    /// has filters for (a range of the table, say), has one column or several neighbouring ones.
    ///
    /// The rows of a page form blocks. If slots may have several columns, the last row of each
    /// block isn't counted: it says which columns each slot has, and `self.slot_columns` becomes
    /// that.
    ///
    /// `page` has the bytes of the page, or is `None` if the file ends before it: then nothing is
    /// set. `page_number` is only for errors.
    ///
    /// Fails if the page is not one of the tile, or if its last rows name impossible columns.
    fn add_page(
        &mut self,
        tile: &TileAddress,
        page: Option<&[u8]>,
        page_number: PageNumber,
    ) -> Result<(), Damage> {
        let shape = tile.shape;
        let row_bytes = shape.width.row_bytes();
        // All rows of a block, and those of them that have bits of keys: one fewer if the last row
        // says which columns slots have.
        let block_bytes = shape.size.block_bits() as usize * row_bytes;
        let key_bytes = shape.key_rows_per_block() as usize * row_bytes;
        // A page that was never written has no bits.
        let payload = tile.payload(page, page_number)?.unwrap_or(&[]);
        for block in payload.chunks_exact(block_bytes) {
            let (key_rows, column_row) = block.split_at(key_bytes);
            if !column_row.is_empty() {
                self.slot_columns = SlotColumns::read(shape, column_row, page_number)?;
            }
            self.add_block(shape, key_rows);
        }
        Ok(())
    }

    /// Adds the bits of a block, given the rows that have bits of keys.
    fn add_block(&mut self, shape: TileShape, key_rows: &[u8]) {
        let ones_of_block = ones_per_column(key_rows, shape.width.row_bytes());
        let columns = 0..shape.width.columns() as usize;
        for (column, ones) in columns.zip(ones_of_block) {
            let share_of_ones = f64::from(ones) / f64::from(shape.block_bits());
            self.ones[column] += u64::from(ones);
            self.rate_sums[column] += share_of_ones.powi(shape.num_hashes.into());
        }
    }
}

/// Returns how many bits are set in each column of a table of bits. `rows` has the rows one after
/// the other, each of `row_bytes` bytes. The first byte of a row has the bits of columns 0 to 7,
/// column 0 in its lowest bit; the second byte has columns 8 to 15, and so on.
///
/// The eight columns of a byte are counted at once, in one number of 64 bits: each of its eight
/// bytes is a counter, to which a row adds 0 or 1. The first column has the highest byte:
///
/// ```text
/// byte of row 0     0b0000_0101    columns 0 and 2     0x01_00_01_00_00_00_00_00
/// byte of row 1     0b0000_0001    column 0            0x01_00_00_00_00_00_00_00
/// their sum                                            0x02_00_01_00_00_00_00_00
/// ```
fn ones_per_column(rows: &[u8], row_bytes: usize) -> [u16; MAX_WIDTH as usize] {
    let mut ones = [0u16; MAX_WIDTH as usize];
    // A counter of one byte counts up to 255 rows. Then the counters are added to `ones`.
    let most_rows_at_once = usize::from(u8::MAX);
    for some_rows in rows.chunks(most_rows_at_once * row_bytes) {
        // Eight counters for each byte of a row.
        let mut counters = [0u64; MAX_WIDTH as usize / 8];
        for row in some_rows.chunks_exact(row_bytes) {
            for (eight_counters, &byte) in counters.iter_mut().zip(row) {
                *eight_counters += spread_bits(byte);
            }
        }

        let (ones_of_bytes, _) = ones.as_chunks_mut::<8>();
        for (ones_of_byte, eight_counters) in ones_of_bytes.iter_mut().zip(counters) {
            add_counters(ones_of_byte, eight_counters);
        }
    }
    ones
}

/// Adds eight counters, which are the bytes of a number, to the counts of eight columns. The
/// highest byte belongs to the first column.
#[inline(always)]
fn add_counters(ones: &mut [u16; 8], eight_counters: u64) {
    let from_highest_byte = eight_counters.to_be_bytes();
    for (ones_of_column, counter) in ones.iter_mut().zip(from_highest_byte) {
        *ones_of_column += u16::from(counter);
    }
}

/// Returns a number whose eight bytes are the bits of `byte`, each 0 or 1. The lowest bit becomes
/// the highest byte: 0b0000_0101 becomes 0x01_00_01_00_00_00_00_00.
///
/// The multiplication makes eight copies of the byte, each nine bits further to the left than the
/// one before. So bit 8i + 7 of the product is bit 7 - i of the byte.
#[inline(always)]
fn spread_bits(byte: u8) -> u64 {
    let shifted_copies = u64::from(byte).wrapping_mul(0x8040_2010_0804_0201);
    shifted_copies >> 7 & 0x0101_0101_0101_0101
}

/// Returns an estimate of the distinct keys of columns, `ones` of whose `bits` bits are set; a
/// lower bound if all are. See the formula in the [module](self).
pub(super) fn estimated_keys(shape: TileShape, bits: f64, ones: f64) -> f64 {
    // With no clear bit the logarithm would be infinite, so half of one is assumed.
    let share_of_clear_bits = (bits - ones).max(0.5) / bits;
    let clear_after_throw = 1.0 - 1.0 / f64::from(shape.block_bits());
    let clear_after_key = clear_after_throw.powi(i32::from(shape.num_hashes));
    let chance_to_set_bit = (1.0 - clear_after_key) / shape.blocks() as f64;
    share_of_clear_bits.ln() / (-chance_to_set_bit).ln_1p()
}

impl Fill {
    /// Estimates how many keys each column of a tile has, and its false positive rate, from the
    /// bits of some pages of the tile. A column is a Bloom filter, of the keys of a range of the
    /// table or of a part of them.
    ///
    /// Reads at most `most_pages` pages, but at least one. They are evenly spread over the tile:
    /// keys are spread evenly over its pages, so a few of them stand for all.
    ///
    /// Fails with [`Damage`] if a page is not one of the tile, or if a page can't be read.
    pub fn read<P: Pages>(
        pages: &mut P,
        tile: &TileAddress,
        most_pages: u32,
    ) -> Result<Fill, P::Error> {
        let shape = tile.shape;
        let mut counts = BitCounts {
            slot_columns: SlotColumns::even(shape.width, shape.columns_per_slot),
            ones: [0; MAX_WIDTH as usize],
            rate_sums: [0.0; MAX_WIDTH as usize],
        };
        let pages_read = shape.pages.min(most_pages.max(1));
        for i in 0..pages_read {
            let page_of_tile = u64::from(i) * u64::from(shape.pages) / u64::from(pages_read);
            let page_number = tile.first_page + page_of_tile as u32;
            pages.with_page(page_number, |page| counts.add_page(tile, page, page_number))??;
        }

        let blocks_counted = u64::from(pages_read) * u64::from(shape.width.blocks_per_page());
        let bits_counted = blocks_counted as f64 * f64::from(shape.block_bits());
        let ones_of_columns = &counts.ones[..shape.width.columns() as usize];
        let keys_per_column = ones_of_columns.iter().map(|&ones| {
            if ones == 0 { 0.0 } else { estimated_keys(shape, bits_counted, ones as f64) }
        });
        Ok(Fill {
            slot_columns: counts.slot_columns,
            keys_per_column: keys_per_column.collect(),
            blocks_counted: blocks_counted as f64,
            rate_sums: counts.rate_sums,
        })
    }

    /// Returns an estimate of the distinct keys of a slot with these columns.
    pub fn keys(&self, columns: &Range<u32>) -> f64 {
        let columns = columns.start as usize..columns.end as usize;
        self.keys_per_column[columns].iter().sum()
    }

    /// Returns the false positive rate that a slot with these columns has now. A key is in each of
    /// the columns with the same probability, so it is the mean of their rates.
    pub fn rate(&self, columns: &Range<u32>) -> f64 {
        let rate_sums = &self.rate_sums[columns.start as usize..columns.end as usize];
        let mean_sum = rate_sums.iter().sum::<f64>() / rate_sums.len() as f64;
        mean_sum / self.blocks_counted
    }
}

#[cfg(test)]
mod tests;
