//! Hashes of an unsized `bloom_agg` that no longer fit its memory, in a temporary file.
//!
//! ```text
//! file   | range 0, range 1, … range 63 | range 0, range 1, … range 63 | …
//!         ◀──────────  run 0  ─────────▶ ◀──────────  run 1  ─────────▶
//! ```
//!
//! Each time that memory is full, its hashes are sorted and appended to the file: a run. They
//! belong to ranges by their first six bits, and are read back range by range, from all runs, so
//! that few hashes at a time are sorted and counted, and the bits of their elements set in
//! neighbouring blocks. A file that holds many repetitions is rewritten without them.

use super::memory::aggregate_memory;
use crate::pg::call::{Call, Result};
use crate::pg::memory::temporary_file::Temporary;
use crate::pg::memory::{Context, keep};
use pg_bloom_core::filter::sparse;
use pg_bloom_core::memory;

const RANGES: usize = 64;
/// Bytes of hashes that are read back at once, if that takes no more batches than there are ranges.
const BATCH_BYTES: usize = 512 << 10;
/// A file is not searched for repetitions before it has this many hashes.
const LOOK_FROM: usize = 1 << 14;

struct Run {
    /// The first, counted from the start of the file.
    first: u64,
    /// Where each range ends, counted from the first.
    ends: [u32; RANGES],
}

impl Run {
    /// The hashes of so many ranges: the first, counted from the start of the file, and how many
    /// there are.
    fn part(&self, ranges: std::ops::Range<usize>) -> (u64, usize) {
        let from = if ranges.start == 0 { 0 } else { self.ends[ranges.start - 1] };
        (self.first + u64::from(from), (self.ends[ranges.end - 1] - from) as usize)
    }
}

/// Hashes in a temporary file, which is deleted with the memory of the group.
pub struct Spill {
    context: Context<'static>,
    file: Temporary,
    /// A second file, to which the first is rewritten without repetitions.
    spare: Option<Temporary>,
    runs: Vec<Run>,
    /// How many hashes the file had when few of them were known to be repetitions.
    distinct: usize,
}

impl Spill {
    pub fn new(call: &Call) -> Result<*mut Spill> {
        let context = aggregate_memory(call)?;
        // SAFETY: what has the file is kept there, and dropped with it.
        let file = unsafe { Temporary::new(context) };
        let spill = Spill { context, file, spare: None, runs: Vec::new(), distinct: 0 };
        Ok(keep(context, spill))
    }

    /// Adds hashes, which ascend.
    pub fn write(&mut self, hashes: &[[u8; 8]]) -> Result<()> {
        // No state has more than a u32 can count.
        let end =
            |range| hashes.partition_point(|hash| range_of(sparse::value(hash)) <= range) as u32;
        memory::push(
            &mut self.runs,
            Run { first: self.file.len(), ends: std::array::from_fn(end) },
        );
        self.file.append(hashes)?;
        pgrx::check_for_interrupts!();
        if self.written() > LOOK_FROM.max(2 * self.distinct) {
            if self.has_few_repetitions()? {
                self.distinct = self.written();
            } else {
                self.drop_repetitions()?;
            }
        }
        Ok(())
    }

    /// The number of hashes, repetitions included.
    pub fn written(&self) -> usize {
        self.file.len() as usize
    }

    /// Whether fewer than a quarter of the hashes are repetitions, judged by one range: it has all
    /// copies of a hash.
    fn has_few_repetitions(&mut self) -> Result<bool> {
        let mut hashes = Vec::new();
        self.read(0..1, &[], &mut hashes)?;
        let distinct = sparse::sort_distinct(&mut hashes, 0);
        Ok(!hashes.is_empty() && distinct * 4 >= hashes.len() * 3)
    }

    fn drop_repetitions(&mut self) -> Result<()> {
        // SAFETY: as in `new`.
        let mut file = self
            .spare
            .take()
            .unwrap_or_else(|| unsafe { Temporary::new(self.context) });
        file.clear();
        let mut run = Run { first: 0, ends: [0; RANGES] };
        self.for_each_batch(&[], |hashes| {
            let distinct = sparse::sort_distinct(hashes, 0);
            hashes[..distinct]
                .iter()
                .for_each(|&hash| run.ends[range_of(hash)] += 1);
            with_entries(&hashes[..distinct], |entries| file.append(entries))
        })?;
        (1..RANGES).for_each(|range| run.ends[range] += run.ends[range - 1]);
        self.distinct = file.len() as usize;
        self.spare = Some(std::mem::replace(&mut self.file, file));
        self.runs.clear();
        self.runs.push(run);
        Ok(())
    }

    /// Calls `visit` with hashes, those of neighbouring ranges at a time, in any order and with
    /// repetitions; the ranges ascend. `own` are hashes that are not in the file, ascending.
    pub fn for_each_batch(
        &mut self,
        own: &[u64],
        mut visit: impl FnMut(&mut [u64]) -> Result<()>,
    ) -> Result<()> {
        let bytes = (self.written() + own.len()) * 8;
        let batches = bytes.div_ceil(BATCH_BYTES).next_power_of_two().clamp(1, RANGES);
        let mut hashes = Vec::new();
        for range in (0..RANGES).step_by(RANGES / batches) {
            self.read(range..range + RANGES / batches, own, &mut hashes)?;
            visit(&mut hashes)?;
            pgrx::check_for_interrupts!();
        }
        Ok(())
    }

    fn read(
        &mut self,
        ranges: std::ops::Range<usize>,
        own: &[u64],
        hashes: &mut Vec<u64>,
    ) -> Result<()> {
        let before = |range| own.partition_point(|&hash| range_of(hash) < range);
        let own = &own[before(ranges.start)..before(ranges.end)];
        let len = own.len() + self.runs.iter().map(|run| run.part(ranges.clone()).1).sum::<usize>();
        hashes.clear();
        memory::reserve(hashes, len);
        hashes.resize(len, 0);
        let mut rest = &mut hashes[..];
        for run in &self.runs {
            let (first, len) = run.part(ranges.clone());
            let (here, behind) = rest.split_at_mut(len);
            self.file.read(first, here)?;
            rest = behind;
        }
        rest.copy_from_slice(own);
        Ok(())
    }
}

fn range_of(hash: u64) -> usize {
    (hash >> (u64::BITS - RANGES.trailing_zeros())) as usize
}

/// Shows hashes as the entries of a sparse filter.
pub fn with_entries<T>(hashes: &[u64], use_entries: impl FnOnce(&[[u8; 8]]) -> T) -> T {
    if cfg!(target_endian = "little") {
        // SAFETY: on this CPU a u64 lies in memory as its eight little-endian bytes.
        use_entries(unsafe {
            std::slice::from_raw_parts(hashes.as_ptr().cast::<[u8; 8]>(), hashes.len())
        })
    } else {
        use_entries(&memory::collect(hashes.iter().map(|h| h.to_le_bytes())))
    }
}
