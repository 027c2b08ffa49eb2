//! Relations: indexes and tables that PostgreSQL opened, and those that are opened here.

use crate::pg::call::guard::is_unwinding;
use crate::pg::call::{Call, nodes};
use crate::pg::sql;
use crate::pg::value::encoding;
use crate::pg::version::{self, attribute};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::OnceLock;

#[derive(Clone, Copy)]
pub struct Relation<'r>(pg_sys::Relation, PhantomData<&'r ()>);

pub const PAGE_BYTES: usize = pg_sys::BLCKSZ as usize;

/// Which file of a relation, by tablespace, database and number: each rewrite makes another.
pub type File = [u32; 3];

pub const ACCESS_SHARE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;

pub(in crate::pg) const MAIN_FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// ambuild of the extension's access method, once a session has used that.
static OWN_METHOD: OnceLock<usize> = OnceLock::new();

/// Says which function of PostgreSQL's interface tells the extension's access method from others.
///
/// # Safety
/// It must be the ambuild of the extension's access method, whose relations' pages and options only
/// this library writes.
pub unsafe fn own_method(ambuild: pg_sys::ambuild_function) {
    OWN_METHOD.get_or_init(|| ambuild.map_or(0, |ambuild| ambuild as usize));
}

impl<'r> Relation<'r> {
    /// # Safety
    /// The relation must be open for `'r`.
    pub unsafe fn new(relation: pg_sys::Relation) -> Relation<'r> {
        Relation(relation, PhantomData)
    }

    /// The same. Panics if it is no index of the extension's access method: others' pages aren't
    /// read as bytes.
    pub(in crate::pg) fn own(self) -> Relation<'r> {
        assert!(self.is_own(), "an index of the extension's access method");
        self
    }

    /// Returns whether it is an index of the extension's access method.
    pub(in crate::pg) fn is_own(self) -> bool {
        // SAFETY: null, or the interface of an index's access method.
        let method = unsafe { self.data().rd_indam.as_ref() };
        let ambuild = method
            .and_then(|method| method.ambuild)
            .map(|ambuild| ambuild as usize);
        ambuild.is_some() && ambuild.as_ref() == OWN_METHOD.get()
    }

    /// Its row of pg_index. Panics for what is no index.
    fn index(self) -> &'r pg_sys::FormData_pg_index {
        // SAFETY: null, or the row of pg_index.
        unsafe { self.data().rd_index.as_ref() }.expect("an index")
    }

    /// Whether it is a table of PostgreSQL's own access method.
    pub fn is_heap(self) -> bool {
        // SAFETY: returns the address of a constant.
        std::ptr::eq(self.data().rd_tableam, unsafe { pg_sys::GetHeapamTableAmRoutine() })
    }

    /// How the access method of a table scans it. Panics for what is none, as views are.
    pub(in crate::pg) fn table_method(self) -> &'r pg_sys::TableAmRoutine {
        // SAFETY: null, or the interface of a table's access method.
        unsafe { self.data().rd_tableam.as_ref() }.expect("a table")
    }

    pub fn raw(self) -> pg_sys::Relation {
        self.0
    }

    fn data(self) -> &'r pg_sys::RelationData {
        // SAFETY: open for as long, as `new` was promised.
        unsafe { &*self.0 }
    }

    pub(in crate::pg) fn class(self) -> pg_sys::FormData_pg_class {
        // SAFETY: an open relation has one.
        unsafe { *self.data().rd_rel }
    }

    pub fn oid(self) -> pg_sys::Oid {
        self.data().rd_id
    }

    pub fn name(self) -> String {
        encoding::name(&self.class().relname)
    }

    /// Whether it is an index of the access method with this name, and no partitioned one, which
    /// has no pages.
    pub fn is_index_by(self, method: &CStr) -> bool {
        // SAFETY: reads the catalog; the name is a C string.
        let method = unsafe { pg_sys::get_index_am_oid(method.as_ptr(), true) };
        self.kind() == pg_sys::RELKIND_INDEX && self.class().relam == method
    }

    /// Whether an index is complete: one that failed, or is still being built concurrently, lacks
    /// rows.
    pub fn is_valid_index(self) -> bool {
        self.index().indisvalid
    }

    /// Whether an index has all rows that the snapshots of this transaction see, older versions of
    /// changed ones too.
    pub fn has_all_rows_of_snapshots(self) -> bool {
        if !self.index().indcheckxmin {
            return true;
        }
        // SAFETY: an index has its row of pg_index; reads a variable of the session.
        unsafe {
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

    /// The indexes of a table, each opened when it is its turn.
    pub fn indexes(self) -> impl Iterator<Item = Opened<'r>> {
        // SAFETY: open, so the statement doesn't end; the result is a list in the memory of this
        // call.
        unsafe {
            let oids = nodes::oids(pg_sys::RelationGetIndexList(self.0));
            oids.into_iter().map(|oid| Opened::new(oid, ACCESS_SHARE))
        }
    }

    /// All tables below this one, on any level, which are locked at once, and opened each when it
    /// is its turn.
    pub fn inheritors(self) -> impl Iterator<Item = Opened<'r>> {
        // SAFETY: the result is a list in the memory of this call.
        let find = || unsafe {
            nodes::oids(pg_sys::find_all_inheritors(self.oid(), ACCESS_SHARE, null_mut()))
        };
        let all = if self.class().relhassubclass { find() } else { Vec::new() };
        // SAFETY: the locks are kept while this table is open.
        let open = |oid| unsafe { Opened::new(oid, NO_LOCK) };
        all.into_iter().filter(move |&oid| oid != self.oid()).map(open)
    }

    /// Has a serializable transaction remember that it read all of an index. Panics outside of a
    /// query.
    pub fn lock_for_serializable(self) {
        self.index();
        // SAFETY: open, and a valid snapshot.
        unsafe {
            pg_sys::PredicateLockRelation(self.0, sql::snapshot().expect("a query has a snapshot"))
        };
    }

    /// Whether this server follows another, or recovers from a crash, and the relation's changes
    /// are not in the WAL.
    pub fn is_lost_in_recovery(self) -> bool {
        // SAFETY: looks at the state of the server.
        self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED
            && unsafe { pg_sys::RecoveryInProgress() }
    }

    /// Whether it has rows to be read: a materialized view doesn't before it is refreshed.
    pub fn is_populated(self) -> bool {
        self.class().relispopulated
    }

    /// Whether it is a temporary one of another session, whose pages can't be read.
    pub fn is_of_other_session(self) -> bool {
        self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP
            && !self.data().rd_islocaltemp
    }

    /// Whether its changes go into the WAL now: those of unlogged and temporary relations never do,
    /// nor those of a relation made in this transaction while wal_level is minimal, which is
    /// written to disk at the commit.
    pub fn needs_wal(self) -> bool {
        // SAFETY: reads a setting.
        let is_wal_complete =
            unsafe { pg_sys::wal_level } >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32;
        let is_permanent = self.class().relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
        // 0 is no subtransaction: neither the relation nor its file was made in this transaction.
        is_permanent
            && (is_wal_complete
                || (self.data().rd_createSubid, version::file(self.data()).1) == (0, 0))
    }

    pub fn pages(self) -> u32 {
        // SAFETY: asks for the size of the file.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.0, MAIN_FORK) }
    }

    pub fn file(self) -> File {
        // SAFETY: that is what a locator is, by other names in other versions.
        unsafe { std::mem::transmute::<version::Locator, File>(version::file(self.data()).0) }
    }

    /// The storage manager's handle, for this moment.
    pub(in crate::pg) fn storage(self) -> pg_sys::SMgrRelation {
        // SAFETY: finds or makes the entry for the relation's file.
        unsafe { pg_sys::smgropen(version::file(self.data()).0, self.data().rd_backend) }
    }

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

    pub fn columns(self) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> + use<'r> {
        // SAFETY: an open relation has a descriptor.
        unsafe { version::attributes(self.data().rd_att) }
    }

    /// The mean bytes of a row's values, by the types of the columns.
    pub fn row_width(self) -> u32 {
        let width = |column: pg_sys::FormData_pg_attribute| match column.attlen {
            1.. => column.attlen as u32,
            // SAFETY: guesses by the type and its modifier.
            _ => {
                unsafe { pg_sys::get_typavgwidth(column.atttypid, column.atttypmod) }.max(1) as u32
            }
        };
        self.columns().filter(|column| !column.attisdropped).map(width).sum()
    }

    /// The share of a page that INSERT fills, of a table of PostgreSQL's own access method.
    pub fn fill_factor(self) -> f64 {
        assert!(self.is_heap(), "a table of heap");
        let options: *const pg_sys::StdRdOptions = self.data().rd_options.cast();
        // SAFETY: null, or the options of a table.
        let percent = if options.is_null() { 100 } else { unsafe { (*options).fillfactor } };
        f64::from(percent.clamp(10, 100)) / 100.0
    }

    /// A number of the caller's, 0 before it was set, that the relation cache keeps until an index
    /// changes in any way.
    pub fn cached_number(self) -> u64 {
        let kept: *const u64 = self.own().data().rd_amcache.cast();
        // SAFETY: null, or what `set_cached_number` allocated.
        if kept.is_null() { 0 } else { unsafe { *kept } }
    }

    pub fn set_cached_number(self, number: u64) {
        self.own();
        // SAFETY: one allocation in the index's own context, as the relation cache wants it, which
        // frees it.
        unsafe {
            if (*self.0).rd_amcache.is_null() {
                (*self.0).rd_amcache =
                    pg_sys::MemoryContextAlloc((*self.0).rd_indexcxt, size_of::<u64>());
            }
            *(*self.0).rd_amcache.cast() = number;
        }
    }

    pub fn table(self) -> pg_sys::Oid {
        self.index().indrelid
    }

    /// The number of the table's column that an index's first column is; 0 for an expression.
    pub fn column_number(self) -> i16 {
        // SAFETY: an index has one of these for each column.
        unsafe { *self.index().indkey.values.as_ptr() }
    }

    pub fn is_partial(self) -> bool {
        self.index();
        let predicate = pg_sys::Anum_pg_index_indpred as i32;
        // SAFETY: an index has its row of pg_index.
        unsafe { !pg_sys::heap_attisnull(self.data().rd_indextuple, predicate, null_mut()) }
    }

    pub fn handler(self) -> pg_sys::Oid {
        self.data().rd_amhandler
    }

    /// The support function of this number of the operator class of an index's first column;
    /// invalid if it has none.
    pub fn support_function(self, number: i16) -> pg_sys::Oid {
        let (functions, i) =
            (self.data().rd_support, usize::try_from(number - 1).unwrap_or(usize::MAX));
        // SAFETY: an index has the interface of its access method, and as many functions as that
        // says, or none.
        unsafe {
            let most = self
                .data()
                .rd_indam
                .as_ref()
                .map_or(0, |method| usize::from(method.amsupport));
            if functions.is_null() || i >= most {
                pg_sys::InvalidOid
            } else {
                *functions.add(i)
            }
        }
    }

    pub fn column_type(self) -> pg_sys::Oid {
        self.index();
        // SAFETY: an index has a column.
        unsafe { attribute(self.data().rd_att, 0).atttypid }
    }

    pub fn is_being_reindexed(self) -> bool {
        // SAFETY: looks at what this session is doing.
        unsafe { pg_sys::ReindexIsProcessingIndex(self.oid()) }
    }

    /// The operator family and the declared type of the operator class of an index's first column,
    /// and its collation.
    pub fn column_class(self) -> (pg_sys::Oid, pg_sys::Oid, pg_sys::Oid) {
        let data = self.own().data();
        // SAFETY: an index of an access method has these for each column.
        unsafe { (*data.rd_opfamily, *data.rd_opcintype, *data.rd_indcollation) }
    }

    /// The parsed options of an index of the extension's, if there are any.
    ///
    /// # Safety
    /// `T` must be `repr(C)`, what amoptions of the extension's access method makes, and valid with
    /// any bytes.
    pub unsafe fn options<T: Copy>(self) -> Option<T> {
        let options = self.own().data().rd_options;
        // SAFETY: null, or a value of variable length; what is as long as a `T` is one, as the
        // caller promised.
        (!options.is_null()).then(|| unsafe {
            assert!(
                pgrx::varsize_any(options.cast()) >= size_of::<T>(),
                "options of this access method"
            );
            options.cast::<T>().read_unaligned()
        })
    }
}

/// The name of a relation, or its identifier if there is none.
pub fn name_of(relation: pg_sys::Oid) -> String {
    // SAFETY: reads the catalog; the result is a C string in the memory of this call, or null.
    unsafe { encoding::utf8_of(pg_sys::get_rel_name(relation)) }
        .unwrap_or_else(|| relation.to_u32().to_string())
}

/// A relation opened here, closed at the end; its lock is kept until the end of the transaction.
pub struct Opened<'s>(Relation<'s>);

impl<'s> Opened<'s> {
    /// A relation, under a lock. Raises an error if there is none.
    ///
    /// # Safety
    /// The statement must not end within `'s`, nor before it the lock, if that is another's.
    pub(in crate::pg) unsafe fn new(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Opened<'s> {
        // SAFETY: promised by the caller.
        Opened(unsafe { Relation::new(pg_sys::relation_open(oid, lock)) })
    }

    /// The table of an index, for as long as that is open.
    pub fn table_of(index: Relation<'s>) -> Opened<'s> {
        // SAFETY: while the index is open, the statement doesn't end.
        unsafe { Opened::new(index.table(), ACCESS_SHARE) }
    }

    /// Any relation, under a lock, for no longer than the call; `None` if there is none once the
    /// lock is had.
    pub fn if_there(
        _call: &'s Call,
        oid: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
    ) -> Option<Opened<'s>> {
        assert_ne!(lock, NO_LOCK, "a lock");
        // SAFETY: null for what is not there.
        unsafe {
            let relation = pg_sys::try_relation_open(oid, lock);
            (!relation.is_null()).then(|| Opened(Relation::new(relation)))
        }
    }

    pub fn relation(&self) -> Relation<'_> {
        self.0
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: opened here, and closed once; after an error by PostgreSQL itself.
            unsafe { pg_sys::relation_close(self.0.0, NO_LOCK) };
        }
    }
}
