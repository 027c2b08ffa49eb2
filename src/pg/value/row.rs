//! Rows as results, one or many.

use super::encoding;
use super::time::Interval;
use super::varlena::PgBuffer;
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::version::attribute;
use pgrx::pg_sys;

#[derive(Clone, Debug)]
pub enum ResultColumn {
    Bool(bool),
    I32(i32),
    I64(i64),
    F64(f64),
    Interval(Interval),
    Text(String),
    /// An object identifier, or one of the types that name an object.
    Oid(pg_sys::Oid),
    Null,
}

impl ResultColumn {
    /// Whether it may be a value of a column that is kept like this.
    fn fits(&self, column: &pg_sys::FormData_pg_attribute) -> bool {
        let length = match self {
            ResultColumn::Bool(_) => size_of::<bool>(),
            ResultColumn::I32(_) | ResultColumn::Oid(_) => size_of::<i32>(),
            ResultColumn::I64(_) | ResultColumn::F64(_) => size_of::<i64>(),
            ResultColumn::Text(_) => return column.atttypid == pg_sys::TEXTOID,
            ResultColumn::Interval(_) => return column.atttypid == pg_sys::INTERVALOID,
            ResultColumn::Null => return true,
        };
        column.attbyval && usize::try_from(column.attlen) == Ok(length)
    }

    fn datum(&self) -> pg_sys::Datum {
        match self {
            ResultColumn::Bool(v) => pg_sys::Datum::from(*v),
            ResultColumn::I32(v) => pg_sys::Datum::from(*v),
            ResultColumn::I64(v) => pg_sys::Datum::from(*v),
            ResultColumn::Interval(v) => v.datum(),
            ResultColumn::F64(v) => pg_sys::Datum::from(v.to_bits()),
            ResultColumn::Text(v) => PgBuffer::copy_of(&encoding::from_utf8(v)).into_datum(),
            ResultColumn::Oid(v) => pg_sys::Datum::from(*v),
            ResultColumn::Null => pg_sys::Datum::null(),
        }
    }
}

/// A row of the type that the function is declared to return. Panics if that has other columns.
pub fn row(call: &Call, columns: &[ResultColumn]) -> pg_sys::Datum {
    let mut descriptor = std::ptr::null_mut();
    // SAFETY: without a row type the descriptor stays null; there is a value for each of its
    // columns.
    unsafe {
        pg_sys::get_call_result_type(call.fcinfo(), std::ptr::null_mut(), &mut descriptor);
        assert!(!descriptor.is_null(), "a function that returns rows");
        pg_sys::BlessTupleDesc(descriptor);
        let (mut values, mut nulls) = values_of(descriptor, columns);
        let tuple = pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
    }
}

/// All rows of a function that returns a set of them, likewise. Raises 0A000 where the caller takes
/// no set.
pub fn rows(call: &Call, rows: impl Iterator<Item = Vec<ResultColumn>>) -> Outcome {
    let set = call.begin_set();
    for columns in rows {
        // SAFETY: the store is one of such rows.
        unsafe {
            let (mut values, mut nulls) = values_of(set.setDesc, &columns);
            pg_sys::tuplestore_putvalues(
                set.setResult,
                set.setDesc,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
        }
    }
    Ok(None)
}

/// The values of a row's columns, which live as long as these, and which of them are NULL.
///
/// # Safety
/// `descriptor` must be a valid one.
unsafe fn values_of(
    descriptor: pg_sys::TupleDesc,
    columns: &[ResultColumn],
) -> (Vec<pg_sys::Datum>, Vec<bool>) {
    // SAFETY: promised by the caller; a column is looked at if there are as many.
    let fits = unsafe {
        (*descriptor).natts as usize == columns.len()
            && columns
                .iter()
                .enumerate()
                .all(|(i, column)| column.fits(attribute(descriptor, i)))
    };
    assert!(fits, "the columns that the function is declared to return");
    columns
        .iter()
        .map(|column| (column.datum(), matches!(column, ResultColumn::Null)))
        .unzip()
}
