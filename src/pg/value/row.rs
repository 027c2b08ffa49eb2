//! Rows as results, one or many.

use super::encoding;
use super::time::{Interval, Timestamp};
use super::varlena::PgBuffer;
use crate::pg::call::Call;
use crate::pg::call::error::Result;
use crate::pg::memory::{Context, in_context, keep};
use crate::pg::version::attribute;
use pgrx::pg_sys;

/// One column of a row.
#[derive(Clone, Debug)]
pub enum ResultColumn {
    /// boolean.
    Bool(bool),
    /// integer.
    I32(i32),
    /// bigint.
    I64(i64),
    /// double precision.
    F64(f64),
    /// timestamp with time zone.
    Time(Timestamp),
    /// interval.
    Interval(Interval),
    /// text.
    Text(String),
    /// An object identifier, or one of the types that name an object.
    Oid(pg_sys::Oid),
    /// NULL.
    Null,
}

impl ResultColumn {
    /// Whether it may be a value of a column that is kept like this.
    fn fits(&self, column: &pg_sys::FormData_pg_attribute) -> bool {
        let length = match self {
            ResultColumn::Bool(_) => size_of::<bool>(),
            ResultColumn::I32(_) | ResultColumn::Oid(_) => size_of::<i32>(),
            ResultColumn::I64(_) | ResultColumn::F64(_) | ResultColumn::Time(_) => size_of::<i64>(),
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
            ResultColumn::Time(v) => pg_sys::Datum::from(*v),
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
    // SAFETY: the descriptor is valid.
    unsafe { form(call.result_descriptor(), columns) }
}

/// # Safety
/// `descriptor` must be a valid one.
unsafe fn form(descriptor: pg_sys::TupleDesc, columns: &[ResultColumn]) -> pg_sys::Datum {
    // SAFETY: promised by the caller; a column is looked at if there are as many.
    let fits = unsafe {
        (*descriptor).natts as usize == columns.len()
            && columns.iter().enumerate().all(|(i, column)| column.fits(attribute(descriptor, i)))
    };
    assert!(fits, "the columns that the function is declared to return");
    let mut values: Vec<_> = columns.iter().map(ResultColumn::datum).collect();
    let mut nulls: Vec<_> = columns.iter().map(|c| matches!(c, ResultColumn::Null)).collect();
    // SAFETY: both arrays have a place for each column, and values are of its type.
    unsafe {
        let tuple = pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
    }
}

/// The rows of a function that returns a set, one for each call.
pub struct Rows {
    rows: std::vec::IntoIter<Vec<ResultColumn>>,
    descriptor: pg_sys::TupleDesc,
}

impl Rows {
    /// The next row of the set that `make` gives at the first call, or nothing after the last.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn next(call: &Call, make: impl FnOnce() -> Result<Vec<Vec<ResultColumn>>>) -> Result<Option<pg_sys::Datum>> {
        let fcinfo = call.fcinfo();
        // SAFETY: this is PostgreSQL's protocol for functions that return a row at each call: nothing is kept before
        // the first, and what is kept between calls lives in the context that the first makes.
        unsafe {
            if call.rows_of_set().is_null() {
                let made = make()?;
                let context = call.begin_rows();
                let memory = Context::new((*context).multi_call_memory_ctx);
                let descriptor = in_context(memory, || call.result_descriptor());
                let rows = Rows { rows: made.into_iter(), descriptor };
                (*context).user_fctx = keep(memory, rows).cast();
            }
            let context = call.rows_of_set();
            let rows = (*context).user_fctx.cast::<Rows>().as_mut().expect("a set of rows that could begin");
            let result: *mut pg_sys::ReturnSetInfo = (*fcinfo).resultinfo.cast();
            match rows.rows.next() {
                Some(columns) => {
                    let datum = form(rows.descriptor, &columns);
                    (*result).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
                    Ok(Some(datum))
                }
                None => {
                    pg_sys::end_MultiFuncCall(fcinfo, context);
                    (*result).isDone = pg_sys::ExprDoneCond::ExprEndResult;
                    Ok(None)
                }
            }
        }
    }
}
