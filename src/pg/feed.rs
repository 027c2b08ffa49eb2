//! A worker that is fed: this process makes batches of bytes, and the worker does something with each of them, in their
//! order, while the next ones are made.
//!
//! Batches go round in memory that both share. A batch belongs to the process that makes them until it is handed over,
//! then to the worker until it is done:
//!
//! ```text
//!               done             handed over
//!                 │                    │
//! batch  …   n−1  │  n   n+1   …  m−1  │  m        mod BATCHES
//!        free, to │ the worker's       │ being
//!        be made  │                    │ made
//! ```
//!
//! When all are done, the place of the first holds what the worker answers.

use super::interrupt;
use super::worker::{self, Changes, Worker};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Batches that go round.
const BATCHES: u32 = 8;
/// What batches are aligned to: pages that are written past the kernel's cache need it.
const ALIGNMENT: usize = 4096;

/// What both processes see, in front of the batches.
#[repr(C)]
struct Shared<T> {
    /// What the worker is to do.
    task: T,
    /// How many batches were handed over, and how many of them are done.
    handed_over: AtomicU32,
    done: AtomicU32,
    /// No more will be handed over.
    is_complete: AtomicBool,
    changes: Changes,
    /// A number of the caller's for each batch, and how many bytes it has.
    batches: [(AtomicU32, AtomicU32); BATCHES as usize],
    /// Where the first batch is, in bytes from here, and the bytes that each has room for.
    first_batch: usize,
    batch_bytes: usize,
}

impl<T> Shared<T> {
    /// Where a batch is, by its number since the beginning.
    fn batch(&self, number: u32) -> *mut u8 {
        let start = self.first_batch + (number % BATCHES) as usize * self.batch_bytes;
        // The memory has room for all of them.
        std::ptr::from_ref(self).cast_mut().cast::<u8>().wrapping_add(start)
    }
}

/// The worker, as the process sees it that feeds it.
pub struct Feed<T> {
    worker: Worker,
    shared: NonNull<Shared<T>>,
}

impl<T: Copy> Feed<T> {
    /// Starts a worker with this task, if the server has one, which calls the C function `main`; that must call
    /// [`eat`] with the same type of task. Batches have up to `batch_bytes`, a multiple of 4096.
    pub fn start(main: &CStr, task: T, batch_bytes: usize) -> Option<Feed<T>> {
        assert!(batch_bytes.is_multiple_of(ALIGNMENT), "the size of a batch");
        let bytes = size_of::<Shared<T>>() + ALIGNMENT + BATCHES as usize * batch_bytes;
        let (worker, memory) = Worker::start(main, bytes, |memory| {
            let after = memory.as_ptr().wrapping_add(size_of::<Shared<T>>());
            let shared = Shared {
                task,
                handed_over: AtomicU32::new(0),
                done: AtomicU32::new(0),
                is_complete: AtomicBool::new(false),
                changes: Changes::default(),
                batches: Default::default(),
                first_batch: size_of::<Shared<T>>() + after.align_offset(ALIGNMENT),
                batch_bytes,
            };
            let place = memory.cast::<Shared<T>>().as_ptr();
            // SAFETY: the memory is large enough, aligned for anything, and nobody else sees it yet.
            unsafe {
                place.write(shared);
                Changes::prepare(&raw mut (*place).changes);
            }
        })?;
        Some(Feed { worker, shared: memory.cast() })
    }

    fn shared(&self) -> &Shared<T> {
        // SAFETY: there until the worker's end, and what changes in it is made for that.
        unsafe { self.shared.as_ref() }
    }

    /// The memory of the next batch, when it is free. It stays this process's until [`Feed::hand_over`].
    pub fn batch(&mut self) -> &mut [u8] {
        let number = self.shared().handed_over.load(Ordering::Relaxed);
        let is_free = |shared: &Shared<T>| number - shared.done.load(Ordering::Acquire) < BATCHES;
        if !is_free(self.shared()) {
            self.worker.make_sure_of_begin();
            self.shared().changes.wait_until(|| is_free(self.shared()));
        }
        let (place, bytes) = (self.shared().batch(number), self.shared().batch_bytes);
        // SAFETY: the worker doesn't touch it before it is handed over, for which `self` is borrowed.
        unsafe { std::slice::from_raw_parts_mut(place, bytes) }
    }

    /// Leaves the batch that [`Feed::batch`] gave to the worker, with a number and so many bytes in it.
    pub fn hand_over(&mut self, number: u32, bytes: usize) {
        let shared = self.shared();
        assert!(bytes <= shared.batch_bytes, "the size of a batch");
        let batch = shared.handed_over.load(Ordering::Relaxed);
        let (its_number, its_bytes) = &shared.batches[(batch % BATCHES) as usize];
        its_number.store(number, Ordering::Relaxed);
        its_bytes.store(bytes as u32, Ordering::Relaxed);
        shared.handed_over.store(batch + 1, Ordering::Release);
        shared.changes.tell();
    }

    /// Waits until all is done, and reads what the worker answers.
    pub fn finish(self, answer: &mut [u8]) {
        assert!(answer.len() <= self.shared().batch_bytes, "the size of an answer");
        self.shared().is_complete.store(true, Ordering::Release);
        self.shared().changes.tell();
        let place = self.shared().batch(0);
        // SAFETY: the worker has ended, and the place has room for so many bytes.
        self.worker.finish(|| unsafe { place.copy_to_nonoverlapping(answer.as_mut_ptr(), answer.len()) });
    }
}

/// What a worker does with batches.
pub trait Eater {
    /// Takes a batch, with its number.
    fn eat(&mut self, number: u32, batch: &mut [u8]);

    /// Ends, and writes an answer.
    fn finish(self, answer: &mut [u8]);
}

/// What the C function of a worker does: has what `begin` makes of its task eat each batch.
///
/// # Safety
/// The table of contents must be the one that PostgreSQL passes to the function that [`Feed::start`] named, for a task
/// of this type.
pub unsafe fn eat<T: Copy, E: Eater>(contents: *mut pg_sys::shm_toc, begin: impl FnOnce(T) -> E) {
    // SAFETY: promised by the caller; what is shared begins with what `start` wrote.
    unsafe {
        worker::work(contents, |memory| {
            let shared = memory.cast::<Shared<T>>().as_ref();
            eat_all(shared, begin(shared.task));
        });
    }
}

fn eat_all<T>(shared: &Shared<T>, mut eater: impl Eater) {
    for batch in 0.. {
        let is_there = || shared.handed_over.load(Ordering::Acquire) > batch;
        shared.changes.wait_until(|| is_there() || shared.is_complete.load(Ordering::Acquire));
        if !is_there() {
            break;
        }
        interrupt::check_for_interrupts();
        let (number, bytes) = &shared.batches[(batch % BATCHES) as usize];
        let bytes = bytes.load(Ordering::Relaxed) as usize;
        assert!(bytes <= shared.batch_bytes, "the size of a batch");
        // SAFETY: a batch that was handed over is this process's until it says that it is done.
        eater
            .eat(number.load(Ordering::Relaxed), unsafe { std::slice::from_raw_parts_mut(shared.batch(batch), bytes) });
        shared.done.store(batch + 1, Ordering::Release);
        shared.changes.tell();
    }
    // SAFETY: all batches are done, and no more will come.
    eater.finish(unsafe { std::slice::from_raw_parts_mut(shared.batch(0), shared.batch_bytes) });
}
