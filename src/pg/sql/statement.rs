//! Statements, executed by PostgreSQL's server programming interface (SPI) with the rights of the
//! caller.
//!
//! ```text
//! connected(|| …)        connects the call to the interface
//!   Prepared::new        parses a statement; it is planned when it is first executed
//!   Prepared::execute    executes it with values, and visits the rows of its result
//! execute                does all of this once
//! ```
//!
//! The caller's search_path applies, so all names in a statement must be qualified, as in
//! `a OPERATOR(pg_catalog.=) b`.
//!
//! What PostgreSQL allocates for a statement is freed when the connection ends; the caller's memory
//! stays the current one. After an error PostgreSQL ends the connection itself, with the
//! transaction or the subtransaction.

use super::setting::{Setting, with_settings};
use super::transaction::snapshot;
use crate::pg::call::SqlValue;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::guard::{current_call, finally, guard, is_unwinding, raw};
use crate::pg::call::interrupt::check_for_interrupts;
use crate::pg::catalog;
use crate::pg::memory::{Context, in_context, in_scratch};
use crate::pg::value::array::array_of;
use crate::pg::value::varlena::{PgBuffer, Value};
use crate::pg::version::attribute;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Oid};
use std::cell::Cell;
use std::ffi::CString;

thread_local! {
    /// The number of the call that made the last connection. A call that a statement of another one
    /// makes can't use that one's connection: it would get its results.
    static CONNECTED_CALL: Cell<u64> = const { Cell::new(0) };
}

/// Runs `statements` while the call is connected to the interface, and returns its result.
///
/// Fails if `statements` fails, and with XX000 if the connection can't be made.
pub fn connected<T>(statements: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: a statement is running, so there is a transaction.
    check(unsafe { restoring_memory(|| pg_sys::SPI_connect()) })?;
    let call_before = CONNECTED_CALL.replace(current_call());
    // After an error PostgreSQL ends the connection.
    let result = finally(statements, || CONNECTED_CALL.set(call_before));
    // SAFETY: the connection was made above. If `statements` has caught an error, this ends the
    // connection of another function, in the memory of that; the call fails then.
    check(unsafe { restoring_memory(|| pg_sys::SPI_finish()) })?;
    result
}

/// Calls a function of the interface, which changes PostgreSQL's current memory context, and sets
/// that back to the caller's.
///
/// # Safety
/// As for [`guard`].
unsafe fn restoring_memory<T>(call_interface: impl FnOnce() -> T) -> T {
    // SAFETY: the current memory context stays current for the caller.
    unsafe { in_context(Context::new(pg_sys::CurrentMemoryContext), call_interface) }
}

/// A value for a parameter of a statement; never NULL.
pub enum Parameter<'a> {
    Oid(Oid),
    I64(i64),
    /// An array of `bigint`.
    I64s(&'a [u64]),
    /// An array of `bytea`.
    Byteas(&'a [PgBuffer]),
}

impl Parameter<'_> {
    /// Returns the SQL type of the parameter.
    fn sql_type(&self) -> Oid {
        match self {
            Parameter::Oid(_) => pg_sys::OIDOID,
            Parameter::I64(_) => pg_sys::INT8OID,
            Parameter::I64s(_) => pg_sys::INT8ARRAYOID,
            Parameter::Byteas(_) => pg_sys::BYTEAARRAYOID,
        }
    }

    /// Returns the value as a datum of [`Parameter::sql_type`]. An array is allocated in the
    /// current memory context.
    fn datum(&self) -> pg_sys::Datum {
        let elements: List<SqlValue> = match *self {
            Parameter::Oid(value) => return value.into(),
            Parameter::I64(value) => return value.into(),
            Parameter::I64s(values) => values
                .iter()
                .map(|&value| SqlValue { datum: (value as i64).into() })
                .collect(),
            Parameter::Byteas(values) => {
                values.iter().map(|value| SqlValue { datum: value.datum() }).collect()
            }
        };
        // SAFETY: the elements are of the element type of this array.
        unsafe { array_of(self.sql_type(), elements) }
    }
}

/// What a statement sees of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// What the query that calls the function sees. The statement may only read.
    CallingQuery,
    /// What the transaction has done, and all that is committed now; under REPEATABLE READ and
    /// SERIALIZABLE, what was committed when the transaction began.
    Now,
    /// What is in the catalogs now, at any level of isolation, and in parallel plans too. The
    /// statement may only read.
    Catalogs,
}

/// Executes a statement once: connects, prepares it, executes it with these values, and calls
/// `each` with every row that it returns. Returns how many rows it returned or changed.
///
/// Fails as [`Prepared::new`] and [`Prepared::execute`] do.
pub fn execute(
    sql: &[&[u8]],
    values: &[Parameter<'_>],
    sees: Sees,
    each: impl FnMut(&ResultRow) -> Result<()>,
) -> Result<u64> {
    connected(|| {
        let types = values.iter().map(Parameter::sql_type).collect();
        let statement = Prepared::for_connection(sql, types, Planning::ByCost)?;
        statement.execute(values, sees, each)
    })
}

/// How a statement is planned when it is executed for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Planning {
    ByCost,
    /// With nested loops over indexes, however small its tables are at that time: the plan is kept
    /// until a table or its statistics change.
    WithIndexes,
    /// With bitmap heap scans, for a statement without joins: an index finds the pages of all rows,
    /// and PostgreSQL announces `effective_io_concurrency` of them before it reads the first.
    WithBitmaps,
}

impl Planning {
    /// Returns settings with which PostgreSQL plans so. Without an index, a plan with a scan that
    /// is turned off seems so expensive that PostgreSQL would compile it.
    fn settings(self) -> &'static [Setting<'static>] {
        match self {
            Planning::ByCost => &[],
            Planning::WithIndexes => &[
                (c"enable_seqscan", c"off"),
                (c"enable_bitmapscan", c"off"),
                (c"enable_hashjoin", c"off"),
                (c"enable_mergejoin", c"off"),
                (c"jit", c"off"),
            ],
            Planning::WithBitmaps => &[
                (c"enable_seqscan", c"off"),
                (c"enable_bitmapscan", c"on"),
                (c"enable_indexscan", c"off"),
                (c"jit", c"off"),
            ],
        }
    }
}

/// A statement with one plan for all values of its parameters. PostgreSQL plans it again when a
/// table or another object that it names has changed.
pub struct Prepared {
    plan: pg_sys::SPIPlanPtr,
    parameter_types: List<Oid>,
    /// How it is to be planned, until it has been.
    planning: Cell<Planning>,
}

impl Prepared {
    /// Prepares a statement, which is the concatenation of `sql` in the encoding of the database,
    /// with parameters of these types. It is kept until the result is dropped, also after the
    /// transaction.
    ///
    /// Raises an error if it can't be parsed. Fails with XX000 if it can't be executed from a
    /// function.
    pub fn new(sql: &[&[u8]], parameter_types: List<Oid>, planning: Planning) -> Result<Prepared> {
        connected(|| {
            let prepared = Prepared::for_connection(sql, parameter_types, planning)?;
            // SAFETY: the plan was made in this connection.
            check(unsafe { pg_sys::SPI_keepplan(prepared.plan) })?;
            Ok(prepared)
        })
    }

    /// Prepares a statement for the connection that the caller has made; it is gone when the
    /// connection ends. The statement is the concatenation of `sql`, in the encoding of the
    /// database, with parameters `$1` and so on of these types. `planning` says which
    /// settings hold while it is planned first. Raises an error if it can't be parsed. Fails with
    /// XX000 if it has a zero byte, or can't be executed from a function.
    fn for_connection(
        sql: &[&[u8]],
        mut parameter_types: List<Oid>,
        planning: Planning,
    ) -> Result<Prepared> {
        let sql = CString::new(sql.concat()).map_err(|_| failed(NO_CODE))?;
        let sql_start = sql.as_ptr();
        let num_parameters = parameter_types.len() as i32;
        let types_start = parameter_types.as_mut_ptr();
        let options = pg_sys::CURSOR_OPT_GENERIC_PLAN as i32;
        // SAFETY: the call is connected. There are as many types as the number says, and both
        // allocations exist until the end of this function.
        let plan = unsafe {
            restoring_memory(|| {
                guard(|| raw::SPI_prepare_cursor(sql_start, num_parameters, types_start, options))
            })
        };
        if plan.is_null() {
            // SAFETY: this reads a variable of the session.
            return Err(failed(unsafe { pg_sys::SPI_result }));
        }
        Ok(Prepared { plan, parameter_types, planning: Cell::new(planning) })
    }

    /// Executes the statement, while [`connected`], with these values, and calls `each` with every
    /// row that it returns. Returns how many rows it returned or changed.
    ///
    /// Panics if the values have other types than the parameters, if another call than this one
    /// made the connection, and for [`Sees::CallingQuery`] outside of a query. Raises the errors of
    /// the statement; fails if `each` fails.
    pub fn execute(
        &self,
        values: &[Parameter<'_>],
        sees: Sees,
        mut each: impl FnMut(&ResultRow) -> Result<()>,
    ) -> Result<u64> {
        let types = values.iter().map(Parameter::sql_type);
        assert!(types.eq(self.parameter_types.iter().copied()), "a value for each parameter");
        assert_eq!(CONNECTED_CALL.get(), current_call(), "the call must make its own connection");
        assert!(sees != Sees::CallingQuery || snapshot().is_some(), "a query has a snapshot");

        let settings = self.planning.replace(Planning::ByCost).settings();
        // SAFETY: there are as many values as the plan has parameters, and of their types.
        check(with_settings(settings, || unsafe { self.execute_plan(values, sees) }))?;

        // SAFETY: the interface sets these variables for the connection of this call. Statements
        // that `each` executes have their own connection, and so their own results.
        unsafe {
            let table = pg_sys::SPI_tuptable;
            let num_rows = pg_sys::SPI_processed as usize;
            if table.is_null() {
                return Ok(num_rows as u64);
            }
            for i in 0..num_rows.min((*table).numvals as usize) {
                check_for_interrupts();
                let tuple = *(*table).vals.add(i);
                let descriptor = (*table).tupdesc;
                each(&ResultRow { tuple, descriptor })?;
            }
            pg_sys::SPI_freetuptable(table);
            Ok(num_rows as u64)
        }
    }

    /// Executes the plan with these values, and returns the code of PostgreSQL's interface for
    /// statements (SPI), which is negative for a failure. The rows of the result are then in the
    /// interface's variables. `sees` says what the statement sees of the database. Raises the
    /// errors of the statement.
    ///
    /// # Safety
    /// There must be as many values as the plan has parameters, and of their types.
    unsafe fn execute_plan(&self, values: &[Parameter<'_>], sees: Sees) -> i32 {
        // SAFETY: the caller promises values of the statement's parameter types. The snapshot is
        // set back at the end; after an error PostgreSQL does that. Only the values are allocated
        // in the scratch memory.
        unsafe {
            if sees == Sees::Catalogs {
                pg_sys::PushActiveSnapshot(pg_sys::GetCatalogSnapshot(Oid::INVALID));
            }
            // Arrays among the values take memory, which is freed when the statement has ended.
            let code = in_scratch(|| {
                let mut datums: List<pg_sys::Datum> = values.iter().map(Parameter::datum).collect();
                self.execute_with_datums(&mut datums, sees)
            });
            if sees == Sees::Catalogs {
                pg_sys::PopActiveSnapshot();
            }
            code
        }
    }

    /// Executes the plan as [`Prepared::execute_plan`] does, with values that are datums already.
    /// The result is in the memory of the connection; the current memory context stays as it is.
    ///
    /// # Safety
    /// As for `execute_plan`.
    unsafe fn execute_with_datums(&self, datums: &mut [pg_sys::Datum], sees: Sees) -> i32 {
        let plan = self.plan;
        let datums_start = datums.as_mut_ptr();
        let no_nulls = std::ptr::null();
        let is_read_only = sees != Sees::Now;
        let no_limit = 0;
        // SAFETY: promised by the caller.
        unsafe {
            restoring_memory(|| {
                guard(|| {
                    raw::SPI_execute_plan(plan, datums_start, no_nulls, is_read_only, no_limit)
                })
            })
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: the plan is kept, or its connection hasn't ended yet. It is freed once.
            unsafe { pg_sys::SPI_freeplan(self.plan) };
        }
    }
}

/// A row of a statement's result, which exists while it is visited. Columns are numbered from 1.
pub struct ResultRow {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

impl ResultRow {
    /// Returns the value of a column of type `sql_type`, which must be passed by value; `None` for
    /// NULL.
    ///
    /// Fails with 40001 if the column has another type now: the statement was planned again, after
    /// what it names was altered.
    pub fn number(&self, column: i32, sql_type: Oid) -> Result<Option<i64>> {
        let datum = self.column(column, sql_type, |attribute| attribute.attbyval)?;
        Ok(datum.map(|datum| datum.value() as i64))
    }

    /// Returns the value of a column of type `sql_type`, which must be of variable length; `None`
    /// for NULL. Fails as [`ResultRow::number`] does.
    pub fn value(&self, column: i32, sql_type: Oid) -> Result<Option<Value<'_>>> {
        let datum = self.column(column, sql_type, |attribute| attribute.attlen == -1)?;
        // SAFETY: the value is of variable length, and exists as long as the row.
        Ok(datum.map(|datum| unsafe { Value::detoast(datum) }))
    }

    /// Returns the datum of the column with this number, counted from 1; `None` for NULL.
    /// `is_stored_so` says whether a column is stored as the caller will read it: by value, or with
    /// a variable length. Panics if this one isn't. Fails with 40001 if there is no such column, or
    /// if its type isn't `sql_type` any more.
    fn column(
        &self,
        number: i32,
        sql_type: Oid,
        is_stored_so: impl FnOnce(&pg_sys::FormData_pg_attribute) -> bool,
    ) -> Result<Option<pg_sys::Datum>> {
        // SAFETY: the row exists, and has this descriptor. A column is read only if there is one
        // with its number.
        unsafe {
            if !(1..=(*self.descriptor).natts).contains(&number) {
                return Err(altered(number, sql_type));
            }
            let declared = attribute(self.descriptor, number as usize - 1);
            if declared.atttypid != sql_type {
                return Err(altered(number, sql_type));
            }
            assert!(is_stored_so(declared), "column {number} is read in another way than stored");

            let mut is_null = false;
            let datum = pg_sys::SPI_getbinval(self.tuple, self.descriptor, number, &mut is_null);
            Ok(if is_null { None } else { Some(datum) })
        }
    }
}

/// Fails with XX000 if a function of the interface has returned a code for a failure.
fn check(code: i32) -> Result<()> {
    if code < 0 { Err(failed(code)) } else { Ok(()) }
}

/// Stands in messages where PostgreSQL has no error code of a statement.
const NO_CODE: i32 = 0;

#[cold]
fn failed(code: i32) -> Error {
    Error::new(SqlState::ERRCODE_INTERNAL_ERROR, format!("statement could not be executed: {code}"))
}

#[cold]
fn altered(number: i32, sql_type: Oid) -> Error {
    let type_name = catalog::display_name(sql_type);
    Error::new(
        SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE,
        "could not serialize access due to concurrent change",
    )
    .detail(format!("Column {number} of a statement's result is no longer of type {type_name}."))
    .hint("Retry the transaction.")
}
