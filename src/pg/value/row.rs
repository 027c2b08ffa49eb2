//! Rows as the result of a function: one, or a set of them.

use super::encoding;
use super::time::Interval;
use super::varlena::PgBuffer;
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::version::{attribute, attributes};
use pg_bloom_core::memory::List;
use pgrx::pg_sys;

/// The value of a column of a result.
#[derive(Clone, Debug)]
pub enum ResultColumn {
    Bool(bool),
    I32(i32),
    I64(i64),
    F64(f64),
    Interval(Interval),
    Text(String),
    /// An object identifier, or a type of names for one, such as `regclass`.
    Oid(pg_sys::Oid),
    Null,
}

impl ResultColumn {
    /// Returns whether the value can be one of a column that is declared like this.
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

    /// Returns the value as PostgreSQL's datum, which is valid as long as `self`. A text is copied
    /// into the current memory context, in the encoding of the database. NULL is the null datum.
    fn datum(&self) -> pg_sys::Datum {
        match self {
            ResultColumn::Bool(value) => pg_sys::Datum::from(*value),
            ResultColumn::I32(value) => pg_sys::Datum::from(*value),
            ResultColumn::I64(value) => pg_sys::Datum::from(*value),
            ResultColumn::F64(value) => pg_sys::Datum::from(value.to_bits()),
            ResultColumn::Interval(value) => value.datum(),
            ResultColumn::Text(text) => {
                let bytes = encoding::from_utf8(text);
                PgBuffer::copy_of(&bytes).into_datum()
            }
            ResultColumn::Oid(oid) => pg_sys::Datum::from(*oid),
            ResultColumn::Null => pg_sys::Datum::null(),
        }
    }
}

/// The value of an OUT parameter of a SQL function.
pub struct OutParameter {
    /// The name with which the parameter is declared.
    pub name: &'static str,
    pub value: ResultColumn,
}

/// Returns the values of a SQL function's OUT parameters as its result, one row in the current
/// memory context. The parameters may have any order. Panics if the function is declared with other
/// parameters.
pub fn row_of_parameters(call: &Call, parameters: &[OutParameter]) -> pg_sys::Datum {
    // SAFETY: the descriptor exists as long as the call.
    let declared_columns = unsafe { attributes(row_descriptor(call)) };
    let mut columns = List::new();
    for declared in declared_columns {
        let declared_name = encoding::name(&declared.attname);
        let parameter = parameters.iter().find(|parameter| parameter.name == declared_name);
        columns.push(parameter.expect("a value for each parameter").value.clone());
    }
    assert_eq!(columns.len(), parameters.len(), "the declared parameters");
    row(call, &columns)
}

/// Returns the description of the rows that a SQL function is declared to return. It exists as long
/// as the call. Panics if the function doesn't return rows.
fn row_descriptor(call: &Call) -> pg_sys::TupleDesc {
    let mut descriptor = std::ptr::null_mut();
    // SAFETY: if the function returns no rows, the descriptor stays null.
    unsafe { pg_sys::get_call_result_type(call.fcinfo(), std::ptr::null_mut(), &mut descriptor) };
    assert!(!descriptor.is_null(), "a function that returns rows");
    descriptor
}

/// Returns a row with these columns as the result of a SQL function that is declared to return one
/// row. The row is in the current memory context. Panics if the function is declared with other
/// columns.
pub fn row(call: &Call, columns: &[ResultColumn]) -> pg_sys::Datum {
    let descriptor = row_descriptor(call);
    // SAFETY: the descriptor is the function's, and there is a value for each of its columns.
    unsafe {
        pg_sys::BlessTupleDesc(descriptor);
        let (mut values, mut nulls) = values_and_nulls(descriptor, columns);
        let tuple = pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
    }
}

/// Gives PostgreSQL these rows as the result of a SQL function that is declared to return a set of
/// rows. PostgreSQL keeps them in memory or, beyond `work_mem`, on disk. Returns `Ok(None)`, since
/// the set isn't passed as the function's datum. Panics if the function is declared with other
/// columns. Raises 0A000 if the query calls it where a set of rows isn't possible.
pub fn rows(call: &Call, rows: impl Iterator<Item = List<ResultColumn>>) -> Outcome {
    let set = call.begin_set();
    for columns in rows {
        // SAFETY: the set has rows with this descriptor, and there is a value for each column.
        unsafe {
            let (mut values, mut nulls) = values_and_nulls(set.setDesc, &columns);
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

/// Returns the values of a row's columns, and for each whether it is NULL. The values are valid as
/// long as `columns`. Panics if the descriptor has other columns.
///
/// # Safety
/// `descriptor` must be a valid row descriptor.
unsafe fn values_and_nulls(
    descriptor: pg_sys::TupleDesc,
    columns: &[ResultColumn],
) -> (List<pg_sys::Datum>, List<bool>) {
    // SAFETY: the caller promises a valid descriptor.
    let num_columns = unsafe { (*descriptor).natts as usize };
    assert!(columns.len() == num_columns, "the columns that the function is declared to return");

    let mut values = List::new();
    let mut nulls = List::new();
    for (i, column) in columns.iter().enumerate() {
        // SAFETY: the descriptor has more than `i` columns.
        let declared = unsafe { attribute(descriptor, i) };
        assert!(column.fits(declared), "column {i} is declared with another type");
        values.push(column.datum());
        nulls.push(matches!(column, ResultColumn::Null));
    }
    (values, nulls)
}
