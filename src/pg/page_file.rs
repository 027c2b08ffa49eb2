//! The file of a relation that is being made, to which pages are written without the shared buffers.

use super::relation::{Fork, Locator, PAGE_BYTES, Relation};
use pgrx::pg_sys;

/// The most pages that are written together: as many as PostgreSQL puts into one record.
pub const BATCH: usize = pg_sys::XLR_MAX_BLOCK_ID as usize;
/// Their bytes.
pub const BATCH_BYTES: usize = BATCH * PAGE_BYTES;
/// Pages of each of the files that a relation consists of.
const FILE_PAGES: u32 = pg_sys::RELSEG_SIZE;
/// The number of no process: InvalidBackendId, or INVALID_PROC_NUMBER.
const NOBODY: i32 = -1;

/// A file, and what must be done for a page of it.
#[derive(Clone, Copy)]
pub struct PageFile {
    locator: Locator,
    owner: i32,
    needs_wal: bool,
}

impl PageFile {
    /// The file of a relation.
    pub fn of(relation: Relation) -> PageFile {
        PageFile { locator: relation.locator(), owner: relation.storage_owner(), needs_wal: relation.needs_wal() }
    }

    /// Whether another process may write to it: those of temporary relations are the session's own.
    pub fn can_be_shared(&self) -> bool {
        self.owner == NOBODY
    }

    /// Logs up to [`BATCH`] pages, which come after those that the file has, if changes of the relation go into the
    /// WAL, and writes them. Both set something in their headers. The first page of all is not logged.
    pub fn append(&self, first: u32, pages: &mut [u8]) {
        assert!(pages.len().is_multiple_of(PAGE_BYTES) && pages.len() <= BATCH_BYTES, "a batch of pages");
        if self.needs_wal {
            self.log(first, pages);
        }
        let end = first + (pages.len() / PAGE_BYTES) as u32;
        for (number, page) in (first..).zip(pages.chunks_exact_mut(PAGE_BYTES)) {
            let is_last_of_file = number + 1 == end || (number + 1).is_multiple_of(FILE_PAGES);
            let page: pg_sys::Page = page.as_mut_ptr().cast();
            // SAFETY: a page, which is the next one of the relation. The checkpointer is told of each file after the
            // last of its pages.
            unsafe {
                pg_sys::PageSetChecksumInplace(page, number);
                pg_sys::smgrextend(self.storage(), Fork::Main.number(), number, page.cast(), !is_last_of_file);
            }
        }
    }

    /// Brings all that was written to disk.
    pub fn sync(&self) {
        // SAFETY: the relation has a file.
        unsafe { pg_sys::smgrimmedsync(self.storage(), Fork::Main.number()) };
    }

    /// The storage manager's handle, for this moment.
    fn storage(&self) -> pg_sys::SMgrRelation {
        // SAFETY: finds or makes the entry for the file.
        unsafe { pg_sys::smgropen(self.locator, self.owner) }
    }

    /// Writes a record with the pages, and its position into them.
    fn log(&self, first: u32, pages: &mut [u8]) {
        let mut numbers = [0; BATCH];
        let mut places = [std::ptr::null_mut(); BATCH];
        let mut count = 0;
        for (number, page) in (first..).zip(pages.chunks_exact_mut(PAGE_BYTES)).filter(|&(number, _)| number > 0) {
            (numbers[count], places[count]) = (number, page.as_mut_ptr().cast());
            count += 1;
        }
        let (mut file, fork) = (self.locator, Fork::Main.number());
        // SAFETY: as many numbers as pages.
        unsafe {
            #[cfg(feature = "pg13")]
            for i in 0..count {
                pg_sys::log_newpage(&mut file, fork, numbers[i], places[i], true);
            }
            #[cfg(not(feature = "pg13"))]
            pg_sys::log_newpages(&mut file, fork, count as i32, numbers.as_mut_ptr(), places.as_mut_ptr(), true);
        }
    }
}
