//! What one process hands to another of the filters that it merged: a filter for each size.
//!
//! ```text
//!  0  u8    0: no filter has this version, so no way in takes it for one
//!  1  u8    1 union, 2 intersection
//!  2  u16   0
//!  4  u32   filters that follow, at least 1
//!  8  u64   bytes of the largest payload that came
//! 16        for each filter: its length (u64), its stored form, zeros up to a multiple of 8
//! ```
//!
//! The filters ascend by block count; the first may have no size. All have one layout, number of hashes, kind and base.
//! Those of an intersection are dense, or all are empty lists but the last, which has the hashes that all of them have.

use super::{Held, Member, Memory, Operation, Set};
use crate::error::{Code, Error, Result};
use crate::format::{Body, Buffer, Header, View, invalid, require};
use crate::kind::Kind;
use crate::{MAX_STORED_BYTES, interrupt};

/// Bytes before the first filter.
const START: usize = 16;
/// The most bytes that all filters together may take: what fits a value of PostgreSQL.
const MOST_BYTES: usize = (1 << 30) - 64;

/// What another process handed over, checked.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    operation: Operation,
    given: u64,
    count: usize,
    filters: &'a [u8],
}

/// The next of several filters, and what follows it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let cut_off = || invalid("a filter of a partial state is cut off");
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut_off)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok().filter(|&n| n <= rest.len()).ok_or_else(cut_off)?;
    let (filter, rest) = rest.split_at(length);
    let padding = rest.get(..length.next_multiple_of(8) - length).ok_or_else(cut_off)?;
    require(padding.iter().all(|&byte| byte == 0), || "padding of a partial state is not zero".into())?;
    Ok((filter, &rest[padding.len()..]))
}

impl<'a> Parts<'a> {
    /// Reads what [`Set::to_parts`] wrote.
    ///
    /// # Errors
    /// [`Code::InvalidBinary`] for anything else.
    pub fn parse(bytes: &'a [u8]) -> Result<Parts<'a>> {
        let (start, filters) =
            bytes.split_first_chunk::<START>().ok_or_else(|| invalid("a partial state is cut off"))?;
        let operation = match start[..4] {
            [0, 1, 0, 0] => Operation::Union,
            [0, 2, 0, 0] => Operation::Intersection,
            _ => return Err(invalid("it is no partial state of a merge")),
        };
        let (count, given) = start[4..].split_at(4);
        let count = u32::from_le_bytes(count.try_into().unwrap_or_default()) as usize;
        let given = u64::from_le_bytes(given.try_into().unwrap_or_default());
        require(count > 0, || "a partial state has no filters".into())?;
        require(given <= MAX_STORED_BYTES, || format!("a filter of {given} bytes was merged"))?;
        let parts = Parts { operation, given, count, filters };
        let (mut rest, mut before) = (filters, None);
        for i in 0..count {
            let filter;
            (filter, rest) = split(rest)?;
            let view = View::parse(filter)?;
            parts.check(&view, before.as_ref(), i + 1 == count)?;
            before = Some(view);
        }
        require(rest.is_empty(), || "a partial state is too long".into())?;
        Ok(parts)
    }

    /// Checks a filter against the one before.
    fn check(&self, view: &View<'_>, before: Option<&View<'_>>, is_last: bool) -> Result<()> {
        let h = &view.header;
        if let Some(View { header: b, .. }) = before {
            require(b.blocks < h.blocks, || "the filters of a partial state do not ascend".into())?;
            require(
                b.is_unsized()
                    || (b.layout, b.hashes, b.kind, b.base_blocks) == (h.layout, h.hashes, h.kind, h.base_blocks),
                || "the filters of a partial state differ".into(),
            )?;
        }
        let hashes = match view.body {
            Body::Sparse(entries) => Some(entries.len()),
            Body::Dense(_) => None,
        };
        let as_before = before.is_none_or(|before| matches!(before.body, Body::Sparse(_)) == hashes.is_some());
        require(
            self.operation == Operation::Union
                || (as_before && (is_last || hashes.is_none_or(|n| n == 0)))
                || h.is_unsized(),
            || "an intersection of bits and hashes".into(),
        )
    }

    /// How the filters are merged.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Bytes of the largest payload that came.
    pub(super) fn given(&self) -> u64 {
        self.given
    }

    /// How many filters there are.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// The filters, ascending by block count.
    pub fn views(&self) -> impl Iterator<Item = View<'a>> + use<'a> {
        let mut rest = self.filters;
        std::iter::from_fn(move || {
            let (filter, after) = split(rest).ok()?;
            rest = after;
            View::parse_trusted(filter).ok()
        })
    }
}

impl<M: Memory> Set<M> {
    /// What another process goes on with.
    ///
    /// # Errors
    /// [`Code::TooLarge`] if the filters are too many bytes together.
    pub fn to_parts<B: Buffer>(&mut self) -> Result<B> {
        self.members.iter_mut().for_each(Member::sort);
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
            return Err(Error::new(Code::TooLarge, "bloom filters of too many sizes to be merged in parallel")
                .detail(format!("They take {total} bytes."))
                .hint(
                    "Build filters that will be merged with the same capacity, or merge them without parallel workers.",
                ));
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
}

/// The payload of a filter to write.
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
                header.rewrite_dense(into);
                interrupt::copy(&mut into[header.prefix_bytes()..], bits);
            }
            Payload::Hashes(hashes) => {
                header.rewrite_sparse(into);
                crate::build::write_hashes(&mut into[header.prefix_bytes()..], hashes.iter().copied());
            }
        }
    }
}
