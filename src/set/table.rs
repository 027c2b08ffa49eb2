//! Opening a set: which table is one, what it was made for, and the statements that read and change its rows.
//!
//! A session remembers a set until PostgreSQL reports a change of its table. The statements name the table, and
//! PostgreSQL resolves the name when it plans them; the set is given by its identifier. So that both are one table, the
//! name is read before and after the table is locked, and again after each statement: a table that was renamed while
//! the call waited for it, as when two tables are swapped, is an error that a retry resolves.

use crate::element::ElementType;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::{Call, Element};
use crate::pg::catalog::definition::{self, CheckArgument, CheckCall};
use crate::pg::catalog::invalidation;
use crate::pg::catalog::owner;
use crate::pg::catalog::{self, TableColumn};
use crate::pg::sql::{self, Prepared, ResultRow, Sees};
use crate::pg::storage::relation::{Opened, Relation, name_of};
use crate::pg::value::varlena::{PgBuffer, Value};
use crate::pg::value::{array, encoding};
use pg_bloom_core::{Buffer, memory};
use pgrx::pg_sys::{self, Datum, Oid};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// The most sets that a session remembers; then all are forgotten.
const MOST_REMEMBERED: usize = 256;

/// What a set was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The type of its elements, as given then.
    pub element: Oid,
    /// Rows.
    pub shards: u32,
    /// Distinct elements.
    pub capacity: u64,
    /// The rate at that capacity.
    pub fpr: f64,
}

/// A set, and the schema of the extension.
pub struct Set {
    oid: Oid,
    known: Rc<Known>,
}

/// What a set is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Ask,
    /// To add to it. The table has the lock of UPDATE from the start: whoever read an index first, and then waited for
    /// REINDEX to release the table, would have what that waits for.
    Add,
}

/// What a session remembers of a set.
struct Known {
    /// The names of the table and of the extension's schema that the statements have.
    names: Names,
    parameters: Parameters,
    /// The type `bloom[]`.
    filters: Oid,
    /// Whether what an UPDATE returns may not be what is in the table afterwards.
    is_changed_after: bool,
    read: Prepared,
    /// To lock rows, and to change them.
    write: OnceCell<(Prepared, Prepared)>,
    /// Whether nobody changed the table since.
    is_current: Cell<bool>,
    watch: Rc<Watch>,
}

/// What a session has said, and looked at, of how full a set is.
#[derive(Default)]
pub struct Watch {
    /// Whether it has warned.
    pub warned: Cell<bool>,
    /// Elements that it may add before it looks again at rows that these are not in; none if it hasn't yet, or if the
    /// set was overfull.
    pub until_sample: Cell<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Names {
    table: Vec<u8>,
    extension: Vec<u8>,
}

thread_local! {
    /// The sets that this session has used. Not dropped when the process ends: PostgreSQL is gone by then.
    static KNOWN: ManuallyDrop<RefCell<HashMap<u32, Rc<Known>>>> = ManuallyDrop::new(RefCell::default());
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// What a call site with elements remembers.
pub struct Site {
    /// The type of the elements.
    pub element: ElementType,
    /// The type of the array that they are in, and of its elements.
    pub array: (Oid, Oid),
}

impl Site {
    /// A call whose argument 1 is one element.
    ///
    /// # Errors
    /// 0A000 for a type that can't be an element.
    pub fn of_element(call: &Call) -> Result<&mut Site> {
        let site = call.remembered(|| {
            let element = ElementType::of_argument(call, 1)?;
            Ok(Site { element, array: (Oid::INVALID, Oid::INVALID) })
        })?;
        site.element.refresh(call)?;
        Ok(site)
    }

    /// A call whose argument 1 is an array of elements.
    ///
    /// # Errors
    /// As [`Site::of_element`].
    pub fn of_array(call: &Call) -> Result<&mut Site> {
        let site = call.remembered(|| {
            let (element, oid) = ElementType::of_array(call, 1)?;
            let array = catalog::base_type(call.argument_type(1)?);
            Ok(Site { element, array: (array, oid) })
        })?;
        site.element.refresh(call)?;
        Ok(site)
    }
}

impl Set {
    /// The set that is the table `oid`.
    ///
    /// # Errors
    /// 42P01 if there is no such table, 42501 without the right to use its schema, 42809 for a table that is no set,
    /// 40001 for one that was renamed while the call waited for it.
    pub fn open(call: &Call, oid: Oid, purpose: Purpose) -> Result<Set> {
        let lock = match purpose {
            Purpose::Ask => pg_sys::AccessShareLock,
            Purpose::Add => pg_sys::RowExclusiveLock,
        };
        let extension = catalog::namespace_of_function(call.function()?);
        let name = sql::relation(oid);
        let Some(table) = Opened::if_there(oid, lock as pg_sys::LOCKMODE) else {
            let message = format!("relation with OID {} does not exist", oid.to_u32());
            return Err(Error::new(SqlState::ERRCODE_UNDEFINED_TABLE, message));
        };
        owner::require_usage_of_schema(oid);
        let names = Names { table: sql::relation(oid).unwrap_or_default(), extension: sql::namespace(extension) };
        if name.is_some_and(|before| before != names.table) {
            return Err(renamed(&names));
        }
        let known = KNOWN.with(|all| all.borrow().get(&oid.to_u32()).cloned());
        match known {
            Some(known) if known.is_current.get() && known.names == names => Ok(Set { oid, known }),
            before => Ok(Set { oid, known: learn(call, table.relation(), names, before)? }),
        }
    }

    /// What it was made for.
    pub fn parameters(&self) -> Parameters {
        self.known.parameters
    }

    /// What the session has said of it.
    pub fn watch(&self) -> &Watch {
        &self.known.watch
    }

    /// Calls `each` with the filter of each of these shards, which ascend, in any order, while connected.
    ///
    /// # Errors
    /// 55000 for a row that is not there; those of reading and of `each`.
    pub fn read(&self, shards: &[u32], sees: Sees, each: impl FnMut(usize, &Value<'_>) -> Result<()>) -> Result<()> {
        self.rows(&self.known.read, &[shard_array(shards)], shards, sees, each)
    }

    /// Locks the rows of these shards, which ascend, in their order until the transaction ends, and then calls `each`
    /// with the newest filter of each, while connected.
    ///
    /// # Errors
    /// As [`Set::read`]; 40001 under REPEATABLE READ for a row that changed since the transaction began.
    pub fn lock(&self, shards: &[u32], each: impl FnMut(usize, &Value<'_>) -> Result<()>) -> Result<()> {
        let (lock, _) = self.known.write()?;
        self.rows(lock, &[shard_array(shards)], shards, Sees::Now, each)
    }

    /// Changes the filters of these shards, which ascend, while connected.
    ///
    /// # Errors
    /// 55000 and 27000 if a trigger, a rule or a policy left out a row or stored something else; those of UPDATE.
    pub fn update(&self, shards: &[u32], filters: &[PgBuffer]) -> Result<()> {
        let (_, update) = self.known.write()?;
        let mut datums = memory::list(filters.len());
        filters.iter().for_each(|filter| memory::push(&mut datums, Element { datum: filter.datum() }));
        let bloom = catalog::element_type(self.known.filters).unwrap_or(Oid::INVALID);
        let values = [shard_array(shards), array::array_of(self.known.filters, bloom, datums)];
        let mut stored = 0;
        update.execute(&values, Sees::Now, |row| {
            let (shard, filter) = shard_and_filter(row)?;
            let place = shards.binary_search(&shard).map_err(|_| self.changed_otherwise())?;
            if filter.bytes() != filters[place].bytes() {
                return Err(self.changed_otherwise());
            }
            stored += 1;
            Ok(())
        })?;
        self.check_name()?;
        if stored < shards.len() {
            return Err(self.changed_otherwise());
        }
        if !self.known.is_changed_after {
            return Ok(());
        }
        self.read(shards, Sees::Now, |place, filter| {
            if filter.bytes() == filters[place].bytes() { Ok(()) } else { Err(self.changed_otherwise()) }
        })
    }

    /// Executes a statement that returns the rows of these shards, each once.
    fn rows(
        &self,
        statement: &Prepared,
        values: &[Datum],
        shards: &[u32],
        sees: Sees,
        mut each: impl FnMut(usize, &Value<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut missing: Vec<bool> = memory::collect(shards.iter().map(|_| true));
        statement.execute(values, sees, |row| {
            let (shard, filter) = shard_and_filter(row)?;
            match shards.binary_search(&shard) {
                Ok(place) if std::mem::take(&mut missing[place]) => each(place, &filter)?,
                _ => return Err(self.ambiguous(shard)),
            }
            filter.free();
            Ok(())
        })?;
        self.check_name()?;
        match missing.iter().position(|&is_missing| is_missing) {
            Some(place) => Err(self.missing(shards[place])),
            None => Ok(()),
        }
    }

    /// Whether two batches that change so many of its rows each have some in common, in 98 of 100 cases or more.
    pub fn is_shared_by_two_of(&self, rows: u64) -> bool {
        rows * rows > 4 * u64::from(self.known.parameters.shards)
    }

    /// Waits for other transactions that called this for the same set, and makes those that call it later wait for the
    /// end of this one. It is in the way of nothing else: not of VACUUM, nor of other statements.
    pub fn take_turn(&self) {
        let mode = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: within a transaction. PostgreSQL itself locks tables as relations, never as objects.
        unsafe { pg_sys::LockDatabaseObject(pg_sys::RelationRelationId, self.oid, 0, mode) };
    }

    /// Bytes on disk, with its indexes, and of all partitions.
    ///
    /// # Errors
    /// Those of the query.
    pub fn bytes(&self) -> Result<i64> {
        const SIZE: &[u8] = b"SELECT COALESCE((SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(relid)) \
            FROM pg_catalog.pg_partition_tree($1)), pg_catalog.pg_total_relation_size($1))::pg_catalog.int8";
        let mut bytes = 0;
        let size = Prepared::new(&[SIZE], &[pg_sys::REGCLASSOID])?;
        sql::connected(|| {
            size.execute(&[Datum::from(self.oid)], Sees::CallingQuery, |row| {
                bytes = row.column(1).map_or(0, |datum| datum.value() as i64);
                Ok(())
            })
        })?;
        Ok(bytes)
    }

    /// The name of the table, quoted as messages have it.
    pub fn quoted_name(&self) -> String {
        format!("\"{}\"", name_of(self.oid))
    }

    /// Whether the statements were still about the table that the caller means.
    fn check_name(&self) -> Result<()> {
        if sql::relation(self.oid).is_some_and(|name| name == self.known.names.table) {
            return Ok(());
        }
        Err(renamed(&self.known.names))
    }

    #[cold]
    fn missing(&self, shard: u32) -> Error {
        Error::new(
            SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("filter set {} has no row for shard {shard}", self.quoted_name()),
        )
        .detail(format!(
            "All of its {} rows must be visible. If the row was deleted, the elements in it are lost.",
            self.known.parameters.shards
        ))
        .hint(
            "Retry if its rows were replaced in the meantime. Otherwise restore the row from a backup, make a new set, \
             or change the policy that hides the row. An unlogged set loses its rows in a crash.",
        )
    }

    #[cold]
    fn ambiguous(&self, shard: u32) -> Error {
        Error::new(
            SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("filter set {} returned a wrong row for shard {shard}", self.quoted_name()),
        )
        .detail("Each shard must have exactly one row, also in the tables that inherit from the set.")
        .hint("Remove the other rows, or tables that inherit from the set.")
    }

    #[cold]
    fn changed_otherwise(&self) -> Error {
        Error::new(
            SqlState::ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION,
            format!("filters of filter set {} were not stored as they were written", self.quoted_name()),
        )
        .detail("A trigger, a rule or a row-level security policy of the table skipped a row or changed it.")
        .hint("Let it leave the columns \"shard\" and \"filter\" as they are.")
    }
}

impl Known {
    /// The statements that lock rows and change them.
    fn write(&self) -> Result<&(Prepared, Prepared)> {
        if let Some(statements) = self.write.get() {
            return Ok(statements);
        }
        let table = self.names.table.as_slice();
        let lock = Prepared::new(
            &[
                b"SELECT s.shard, s.filter FROM ",
                table,
                b" AS s WHERE s.shard OPERATOR(pg_catalog.=) ANY ($1) ",
                b"ORDER BY s.shard FOR NO KEY UPDATE",
            ],
            &[pg_sys::INT4ARRAYOID],
        )?;
        let update = Prepared::new(
            &[
                b"UPDATE ",
                table,
                b" AS s SET filter = n.filter ",
                b"FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (shard, filter) ",
                b"WHERE s.shard OPERATOR(pg_catalog.=) n.shard RETURNING s.shard, s.filter",
            ],
            &[pg_sys::INT4ARRAYOID, self.filters],
        )?;
        Ok(self.write.get_or_init(|| (lock, update)))
    }
}

/// Finds out what a set was made for, and prepares to read it.
fn learn(call: &Call, table: Relation, names: Names, before: Option<Rc<Known>>) -> Result<Rc<Known>> {
    if !IS_WATCHED.replace(true) {
        invalidation::watch_relations(forget);
    }
    let bloom = catalog::type_beside(call.function()?, c"bloom");
    if bloom == Oid::INVALID {
        let message = "type \"bloom\" does not exist in the schema of the extension";
        return Err(Error::new(SqlState::ERRCODE_UNDEFINED_OBJECT, message)
            .hint("If it was renamed, name it bloom again: the functions of sets find it by its name."));
    }
    let (shard, filter) = check_columns(table, definition::columns(table), bloom)?;
    let parameters = definition::check_calls(table)
        .iter()
        .filter(|check| is_check(call, check))
        .find_map(|check| parameters(&check.arguments, &shard, &filter))
        .ok_or_else(|| no_set(table, "It has no constraint that calls bloom_set_check for its columns."))?;
    if !definition::is_primary_key(table, &shard) {
        return Err(no_set(table, "Its column \"shard\" is not its primary key, checked at once."));
    }
    let watch = before.filter(|known| known.parameters == parameters).map(|known| known.watch.clone());
    let read = Prepared::new(
        &[b"SELECT s.shard, s.filter FROM ", &names.table, b" AS s WHERE s.shard OPERATOR(pg_catalog.=) ANY ($1)"],
        &[pg_sys::INT4ARRAYOID],
    )?;
    let known = Rc::new(Known {
        names,
        parameters,
        filters: catalog::array_type(bloom),
        is_changed_after: definition::is_changed_after_update(table),
        read,
        write: OnceCell::new(),
        is_current: Cell::new(true),
        watch: watch.unwrap_or_default(),
    });
    let oid = table.oid().to_u32();
    // What is forgotten is dropped when nothing is borrowed any more.
    let _forgotten = KNOWN.with(|all| {
        let mut all = all.borrow_mut();
        let most = if all.len() >= MOST_REMEMBERED { std::mem::take(&mut *all) } else { HashMap::new() };
        (most, all.insert(oid, known.clone()))
    });
    Ok(known)
}

/// PostgreSQL reports that a table changed, or with an invalid identifier that any may have.
fn forget(oid: Oid) {
    KNOWN.with(|all| {
        let all = all.borrow();
        if oid == Oid::INVALID {
            all.values().for_each(|known| known.is_current.set(false));
        } else if let Some(known) = all.get(&oid.to_u32()) {
            known.is_current.set(false);
        }
    });
}

/// Shards as an array of integers.
fn shard_array(shards: &[u32]) -> Datum {
    let shards = memory::collect(shards.iter().map(|&shard| Element { datum: Datum::from(shard as i32) }));
    array::array_of(pg_sys::INT4ARRAYOID, pg_sys::INT4OID, shards)
}

/// The columns of a row that the statements return.
fn shard_and_filter(row: &ResultRow) -> Result<(u32, Value<'_>)> {
    match (row.column(1), row.column(2)) {
        // SAFETY: the second column is of type bloom, which is of variable length.
        (Some(shard), Some(filter)) => Ok((shard.value() as u32, unsafe { Value::detoast(filter) })),
        _ => Err(Error::new(SqlState::ERRCODE_NOT_NULL_VIOLATION, "row of a filter set has a null value")),
    }
}

/// The columns `shard` and `filter`, if the table has these two and no other.
fn check_columns(table: Relation, columns: Vec<TableColumn>, bloom: Oid) -> Result<(TableColumn, TableColumn)> {
    let wanted = [("shard", pg_sys::INT4OID), ("filter", bloom)];
    for (name, oid) in wanted {
        let is_there = |column: &TableColumn| column.name == name && column.oid == oid && column.not_null;
        if !columns.iter().any(is_there) {
            let type_name = catalog::display_name(oid);
            return Err(no_set(table, format!("It has no column \"{name}\" of type {type_name} that is NOT NULL.")));
        }
    }
    if let Some(other) = columns.iter().find(|column| wanted.iter().all(|(name, _)| column.name != *name)) {
        return Err(no_set(table, format!("It has another column, \"{}\".", other.name)));
    }
    let mut columns = columns.into_iter();
    match (columns.next(), columns.next()) {
        (Some(a), Some(b)) if a.name == wanted[0].0 => Ok((a, b)),
        (Some(a), Some(b)) => Ok((b, a)),
        _ => Err(no_set(table, "It has too few columns.")),
    }
}

/// Whether a constraint calls the function of this extension.
fn is_check(call: &Call, check: &CheckCall) -> bool {
    call.function().is_ok_and(|own| catalog::is_beside(check.function, own, c"bloom_set_check"))
}

/// What the arguments of `bloom_set_check` say, if they are what `bloom_set_create` writes.
fn parameters(arguments: &[CheckArgument], shard: &TableColumn, filter: &TableColumn) -> Option<Parameters> {
    use CheckArgument::{Column, Constant};
    let [Column(a), Column(b), Constant(element), Constant(shards), Constant(capacity), Constant(fpr)] = arguments
    else {
        return None;
    };
    let is_of_columns = *a == shard.number && *b == filter.number;
    let shards = u32::try_from(shards.value() as i32).ok().filter(|&shards| shards > 0 && is_of_columns)?;
    let capacity = u64::try_from(capacity.value() as i64).ok().filter(|&capacity| capacity > 0)?;
    let element = Oid::from(element.value() as u32);
    Some(Parameters { element, shards, capacity, fpr: f64::from_bits(fpr.value() as u64) })
}

#[cold]
fn no_set(table: Relation, why: impl Into<String>) -> Error {
    let message = format!("table \"{}\" is not a filter set", table.name());
    Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message).detail(why).hint("Make filter sets with bloom_set_create.")
}

#[cold]
fn renamed(names: &Names) -> Error {
    let message = "could not serialize access due to concurrent rename";
    Error::new(SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE, message)
        .detail(format!("Filter set {} was renamed, moved or replaced in the meantime.", encoding::utf8(&names.table)))
        .hint("Retry the transaction.")
}
