//! Rows of a table by an integer key: found by the index of the primary key, replaced as an UPDATE would.
//!
//! ```text
//! find(key)  ──▶  the row that the snapshot sees
//! replace    ──▶  done
//!            └─▶  somebody else replaced it meanwhile and committed: the newest row, now locked; look again
//! ```
//!
//! Who waits for another transaction here is woken when that ends. Under REPEATABLE READ a row that was replaced since
//! the transaction began is an error, 40001, as it is for an UPDATE.

use super::catalog::TableColumn;
use super::error::{Error, Result, SqlState};
use super::open_table::Table;
use super::snapshot;
use super::varlena::Value;
use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

/// Rows of one table.
pub struct KeyedRows<'t> {
    table: &'t Table,
    index: pg_sys::Relation,
    scan: pg_sys::IndexScanDesc,
    key: Box<pg_sys::ScanKeyData>,
    snapshot: pg_sys::Snapshot,
    /// The current row.
    slot: *mut pg_sys::TupleTableSlot,
    /// The row that replaces it.
    replacement: *mut pg_sys::TupleTableSlot,
    key_column: i16,
    value_column: i16,
}

/// What became of a row that was to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// It is replaced.
    Done,
    /// It was replaced by somebody else; the current row is now the newest one.
    Changed,
    /// It was deleted by somebody else.
    Gone,
}

impl<'t> KeyedRows<'t> {
    /// The rows that a snapshot sees, by `index`, that of the table's primary key, which is `key`. Both columns are
    /// never NULL; `value` is of a type of variable length.
    pub fn begin(
        table: &'t Table,
        index: pg_sys::Oid,
        snapshot: pg_sys::Snapshot,
        key: &TableColumn,
        value: &TableColumn,
    ) -> KeyedRows<'t> {
        // SAFETY: the table is open and the index is its own; the key's one column is an integer. The slots have the
        // table's columns.
        unsafe {
            let relation = table.relation();
            let index = pg_sys::index_open(index, table.access().lock());
            #[cfg(not(feature = "pg18"))]
            let scan = pg_sys::index_beginscan(relation, index, snapshot, 1, 0);
            #[cfg(feature = "pg18")]
            let scan = pg_sys::index_beginscan(relation, index, snapshot, std::ptr::null_mut(), 1, 0);
            let mut scan_key = Box::<pg_sys::ScanKeyData>::default();
            let equal = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
            let function = pg_sys::Oid::from(pg_sys::F_INT4EQ);
            pg_sys::ScanKeyInit(&mut *scan_key, 1, equal, function, pg_sys::Datum::from(0));
            KeyedRows {
                table,
                index,
                scan,
                key: scan_key,
                snapshot,
                slot: pg_sys::table_slot_create(relation, std::ptr::null_mut()),
                replacement: pg_sys::MakeSingleTupleTableSlot((*relation).rd_att, &raw const pg_sys::TTSOpsVirtual),
                key_column: key.number,
                value_column: value.number,
            }
        }
    }

    /// Ends the work on them.
    pub fn end(self) {
        // SAFETY: all of these are open.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.replacement);
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::index_endscan(self.scan);
            pg_sys::index_close(self.index, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
    }

    /// Makes the row with this key the current one. Whether there is one. To a snapshot from before the index was made
    /// it may show a version of the row that had another key then: that is none.
    pub fn find(&mut self, key: i32) -> bool {
        self.key.sk_argument = pg_sys::Datum::from(key);
        // SAFETY: the scan has one key; the slot is of the table. It lets go of the page of the row before, which can
        // only be cleaned up, for the next version of a row, by who alone looks at it.
        unsafe {
            pg_sys::ExecStoreAllNullTuple(self.slot);
            pg_sys::index_rescan(self.scan, &mut *self.key, 1, std::ptr::null_mut(), 0);
            pg_sys::index_getnext_slot(self.scan, pg_sys::ScanDirection::ForwardScanDirection, self.slot)
                && self.column(self.key_column).value() as i32 == key
        }
    }

    fn column(&self, number: i16) -> pg_sys::Datum {
        // SAFETY: there is a current row, whose columns are as many as the slot has places.
        unsafe {
            if (*self.slot).tts_nvalid < number {
                pg_sys::slot_getsomeattrs_int(self.slot, i32::from(number));
            }
            *(*self.slot).tts_values.add(number as usize - 1)
        }
    }

    /// The value of the current row. It is where the row is as long as that is the current one.
    pub fn value(&self) -> Value<'_> {
        // SAFETY: of variable length by the promise of `begin`.
        unsafe { Value::detoast(self.column(self.value_column)) }
    }

    /// Replaces the value of the current row.
    ///
    /// # Errors
    /// 40001 under REPEATABLE READ if somebody else changed the row; 27000 if this transaction did, meanwhile; 0A000
    /// where the table has an index that can't be kept.
    pub fn replace(&mut self, value: pg_sys::Datum) -> Result<Replaced> {
        use pg_sys::TM_Result;
        self.fill_replacement(value);
        let key = self.column(self.key_column);
        // SAFETY: the current row has an address in the table.
        let mut address = unsafe { (*self.slot).tts_tid };
        let mut failure = pg_sys::TM_FailureData::default();
        let mut lock = pg_sys::LockTupleMode::LockTupleNoKeyExclusive;
        let mut indexes = Default::default();
        let (relation, replacement, snapshot) = (self.table.relation(), self.replacement, self.snapshot);
        // SAFETY: the table's own function, with a row of it; nothing here has a destructor.
        let result = unsafe {
            let update = (*(*relation).rd_tableam).tuple_update;
            let command = pg_sys::GetCurrentCommandId(true);
            pg_guard_ffi_boundary(|| match update {
                Some(update) => update(
                    relation,
                    &mut address,
                    replacement,
                    command,
                    snapshot,
                    std::ptr::null_mut(),
                    true,
                    &mut failure,
                    &mut lock,
                    &mut indexes,
                ),
                None => TM_Result::TM_Invisible,
            })
        };
        match result {
            TM_Result::TM_Ok => {
                self.insert_into_indexes(indexes)?;
                Ok(Replaced::Done)
            }
            TM_Result::TM_Updated | TM_Result::TM_Deleted if snapshot::is_of_transaction() => {
                let how = if result == TM_Result::TM_Updated { "update" } else { "delete" };
                Err(Error::new(
                    SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE,
                    format!("could not serialize access due to concurrent {how}"),
                ))
            }
            TM_Result::TM_Updated => self.lock_newest(address, key, lock),
            TM_Result::TM_Deleted => Ok(Replaced::Gone),
            _ => Err(changed_by_itself()),
        }
    }

    /// Makes the newest row of the one at `address` the current one, and locks it.
    fn lock_newest(
        &mut self,
        mut address: pg_sys::ItemPointerData,
        key: pg_sys::Datum,
        mode: pg_sys::LockTupleMode::Type,
    ) -> Result<Replaced> {
        use pg_sys::TM_Result;
        let mut failure = pg_sys::TM_FailureData::default();
        let (relation, slot, snapshot) = (self.table.relation(), self.slot, self.snapshot);
        // SAFETY: as in `replace`.
        let result = unsafe {
            let lock = (*(*relation).rd_tableam).tuple_lock;
            let command = pg_sys::GetCurrentCommandId(true);
            pg_guard_ffi_boundary(|| match lock {
                Some(lock) => lock(
                    relation,
                    &mut address,
                    snapshot,
                    slot,
                    command,
                    mode,
                    pg_sys::LockWaitPolicy::LockWaitBlock,
                    pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION as u8,
                    &mut failure,
                ),
                None => TM_Result::TM_Invisible,
            })
        };
        match result {
            TM_Result::TM_Ok if self.column(self.key_column) == key => Ok(Replaced::Changed),
            TM_Result::TM_Ok | TM_Result::TM_Deleted => Ok(Replaced::Gone),
            _ => Err(changed_by_itself()),
        }
    }

    /// Columns that were dropped are NULL.
    fn fill_replacement(&mut self, value: pg_sys::Datum) {
        let columns = [(self.key_column, self.column(self.key_column)), (self.value_column, value)];
        // SAFETY: the slot has a place for each column of the table.
        unsafe {
            pg_sys::ExecStoreAllNullTuple(self.replacement);
            for (number, datum) in columns {
                *(*self.replacement).tts_values.add(number as usize - 1) = datum;
                *(*self.replacement).tts_isnull.add(number as usize - 1) = false;
            }
        }
    }

    /// Enters the new row into the table's indexes, where it has to be: it moved to another page.
    fn insert_into_indexes(&mut self, which: Indexes) -> Result<()> {
        if which == NO_INDEX {
            return Ok(());
        }
        for index in self.table.indexes() {
            // SAFETY: an index of the table.
            unsafe {
                let index = pg_sys::index_open(index, self.table.access().lock());
                self.insert_into_index(index, which)?;
                pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
        }
        Ok(())
    }

    /// # Safety
    /// `index` must be an index of the table, and open.
    unsafe fn insert_into_index(&mut self, index: pg_sys::Relation, which: Indexes) -> Result<()> {
        // SAFETY: promised by the caller; the arrays have a place for each column that an index can have.
        unsafe {
            if !is_wanted(index, which) {
                return Ok(());
            }
            let info = pg_sys::BuildIndexInfo(index);
            if !(*info).ii_ReadyForInserts {
                return Ok(());
            }
            let is_plain = (*info).ii_Expressions.is_null()
                && (*info).ii_Predicate.is_null()
                && (*info).ii_ExclusionOps.is_null()
                && (*(*index).rd_index).indimmediate;
            if !is_plain {
                let message = format!("table {} has an index that only SQL can keep", self.table.quoted_name());
                return Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message));
            }
            let mut values = [pg_sys::Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
            let mut nulls = [false; pg_sys::INDEX_MAX_KEYS as usize];
            let nothing = std::ptr::null_mut();
            pg_sys::FormIndexDatum(info, self.replacement, nothing, values.as_mut_ptr(), nulls.as_mut_ptr());
            let unique = if (*info).ii_Unique {
                pg_sys::IndexUniqueCheck::UNIQUE_CHECK_YES
            } else {
                pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO
            };
            pg_sys::index_insert(
                index,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
                &mut (*self.replacement).tts_tid,
                self.table.relation(),
                unique,
                // The key stays the same: a hint to clean up old entries first.
                #[cfg(not(feature = "pg13"))]
                true,
                info,
            );
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            pg_sys::index_insert_cleanup(index, info);
        }
        Ok(())
    }
}

/// Which indexes have to know about a new row.
#[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15"))]
type Indexes = bool;
#[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15")))]
type Indexes = pg_sys::TU_UpdateIndexes::Type;

#[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15"))]
const NO_INDEX: Indexes = false;
#[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15")))]
const NO_INDEX: Indexes = pg_sys::TU_UpdateIndexes::TU_None;

/// Whether a new row has to be entered into this index.
///
/// # Safety
/// `index` must be an index that is open.
#[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15"))]
unsafe fn is_wanted(_index: pg_sys::Relation, which: Indexes) -> bool {
    which
}

/// Since PostgreSQL 16 some indexes need only know that a page changed.
///
/// # Safety
/// `index` must be an index that is open.
#[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15")))]
unsafe fn is_wanted(index: pg_sys::Relation, which: Indexes) -> bool {
    // SAFETY: promised by the caller.
    which == pg_sys::TU_UpdateIndexes::TU_All || unsafe { (*(*index).rd_indam).amsummarizing }
}

#[cold]
fn changed_by_itself() -> Error {
    Error::new(
        SqlState::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION,
        "row to be updated was already modified by an operation triggered by the current command",
    )
}
