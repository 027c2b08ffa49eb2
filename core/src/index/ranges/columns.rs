//! Which columns of a tile each of its slots has.
//!
//! A row of a tile has a bit in each column. Mostly a slot has one column. But where pages are split, one document may
//! have a hundred times the text of another, and a slot that is large enough for it would be too large for the others.
//! So there a tile has half as many slots as columns, and each slot has as many neighbouring columns as its elements
//! need. An element is in one of them, which its hash says.
//!
//! ```text
//! slot            0   1           2   3  …
//! columns        |0|1   2   3   4|5  |6   7| …
//! last row        1 1 0 0 0       1   1 0          a bit where the columns of a slot begin
//!                   ╰─ an element of slot 1: column 1 + (its share of 2^32 · 4 columns)
//! ```
//!
//! The last row of each block says where they begin. In a tile that was appended it is zero: nobody knew what its slots
//! would have, so all have equally many.

use super::shape::{TileShape, Width};
use std::ops::Range;

/// The columns of each slot of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// A bit for each column that is the first of a slot.
    firsts: u128,
    width: Width,
}

impl Columns {
    /// Equally many for each slot.
    pub fn even(width: Width, columns_per_slot: u8) -> Columns {
        let firsts = (0..width.columns()).step_by(usize::from(columns_per_slot));
        Columns { firsts: firsts.map(|first| 1 << first).sum(), width }
    }

    /// As many as slots with these numbers of elements need: the fullest column has as few as possible.
    ///
    /// # Panics
    /// If there are more slots than columns, or none.
    pub fn by_load(width: Width, loads: &[f64]) -> Columns {
        let mut columns = vec![1u32; loads.len()];
        for _ in loads.len()..width.columns() as usize {
            let of_column = |slot: usize| loads[slot] / f64::from(columns[slot]);
            let fullest = (0..loads.len()).max_by(|&a, &b| of_column(a).total_cmp(&of_column(b)));
            columns[fullest.expect("a tile has slots")] += 1;
        }
        let (mut firsts, mut next) = (0, 0);
        for columns in columns {
            firsts |= 1 << next;
            next += columns;
        }
        Columns { firsts, width }
    }

    /// Those that the last row of a block says; `None` if it can't be one.
    pub fn read(shape: TileShape, row: &[u8]) -> Option<Columns> {
        let mut bytes = [0; 16];
        bytes[..row.len()].copy_from_slice(row);
        let firsts = u128::from_le_bytes(bytes);
        if firsts == 0 {
            return Some(Columns::even(shape.width, shape.columns_per_slot));
        }
        (firsts & 1 == 1 && firsts.count_ones() == shape.slots()).then_some(Columns { firsts, width: shape.width })
    }

    /// The last row of a block.
    pub fn write(self, row: &mut [u8]) {
        row.copy_from_slice(&self.firsts.to_le_bytes()[..row.len()]);
    }

    /// The columns of each slot, in order.
    pub fn slots(self) -> impl Iterator<Item = Range<u32>> {
        let mut firsts = self.firsts;
        std::iter::from_fn(move || {
            let first = (firsts != 0).then(|| firsts.trailing_zeros())?;
            firsts &= firsts - 1;
            Some(first..firsts.trailing_zeros().min(self.width.columns()))
        })
    }

    /// The slots that may have an element, a bit for each, by the columns that may.
    pub fn slots_having(self, having: u128, share: u32) -> u128 {
        let slots = self.slots().zip(0..);
        slots.map(|(columns, slot)| (having >> column(&columns, share) & 1) << slot).sum()
    }

    /// The column of an element of a slot; `None` if there is no such slot.
    pub fn column(self, slot: u8, share: u32) -> Option<u32> {
        self.slots().nth(slot.into()).map(|columns| column(&columns, share))
    }
}

/// The one of the columns of a slot that an element is in. Its share is of 2^32.
#[inline(always)]
pub fn column(columns: &Range<u32>, share: u32) -> u32 {
    columns.start + ((u64::from(share) * u64::from(columns.end - columns.start)) >> 32) as u32
}
