//! A worker that writes pages while this process makes the next ones: making pages and writing them take about as long.
//!
//! Batches go round in memory that both share. A batch belongs to the process that makes pages until it is handed over,
//! then to the worker until it is written:
//!
//! ```text
//!              written            handed over
//!                 │                    │
//! batch  …   n−1  │  n   n+1   …  m−1  │  m        mod BATCHES
//!        free, to │ the worker's       │ being
//!        be made  │                    │ made
//! ```

use super::interrupt;
use super::page_file::{BATCH, PageFile};
use super::relation::PAGE_BYTES;
use super::worker::{self, Changes, Worker};
use pgrx::pg_sys;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Batches that go round.
const BATCHES: u32 = 8;
const BATCH_BYTES: usize = BATCH * PAGE_BYTES;
/// What pages in memory must be aligned to where they are written past the kernel's cache.
pub const ALIGNMENT: usize = 4096;

/// What both processes see, in front of the batches.
#[repr(C)]
struct Shared {
    file: PageFile,
    /// How many batches were handed over, and how many of them were written.
    handed_over: AtomicU32,
    written: AtomicU32,
    /// No more will be handed over.
    is_complete: AtomicBool,
    changes: Changes,
    /// The first page of each batch, and how many pages it has.
    batches: [(AtomicU32, AtomicU32); BATCHES as usize],
    /// Where the first batch is, in bytes from here.
    first_batch: usize,
}

impl Shared {
    /// Where a batch is, by its number since the beginning.
    fn batch(&self, number: u32) -> *mut u8 {
        let start = self.first_batch + (number % BATCHES) as usize * BATCH_BYTES;
        // The memory has room for all of them.
        std::ptr::from_ref(self).cast_mut().cast::<u8>().wrapping_add(start)
    }
}

/// The worker, as the process sees it that makes pages.
pub struct PageWriter {
    worker: Worker,
    shared: NonNull<Shared>,
}

impl PageWriter {
    /// Starts a worker that writes to this file, if the server has one.
    pub fn start(file: PageFile) -> Option<PageWriter> {
        let bytes = size_of::<Shared>() + ALIGNMENT + BATCHES as usize * BATCH_BYTES;
        let (worker, memory) = Worker::start(c"pg_bloom_write_pages", bytes, |memory| {
            let after = memory.as_ptr().wrapping_add(size_of::<Shared>());
            let shared = Shared {
                file,
                handed_over: AtomicU32::new(0),
                written: AtomicU32::new(0),
                is_complete: AtomicBool::new(false),
                changes: Changes::default(),
                batches: Default::default(),
                first_batch: size_of::<Shared>() + after.align_offset(ALIGNMENT),
            };
            let place = memory.cast::<Shared>().as_ptr();
            // SAFETY: the memory is large enough, aligned for anything, and nobody else sees it yet.
            unsafe {
                place.write(shared);
                Changes::prepare(&raw mut (*place).changes);
            }
        })?;
        Some(PageWriter { worker, shared: memory.cast() })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: there until the worker's end, and what changes in it is made for that.
        unsafe { self.shared.as_ref() }
    }

    /// The memory of the next batch, when it is free.
    pub fn next_batch(&mut self) -> *mut u8 {
        let number = self.shared().handed_over.load(Ordering::Relaxed);
        let is_free = |shared: &Shared| number - shared.written.load(Ordering::Acquire) < BATCHES;
        if !is_free(self.shared()) {
            self.worker.make_sure_of_begin();
            self.shared().changes.wait_until(|| is_free(self.shared()));
        }
        self.shared().batch(number)
    }

    /// Leaves the batch that [`PageWriter::next_batch`] gave to the worker, with so many pages in it.
    pub fn hand_over(&mut self, first: u32, pages: u32) {
        let shared = self.shared();
        let number = shared.handed_over.load(Ordering::Relaxed);
        let (its_first, its_pages) = &shared.batches[(number % BATCHES) as usize];
        its_first.store(first, Ordering::Relaxed);
        its_pages.store(pages, Ordering::Relaxed);
        shared.handed_over.store(number + 1, Ordering::Release);
        shared.changes.tell();
    }

    /// Waits until all is written.
    pub fn finish(self) {
        self.shared().is_complete.store(true, Ordering::Release);
        self.shared().changes.tell();
        self.worker.finish();
    }
}

/// The worker's part: writes batches until there will be no more.
fn write_batches(shared: &Shared) {
    for number in 0.. {
        let is_there = || shared.handed_over.load(Ordering::Acquire) > number;
        shared.changes.wait_until(|| is_there() || shared.is_complete.load(Ordering::Acquire));
        if !is_there() {
            return;
        }
        interrupt::check_for_interrupts();
        let (first, pages) = &shared.batches[(number % BATCHES) as usize];
        let bytes = pages.load(Ordering::Relaxed) as usize * PAGE_BYTES;
        assert!(bytes <= BATCH_BYTES, "the size of a batch");
        // SAFETY: a batch that was handed over is this process's until it says that it is written.
        let pages = unsafe { std::slice::from_raw_parts_mut(shared.batch(number), bytes) };
        shared.file.append(first.load(Ordering::Relaxed), pages);
        shared.written.store(number + 1, Ordering::Release);
        shared.changes.tell();
    }
}

/// What a worker begins with.
///
/// # Safety
/// PostgreSQL calls it in a worker that [`PageWriter::start`] asked for.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn pg_bloom_write_pages(
    _segment: *mut pg_sys::dsm_segment,
    contents: *mut pg_sys::shm_toc,
) {
    // SAFETY: the table of contents of that worker; what it shares begins with what `start` wrote.
    unsafe { worker::work(contents, |memory| write_batches(memory.cast::<Shared>().as_ref())) }
}
