//! Hashes of an unsized `bloom_agg` that no longer fit `work_mem`, in temporary files.
//!
//! There is a file for each of 64 ranges of hashes. A full list is sorted and each range appended to its file, so that
//! one file at a time can be read back, sorted and counted, and the bits of its elements set in neighbouring blocks. A
//! file that may hold many repetitions is rewritten without them.

use crate::error::Failure;
use pg_bloom_core::{Code, Error, sparse};
use pgrx::{PgMemoryContexts, pg_sys};

/// Ranges of hashes, by their highest bits.
const PARTS: usize = 64;
/// A file is not rewritten before it has this many hashes.
const REWRITE_FROM: usize = 1 << 16;

/// One range of hashes.
struct Part {
    file: *mut pg_sys::BufFile,
    /// Where the next hash goes.
    end: (i32, pg_sys::off_t),
    /// Hashes in the file.
    written: usize,
    /// How many there were after repetitions were last dropped.
    distinct: usize,
}

/// Hashes in temporary files, which PostgreSQL deletes at the end of the query.
pub struct Spill {
    parts: Vec<Part>,
}

impl Spill {
    /// Empty files, which live as long as `context`.
    pub(super) fn new(context: pg_sys::MemoryContext) -> *mut Spill {
        let mut context = PgMemoryContexts::For(context);
        // SAFETY: the files are made in the context of the aggregate, and belong to the query.
        let files =
            unsafe { context.switch_to(|_| (0..PARTS).map(|_| pg_sys::BufFileCreateTemp(false)).collect::<Vec<_>>()) };
        let parts = files.into_iter().map(|file| Part { file, end: (0, 0), written: 0, distinct: 0 }).collect();
        context.leak_and_drop_on_delete(Spill { parts })
    }

    /// Adds hashes, ascending and without repetitions.
    pub(super) fn write(&mut self, mut hashes: &[u64]) -> Result<(), Failure> {
        for (i, part) in self.parts.iter_mut().enumerate() {
            let here = hashes.partition_point(|&hash| range_of(hash) <= i);
            let (range, rest) = hashes.split_at(here);
            part.append(range)?;
            hashes = rest;
            if part.written > REWRITE_FROM && part.written > 2 * part.distinct.max(range.len()) {
                let distinct = part.read()?;
                part.rewrite(&distinct)?;
            }
            pgrx::check_for_interrupts!();
        }
        Ok(())
    }

    /// The number of hashes, repetitions included.
    pub(super) fn written(&self) -> usize {
        self.parts.iter().map(|part| part.written).sum()
    }

    /// Calls `visit` with the distinct hashes of each range, ascending.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&[u64])) -> Result<(), Failure> {
        for part in &mut self.parts {
            visit(&part.read()?);
            pgrx::check_for_interrupts!();
        }
        Ok(())
    }
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

    fn rewrite(&mut self, hashes: &[u64]) -> Result<(), Failure> {
        self.end = (0, 0);
        self.written = 0;
        self.distinct = hashes.len();
        self.append(hashes)
    }

    /// The distinct hashes of the file, ascending.
    fn read(&mut self) -> Result<Vec<u64>, Failure> {
        let mut hashes = vec![0u64; self.written];
        let bytes = size_of_val(&hashes[..]);
        self.seek((0, 0))?;
        // SAFETY: the file is open as long as the query; the vector has room for `bytes` bytes.
        let read = unsafe { pg_sys::BufFileRead(self.file, hashes.as_mut_ptr().cast(), bytes) };
        if read != bytes {
            return Err(broken(format!("read {read} of {bytes} bytes")));
        }
        let distinct = sparse::sort_distinct(&mut hashes, 0);
        hashes.truncate(distinct);
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
