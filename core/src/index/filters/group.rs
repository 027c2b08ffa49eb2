//! Groups: filters that share tiles, since an element has the same block and the same bits in all of them.

use crate::filter::{Body, View};
use crate::index::page::PageSize;
use crate::kind::{Kind, Tag};
use crate::layout::{Layout, Shape};
use std::borrow::Cow;

/// Hashes per element (k) for filters that are lists.
const LIST_HASHES: u32 = 6;
/// The least bits for each hash of a list; there are at most twice as many.
const LIST_BITS: u64 = 12;

/// What slots have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Holds {
    /// The bits of filters: rows that are found need no recheck.
    Bits = 0,
    /// Bits of the hashes of lists.
    Hashes = 1,
    /// Nothing: every lookup finds all of them.
    Nothing = 2,
}

/// What the filters of a tile have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What slots have.
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
        Group { holds: Holds::Nothing, shape, tag: Tag::None, name: "".into() }
    }

    /// A group of this kind of elements.
    pub fn new(holds: Holds, shape: Shape, kind: Kind<'_>) -> Group {
        Group { holds, shape, tag: kind.tag, name: kind.name.into() }
    }

    /// The group of a filter; `None` if it has no kind and therefore no elements, so that no lookup must find it.
    pub fn of(filter: &View<'_>) -> Option<Group> {
        let header = &filter.header;
        if header.kind.is_none() {
            return None;
        }
        Some(match filter.body {
            Body::Sparse(hashes) => {
                let blocks = (hashes.len() as u64 * LIST_BITS).div_ceil(Layout::Blocked.block_bits());
                let blocks = blocks.next_power_of_two();
                let shape = Shape { layout: Layout::Blocked, num_hashes: LIST_HASHES, blocks };
                Group::new(Holds::Hashes, shape, header.kind)
            }
            Body::Dense(_) if header.layout == Layout::Classic => Group::of_any(),
            Body::Dense(_) => Group::new(Holds::Bits, header.shape(), header.kind),
        })
    }

    /// The kind of the elements.
    pub fn kind(&self) -> Kind<'_> {
        Kind { tag: self.tag, name: &self.name }
    }

    /// Bytes of a block; one if there are no blocks.
    pub fn block_bytes(&self) -> usize {
        self.shape.layout.block_bits().div_ceil(8) as usize
    }

    /// How many blocks a page has room for.
    pub(super) fn blocks_per_page(&self, size: PageSize) -> u32 {
        (size.payload_bytes() / self.block_bytes()) as u32
    }
}

/// The bits of a filter's slot in its group.
pub fn slot_bits<'a>(filter: &View<'a>, group: &Group) -> Cow<'a, [u8]> {
    match (group.holds, filter.body) {
        (Holds::Bits, Body::Dense(bits)) => Cow::Borrowed(bits),
        (Holds::Hashes, Body::Sparse(list)) => {
            let mut bits = crate::memory::zeroed(group.shape.payload_bytes() as usize);
            let hashes = crate::memory::collect(list.iter().map(|hash| u64::from_le_bytes(*hash)));
            group.shape.insert_all(&mut bits, &hashes);
            Cow::Owned(bits)
        }
        _ => Cow::Borrowed(&[]),
    }
}
