//! Hashes of an unsized `bloom_agg` that no longer fit `work_mem`, in temporary files.
//!
//! There is a file for each of 64 ranges of hashes. A full list is sorted and each range appended to its file, so that
//! one file at a time can be read back, sorted and counted, and the bits of its elements set in neighbouring blocks. A
//! file that may hold many repetitions is rewritten without them.

use super::call::Call;
use crate::error::Failure;
use pg_bloom_core::{Code, Error, sparse};
use pgrx::{PgMemoryContexts, pg_sys};

/// Ranges of hashes, by their highest bits.
const PARTS: usize = 64;
/// A file is not rewritten before it has this many hashes.
const REWRITE_FROM: usize = 1 << 12;

/// One range of hashes.
struct Part {
    /// Null once closed.
    file: *mut pg_sys::BufFile,
    /// Where the next hash goes.
    end: (i32, pg_sys::off_t),
    /// Hashes in the file.
    written: usize,
    /// How many there were after repetitions were last dropped.
    distinct: usize,
}

/// Hashes in temporary files. PostgreSQL deletes them at the end of the query, [`close`] at that of the group.
pub struct Spill {
    parts: Vec<Part>,
}

impl Spill {
    /// Empty files, which live as long as the group.
    pub(super) fn new(call: &Call) -> Result<*mut Spill, Failure> {
        let mut context = PgMemoryContexts::For(call.require_aggregate()?);
        let file = |_| Part { file: new_file(), end: (0, 0), written: 0, distinct: 0 };
        // SAFETY: the files are made in the memory of the group, and belong to the query.
        let parts = unsafe { context.switch_to(|_| (0..PARTS).map(file).collect()) };
        let spill = context.leak_and_drop_on_delete(Spill { parts });
        // The end of a window's frame is none of a group.
        if call.window().is_none() {
            // SAFETY: the callback is called while the files and `spill` are there, and not after an error.
            unsafe { pg_sys::AggRegisterCallback(call.fcinfo(), Some(close), pg_sys::Datum::from(spill)) };
        }
        Ok(spill)
    }

    /// Puts hashes in the order in which they are written.
    pub(super) fn group(hashes: &mut [u64]) {
        sparse::group(hashes, PARTS.trailing_zeros());
    }

    /// Adds hashes, of which those of one range are neighbours and the ranges ascend.
    pub(super) fn write(&mut self, mut hashes: &[u64]) -> Result<(), Failure> {
        for (i, part) in self.parts.iter_mut().enumerate() {
            let here = hashes.partition_point(|&hash| range_of(hash) <= i);
            let (range, rest) = hashes.split_at(here);
            part.append(range)?;
            hashes = rest;
            if part.written > REWRITE_FROM && part.written > 2 * part.distinct.max(range.len()) {
                part.drop_repetitions()?;
            }
            pgrx::check_for_interrupts!();
        }
        Ok(())
    }

    /// The number of hashes, repetitions included.
    pub(super) fn written(&self) -> usize {
        self.parts.iter().map(|part| part.written).sum()
    }

    /// Calls `visit` with the hashes of each range, in any order and with repetitions; the ranges ascend.
    pub(super) fn for_each_range(&mut self, mut visit: impl FnMut(&mut [u64])) -> Result<(), Failure> {
        for part in &mut self.parts {
            visit(&mut part.read()?);
            pgrx::check_for_interrupts!();
        }
        Ok(())
    }

    /// All distinct hashes, ascending.
    pub(super) fn distinct_hashes(&mut self) -> Result<Vec<u64>, Failure> {
        let mut all = Vec::new();
        self.for_each_range(|hashes| {
            let distinct = sparse::sort_distinct(hashes, 0);
            all.extend_from_slice(&hashes[..distinct]);
        })?;
        Ok(all)
    }

    /// Deletes the files.
    pub(super) fn close(&mut self) {
        for part in &mut self.parts {
            let file = std::mem::replace(&mut part.file, std::ptr::null_mut());
            if !file.is_null() {
                // SAFETY: the file is open, and not used again.
                unsafe { pg_sys::BufFileClose(file) };
            }
            part.written = 0;
        }
    }
}

fn new_file() -> *mut pg_sys::BufFile {
    // SAFETY: within a transaction, as all aggregates are.
    unsafe { pg_sys::BufFileCreateTemp(false) }
}

/// Deletes the files of a group that is finished.
///
/// # Safety
/// `spill` must be a [`Spill`] that is there.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn close(spill: pg_sys::Datum) {
    // SAFETY: promised by the caller.
    unsafe { &mut *spill.cast_mut_ptr::<Spill>() }.close();
}

fn range_of(hash: u64) -> usize {
    (hash >> (u64::BITS - PARTS.trailing_zeros())) as usize
}

impl Part {
    fn append(&mut self, hashes: &[u64]) -> Result<(), Failure> {
        if hashes.is_empty() {
            return Ok(());
        }
        // SAFETY: the file is open as long as the query; it is given the bytes of the hashes to read.
        unsafe {
            self.seek(self.end)?;
            pg_sys::BufFileWrite(self.file, hashes.as_ptr().cast_mut().cast(), size_of_val(hashes));
            pg_sys::BufFileTell(self.file, &mut self.end.0, &mut self.end.1);
        }
        self.written += hashes.len();
        Ok(())
    }

    fn drop_repetitions(&mut self) -> Result<(), Failure> {
        let mut hashes = self.read()?;
        self.distinct = sparse::sort_distinct(&mut hashes, 0);
        (self.end, self.written) = ((0, 0), 0);
        self.append(&hashes[..self.distinct])
    }

    /// The hashes of the file.
    fn read(&mut self) -> Result<Vec<u64>, Failure> {
        let mut hashes = vec![0u64; self.written];
        if hashes.is_empty() {
            return Ok(hashes);
        }
        let bytes = size_of_val(&hashes[..]);
        self.seek((0, 0))?;
        // SAFETY: the file is open as long as the query; the vector has room for `bytes` bytes.
        let read = unsafe { pg_sys::BufFileRead(self.file, hashes.as_mut_ptr().cast(), bytes) };
        if read != bytes {
            return Err(broken(format!("read {read} of {bytes} bytes")));
        }
        Ok(hashes)
    }

    fn seek(&mut self, (file, offset): (i32, pg_sys::off_t)) -> Result<(), Failure> {
        const FROM_THE_START: i32 = 0;
        // SAFETY: the file is open as long as the query; the position is one that it has.
        match unsafe { pg_sys::BufFileSeek(self.file, file, offset, FROM_THE_START) } {
            0 => Ok(()),
            _ => Err(broken("no such position".into())),
        }
    }
}

fn broken(detail: String) -> Failure {
    Failure::File(Error::new(Code::InvalidBinary, "could not read temporary file of bloom_agg").detail(detail))
}
