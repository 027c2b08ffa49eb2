//! Writing a partial state.

use super::of_size::{Held, OfSize};
use super::partial::{MOST_BYTES, START};
use super::store::MergeMemory;
use super::whole::MergedFilters;
use crate::error::{Result, TooLarge};
use crate::filter::buffer::Buffer;
use crate::filter::build::write_hashes;
use crate::filter::header::{DENSE, Header, SPARSE};
use crate::interrupt;
use crate::kind::Kind;

impl<M: MergeMemory> MergedFilters<M> {
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
}

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
