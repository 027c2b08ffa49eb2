//! Merging many filters one by one, in any order.
//!
//! Filters can be merged if and only if their largest block count is a multiple of all the others.
//! `64 | 96` is an error, but 64, 96 and 192 can be merged. So filters of different sizes are kept
//! apart until the end:
//!
//! ```text
//! sizes     64   96   192        end:   192
//!                                        ▲ 64 and 96 are spread into it
//! ```
//!
//! For each size there is the result for the filters of that size. In the usual case all filters
//! have one size, and there is one result. This takes no more memory than the filters together. Merging fails at
//! the end if the largest size isn't a multiple of another, or as soon as no multiple of all sizes
//! could be stored.
//!
//! An intersection with a list keeps only the hashes that all filters have so far, and the headers
//! of the other sizes.
//!
//! `of_size` has the result for one size, and its memory; `partial` is the state that one process
//! passes to another. `heap`, for tests and fuzzing, is the memory of the program.

#[cfg(any(test, feature = "testing"))]
#[path = "tests/heap.rs"]
pub mod heap;
mod of_size;
mod partial;

pub use of_size::{GrowingList, MergeMemory};
pub use partial::{Operation, PartialMerge};

use of_size::{MergedElements, MergedSize, list_in, retain, without_kind};
use partial::{PartialElements, PartialFilter, write_partial};

use crate::error::{Mismatch, Result};
use crate::filter::build::{contains, sparse_filter};
use crate::filter::header::{Header, SizeLimit, payload_mut};
use crate::filter::merge::{cannot_merge, gcd, larger, merged_kind, mismatch};
use crate::filter::sparse;
use crate::filter::view::{Body, View};
use crate::kind::{Kind, Tag};
use crate::layout::{Layout, and_bytes};
use crate::memory::{self, Buffer};
use crate::sizing::{DEFAULT_FPR, MAX_STORED_BYTES};
use std::mem;

/// Filters that are merged one by one, in any order.
pub struct MergedFilters<M: MergeMemory> {
    pub operation: Operation,
    /// The tag and the name of the key kind of all filters, once one has a kind.
    tag: Tag,
    name: M::List<u8>,
    /// The results for filters of one size, by ascending number of blocks.
    sizes: M::List<MergedSize<M>>,
    /// The largest header of the filters of no size; `None` if there was none.
    unsized_header: Option<Header<'static>>,
    /// The hashes that all filters of an intersection have, once one of them was a list.
    common: Option<M::List<u64>>,
    /// The greatest common divisor of the base blocks of all filters.
    base_blocks: u64,
    /// The least common multiple of the numbers of blocks of all filters, as far as a filter of
    /// that size could be stored.
    common_multiple: u64,
    /// Bytes of the largest payload of all filters.
    given_payload_bytes: u64,
}

impl<M: MergeMemory> MergedFilters<M> {
    /// Returns a merge that has no filters yet.
    pub fn new(memory: &mut M, operation: Operation) -> MergedFilters<M> {
        MergedFilters {
            operation,
            tag: Tag::None,
            name: memory.list(0),
            sizes: memory.list(1),
            unsized_header: None,
            common: None,
            base_blocks: 0,
            common_multiple: 1,
            given_payload_bytes: 0,
        }
    }

    /// Returns the key kind of the filters so far.
    fn kind(&self) -> Kind<'_> {
        let name = std::str::from_utf8(&self.name).expect("the name of a kind is a string");
        Kind { tag: self.tag, name }
    }

    /// Adds a filter. `memory` must be the one that [`MergedFilters::new`] got.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the filter has another key kind than those
    /// before, and with [`crate::Class::InvalidParameter`] if it has another layout or number of
    /// hashes, or a size with which they can no longer be merged, whatever else is added.
    pub fn add(&mut self, memory: &mut M, view: &View<'_>) -> Result<()> {
        self.note_payload(view.payload_bytes() as u64);
        self.add_part(memory, view)
    }

    /// Adds the partial state of another process.
    ///
    /// Fails as [`MergedFilters::add`] does for one of its filters.
    pub fn add_partial(&mut self, memory: &mut M, partial: &PartialMerge<'_>) -> Result<()> {
        self.note_payload(partial.given_payload_bytes);
        let Some((last, others)) = partial.filters.split_last() else {
            return Ok(());
        };
        self.add_part(memory, last)?;

        // In an intersection of lists, the common hashes are with the last filter. The others tell
        // only that filters of their size were merged.
        let has_common_hashes =
            self.operation == Operation::Intersection && matches!(last.body, Body::Sparse(_));
        for view in others {
            if has_common_hashes {
                self.check_header(&view.header)?;
                self.note_size(&view.header);
            } else {
                self.add_part(memory, view)?;
            }
        }
        Ok(())
    }

    /// Notes that a filter with so many bytes of payload was given.
    fn note_payload(&mut self, bytes: u64) {
        self.given_payload_bytes = self.given_payload_bytes.max(bytes);
    }

    /// Adds a filter, or a part of a partial state. Fails as [`MergedFilters::add`].
    fn add_part(&mut self, memory: &mut M, view: &View<'_>) -> Result<()> {
        self.check_header(&view.header)?;
        match self.operation {
            Operation::Union => self.unite(memory, view),
            Operation::Intersection => self.intersect(memory, view),
        }
        Ok(())
    }

    /// Checks that a filter with this header can be merged with those before, and notes what is kept
    /// for all of them. Fails as [`MergedFilters::add`].
    fn check_header(&mut self, header: &Header<'_>) -> Result<()> {
        merged_kind(self.kind(), header.kind)?;
        if self.tag == Tag::None {
            self.tag = header.kind.tag;
            for byte in header.kind.name.bytes() {
                self.name.push(byte);
            }
        }

        self.base_blocks = gcd(self.base_blocks, header.base_blocks);
        if header.is_unsized() {
            let largest = match &self.unsized_header {
                Some(previous) => larger(previous, header),
                None => header,
            };
            self.unsized_header = Some(without_kind(largest));
            return Ok(());
        }

        if let Some(MergedSize { header: other, .. }) = self.sizes.last()
            && let Some(why) = mismatch(other, header)
        {
            return Err(cannot_merge(other, header, why));
        }
        self.check_blocks(header)
    }

    /// Checks that there may be a number of blocks that is a multiple of this header's and of those
    /// before: the largest filter, which may still come, must have such a number.
    ///
    /// Fails if two sizes don't divide each other and no filter of a common multiple could be stored.
    fn check_blocks(&mut self, header: &Header<'_>) -> Result<()> {
        let quotient = self.common_multiple / gcd(self.common_multiple, header.blocks);
        let multiple = quotient
            .checked_mul(header.blocks)
            .filter(|&blocks| header.layout.payload_bytes(blocks) <= MAX_STORED_BYTES);
        if let Some(multiple) = multiple {
            self.common_multiple = multiple;
            return Ok(());
        }

        // If this size and each other one divided each other, the multiple would be one of them.
        for other in self.sizes.iter() {
            let other = &other.header;
            let divides = other.blocks.is_multiple_of(header.blocks)
                || header.blocks.is_multiple_of(other.blocks);
            if !divides {
                return Err(cannot_merge(other, header, Mismatch::Sizes));
            }
        }
        Ok(())
    }

    /// Returns the result for filters with this number of blocks. If there is none yet, inserts the
    /// one that `new` returns, and returns `None`.
    fn find_or_insert(
        &mut self,
        blocks: u64,
        new: impl FnOnce() -> MergedSize<M>,
    ) -> Option<&mut MergedSize<M>> {
        match self.sizes.binary_search_by_key(&blocks, |size| size.header.blocks) {
            Ok(found) => Some(&mut self.sizes[found]),
            Err(place) => {
                self.sizes.push(new());
                self.sizes[place..].rotate_right(1);
                None
            }
        }
    }

    /// Adds the elements of a filter to a union.
    fn unite(&mut self, memory: &mut M, view: &View<'_>) {
        if view.header.is_unsized() {
            return;
        }
        let blocks = view.header.blocks;
        if let Some(size) = self.find_or_insert(blocks, || MergedSize::copy_of(memory, view)) {
            size.unite(memory, view);
        }
    }

    /// Removes the elements that a filter doesn't have from an intersection.
    fn intersect(&mut self, memory: &mut M, view: &View<'_>) {
        if let Some(common) = &mut self.common {
            retain(common, |hash| contains(view, hash));
            self.note_size(&view.header);
            return;
        }
        match view.body {
            Body::Sparse(list) => {
                self.common = Some(self.take_common_hashes(memory, list));
                self.note_size(&view.header);
            }
            Body::Dense(bits) => {
                let blocks = view.header.blocks;
                let size = self.find_or_insert(blocks, || MergedSize::copy_of(memory, view));
                if let Some(size) = size {
                    size.add_header(&view.header);
                    and_bytes(size.bits(memory), bits);
                }
            }
        }
    }

    /// Returns the hashes of a list that all filters before have, and frees the bits of these: from
    /// the first list on, an intersection is a list.
    fn take_common_hashes(&mut self, memory: &mut M, list: &[[u8; 8]]) -> M::List<u64> {
        let mut common = list_in(memory, sparse::hashes_in(list));
        for size in self.sizes.iter_mut() {
            let header = size.header;
            let filter = View { header, body: Body::Dense(size.bits(memory)) };
            retain(&mut common, |hash| contains(&filter, hash));

            let elements = mem::replace(&mut size.elements, MergedElements::Elsewhere);
            if let MergedElements::Bits(bits) = elements {
                memory.free(bits);
            }
        }
        common
    }

    /// Notes the header of a filter of an intersection whose elements are among the common hashes.
    fn note_size(&mut self, header: &Header<'_>) {
        if header.is_unsized() {
            return;
        }
        let new = || MergedSize {
            header: without_kind(header),
            elements: MergedElements::Elsewhere,
        };
        if let Some(size) = self.find_or_insert(header.blocks, new) {
            size.add_header(header);
        }
    }

    /// Returns the merged filter. More filters can be added afterwards.
    ///
    /// Fails with [`crate::Class::InvalidParameter`] if the largest number of blocks isn't a multiple
    /// of another, and with [`crate::Class::TooLarge`] if the result has more than `limit` bytes as
    /// stored and is larger than every filter.
    pub fn finish<B: Buffer>(&mut self, memory: &mut M, limit: u64) -> Result<B> {
        self.sort();
        let Some(largest) = self.largest_header()? else {
            // No filter had a size.
            let default = || Header::without_size(Layout::Blocked, DEFAULT_FPR);
            return Ok(self.unsized_header.unwrap_or_else(default).sparse(0));
        };
        let header = Header { kind: self.kind(), base_blocks: self.base_blocks, ..largest };

        let limit = SizeLimit {
            max_bytes: limit,
            given_payload_bytes: self.given_payload_bytes,
        };
        if let Some(hashes) = self.hashes_of_result() {
            return sparse_filter(&header, hashes, limit);
        }
        header.check_growth(header.payload_bytes(), limit)?;
        let mut value: B = header.dense();
        self.write_bits(memory, payload_mut(&mut value, &header), largest.blocks);
        Ok(value)
    }

    /// Sorts the hashes of all sizes, and drops repeated ones.
    fn sort(&mut self) {
        for size in self.sizes.iter_mut() {
            size.sort();
        }
    }

    /// Returns the header of the largest size; `None` if no filter had a size.
    ///
    /// Fails if its number of blocks isn't a multiple of another.
    fn largest_header(&self) -> Result<Option<Header<'static>>> {
        let Some((largest, others)) = self.sizes.split_last() else {
            return Ok(None);
        };
        let does_not_divide =
            |other: &&MergedSize<M>| !largest.header.blocks.is_multiple_of(other.header.blocks);
        match others.iter().rfind(does_not_divide) {
            Some(other) => Err(cannot_merge(&other.header, &largest.header, Mismatch::Sizes)),
            None => Ok(Some(largest.header)),
        }
    }

    /// Returns the hashes of the result if it is sparse: the common ones of an intersection, or those
    /// of a union of lists of one size. `None` if it is dense.
    fn hashes_of_result(&self) -> Option<&[u64]> {
        match self.operation {
            // A filter of no size has no elements, so none are common.
            Operation::Intersection if self.unsized_header.is_some() => Some(&[]),
            Operation::Intersection => self.common.as_deref(),
            Operation::Union => match &self.sizes[..] {
                [MergedSize { elements: MergedElements::Hashes { hashes, .. }, .. }] => {
                    Some(hashes)
                }
                _ => None,
            },
        }
    }

    /// Writes the bits of the result to `payload`, which consists of zeros and has as many blocks as
    /// the largest size.
    fn write_bits(&mut self, memory: &mut M, payload: &mut [u8], blocks: u64) {
        let Some((largest, others)) = self.sizes.split_last_mut() else {
            return;
        };
        largest.or_to(memory, payload, blocks);
        for other in others {
            match self.operation {
                Operation::Union => other.or_to(memory, payload, blocks),
                Operation::Intersection => {
                    let mut spread = memory.zeroed(payload.len());
                    other.or_to(memory, &mut spread, blocks);
                    and_bytes(payload, &spread);
                    memory.free(spread);
                }
            }
        }
    }

    /// Returns the state as bytes, for another process, which adds them by
    /// [`MergedFilters::add_partial`].
    ///
    /// Fails with [`crate::error::TooLarge::PartialState`] if the filters take too many bytes
    /// together.
    pub fn to_partial<B: Buffer>(&mut self) -> Result<B> {
        self.sort();

        let mut filters = Vec::new();
        if let Some(header) = self.unsized_header {
            let elements = PartialElements::Hashes(&[]);
            memory::push(&mut filters, PartialFilter { header, elements });
        }
        let num_sizes = self.sizes.len();
        for (i, size) in self.sizes.iter().enumerate() {
            let elements = match &size.elements {
                MergedElements::Bits(bits) => PartialElements::Bits(bits),
                MergedElements::Hashes { hashes, .. } => PartialElements::Hashes(hashes),
                // The common hashes are written with the last size.
                MergedElements::Elsewhere if i + 1 == num_sizes => {
                    PartialElements::Hashes(self.common.as_deref().unwrap_or_default())
                }
                MergedElements::Elsewhere => PartialElements::Hashes(&[]),
            };
            let header = Header {
                kind: self.kind(),
                base_blocks: self.base_blocks,
                ..size.header
            };
            memory::push(&mut filters, PartialFilter { header, elements });
        }
        write_partial(self.operation, self.given_payload_bytes, &filters)
    }
}

#[cfg(test)]
mod tests;
