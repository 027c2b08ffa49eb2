//! Relations: indexes and tables that PostgreSQL opened, and those that are opened here.

use crate::pg::call::nodes;
use crate::pg::sql;
use crate::pg::value::encoding::utf8_of;
use crate::pg::version::{self, attribute};
use pgrx::pg_sys;
use std::ffi::CStr;

/// A relation that stays open for as long as this is used.
#[derive(Clone, Copy)]
pub struct Relation(pg_sys::Relation);

/// Bytes of a page.
pub const PAGE_BYTES: usize = pg_sys::BLCKSZ as usize;

/// Which file of a relation: each rewrite makes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    tablespace: u32,
    database: u32,
    number: u32,
}

/// The lock of a query that reads.
pub const ACCESS_SHARE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// The part of a relation's storage that is the relation itself.
pub(in crate::pg) const MAIN_FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

impl Relation {
    /// # Safety
    /// The relation must stay open while this or a copy of it is in use.
    pub unsafe fn new(relation: pg_sys::Relation) -> Relation {
        Relation(relation)
    }

    /// What PostgreSQL calls it.
    pub fn raw(self) -> pg_sys::Relation {
        self.0
    }

    fn data(&self) -> &pg_sys::RelationData {
        // SAFETY: open, as `new` was promised.
        unsafe { &*self.0 }
    }

    fn class(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: an open relation has its row of pg_class.
        unsafe { &*self.data().rd_rel }
    }

    /// Its object identifier.
    pub fn oid(self) -> pg_sys::Oid {
        self.data().rd_id
    }

    /// Its name, without the schema.
    pub fn name(self) -> String {
        // SAFETY: a name ends in a zero byte.
        unsafe { utf8_of(self.class().relname.data.as_ptr()) }.unwrap_or_default()
    }

    /// Who owns it.
    pub fn owner(self) -> pg_sys::Oid {
        self.class().relowner
    }

    /// Whether it is an index of the access method with this name, and no partitioned one, which has no pages.
    pub fn is_index_by(self, method: &CStr) -> bool {
        // SAFETY: reads the catalog; the name is a C string.
        let method = unsafe { pg_sys::get_index_am_oid(method.as_ptr(), true) };
        self.class().relkind as u8 == pg_sys::RELKIND_INDEX && self.class().relam == method
    }

    /// Whether an index is complete: one that failed, or is still being built concurrently, lacks rows.
    pub fn is_valid_index(self) -> bool {
        // SAFETY: an index has its row of pg_index.
        unsafe { (*self.data().rd_index).indisvalid }
    }

    /// Whether an index has all rows that the snapshots of this transaction see: one that was built over rows whose
    /// older versions it can't find lacks these.
    pub fn has_all_rows_of_snapshots(self) -> bool {
        // SAFETY: an index has its row of pg_index; the transaction has a snapshot.
        unsafe {
            if !(*self.data().rd_index).indcheckxmin {
                return true;
            }
            let header = &*(*self.data().rd_indextuple).t_data;
            let (frozen, xmin) = (pg_sys::HEAP_XMIN_FROZEN as u16, header.t_choice.t_heap.t_xmin);
            let is_frozen = header.t_infomask & frozen == frozen;
            is_frozen || sql::precedes(xmin.into_inner(), pg_sys::TransactionXmin.into_inner())
        }
    }

    /// What sort of relation it is: the catalog's letter.
    pub fn kind(self) -> u8 {
        self.class().relkind as u8
    }

    /// The number of a column; 0 if it has none of this name.
    pub fn column_named(self, name: &CStr) -> i16 {
        // SAFETY: reads the catalog.
        unsafe { pg_sys::get_attnum(self.oid(), name.as_ptr()) }
    }

    /// The indexes of a table.
    pub fn indexes(self) -> Vec<pg_sys::Oid> {
        // SAFETY: open; the result is a list in the memory of this call.
        unsafe { nodes::oids(pg_sys::RelationGetIndexList(self.0)) }
    }

    /// All tables below this one, on any level, which are locked.
    pub fn inheritors(self, lock: pg_sys::LOCKMODE) -> Vec<pg_sys::Oid> {
        if !self.class().relhassubclass {
            return Vec::new();
        }
        // SAFETY: the result is a list in the memory of this call, the parent first.
        let mut all = unsafe { nodes::oids(pg_sys::find_all_inheritors(self.oid(), lock, std::ptr::null_mut())) };
        all.retain(|&oid| oid != self.oid());
        all
    }

    /// Has a serializable transaction remember that it read all of an index.
    pub fn lock_for_serializable(self) {
        // SAFETY: open; a query has a snapshot.
        unsafe { pg_sys::PredicateLockRelation(self.0, pg_sys::GetActiveSnapshot()) };
    }

    /// Whether its changes are not in the WAL, so that it is empty after a crash.
    pub fn is_unlogged(self) -> bool {
        self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED
    }

    /// Whether it is a temporary one of another session, whose pages can't be read.
    pub fn is_of_other_session(self) -> bool {
        self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP && !self.data().rd_islocaltemp
    }

    /// Whether its changes go into the WAL now: those of unlogged and temporary relations never do, nor those of a
    /// relation made in this transaction while wal_level is minimal, which is written to disk at the commit.
    pub fn needs_wal(self) -> bool {
        // SAFETY: reads a setting.
        let is_wal_complete = unsafe { pg_sys::wal_level } >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32;
        let data = self.data();
        let new_file = version::new_file(data);
        let is_permanent = self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
        // 0 is no subtransaction: neither the relation nor its file was made in this transaction.
        is_permanent && (is_wal_complete || (data.rd_createSubid, new_file) == (0, 0))
    }

    /// How many pages it has now.
    pub fn pages(self) -> u32 {
        // SAFETY: asks for the size of the file.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.0, MAIN_FORK) }
    }

    /// Which file it is kept in.
    pub fn file(self) -> File {
        let (tablespace, database, number) = version::parts(self.locator());
        File { tablespace, database, number }
    }

    /// The same, as PostgreSQL says it.
    pub(in crate::pg) fn locator(self) -> version::Locator {
        version::locator(self.data())
    }

    /// The storage manager's handle, for this moment.
    pub(in crate::pg) fn storage(self) -> pg_sys::SMgrRelation {
        // SAFETY: finds or makes the entry for the relation's file.
        unsafe { pg_sys::smgropen(self.locator(), self.data().rd_backend) }
    }

    /// Counts a scan in the statistics of an index.
    pub fn count_scan(self) {
        // SAFETY: the statistics of an open relation are null or valid.
        unsafe {
            if (*self.0).pgstat_info.is_null() {
                if !(*self.0).pgstat_enabled {
                    return;
                }
                pg_sys::pgstat_assoc_relation(self.0);
            }
            version::count_scan((*self.0).pgstat_info);
        }
    }

    /// The columns as rows have them.
    pub fn descriptor(self) -> pg_sys::TupleDesc {
        self.data().rd_att
    }

    /// The columns, dropped ones included.
    pub fn columns<'a>(self) -> impl Iterator<Item = &'a pg_sys::FormData_pg_attribute> {
        // SAFETY: an open relation has a descriptor with as many attributes as it says.
        unsafe {
            let descriptor = self.descriptor();
            (0..(*descriptor).natts as usize).map(move |i| attribute(descriptor, i))
        }
    }

    /// The mean bytes of a row's values, by the types of the columns.
    pub fn row_width(self) -> u32 {
        self.columns()
            .filter(|column| !column.attisdropped)
            .map(|column| match column.attlen {
                1.. => column.attlen as u32,
                // SAFETY: guesses by the type and its modifier.
                _ => unsafe { pg_sys::get_typavgwidth(column.atttypid, column.atttypmod) }.max(1) as u32,
            })
            .sum()
    }

    /// What is kept between uses of an index as long as its entry in the relation cache is valid: a number of the
    /// caller's, 0 before it was set. Any change of the index, a rewrite included, forgets it.
    pub fn cached_number(self) -> u64 {
        let kept: *const u64 = self.data().rd_amcache.cast();
        // SAFETY: null, or what `set_cached_number` allocated.
        if kept.is_null() { 0 } else { unsafe { *kept } }
    }

    /// Keeps a number for [`Relation::cached_number`].
    pub fn set_cached_number(self, number: u64) {
        // SAFETY: one allocation in the index's own context, as the relation cache wants it, which frees it.
        unsafe {
            if (*self.0).rd_amcache.is_null() {
                (*self.0).rd_amcache = pg_sys::MemoryContextAlloc((*self.0).rd_indexcxt, size_of::<u64>());
            }
            *(*self.0).rd_amcache.cast() = number;
        }
    }

    /// The table that an index is on.
    pub fn table(self) -> pg_sys::Oid {
        // SAFETY: an index has its row of pg_index.
        unsafe { (*self.data().rd_index).indrelid }
    }

    /// The number of the table's column that an index's first column is; 0 for an expression.
    pub fn column_number(self) -> i16 {
        // SAFETY: an index has its row of pg_index, and as many of these as columns.
        unsafe { *(*self.data().rd_index).indkey.values.as_ptr() }
    }

    /// Whether an index is partial.
    pub fn is_partial(self) -> bool {
        // SAFETY: an index has its row of pg_index.
        unsafe {
            !pg_sys::heap_attisnull(
                self.data().rd_indextuple,
                pg_sys::Anum_pg_index_indpred as i32,
                std::ptr::null_mut(),
            )
        }
    }

    /// The function that returns an index's access method.
    pub fn handler(self) -> pg_sys::Oid {
        self.data().rd_amhandler
    }

    /// The support function of this number of the operator class of an index's first column; invalid if it has none.
    pub fn support_function(self, number: i16) -> pg_sys::Oid {
        let functions = self.data().rd_support;
        // SAFETY: null, or as many as the access method has.
        if functions.is_null() { pg_sys::InvalidOid } else { unsafe { *functions.add(number as usize - 1) } }
    }

    /// The type of an index's first column.
    pub fn column_type(self) -> pg_sys::Oid {
        // SAFETY: an index has a column.
        unsafe { attribute(self.data().rd_att, 0).atttypid }
    }

    /// Whether an index that was there before is being rebuilt.
    pub fn is_being_reindexed(self) -> bool {
        // SAFETY: looks at what this session is doing.
        unsafe { pg_sys::ReindexIsProcessingIndex(self.oid()) }
    }

    /// The operator family and the declared type of the operator class of an index's first column, and the collation
    /// of the column.
    pub fn column_class(self) -> (pg_sys::Oid, pg_sys::Oid, pg_sys::Oid) {
        let data = self.data();
        // SAFETY: an index has these for each column.
        unsafe { (*data.rd_opfamily, *data.rd_opcintype, *data.rd_indcollation) }
    }

    /// The parsed options, if there are any.
    pub fn options<T: Copy>(self) -> Option<T> {
        let options: *const T = self.data().rd_options.cast();
        // SAFETY: null, or what the access method's own amoptions made, which is a `T`.
        (!options.is_null()).then(|| unsafe { options.read_unaligned() })
    }
}

/// The table of an index, by their identifiers; nothing for what is no index.
pub fn table_of(index: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: reads the catalog.
    let table = unsafe { pg_sys::IndexGetRelation(index, true) };
    (table != pg_sys::InvalidOid).then_some(table)
}

/// The name of a relation, or its identifier if there is none.
pub fn name_of(relation: pg_sys::Oid) -> String {
    // SAFETY: reads the catalog; the result is a C string in the memory of this call, or null.
    unsafe { utf8_of(pg_sys::get_rel_name(relation)) }.unwrap_or_else(|| relation.to_u32().to_string())
}

/// A relation opened here, closed at the end; its lock is kept until the end of the transaction.
pub struct Opened(Relation);

impl Opened {
    /// A table, under a lock. Raises an error if it is not there.
    pub fn table(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Opened {
        // SAFETY: raises an error for what is no table.
        Opened(Relation(unsafe { pg_sys::table_open(oid, lock) }))
    }

    /// An index, under a lock. Raises an error if it is none.
    pub fn index(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Opened {
        // SAFETY: raises an error for what is no index.
        Opened(Relation(unsafe { pg_sys::index_open(oid, lock) }))
    }

    /// Any relation, under a lock; `None` if there is none, or none any more once the lock is had.
    pub fn if_there(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Option<Opened> {
        // SAFETY: null for what is not there.
        let relation = unsafe { pg_sys::try_relation_open(oid, lock) };
        (!relation.is_null()).then(|| Opened(Relation(relation)))
    }

    /// The relation.
    pub fn relation(&self) -> Relation {
        self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // After an error PostgreSQL closes it itself.
        if !std::thread::panicking() {
            // SAFETY: opened by `table` or `index`, and closed once.
            unsafe { pg_sys::relation_close(self.0.0, pg_sys::NoLock as pg_sys::LOCKMODE) };
        }
    }
}

/// Whether this server follows another, or recovers from a crash.
pub fn in_recovery() -> bool {
    // SAFETY: looks at the state of the server.
    unsafe { pg_sys::RecoveryInProgress() }
}
