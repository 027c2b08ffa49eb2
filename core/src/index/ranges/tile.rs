//! Tiles: the filters of neighbouring slots, transposed, and where a key's bits are in their pages.
//!
//! ```text
//! word(h, 16·level)      ──multiply-shift──▶ block of the tile        page = first page + block / (128 / W)
//! word(h, 16·level + 1…) ──16 bits each────▶ k positions 0 … 509      row  = (block mod (128 / W)) · 510 + position
//!
//! bit address in the payload = row · W + column
//!
//!          column 0 1 2 … W-1
//!  row 0        [ . 1 . … .  ]    W bits side by side: whole bytes, since W ≥ 8
//!  row 17       [ 1 1 . … 1  ]  ◀─ position of the key
//!  row 203      [ . 1 . … 1  ]  ◀─            AND of k rows: the columns that may have the key
//!  row 509      [ . . 1 … .  ]
//! ```
//!
//! Each level uses words of its own, so a key that a slot of level 1 reports wrongly is no more
//! likely than any other to be reported by the ranges below it. Sixteen bits choose a position: 128
//! or 129 of the 65,536 values lead to each, which raises the rate by less than 1 in 10,000.

use super::shape::{MAX_HASHES, MAX_WIDTH, SlotColumns, TileShape, Width, column};
use crate::hash::{reduce, word};
use crate::index::page::{ByteChange, Damage, PAGE_HEADER_BYTES, PageKind, PageNumber, Special};
use crate::memory::List;
use std::ops::Range;

/// Words of a hash that each level uses: one for the block, the others for positions.
const WORDS_PER_LEVEL: u32 = 16;
/// Positions in a block that a word gives: 16 of its bits choose one.
const POSITIONS_PER_WORD: usize = 4;
const _: () = assert!(MAX_HASHES == (WORDS_PER_LEVEL as usize - 1) * POSITIONS_PER_WORD);

/// A tile: its shape, and where it is. It never moves or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileAddress {
    pub shape: TileShape,
    /// Which tile of its level it is.
    pub ordinal: u32,
    /// Its first slot: a range on level 0; on another level the ordinal of a tile of the level
    /// below.
    pub first_slot: u32,
    /// The first of its pages, which follow each other.
    pub first_page: PageNumber,
}

impl TileAddress {
    /// Returns what the end of each page of the tile says.
    pub const fn special(&self) -> Special {
        let kinds = [PageKind::LevelZero, PageKind::LevelOne, PageKind::LevelTwo];
        Special {
            kind: kinds[self.shape.level as usize],
            number: self.first_slot,
        }
    }

    /// Returns the pages of the tile.
    pub fn pages(&self) -> Range<PageNumber> {
        self.first_page..self.first_page + self.shape.pages
    }

    /// Returns the number of the page that has the bits of the key with this hash.
    fn page_of_key(&self, hash: u64) -> PageNumber {
        let block = reduce(word_of_block(self.shape, hash), self.shape.blocks());
        self.first_page + (block / u64::from(self.shape.width.blocks_per_page())) as u32
    }

    /// Returns where the bits of the key with this hash are in the tile: a page, and some rows of
    /// it.
    ///
    /// A tile has the filters of up to 128 slots, and each of its pages has some blocks of all of
    /// these filters. A block is stored as rows, with a bit of each filter in a row. So the rows
    /// for the k bits of the key, all in one page, answer for all slots.
    #[inline]
    pub fn probe(&self, hash: u64) -> TileProbe {
        let shape = self.shape;
        let Footprint { block, positions, column_share } = Footprint::of_key(shape, hash);
        let blocks_per_page = u64::from(shape.width.blocks_per_page());
        let page_of_tile = (block / blocks_per_page) as u32;
        let block_in_page = (block % blocks_per_page) as u32;

        let rows_per_block = shape.size.block_bits();
        let first_row = block_in_page * rows_per_block;
        // If slots may have several filters each, this row has no bits of keys, but says which.
        let last_row = first_row + rows_per_block - 1;
        // An offset fits: it is within a page, which has at most 32,768 bytes.
        let offset_of_row =
            |row: u32| (PAGE_HEADER_BYTES + row as usize * shape.width.row_bytes()) as u16;
        let row_offsets = positions.map(|position| offset_of_row(first_row + u32::from(position)));
        TileProbe {
            page: self.first_page + page_of_tile,
            tile: *self,
            row_offsets,
            last_row_offset: offset_of_row(last_row),
            column_share,
        }
    }

    /// Returns the bytes of a page of this tile that have bits, those between the page's header and
    /// its end; `None` if the page has never been written.
    ///
    /// `page` has all bytes of the page, or is `None` if the file ends before it. `page_number` is
    /// for errors.
    ///
    /// Fails if it is not a page of this tile.
    pub fn payload<'p>(
        &self,
        page: Option<&'p [u8]>,
        page_number: PageNumber,
    ) -> Result<Option<&'p [u8]>, Damage> {
        let size = self.shape.size;
        let written = self.special().bytes_if_written(page, size, page_number)?;
        Ok(written.map(|page| &page[size.payload()]))
    }

    /// Checks that a page is one of this tile, or was never written. `page_number` is for errors.
    ///
    /// Fails if it is another page.
    fn check_page(&self, page: &[u8], page_number: PageNumber) -> Result<(), Damage> {
        self.payload(Some(page), page_number)?;
        Ok(())
    }
}

/// Returns the word of a hash whose highest bits choose the block of a tile.
#[inline(always)]
fn word_of_block(shape: TileShape, hash: u64) -> u64 {
    word(hash, first_word(shape))
}

/// Returns the number of the first of the words of a hash that the level of a tile uses.
#[inline(always)]
fn first_word(shape: TileShape) -> u32 {
    shape.level as u32 * WORDS_PER_LEVEL
}

/// Where the bits of a key are in a slot of a tile.
pub(super) struct Footprint {
    /// The block of the slot that has them.
    pub block: u64,
    /// The bits of the block, of which only the first `num_hashes` of the tile are used.
    pub positions: [u16; MAX_HASHES],
    /// Which of the slot's columns has them, for [`column`].
    pub column_share: u32,
}

impl Footprint {
    /// Returns which bits the key with this hash sets in a Bloom filter of a tile of this shape: k
    /// bits, all in one block of the filter. They are the same in each filter of the tile.
    ///
    /// They are chosen by *words*, random numbers of 64 bits that are derived from the hash. Each
    /// level of the index has 16 words of its own: level 0 has words 0 to 15, level 1 has words 16
    /// to 31, and so on.
    ///
    /// ```text
    /// words of level 0   │ 0                             │ 1                │ 2                │ …
    /// highest 32 bits    │ block                         │ positions 2, 3   │ positions 6, 7   │
    /// lowest 32 bits     │ column, of a slot that has    │ positions 0, 1   │ positions 4, 5   │
    ///                    │ several columns (filters)     │                  │                  │
    /// ```
    #[inline(always)]
    pub fn of_key(shape: TileShape, hash: u64) -> Footprint {
        let positions = positions_in_block(shape, hash);
        let random_bits = word_of_block(shape, hash);
        Footprint {
            // There are too few blocks for the lowest 32 bits to matter. So these can choose the
            // column.
            block: reduce(random_bits, shape.blocks()),
            positions,
            column_share: random_bits as u32,
        }
    }
}

/// Returns which bits of a block the key with this hash sets in a tile of this shape: the positions
/// of k bits, counted from 0, of which some may be equal. Places of the array beyond the first k
/// have no meaning.
///
/// Each *word* (64 random bits that are derived from the hash) gives four positions, by 16 bits for
/// each. These are a number below 65,536, which is scaled to the bits of a block. For example,
/// 16,384 becomes position 127 of 510, one quarter.
#[inline(always)]
fn positions_in_block(shape: TileShape, hash: u64) -> [u16; MAX_HASHES] {
    let mut positions = [0; MAX_HASHES];
    let (positions_by_word, _) = positions.as_chunks_mut::<POSITIONS_PER_WORD>();

    // The first word of the level chooses the block.
    let first_word_of_positions = first_word(shape) + 1;
    let words_used = usize::from(shape.num_hashes).div_ceil(POSITIONS_PER_WORD);
    for (i, four_positions) in positions_by_word.iter_mut().take(words_used).enumerate() {
        let random_bits = word(hash, first_word_of_positions + i as u32);
        for (j, position) in four_positions.iter_mut().enumerate() {
            let sixteen_bits = random_bits >> (16 * j) & 0xFFFF;
            let scaled = (sixteen_bits * u64::from(shape.block_bits())) >> 16;
            *position = scaled as u16;
        }
    }
    positions
}

/// The rows of one page that decide which slots of a tile may have a key.
#[derive(Clone, Copy, Debug)]
pub struct TileProbe {
    /// The page that has to be read.
    pub page: PageNumber,
    tile: TileAddress,
    /// Where the rows of the key begin in the page, of which only the first `num_hashes` of the
    /// tile are used.
    row_offsets: [u16; MAX_HASHES],
    /// Where the last row of the key's block begins in the page.
    last_row_offset: u16,
    /// Which of a slot's columns has the key, for [`column`].
    column_share: u32,
}

/// Returns the 16 bytes of a page that end with a row of bits, as a number whose highest bits are
/// the row. The row begins at `offset`, and has a bit for each of the tile's `width` columns: 1 to
/// 16 bytes. If it is shorter than 16, bytes before it are in the lower bits: other rows, or the
/// page's header.
#[inline(always)]
fn bytes_up_to_row_end(page: &[u8], offset: usize, width: Width) -> u128 {
    // It is fastest to read 16 bytes at once, however long the row is.
    let up_to_row_end = &page[..offset + width.row_bytes()];
    let last_16_bytes = *up_to_row_end
        .last_chunk()
        .expect("the header of a page has more bytes");
    u128::from_le_bytes(last_16_bytes)
}

impl TileProbe {
    fn row_offsets(&self) -> &[u16] {
        &self.row_offsets[..usize::from(self.tile.shape.num_hashes)]
    }

    /// Returns which slots of the tile may have the key: bit i is set for slot i. A *slot* is what
    /// the tile has a Bloom filter for: a range of the table, or a tile of the level below.
    ///
    /// The page is a table of bits, with a column for each filter and a row for each position in
    /// the filters. A filter may have the key if its bit is set in all rows of the key, so these
    /// rows are ANDed. Mostly a slot has one filter; if it has several, the key's hash says in
    /// which of them the key would be.
    ///
    /// `page` has the bytes of the page `self.page`, or is `None` if the file ends before it. A
    /// page that was never written has no keys.
    ///
    /// Fails if the page is another one, or if what it says about the columns of its slots is
    /// impossible.
    #[inline]
    pub fn slots(&self, page: Option<&[u8]>) -> Result<u128, Damage> {
        let shape = self.tile.shape;
        let Some(page) = self.tile.special().bytes_if_written(page, shape.size, self.page)? else {
            return Ok(0);
        };

        let mut common_bits = u128::MAX;
        for &offset in self.row_offsets() {
            common_bits &= bytes_up_to_row_end(page, usize::from(offset), shape.width);
        }
        // The rows are in the highest bits. Shifted once, bit i is that of column i.
        let columns_with_key = common_bits >> (MAX_WIDTH - shape.width.columns());
        if shape.columns_per_slot == 1 {
            return Ok(columns_with_key);
        }

        let mut slots_with_key = 0;
        for (columns_of_slot, slot) in self.slot_columns(page)?.slots().zip(0..) {
            let column_of_key = column(&columns_of_slot, self.column_share);
            let has_key = (columns_with_key >> column_of_key) & 1;
            slots_with_key |= has_key << slot;
        }
        Ok(slots_with_key)
    }

    /// Returns which columns each slot of the tile has, as the last row of the key's block says.
    fn slot_columns(&self, page: &[u8]) -> Result<SlotColumns, Damage> {
        let shape = self.tile.shape;
        let last_row = &page[usize::from(self.last_row_offset)..][..shape.width.row_bytes()];
        SlotColumns::read(shape, last_row, self.page)
    }

    /// Returns the column of the tile that has the key's bits if the key is in this slot. `page`
    /// has the bytes of the page that must be read.
    ///
    /// Fails if the page contradicts itself about the columns of its slots.
    fn column_in_slot(&self, slot: u8, page: &[u8]) -> Result<u8, Damage> {
        if self.tile.shape.columns_per_slot == 1 {
            return Ok(slot);
        }
        let columns_of_slot = self
            .slot_columns(page)?
            .slots()
            .nth(slot.into())
            .expect("a mark is of a slot that the tile has");
        Ok(column(&columns_of_slot, self.column_share) as u8)
    }

    /// Returns the bits that the key must have in a slot of the tile.
    pub fn mark(self, slot: u8) -> Mark {
        Mark { probe: self, slot }
    }
}

/// A slot of a tile, which has the bits of the keys of some ranges.
#[derive(Clone, Copy, Debug)]
pub struct SlotAddress {
    pub(super) tile: TileAddress,
    /// The number of the slot, counted from the first one of the tile.
    pub(super) slot_in_tile: u8,
}

impl SlotAddress {
    /// Returns the number of the page that has the bits of the key with this hash.
    pub fn page_of_key(&self, hash: u64) -> PageNumber {
        self.tile.page_of_key(hash)
    }

    /// Returns the bits that the key with this hash must have in the slot.
    pub fn mark(&self, hash: u64) -> Mark {
        self.tile.probe(hash).mark(self.slot_in_tile)
    }
}

/// The bits of one key for one slot: all in one page.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    probe: TileProbe,
    slot: u8,
}

impl Mark {
    /// Returns the number of the page that has the bits.
    pub fn page(&self) -> PageNumber {
        self.probe.page
    }

    /// Returns the special space of the page, to be written with the first bits of a page that is
    /// all zero.
    pub fn special(&self) -> Special {
        self.probe.tile.special()
    }

    /// Returns whether all of the bits are set. `page` has the bytes of the page, `None` after the
    /// end of the file.
    ///
    /// Fails if it is another page, or if it contradicts itself about the columns of its slots.
    pub fn is_set(&self, page: Option<&[u8]>) -> Result<bool, Damage> {
        let slots = self.probe.slots(page)?;
        Ok(slots >> self.slot & 1 == 1)
    }
}

/// Returns the changes to a page of a tile that add keys to it: the new value of each byte that
/// changes, in ascending order of offsets in the page; an empty list if the page already has all of
/// the keys. Does not change the page.
///
/// The page, whose bytes `page` has, is a table of bits, with a column for each Bloom filter. A
/// [`Mark`] says which bits of one column a key must have set. All marks must be of this page.
///
/// Fails if the page is another one, or if what it says about the columns of its slots is
/// impossible.
pub fn changes(marks: &[&Mark], page: &[u8]) -> Result<List<ByteChange>, Damage> {
    let mut changes: List<ByteChange> = List::with_capacity(MAX_HASHES);
    for mark in marks {
        mark.probe.tile.check_page(page, mark.page())?;

        // A row has a bit for each column: that of column c is bit c % 8 of byte c / 8.
        let column = mark.probe.column_in_slot(mark.slot, page)?;
        let byte_of_row = u16::from(column / 8);
        let bit = 1 << (column % 8);
        for row_offset in mark.probe.row_offsets() {
            let offset = row_offset + byte_of_row;
            let old_value = page[usize::from(offset)];
            if old_value & bit == 0 {
                changes.push(ByteChange { offset, value: old_value | bit });
            }
        }
    }

    changes.sort_unstable_by_key(|change| change.offset);
    unite_changes_of_same_byte(&mut changes);
    Ok(changes)
}

/// Unites changes of the same byte, which must be neighbours, so that the byte gets the bits of all
/// of them. Several keys may change one byte, and one key may have the same bit twice.
fn unite_changes_of_same_byte(changes: &mut List<ByteChange>) {
    changes.dedup_by(|next, kept| {
        let is_same_byte = next.offset == kept.offset;
        if is_same_byte {
            kept.value |= next.value;
        }
        is_same_byte
    });
}
