//! Types of rows: their columns, and whether they were altered.

use crate::pg::call::error::{Error, SqlState, raise};
use crate::pg::call::guard::{guard, raw};
use crate::pg::catalog::{self, Storage};
use crate::pg::memory::{self, Context};
use crate::pg::version;
use pgrx::{pg_sys, varatt_is_1b_e, vartag_1b_e};

/// A type of rows as it is at one time.
pub struct RowType {
    oid: pg_sys::Oid,
    /// A copy that is freed with this.
    descriptor: pg_sys::TupleDesc,
    version: u64,
}

impl RowType {
    pub fn new(oid: pg_sys::Oid) -> RowType {
        let version = version_of(oid);
        // SAFETY: a composite type has a row descriptor, whose copy is in memory that lives as long
        // as the process.
        let descriptor = unsafe {
            memory::in_context(Context::new(pg_sys::TopMemoryContext), || {
                pg_sys::lookup_rowtype_tupdesc_copy(oid, -1)
            })
        };
        RowType { oid, descriptor, version }
    }

    /// The columns, also those that were dropped.
    pub fn columns(&self) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> {
        // SAFETY: the descriptor is there as long as this.
        unsafe { version::attributes(self.descriptor) }
    }

    /// Calls `work` for each column of a row with its number and value, also for those that were
    /// dropped.
    ///
    /// # Safety
    /// `row` must be a whole, aligned row of this type.
    pub unsafe fn each_column(
        &self,
        row: pg_sys::Datum,
        mut work: impl FnMut(usize, Option<pg_sys::Datum>),
    ) {
        // SAFETY: promised by the caller; both lists have a place for each column. The row is freed
        // if it is a copy.
        unsafe {
            let given = row.cast_mut_ptr();
            let row = version::row(row);
            let count = (*self.descriptor).natts as usize;
            let (mut values, mut nulls) = (vec![pg_sys::Datum::null(); count], vec![true; count]);
            let t_len = pgrx::varsize_any(row.cast()) as u32;
            let mut tuple = pg_sys::HeapTupleData { t_len, t_data: row, ..Default::default() };
            let (to_values, to_nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            guard(|| raw::heap_deform_tuple(&mut tuple, self.descriptor, to_values, to_nulls));
            for (i, (value, is_null)) in values.into_iter().zip(nulls).enumerate() {
                work(i, (!is_null).then_some(value));
            }
            if row != given {
                pg_sys::pfree(row.cast());
            }
        }
    }

    /// Refuses a row in a variable of PL/pgSQL that was made before its type was altered, if its
    /// columns were others.
    ///
    /// # Safety
    /// The datum must be a row.
    pub unsafe fn check(&self, datum: pg_sys::Datum) {
        let pointer: *const pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: promised by the caller; the tag says what is behind it, and the number what kind
        // of expanded object.
        let is_readable = unsafe {
            use pg_sys::vartag_external::{VARTAG_EXPANDED_RO, VARTAG_EXPANDED_RW};
            let is_expanded = varatt_is_1b_e(pointer)
                && [VARTAG_EXPANDED_RO, VARTAG_EXPANDED_RW]
                    .contains(&u32::from(vartag_1b_e(pointer)));
            if !is_expanded {
                return;
            }
            let record: *const pg_sys::ExpandedRecordHeader = pg_sys::DatumGetEOHP(datum).cast();
            let is_older = (*record).er_magic == pg_sys::ER_MAGIC as i32
                && (*record).er_typeid == self.oid
                && (*record).er_tupdesc_id != self.version
                && !(*record).er_tupdesc.is_null();
            !is_older || self.reads((*record).er_tupdesc)
        };
        if !is_readable {
            let name = catalog::display_name(self.oid);
            let message = format!("type {name} was altered after this value of it was made");
            raise(
                Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message)
                    .hint("Make the value again."),
            );
        }
    }

    /// Whether rows that were made with an older descriptor can be read with this one.
    ///
    /// # Safety
    /// It must be a descriptor.
    unsafe fn reads(&self, older: pg_sys::TupleDesc) -> bool {
        // SAFETY: promised by the caller; this one's is valid.
        unsafe {
            let mut pairs = version::attributes(older).zip(self.columns());
            (*older).natts <= (*self.descriptor).natts
                && pairs.all(|(before, now)| {
                    Storage::of(&before) == Storage::of(&now)
                        && (now.attisdropped || before.atttypid == now.atttypid)
                })
        }
    }
}

impl Drop for RowType {
    fn drop(&mut self) {
        // SAFETY: the copy was made for this value, and nothing else refers to it.
        unsafe { pg_sys::FreeTupleDesc(self.descriptor) };
    }
}

/// A number that is another one whenever a composite type was altered.
pub fn version_of(oid: pg_sys::Oid) -> u64 {
    // SAFETY: entries of the type cache live as long as the process.
    unsafe {
        (*pg_sys::lookup_type_cache(oid, pg_sys::TYPECACHE_TUPDESC as i32)).tupDesc_identifier
    }
}
