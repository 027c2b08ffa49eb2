//! The pages of a relation that is being made, which nobody else sees.
//!
//! They go to the file without the shared buffers, as those of PostgreSQL's B-trees do: through the buffers each page
//! would be written as zeros first, and once more when its buffer is needed. A batch of them is logged with one record
//! while it is in the processor's cache, and then written:
//!
//! ```text
//! page ─▶ batch ─▶ WAL ─▶ file ─▶ the checkpointer is told of a file to bring to disk
//! ```
//!
//! A crash replays the WAL from where the last complete checkpoint began. A page whose record is older than that must
//! be on disk then; but a checkpoint that begins between the record and the writing may not know of the page. So if one
//! began since the first record, the file is brought to disk at the end, before the transaction can commit. A later one
//! has been told of all pages.

use super::buffer::Pin;
use super::memory;
use super::relation::{Fork, PAGE_BYTES, Relation};
use super::wal::{Layout, critical_section, fill};
use pgrx::pg_sys;

/// Pages that are logged and written together: as many as PostgreSQL puts into one record.
const BATCH: usize = pg_sys::XLR_MAX_BLOCK_ID as usize;
/// What memory that is written past the kernel's cache must be aligned to, which newer versions of PostgreSQL can do.
const ALIGNMENT: usize = 4096;
/// Pages of each of the files that a relation consists of.
const FILE_PAGES: u32 = pg_sys::RELSEG_SIZE;

/// New pages, in the order of their numbers.
pub struct NewPages {
    relation: Relation,
    special_bytes: usize,
    /// Those that were not written yet, in memory that the current context frees.
    batch: *mut u8,
    waiting: usize,
    /// How many were.
    written: u32,
    /// Where a crash would have begun to replay the WAL before the first page.
    redo: u64,
    finished: bool,
}

impl NewPages {
    /// Of a relation without pages. They are to have special spaces of so many bytes. The first page remains one of
    /// zeros until the end.
    pub fn new(relation: Relation, special_bytes: usize) -> NewPages {
        // SAFETY: a memory context is current; reads where the last checkpoint began.
        let (context, redo) = unsafe { (pg_sys::CurrentMemoryContext, pg_sys::GetRedoRecPtr()) };
        let memory = memory::allocate(context, BATCH * PAGE_BYTES + ALIGNMENT);
        let batch = memory.wrapping_add(memory.align_offset(ALIGNMENT));
        let mut pages = NewPages { relation, special_bytes, batch, waiting: 0, written: 0, redo, finished: false };
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
        // SAFETY: reads where the last checkpoint began; the relation has a file.
        unsafe {
            if needs_wal && pg_sys::GetRedoRecPtr() != self.redo {
                pg_sys::smgrimmedsync(self.relation.storage(), Fork::Main.number());
            }
        }
    }

    /// The next page of the batch, whose bytes are anything.
    fn next(&mut self) -> &mut [u8] {
        if self.waiting == BATCH {
            self.flush();
        }
        self.waiting += 1;
        // SAFETY: the memory has room for as many pages, and `self` is borrowed for as long as this one is.
        unsafe { std::slice::from_raw_parts_mut(self.page(self.waiting - 1), PAGE_BYTES) }
    }

    /// Where a page of the batch is.
    fn page(&self, i: usize) -> *mut u8 {
        assert!(i < BATCH, "a page of the batch");
        // SAFETY: the memory has room for so many.
        unsafe { self.batch.add(i * PAGE_BYTES) }
    }

    /// Logs the batch, if the relation's changes go into the WAL, and writes it.
    fn flush(&mut self) {
        if self.relation.needs_wal() {
            self.log();
        }
        let end = self.written + self.waiting as u32;
        for (number, i) in (self.written..end).zip(0..) {
            let is_last_of_file = number + 1 == end || (number + 1).is_multiple_of(FILE_PAGES);
            // SAFETY: a page of the batch, which is the next one of the relation. The checkpointer is told of each file
            // after the last of its pages.
            unsafe {
                pg_sys::PageSetChecksumInplace(self.page(i).cast(), number);
                let storage = self.relation.storage();
                pg_sys::smgrextend(storage, Fork::Main.number(), number, self.page(i).cast(), !is_last_of_file);
            }
        }
        self.written = end;
        self.waiting = 0;
    }

    /// Writes a record with the batch, and its position into the pages. The first page of all is left out.
    fn log(&self) {
        let left_out = usize::from(self.written == 0);
        let mut numbers: [u32; BATCH] = std::array::from_fn(|i| self.written + i as u32);
        let mut pages: [_; BATCH] = std::array::from_fn(|i| self.page(i).cast());
        let (numbers, pages) = (&mut numbers[left_out..self.waiting], &mut pages[left_out..self.waiting]);
        let (mut file, fork) = (self.relation.locator(), Fork::Main.number());
        // SAFETY: as many numbers as pages, each of which is of the batch.
        unsafe {
            #[cfg(feature = "pg13")]
            for (&mut number, &mut page) in numbers.iter_mut().zip(pages) {
                pg_sys::log_newpage(&mut file, fork, number, page, true);
            }
            #[cfg(not(feature = "pg13"))]
            pg_sys::log_newpages(&mut file, fork, pages.len() as i32, numbers.as_mut_ptr(), pages.as_mut_ptr(), true);
        }
    }
}

impl Drop for NewPages {
    fn drop(&mut self) {
        debug_assert!(self.finished || std::thread::panicking(), "pages that were not written");
    }
}
