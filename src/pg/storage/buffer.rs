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
//! Under a share lock nobody changes a byte of these pages, with one exception: PostgreSQL 19 sets
//! the checksum in the header of a page while it writes the page to disk. Older versions set it in
//! a copy. So on 19 the bytes under a share lock are a copy without the checksum.
//!
//! An error of PostgreSQL arrives as a panic. It has given back locks and pins itself by the time
//! that the transaction ends, so guards do nothing while a panic is under way.

use super::relation::{MAIN_FORK, PAGE_BYTES, Relation};
use crate::pg::call::guard::{abort, current_call, is_unwinding, with_end};
use crate::pg::call::interrupt;
use crate::pg::version;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::c_void;
use std::ops::Deref;

/// A page of an index of the extension's that is kept in its buffer, while that is open. It stays
/// in its thread.
pub struct Pin<'r>(pg_sys::Buffer, Relation<'r>);

/// A lock that this session has of a page.
#[derive(Clone, Copy)]
struct PageLock {
    buffer: pg_sys::Buffer,
    is_exclusive: bool,
}

thread_local! {
    /// The locks that this session has. They are counted here since PostgreSQL itself doesn't lock
    /// pages of temporary indexes.
    static LOCKED: RefCell<List<PageLock>> = const { RefCell::new(List::new()) };
}

/// Registers a callback that ends the session's process if a subtransaction fails while a call of
/// the extension has a page locked. PostgreSQL then releases all page locks, also those from before
/// the subtransaction, so the call would go on with a page that others change. An error that leaves
/// the call ends its locks before the subtransaction fails.
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
    let is_abort = event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB;
    if is_abort && current_call() != 0 && LOCKED.with_borrow(|locked| !locked.is_empty()) {
        abort("the lock of a page is gone");
    }
}

/// A page that is locked, and the pin that keeps the page in its buffer. The lock is given back
/// first.
pub struct LockedPage<P> {
    pub(super) buffer: pg_sys::Buffer,
    pin: P,
    /// The bytes of the page under a share lock, once they were asked for.
    #[cfg(not(feature = "before_pg19"))]
    copy: std::cell::OnceCell<Box<[u8; PAGE_BYTES]>>,
    #[cfg(not(feature = "before_pg19"))]
    is_exclusive: bool,
}

/// A page under a share lock: other sessions may read it, too.
pub type Shared<'p> = LockedPage<&'p Pin<'p>>;

/// A page under an exclusive lock.
pub type Exclusive<'r> = LockedPage<Pin<'r>>;

/// A page of a table of the access method `heap` that is kept in its buffer, while the table is
/// open.
pub struct TablePage<'r>(Pin<'r>);

/// A page of a table under a share lock, under which other sessions may set hint bits.
pub struct SharedTablePage<'p>(Shared<'p>);

impl<'r> TablePage<'r> {
    /// Reads a page of a table into a buffer and pins it. Raises an error if the page doesn't exist
    /// or can't be read. Panics for a table of another access method than `heap`.
    pub fn read(table: Relation<'r>, page: u32) -> TablePage<'r> {
        assert!(table.is_heap(), "a table of the access method heap");
        TablePage(Pin::of_fork(table, MAIN_FORK, Some(page)))
    }

    /// Waits for a share lock of the page and returns the page under it. Panics if this session has
    /// the page locked exclusively; from PostgreSQL 19 on, if it has any lock of the page.
    pub fn shared(&self) -> SharedTablePage<'_> {
        SharedTablePage(self.0.shared())
    }
}

impl SharedTablePage<'_> {
    /// Returns the address of the page's first byte, which is valid while the lock is held. Bytes
    /// at the address may change: other sessions set hint bits.
    pub fn start(&self) -> *const u8 {
        start(self.0.buffer)
    }
}

impl<'r> Pin<'r> {
    /// Reads a page of an index into a buffer and pins it. Raises an error if the page doesn't
    /// exist or can't be read. Panics for an index of another access method than the extension's.
    pub fn read(index: Relation<'r>, page: u32) -> Pin<'r> {
        Pin::of_fork(index.own(), MAIN_FORK, Some(page))
    }

    /// Adds a page of zeros at the end of a fork, a file of the index, and pins it: the main fork,
    /// or the one by which an unlogged index is replaced after a crash. Panics for an index of
    /// another access method than the extension's.
    pub(super) fn add(index: Relation<'r>, fork: pg_sys::ForkNumber::Type) -> Pin<'r> {
        while_extending(index.own(), || Pin::of_fork(index, fork, None))
    }

    /// Reads a page of a fork, a file of a relation, into a buffer and pins it, so that it stays
    /// there until the result is dropped. If `page` is `None`, a page of zeros is added at the
    /// fork's end and pinned; the caller must then have the lock for extending the relation. Raises
    /// an error if the page can't be read or added. Panics for the page number 2^32 - 1, which no
    /// page has.
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
        let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
        let no_strategy = std::ptr::null_mut();
        // SAFETY: a `Relation` is open.
        let buffer =
            unsafe { pg_sys::ReadBufferExtended(relation.raw(), fork, page, mode, no_strategy) };
        Pin(buffer, relation)
    }

    /// Waits for a share lock of the page and returns the page under it. Panics if this session has
    /// the page locked exclusively; from PostgreSQL 19 on, if it has any lock of the page.
    pub fn shared(&self) -> Shared<'_> {
        let is_exclusive = false;
        self.lock(is_exclusive);
        LockedPage::new(self.0, self, is_exclusive)
    }

    /// Waits for an exclusive lock of the page and returns the page under it. Panics if this
    /// session has the page locked.
    pub fn exclusive(self) -> Exclusive<'r> {
        let is_exclusive = true;
        self.lock(is_exclusive);
        LockedPage::new(self.0, self, is_exclusive)
    }

    /// Waits for a lock of the page, exclusive or for sharing, and notes it in `LOCKED`. Panics if
    /// this session has a lock of the page that doesn't allow this one: it would wait for itself
    /// forever. Share locks allow each other before PostgreSQL 19.
    fn lock(&self, is_exclusive: bool) {
        let allows_share_locks = !is_exclusive && !version::LOCKS_A_PAGE_ONCE;
        LOCKED.with_borrow(|locked| {
            for own in locked.iter().filter(|own| own.buffer == self.0) {
                assert!(allows_share_locks && !own.is_exclusive, "a page that is not locked");
            }
        });
        // SAFETY: the page is pinned by this guard. The assertion has found no lock of the page, or
        // only share locks in a version that allows several.
        unsafe { version::lock(self.0, is_exclusive) };
        LOCKED.with_borrow_mut(|locked| locked.push(PageLock { buffer: self.0, is_exclusive }));
    }
}

impl Drop for Pin<'_> {
    /// Lets PostgreSQL use the buffer for another page.
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: `of_fork` has pinned the buffer once.
            unsafe { pg_sys::ReleaseBuffer(self.0) };
        }
    }
}

impl<P> Drop for LockedPage<P> {
    /// Gives the lock back. After an error PostgreSQL does that itself.
    fn drop(&mut self) {
        LOCKED.with_borrow_mut(|locked| {
            if let Some(last) = locked.iter().rposition(|own| own.buffer == self.buffer) {
                locked.swap_remove(last);
            }
        });
        if !is_unwinding() {
            // SAFETY: `Pin::lock` has locked the page once for this guard.
            unsafe { version::unlock(self.buffer) };
        }
    }
}

#[cfg(feature = "before_pg19")]
impl<P> LockedPage<P> {
    fn new(buffer: pg_sys::Buffer, pin: P, _is_exclusive: bool) -> LockedPage<P> {
        LockedPage { buffer, pin }
    }
}

#[cfg(feature = "before_pg19")]
impl<P> Deref for LockedPage<P> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: a page has this number of bytes, and none of them changes under the lock: nobody
        // sets hint bits in the extension's pages, and a checksum is set in a copy.
        unsafe { std::slice::from_raw_parts(start(self.buffer), PAGE_BYTES) }
    }
}

#[cfg(not(feature = "before_pg19"))]
impl<P> LockedPage<P> {
    fn new(buffer: pg_sys::Buffer, pin: P, is_exclusive: bool) -> LockedPage<P> {
        let copy = std::cell::OnceCell::new();
        LockedPage { buffer, pin, copy, is_exclusive }
    }

    /// Returns a copy of the page's bytes, with zeros in place of its checksum, which PostgreSQL 19
    /// may set while others read the page.
    fn copy(&self) -> Box<[u8; PAGE_BYTES]> {
        const CHECKSUM: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_checksum);
        const AFTER_CHECKSUM: usize = CHECKSUM + size_of::<u16>();

        let mut copy = Box::new([0; PAGE_BYTES]);
        let page: *const u8 = start(self.buffer);
        // SAFETY: a page has this number of bytes. Under the lock none of them changes but the
        // checksum, which isn't read.
        unsafe {
            page.copy_to_nonoverlapping(copy.as_mut_ptr(), CHECKSUM);
            page.add(AFTER_CHECKSUM).copy_to_nonoverlapping(
                copy.as_mut_ptr().add(AFTER_CHECKSUM),
                PAGE_BYTES - AFTER_CHECKSUM,
            );
        }
        copy
    }
}

#[cfg(not(feature = "before_pg19"))]
impl<P> Deref for LockedPage<P> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if !self.is_exclusive {
            return &self.copy.get_or_init(|| self.copy())[..];
        }
        // SAFETY: a page has this number of bytes, which nobody else reads or writes under an
        // exclusive lock.
        unsafe { std::slice::from_raw_parts(start(self.buffer), PAGE_BYTES) }
    }
}

impl Exclusive<'_> {
    /// Returns the index that the page belongs to.
    pub(super) fn relation(&self) -> Relation<'_> {
        self.pin.1
    }

    /// Returns the bytes of the page for `wal`, which changes them together with a WAL record.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: a page has this number of bytes, which nobody else reads or writes under an
        // exclusive lock.
        unsafe { std::slice::from_raw_parts_mut(start(self.buffer), PAGE_BYTES) }
    }
}

/// Returns the address of the page in a buffer.
fn start(buffer: pg_sys::Buffer) -> *mut u8 {
    // SAFETY: all callers have the buffer pinned, so that it has their page.
    unsafe { pg_sys::BufferGetPage(buffer).cast() }
}

/// Calls `add_pages` while this session alone may add pages to a relation, and returns its result.
/// Waits for other sessions that add some.
fn while_extending<T>(relation: Relation, add_pages: impl FnOnce() -> T) -> T {
    let relation = relation.raw();
    let exclusive = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: a `Relation` is open; the lock is given back once, after an error by PostgreSQL.
    unsafe {
        pg_sys::LockRelationForExtension(relation, exclusive);
        with_end(add_pages, || pg_sys::UnlockRelationForExtension(relation, exclusive))
    }
}

/// Adds pages of zeros to an index until it has at least `pages`, and returns the number that it
/// has. The user can cancel this, unless a page is locked.
///
/// Each page is written at once, so that a full disk is an error here and not one of the checkpoint
/// that would write the page later. No WAL is needed: after a crash, a page of zeros may be
/// missing.
pub fn extend(index: Relation, pages: u32) -> u32 {
    #[repr(C, align(4096))]
    struct Zeros([u8; PAGE_BYTES]);
    static ZEROS: Zeros = Zeros([0; PAGE_BYTES]);

    let zeros = (&raw const ZEROS).cast_mut().cast();
    let skip_fsync = false;
    while_extending(index.own(), || {
        let pages_before = index.pages();
        for page in pages_before..pages {
            interrupt::check_for_interrupts();
            // SAFETY: the page is the one after the last of the file, to which nobody else adds
            // pages now. The bytes are only read.
            unsafe { pg_sys::smgrextend(index.storage(), MAIN_FORK, page, zeros, skip_fsync) };
        }
        pages_before.max(pages)
    })
}
