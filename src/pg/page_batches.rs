//! Pages for a file that is being made, put together in batches.

use super::memory;
use super::page_file::{BATCH, BATCH_BYTES, PageFile};
use super::page_writer::PageWriter;
use super::relation::PAGE_BYTES;
use super::wal::{Layout, fill};
use pgrx::pg_sys;

/// What memory that is written past the kernel's cache must be aligned to, which newer versions of PostgreSQL can do.
const ALIGNMENT: usize = 4096;

/// New pages, in the order of their numbers. The first one has zeros only.
pub struct PageBatches {
    file: PageFile,
    special_bytes: usize,
    /// Whether a worker is to write them when there are many, and the one that does.
    may_have_writer: bool,
    writer: Option<PageWriter>,
    /// Those that were not written yet, in memory that the current context frees or that the worker shares.
    batch: *mut u8,
    waiting: usize,
    /// How many were, or will be by the worker.
    written: u32,
}

impl PageBatches {
    /// For a file without pages. They are to have special spaces of so many bytes. A worker may write them.
    pub fn new(file: PageFile, special_bytes: usize, may_have_writer: bool) -> PageBatches {
        // SAFETY: a memory context is current.
        let context = unsafe { pg_sys::CurrentMemoryContext };
        let memory = memory::allocate(context, BATCH_BYTES + ALIGNMENT);
        let batch = memory.wrapping_add(memory.align_offset(ALIGNMENT));
        let may_have_writer = may_have_writer && file.can_be_shared();
        let mut pages =
            PageBatches { file, special_bytes, may_have_writer, writer: None, batch, waiting: 0, written: 0 };
        pages.next().fill(0);
        pages
    }

    /// Adds a page with these bytes, whose header is made here, and which has no hole since it will get more bits.
    pub fn add(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), PAGE_BYTES, "the size of a page");
        let special_bytes = self.special_bytes;
        let page = self.next();
        page[..size_of::<u64>()].fill(0);
        fill(page, bytes, special_bytes);
        Layout::full(special_bytes).write(page);
    }

    /// Writes what is left.
    pub fn finish(mut self) {
        self.flush();
        if let Some(writer) = self.writer {
            writer.finish();
        }
    }

    /// The next page of the batch, whose bytes are anything.
    fn next(&mut self) -> &mut [u8] {
        if self.waiting == BATCH {
            self.flush();
            self.find_batch();
        }
        self.waiting += 1;
        let last = self.waiting - 1;
        &mut self.batch()[last * PAGE_BYTES..]
    }

    /// The pages that wait.
    fn batch(&mut self) -> &mut [u8] {
        assert!(self.waiting <= BATCH, "pages of a batch");
        // SAFETY: the memory has room for as many, and `self` is borrowed for as long as this is.
        unsafe { std::slice::from_raw_parts_mut(self.batch, self.waiting * PAGE_BYTES) }
    }

    /// Writes the batch, or has it written.
    fn flush(&mut self) {
        let (first, file) = (self.written, self.file);
        self.written += self.waiting as u32;
        match &mut self.writer {
            Some(writer) => writer.write(first, self.waiting),
            None => file.append(first, self.batch()),
        }
        self.waiting = 0;
    }

    /// Finds memory for the next batch, and a worker that writes it if there have been many.
    fn find_batch(&mut self) {
        if self.may_have_writer && self.written >= super::worker::enough_pages() {
            self.may_have_writer = false;
            self.writer = PageWriter::start(self.file);
        }
        if let Some(writer) = &mut self.writer {
            self.batch = writer.batch().as_mut_ptr();
        }
    }
}
