//! A worker that writes pages while this process makes the next ones: making pages and writing them take about as long.

use super::feed::{self, Eater, Feed};
use super::page_file::{BATCH_BYTES, PageFile};
use super::relation::PAGE_BYTES;
use pgrx::pg_sys;

/// The worker.
pub struct PageWriter(Feed<PageFile>);

impl PageWriter {
    /// Starts a worker that writes to this file, if the server has one.
    pub fn start(file: PageFile) -> Option<PageWriter> {
        Feed::start(c"pg_bloom_write_pages", file, BATCH_BYTES).map(PageWriter)
    }

    /// Memory for the next batch of pages.
    pub fn batch(&mut self) -> &mut [u8] {
        self.0.batch()
    }

    /// Has so many pages written that are in that memory, the first of which has this number.
    pub fn write(&mut self, first: u32, pages: usize) {
        self.0.hand_over(first, pages * PAGE_BYTES);
    }

    /// Waits until all is written.
    pub fn finish(self) {
        self.0.finish(&mut []);
    }
}

impl Eater for PageFile {
    fn eat(&mut self, first: u32, pages: &mut [u8]) {
        self.append(first, pages);
    }

    fn finish(self, _answer: &mut [u8]) {}
}

/// What the worker begins with.
///
/// # Safety
/// PostgreSQL calls it in a worker that [`PageWriter::start`] asked for.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn pg_bloom_write_pages(
    _segment: *mut pg_sys::dsm_segment,
    contents: *mut pg_sys::shm_toc,
) {
    // SAFETY: the table of contents of that worker.
    unsafe { feed::eat(contents, |file: PageFile| file) }
}
