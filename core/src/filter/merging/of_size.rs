//! The result for the filters of one size, a list while all of them are lists, else bits; and the
//! interface to the memory that it is in.

use crate::filter::header::Header;
use crate::filter::merge::{larger, or_into};
use crate::filter::sparse;
use crate::filter::view::{Body, View};
use crate::interrupt;
use crate::kind::Kind;
use std::mem;
use std::ops::DerefMut;

/// A list in the memory of a merge. Dereferencing gives its items.
pub trait GrowingList<T>: DerefMut<Target = [T]> {
    /// Adds an item to the end.
    fn push(&mut self, item: T);
    /// Drops all items except the first `len`.
    fn truncate(&mut self, len: usize);
    /// Frees the memory of the list.
    fn free(self);
}

/// The memory of a merge. The caller chooses the type, and so how memory is allocated.
pub trait MergeMemory {
    /// The bits of a filter.
    type Bits: DerefMut<Target = [u8]>;
    /// A list of hashes, or of what is kept for each size.
    type List<T>: GrowingList<T>;

    /// Allocates `len` bytes, all 0.
    fn zeroed(&mut self, len: usize) -> Self::Bits;
    /// Frees bits.
    fn free(&mut self, bits: Self::Bits);
    /// Allocates an empty list with room for `capacity` items.
    fn list<T>(&mut self, capacity: usize) -> Self::List<T>;
}

/// A list is sorted only if it has at least this many hashes: sorting fewer saves nothing.
const FEWEST_SORTED: usize = 64;

/// The elements of the filters of one size.
pub(super) enum MergedElements<M: MergeMemory> {
    Bits(M::Bits),
    Hashes {
        hashes: M::List<u64>,
        /// This many hashes at the start of the list are distinct and ascending.
        num_sorted: usize,
    },
    /// The elements are kept elsewhere: all sizes of an intersection share its hashes.
    Elsewhere,
}

/// The result for the filters of one size.
pub(super) struct MergedSize<M: MergeMemory> {
    /// The largest header of these filters, without a kind, which is kept once for all sizes.
    pub(super) header: Header<'static>,
    pub(super) elements: MergedElements<M>,
}

/// Returns a header without its key kind, so that it borrows nothing.
pub(super) fn without_kind(header: &Header<'_>) -> Header<'static> {
    Header { kind: Kind::NONE, ..*header }
}

/// Returns a list of these hashes in the memory of a merge. Checks for interrupts.
pub(super) fn list_in<M: MergeMemory>(
    memory: &mut M,
    hashes: impl ExactSizeIterator<Item = u64>,
) -> M::List<u64> {
    let mut list = memory.list(hashes.len());
    append(&mut list, hashes);
    list
}

/// Adds hashes to the end of a list. Checks for interrupts.
fn append(list: &mut impl GrowingList<u64>, hashes: impl Iterator<Item = u64>) {
    for hash in interrupt::cancellable(hashes) {
        list.push(hash);
    }
}

/// Keeps only those hashes of a list for which `keep` returns true, in their order. Checks for
/// interrupts.
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

impl<M: MergeMemory> MergedSize<M> {
    /// Begins the merge of the filters of one size with the first of them: returns its header, and
    /// a copy of its elements in `memory`, which outlives the filter. The key kind is left out of
    /// the header, as it is kept once for all sizes.
    ///
    /// Checks for interrupts while it copies, so a user can cancel it.
    pub(super) fn of_filter(memory: &mut M, view: &View<'_>) -> MergedSize<M> {
        let elements = match view.body {
            Body::Dense(bits) => {
                let mut copied_bits = memory.zeroed(bits.len());
                interrupt::copy(&mut copied_bits, bits);
                MergedElements::Bits(copied_bits)
            }
            Body::Sparse(list) => MergedElements::Hashes {
                hashes: list_in(memory, sparse::hashes_in(list)),
                // Stored hashes are in ascending order.
                num_sorted: list.len(),
            },
        };
        MergedSize { header: without_kind(&view.header), elements }
    }

    /// Notes the header of another filter of this size: the larger one is kept.
    pub(super) fn add_header(&mut self, header: &Header<'_>) {
        self.header = without_kind(larger(&self.header, header));
    }

    /// Sorts the hashes and drops repeated ones, if the elements are kept as a list of hashes.
    pub(super) fn sort(&mut self) {
        if let MergedElements::Hashes { hashes, num_sorted } = &mut self.elements {
            *num_sorted = sparse::sort_distinct(hashes, *num_sorted);
            hashes.truncate(*num_sorted);
        }
    }

    /// Returns the bits of the elements, to be changed. If the elements are kept as a list of
    /// hashes, they are converted first, see [`MergedSize::convert_to_bits`].
    pub(super) fn bits_mut(&mut self, memory: &mut M) -> &mut [u8] {
        self.convert_to_bits(memory);
        match &mut self.elements {
            MergedElements::Bits(bits) => bits,
            _ => unreachable!("other elements became bits above"),
        }
    }

    /// Turns a list of hashes into bits: allocates the bits of a filter of this size in `memory`,
    /// sets those of the hashes, and frees the list. Does nothing if the elements are bits already.
    /// If the elements are kept elsewhere, as those of an intersection of lists, the bits are all
    /// clear.
    fn convert_to_bits(&mut self, memory: &mut M) {
        if matches!(self.elements, MergedElements::Bits(_)) {
            return;
        }
        let mut bits = memory.zeroed(self.header.payload_bytes() as usize);
        let elements = mem::replace(&mut self.elements, MergedElements::Elsewhere);
        if let MergedElements::Hashes { hashes, .. } = elements {
            self.header.shape().insert_all(&mut bits, &hashes);
            hashes.free();
        }
        self.elements = MergedElements::Bits(bits);
    }

    /// Adds the elements of another filter of this size. The result stays a list if both filters
    /// are lists, and if its distinct hashes take no more memory than bits would; else it becomes
    /// bits.
    pub(super) fn add_elements(&mut self, memory: &mut M, view: &View<'_>) {
        self.add_header(&view.header);

        match (&mut self.elements, view.body) {
            (MergedElements::Hashes { hashes, .. }, Body::Sparse(list)) => {
                append(hashes, sparse::hashes_in(list));
                self.shrink_list(memory);
            }
            _ => or_into(self.bits_mut(memory), view.header.blocks, view),
        }
    }

    /// Keeps a list of hashes small after some were added: drops repeated hashes if the list has
    /// more than doubled since it was sorted, or takes more memory than bits would; and converts it
    /// to bits if it still takes more. Does nothing if the elements are bits.
    fn shrink_list(&mut self, memory: &mut M) {
        let MergedElements::Hashes { hashes, num_sorted } = &self.elements else {
            return;
        };
        let most_hashes = self.header.payload_bytes() as usize / size_of::<u64>();

        // Sorting only when the list has doubled sorts each hash a logarithmic number of times.
        let has_doubled = hashes.len() > (*num_sorted * 2).max(FEWEST_SORTED);
        if !has_doubled && hashes.len() <= most_hashes {
            return;
        }
        self.sort();

        // Without repeated hashes the list may be short enough again.
        if let MergedElements::Hashes { hashes, .. } = &self.elements
            && hashes.len() > most_hashes
        {
            self.convert_to_bits(memory);
        }
    }

    /// Adds the elements of this size to the bits of the merged filter, `payload`, which has
    /// `blocks` blocks: a multiple of the number that this size has. The bits of the elements are
    /// *spread* to so many blocks, each block to several, and ORed into `payload`.
    pub(super) fn or_into_payload(&mut self, memory: &mut M, payload: &mut [u8], blocks: u64) {
        let header = self.header;
        match &self.elements {
            // In the same size a list need not become bits first.
            MergedElements::Hashes { hashes, .. } if header.blocks == blocks => {
                header.shape().insert_all(payload, hashes);
            }
            _ => header
                .layout
                .spread(self.bits_mut(memory), payload, blocks / header.blocks),
        }
    }
}
