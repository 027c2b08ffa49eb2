//! Tiles: the filters of neighbouring slots, transposed, and where an element's bits are in their
//! pages.
//!
//! ```text
//! word(h, 16·level)      ──multiply-shift──▶ block of the tile        page = first page + block / (128 / W)
//! word(h, 16·level + 1…) ──16 bits each────▶ k positions 0 … 509      row  = (block mod (128 / W)) · 510 + position
//!
//! bit address in the payload = row · W + column
//!
//!          column 0 1 2 … W-1
//!  row 0        [ . 1 . … .  ]    W bits side by side: whole bytes, since W ≥ 8
//!  row 17       [ 1 1 . … 1  ]  ◀─ position of the element
//!  row 203      [ . 1 . … 1  ]  ◀─            AND of k rows: the columns that may have the element
//!  row 509      [ . . 1 … .  ]
//! ```
//!
//! Each level uses words of its own, so an element that a slot of level 1 reports wrongly is no
//! more likely than any other to be reported by the ranges below it. Sixteen bits choose a
//! position: 128 or 129 of the 65,536 values lead to each, which raises the rate by less than 1 in
//! 10,000.

use super::shape::{Columns, MAX_HASHES, MAX_WIDTH, TileShape, column};
use crate::hash::{reduce, word};
use crate::index::page::{Damage, PAGE_HEADER_BYTES, PageKind, PageNumber, Special};
use crate::memory;

const WORDS_PER_LEVEL: u32 = 16;
const POSITIONS_PER_WORD: u32 = 4;
const _: () = assert!(MAX_HASHES == ((WORDS_PER_LEVEL - 1) * POSITIONS_PER_WORD) as usize);

/// A tile and where it is, which stays true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileAddress {
    pub shape: TileShape,
    /// Which tile of its level it is.
    pub ordinal: u32,
    /// Its first slot: a range on level 0; on level 1 the ordinal of a tile of level 0.
    pub first_slot: u32,
    pub first_page: PageNumber,
}

impl TileAddress {
    pub const fn special(&self) -> Special {
        let kind = [PageKind::LevelZero, PageKind::LevelOne, PageKind::LevelTwo]
            [self.shape.level as usize];
        Special { kind, number: self.first_slot }
    }

    pub fn pages(&self) -> std::ops::Range<PageNumber> {
        self.first_page..self.first_page + self.shape.pages
    }

    #[inline]
    pub fn probe(&self, hash: u64) -> Probe {
        let TileShape { width, size, .. } = self.shape;
        let Footprint { block, positions, share } = footprint(self.shape, hash);
        let per_page = u64::from(width.blocks_per_page());
        let row = (block % per_page) as u32 * size.block_bits();
        // A payload has 128 · block_bits bits, so offsets stay below the size of a page.
        let offset = |row: u32| (PAGE_HEADER_BYTES + row as usize * width.bytes()) as u16;
        let offsets = positions.map(|position| offset(row + u32::from(position)));
        let last_row = offset(row + size.block_bits() - 1);
        Probe {
            page: self.first_page + (block / per_page) as u32,
            tile: *self,
            offsets,
            last_row,
            share,
        }
    }

    /// The bits of a page of this tile; `None` if it was never written. Errors: those of
    /// [`Special::written`].
    pub fn payload<'p>(
        &self,
        page: Option<&'p [u8]>,
        at: PageNumber,
    ) -> Result<Option<&'p [u8]>, Damage> {
        let size = self.shape.size;
        Ok(self
            .special()
            .written(page, size, at)?
            .map(|page| &page[size.payload()]))
    }
}

/// Where the bits of an element are in a slot.
pub(super) struct Footprint {
    pub block: u64,
    /// Its positions there, of which the first `num_hashes` of the tile are set.
    pub positions: [u16; MAX_HASHES],
    /// Which of the slot's columns, as a share of 2^32.
    pub share: u32,
}

#[inline(always)]
pub(super) fn footprint(shape: TileShape, hash: u64) -> Footprint {
    let block_bits = u64::from(shape.block_bits());
    let first = shape.level as u32 * WORDS_PER_LEVEL;
    let mut positions = [0; MAX_HASHES];
    let words = positions
        .chunks_exact_mut(POSITIONS_PER_WORD as usize)
        .zip(first + 1..);
    for (positions, j) in
        words.take(usize::from(shape.num_hashes).div_ceil(POSITIONS_PER_WORD as usize))
    {
        let bits = word(hash, j);
        for (position, i) in positions.iter_mut().zip(0..) {
            let sixteen = bits >> (16 * i) & 0xFFFF;
            *position = ((sixteen * block_bits) >> 16) as u16;
        }
    }
    // The highest bits choose the block, which there are few of; the lowest 32 are for the column.
    let bits = word(hash, first);
    Footprint {
        block: reduce(bits, shape.blocks()),
        positions,
        share: bits as u32,
    }
}

/// The rows of one page that decide which slots may have an element.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub page: PageNumber,
    tile: TileAddress,
    /// Where the rows begin in the page.
    offsets: [u16; MAX_HASHES],
    /// Where the last row of the block begins.
    last_row: u16,
    share: u32,
}

impl Probe {
    fn offsets(&self) -> &[u16] {
        &self.offsets[..usize::from(self.tile.shape.num_hashes)]
    }

    /// The slots that may have the element, a bit for each; none of a page that was not written.
    /// Errors: those of [`Special::written`].
    #[inline]
    pub fn slots(&self, page: Option<&[u8]>) -> Result<u128, Damage> {
        let TileShape { width, size, .. } = self.tile.shape;
        let Some(page) = self.tile.special().written(page, size, self.page)? else {
            return Ok(0);
        };
        // The AND of the 16 bytes that end where each row does. The page has its full length, and a
        // long header.
        let mut all = u128::MAX;
        for &offset in self.offsets() {
            let before_end = &page[..usize::from(offset) + width.bytes()];
            all &= u128::from_le_bytes(
                *before_end.last_chunk().expect("the header of a page has more bytes"),
            );
        }
        let having = all >> (MAX_WIDTH - width.columns());
        if self.tile.shape.columns_per_slot == 1 {
            return Ok(having);
        }
        let slots = self.columns(page)?.slots().zip(0..);
        Ok(slots
            .map(|(columns, slot)| (having >> column(&columns, self.share) & 1) << slot)
            .sum())
    }

    fn columns(&self, page: &[u8]) -> Result<Columns, Damage> {
        let shape = self.tile.shape;
        Columns::read(shape, &page[usize::from(self.last_row)..][..shape.width.bytes()], self.page)
    }

    /// The column of the element in a slot, in a page of the tile.
    fn column(&self, slot: u8, page: &[u8]) -> Result<u8, Damage> {
        if self.tile.shape.columns_per_slot == 1 {
            return Ok(slot);
        }
        let columns = self
            .columns(page)?
            .slots()
            .nth(slot.into())
            .expect("a mark is of a slot that the tile has");
        Ok(column(&columns, self.share) as u8)
    }

    pub fn mark(self, slot: u8) -> Mark {
        Mark { probe: self, slot }
    }
}

/// The bits of one element for one slot: all in one page.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    probe: Probe,
    slot: u8,
}

impl Mark {
    pub fn page(&self) -> PageNumber {
        self.probe.page
    }

    /// The special space of the page, to be written with the first bits of a page that is all zero.
    pub fn special(&self) -> Special {
        self.probe.tile.special()
    }

    /// Whether all of them are set. Errors: those of [`Probe::slots`].
    pub fn is_set(&self, page: Option<&[u8]>) -> Result<bool, Damage> {
        Ok(self.probe.slots(page)? >> self.slot & 1 == 1)
    }
}

/// The changes to a page after which all of these marks, which are of this page, are set: offset in
/// the page and new value of each byte that changes, ascending. Errors: those of [`Probe::slots`].
pub fn changes(marks: &[&Mark], page: &[u8]) -> Result<Vec<(u16, u8)>, Damage> {
    let mut changes: Vec<(u16, u8)> = memory::with_capacity(MAX_HASHES);
    for mark in marks {
        mark.probe.tile.payload(Some(page), mark.page())?;
        let column = mark.probe.column(mark.slot, page)?;
        for offset in mark.probe.offsets().iter().map(|row| row + u16::from(column / 8)) {
            let (old, bit) = (page[usize::from(offset)], 1 << (column % 8));
            if old & bit == 0 {
                memory::push(&mut changes, (offset, old | bit));
            }
        }
    }
    changes.sort_unstable_by_key(|&(offset, _)| offset);
    changes.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 |= next.1;
        }
        is_same
    });
    Ok(changes)
}
