//! Pages in shared buffers, as guards: a pin, and on it a share or an exclusive lock.
//!
//! ```text
//! Pin ── shared() ────▶ Shared      reads the bytes
//!     └─ exclusive() ─▶ Exclusive   reads them; `wal` changes them, and writes the record in the same step
//! ```
//!
//! So an exclusive lock can't be given up with a change that lacks its record. The pages are those
//! of the extension's own indexes; one of a table, where others set bits under a share lock, is a
//! [`TablePage`]: an address, no bytes.
//!
//! An error of PostgreSQL arrives as a panic. It has given back locks and pins itself by the time
//! that the transaction ends, so guards do nothing while a panic is under way.

use super::relation::{MAIN_FORK, PAGE_BYTES, Relation};
use crate::pg::call::guard::{abort, current_call, is_unwinding, with_end};
use crate::pg::call::interrupt;
use crate::pg::version;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::c_void;
use std::ops::Deref;

/// A page of an index of the extension's that is kept in its buffer, while that is open. It stays
/// in its thread.
pub struct Pin<'r>(pg_sys::Buffer, Relation<'r>);

thread_local! {
    /// The pages that are locked, and whether exclusively. PostgreSQL itself doesn't lock those of
    /// temporary indexes.
    static LOCKED: RefCell<Vec<(pg_sys::Buffer, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Ends the process if a subtransaction fails while a call has a page locked: PostgreSQL then gives
/// back all locks, also those from before it. An error that leaves the call has unwound its locks
/// by then.
pub fn watch_subtransactions() {
    // SAFETY: the callback needs nothing.
    unsafe { pg_sys::RegisterSubXactCallback(Some(subtransaction_ends), std::ptr::null_mut()) };
}

unsafe extern "C-unwind" fn subtransaction_ends(
    event: pg_sys::SubXactEvent::Type,
    _own: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _: *mut c_void,
) {
    let has_locks = || LOCKED.with_borrow(|locked| !locked.is_empty());
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB && current_call() != 0 && has_locks()
    {
        abort("the lock of a page is gone");
    }
}

/// A page that is locked, and what keeps it in its buffer; the lock is given back first.
pub struct Locked<P> {
    pub(super) buffer: pg_sys::Buffer,
    pin: P,
}

pub type Shared<'p> = Locked<&'p Pin<'p>>;

pub type Exclusive<'r> = Locked<Pin<'r>>;

/// A page of a table of the access method `heap` that is kept in its buffer, while the table is
/// open.
pub struct TablePage<'r>(Pin<'r>);

pub struct SharedTablePage<'p>(Shared<'p>);

impl<'r> TablePage<'r> {
    /// Reads a page, which must be there.
    pub fn read(table: Relation<'r>, page: u32) -> TablePage<'r> {
        assert!(table.is_heap(), "a table of the access method heap");
        TablePage(Pin::of_fork(table, MAIN_FORK, Some(page)))
    }

    pub fn shared(&self) -> SharedTablePage<'_> {
        SharedTablePage(self.0.shared())
    }
}

impl SharedTablePage<'_> {
    /// Where the page is, for as long as the lock is held.
    pub fn start(&self) -> *const u8 {
        start(self.0.buffer)
    }
}

impl<'r> Pin<'r> {
    /// Reads a page, which must be there.
    pub fn read(index: Relation<'r>, page: u32) -> Pin<'r> {
        Pin::of_fork(index.own(), MAIN_FORK, Some(page))
    }

    /// Adds a page of zeros to a fork: to the index, or to what it becomes after a crash if it is
    /// unlogged.
    pub(super) fn add(index: Relation<'r>, fork: pg_sys::ForkNumber::Type) -> Pin<'r> {
        extending(index.own(), || Pin::of_fork(index, fork, None))
    }

    fn of_fork(
        relation: Relation<'r>,
        fork: pg_sys::ForkNumber::Type,
        page: Option<u32>,
    ) -> Pin<'r> {
        assert_ne!(
            page,
            Some(pg_sys::InvalidBlockNumber),
            "a page: for this number PostgreSQL adds one"
        );
        let page = page.unwrap_or(pg_sys::InvalidBlockNumber);
        let (mode, no_strategy) = (pg_sys::ReadBufferMode::RBM_NORMAL, std::ptr::null_mut());
        // SAFETY: the relation is open. Raises an error if the page can't be read.
        let buffer =
            unsafe { pg_sys::ReadBufferExtended(relation.raw(), fork, page, mode, no_strategy) };
        Pin(buffer, relation)
    }

    /// The page under a share lock. Panics if this session has it locked exclusively; from version
    /// 19 on, in any way.
    pub fn shared(&self) -> Shared<'_> {
        self.lock(false);
        Locked { buffer: self.0, pin: self }
    }

    /// The page under an exclusive lock. Panics if this session has it locked.
    pub fn exclusive(self) -> Exclusive<'r> {
        self.lock(true);
        Locked { buffer: self.0, pin: self }
    }

    fn lock(&self, is_exclusive: bool) {
        LOCKED.with_borrow(|locked| {
            let mut of_page = locked.iter().filter(|&&(buffer, _)| buffer == self.0);
            let is_shared = !is_exclusive && !version::LOCKS_A_PAGE_ONCE;
            assert!(of_page.all(|&(_, other)| is_shared && !other), "a page that is not locked");
        });
        // SAFETY: pinned, and where that matters not locked, as was just asked.
        unsafe { version::lock(self.0, is_exclusive) };
        LOCKED.with_borrow_mut(|locked| locked.push((self.0, is_exclusive)));
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: pinned by `of_fork`, once.
            unsafe { pg_sys::ReleaseBuffer(self.0) };
        }
    }
}

impl<P> Drop for Locked<P> {
    fn drop(&mut self) {
        LOCKED.with_borrow_mut(|locked| {
            let last = locked.iter().rposition(|&(buffer, _)| buffer == self.buffer);
            last.map(|last| locked.swap_remove(last));
        });
        if !is_unwinding() {
            // SAFETY: locked by `Pin`, once.
            unsafe { version::unlock(self.buffer) };
        }
    }
}

impl<P> Deref for Locked<P> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: a page has so many bytes, which the lock keeps as they are: nobody sets hint bits
        // in the extension's pages. A checksum is set in a copy; version 19 may set it in place, in
        // two bytes of the header that nothing here reads.
        unsafe { std::slice::from_raw_parts(start(self.buffer), PAGE_BYTES) }
    }
}

impl Exclusive<'_> {
    pub(super) fn relation(&self) -> Relation<'_> {
        self.pin.1
    }

    /// The bytes, for `wal` to change.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: a page has so many bytes, which nobody else reads or writes under this lock.
        unsafe { std::slice::from_raw_parts_mut(start(self.buffer), PAGE_BYTES) }
    }
}

fn start(buffer: pg_sys::Buffer) -> *mut u8 {
    // SAFETY: only what has the buffer pinned calls this, so it holds the page.
    unsafe { pg_sys::BufferGetPage(buffer).cast() }
}

fn extending<T>(relation: Relation, work: impl FnOnce() -> T) -> T {
    let (relation, exclusive) = (relation.raw(), pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
    // SAFETY: the relation is open; the lock is given back once.
    unsafe {
        pg_sys::LockRelationForExtension(relation, exclusive);
        with_end(work, || pg_sys::UnlockRelationForExtension(relation, exclusive))
    }
}

/// Makes an index at least so many pages long; those added are zeros. Returns how many it has.
///
/// Each is written, so that a full disk is an error here, and not one of the checkpoint that writes
/// the page later. It needs no WAL: a page of zeros is as good as none. The user can cancel it,
/// unless a page is locked.
pub fn extend(index: Relation, pages: u32) -> u32 {
    #[repr(C, align(4096))]
    struct Zeros([u8; PAGE_BYTES]);
    static ZEROS: Zeros = Zeros([0; PAGE_BYTES]);

    let zeros = (&raw const ZEROS).cast_mut().cast();
    extending(index.own(), || {
        let now = index.pages();
        for page in now..pages {
            interrupt::check_for_interrupts();
            // SAFETY: the page is behind the end of the file, which nobody else makes longer. The
            // bytes are only read.
            unsafe { pg_sys::smgrextend(index.storage(), MAIN_FORK, page, zeros, false) };
        }
        now.max(pages)
    })
}
