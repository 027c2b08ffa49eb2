//! The result for the filters of one size, a list while all of them are lists, else bits; and whose
//! memory it is in.

use crate::filter::header::Header;
use crate::filter::merge::{larger, or_into};
use crate::filter::sparse;
use crate::filter::view::{Body, View};
use crate::interrupt;
use crate::kind::Kind;
use std::ops::DerefMut;

/// A list that grows.
pub trait GrowingList<T>: DerefMut<Target = [T]> {
    fn push(&mut self, item: T);
    fn truncate(&mut self, len: usize);
    fn free(self);
}

/// Memory for merged filters.
pub trait MergeMemory {
    /// The bits of filters that are merged.
    type Bits: DerefMut<Target = [u8]>;
    /// Hashes, and what there is one of for each size.
    type List<T>: GrowingList<T>;

    fn zeroed(&mut self, len: usize) -> Self::Bits;
    fn free(&mut self, bits: Self::Bits);
    fn list<T>(&mut self, room: usize) -> Self::List<T>;
}

pub(super) enum Held<M: MergeMemory> {
    Bits(M::Bits),
    /// Hashes, and how many there were when they were last sorted.
    Hashes(M::List<u64>, usize),
    /// Nothing: all sizes share the hashes of the intersection.
    Nothing,
}

pub(super) struct OfSize<M: MergeMemory> {
    /// The largest header of this size, without a kind.
    pub(super) header: Header<'static>,
    pub(super) held: Held<M>,
}

pub(super) fn without_kind(header: &Header<'_>) -> Header<'static> {
    Header { kind: Kind::NONE, ..*header }
}

pub(super) fn list<M: MergeMemory>(
    memory: &mut M,
    hashes: impl ExactSizeIterator<Item = u64>,
) -> M::List<u64> {
    let mut list = memory.list(hashes.len());
    append(&mut list, hashes);
    list
}

fn append(list: &mut impl GrowingList<u64>, hashes: impl Iterator<Item = u64>) {
    interrupt::cancellable(hashes).for_each(|hash| list.push(hash));
}

/// Keeps those hashes of a list for which `keep` holds.
pub(super) fn retain(list: &mut impl GrowingList<u64>, keep: impl Fn(u64) -> bool) {
    let mut kept = 0;
    for i in interrupt::cancellable(0..list.len()) {
        if keep(list[i]) {
            list[kept] = list[i];
            kept += 1;
        }
    }
    list.truncate(kept);
}

impl<M: MergeMemory> OfSize<M> {
    pub(super) fn of(memory: &mut M, view: &View<'_>) -> OfSize<M> {
        let held = match view.body {
            Body::Dense(bits) => {
                let mut own = memory.zeroed(bits.len());
                interrupt::copy(&mut own, bits);
                Held::Bits(own)
            }
            Body::Sparse(entries) => {
                Held::Hashes(list(memory, sparse::values(entries)), entries.len())
            }
        };
        OfSize { header: without_kind(&view.header), held }
    }

    pub(super) fn take_header(&mut self, header: &Header<'_>) {
        self.header = without_kind(larger(&self.header, header));
    }

    /// Sorts a list and drops repeated hashes.
    pub(super) fn sort(&mut self) {
        if let Held::Hashes(hashes, sorted) = &mut self.held {
            *sorted = sparse::sort_distinct(hashes, *sorted);
            hashes.truncate(*sorted);
        }
    }

    /// The bits, which a list becomes.
    pub(super) fn bits(&mut self, memory: &mut M) -> &mut [u8] {
        let h = self.header;
        if !matches!(self.held, Held::Bits(_)) {
            let mut bits = memory.zeroed(h.payload_bytes() as usize);
            if let Held::Hashes(hashes, _) = std::mem::replace(&mut self.held, Held::Nothing) {
                h.shape().insert_all(&mut bits, &hashes);
                hashes.free();
            }
            self.held = Held::Bits(bits);
        }
        match &mut self.held {
            Held::Bits(bits) => bits,
            _ => unreachable!("it was made one of bits"),
        }
    }

    /// Adds a filter of the same size.
    pub(super) fn unite(&mut self, memory: &mut M, view: &View<'_>) {
        self.take_header(&view.header);
        let most = self.header.payload_bytes() / 8;
        if let (Held::Hashes(hashes, sorted), Body::Sparse(entries)) = (&mut self.held, view.body) {
            append(hashes, sparse::values(entries));
            // Sorting now and then costs a logarithmic factor, and drops repeated hashes.
            if hashes.len() > (*sorted * 2).max(64) || hashes.len() as u64 > most {
                self.sort();
            }
            if matches!(&self.held, Held::Hashes(hashes, _) if hashes.len() as u64 > most) {
                self.bits(memory);
            }
            return;
        }
        or_into(self.bits(memory), view.header.blocks, view);
    }

    /// ORs what is held, spread to `blocks` blocks, into a dense payload.
    pub(super) fn or_to(&mut self, memory: &mut M, payload: &mut [u8], blocks: u64) {
        let h = self.header;
        match &self.held {
            Held::Hashes(hashes, _) if h.blocks == blocks => h.shape().insert_all(payload, hashes),
            _ => h.layout.spread(self.bits(memory), payload, blocks / h.blocks),
        }
    }
}
