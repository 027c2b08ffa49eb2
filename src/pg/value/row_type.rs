//! Types of rows (composite types): their columns, and whether they were altered.

use crate::pg::call::error::{Error, SqlState, raise};
use crate::pg::call::guard::{guard, raw};
use crate::pg::catalog::{self, Storage};
use crate::pg::memory::{self, Context};
use crate::pg::version;
use pg_bloom_core::memory::List;
use pgrx::{pg_sys, varatt_is_1b_e, vartag_1b_e};

/// A type of rows as it was when this was made. It may be altered later.
pub struct RowType {
    oid: pg_sys::Oid,
    /// A copy that is freed with this struct.
    descriptor: pg_sys::TupleDesc,
    /// What [`version_of`] returned when this was made.
    version: u64,
}

impl RowType {
    /// Reads a type from PostgreSQL's caches. Raises an error if it is no type of rows.
    pub fn new(oid: pg_sys::Oid) -> RowType {
        let version = version_of(oid);
        // SAFETY: the copy is allocated in memory that lives as long as the process.
        let descriptor = unsafe {
            memory::in_context(Context::new(pg_sys::TopMemoryContext), || {
                pg_sys::lookup_rowtype_tupdesc_copy(oid, -1)
            })
        };
        RowType { oid, descriptor, version }
    }

    /// Returns the columns in their order, dropped ones included.
    pub fn columns(&self) -> impl Iterator<Item = pg_sys::FormData_pg_attribute> {
        // SAFETY: the descriptor exists as long as `self`.
        unsafe { version::attributes(self.descriptor) }
    }

    /// Calls `visit` with the number of each column, dropped ones included, and with its value in a
    /// row; `None` for NULL.
    ///
    /// # Safety
    /// `row` must be a whole, aligned row of this type.
    pub unsafe fn each_column(
        &self,
        row: pg_sys::Datum,
        mut visit: impl FnMut(usize, Option<pg_sys::Datum>),
    ) {
        let given = row.cast_mut_ptr();
        // SAFETY: the descriptor exists as long as `self`.
        let num_columns = unsafe { (*self.descriptor).natts as usize };
        let mut values = List::filled(pg_sys::Datum::null(), num_columns);
        let mut nulls = List::filled(true, num_columns);

        // SAFETY: the caller promises a row of this type. Both lists have a place for each column.
        unsafe {
            let row = version::row_header(row);
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varsize_any(row.cast()) as u32,
                t_data: row,
                ..Default::default()
            };
            let values_start = values.as_mut_ptr();
            let nulls_start = nulls.as_mut_ptr();
            guard(|| {
                raw::heap_deform_tuple(&mut tuple, self.descriptor, values_start, nulls_start);
            });

            for (i, (value, is_null)) in values.into_iter().zip(nulls).enumerate() {
                visit(i, if is_null { None } else { Some(value) });
            }
            let is_copy = row != given;
            if is_copy {
                pg_sys::pfree(row.cast());
            }
        }
    }

    /// Checks that a row can be read as one of this type. A variable of PL/pgSQL may have a row
    /// that was made before the type was altered. Raises 42804 if the type has other columns since
    /// then.
    ///
    /// # Safety
    /// The datum must be a row, and not NULL.
    pub unsafe fn check(&self, datum: pg_sys::Datum) {
        // SAFETY: the caller promises a row that isn't NULL.
        let Some(record) = (unsafe { expanded_record(datum) }) else {
            return;
        };
        // SAFETY: the record and its descriptor exist as long as the datum.
        let is_readable = unsafe {
            let is_of_older_type = (*record).er_typeid == self.oid
                && (*record).er_tupdesc_id != self.version
                && !(*record).er_tupdesc.is_null();
            !is_of_older_type || self.can_read((*record).er_tupdesc)
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

    /// Returns whether rows of an older state of this type, with the columns in `older`, can be
    /// read with the columns that the type has now: the older ones are stored as the first ones of
    /// now, and have the same types, apart from columns that were dropped. Columns that were added
    /// are NULL then.
    ///
    /// # Safety
    /// `older` must be a valid row descriptor.
    unsafe fn can_read(&self, older: pg_sys::TupleDesc) -> bool {
        // SAFETY: the caller promises a valid descriptor, and `self.descriptor` exists as long as
        // `self`.
        unsafe {
            if (*older).natts > (*self.descriptor).natts {
                return false;
            }
            version::attributes(older).zip(self.columns()).all(|(before, now)| {
                Storage::of(&before) == Storage::of(&now)
                    && (now.attisdropped || before.atttypid == now.atttypid)
            })
        }
    }
}

impl Drop for RowType {
    fn drop(&mut self) {
        // SAFETY: the copy belongs to `self` alone.
        unsafe { pg_sys::FreeTupleDesc(self.descriptor) };
    }
}

/// Returns the record that a datum points to, if it is a row in the form in which PL/pgSQL keeps
/// its variables; `None` for a row in another form.
///
/// # Safety
/// The datum must be a row, and not NULL.
unsafe fn expanded_record(datum: pg_sys::Datum) -> Option<*const pg_sys::ExpandedRecordHeader> {
    use pg_sys::vartag_external::{VARTAG_EXPANDED_RO, VARTAG_EXPANDED_RW};
    let pointer: *const pg_sys::varlena = datum.cast_mut_ptr();
    // SAFETY: the caller promises a row, which is a value of variable length. Its second byte is a
    // tag if the first one says so.
    let is_expanded = unsafe {
        varatt_is_1b_e(pointer)
            && [VARTAG_EXPANDED_RO, VARTAG_EXPANDED_RW].contains(&u32::from(vartag_1b_e(pointer)))
    };
    if !is_expanded {
        return None;
    }
    // SAFETY: the tag says that this is an expanded object, and the magic number which kind of one.
    unsafe {
        let record: *const pg_sys::ExpandedRecordHeader = pg_sys::DatumGetEOHP(datum).cast();
        if (*record).er_magic == pg_sys::ER_MAGIC as i32 { Some(record) } else { None }
    }
}

/// Returns a number that changes whenever a composite type is altered. Raises an error if there is
/// no such type.
pub fn version_of(oid: pg_sys::Oid) -> u64 {
    // SAFETY: entries of PostgreSQL's type cache live as long as the process.
    unsafe {
        (*pg_sys::lookup_type_cache(oid, pg_sys::TYPECACHE_TUPDESC as i32)).tupDesc_identifier
    }
}
