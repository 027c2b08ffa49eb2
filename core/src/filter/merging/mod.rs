//! Merging many filters one by one, in any order.
//!
//! Filters can be merged if and only if their largest block count is a multiple of all the others.
//! `64 | 96` is an error, but 64, 96 and 192 can be merged. So filters of different sizes are kept
//! apart until the end:
//!
//! ```text
//! members   64   96   192        end:   192
//!                                        ▲ 64 and 96 are spread into it
//! ```
//!
//! A member is the result for the filters of its size. In the usual case all filters have one size,
//! and there is one member. This takes no more memory than the filters together. Merging fails at
//! the end if the largest size isn't a multiple of another, or as soon as no multiple of all sizes
//! could be stored.
//!
//! An intersection with a list keeps only the hashes that all filters have so far, and the headers
//! of the other sizes.
//!
//! `of_size` has a member, and its memory; `partial` is the state that one process passes to
//! another. `heap`, for tests and fuzzing, is the memory of the program.

#[cfg(any(test, feature = "testing"))]
#[path = "tests/heap.rs"]
pub mod heap;
mod of_size;
mod partial;

pub use of_size::{GrowingList, MergeMemory};
pub use partial::{Operation, PartialMerge};

use of_size::{Held, OfSize, list, retain, without_kind};
use partial::{MOST_BYTES, START};

use crate::error::{Mismatch, Result, TooLarge};
use crate::filter::build::{contains, list_of, write_hashes};
use crate::filter::header::{Header, Representation, SizeLimit, payload_mut};
use crate::filter::merge::{cannot_merge, gcd, larger, merged_kind, mismatch};
use crate::filter::sparse;
use crate::filter::view::{Body, View};
use crate::interrupt;
use crate::kind::{Kind, Tag};
use crate::layout::{Layout, and_bytes};
use crate::memory::{self, Buffer};
use crate::sizing::{DEFAULT_FPR, MAX_STORED_BYTES};

/// The filters so far.
pub struct MergedFilters<M: MergeMemory> {
    pub operation: Operation,
    tag: Tag,
    name: M::List<u8>,
    /// Ascending by block count.
    members: M::List<OfSize<M>>,
    /// The largest header of a filter of no size.
    no_size: Option<Header<'static>>,
    /// The hashes that all filters of an intersection have, once one was a list.
    common: Option<M::List<u64>>,
    /// The greatest common divisor of all base blocks.
    base: u64,
    /// The least common multiple of all block counts.
    multiple: u64,
    /// Bytes of the largest payload so far.
    given: u64,
}

impl<M: MergeMemory> MergedFilters<M> {
    /// No filters yet.
    pub fn new(memory: &mut M, operation: Operation) -> MergedFilters<M> {
        MergedFilters {
            operation,
            tag: Tag::None,
            name: memory.list(0),
            members: memory.list(1),
            no_size: None,
            common: None,
            base: 0,
            multiple: 1,
            given: 0,
        }
    }

    fn kind(&self) -> Kind<'_> {
        Kind {
            tag: self.tag,
            name: std::str::from_utf8(&self.name).unwrap_or_default(),
        }
    }

    /// Adds a filter. Errors: [`crate::Class::KindMismatch`] for another kind,
    /// [`crate::Class::InvalidParameter`] for another layout, other hashes, or a size with which
    /// they can no longer be merged.
    pub fn add(&mut self, memory: &mut M, view: &View<'_>) -> Result<()> {
        self.given = self.given.max(view.payload_bytes() as u64);
        self.take_part(memory, view)
    }

    /// Adds the partial state of another process. Errors: those of [`MergedFilters::add`].
    pub fn add_partial(&mut self, memory: &mut M, parts: &PartialMerge<'_>) -> Result<()> {
        self.given = self.given.max(parts.given);
        let Some((last, others)) = parts.views.split_last() else {
            return Ok(());
        };
        self.take_part(memory, last)?;
        let is_list =
            self.operation == Operation::Intersection && matches!(last.body, Body::Sparse(_));
        for view in others {
            if is_list {
                // The common hashes are with the last header.
                self.meet(&view.header)?;
                self.take_header(&view.header);
            } else {
                self.take_part(memory, view)?;
            }
        }
        Ok(())
    }

    fn take_part(&mut self, memory: &mut M, view: &View<'_>) -> Result<()> {
        self.meet(&view.header)?;
        match self.operation {
            Operation::Union => self.unite(memory, view),
            Operation::Intersection => self.intersect(memory, view),
        }
        Ok(())
    }

    /// Checks a header against those before, and updates what is known of all of them.
    fn meet(&mut self, header: &Header<'_>) -> Result<()> {
        merged_kind(self.kind(), header.kind)?;
        if self.tag == Tag::None {
            self.tag = header.kind.tag;
            header.kind.name.bytes().for_each(|byte| self.name.push(byte));
        }
        self.base = gcd(self.base, header.base_blocks);
        if header.is_unsized() {
            let largest = self.no_size.as_ref().map_or(header, |own| larger(own, header));
            self.no_size = Some(without_kind(largest));
            return Ok(());
        }
        if let Some(OfSize { header: own, .. }) = self.members.last()
            && let Some(why) = mismatch(own, header)
        {
            return Err(cannot_merge(own, header, why));
        }
        let multiple =
            (self.multiple / gcd(self.multiple, header.blocks)).checked_mul(header.blocks);
        if let Some(multiple) =
            multiple.filter(|&blocks| header.layout.payload_bytes(blocks) <= MAX_STORED_BYTES)
        {
            self.multiple = multiple;
            return Ok(());
        }
        // Some member and this one don't divide each other, or the multiple would be one of them.
        let apart =
            |own: u64| !own.is_multiple_of(header.blocks) && !header.blocks.is_multiple_of(own);
        match self.members.iter().find(|member| apart(member.header.blocks)) {
            Some(member) => Err(cannot_merge(&member.header, header, Mismatch::Sizes)),
            None => Ok(()),
        }
    }

    /// The member with this number of blocks; if there is none, that of `new` becomes one.
    fn member(&mut self, blocks: u64, new: impl FnOnce() -> OfSize<M>) -> Option<&mut OfSize<M>> {
        match self
            .members
            .binary_search_by_key(&blocks, |member| member.header.blocks)
        {
            Ok(own) => Some(&mut self.members[own]),
            Err(place) => {
                self.members.push(new());
                self.members[place..].rotate_right(1);
                None
            }
        }
    }

    fn unite(&mut self, memory: &mut M, view: &View<'_>) {
        if !view.header.is_unsized()
            && let Some(own) = self.member(view.header.blocks, || OfSize::of(memory, view))
        {
            own.unite(memory, view);
        }
    }

    fn intersect(&mut self, memory: &mut M, view: &View<'_>) {
        match (&mut self.common, view.body) {
            (Some(common), _) => retain(common, |hash| contains(view, hash)),
            (None, Body::Sparse(entries)) => {
                let mut common = list(memory, sparse::values(entries));
                for member in self.members.iter_mut() {
                    let header = member.header;
                    let own = View { header, body: Body::Dense(member.bits(memory)) };
                    retain(&mut common, |hash| contains(&own, hash));
                    if let Held::Bits(bits) = std::mem::replace(&mut member.held, Held::Nothing) {
                        memory.free(bits);
                    }
                }
                self.common = Some(common);
            }
            (None, Body::Dense(bits)) => {
                if let Some(own) = self.member(view.header.blocks, || OfSize::of(memory, view)) {
                    own.take_header(&view.header);
                    and_bytes(own.bits(memory), bits);
                }
                return;
            }
        }
        self.take_header(&view.header);
    }

    /// Adds the header of a filter whose elements were already merged.
    fn take_header(&mut self, header: &Header<'_>) {
        if header.is_unsized() {
            return;
        }
        let new = || OfSize { header: without_kind(header), held: Held::Nothing };
        if let Some(own) = self.member(header.blocks, new) {
            own.take_header(header);
        }
    }

    /// The merged filter. More filters can be added afterwards. Errors:
    /// [`crate::Class::InvalidParameter`] if the largest size isn't a multiple of another;
    /// [`crate::Class::TooLarge`] if the result has more than `limit` bytes and is larger than
    /// every filter.
    pub fn finish<B: Buffer>(&mut self, memory: &mut M, limit: u64) -> Result<B> {
        self.members.iter_mut().for_each(OfSize::sort);
        let Some((largest, others)) = self.members.split_last() else {
            // No filter had a size.
            let header = self
                .no_size
                .unwrap_or(Header::without_size(Layout::Blocked, DEFAULT_FPR));
            return Ok(header.sparse(0));
        };
        if let Some(other) = others
            .iter()
            .rfind(|other| !largest.header.blocks.is_multiple_of(other.header.blocks))
        {
            return Err(cannot_merge(&other.header, &largest.header, Mismatch::Sizes));
        }
        let header = Header { kind: self.kind(), base_blocks: self.base, ..largest.header };
        if let Some(hashes) = self.only_hashes() {
            return list_of(
                &header,
                hashes,
                SizeLimit { max_bytes: limit, given_payload_bytes: self.given },
            );
        }
        header.check_growth(
            header.payload_bytes(),
            SizeLimit { max_bytes: limit, given_payload_bytes: self.given },
        )?;
        let mut value: B = header.dense();
        let payload = payload_mut(&mut value, &header);
        let blocks = header.blocks;
        let Some((largest, others)) = self.members.split_last_mut() else {
            return Ok(value);
        };
        largest.or_to(memory, payload, blocks);
        for other in others {
            if self.operation == Operation::Union {
                other.or_to(memory, payload, blocks);
            } else {
                let mut spread = memory.zeroed(payload.len());
                other.or_to(memory, &mut spread, blocks);
                and_bytes(payload, &spread);
                memory.free(spread);
            }
        }
        Ok(value)
    }

    /// The state as bytes, for another process. Errors: [`TooLarge::PartialState`] if the filters are too
    /// many bytes together.
    pub fn to_partial<B: Buffer>(&mut self) -> Result<B> {
        self.members.iter_mut().for_each(OfSize::sort);
        let common: &[u64] = self.common.as_deref().unwrap_or_default();
        // Their headers, and bits, which are at least one byte, or hashes.
        let mut filters =
            memory::collect(self.no_size.iter().map(|&header| (header, &[][..], &[][..])));
        for (i, member) in self.members.iter().enumerate() {
            let (bits, hashes): (&[u8], &[u64]) = match &member.held {
                Held::Bits(bits) => (bits, &[]),
                Held::Hashes(hashes, _) => (&[], hashes),
                Held::Nothing => (&[], if i + 1 == self.members.len() { common } else { &[] }),
            };
            let header = Header { kind: self.kind(), base_blocks: self.base, ..member.header };
            memory::push(&mut filters, (header, bits, hashes));
        }
        let lengths = filters.iter().map(|(header, bits, hashes)| {
            header.prefix_bytes() + bits.len() + size_of_val(*hashes)
        });
        let total = START
            + lengths
                .clone()
                .map(|length| 8 + length.next_multiple_of(8))
                .sum::<usize>();
        if total > MOST_BYTES {
            return Err(TooLarge::PartialState { bytes: total }.into());
        }
        let mut value = B::zeroed(total);
        let (start, mut rest) = value.bytes_mut().split_at_mut(START);
        start[1] = self.operation as u8;
        start[4..8].copy_from_slice(&(filters.len() as u32).to_le_bytes());
        start[8..].copy_from_slice(&self.given.to_le_bytes());
        for (length, (header, bits, hashes)) in lengths.zip(&filters) {
            let (own, after) = rest.split_at_mut(8 + length.next_multiple_of(8));
            own[..8].copy_from_slice(&(length as u64).to_le_bytes());
            let (prefix, payload) = own[8..8 + length].split_at_mut(header.prefix_bytes());
            header.write(
                if bits.is_empty() { Representation::Sparse } else { Representation::Dense },
                prefix,
            );
            if bits.is_empty() {
                write_hashes(payload, hashes);
            } else {
                interrupt::copy(payload, bits);
            }
            rest = after;
        }
        Ok(value)
    }

    /// The hashes of the result, if it is a list: of lists of one size, or the common ones of an
    /// intersection.
    fn only_hashes(&self) -> Option<&[u64]> {
        match (&self.common, self.operation, &self.members[..]) {
            (Some(common), ..) if self.no_size.is_none() => Some(common),
            (_, Operation::Intersection, _) if self.no_size.is_some() => Some(&[]),
            (None, Operation::Union, [OfSize { held: Held::Hashes(hashes, _), .. }]) => {
                Some(hashes)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
