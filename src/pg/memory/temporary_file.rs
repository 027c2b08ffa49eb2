//! Temporary files of hashes that belong to a memory context.
//!
//! A file is closed when its context ends, so its owner need not close it. But PostgreSQL closes
//! it, too, by its resource owner, when a transaction or subtransaction ends; and the context may
//! outlive that: a cursor that failed in a subtransaction keeps its memory until it is closed. So a
//! file counts as closed once its resource owner is being released, and no file is closed here
//! while a transaction is being rolled back.

use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::memory::{self, Context};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The bytes of a hash in a file.
const HASH_BYTES: u64 = 8;

/// Identifies an open file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FileKey {
    /// The address of its resource owner, which comes first so that the files of an owner are
    /// neighbours.
    owner: usize,
    /// The number that it was given when it was created.
    number: u64,
}

thread_local! {
    /// The open files of the session.
    static OPEN_FILES: RefCell<BTreeSet<FileKey>> = const { RefCell::new(BTreeSet::new()) };
    /// How many files the session has created.
    static CREATED_FILES: Cell<u64> = const { Cell::new(0) };
}

/// A temporary file of hashes, which is deleted when it is closed, and closed when it is dropped.
/// Places in it are counted in hashes.
pub struct Temporary {
    file: *mut pg_sys::BufFile,
    key: FileKey,
    /// How many hashes it has.
    len: u64,
}

impl Temporary {
    /// Creates an empty temporary file, which PostgreSQL closes and deletes at the end of the
    /// current transaction or subtransaction, if it isn't dropped before. Its buffer is in
    /// `context`. Raises PostgreSQL's error if the file can't be created.
    ///
    /// # Safety
    /// There must be a transaction. The file must be dropped no later than the memory context ends.
    pub unsafe fn new(context: Context<'_>) -> Temporary {
        let number = CREATED_FILES.get();
        if number == 0 {
            // SAFETY: the library that has the callback is never unloaded.
            unsafe {
                pg_sys::RegisterResourceReleaseCallback(
                    Some(forget_files_of_owner),
                    std::ptr::null_mut(),
                );
            }
        }
        CREATED_FILES.set(number + 1);

        // SAFETY: the caller promises a transaction, which has a resource owner.
        let owner = unsafe { pg_sys::CurrentResourceOwner };
        // SAFETY: the caller promises that the file isn't used after the context has ended.
        let file = unsafe { memory::in_context(context, || pg_sys::BufFileCreateTemp(false)) };
        let key = FileKey { owner: owner as usize, number };
        OPEN_FILES.with_borrow_mut(|open| open.insert(key));
        Temporary { file, key, len: 0 }
    }

    /// Returns how many hashes the file has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Forgets all hashes. The ones that are appended next are written over them.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Writes hashes, as eight little-endian bytes each, behind the hashes that the file has. All
    /// bytes have been passed to the operating system when this returns.
    ///
    /// Raises PostgreSQL's error if the disk is full. Fails with 58030 if the file was closed.
    pub fn append(&mut self, hashes: &[[u8; 8]]) -> Result<()> {
        self.seek(self.len)?;
        let bytes = hashes.as_flattened();
        // SAFETY: `seek` has checked that the file is open. Reading zero bytes flushes the buffer,
        // so that closing the file has nothing left to write, which could fail.
        unsafe {
            pg_sys::BufFileWrite(self.file, bytes.as_ptr().cast_mut().cast(), bytes.len());
            pg_sys::BufFileRead(self.file, std::ptr::null_mut(), 0);
        }
        self.len += hashes.len() as u64;
        Ok(())
    }

    /// Fills `hashes` with hashes of the file, from the one with number `first` on, counted from 0
    /// in the order in which they were appended.
    ///
    /// Fails with 58030 if the file has fewer, or was closed.
    pub fn read(&mut self, first: u64, hashes: &mut [u64]) -> Result<()> {
        if hashes.is_empty() {
            return Ok(());
        }
        let bytes = size_of_val(hashes);
        self.seek(first)?;
        // SAFETY: `seek` has checked that the file is open. There is room for the bytes, and any
        // eight bytes are a hash.
        let read = unsafe { pg_sys::BufFileRead(self.file, hashes.as_mut_ptr().cast(), bytes) };
        if read != bytes {
            return Err(broken(format!("read {read} of {bytes} bytes")));
        }
        for hash in hashes {
            *hash = u64::from_le(*hash);
        }
        Ok(())
    }

    /// Moves the position of the file, at which it is read and written next, to the hash with
    /// number `place`, counted from 0. Fails with 58030 if there is no such place, or if the file
    /// was closed.
    fn seek(&mut self, place: u64) -> Result<()> {
        const FROM_START: i32 = 0;
        let is_open = OPEN_FILES.with_borrow(|open| open.contains(&self.key));
        if !is_open {
            return Err(broken("it was closed".into()));
        }
        let offset = (place * HASH_BYTES) as pg_sys::off_t;
        // SAFETY: the file is open. The function checks the position.
        let code = unsafe { pg_sys::BufFileSeek(self.file, 0, offset, FROM_START) };
        if code != 0 {
            return Err(broken("no such position".into()));
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let is_open = OPEN_FILES.with_borrow_mut(|open| open.remove(&self.key));
        // SAFETY: the file is open, and the context that its memory is in still exists. After an
        // error the resource owner closes it, as PostgreSQL's own code relies on, too.
        unsafe {
            if is_open && !std::thread::panicking() && pg_sys::IsTransactionState() {
                pg_sys::BufFileClose(self.file);
            }
        }
    }
}

/// Notes that all temporary files of a resource owner are closed. PostgreSQL calls this when it
/// releases what a transaction or a subtransaction (the owner) has open, and closes the files
/// itself.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn forget_files_of_owner(
    phase: pg_sys::ResourceReleasePhase::Type,
    _is_commit: bool,
    _is_top_level: bool,
    _argument: *mut std::ffi::c_void,
) {
    // Files are closed in the last phase; this is an earlier one.
    if phase != pg_sys::ResourceReleasePhase::RESOURCE_RELEASE_BEFORE_LOCKS {
        return;
    }
    // SAFETY: this reads a variable of the session, which PostgreSQL has set to the owner that is
    // being released.
    let owner = unsafe { pg_sys::CurrentResourceOwner } as usize;
    OPEN_FILES.with_borrow_mut(|open| {
        let first = FileKey { owner, number: 0 };
        let last = FileKey { owner, number: u64::MAX };
        while let Some(&key) = open.range(first..=last).next() {
            open.remove(&key);
        }
    });
}

/// Returns the error 58030 for a file that can't be read.
fn broken(detail: String) -> Error {
    Error::new(SqlState::ERRCODE_IO_ERROR, "could not read temporary file").detail(detail)
}
