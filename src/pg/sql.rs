//! Statements of SQL, executed by PostgreSQL's server programming interface with the rights of the
//! caller.
//!
//! The caller's search_path applies, so all that they name must be qualified, as in
//! `a OPERATOR(pg_catalog.=) b`.
//!
//! What PostgreSQL allocates for statements is freed when the connection ends; memory of the caller
//! is current all the time. After an error PostgreSQL ends the connection itself, with the
//! transaction or the subtransaction.

use super::call::Element;
use super::call::error::{Error, Result, SqlState, raise};
use super::call::guard::{
    current_call, finally, guard, is_unwinding, raw, require_session, with_end,
};
use super::catalog::{self, lookup::valid};
use super::memory::{Context, in_context, in_scratch};
use super::value::array::array_of;
use super::value::varlena::{PgBuffer, Value};
use super::version::attribute;
use pg_bloom_core::memory;
use pgrx::pg_sys::{self, Oid};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `work` while connected to the interface. Errors: those of `work`; XX000 if there can't be a
/// connection.
pub fn connected<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: within a transaction, since a statement is running.
    check(unsafe { in_own_memory(|| pg_sys::SPI_connect()) })?;
    let before = CONNECTED.replace(current_call());
    // PostgreSQL ends the connection after an error.
    let result = finally(work, || CONNECTED.set(before));
    // SAFETY: connected above. After an error that was caught it ends another function's
    // connection, in its memory.
    check(unsafe { in_own_memory(|| pg_sys::SPI_finish()) })?;
    result
}

thread_local! {
    /// The call whose connection is the last one. A call that another's statement makes has no
    /// results without its own.
    static CONNECTED: Cell<u64> = const { Cell::new(0) };
}

/// Runs a function of the interface, which changes the current memory context, and changes that
/// back.
///
/// # Safety
/// As `guard`.
unsafe fn in_own_memory<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: promised by the caller.
    unsafe { in_context(Context::new(pg_sys::CurrentMemoryContext), work) }
}

/// A value for a parameter of a statement, which is not NULL.
pub enum Parameter<'a> {
    Oid(Oid),
    I64(i64),
    I64s(&'a [u64]),
    Byteas(&'a [PgBuffer]),
}

impl Parameter<'_> {
    fn type_of(&self) -> Oid {
        match self {
            Parameter::Oid(_) => pg_sys::OIDOID,
            Parameter::I64(_) => pg_sys::INT8OID,
            Parameter::I64s(_) => pg_sys::INT8ARRAYOID,
            Parameter::Byteas(_) => pg_sys::BYTEAARRAYOID,
        }
    }

    fn datum(&self) -> pg_sys::Datum {
        let array = |datums: &mut dyn Iterator<Item = pg_sys::Datum>| {
            let elements = memory::collect(datums.map(|datum| Element { datum }));
            // SAFETY: they are of the type that the array's elements have.
            unsafe { array_of(self.type_of(), elements) }
        };
        match *self {
            Parameter::Oid(value) => value.into(),
            Parameter::I64(value) => value.into(),
            Parameter::I64s(values) => {
                array(&mut values.iter().map(|&value| (value as i64).into()))
            }
            Parameter::Byteas(values) => array(&mut values.iter().map(PgBuffer::datum)),
        }
    }
}

/// Executes a statement once: as [`Prepared::new`] and [`Prepared::execute`], with a plan that ends
/// with it.
pub fn execute(
    sql: &[&[u8]],
    values: &[Parameter<'_>],
    sees: Sees,
    each: impl FnMut(&ResultRow) -> Result<()>,
) -> Result<u64> {
    connected(|| {
        Prepared::once(sql, values.iter().map(Parameter::type_of).collect(), false)?
            .execute(values, sees, each)
    })
}

/// A statement with one plan for all values of its parameters; PostgreSQL plans it again when what
/// it names changes.
pub struct Prepared {
    plan: pg_sys::SPIPlanPtr,
    parameters: Vec<Oid>,
    /// Whether it is still to be planned, with an index for what it looks up.
    wants_index: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// That of the query that calls the function. The statement must only read.
    CallingQuery,
    /// What the transaction did, and all that is committed now; under REPEATABLE READ, what its
    /// snapshot sees.
    Now,
    /// What is in the catalogs now, at any level of isolation, and in parallel plans too. The
    /// statement must only read.
    Catalogs,
}

pub struct ResultRow {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

impl ResultRow {
    /// Column `number`, from 1, which is of this type, whose values are passed by value; `None` for
    /// NULL. Errors: 40001 if it is of another type: a statement is planned again when what it
    /// names was altered.
    pub fn number(&self, number: i32, of: Oid) -> Result<Option<i64>> {
        let datum = self.column(number, of, |column| column.attbyval)?;
        Ok(datum.map(|datum| datum.value() as i64))
    }

    /// The same for a type whose values are of variable length.
    pub fn value(&self, number: i32, of: Oid) -> Result<Option<Value<'_>>> {
        let datum = self.column(number, of, |column| column.attlen == -1)?;
        // SAFETY: a value of variable length, which is there as long as the row.
        Ok(datum.map(|datum| unsafe { Value::detoast(datum) }))
    }

    fn column(
        &self,
        number: i32,
        of: Oid,
        is_so: impl FnOnce(&pg_sys::FormData_pg_attribute) -> bool,
    ) -> Result<Option<pg_sys::Datum>> {
        let mut is_null = false;
        // SAFETY: the row is of the last result, which has this descriptor; a column is looked at
        // if there are so many.
        unsafe {
            let is_there = (1..=(*self.descriptor).natts).contains(&number);
            let column = is_there.then(|| attribute(self.descriptor, number as usize - 1));
            let column = column
                .filter(|column| column.atttypid == of)
                .ok_or_else(|| altered(number, of))?;
            assert!(is_so(column), "a column of the sort that is asked for");
            let datum = pg_sys::SPI_getbinval(self.tuple, self.descriptor, number, &mut is_null);
            Ok((!is_null).then_some(datum))
        }
    }
}

impl Prepared {
    /// Prepares a statement, given in parts in the encoding of the database, with parameters of
    /// these types. If it `wants_index`, it is planned with one, however small the table is then:
    /// the plan stays until the table or its statistics change. Errors: those of parsing it; XX000
    /// if it can't be executed from a function.
    pub fn new(sql: &[&[u8]], parameters: Vec<Oid>, wants_index: bool) -> Result<Prepared> {
        connected(|| {
            let prepared = Prepared::once(sql, parameters, wants_index)?;
            // SAFETY: prepared in this connection.
            check(unsafe { pg_sys::SPI_keepplan(prepared.plan) })?;
            Ok(prepared)
        })
    }

    /// The same while [`connected`], until the connection ends: after an error PostgreSQL frees the
    /// plan with that.
    fn once(sql: &[&[u8]], mut parameters: Vec<Oid>, wants_index: bool) -> Result<Prepared> {
        let sql = CString::new(sql.concat()).map_err(|_| failed(0))?;
        // SAFETY: connected; as many types as are given.
        unsafe {
            let (sql, count, types) =
                (sql.as_ptr(), parameters.len() as i32, parameters.as_mut_ptr());
            let options = pg_sys::CURSOR_OPT_GENERIC_PLAN as i32;
            let plan =
                in_own_memory(|| guard(|| raw::SPI_prepare_cursor(sql, count, types, options)));
            if plan.is_null() {
                return Err(failed(pg_sys::SPI_result));
            }
            Ok(Prepared { plan, parameters, wants_index: Cell::new(wants_index) })
        }
    }

    /// Executes it while [`connected`], with these values, calls `each` with every row that it
    /// returns, and returns how many rows it returned or changed. Panics for values of other types
    /// than the parameters, if the call isn't connected itself, and outside of a query for the
    /// snapshot of that.
    pub fn execute(
        &self,
        values: &[Parameter<'_>],
        sees: Sees,
        mut each: impl FnMut(&ResultRow) -> Result<()>,
    ) -> Result<u64> {
        let types = values.iter().map(Parameter::type_of);
        assert!(types.eq(self.parameters.iter().copied()), "a value for each parameter");
        assert_eq!(CONNECTED.get(), current_call(), "a connection of this call's");
        assert!(sees != Sees::CallingQuery || snapshot().is_some(), "a query has a snapshot");
        // SAFETY: as many values as the plan has parameters, of their types; nothing else is made in
        // that memory. The result is that of this call's own connection, and whatever `each`
        // executes has results of its own.
        unsafe {
            if sees == Sees::Catalogs {
                pg_sys::PushActiveSnapshot(pg_sys::GetCatalogSnapshot(Oid::INVALID));
            }
            let (is_read_only, nulls) = (sees != Sees::Now, std::ptr::null());
            let settings = self.wants_index.replace(false).then(only_nested_loops_over_indexes);
            let code = in_scratch(|| {
                let mut values: Vec<pg_sys::Datum> =
                    memory::collect(values.iter().map(Parameter::datum));
                let (plan, values) = (self.plan, values.as_mut_ptr());
                in_own_memory(|| {
                    guard(|| raw::SPI_execute_plan(plan, values, nulls, is_read_only, 0))
                })
            });
            if let Some(level) = settings {
                pg_sys::AtEOXact_GUC(true, level);
            }
            if sees == Sees::Catalogs {
                pg_sys::PopActiveSnapshot();
            }
            check(code)?;
            let (table, rows) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed as usize);
            if table.is_null() {
                return Ok(rows as u64);
            }
            for i in 0..rows.min((*table).numvals as usize) {
                super::call::interrupt::check_for_interrupts();
                each(&ResultRow { tuple: *(*table).vals.add(i), descriptor: (*table).tupdesc })?;
            }
            pg_sys::SPI_freetuptable(table);
            Ok(rows as u64)
        }
    }
}

/// Runs `work` with a new snapshot, which sees what the transaction did too: that of
/// [`Sees::CallingQuery`] in `work`.
pub fn with_new_snapshot<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: within a transaction, since a statement is running. After an error PostgreSQL drops
    // the snapshot itself.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        with_end(work, || pg_sys::PopActiveSnapshot())
    }
}

/// How a subtransaction ends, and with what result.
pub enum Ending<T> {
    /// Its changes and locks are kept.
    Commit(T),
    /// Its changes are undone, and its locks released.
    Rollback(T),
}

/// Runs `work` in a subtransaction, while connected, and returns its result. `work` says how the
/// subtransaction ends; after an error it is rolled back.
///
/// # Safety
/// Nothing that `work` opens may be there after it, or be used that its locks are for.
#[allow(
    clippy::disallowed_methods,
    reason = "whatever is caught is raised again"
)]
pub unsafe fn in_subtransaction<T>(work: impl FnOnce() -> Result<Ending<T>>) -> Result<T> {
    // SAFETY: PostgreSQL's own steps for a block with exceptions. The subtransaction must be ended
    // here after an error too: PostgreSQL would take one that nobody ends for a savepoint of the
    // client.
    unsafe {
        let (memory, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::CurrentMemoryContext = memory;
        let result = catch_unwind(AssertUnwindSafe(work));
        if matches!(result, Ok(Ok(Ending::Commit(_)))) {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::CurrentMemoryContext = memory;
        pg_sys::CurrentResourceOwner = owner;
        match result.unwrap_or_else(|error| resume_unwind(error))? {
            Ending::Commit(value) | Ending::Rollback(value) => Ok(value),
        }
    }
}

/// Raises an error in recovery, and in a transaction that may only read. `what` is done with the
/// name of a command.
pub fn require_writable(what: &CStr) {
    // SAFETY: both raise an error or return.
    unsafe {
        pg_sys::PreventCommandDuringRecovery(what.as_ptr());
        pg_sys::PreventCommandIfReadOnly(what.as_ptr());
    }
}

/// Whether the transaction sees all the time what was committed when it began.
pub fn has_one_snapshot() -> bool {
    require_session();
    // SAFETY: reads a variable of the session.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Whether the query's snapshot surely sees what a committed transaction wrote: all that were open
/// then began later.
pub fn snapshot_is_after(transaction: u32) -> bool {
    // SAFETY: valid.
    snapshot()
        .is_some_and(|snapshot| precedes(transaction, unsafe { (*snapshot).xmin }.into_inner()))
}

/// The snapshot of the query that calls the function, which is there as long, if there is one at
/// all.
pub(in crate::pg) fn snapshot() -> Option<pg_sys::Snapshot> {
    // SAFETY: reads a variable of the session.
    unsafe { pg_sys::ActiveSnapshotSet().then(|| pg_sys::GetActiveSnapshot()) }
}

/// Whether a transaction began before another; identifiers wrap around.
pub fn precedes(a: u32, b: u32) -> bool {
    // SAFETY: compares numbers.
    unsafe { pg_sys::TransactionIdPrecedes(a.into(), b.into()) }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if !is_unwinding() {
            // SAFETY: kept by `new`, or still connected; freed once.
            unsafe { pg_sys::SPI_freeplan(self.plan) };
        }
    }
}

/// Turns off what else a planner may choose, until the level that it returns is ended, by
/// PostgreSQL after an error.
fn only_nested_loops_over_indexes() -> i32 {
    // SAFETY: PostgreSQL's own steps for settings that hold for a while.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        // Where there is no index, a plan with a scan that is turned off seems so expensive that it
        // would be compiled.
        for name in [
            c"enable_seqscan",
            c"enable_bitmapscan",
            c"enable_hashjoin",
            c"enable_mergejoin",
            c"jit",
        ] {
            let (context, source) =
                (pg_sys::GucContext::PGC_USERSET, pg_sys::GucSource::PGC_S_SESSION);
            let action = pg_sys::GucAction::GUC_ACTION_SAVE;
            pg_sys::set_config_option(
                name.as_ptr(),
                c"off".as_ptr(),
                context,
                source,
                action,
                true,
                0,
                false,
            );
        }
        level
    }
}

fn check(code: i32) -> Result<()> {
    if code < 0 { Err(failed(code)) } else { Ok(()) }
}

#[cold]
fn failed(code: i32) -> Error {
    Error::new(SqlState::ERRCODE_INTERNAL_ERROR, format!("statement could not be executed: {code}"))
}

#[cold]
fn altered(number: i32, of: Oid) -> Error {
    let message = "could not serialize access due to concurrent change";
    let of = catalog::display_name(of);
    Error::new(SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE, message)
        .detail(format!("Column {number} of a statement's result is no longer of type {of}."))
        .hint("Retry the transaction.")
}

/// Whether Citus has the rows of a table in shards, so that the table itself is empty.
pub fn is_distributed_by_citus(table: Oid) -> Result<bool> {
    const ASK: &[u8] = b"SELECT true FROM pg_catalog.pg_dist_partition \
        WHERE logicalrelid OPERATOR(pg_catalog.=) $1::pg_catalog.oid";
    let pg_catalog = Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
    // SAFETY: reads the catalog; the name is a C string.
    if unsafe { pg_sys::get_relname_relid(c"pg_dist_partition".as_ptr(), pg_catalog) }
        == Oid::INVALID
    {
        return Ok(false);
    }
    Ok(execute(&[ASK], &[Parameter::Oid(table)], Sees::CallingQuery, |_| Ok(()))? > 0)
}

/// The tables that have rows compressed by TimescaleDB, which their indexes lack.
pub fn compressed_by_timescale() -> Result<Vec<Oid>> {
    const ASK: &[u8] = b"SELECT t.oid FROM timescaledb_information.chunks AS c \
        JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) c.chunk_schema \
        JOIN pg_catalog.pg_class AS t ON t.relname OPERATOR(pg_catalog.=) c.chunk_name \
            AND t.relnamespace OPERATOR(pg_catalog.=) n.oid WHERE c.is_compressed";
    // SAFETY: reads the catalogs; the names are C strings, or null.
    let is_there = unsafe {
        let schema = pg_sys::get_namespace_oid(c"timescaledb_information".as_ptr(), true);
        if schema == pg_sys::InvalidOid {
            return Ok(Vec::new());
        }
        let view = pg_sys::get_relname_relid(c"chunks".as_ptr(), schema);
        // Without the extension anybody may make such a schema.
        let extension = pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, view);
        let name = pg_sys::get_extension_name(extension);
        !name.is_null() && CStr::from_ptr(name) == c"timescaledb"
    };
    let mut compressed = Vec::new();
    if is_there {
        execute(&[ASK], &[], Sees::CallingQuery, |row| {
            let chunk = row
                .number(1, pg_sys::OIDOID)?
                .map_or(Oid::INVALID, |oid| Oid::from(oid as u32));
            memory::push(&mut compressed, chunk);
            Ok(())
        })?;
    }
    Ok(compressed)
}

pub struct NewName {
    schema: pg_sys::Oid,
    name: CString,
}

impl NewName {
    /// The name of a new table as somebody wrote it, with or without its schema: quoted as
    /// identifiers are. Errors: 42602 for an invalid name; 3F000 for a schema that is not there, or
    /// none to make it in.
    pub fn parse(name: &Value<'_>) -> NewName {
        // SAFETY: a value of variable length is read as a text; the range variable has a name that
        // ends in a zero byte.
        unsafe {
            let list = pg_sys::textToQualifiedNameList(name.pointer());
            let range = pg_sys::makeRangeVarFromNameList(list);
            if CStr::from_ptr((*range).relname).is_empty() {
                raise(Error::new(
                    SqlState::ERRCODE_INVALID_NAME,
                    "a table cannot have an empty name",
                ));
            }
            let schema = pg_sys::RangeVarGetCreationNamespace(range);
            NewName { schema, name: CStr::from_ptr((*range).relname).to_owned() }
        }
    }

    pub fn qualified(&self) -> Vec<u8> {
        qualified(self.schema, &self.name).unwrap_or_default()
    }

    /// Locks the name, against other calls of this function only, until the transaction ends. Then
    /// what a transaction that had locked it has made is seen.
    pub fn lock(&self, function: Oid) {
        let key = pg_bloom_core::hash::hash(&self.qualified()) as u16;
        // SAFETY: an object that is there. Part `key` of it is locked, which nothing else locks:
        // names with the same key wait for each other.
        unsafe {
            let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
            pg_sys::LockDatabaseObject(pg_sys::ProcedureRelationId, function, key, lock);
        }
    }

    /// Returns the relation that has this name now; `None` if none has.
    pub fn relation(&self) -> Option<pg_sys::Oid> {
        // SAFETY: reads the catalog.
        valid(unsafe { pg_sys::get_relname_relid(self.name.as_ptr(), self.schema) })
    }
}

/// The name that a relation has now, as SQL writes it, with its schema; `None` if there is no such
/// relation.
pub fn relation(oid: pg_sys::Oid) -> Option<Vec<u8>> {
    // SAFETY: reads the catalog; the name is null or a C string in the memory of this call.
    unsafe {
        let name = pg_sys::get_rel_name(oid);
        if name.is_null() {
            None
        } else {
            qualified(pg_sys::get_rel_namespace(oid), CStr::from_ptr(name))
        }
    }
}

/// A name in a schema as SQL writes it; `None` if there is no such schema.
pub fn qualified(schema: Oid, name: &CStr) -> Option<Vec<u8>> {
    // SAFETY: the schema is null or a C string, and so is the result, in the memory of this call.
    unsafe {
        let schema = pg_sys::get_namespace_name(schema);
        let written = || CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name.as_ptr()));
        (!schema.is_null()).then(|| written().to_bytes().to_vec())
    }
}
