//! Locks of a filter set: of its table and a number, each until the transaction ends or it is given back. PostgreSQL's
//! own commands never take them: they lock tables as relations, never as objects.

use pgrx::pg_sys::{self, Oid};

/// Such a lock, of a table.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    tag: pg_sys::LOCKTAG,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With others.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    fn of_postgres(self) -> pg_sys::LOCKMODE {
        let mode = match self {
            Mode::Shared => pg_sys::ShareLock,
            Mode::Exclusive => pg_sys::ExclusiveLock,
        };
        mode as pg_sys::LOCKMODE
    }
}

impl Lock {
    /// One of a table's locks.
    pub fn of(table: Oid, part: u16) -> Lock {
        // SAFETY: reads a variable that is set when a session starts.
        let database = unsafe { pg_sys::MyDatabaseId };
        Lock {
            tag: pg_sys::LOCKTAG {
                locktag_field1: database.to_u32(),
                locktag_field2: pg_sys::RelationRelationId.to_u32(),
                locktag_field3: table.to_u32(),
                locktag_field4: part,
                locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
                locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
            },
        }
    }

    /// Takes it, and waits for others.
    pub fn take(&self, mode: Mode) {
        self.acquire(mode, false);
    }

    /// Takes it, once more if the transaction has it, unless somebody else does. Returns whether it did.
    pub fn try_take(&self, mode: Mode) -> bool {
        self.acquire(mode, true) != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }

    fn acquire(&self, mode: Mode, is_attempt: bool) -> pg_sys::LockAcquireResult::Type {
        // SAFETY: within a transaction, with a tag that is there for the call.
        unsafe { pg_sys::LockAcquire(&self.tag, mode.of_postgres(), false, is_attempt) }
    }

    /// Gives it back, as often as it was taken.
    pub fn give_back(&self, mode: Mode) {
        // SAFETY: as above. What isn't held is a warning.
        unsafe { pg_sys::LockRelease(&self.tag, mode.of_postgres(), false) };
    }
}
