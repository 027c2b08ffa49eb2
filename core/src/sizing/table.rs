//! The sizing lookup tables, in the manner of ClickHouse's
//! `BloomFilterHash::calculationBestPractices`.
//!
//! Rows are bits per element, columns are hash counts, cells are false positive rates at three
//! significant digits, in the limit of large filters. The result for a rate is the smallest row
//! that meets it, and in that row the smallest hash count that does.
//!
//! ClickHouse's own table (Cao's, from "Bloom Filters: the math") ends at 20 bits and 15 hashes,
//! answers (19, 13) for every rate below 1.09e-4 and has a hole at 0.221…0.237. These go on to 1e-9
//! (parquet: 1e-6) and have none.
//!
//! The numbers are in `table/data.rs`, printed by
//! `cargo run -p pg_bloom_core --example sizing_tables` and compared with the formulas of
//! [`crate::sizing::rate`] in a test.

#[rustfmt::skip]
mod data;

use crate::error::{InvalidParameter, Result};
use crate::layout::{Layout, PARQUET_HASHES, is_possible_fpr};

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub struct SizingRow {
    pub bits: u32,
    /// The hash count of the first cell.
    pub first_hashes: u32,
    /// False positive rates by hash count.
    pub rates: &'static [f64],
}

impl SizingRow {
    /// The cells: hash count and rate.
    pub fn cells(self) -> impl Iterator<Item = (u32, f64)> {
        (self.first_hashes..).zip(self.rates.iter().copied())
    }

    /// The hash count with the lowest rate.
    pub fn best_hashes(self) -> u32 {
        self.cells()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(1, |(num_hashes, _)| num_hashes)
    }
}

/// A result of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestPractice {
    pub bits: u32,
    pub num_hashes: u32,
    /// The rate that the table gives for them.
    pub fpr: f64,
}

/// The rows of a layout's table, by growing bits.
pub fn rows(layout: Layout) -> impl Iterator<Item = SizingRow> {
    let (first_hashes, rates) = match layout {
        Layout::Blocked => (1, data::BLOCKED),
        Layout::Classic => (1, data::CLASSIC),
        Layout::Parquet => (PARQUET_HASHES, data::PARQUET),
    };
    (data::FIRST_BITS..).zip(rates).map(move |(bits, rates)| SizingRow {
        bits,
        first_hashes,
        rates,
    })
}

/// The smallest row that meets a rate.
pub fn best_row(layout: Layout, fpr: f64) -> Option<SizingRow> {
    rows(layout).find(|row| row.rates.iter().any(|&rate| rate <= fpr))
}

/// Bits and hashes for a rate. Errors: [`InvalidParameter::Rate`] for a rate that no filter keeps
/// or no row meets.
pub fn best_practice(layout: Layout, max_fpr: f64) -> Result<BestPractice> {
    let row = best_row(layout, max_fpr).filter(|_| is_possible_fpr(layout, max_fpr));
    let row = row.ok_or(InvalidParameter::Rate { fpr: max_fpr, layout })?;
    // Two bits meet 0.400 with two hashes and 0.393 with one; like ClickHouse, take two where they
    // do.
    let fewest = if layout == Layout::Classic && row.bits == 2 && row.rates[1] <= max_fpr {
        2
    } else {
        0
    };
    let cell = row
        .cells()
        .find(|&(num_hashes, rate)| num_hashes >= fewest && rate <= max_fpr);
    let (num_hashes, fpr) = cell.expect("the row was chosen because a cell meets the rate");
    Ok(BestPractice { bits: row.bits, num_hashes, fpr })
}

#[cfg(test)]
mod tests;
