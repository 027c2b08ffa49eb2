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
//! Blocks are not transposed, as those of ranges are: adding a filter writes 64 contiguous bytes to
//! each page, which are 68 bytes of WAL, instead of some 256 bytes in as many places, which would
//! be 1,280.

use crate::filter::{Body, View, sparse};
use crate::index::page::{PAGE_HEADER_BYTES, PageKind, PageNumber, PageSize, Special};
use crate::kind::{Kind, Tag};
use crate::layout::{Layout, Shape};
use crate::memory;
use std::borrow::Cow;
use std::ops::Range;

/// Hashes per element (k) for filters that are lists.
const LIST_HASHES: u32 = 6;
/// The least bits for each hash of a list; there are at most twice as many.
const LIST_BITS: u64 = 12;

/// What slots have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Holds {
    /// The bits of filters: rows that are found need no recheck.
    Bits = 0,
    /// Bits of the hashes of lists.
    Hashes = 1,
    /// Nothing: every lookup finds all of them.
    Nothing = 2,
}

impl Holds {
    /// What a stored code stands for; `None` if it stands for nothing.
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
pub struct Group {
    pub holds: Holds,
    /// The shape of the slots; it has no blocks if they have nothing.
    pub shape: Shape,
    tag: Tag,
    name: Box<str>,
}

impl Group {
    /// The group of filters whose slots have nothing.
    pub fn of_any() -> Group {
        let shape = Shape { layout: Layout::Classic, num_hashes: 0, blocks: 0 };
        Group {
            holds: Holds::Nothing,
            shape,
            tag: Tag::None,
            name: "".into(),
        }
    }

    pub fn new(holds: Holds, shape: Shape, kind: Kind<'_>) -> Group {
        Group { holds, shape, tag: kind.tag, name: kind.name.into() }
    }

    /// The group of a filter; `None` if it has no kind and therefore no elements, so that no lookup
    /// must find it.
    pub fn of(filter: &View<'_>) -> Option<Group> {
        let header = &filter.header;
        if header.kind.is_none() {
            return None;
        }
        Some(match filter.body {
            Body::Sparse(hashes) => {
                let blocks =
                    (hashes.len() as u64 * LIST_BITS).div_ceil(Layout::Blocked.block_bits());
                let (layout, blocks) = (Layout::Blocked, blocks.next_power_of_two());
                Group::new(
                    Holds::Hashes,
                    Shape { layout, num_hashes: LIST_HASHES, blocks },
                    header.kind,
                )
            }
            Body::Dense(_) if header.layout == Layout::Classic => Group::of_any(),
            Body::Dense(_) => Group::new(Holds::Bits, header.shape(), header.kind),
        })
    }

    pub fn kind(&self) -> Kind<'_> {
        Kind { tag: self.tag, name: &self.name }
    }

    /// Bytes of a block; one if there are no blocks.
    pub fn block_bytes(&self) -> usize {
        self.shape.layout.block_bits().div_ceil(8) as usize
    }

    pub(super) fn blocks_per_page(&self, size: PageSize) -> u32 {
        (size.payload_bytes() / self.block_bytes()) as u32
    }
}

/// The bits of a filter's slot in its group.
pub fn slot_bits<'a>(filter: &View<'a>, group: &Group) -> Cow<'a, [u8]> {
    match (group.holds, filter.body) {
        (Holds::Bits, Body::Dense(bits)) => Cow::Borrowed(bits),
        (Holds::Hashes, Body::Sparse(list)) => {
            let mut bits = memory::zeroed(group.shape.payload_bytes() as usize);
            group
                .shape
                .insert_all(&mut bits, &memory::collect(sparse::hashes_in(list)));
            Cow::Owned(bits)
        }
        _ => Cow::Borrowed(&[]),
    }
}

/// A tile and where it is, which stays true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Its number among all tiles of the index.
    pub ordinal: u32,
    pub group: u32,
    pub width: u16,
    pub first_slot: u16,
    /// The row page, which it may share with others of its group.
    pub row_page: PageNumber,
    /// Its first page; 0 if it has none.
    pub first_page: PageNumber,
    pub(super) grid: Grid,
}

/// How the blocks of a tile lie in its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub(super) block_bytes: usize,
    /// Blocks of each slot (B).
    blocks: u64,
    /// Blocks of each slot in a page (P), at least one.
    pub(super) per_page: u64,
}

impl Grid {
    /// The grid of a tile of `width` slots, from one to [`Group::blocks_per_page`].
    pub(super) fn new(size: PageSize, group: &Group, width: u16) -> Grid {
        let blocks = group.shape.blocks;
        let per_page = u64::from(group.blocks_per_page(size) / u32::from(width))
            .min(blocks)
            .max(1);
        Grid { block_bytes: group.block_bytes(), blocks, per_page }
    }

    pub(super) fn pages(&self) -> u64 {
        self.blocks.div_ceil(self.per_page)
    }

    /// Bytes of each slot in a page.
    pub(super) fn stride(&self) -> usize {
        self.per_page as usize * self.block_bytes
    }
}

impl Tile {
    pub const fn special(&self) -> Special {
        Special { kind: PageKind::Filters, number: self.ordinal }
    }

    pub fn pages(&self) -> Range<PageNumber> {
        self.first_page..self.first_page + self.grid.pages() as u32
    }

    pub(super) fn page_of(&self, block: u64) -> PageNumber {
        self.first_page + (block / self.grid.per_page) as u32
    }

    pub fn slots(&self) -> Range<u16> {
        self.first_slot..self.first_slot + self.width
    }
}

/// A slot that belongs to a row, or is being given to one: under the exclusive lock of a row page
/// that has a free slot by [`super::RowPage::claim`], then [`Slot::chunks`] in their order, then
/// [`super::RowPage::publish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub tile: Tile,
    /// Its number in the row page.
    pub number: u16,
}

impl Slot {
    /// The slot's bytes in each page of its tile: the page, the offset there, and the bytes, of
    /// [`slot_bits`].
    pub fn chunks<'b>(
        &self,
        bits: &'b [u8],
    ) -> impl Iterator<Item = (PageNumber, u16, &'b [u8])> + use<'b> {
        let stride = self.tile.grid.stride();
        let within = usize::from(self.number - self.tile.first_slot);
        let offset = (PAGE_HEADER_BYTES + within * stride) as u16;
        (self.tile.first_page..)
            .zip(bits.chunks(stride))
            .map(move |(page, bytes)| (page, offset, bytes))
    }
}

/// The block of an element, and the bits that it must have there.
pub(super) struct Mask {
    pub block: u64,
    /// The bytes with such bits, by their places.
    bytes: Vec<(usize, u8)>,
}

impl Mask {
    /// The mask of an element in a group that has blocks.
    pub fn of(group: &Group, hash: u64) -> Mask {
        let mut block = vec![0; group.block_bytes()];
        // Positions in a block don't depend on how many blocks there are.
        Shape { blocks: 1, ..group.shape }.insert_all(&mut block, &[hash]);
        let bytes = block.into_iter().enumerate().filter(|&(_, bits)| bits != 0);
        Mask {
            block: group.shape.block_of(hash),
            bytes: memory::collect(bytes),
        }
    }

    /// Adds the slots of a tile whose block in a page with this payload has all of the bits.
    pub fn probe(&self, grid: &Grid, payload: &[u8], may: &mut [bool]) {
        let blocks = &payload[(self.block % grid.per_page) as usize * grid.block_bytes..];
        for (may, block) in may.iter_mut().zip(blocks.chunks(grid.stride())) {
            *may |= self.bytes.iter().all(|&(at, bits)| block[at] & bits == bits);
        }
    }
}
