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
//! The numbers are in `data`, printed by
//! `cargo run -p pg_bloom_core --example sizing_tables` and compared with the formulas of
//! [`crate::sizing::rate`] in a test. `stored_rate` is the form in which they are kept.

#[rustfmt::skip]
mod data;
mod stored_rate;

use crate::error::{InvalidParameter, Result};
use crate::layout::{Layout, PARQUET_HASHES, is_possible_fpr};
use stored_rate::StoredRate;

/// One row of a table: the false positive rates of filters with so many bits per element.
#[derive(Clone, Copy, Debug)]
pub struct SizingRow {
    /// Bits per element.
    pub bits: u32,
    /// The hash count of the first cell; the next cell has one more, and so on.
    pub first_hashes: u32,
    /// The false positive rate of each cell.
    rates: &'static [StoredRate],
}

/// One cell of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizingCell {
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// The false positive rate.
    pub fpr: f64,
}

impl SizingRow {
    /// Returns the cells of the row, by ascending hash count.
    pub fn cells(self) -> impl Iterator<Item = SizingCell> {
        (self.first_hashes..)
            .zip(self.rates)
            .map(|(num_hashes, stored)| SizingCell { num_hashes, fpr: stored.rate() })
    }

    /// Returns the hash count with the lowest rate.
    pub fn best_hashes(self) -> u32 {
        let best = self.cells().min_by(|a, b| a.fpr.total_cmp(&b.fpr));
        best.expect("every row has a cell").num_hashes
    }
}

/// The bits and hashes that a table recommends for a false positive rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestPractice {
    /// Bits per element.
    pub bits: u32,
    /// Hashes per element (k).
    pub num_hashes: u32,
    /// The rate that the table gives for them, which may be lower than the requested one.
    pub fpr: f64,
}

/// Returns the rows of a layout's sizing table, each with the false positive rates of filters with
/// one whole number of bits per element, by ascending bits.
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

/// Returns the row with the fewest bits that has a rate of at most `max_fpr`; `None` if no row has.
pub fn best_row(layout: Layout, max_fpr: f64) -> Option<SizingRow> {
    rows(layout).find(|row| row.cells().any(|cell| cell.fpr <= max_fpr))
}

/// Returns how many bits and hashes per element the table of a layout recommends for a false
/// positive rate of at most `max_fpr`: the fewest whole bits, and with these the fewest hashes.
///
/// There is one exception, as in ClickHouse's table: of layout `classic` with two bits per element,
/// two hashes are recommended if they have a rate of at most `max_fpr`, even if one hash has, too.
///
/// Fails with [`InvalidParameter::Rate`] if filters of this layout can't have the rate.
pub fn best_practice(layout: Layout, max_fpr: f64) -> Result<BestPractice> {
    let impossible_rate = || InvalidParameter::Rate { fpr: max_fpr, layout };
    if !is_possible_fpr(layout, max_fpr) {
        return Err(impossible_rate().into());
    }
    let row = best_row(layout, max_fpr).ok_or_else(impossible_rate)?;

    let meets_rate = |cell: &SizingCell| cell.fpr <= max_fpr;
    let mut best_cell = row
        .cells()
        .find(meets_rate)
        .expect("the row was chosen because a cell meets the rate");
    // The exception: two hashes are preferred to one.
    if layout == Layout::Classic
        && row.bits == 2
        && let Some(two_hashes) = row.cells().find(|cell| cell.num_hashes == 2)
        && meets_rate(&two_hashes)
    {
        best_cell = two_hashes;
    }

    Ok(BestPractice {
        bits: row.bits,
        num_hashes: best_cell.num_hashes,
        fpr: best_cell.fpr,
    })
}

#[cfg(test)]
mod tests;
