//! The pages of a relation that is being made, which nobody else sees.
//!
//! They go to the file without the shared buffers, as those of PostgreSQL's B-trees do: through the buffers each page
//! would be written as zeros first, and once more when its buffer is needed. A batch of them is logged with one record
//! while it is in the processor's cache, and then written:
//!
//! ```text
//! page ─▶ batch ─▶ WAL ─▶ file ─▶ the checkpointer is told of a file to bring to disk
//!           └──▶ a worker, which does the rest when there are many pages
//! ```
//!
//! A crash replays the WAL from where the last complete checkpoint began. A page whose record is older than that must
//! be on disk then; but a checkpoint that begins between the record and the writing may not know of the page. So if one
//! began since the first record, the file is brought to disk at the end, before the transaction can commit. A later one
//! has been told of all pages.

use super::buffer::Pin;
use super::memory;
use super::page_file::{BATCH, PageFile};
use super::page_writer::{ALIGNMENT, PageWriter};
use super::relation::{Fork, PAGE_BYTES, Relation};
use super::wal::{Layout, critical_section, fill};
use pgrx::pg_sys;

/// New pages, in the order of their numbers.
pub struct NewPages {
    relation: Relation,
    special_bytes: usize,
    file: PageFile,
    /// Whether a worker is to write them when there are many, and the one that does.
    may_have_writer: bool,
    writer: Option<PageWriter>,
    /// Those that were not written yet, in memory that the current context frees or that the worker shares.
    batch: *mut u8,
    waiting: usize,
    /// How many were, or will be by the worker.
    written: u32,
    /// Where a crash would have begun to replay the WAL before the first page.
    redo: u64,
    finished: bool,
}

impl NewPages {
    /// Of a relation without pages. They are to have special spaces of so many bytes. The first page remains one of
    /// zeros until the end. A worker may write them.
    pub fn new(relation: Relation, special_bytes: usize, may_have_writer: bool) -> NewPages {
        // SAFETY: a memory context is current; reads where the last checkpoint began.
        let (context, redo) = unsafe { (pg_sys::CurrentMemoryContext, pg_sys::GetRedoRecPtr()) };
        let memory = memory::allocate(context, BATCH * PAGE_BYTES + ALIGNMENT);
        let batch = memory.wrapping_add(memory.align_offset(ALIGNMENT));
        let file = PageFile::of(relation);
        let may_have_writer = may_have_writer && file.can_be_shared();
        let (writer, waiting, written) = (None, 0, 0);
        let mut pages = NewPages {
            relation,
            special_bytes,
            file,
            may_have_writer,
            writer,
            batch,
            waiting,
            written,
            redo,
            finished: false,
        };
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

    /// Writes what is left, and sets the first page.
    pub fn finish(mut self, first: &[u8]) {
        assert_eq!(first.len(), PAGE_BYTES, "the size of a page");
        self.finished = true;
        self.flush();
        if let Some(writer) = self.writer.take() {
            writer.finish();
        }
        let needs_wal = self.relation.needs_wal();
        let mut pin = Pin::read(self.relation, Fork::Main, 0);
        let mut page = pin.exclusive();
        critical_section(|| {
            fill(page.bytes_mut(), first, self.special_bytes);
            // SAFETY: the page is pinned and locked exclusively.
            unsafe {
                pg_sys::MarkBufferDirty(page.number());
                if needs_wal {
                    pg_sys::log_newpage_buffer(page.number(), true);
                }
            }
        });
        // SAFETY: reads where the last checkpoint began.
        if needs_wal && unsafe { pg_sys::GetRedoRecPtr() } != self.redo {
            self.file.sync();
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
        // SAFETY: the memory has room for as many pages as a batch may have, and `self` is borrowed for as long as this
        // is.
        unsafe { std::slice::from_raw_parts_mut(self.batch, self.waiting.min(BATCH) * PAGE_BYTES) }
    }

    /// Writes the batch, or has it written.
    fn flush(&mut self) {
        let (first, pages) = (self.written, self.waiting as u32);
        match &mut self.writer {
            Some(writer) => writer.hand_over(first, pages),
            None => {
                let file = self.file;
                file.append(first, self.batch());
            }
        }
        self.written += pages;
        self.waiting = 0;
    }

    /// Finds memory for the next batch, and a worker that writes it if there have been many.
    fn find_batch(&mut self) {
        // SAFETY: reads a setting: tables that are smaller are scanned by one process.
        let few = unsafe { pg_sys::min_parallel_table_scan_size } as u32;
        if self.may_have_writer && self.written >= few {
            self.may_have_writer = false;
            self.writer = PageWriter::start(self.file);
        }
        if let Some(writer) = &mut self.writer {
            self.batch = writer.next_batch();
        }
    }
}

impl Drop for NewPages {
    fn drop(&mut self) {
        debug_assert!(self.finished || std::thread::panicking(), "pages that were not written");
    }
}
