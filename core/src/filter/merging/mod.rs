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
//! have one size, and there is one result. This takes no more memory than the filters together.
//! Merging fails at the end if the largest size isn't a multiple of another, or as soon as no
//! multiple of all sizes could be stored.
//!
//! An intersection with a list keeps only the hashes that all filters have so far, and the headers
//! of the other sizes.
//!
//! `of_size` has the result for one size, and its memory; `partial` is the state that one process
//! passes to another. `heap`, for tests and fuzzing, is the memory of the program.

#[cfg(any(test, feature = "testing"))]
#[path = "tests/heap.rs"]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only tests use it"
)]
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
use crate::memory::{Buffer, List};
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
    /// Begins a merge, without filters so far. Its lists are allocated in `memory`, which must also
    /// be given to the methods that add filters.
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
        self.note_given_payload_bytes(view.payload_bytes() as u64);
        self.add_filter(memory, view)
    }

    /// Adds a *partial state*: the filters that another process has merged, one for each size, by
    /// ascending number of blocks. `memory` must be the one that [`MergedFilters::new`] got.
    ///
    /// An intersection of lists has only one list of hashes, which all its filters have. The other
    /// process has written it into the largest filter: the lists of the smaller ones are empty, and
    /// tell only that filters of their size were merged.
    ///
    /// Fails as [`MergedFilters::add`] does for one of its filters.
    pub fn add_partial(&mut self, memory: &mut M, partial: &PartialMerge<'_>) -> Result<()> {
        self.note_given_payload_bytes(partial.given_payload_bytes);
        let Some((largest, smaller)) = partial.filters.split_last() else {
            return Ok(());
        };
        self.add_filter(memory, largest)?;

        let is_intersection_of_lists =
            self.operation == Operation::Intersection && matches!(largest.body, Body::Sparse(_));
        for view in smaller {
            if is_intersection_of_lists {
                // Intersecting with such an empty list would remove all hashes.
                self.check_and_note_header(&view.header)?;
                self.note_size(&view.header);
            } else {
                self.add_filter(memory, view)?;
            }
        }
        Ok(())
    }

    /// Notes the bytes of the payload of a filter that was given: a result with as large a payload
    /// is allowed in any case.
    fn note_given_payload_bytes(&mut self, bytes: u64) {
        self.given_payload_bytes = self.given_payload_bytes.max(bytes);
    }

    /// Adds a filter, which was given or is one of a partial state, without noting the size of its
    /// payload. Fails as [`MergedFilters::add`].
    fn add_filter(&mut self, memory: &mut M, view: &View<'_>) -> Result<()> {
        self.check_and_note_header(&view.header)?;
        match self.operation {
            Operation::Union => self.unite(memory, view),
            Operation::Intersection => self.intersect(memory, view),
        }
        Ok(())
    }

    /// Checks that a filter with this header can be merged with the filters before, and updates
    /// what the merge knows of all headers: the key kind of the elements, the greatest common
    /// divisor of the base blocks, and the least common multiple of the numbers of blocks. Of
    /// filters of no size, which are empty, the largest header is kept.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the filter has another key kind, and with
    /// [`crate::Class::InvalidParameter`] if it has another layout or number of hashes, or a size
    /// with which the filters can't be merged, whatever else is added.
    fn check_and_note_header(&mut self, header: &Header<'_>) -> Result<()> {
        merged_kind(self.kind(), header.kind)?;
        if self.tag == Tag::None {
            self.tag = header.kind.tag;
            // The list is in memory that the caller provides, and only grows by single items.
            for byte in header.kind.name.bytes() {
                self.name.push(byte);
            }
        }

        self.base_blocks = gcd(self.base_blocks, header.base_blocks);
        // A filter of no size is empty, and can be merged with any.
        if header.is_unsized() {
            let largest = match &self.unsized_header {
                Some(previous) => larger(previous, header),
                None => header,
            };
            self.unsized_header = Some(without_kind(largest));
            return Ok(());
        }

        // All filters before have the same layout and number of hashes, so any one of them will do
        // for the comparison.
        if let Some(MergedSize { header: other, .. }) = self.sizes.last()
            && let Some(why) = mismatch(other, header)
        {
            return Err(cannot_merge(other, header, why));
        }
        self.check_blocks(header)
    }

    /// Checks that the number of blocks of a filter allows it to be merged with the filters before,
    /// and updates the least common multiple of all these numbers.
    ///
    /// In the end the largest number must be a multiple of all others. But filters come in any
    /// order, and the largest one may be yet to come. So it is enough if a filter could exist that
    /// has a multiple of all numbers so far: if the least common multiple is small enough to be
    /// stored.
    ///
    /// Fails with [`crate::Class::InvalidParameter`] if no such filter could be stored, and neither
    /// of two numbers is a multiple of the other.
    fn check_blocks(&mut self, header: &Header<'_>) -> Result<()> {
        // lcm(a, b) = a / gcd(a, b) · b
        let quotient = self.common_multiple / gcd(self.common_multiple, header.blocks);
        let storable_multiple = quotient
            .checked_mul(header.blocks)
            .filter(|&blocks| header.layout.payload_bytes(blocks) <= MAX_STORED_BYTES);
        if let Some(multiple) = storable_multiple {
            self.common_multiple = multiple;
            return Ok(());
        }

        // The error names a filter whose number of blocks and this one don't divide each other.
        // There is one: if this number divided another one, the least common multiple would stay as
        // it is, and if it were a multiple of all others, it would be the least common multiple
        // itself. A filter of either size can be stored.
        for other in self.sizes.iter() {
            let other = &other.header;
            let one_divides_other = other.blocks.is_multiple_of(header.blocks)
                || header.blocks.is_multiple_of(other.blocks);
            if !one_divides_other {
                return Err(cannot_merge(other, header, Mismatch::Sizes));
            }
        }
        // Never reached, by the reasoning above.
        Ok(())
    }

    /// Returns what has been merged of the filters with this number of blocks, to be changed. If no
    /// such filter came before, inserts what `new` returns, and returns `None`: the caller has
    /// nothing to add then. `self.sizes` stays in the order of the numbers of blocks.
    fn find_or_insert(
        &mut self,
        blocks: u64,
        new: impl FnOnce() -> MergedSize<M>,
    ) -> Option<&mut MergedSize<M>> {
        match self.sizes.binary_search_by_key(&blocks, |size| size.header.blocks) {
            Ok(found) => Some(&mut self.sizes[found]),
            Err(place) => {
                // The list can only grow at its end: rotating moves the new item to its place.
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
        if let Some(size) = self.find_or_insert(blocks, || MergedSize::of_filter(memory, view)) {
            size.add_elements(memory, view);
        }
    }

    /// Adds a filter to an intersection: removes the elements that it doesn't have from those that
    /// all filters before have.
    ///
    /// A filter is *dense* (bits) or *sparse* (a list of the elements' hashes). So the intersection
    /// has one of two forms:
    ///
    /// - As long as all filters are dense, it is dense as well. It has bits for each size of
    ///   filters, that is, for each number of blocks.
    /// - From the first sparse filter on, it is sparse. `self.common` is the list of the hashes
    ///   that all filters have, whatever their sizes.
    fn intersect(&mut self, memory: &mut M, view: &View<'_>) {
        match (&mut self.common, view.body) {
            (Some(common), _) => {
                retain(common, |hash| contains(view, hash));
                self.note_size(&view.header);
            }
            (None, Body::Sparse(list)) => {
                // This is the first sparse filter.
                self.common = Some(self.take_common_hashes(memory, list));
                self.note_size(&view.header);
            }
            (None, Body::Dense(bits)) => self.intersect_bits(memory, view, bits),
        }
    }

    /// Adds a dense filter to an intersection of dense filters. `bits` are the bits of `view`: they
    /// are ANDed to those of the filters before that have the same size. If there are none, the
    /// filter is copied.
    fn intersect_bits(&mut self, memory: &mut M, view: &View<'_>, bits: &[u8]) {
        let blocks = view.header.blocks;
        let filters_before = self.find_or_insert(blocks, || MergedSize::of_filter(memory, view));
        // `None` if this filter is the first of its size, and has been copied.
        if let Some(merged) = filters_before {
            merged.add_header(&view.header);
            and_bytes(merged.bits_mut(memory), bits);
        }
    }

    /// Intersects a list of hashes with all dense filters that were given so far: returns those
    /// hashes that each of these filters has, and frees the filters' bits. `list` is the first
    /// sparse filter that is given. The caller must keep the result as `self.common`, which has all
    /// elements of the intersection from then on.
    fn take_common_hashes(&mut self, memory: &mut M, list: &[[u8; 8]]) -> M::List<u64> {
        let mut common = list_in(memory, sparse::hashes_in(list));
        for size in self.sizes.iter_mut() {
            let header = size.header;
            let filter = View { header, body: Body::Dense(size.bits_mut(memory)) };
            retain(&mut common, |hash| contains(&filter, hash));

            // The elements are in `common` from now on, and the size has only its header.
            let old_elements = mem::replace(&mut size.elements, MergedElements::Elsewhere);
            if let MergedElements::Bits(bits) = old_elements {
                memory.free(bits);
            }
        }
        common
    }

    /// Notes the header of a filter of an intersection of lists. The hashes that all filters have
    /// are kept in `self.common`; of each size of filters only the largest header is kept. A filter
    /// of no size isn't noted.
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

    /// Returns the merged filter, in the form in which it is stored. More filters can be added
    /// afterwards. Without any filter, the result is an empty filter of no size.
    ///
    /// Fails with [`crate::Class::InvalidParameter`] if the numbers of blocks of all filters don't
    /// divide the largest one, and with [`crate::Class::TooLarge`] if the result has more than
    /// `limit` bytes as stored and a larger payload than each filter that was given.
    pub fn finish<B: Buffer>(&mut self, memory: &mut M, limit: u64) -> Result<B> {
        self.sort();
        let Some(largest) = self.largest_header()? else {
            return Ok(self.merged_filter_of_no_size());
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

    /// Returns the merged filter if no filter had a size, so that all were empty: an empty filter
    /// with the largest of their headers. Without any filter, it has the default header.
    fn merged_filter_of_no_size<B: Buffer>(&self) -> B {
        let header = match self.unsized_header {
            Some(header) => header,
            None => Header::without_size(Layout::Blocked, DEFAULT_FPR),
        };
        header.sparse(0)
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

    /// Returns the hashes of the merged filter if it is sparse, that is, a list of hashes: those
    /// that all filters of an intersection have, or those of a union of lists of one size. `None`
    /// if the merged filter has bits. The hashes are distinct and ascending if
    /// [`MergedFilters::sort`] was called.
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

    /// Writes the bits of the merged filter to `payload`. All bytes of it must be 0, and it must
    /// have `blocks` blocks: as many as the largest filters that were merged.
    ///
    /// `self.sizes` has one result for all filters with the same number of blocks. Each result of
    /// fewer blocks is *spread*: each of its blocks is copied to several, so that it has as many as
    /// the largest. Then it is ORed (union) or ANDed (intersection) to the bits of the largest
    /// filters.
    fn write_bits(&mut self, memory: &mut M, payload: &mut [u8], blocks: u64) {
        let Some((of_largest_size, of_smaller_sizes)) = self.sizes.split_last_mut() else {
            return;
        };
        of_largest_size.or_into_payload(memory, payload, blocks);
        for of_one_size in of_smaller_sizes {
            match self.operation {
                Operation::Union => of_one_size.or_into_payload(memory, payload, blocks),
                Operation::Intersection => {
                    let mut spread_bits = memory.zeroed(payload.len());
                    of_one_size.or_into_payload(memory, &mut spread_bits, blocks);
                    and_bytes(payload, &spread_bits);
                    memory.free(spread_bits);
                }
            }
        }
    }

    /// Returns what has been merged as a *partial state*: bytes for another process, which reads
    /// them by [`PartialMerge::parse`] and adds them by [`MergedFilters::add_partial`]. They have
    /// one filter for each size, by ascending number of blocks. An empty filter of no size comes
    /// first if any such filter was added. More filters can be added afterwards.
    ///
    /// Fails with [`crate::error::TooLarge::PartialState`] if the filters take too many bytes
    /// together.
    pub fn to_partial<B: Buffer>(&mut self) -> Result<B> {
        self.sort();

        let mut filters = List::new();
        if let Some(header) = self.unsized_header {
            let elements = PartialElements::Hashes(&[]);
            filters.push(PartialFilter { header, elements });
        }
        let num_sizes = self.sizes.len();
        for (i, size) in self.sizes.iter().enumerate() {
            let elements = match &size.elements {
                MergedElements::Bits(bits) => PartialElements::Bits(bits),
                MergedElements::Hashes { hashes, .. } => PartialElements::Hashes(hashes),
                // An intersection of lists: its only hashes are written with the last size.
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
            filters.push(PartialFilter { header, elements });
        }
        write_partial(self.operation, self.given_payload_bytes, &filters)
    }
}

#[cfg(test)]
mod tests;
