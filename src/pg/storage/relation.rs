//! Relations: indexes and tables that PostgreSQL opened, and those that are opened here.

use crate::pg::call::guard::is_unwinding;
use crate::pg::call::{Call, nodes};
use crate::pg::sql;
use crate::pg::value::encoding;
use crate::pg::version::{self, attribute};
use pg_bloom_core::memory::List;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// A table, an index or another relation that is open for `'r`.
#[derive(Clone, Copy)]
pub struct Relation<'r>(pg_sys::Relation, PhantomData<&'r ()>);

/// Bytes of a page, with its header.
pub const PAGE_BYTES: usize = pg_sys::BLCKSZ as usize;

/// Which file of a relation, by tablespace, database and number: each rewrite makes another.
pub type File = [u32; 3];

pub const ACCESS_SHARE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;

pub(in crate::pg) const MAIN_FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// ambuild of the extension's access method, once a session has used that.
static OWN_METHOD: OnceLock<usize> = OnceLock::new();

/// Tells this session which function builds indexes of the extension's access method: by this
/// function, [`Relation::own`] recognizes the extension's indexes. Only the first call counts.
///
/// # Safety
/// The function must be `ambuild` of an access method such that only this library writes the pages
/// and the options of its indexes.
pub unsafe fn own_method(ambuild: pg_sys::ambuild_function) {
    OWN_METHOD.get_or_init(|| ambuild.map_or(0, |ambuild| ambuild as usize));
}

/// How the first column of an index compares values.
pub struct ColumnClass {
    /// The operator family of the column's operator class.
    pub family: pg_sys::Oid,
    /// The type that the operator class is declared for.
    pub declared: pg_sys::Oid,
    /// Invalid if values of the type have none.
    pub collation: pg_sys::Oid,
}

impl<'r> Relation<'r> {
    /// Wraps a relation that PostgreSQL has opened.
    ///
    /// # Safety
    /// The relation must be open for `'r`.
    pub unsafe fn new(relation: pg_sys::Relation) -> Relation<'r> {
        Relation(relation, PhantomData)
    }

    /// Checks that the relation is an index of the extension's access method, whose pages may be
    /// read as bytes, and returns it. Panics otherwise.
    pub(in crate::pg) fn own(self) -> Relation<'r> {
        assert!(self.is_own(), "an index of the extension's access method");
        self
    }

    /// Returns whether this is an index of the extension's access method.
    pub(in crate::pg) fn is_own(self) -> bool {
        // SAFETY: the field is null, or has the interface of an index's access method.
        let method = unsafe { self.data().rd_indam.as_ref() };
        let ambuild = method
            .and_then(|method| method.ambuild)
            .map(|ambuild| ambuild as usize);
        ambuild.is_some() && ambuild.as_ref() == OWN_METHOD.get()
    }

    /// Returns the row of an index in pg_index. Panics for another relation.
    fn index(self) -> &'r pg_sys::FormData_pg_index {
        // SAFETY: the field is null, or the row of pg_index.
        unsafe { self.data().rd_index.as_ref() }.expect("an index")
    }

    /// Returns whether this is a table of PostgreSQL's own access method, `heap`.
    pub fn is_heap(self) -> bool {
        // SAFETY: the function returns the address of a constant.
        std::ptr::eq(self.data().rd_tableam, unsafe { pg_sys::GetHeapamTableAmRoutine() })
    }

    /// Returns the functions of a table's access method. Panics for a relation without one, such as
    /// a view.
    pub(in crate::pg) fn table_method(self) -> &'r pg_sys::TableAmRoutine {
        // SAFETY: the field is null, or has the interface of a table's access method.
        unsafe { self.data().rd_tableam.as_ref() }.expect("a table")
    }

    /// Returns PostgreSQL's pointer to the relation.
    pub fn raw(self) -> pg_sys::Relation {
        self.0
    }

    /// Returns PostgreSQL's struct of the relation.
    fn data(self) -> &'r pg_sys::RelationData {
        // SAFETY: the relation is open for `'r`, as the caller of `new` has promised.
        unsafe { &*self.0 }
    }

    /// Returns a copy of the relation's row in pg_class.
    pub(in crate::pg) fn class(self) -> pg_sys::FormData_pg_class {
        // SAFETY: an open relation has such a row.
        unsafe { *self.data().rd_rel }
    }

    /// Returns the object identifier of the relation.
    pub fn oid(self) -> pg_sys::Oid {
        self.data().rd_id
    }

    /// Returns the name of the relation without its schema, in UTF-8.
    pub fn name(self) -> String {
        encoding::name(&self.class().relname)
    }

    /// Returns whether this is an index of the access method with this name. A partitioned index,
    /// which has no pages, isn't one.
    pub fn is_index_by(self, method: &CStr) -> bool {
        let returns_invalid_if_missing = true;
        // SAFETY: the name is a C string.
        let method_oid =
            unsafe { pg_sys::get_index_am_oid(method.as_ptr(), returns_invalid_if_missing) };
        self.kind() == pg_sys::RELKIND_INDEX && self.class().relam == method_oid
    }

    /// Returns whether queries may use an index: an index that failed to be built, or is still
    /// being built concurrently, lacks rows. Panics for another relation.
    pub fn is_valid_index(self) -> bool {
        self.index().indisvalid
    }

    /// Returns whether an index has all rows that the snapshots of this transaction see, including
    /// older versions of updated rows. CREATE INDEX leaves some of these versions out and notes
    /// that in pg_index (`indcheckxmin`): then only snapshots that are younger than the index can
    /// use it. Panics for another relation.
    pub fn has_all_rows_of_snapshots(self) -> bool {
        if !self.index().indcheckxmin {
            return true;
        }
        // SAFETY: an index has its row of pg_index; a variable of the session is read.
        unsafe {
            let header = &*(*self.data().rd_indextuple).t_data;
            let frozen = pg_sys::HEAP_XMIN_FROZEN as u16;
            if header.t_infomask & frozen == frozen {
                return true;
            }
            let created_by = header.t_choice.t_heap.t_xmin.into_inner();
            let oldest_seen_as_running = pg_sys::TransactionXmin.into_inner();
            sql::precedes(created_by, oldest_seen_as_running)
        }
    }

    /// Returns the sort of relation as the catalog's letter, such as `RELKIND_INDEX`.
    pub fn kind(self) -> u8 {
        self.class().relkind as u8
    }

    /// Returns the number of the column with this name, negative for a system column; 0 if there is
    /// none.
    pub fn column_named(self, name: &CStr) -> i16 {
        // SAFETY: the name is a C string.
        unsafe { pg_sys::get_attnum(self.oid(), name.as_ptr()) }
    }

    /// Returns the indexes of a table. Each is locked for reading and opened when the iterator
    /// comes to it.
    pub fn indexes(self) -> impl Iterator<Item = Opened<'r>> {
        // SAFETY: the list is in the current memory context. The statement doesn't end within `'r`,
        // for which this table is open.
        unsafe {
            let oids = nodes::oids(pg_sys::RelationGetIndexList(self.0));
            oids.into_iter().map(|oid| Opened::new(oid, ACCESS_SHARE))
        }
    }

    /// Returns all partitions or children of a table, on any level, without the table itself. All
    /// are locked for reading before this returns; each is opened when the iterator comes to it.
    pub fn inheritors(self) -> impl Iterator<Item = Opened<'r>> {
        let table_and_inheritors = if self.class().relhassubclass {
            // SAFETY: the list is in the current memory context.
            unsafe {
                let all = pg_sys::find_all_inheritors(self.oid(), ACCESS_SHARE, null_mut());
                nodes::oids(all)
            }
        } else {
            List::new()
        };
        table_and_inheritors
            .into_iter()
            .filter(move |&oid| oid != self.oid())
            // SAFETY: the transaction keeps the locks, and so as long as this table is open.
            .map(|oid| unsafe { Opened::new(oid, NO_LOCK) })
    }

    /// Notes for a serializable transaction that it has read all of an index, so that later
    /// insertions of others count as conflicts. Panics outside of a query and for another relation.
    pub fn lock_for_serializable(self) {
        self.index();
        let snapshot = sql::snapshot().expect("a query has a snapshot");
        // SAFETY: the relation is open, and the snapshot is the query's.
        unsafe { pg_sys::PredicateLockRelation(self.0, snapshot) };
    }

    /// Returns whether the relation can't be read since this server follows another one, or
    /// recovers from a crash, and the relation is unlogged: its changes aren't in the WAL.
    pub fn is_lost_in_recovery(self) -> bool {
        // SAFETY: the function takes no arguments and reads the state of the server.
        self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED
            && unsafe { pg_sys::RecoveryInProgress() }
    }

    /// Returns whether the relation can be read: a materialized view can't before it is refreshed.
    pub fn is_populated(self) -> bool {
        self.class().relispopulated
    }

    /// Returns whether this is a temporary relation of another session, whose pages can't be read.
    pub fn is_of_other_session(self) -> bool {
        self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP
            && !self.data().rd_islocaltemp
    }

    /// Returns whether changes of the relation must be written to the WAL now. Those of unlogged
    /// and temporary relations never are. While wal_level is minimal, changes of a relation that
    /// was made in this transaction, or has got a new file in it, aren't either: the commit writes
    /// the file to disk.
    pub fn needs_wal(self) -> bool {
        if self.class().relpersistence as u8 != pg_sys::RELPERSISTENCE_PERMANENT {
            return false;
        }
        // SAFETY: a setting is read.
        let wal_level = unsafe { pg_sys::wal_level };
        if wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32 {
            return true;
        }
        // 0 stands for no subtransaction of this transaction.
        let made_in = self.data().rd_createSubid;
        let (_, file_made_in) = version::file(self.data());
        made_in == 0 && file_made_in == 0
    }

    /// Returns the number of pages of the relation's main fork.
    pub fn pages(self) -> u32 {
        // SAFETY: a `Relation` is open.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.0, MAIN_FORK) }
    }

    /// Returns which file the relation has now.
    pub fn file(self) -> File {
        // SAFETY: a locator is a struct of these three numbers, whose names differ between
        // versions.
        unsafe { std::mem::transmute::<version::Locator, File>(version::file(self.data()).0) }
    }

    /// Returns the storage manager's handle for the relation's file, which is valid until
    /// PostgreSQL is told that the relation has changed.
    pub(in crate::pg) fn storage(self) -> pg_sys::SMgrRelation {
        // SAFETY: the function finds or makes the entry for the file.
        unsafe { pg_sys::smgropen(version::file(self.data()).0, self.data().rd_backend) }
    }

    /// Counts a scan of the relation in PostgreSQL's statistics (`idx_scan` of
    /// pg_stat_user_indexes).
    pub fn count_scan(self) {
        // SAFETY: the statistics of an open relation are null or valid.
        unsafe {
            if (*self.0).pgstat_info.is_null() && (*self.0).pgstat_enabled {
                pg_sys::pgstat_assoc_relation(self.0);
            }
            if let Some(statistics) = (*self.0).pgstat_info.as_mut() {
                version::count_scan(statistics);
            }
        }
    }

    /// Returns copies of the relation's columns in their order, dropped ones included.
    pub fn columns(self) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> + use<'r> {
        // SAFETY: an open relation has a descriptor.
        unsafe { version::attributes(self.data().rd_att) }
    }

    /// Returns how many bytes the values of a row are expected to have, guessed from the types of
    /// the columns as PostgreSQL's planner does without statistics. Headers and padding aren't
    /// counted.
    pub fn row_width(self) -> u32 {
        let mut width = 0;
        for column in self.columns() {
            if column.attisdropped {
                continue;
            }
            width += if column.attlen > 0 {
                column.attlen as u32
            } else {
                // SAFETY: the function guesses by the type and its modifier.
                let mean = unsafe { pg_sys::get_typavgwidth(column.atttypid, column.atttypmod) };
                mean.max(1) as u32
            };
        }
        width
    }

    /// Returns the share of a page that INSERT fills, from 0.1 to 1. Panics unless this is a table
    /// of the access method `heap`.
    pub fn fill_factor(self) -> f64 {
        assert!(self.is_heap(), "a table of heap");
        let options: *const pg_sys::StdRdOptions = self.data().rd_options.cast();
        // SAFETY: the options of a table of heap are null or this struct.
        let percent = if options.is_null() { 100 } else { unsafe { (*options).fillfactor } };
        f64::from(percent.clamp(10, 100)) / 100.0
    }

    /// Returns the number that this session has last set for an index by
    /// [`Relation::set_cached_number`]; 0 if there is none, or if the index's definition or file
    /// has changed since. Panics unless this is an index of the extension's access method.
    pub fn cached_number(self) -> u64 {
        let cached: *const u64 = self.own().data().rd_amcache.cast();
        // SAFETY: the field is null, or points to a number that `set_cached_number` has allocated.
        if cached.is_null() { 0 } else { unsafe { *cached } }
    }

    /// Notes a number with an index, in this session's relation cache: [`Relation::cached_number`]
    /// returns it until the index's definition or file changes. Panics unless this is an index of
    /// the extension's access method.
    pub fn set_cached_number(self, number: u64) {
        self.own();
        // SAFETY: the number is one allocation in the index's own memory context, as the relation
        // cache requires, which frees it.
        unsafe {
            if (*self.0).rd_amcache.is_null() {
                (*self.0).rd_amcache =
                    pg_sys::MemoryContextAlloc((*self.0).rd_indexcxt, size_of::<u64>());
            }
            *(*self.0).rd_amcache.cast() = number;
        }
    }

    /// Returns the table of an index. Panics for another relation.
    pub fn table(self) -> pg_sys::Oid {
        self.index().indrelid
    }

    /// Returns the number of the table's column that is an index's first column; 0 for an
    /// expression. Panics for another relation.
    pub fn column_number(self) -> i16 {
        // SAFETY: an index has at least one column, and a number for each.
        unsafe { *self.index().indkey.values.as_ptr() }
    }

    /// Returns whether an index has a WHERE clause, so that it lacks some rows of its table. Panics
    /// for another relation.
    pub fn is_partial(self) -> bool {
        self.index();
        let predicate = pg_sys::Anum_pg_index_indpred as i32;
        // SAFETY: an index has its row of pg_index.
        unsafe { !pg_sys::heap_attisnull(self.data().rd_indextuple, predicate, null_mut()) }
    }

    /// Returns the handler function of the relation's access method.
    pub fn handler(self) -> pg_sys::Oid {
        self.data().rd_amhandler
    }

    /// Returns the support function with this number, counted from 1, in the operator class of an
    /// index's first column; the invalid identifier if the class has none.
    pub fn support_function(self, number: i16) -> pg_sys::Oid {
        let functions = self.data().rd_support;
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        // SAFETY: the fields are null, or an index has the interface of its access method, and a
        // place for each support function of the interface.
        unsafe {
            let num_functions = match self.data().rd_indam.as_ref() {
                Some(method) => usize::from(method.amsupport),
                None => 0,
            };
            if functions.is_null() || place >= num_functions {
                pg_sys::InvalidOid
            } else {
                *functions.add(place)
            }
        }
    }

    /// Returns the type of an index's first column, as which the index stores values. Panics for
    /// another relation.
    pub fn column_type(self) -> pg_sys::Oid {
        self.index();
        // SAFETY: an index has at least one column.
        unsafe { attribute(self.data().rd_att, 0).atttypid }
    }

    /// Returns whether this session is just rebuilding the index.
    pub fn is_being_reindexed(self) -> bool {
        // SAFETY: the function reads a variable of the session.
        unsafe { pg_sys::ReindexIsProcessingIndex(self.oid()) }
    }

    /// Returns the operator class of an index's first column, and the column's collation. Panics
    /// unless this is an index of the extension's access method.
    pub fn column_class(self) -> ColumnClass {
        let data = self.own().data();
        // SAFETY: an index has a place for each of its columns in these arrays.
        unsafe {
            ColumnClass {
                family: *data.rd_opfamily,
                declared: *data.rd_opcintype,
                collation: *data.rd_indcollation,
            }
        }
    }

    /// Returns the options of an index as `amoptions` has parsed them; `None` if the index has
    /// none. Panics unless this is an index of the extension's access method.
    ///
    /// # Safety
    /// `T` must be the struct that `amoptions` of the extension's access method makes, `repr(C)`,
    /// and valid with any bytes.
    pub unsafe fn options<T: Copy>(self) -> Option<T> {
        let options = self.own().data().rd_options;
        if options.is_null() {
            return None;
        }
        // SAFETY: options are a value of variable length. If it is as long as a `T`, it is one, as
        // the caller promises.
        unsafe {
            assert!(
                pgrx::varsize_any(options.cast()) >= size_of::<T>(),
                "options of this access method"
            );
            Some(options.cast::<T>().read_unaligned())
        }
    }
}

/// Returns the name of a relation without its schema, in UTF-8; the digits of its identifier if
/// there is no such relation.
pub fn name_of(relation: pg_sys::Oid) -> String {
    // SAFETY: the name is a C string in the current memory context, or null.
    unsafe { encoding::utf8_of(pg_sys::get_rel_name(relation)) }
        .unwrap_or_else(|| relation.to_u32().to_string())
}

/// A relation that was opened by this library, and is closed when this is dropped. Its lock is kept
/// until the end of the transaction.
pub struct Opened<'s>(Relation<'s>);

impl<'s> Opened<'s> {
    /// Locks a relation and opens it. Raises an error if there is none.
    ///
    /// # Safety
    /// The statement must not end within `'s`. With `NoLock`, the transaction must have the
    /// relation locked for `'s`.
    pub(in crate::pg) unsafe fn new(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Opened<'s> {
        // SAFETY: the relation is open until this is dropped, and the caller promises the lock.
        Opened(unsafe { Relation::new(pg_sys::relation_open(oid, lock)) })
    }

    /// Locks the table of an index for reading and opens it. Raises an error if there is none.
    pub fn table_of(index: Relation<'s>) -> Opened<'s> {
        // SAFETY: the statement doesn't end while the index is open.
        unsafe { Opened::new(index.table(), ACCESS_SHARE) }
    }

    /// Locks a relation and opens it, for no longer than the call; `None` if there is no such
    /// relation once the lock is granted. Panics for `NoLock`.
    pub fn if_there(
        _call: &'s Call,
        oid: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
    ) -> Option<Opened<'s>> {
        assert_ne!(lock, NO_LOCK, "a lock");
        // SAFETY: the relation is null if there is none, and otherwise open until this is dropped.
        unsafe {
            let relation = pg_sys::try_relation_open(oid, lock);
            if relation.is_null() { None } else { Some(Opened(Relation::new(relation))) }
        }
    }

    /// Returns the relation.
    pub fn relation(&self) -> Relation<'_> {
        self.0
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: the relation was opened once. After an error PostgreSQL closes it itself.
            unsafe { pg_sys::relation_close(self.0.0, NO_LOCK) };
        }
    }
}
