//! Tiles: which filters share them, where the blocks of a slot are, and probing a page of them.
//!
//! The filters of a tile are of one group: an element has the same block and the same bits in all
//! of them.
//!
//! ```text
//! payload of a page    │ slot 0            │ slot 1            │ …      P blocks of each slot
//!                      │ block 0 … P - 1   │ block 0 … P - 1   │
//!
//! page of block b      first page + b / P
//! its place there      (slot · P + b mod P) · bytes of a block
//! ```
//!
//! A page has room for 127 blocks of 64 bytes. A tile of 127 slots has one block of each slot in a
//! page (P = 1); a narrower one has several, so that its pages are full as well.
//!
//! Example: filters of 100 blocks, in a tile of 21 slots that begins with page 10. A page has
//! 127 / 21 = 6 blocks of each slot, so the tile has 17 pages. Block 50 of slot 3 is in page
//! 10 + 50 / 6 = 18, where it begins at byte (3 · 6 + 50 mod 6) · 64 = 1,280 of the payload.
//!
//! Blocks are not transposed, as those of ranges are: adding a filter writes 64 contiguous bytes to
//! each page, which are 68 bytes of WAL, instead of some 256 bytes in as many places, which would
//! be 1,280.

use crate::filter::{Body, View, sparse};
use crate::index::page::{PAGE_HEADER_BYTES, PageKind, PageNumber, PageSize, Special};
use crate::kind::{Kind, Tag};
use crate::layout::{Layout, Shape};
use crate::memory::List;
use std::borrow::Cow;
use std::ops::Range;

/// Bits that are set for each hash of a filter that is a list (k).
///
/// With b bits for each hash, a lookup finds a list wrongly with probability (1 - e^(-k/b))^k: one
/// list in 270 with 12 bits, one in 8,500 with 24. More bits set would be more to write.
const LIST_HASHES: u32 = 6;
/// The least bits of a slot for each hash of a list. The number of blocks is rounded up to a power
/// of two, so there are at most about twice as many.
const LEAST_BITS_PER_LIST_HASH: u64 = 12;

/// What the slots of a group hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Holds {
    /// The bits of filters: rows that are found need no recheck.
    Bits = 0,
    /// Bits of the hashes of filters that are lists.
    Hashes = 1,
    /// Nothing: every lookup finds all of the filters.
    Nothing = 2,
}

impl Holds {
    /// Returns what a stored code stands for; `None` if it stands for nothing.
    pub(super) fn from_code(code: u8) -> Option<Holds> {
        match code {
            0 => Some(Holds::Bits),
            1 => Some(Holds::Hashes),
            2 => Some(Holds::Nothing),
            _ => None,
        }
    }
}

/// What the filters of a tile have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterGroup {
    pub holds: Holds,
    /// The layout, hashes and blocks of a slot; no blocks if slots hold nothing.
    pub shape: Shape,
    tag: Tag,
    name: Box<str>,
}

impl FilterGroup {
    /// Returns the group of filters that have this shape and hold elements of this kind.
    pub fn new(holds: Holds, shape: Shape, kind: Kind<'_>) -> FilterGroup {
        FilterGroup { holds, shape, tag: kind.tag, name: kind.name.into() }
    }

    /// Returns the one group whose slots hold nothing, for filters of any shape and key kind.
    pub fn without_bits() -> FilterGroup {
        let shape = Shape { layout: Layout::Classic, num_hashes: 0, blocks: 0 };
        FilterGroup::new(Holds::Nothing, shape, Kind::NONE)
    }

    /// Returns the group of a filter: all filters of a group have the same shape and the same kind
    /// of elements, and may have their bits side by side in the pages of the index. `None` if the
    /// filter has no key kind: it has no elements then, so that no lookup must find it, and the
    /// index leaves it out.
    pub fn of_filter(filter: &View<'_>) -> Option<FilterGroup> {
        let header = &filter.header;
        if header.kind.is_none() {
            return None;
        }
        let group = match filter.body {
            Body::Sparse(hashes) => FilterGroup::for_list_of(hashes.len(), header.kind),
            // `classic` spreads the bits of an element over the whole filter, so it has no blocks
            // that could stand side by side in a tile.
            Body::Dense(_) if header.layout == Layout::Classic => FilterGroup::without_bits(),
            Body::Dense(_) => FilterGroup::new(Holds::Bits, header.shape(), header.kind),
        };
        Some(group)
    }

    /// Returns the group of a filter that is a list of this many hashes. In the index it becomes a
    /// filter of bits, whose number of blocks is a power of two, so that lists of similar lengths
    /// are in one group.
    fn for_list_of(hashes: usize, kind: Kind<'_>) -> FilterGroup {
        let least_bits = hashes as u64 * LEAST_BITS_PER_LIST_HASH;
        let least_blocks = least_bits.div_ceil(Layout::Blocked.block_bits());
        let shape = Shape {
            layout: Layout::Blocked,
            num_hashes: LIST_HASHES,
            blocks: least_blocks.next_power_of_two(),
        };
        FilterGroup::new(Holds::Hashes, shape, kind)
    }

    /// Returns the kind of the filters' elements.
    pub fn kind(&self) -> Kind<'_> {
        Kind { tag: self.tag, name: &self.name }
    }

    /// Returns the bytes of a block; one if slots hold nothing.
    pub fn block_bytes(&self) -> usize {
        self.shape.layout.block_bits().div_ceil(8) as usize
    }

    /// Returns how many blocks a page has room for, of all slots together.
    pub(super) fn blocks_per_page(&self, size: PageSize) -> u32 {
        (size.payload_bytes() / self.block_bytes()) as u32
    }
}

/// Returns the bits that the index keeps of a filter: all of its blocks, in their order. Of a
/// filter that is a list of hashes, they are those that the hashes set. They are empty if the index
/// keeps no bits of such filters, as of layout `classic`. `group` must be the group of the filter.
pub fn slot_bits<'a>(filter: &View<'a>, group: &FilterGroup) -> Cow<'a, [u8]> {
    match (group.holds, filter.body) {
        (Holds::Bits, Body::Dense(bits)) => Cow::Borrowed(bits),
        (Holds::Hashes, Body::Sparse(list)) => {
            let hashes = sparse::hashes_in(list).collect::<List<_>>();
            let mut bits = List::zeroed(group.shape.payload_bytes() as usize);
            group.shape.insert_all(&mut bits, &hashes);
            Cow::Owned(bits.into())
        }
        _ => Cow::Borrowed(&[]),
    }
}

/// A tile: which slots it has, and where they are. It never moves or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Its number among all tiles of the index.
    pub ordinal: u32,
    /// The number of the group of its filters.
    pub group: u32,
    /// How many slots it has.
    pub width: u16,
    /// The number of its first slot in the row page.
    pub first_slot: u16,
    /// The page with the rows of its slots, which it may share with other tiles of its group.
    pub row_page: PageNumber,
    /// The first of its pages, which follow each other; 0 if it has none.
    pub first_page: PageNumber,
    pub(super) grid: Grid,
}

/// How the blocks of a tile lie in its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub(super) block_bytes: usize,
    /// How many blocks each slot has (B).
    blocks: u64,
    /// How many blocks of each slot are in one page (P), at least one.
    pub(super) slot_blocks_per_page: u64,
}

impl Grid {
    /// Returns how the blocks of a tile lie in its pages. The tile has `width` slots, each of which
    /// has the blocks of one filter, and a page has the same number of blocks of each slot: as many
    /// as it has room for.
    ///
    /// `width` must be from one to [`FilterGroup::blocks_per_page`].
    pub(super) fn new(size: PageSize, group: &FilterGroup, width: u16) -> Grid {
        let blocks_of_slot = group.shape.blocks;
        let most_blocks_per_page = u64::from(group.blocks_per_page(size) / u32::from(width));
        Grid {
            block_bytes: group.block_bytes(),
            blocks: blocks_of_slot,
            // One if slots have no blocks, as this is divided by.
            slot_blocks_per_page: most_blocks_per_page.min(blocks_of_slot).max(1),
        }
    }

    /// Returns how many pages the tile has; 0 if its slots hold nothing.
    pub(super) fn pages(&self) -> u64 {
        self.blocks.div_ceil(self.slot_blocks_per_page)
    }

    /// Returns how many bytes of a page each slot has.
    pub(super) fn slot_bytes_per_page(&self) -> usize {
        self.slot_blocks_per_page as usize * self.block_bytes
    }
}

impl Tile {
    /// Returns what the end of each page of the tile says.
    pub const fn special(&self) -> Special {
        Special { kind: PageKind::Filters, number: self.ordinal }
    }

    /// Returns the pages of the tile; an empty range if its slots hold nothing.
    pub fn pages(&self) -> Range<PageNumber> {
        self.first_page..self.first_page + self.grid.pages() as u32
    }

    /// Returns the page that has this block of each slot.
    pub(super) fn page_with_block(&self, block: u64) -> PageNumber {
        self.first_page + (block / self.grid.slot_blocks_per_page) as u32
    }

    /// Returns the numbers of the tile's slots in its row page.
    pub fn slots(&self) -> Range<u16> {
        self.first_slot..self.first_slot + self.width
    }
}

/// A slot that belongs to a row, or is being given to one.
///
/// To give a free slot to a row, a session holds the exclusive lock of its row page while it writes
/// the changes of [`super::RowPage::claim`]. It then writes [`Slot::chunks`] in their order, and at
/// last the change of [`super::RowPage::publish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub tile: Tile,
    /// Its number in the row page.
    pub number: u16,
}

/// The bytes of a slot in one page of its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotChunk<'b> {
    pub page: PageNumber,
    /// Where they begin in the page, counted from its start.
    pub offset: u16,
    pub bytes: &'b [u8],
}

impl Slot {
    /// Divides the bytes of the slot, which [`slot_bits`] returns, among the pages of its tile, in
    /// the order of these pages.
    pub fn chunks<'b>(&self, bits: &'b [u8]) -> impl Iterator<Item = SlotChunk<'b>> + use<'b> {
        let bytes_per_page = self.tile.grid.slot_bytes_per_page();
        let number_in_tile = usize::from(self.number - self.tile.first_slot);
        let offset = (PAGE_HEADER_BYTES + number_in_tile * bytes_per_page) as u16;
        let pages = self.tile.first_page..;
        pages
            .zip(bits.chunks(bytes_per_page))
            .map(move |(page, bytes)| SlotChunk { page, offset, bytes })
    }
}

/// The block of an element, and the bits that it must have there.
pub(super) struct ElementMask {
    /// The number of the block in each slot.
    pub block: u64,
    /// The bytes of the block that have such bits.
    bytes: List<MaskByte>,
}

/// Bits of one byte of a block.
struct MaskByte {
    /// Where the byte is in the block.
    offset: usize,
    bits: u8,
}

impl ElementMask {
    /// Returns which bits an element, given by its hash, has in each filter of a group. All filters
    /// of a group have the same shape, so the bits are the same in each: some bits of one block.
    /// The index must keep bits of the group's filters.
    pub fn new(group: &FilterGroup, hash: u64) -> ElementMask {
        // The positions of bits in a block don't depend on how many blocks there are. So an element
        // has the same bits in a filter of one block.
        let one_block = Shape { blocks: 1, ..group.shape };
        let mut block = List::filled(0, group.block_bytes());
        one_block.insert_all(&mut block, &[hash]);

        let bytes = block.into_iter().enumerate();
        let bytes_with_bits = bytes.filter(|&(_, bits)| bits != 0);
        ElementMask {
            block: group.shape.block_of(hash),
            bytes: bytes_with_bits
                .map(|(offset, bits)| MaskByte { offset, bits })
                .collect(),
        }
    }

    /// Finds out which filters of a tile may have the element, by one page of the tile: sets their
    /// entries in `may_have`, which has an entry for each filter of the tile. Other entries stay as
    /// they are.
    ///
    /// `payload` has the bytes of the page between its header and its end. It must be the page that
    /// has the element's block of each filter. A page has some neighbouring blocks of the first
    /// filter, then the same blocks of the next filter, and so on; `grid` says how many.
    pub fn probe(&self, grid: &Grid, payload: &[u8], may_have: &mut [bool]) {
        let block_among_those_of_filter = (self.block % grid.slot_blocks_per_page) as usize;
        let from_block_of_first_filter = &payload[block_among_those_of_filter * grid.block_bytes..];
        // Each chunk begins with the block of a filter. Other blocks follow, which is_in ignores.
        let blocks = from_block_of_first_filter.chunks(grid.slot_bytes_per_page());
        for (filter_may_have, block) in may_have.iter_mut().zip(blocks) {
            *filter_may_have |= self.is_in(block);
        }
    }

    /// Returns whether a block has all bits of the element. `block` may have more bytes after it.
    fn is_in(&self, block: &[u8]) -> bool {
        self.bytes
            .iter()
            .all(|byte| block[byte.offset] & byte.bits == byte.bits)
    }
}
