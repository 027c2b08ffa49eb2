//! The pages of a relation that is being made, which nobody else sees: what PostgreSQL 17 calls bulk writing.
//!
//! They go to the file without the shared buffers, as those of PostgreSQL's B-trees do: through the buffers each page
//! would be written as zeros first, and once more when its buffer is needed. A batch of them is logged with one record
//! while it is in the processor's cache, and then written:
//!
//! ```text
//! page ─▶ batch ─▶ WAL ─▶ file ─▶ the checkpointer is notified of a file to bring to disk
//! ```
//!
//! The first page is written last: until then it has zeros, and is not in the WAL.
//!
//! A crash replays the WAL from where the last complete checkpoint began. A page whose record is older than that must
//! be on disk then; but a checkpoint that begins between the record and the writing may not know of the page. So if one
//! began since the build did, the file is brought to disk at the end, before the transaction can commit. A later one
//! has been notified of all pages.

use super::buffer::Pin;
use super::relation::{MAIN_FORK, PAGE_BYTES, Relation};
use super::wal::{Layout, fill, write_whole};
use crate::pg::version;
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// The most pages that are written together: as many as PostgreSQL puts into one record.
const BATCH: usize = pg_sys::XLR_MAX_BLOCK_ID as usize;
/// What memory that is written past the kernel's cache must be aligned to, which newer versions of PostgreSQL can do.
const ALIGNMENT: usize = 4096;
/// Pages of each of the files that a relation consists of.
const FILE_PAGES: u32 = pg_sys::RELSEG_SIZE;

/// New pages of a relation that had none, in the order of their numbers.
pub struct BulkWrite<'r> {
    relation: Relation<'r>,
    needs_wal: bool,
    /// Those that were not written yet, from an aligned byte on.
    batch: Vec<u8>,
    first: usize,
    waiting: usize,
    written: u32,
    /// Where a crash would have begun to replay the WAL before the first page.
    redo: u64,
}

impl<'r> BulkWrite<'r> {
    /// Begins, with a first page of zeros.
    pub fn start(index: Relation<'r>) -> BulkWrite<'r> {
        assert_eq!(index.pages(), 0, "pages of an index that is being made");
        // SAFETY: reads where the last checkpoint began.
        let redo = unsafe { pg_sys::GetRedoRecPtr() };
        let batch = memory::zeroed::<u8>(BATCH * PAGE_BYTES + ALIGNMENT);
        let (relation, needs_wal, first) = (index.own(), index.needs_wal(), batch.as_ptr().align_offset(ALIGNMENT));
        let mut pages = BulkWrite { relation, needs_wal, batch, first, waiting: 0, written: 0, redo };
        pages.next().fill(0);
        pages
    }

    /// Adds a page with these bytes, whose header is made here, and which has no hole since it will get more bits.
    pub fn add(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), PAGE_BYTES, "the size of a page");
        let page = self.next();
        page[..size_of::<u64>()].fill(0);
        fill(page, bytes);
        Layout::FULL.write(page);
    }

    /// Writes what is left, and then the first page.
    pub fn finish(mut self, first: &[u8]) {
        self.flush();
        let mut page = Pin::read(self.relation, 0).exclusive();
        write_whole(&mut page, first, self.needs_wal);
        // SAFETY: reads where the last checkpoint began; the relation has a file.
        unsafe {
            if self.needs_wal && pg_sys::GetRedoRecPtr() != self.redo {
                pg_sys::smgrimmedsync(self.relation.storage(), MAIN_FORK);
            }
        }
    }

    /// The next page of the batch, with unspecified bytes.
    fn next(&mut self) -> &mut [u8] {
        if self.waiting == BATCH {
            self.flush();
        }
        let from = self.waiting * PAGE_BYTES;
        self.waiting += 1;
        &mut self.batch()[from..]
    }

    fn batch(&mut self) -> &mut [u8] {
        &mut self.batch[self.first..][..self.waiting * PAGE_BYTES]
    }

    /// Logs the batch, if changes of the relation go into the WAL, and writes it. Both set something in the headers.
    fn flush(&mut self) {
        let (first, needs_wal, relation) = (self.written, self.needs_wal, self.relation);
        let pages = self.batch();
        if needs_wal {
            log(relation, first, pages);
        }
        let end = first + (pages.len() / PAGE_BYTES) as u32;
        for (number, page) in (first..).zip(pages.chunks_exact_mut(PAGE_BYTES)) {
            let is_last_of_file = number + 1 == end || (number + 1).is_multiple_of(FILE_PAGES);
            let page: pg_sys::Page = page.as_mut_ptr().cast();
            // SAFETY: a page, which is the next one of the relation. The checkpointer is notified of each file after
            // the last of its pages.
            unsafe {
                version::set_checksum(page, number);
                pg_sys::smgrextend(relation.storage(), MAIN_FORK, number, page.cast(), !is_last_of_file);
            }
        }
        self.written = end;
        self.waiting = 0;
    }
}

/// Writes a record with these pages, except the first one of all, and its position into them.
fn log(relation: Relation, first: u32, pages: &mut [u8]) {
    let (mut numbers, mut places, mut count) = ([0; BATCH], [std::ptr::null_mut(); BATCH], 0);
    for (number, page) in (first..).zip(pages.chunks_exact_mut(PAGE_BYTES)).filter(|&(number, _)| number > 0) {
        (numbers[count], places[count]) = (number, page.as_mut_ptr().cast());
        count += 1;
    }
    let mut file = relation.locator();
    // SAFETY: as many numbers as pages.
    unsafe {
        pg_sys::log_newpages(&mut file, MAIN_FORK, count as i32, numbers.as_mut_ptr(), places.as_mut_ptr(), true)
    };
}
