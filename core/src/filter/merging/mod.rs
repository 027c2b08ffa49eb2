//! Merging many filters one by one, in any order.
//!
//! Filters can be merged if and only if their largest block count is a multiple of all the others. `64 | 96` is an
//! error, but 64, 96 and 192 can be merged. So filters of different sizes are kept apart until the end:
//!
//! ```text
//! members   64   96   192        end:   192
//!                                        ▲ 64 and 96 are spread into it
//! ```
//!
//! A member is the result for the filters of its size. In the usual case all filters have one size, and there is one
//! member. This takes no more memory than the filters together. Merging fails at the end if the largest size isn't a
//! multiple of another, or as soon as no multiple of all sizes could be stored.
//!
//! An intersection with a list keeps only the hashes that all filters have so far, and the headers of the other sizes.
//!
//! `of_size` has a member, and its memory; `partial` is the state that one process passes to another.

mod of_size;
mod partial;

pub use of_size::{Heap, List, MergeMemory};
pub use partial::{Operation, PartialMerge};

use of_size::{Held, OfSize, list, retain, without_kind};
use partial::{MOST_BYTES, START};

use crate::error::{Error, Mismatch, Result, TooLarge};
use crate::filter::build::{contains, write_hashes};
use crate::filter::header::{DENSE, Header, SPARSE, payload_mut};
use crate::filter::merge::{cannot_merge, compare, gcd, merged_kind, mismatch};
use crate::filter::sparse;
use crate::filter::view::{Body, View};
use crate::interrupt;
use crate::kind::{Kind, Tag};
use crate::layout::{Layout, and_bytes};
use crate::memory::Buffer;
use crate::sizing::{DEFAULT_FPR, MAX_STORED_BYTES};
use std::cmp::Ordering;

/// The filters so far.
pub struct MergedFilters<M: MergeMemory> {
    operation: Operation,
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

    /// How the filters are merged.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    fn kind(&self) -> Kind<'_> {
        Kind { tag: self.tag, name: std::str::from_utf8(&self.name).unwrap_or_default() }
    }

    /// Adds a filter.
    ///
    /// # Errors
    /// [`crate::Class::KindMismatch`] for another kind, [`crate::Class::InvalidParameter`] for another layout, other
    /// hashes, or a size with which they can no longer be merged.
    pub fn take(&mut self, memory: &mut M, view: &View<'_>) -> Result<()> {
        self.given = self.given.max(view.payload_bytes() as u64);
        self.take_part(memory, view)
    }

    /// Adds the partial state of another process.
    ///
    /// # Errors
    /// Those of [`MergedFilters::take`].
    pub fn take_parts(&mut self, memory: &mut M, parts: &PartialMerge<'_>) -> Result<()> {
        self.given = self.given.max(parts.given);
        let Some(last) = parts.views().last() else { return Ok(()) };
        self.take_part(memory, &last)?;
        let is_list = self.operation == Operation::Intersection && matches!(last.body, Body::Sparse(_));
        for view in parts.views().take(parts.count - 1) {
            if is_list {
                // The common hashes are with the last header.
                self.meet(&view.header)?;
                self.take_header(&view.header);
            } else {
                self.take_part(memory, &view)?;
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
            if self.no_size.as_ref().is_none_or(|own| compare(own, header) == Ordering::Less) {
                self.no_size = Some(without_kind(header));
            }
            return Ok(());
        }
        if let Some(OfSize { header: own, .. }) = self.members.last()
            && let Some(why) = mismatch(own, header)
        {
            return Err(refuse(own, header, why));
        }
        let multiple = (self.multiple / gcd(self.multiple, header.blocks)).checked_mul(header.blocks);
        match multiple.filter(|&blocks| header.layout.payload_bytes(blocks) <= MAX_STORED_BYTES) {
            Some(multiple) => self.multiple = multiple,
            // Some member and this one don't divide each other, or the multiple would be one of them.
            None => self.require_multiple_of_all(header)?,
        }
        Ok(())
    }

    /// Returns an error if the size of a member neither divides this size nor is divided by it.
    fn require_multiple_of_all(&self, header: &Header<'_>) -> Result<()> {
        let apart =
            |own: &Header<'_>| !own.blocks.is_multiple_of(header.blocks) && !header.blocks.is_multiple_of(own.blocks);
        match self.members.iter().find(|member| apart(&member.header)) {
            Some(member) => Err(refuse(&member.header, header, Mismatch::Sizes)),
            None => Ok(()),
        }
    }

    /// The member with this number of blocks; if there is none, that of `new` becomes one.
    fn member(&mut self, blocks: u64, new: impl FnOnce() -> OfSize<M>) -> Option<&mut OfSize<M>> {
        match self.members.binary_search_by_key(&blocks, |member| member.header.blocks) {
            Ok(own) => Some(&mut self.members[own]),
            Err(place) => {
                self.members.push(new());
                self.members[place..].rotate_right(1);
                None
            }
        }
    }

    fn unite(&mut self, memory: &mut M, view: &View<'_>) {
        if view.header.is_unsized() {
            return;
        }
        if let Some(own) = self.member(view.header.blocks, || OfSize::of(memory, view)) {
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
                    member.forget(memory);
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

    /// The merged filter. More filters can be added afterwards.
    ///
    /// # Errors
    /// [`crate::Class::InvalidParameter`] if the largest size isn't a multiple of another; [`crate::Class::TooLarge`]
    /// if the result has more than `limit` bytes and is larger than every filter.
    pub fn finish<B: Buffer>(&mut self, memory: &mut M, limit: u64) -> Result<B> {
        self.members.iter_mut().for_each(OfSize::sort);
        let Some((largest, others)) = self.members.split_last() else {
            // No filter had a size.
            let header = self.no_size.unwrap_or(Header::unsized_(Layout::Blocked, DEFAULT_FPR));
            return Ok(header.sparse(0));
        };
        if let Some(other) = others.iter().rfind(|other| !largest.header.blocks.is_multiple_of(other.header.blocks)) {
            return Err(refuse(&other.header, &largest.header, Mismatch::Sizes));
        }
        let header = Header { kind: self.kind(), base_blocks: self.base, ..largest.header };
        if let Some(hashes) = self.only_hashes() {
            header.check_growth(size_of_val(hashes) as u64, self.given, limit)?;
            let mut value: B = header.sparse(hashes.len());
            write_hashes(payload_mut(&mut value, &header), hashes.iter().copied());
            return Ok(value);
        }
        header.check_growth(header.payload_bytes(), self.given, limit)?;
        let mut value: B = header.dense();
        let payload = payload_mut(&mut value, &header);
        let blocks = header.blocks;
        for (i, member) in self.members.iter_mut().rev().enumerate() {
            match self.operation {
                Operation::Intersection if i > 0 => member.and_to(memory, payload, blocks),
                _ => member.or_to(memory, payload, blocks),
            }
        }
        Ok(value)
    }

    /// The state as bytes, for another process to continue with.
    ///
    /// # Errors
    /// [`TooLarge::Sizes`] if the filters are too many bytes together.
    pub fn to_parts<B: Buffer>(&mut self) -> Result<B> {
        self.members.iter_mut().for_each(OfSize::sort);
        let (kind, base_blocks) = (self.kind(), self.base);
        let common: &[u64] = self.common.as_deref().unwrap_or_default();
        let last = self.members.len().wrapping_sub(1);
        let filters = || {
            let no_size = self.no_size.iter().map(|&header| (header, Payload::Hashes(&[])));
            no_size.chain(self.members.iter().enumerate().map(move |(i, member)| {
                let payload = match &member.held {
                    Held::Bits(bits) => Payload::Bits(bits),
                    Held::Hashes(hashes, _) => Payload::Hashes(hashes),
                    Held::Nothing => Payload::Hashes(if i == last { common } else { &[] }),
                };
                (Header { kind, base_blocks, ..member.header }, payload)
            }))
        };
        let length = |header: &Header<'_>, payload: &Payload<'_>| header.prefix_bytes() + payload.len();
        let total = filters().map(|(h, p)| 8 + length(&h, &p).next_multiple_of(8)).sum::<usize>() + START;
        if total > MOST_BYTES {
            return Err(TooLarge::Sizes(total).into());
        }
        let mut value = B::zeroed(total);
        let (start, mut rest) = value.bytes_mut().split_at_mut(START);
        start[1] = self.operation as u8;
        start[4..8].copy_from_slice(&(filters().count() as u32).to_le_bytes());
        start[8..].copy_from_slice(&self.given.to_le_bytes());
        for (header, payload) in filters() {
            let length = length(&header, &payload);
            let (own, after) = std::mem::take(&mut rest).split_at_mut(8 + length.next_multiple_of(8));
            own[..8].copy_from_slice(&(length as u64).to_le_bytes());
            payload.write(&header, &mut own[8..8 + length]);
            rest = after;
        }
        Ok(value)
    }

    /// The hashes of the result, if it is a list: of lists of one size, or the common ones of an intersection.
    fn only_hashes(&self) -> Option<&[u64]> {
        match (&self.common, self.operation, &self.members[..]) {
            (Some(common), ..) if self.no_size.is_none() => Some(common),
            (_, Operation::Intersection, _) if self.no_size.is_some() => Some(&[]),
            (None, Operation::Union, [OfSize { held: Held::Hashes(hashes, _), .. }]) => Some(hashes),
            _ => None,
        }
    }
}

/// The error for two headers that can't be merged.
fn refuse(a: &Header<'_>, b: &Header<'_>, why: Mismatch) -> Error {
    let larger = if compare(a, b) == Ordering::Less { b } else { a };
    cannot_merge(a, b, larger, why)
}

/// The elements of one filter of a partial state.
enum Payload<'a> {
    Bits(&'a [u8]),
    Hashes(&'a [u64]),
}

impl Payload<'_> {
    fn len(&self) -> usize {
        match self {
            Payload::Bits(bits) => bits.len(),
            Payload::Hashes(hashes) => size_of_val(*hashes),
        }
    }

    /// Writes a filter of exactly as many bytes as `into` has.
    fn write(&self, header: &Header<'_>, into: &mut [u8]) {
        let kind = if header.is_unsized() { Kind::NONE } else { header.kind };
        let header = Header { kind, ..*header };
        match self {
            Payload::Bits(bits) => {
                header.write(DENSE, into);
                interrupt::copy(&mut into[header.prefix_bytes()..], bits);
            }
            Payload::Hashes(hashes) => {
                header.write(SPARSE, into);
                write_hashes(&mut into[header.prefix_bytes()..], hashes.iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests;
