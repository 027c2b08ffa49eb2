//! A second process that works for this one: a parallel worker of PostgreSQL's, which shares memory with it.
//!
//! PostgreSQL starts it with this session's transaction, settings and libraries, hands on its errors, and ends it if
//! this process fails. While there is one this process may only do what is allowed in parallel mode: it must not write
//! rows nor ask for a transaction's number, nor must functions that it calls for users.

use super::relation::Relation;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::ptr::NonNull;

/// Where PostgreSQL finds the functions that workers begin with.
const LIBRARY: &CStr = c"$libdir/pg_bloom";
/// What is found under which number in the shared memory.
const SHARED: u64 = 1;
const USAGE: u64 = 2;

/// What a worker used of buffers and WAL, to be counted as this session's.
#[derive(Default)]
#[repr(C)]
struct Usage {
    buffers: pg_sys::BufferUsage,
    wal: pg_sys::WalUsage,
}

/// A worker that was started.
pub struct Worker {
    context: *mut pg_sys::ParallelContext,
    usage: *mut Usage,
    /// Whether it is known to have begun.
    has_begun: bool,
}

/// Whether the build of an index may have a worker: nobody set the number of workers to none, for the session or the
/// table, and the expressions of the index may be computed in parallel mode.
pub fn may_build(table: Relation, info: *mut pg_sys::IndexInfo) -> bool {
    // SAFETY: reads a setting and the state of the session.
    let may_be = unsafe { pg_sys::max_parallel_maintenance_workers > 0 && !pg_sys::IsInParallelMode() };
    may_be && table.parallel_workers() != Some(0) && is_parallel_safe(info)
}

/// Pages of a relation that a worker pays for: PostgreSQL scans smaller ones by one process.
pub fn enough_pages() -> u32 {
    // SAFETY: reads a setting, in pages.
    unsafe { pg_sys::min_parallel_table_scan_size as u32 }
}

/// Whether the expressions of an index may be computed in parallel mode.
fn is_parallel_safe(info: *mut pg_sys::IndexInfo) -> bool {
    let mut global = pg_sys::PlannerGlobal { maxParallelHazard: pg_sys::PROPARALLEL_UNSAFE as _, ..Default::default() };
    let mut root = pg_sys::PlannerInfo { glob: &raw mut global, ..Default::default() };
    // SAFETY: what PostgreSQL passes to ambuild, which has lists or null; a planner that knows nothing is made like
    // this by PostgreSQL for the same question about a B-tree.
    unsafe {
        [(*info).ii_Expressions, (*info).ii_Predicate]
            .into_iter()
            .all(|expressions| pg_sys::is_parallel_safe(&raw mut root, expressions.cast()))
    }
}

impl Worker {
    /// Starts a worker that calls the C function `main`, and shares so many bytes with it, which `prepare` sets before.
    /// They are aligned for anything and stay there until [`Worker::finish`], or until an error. Returns nothing if
    /// the server has no worker left.
    pub fn start(main: &CStr, bytes: usize, prepare: impl FnOnce(NonNull<u8>)) -> Option<(Worker, NonNull<u8>)> {
        // SAFETY: the steps that PostgreSQL asks for, in their order; the sizes are estimated before they are used.
        unsafe {
            pg_sys::EnterParallelMode();
            let context = pg_sys::CreateParallelContext(LIBRARY.as_ptr(), main.as_ptr(), 1);
            for size in [bytes, size_of::<Usage>()] {
                let estimate = &raw mut (*context).estimator;
                (*estimate).space_for_chunks += size.next_multiple_of(pg_sys::ALIGNOF_BUFFER as usize);
                (*estimate).number_of_keys += 1;
            }
            pg_sys::InitializeParallelDSM(context);
            let allocate = |key, size| {
                let memory = pg_sys::shm_toc_allocate((*context).toc, size);
                pg_sys::shm_toc_insert((*context).toc, key, memory);
                memory
            };
            let usage: *mut Usage = allocate(USAGE, size_of::<Usage>()).cast();
            usage.write(Usage::default());
            let shared = NonNull::new(allocate(SHARED, bytes).cast::<u8>()).expect("memory that was estimated");
            prepare(shared);
            pg_sys::LaunchParallelWorkers(context);
            let worker = Worker { context, usage, has_begun: false };
            if (*context).nworkers_launched == 0 {
                worker.end();
                return None;
            }
            Some((worker, shared))
        }
    }

    /// Raises an error if the worker could not begin: who waits for it would do so for ever.
    pub fn make_sure_of_begin(&mut self) {
        if !self.has_begun {
            // SAFETY: a worker was launched.
            unsafe { pg_sys::WaitForParallelWorkersToAttach(self.context) };
            self.has_begun = true;
        }
    }

    /// Waits for the worker's end, and raises its error if it had one. Then calls `read`, after which the shared memory
    /// is gone.
    pub fn finish(self, read: impl FnOnce()) {
        // SAFETY: a worker was launched; it has written its usage when it ends.
        unsafe {
            pg_sys::WaitForParallelWorkersToFinish(self.context);
            pg_sys::InstrAccumParallelQuery(&raw mut (*self.usage).buffers, &raw mut (*self.usage).wal);
        }
        read();
        self.end();
    }

    fn end(self) {
        // SAFETY: made by `start`, and ended once.
        unsafe {
            pg_sys::DestroyParallelContext(self.context);
            pg_sys::ExitParallelMode();
        }
    }
}

/// What the C function of a worker does: calls `work` with the shared memory, and tells what that used.
///
/// # Safety
/// The table of contents must be the one that PostgreSQL passes to the function that [`Worker::start`] named.
pub unsafe fn work(contents: *mut pg_sys::shm_toc, work: impl FnOnce(NonNull<u8>)) {
    // SAFETY: promised by the caller; `start` entered both.
    unsafe {
        pg_sys::InstrStartParallelQuery();
        let find = |key| NonNull::new(pg_sys::shm_toc_lookup(contents, key, false)).expect("PostgreSQL found it");
        work(find(SHARED).cast());
        let usage = find(USAGE).cast::<Usage>().as_ptr();
        pg_sys::InstrEndParallelQuery(&raw mut (*usage).buffers, &raw mut (*usage).wal);
    }
}

/// Something in shared memory that processes wait for to change.
#[derive(Default)]
#[repr(transparent)]
pub struct Changes(std::cell::UnsafeCell<pg_sys::ConditionVariable>);

impl Changes {
    /// Prepares it, before others see it.
    ///
    /// # Safety
    /// The place must be in shared memory, for anything to be written there.
    pub unsafe fn prepare(place: *mut Changes) {
        // SAFETY: promised by the caller.
        unsafe { pg_sys::ConditionVariableInit(place.cast()) };
    }

    /// Wakes who waits, after a change.
    pub fn tell(&self) {
        // SAFETY: prepared, and made for several processes.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) };
    }

    /// Waits until something is so. Obeys a cancel meanwhile, and raises a worker's error.
    pub fn wait_until(&self, is_so: impl Fn() -> bool) {
        while !is_so() {
            // SAFETY: as above.
            unsafe { pg_sys::ConditionVariableSleep(self.0.get(), pg_sys::PG_WAIT_EXTENSION) };
        }
        // SAFETY: does nothing if nobody slept.
        unsafe { pg_sys::ConditionVariableCancelSleep() };
    }
}
