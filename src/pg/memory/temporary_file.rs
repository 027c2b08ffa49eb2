//! Temporary files that belong to a memory context.
//!
//! A file is closed with the context, whose owner need not know of it. But PostgreSQL's resource
//! owner closes it as well, when a transaction or subtransaction ends, and the context may outlive
//! that: a cursor that failed in a subtransaction keeps its memory until it is closed. So a file of
//! an owner that is being released counts as closed, and none is closed while a transaction is
//! being rolled back.

use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::memory::{self, Context};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// What tells one open file from another: its resource owner's address, and a number.
type Key = (usize, u64);

thread_local! {
    static OPEN: RefCell<BTreeSet<Key>> = const { RefCell::new(BTreeSet::new()) };
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// A temporary file of hashes, closed and so deleted when it is dropped.
pub struct Temporary {
    file: *mut pg_sys::BufFile,
    key: Key,
    /// In hashes.
    len: u64,
}

impl Temporary {
    /// # Safety
    /// A transaction must be under way. It must be dropped with, or before, the memory context.
    pub unsafe fn new(context: Context<'_>) -> Temporary {
        let number = MADE.get();
        // SAFETY: within a transaction, as the caller promised. The library of the callback is
        // never unloaded.
        let (file, owner) = unsafe {
            if number == 0 {
                pg_sys::RegisterResourceReleaseCallback(Some(release), std::ptr::null_mut());
            }
            MADE.set(number + 1);
            let owner = pg_sys::CurrentResourceOwner;
            (memory::in_context(context, || pg_sys::BufFileCreateTemp(false)), owner)
        };
        let key = (owner as usize, number);
        OPEN.with_borrow_mut(|open| open.insert(key));
        Temporary { file, key, len: 0 }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Forgets all hashes: what is appended then takes their place.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends hashes, eight little-endian bytes each. Errors: 58030; PostgreSQL raises its own
    /// where the disk is full.
    pub fn append(&mut self, hashes: &[[u8; 8]]) -> Result<()> {
        self.seek(self.len)?;
        let bytes = hashes.as_flattened();
        // SAFETY: the file is open, as `seek` has checked; it is given these bytes to read. Reading
        // zero bytes flushes the buffer: then nothing is left that closing could fail to write.
        unsafe {
            pg_sys::BufFileWrite(self.file, bytes.as_ptr().cast_mut().cast(), bytes.len());
            pg_sys::BufFileRead(self.file, std::ptr::null_mut(), 0);
        }
        self.len += hashes.len() as u64;
        Ok(())
    }

    /// Reads hashes from the given one on. Errors: 58030 for fewer.
    pub fn read(&mut self, from: u64, hashes: &mut [u64]) -> Result<()> {
        if hashes.is_empty() {
            return Ok(());
        }
        let bytes = size_of_val(hashes);
        self.seek(from)?;
        // SAFETY: the file is open, as `seek` has checked; there is room for `bytes` bytes, and any
        // are a hash.
        let read = unsafe { pg_sys::BufFileRead(self.file, hashes.as_mut_ptr().cast(), bytes) };
        if read != bytes {
            return Err(broken(format!("read {read} of {bytes} bytes")));
        }
        hashes.iter_mut().for_each(|hash| *hash = u64::from_le(*hash));
        Ok(())
    }

    fn seek(&mut self, hash: u64) -> Result<()> {
        const FROM_THE_START: i32 = 0;
        if !OPEN.with_borrow(|open| open.contains(&self.key)) {
            return Err(broken("it was closed".into()));
        }
        // SAFETY: the file is open; whether it has the position is checked there.
        match unsafe {
            pg_sys::BufFileSeek(self.file, 0, (hash * 8) as pg_sys::off_t, FROM_THE_START)
        } {
            0 => Ok(()),
            _ => Err(broken("no such position".into())),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let is_open = OPEN.with_borrow_mut(|open| open.remove(&self.key));
        // SAFETY: the file is open, and its memory is that of a context which is still there. After
        // an error the resource owner closes it, as PostgreSQL's code relies on as well.
        unsafe {
            if is_open && !std::thread::panicking() && pg_sys::IsTransactionState() {
                pg_sys::BufFileClose(self.file);
            }
        }
    }
}

/// Forgets the files of a resource owner that is about to close them.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn release(
    phase: pg_sys::ResourceReleasePhase::Type,
    _is_commit: bool,
    _is_top_level: bool,
    _argument: *mut std::ffi::c_void,
) {
    // Files are closed in the last phase.
    if phase != pg_sys::ResourceReleasePhase::RESOURCE_RELEASE_BEFORE_LOCKS {
        return;
    }
    // SAFETY: reading a global: PostgreSQL sets it to the owner being released.
    let owner = unsafe { pg_sys::CurrentResourceOwner } as usize;
    OPEN.with_borrow_mut(|open| {
        while let Some(&key) = open.range((owner, 0)..=(owner, u64::MAX)).next() {
            open.remove(&key);
        }
    });
}

fn broken(detail: String) -> Error {
    Error::new(SqlState::ERRCODE_IO_ERROR, "could not read temporary file of bloom_agg")
        .detail(detail)
}
