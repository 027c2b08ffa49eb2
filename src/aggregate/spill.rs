//! Hashes of a `bloom_agg` without a capacity that no longer fit in memory: they go to a temporary
//! file.
//!
//! Each time that memory is full, its hashes are sorted and appended to the file, as a **run**. The
//! hashes are divided into 64 **ranges** by their first six bits, and a run has those of range 0
//! first, then those of range 1, and so on:
//!
//! ```text
//! file   | range 0, range 1, … range 63 | range 0, range 1, … range 63 | …
//!         ◀──────────  run 0  ─────────▶ ◀──────────  run 1  ─────────▶
//! ```
//!
//! They are read back range by range, each from all runs. So only a few hashes at a time are in
//! memory to be sorted and counted, and all copies of a hash meet there. The bits that their
//! elements set are in neighbouring blocks of the filter. A file with many repeated hashes is
//! rewritten without them.

use super::memory::aggregate_memory;
use crate::pg::call::{Call, Result};
use crate::pg::memory::temporary_file::Temporary;
use crate::pg::memory::{Context, keep};
use pg_bloom_core::filter::sparse;
use pg_bloom_core::memory::List;
use std::ops::Range;

/// Into how many ranges hashes are divided.
const RANGES: usize = 64;
/// How many bytes of hashes are read back at once. If one range has more, it is read whole.
const BATCH_BYTES: usize = 512 << 10;
/// How many hashes a file must have before it is searched for repeated ones.
const MIN_HASHES_TO_SEARCH: usize = 1 << 14;

/// Hashes that were appended to the file at once: ascending, so those of a range are together.
struct SpillRun {
    /// The place of its first hash in the file, counted in hashes.
    first: u64,
    /// Where each range ends, counted in hashes from the first one.
    range_ends: [u32; RANGES],
}

/// Consecutive hashes in a file.
struct FilePart {
    /// The place of the first hash, counted in hashes.
    first: u64,
    len: usize,
}

impl SpillRun {
    /// Returns where the file has the hashes of this run that belong to some consecutive ranges. A
    /// *run* is a list of ascending hashes that was appended to the file at once, and a *range* the
    /// number of the hashes' first six bits.
    fn part(&self, ranges: Range<usize>) -> FilePart {
        let start = match ranges.start {
            0 => 0,
            start => self.range_ends[start - 1],
        };
        let end = self.range_ends[ranges.end - 1];
        FilePart {
            first: self.first + u64::from(start),
            len: (end - start) as usize,
        }
    }
}

/// Hashes in a temporary file, which is deleted with the state that they belong to.
pub struct Spill {
    context: Context<'static>,
    file: Temporary,
    /// A second file, which is used when the first one is rewritten without repeated hashes.
    spare_file: Option<Temporary>,
    runs: List<SpillRun>,
    /// How many hashes the file had when it was last found to have few repeated ones. It is
    /// searched again when it has twice as many.
    hashes_at_last_search: usize,
}

impl Spill {
    /// Creates an empty temporary file for a state of the aggregate that is being called. The
    /// result is allocated in the memory of the aggregate, and the file is deleted when this memory
    /// is freed. Fails with 55000 outside an aggregate.
    pub fn new(call: &Call) -> Result<*mut Spill> {
        let context = aggregate_memory(call)?;
        // SAFETY: an aggregate runs within a transaction. The struct that has the file is kept in
        // this context and dropped with it.
        let file = unsafe { Temporary::new(context) };
        let spill = Spill {
            context,
            file,
            spare_file: None,
            runs: List::new(),
            hashes_at_last_search: 0,
        };
        Ok(keep(context, spill))
    }

    /// Appends hashes, each in eight little-endian bytes, to the file. They must be ascending: what
    /// one call has written, a *run*, is in order. A *range* is all hashes with the same first six
    /// bits. For each range the run notes where it ends, so that the hashes of a range can be read
    /// from all runs.
    ///
    /// Each time the file has doubled, a sample of it is searched for repeated hashes. If at least
    /// a quarter of them repeat others, the file is rewritten without repetitions. Fails with 58030
    /// if the file can't be written or read.
    pub fn write(&mut self, hashes: &[[u8; 8]]) -> Result<()> {
        let range_ends = std::array::from_fn(|range| {
            let end = hashes.partition_point(|&hash| range_of(sparse::hash_in(&hash)) <= range);
            // A state writes at most as many hashes at once as a u32 can count.
            end as u32
        });
        let run = SpillRun { first: self.file.len(), range_ends };
        self.runs.push(run);
        self.file.append(hashes)?;
        pgrx::check_for_interrupts!();

        let hashes_before_search = MIN_HASHES_TO_SEARCH.max(2 * self.hashes_at_last_search);
        if self.num_hashes() > hashes_before_search {
            if !self.has_few_repetitions()? {
                self.drop_repetitions()?;
            }
            self.hashes_at_last_search = self.num_hashes();
        }
        Ok(())
    }

    /// Returns how many hashes the file has, repeated ones included.
    pub fn num_hashes(&self) -> usize {
        self.file.len() as usize
    }

    /// Returns whether fewer than a quarter of the hashes in the file repeat others. Judged by the
    /// hashes of range 0, those that begin with six zero bits: the file has all copies of them
    /// there. Fails with 58030 if the file can't be read.
    fn has_few_repetitions(&mut self) -> Result<bool> {
        let mut hashes = List::new();
        self.read_ranges(0..1, &[], &mut hashes)?;
        let num_distinct = sparse::sort_distinct(&mut hashes, 0);
        Ok(!hashes.is_empty() && num_distinct * 4 >= hashes.len() * 3)
    }

    /// Rewrites the file without repeated hashes. Afterwards it is one run, a list of all hashes in
    /// ascending order. The old file is kept for the next time. Fails with 58030 if a file can't be
    /// read or written.
    fn drop_repetitions(&mut self) -> Result<()> {
        let mut new_file = match self.spare_file.take() {
            Some(file) => file,
            // SAFETY: an aggregate runs within a transaction, and this struct is dropped with the
            // context.
            None => unsafe { Temporary::new(self.context) },
        };
        new_file.clear();

        let mut hashes_of_range = [0_u32; RANGES];
        self.for_each_batch(&[], |hashes| {
            let num_distinct = sparse::sort_distinct(hashes, 0);
            let distinct = &hashes[..num_distinct];
            for &hash in distinct {
                hashes_of_range[range_of(hash)] += 1;
            }
            with_entries(distinct, |entries| new_file.append(entries))
        })?;

        // Added up, the numbers of hashes are the ends of the ranges.
        let mut range_ends = hashes_of_range;
        for range in 1..RANGES {
            range_ends[range] += range_ends[range - 1];
        }
        self.spare_file = Some(std::mem::replace(&mut self.file, new_file));
        self.runs.clear();
        self.runs.push(SpillRun { first: 0, range_ends });
        Ok(())
    }

    /// Calls `visit` with all hashes of the file and with `more_hashes`, which must be ascending,
    /// about half a megabyte of hashes at a time. In one batch they are in any order and may
    /// repeat. All hashes of later batches are greater, so that equal hashes always come in one
    /// batch. `visit` may sort the batch in place.
    ///
    /// Fails with 58030 if the file can't be read, and if `visit` fails.
    pub fn for_each_batch(
        &mut self,
        more_hashes: &[u64],
        mut visit: impl FnMut(&mut [u64]) -> Result<()>,
    ) -> Result<()> {
        let bytes = (self.num_hashes() + more_hashes.len()) * size_of::<u64>();
        // A power of two, as RANGES is, so that each batch has the same number of ranges.
        let batches = bytes.div_ceil(BATCH_BYTES).next_power_of_two().clamp(1, RANGES);
        let ranges_per_batch = RANGES / batches;

        let mut hashes = List::new();
        for first_range in (0..RANGES).step_by(ranges_per_batch) {
            let ranges = first_range..first_range + ranges_per_batch;
            self.read_ranges(ranges, more_hashes, &mut hashes)?;
            visit(&mut hashes)?;
            pgrx::check_for_interrupts!();
        }
        Ok(())
    }

    /// Fills `hashes` with all hashes of some ranges: from every run in the file, and from
    /// `more_hashes`, which must be ascending. A *range* is all hashes with the same first six
    /// bits, its number; a *run* is what one call has written, in order, and notes where each range
    /// ends. The hashes are in no order, and may repeat. Fails with 58030 if the file can't be
    /// read.
    fn read_ranges(
        &mut self,
        ranges: Range<usize>,
        more_hashes: &[u64],
        hashes: &mut List<u64>,
    ) -> Result<()> {
        let index_of_range = |range| more_hashes.partition_point(|&hash| range_of(hash) < range);
        let more_in_ranges = &more_hashes[index_of_range(ranges.start)..index_of_range(ranges.end)];

        let mut len = more_in_ranges.len();
        for run in &self.runs {
            len += run.part(ranges.clone()).len;
        }
        hashes.clear();
        hashes.reserve_exact(len);
        hashes.resize(len, 0);

        let mut unfilled = &mut hashes[..];
        for run in &self.runs {
            let part = run.part(ranges.clone());
            let (hashes_of_run, rest) = unfilled.split_at_mut(part.len);
            self.file.read(part.first, hashes_of_run)?;
            unfilled = rest;
        }
        unfilled.copy_from_slice(more_in_ranges);
        Ok(())
    }
}

/// Returns the number of the range that a hash belongs to: its first six bits.
fn range_of(hash: u64) -> usize {
    let bits = RANGES.trailing_zeros();
    (hash >> (u64::BITS - bits)) as usize
}

/// Calls `use_entries` with hashes in the form in which sparse filters and files have them: eight
/// little-endian bytes each. Returns its result.
pub fn with_entries<T>(hashes: &[u64], use_entries: impl FnOnce(&[[u8; 8]]) -> T) -> T {
    if cfg!(target_endian = "little") {
        // SAFETY: on this processor the bytes of a u64 are in little-endian order already, and an
        // array of bytes needs no alignment.
        let entries =
            unsafe { std::slice::from_raw_parts(hashes.as_ptr().cast::<[u8; 8]>(), hashes.len()) };
        use_entries(entries)
    } else {
        use_entries(&hashes.iter().map(|hash| hash.to_le_bytes()).collect::<List<_>>())
    }
}
