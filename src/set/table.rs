//! Opening a set: checks that the table is one, reads what it was made for, and prepares its statements.
//!
//! A session remembers a set until PostgreSQL reports a change of its table. Functions are given the table's
//! identifier, but statements name the table, and PostgreSQL resolves the name when it plans them. To make sure that
//! both mean the same table, the name is read before and after the table is locked, and again after each statement. If
//! the table was renamed while the call waited for it, as when two tables are swapped, the call fails with an error
//! that a retry resolves.

use super::list::List;
use super::statements::{self, About};
use crate::element::ElementType;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::{Call, Element};
use crate::pg::catalog::definition::{self, CheckArgument, CheckCall};
use crate::pg::catalog::invalidation;
use crate::pg::catalog::owner;
use crate::pg::catalog::{self, TableColumn};
use crate::pg::sql::{self, Prepared, Sees, connected};
use crate::pg::storage::relation::{Opened, Relation, name_of};
use crate::pg::value::array;
use crate::pg::value::encoding;
use crate::pg::value::time::Interval;
use pg_bloom_core::filter::generations::{Plan, SLICES};
use pg_bloom_core::kind::Tag;
use pg_bloom_core::sizing::capacity_of;
use pg_bloom_core::{Kind, Layout, memory};
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
    /// Distinct elements; `None` for a set that grows.
    pub capacity: Option<u64>,
    /// The rate at that capacity.
    pub fpr: f64,
    /// For how long it remembers, if it forgets.
    pub keep: Option<Interval>,
    /// Whether elements that are added again are remembered from then on.
    pub renews: bool,
    /// The number of rows of a set without generations.
    pub shards: Option<u32>,
}

/// How the generations of a set are made.
pub struct Growth {
    /// Their capacities and rates.
    pub plan: Plan,
    /// The number of rows of a generation of each level.
    pub shards: Vec<u32>,
    /// The number of elements with which a generation of each level reaches its rate: slightly above its capacity,
    /// since rows have whole blocks.
    pub takes: Vec<f64>,
    /// How long a generation lasts, if the set forgets.
    pub slice: Option<Interval>,
}

/// A set that is open.
pub struct Set {
    /// Its table.
    pub oid: Oid,
    /// What the session remembers of it.
    pub known: Rc<Known>,
}

/// What a set is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Ask,
    /// To add to it. The table is locked as for UPDATE from the start: a session that first read an index, and then
    /// waited for REINDEX to release the table, would hold what REINDEX waits for.
    Add,
}

/// What a session remembers of a set.
pub struct Known {
    /// The names of the table and of the extension's schema in the statements.
    pub names: Names,
    /// What it was made for.
    pub parameters: Parameters,
    /// How its generations are made, if it has any.
    pub growth: Option<Growth>,
    /// The type `bloom`.
    pub bloom: Oid,
    /// Whether the table may have other values after an UPDATE than that returned.
    pub is_changed_after: bool,
    /// The statement that reads rows.
    pub read: Prepared,
    /// The statements that lock rows and change them.
    pub write: OnceCell<(Prepared, Prepared)>,
    /// The statements about generations.
    pub about: OnceCell<About>,
    /// The generations, as last read.
    pub list: RefCell<Option<Rc<List>>>,
    /// The last transaction that wrote the constraints that the session knows.
    pub written_by: Cell<Option<u32>>,
    /// Whether the table hasn't changed since.
    pub is_current: Cell<bool>,
    /// What the session has observed.
    pub watch: Rc<Watch>,
}

/// What a session has observed of how full a set is, and of its generations.
#[derive(Default)]
pub struct Watch {
    /// Whether it has warned that the set is overfull.
    pub warned: Cell<bool>,
    /// How many elements it may add before it samples other rows than those of its batches; 0 if it hasn't sampled yet,
    /// or if the set was overfull.
    pub until_sample: Cell<u64>,
    /// The generation that was found full.
    pub full: Cell<Option<i32>>,
    /// The last transaction that made a generation, and the first that it made.
    pub made: Cell<Option<(u32, i32)>>,
    /// Generations before this one are settled.
    pub settled: Cell<i32>,
    /// The newest generation when the session last dropped old ones.
    pub dropped: Cell<Option<i32>>,
}

/// The names in the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The table, qualified.
    pub table: Vec<u8>,
    extension: Vec<u8>,
}

thread_local! {
    /// The sets that this session has used. Not dropped when the process ends, since PostgreSQL is gone by then.
    static KNOWN: ManuallyDrop<RefCell<HashMap<u32, Rc<Known>>>> = ManuallyDrop::new(RefCell::default());
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// What a call site with elements remembers.
pub struct Site {
    /// The type of the elements.
    pub element: ElementType,
    /// The type of the array that has them, and of its elements.
    pub array: (Oid, Oid),
}

impl Site {
    /// The site of a call whose argument 1 is an element.
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

    /// The site of a call whose argument 1 is an array of elements.
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
    /// Opens the set whose table is `oid`.
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
        let set = match known {
            Some(known) if known.is_current.get() && known.names == names => Set { oid, known },
            before => Set { oid, known: learn(call, table.relation(), names, before)? },
        };
        // Adding takes a snapshot after the table was locked, unless the transaction has one.
        if purpose == Purpose::Ask || sql::has_one_snapshot() {
            set.check_snapshot_of_constraint()?;
        }
        Ok(set)
    }

    /// Raises 40001 if the snapshot of the query doesn't see the present constraint: rows of a set that was replaced
    /// since would be looked up by wrong numbers.
    fn check_snapshot_of_constraint(&self) -> Result<()> {
        const CONSTRAINTS: &[u8] = b"SELECT c.oid, c.xmin FROM pg_catalog.pg_constraint AS c \
            WHERE c.conrelid OPERATOR(pg_catalog.=) $1 AND c.contype OPERATOR(pg_catalog.=) 'c' ORDER BY c.oid";
        if self.known.written_by.get().is_some_and(sql::snapshot_is_after) {
            return Ok(());
        }
        let constraints = Prepared::new(&[CONSTRAINTS], &[pg_sys::OIDOID])?;
        let read = |sees| {
            let mut rows = Vec::new();
            constraints.execute(&[Datum::from(self.oid)], sees, |row| {
                rows.push((row.column(1).map(|oid| oid.value()), row.column(2).map_or(0, |by| by.value() as u32)));
                Ok(())
            })?;
            Ok::<_, Error>(rows)
        };
        let (seen, present) = connected(|| Ok((read(Sees::CallingQuery)?, read(Sees::Catalogs)?)))?;
        if seen == present {
            let writers = present.iter().map(|&(_, by)| by);
            self.known.written_by.set(writers.reduce(|a, b| if sql::precedes(a, b) { b } else { a }));
            return Ok(());
        }
        let name = self.quoted_name();
        Err(changed(format!("The constraints of filter set {name} were changed after the snapshot was taken.")))
    }

    /// What it was made for.
    pub fn parameters(&self) -> &Parameters {
        &self.known.parameters
    }

    /// What the session has observed.
    pub fn watch(&self) -> &Watch {
        &self.known.watch
    }

    /// The name of the table, quoted as messages have it.
    pub fn quoted_name(&self) -> String {
        format!("\"{}\"", name_of(self.oid))
    }

    /// Checks that the statements still name the table that the caller means.
    ///
    /// # Errors
    /// 40001 if it was renamed.
    pub fn check_name(&self) -> Result<()> {
        if sql::relation(self.oid).is_some_and(|name| name == self.known.names.table) {
            return Ok(());
        }
        Err(renamed(&self.known.names))
    }
}

/// Reads what a set was made for, and prepares the statement that reads it.
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
    let columns = check_columns(table, definition::columns(table), bloom)?;
    let checks = definition::check_calls(table);
    let checks = checks.iter().filter(|check| is_check(call, check));
    let mut all = checks.filter_map(|check| parameters(&check.arguments, &columns));
    let parameters =
        all.next().ok_or_else(|| no_set(table, "It has no constraint that calls bloom_set_check for its columns."))?;
    if all.any(|other| other != parameters) {
        return Err(no_set(table, "It has constraints that call bloom_set_check with different arguments."));
    }
    check_primary_key(table, &columns)?;
    let watch = before.filter(|known| known.parameters == parameters).map(|known| known.watch.clone());
    let known = Rc::new(Known {
        read: statements::read(&names.table, parameters.shards.is_none())?,
        names,
        parameters,
        growth: parameters.growth()?,
        bloom,
        is_changed_after: definition::is_changed_after_update(table),
        write: OnceCell::new(),
        about: OnceCell::new(),
        list: RefCell::new(parameters.shards.map(|shards| Rc::new(List::of_one(shards)))),
        written_by: Cell::new(None),
        is_current: Cell::new(true),
        watch: watch.unwrap_or_default(),
    });
    let oid = table.oid().to_u32();
    // Forgotten sets are dropped after the borrow ends.
    let _forgotten = KNOWN.with(|all| {
        let mut all = all.borrow_mut();
        let most = if all.len() >= MOST_REMEMBERED { std::mem::take(&mut *all) } else { HashMap::new() };
        (most, all.insert(oid, known.clone()))
    });
    Ok(known)
}

/// Called by PostgreSQL when a table changed, or with an invalid identifier when any table may have.
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

/// The columns of a set without generations: their names, types (an invalid one stands for `bloom`), and whether they
/// must be NOT NULL.
const COLUMNS: [(&str, Oid, bool); 2] = [("shard", pg_sys::INT4OID, true), ("filter", Oid::INVALID, true)];

/// The columns of a set with generations, likewise.
const COLUMNS_OF_GENERATIONS: [(&str, Oid, bool); 8] = [
    ("generation", pg_sys::INT4OID, true),
    ("shard", pg_sys::INT4OID, true),
    ("shards", pg_sys::INT4OID, true),
    ("changed", pg_sys::TIMESTAMPTZOID, true),
    ("filter", Oid::INVALID, true),
    ("since", pg_sys::TIMESTAMPTZOID, false),
    ("until", pg_sys::TIMESTAMPTZOID, false),
    ("oldest", pg_sys::INT4OID, false),
];

/// The columns of a set in the order of [`COLUMNS`], if the table has exactly these.
fn check_columns(table: Relation, columns: Vec<TableColumn>, bloom: Oid) -> Result<Vec<TableColumn>> {
    let has_generations = columns.iter().any(|column| column.name == "generation");
    let wanted = if has_generations { &COLUMNS_OF_GENERATIONS[..] } else { &COLUMNS[..] };
    let mut found = Vec::new();
    for &(name, oid, not_null) in wanted {
        let oid = if oid == Oid::INVALID { bloom } else { oid };
        let column = columns.iter().find(|c| c.name == name && c.oid == oid && (c.not_null || !not_null));
        let Some(column) = column else {
            let type_name = catalog::display_name(oid);
            let constraint = if not_null { " that is NOT NULL" } else { "" };
            return Err(no_set(table, format!("It has no column \"{name}\" of type {type_name}{constraint}.")));
        };
        found.push(column.clone());
    }
    if let Some(other) = columns.iter().find(|column| wanted.iter().all(|(name, ..)| column.name != *name)) {
        return Err(no_set(table, format!("It has another column, \"{}\".", other.name)));
    }
    Ok(found)
}

/// Checks that the columns that identify a row are the primary key. One statement reads the constraint and its index:
/// REINDEX CONCURRENTLY exchanges the index, and reports that a moment later.
fn check_primary_key(table: Relation, columns: &[TableColumn]) -> Result<()> {
    let (key, what): (Vec<&TableColumn>, _) = match columns {
        [generation, shard, _, ..] if generation.name == "generation" => {
            (vec![generation, shard], "Its columns \"generation\" and \"shard\" are")
        }
        columns => (columns.iter().take(1).collect(), "Its column \"shard\" is"),
    };
    const PRIMARY_KEY: &[u8] = b"SELECT FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_index AS i \
        ON i.indexrelid OPERATOR(pg_catalog.=) c.conindid WHERE c.conrelid OPERATOR(pg_catalog.=) $1 \
        AND c.contype OPERATOR(pg_catalog.=) 'p' AND c.conkey OPERATOR(pg_catalog.=) $2 AND i.indimmediate AND i.indisvalid";
    let numbers = memory::collect(key.iter().map(|column| Element { datum: Datum::from(column.number) }));
    let numbers = array::array_of(pg_sys::INT2ARRAYOID, pg_sys::INT2OID, numbers);
    let primary_key = Prepared::new(&[PRIMARY_KEY], &[pg_sys::OIDOID, pg_sys::INT2ARRAYOID])?;
    let values = [Datum::from(table.oid()), numbers];
    if connected(|| primary_key.execute(&values, Sees::Catalogs, |_| Ok(())))? == 1 {
        return Ok(());
    }
    Err(no_set(table, format!("{what} not its primary key, checked at once.")))
}

/// Whether a constraint calls this extension's `bloom_set_check`.
fn is_check(call: &Call, check: &CheckCall) -> bool {
    call.function().is_ok_and(|own| catalog::is_beside(check.function, own, c"bloom_set_check"))
}

/// The parameters in the arguments of `bloom_set_check`, if they have the form that `bloom_set_create` writes.
fn parameters(arguments: &[CheckArgument], columns: &[TableColumn]) -> Option<Parameters> {
    use CheckArgument::{Column, Constant, Null};
    let are = |given: &[&CheckArgument], names: &[&str]| {
        let number = |name: &str| columns.iter().find(|column| column.name == name).map(|column| column.number);
        given.iter().zip(names).all(|(given, name)| number(name).is_some_and(|number| **given == Column(number)))
    };
    let capacity_of = |datum: &Datum| u64::try_from(datum.value() as i64).ok().filter(|&capacity| capacity > 0);
    let oid = |datum: &Datum| Oid::from(datum.value() as u32);
    let rate = |datum: &Datum| f64::from_bits(datum.value() as u64);
    match arguments {
        [a, b, Constant(element), Constant(shards), Constant(capacity), Constant(fpr)]
            if are(&[a, b], &["shard", "filter"]) =>
        {
            let shards = u32::try_from(shards.value() as i32).ok().filter(|&shards| shards > 0)?;
            let capacity = Some(capacity_of(capacity)?);
            let (element, fpr) = (oid(element), rate(fpr));
            Some(Parameters { element, capacity, fpr, keep: None, renews: false, shards: Some(shards) })
        }
        [a, b, c, d, Constant(element), capacity, Constant(fpr), keep, Constant(renews)]
            if are(&[a, b, c, d], &["generation", "shard", "shards", "filter"]) =>
        {
            let capacity = match capacity {
                Constant(capacity) => Some(capacity_of(capacity)?),
                Null => None,
                Column(_) => return None,
            };
            let keep = match keep {
                // SAFETY: the function is declared to take an interval there.
                Constant(keep) => Some(unsafe { Interval::of(*keep) }),
                Null => None,
                Column(_) => return None,
            };
            let (element, fpr, renews) = (oid(element), rate(fpr), renews.value() != 0);
            Some(Parameters { element, capacity, fpr, keep, renews, shards: None })
        }
        _ => None,
    }
}

impl Parameters {
    /// How generations are made, if the set has any.
    fn growth(&self) -> Result<Option<Growth>> {
        let Some(plan) = Plan::new(self.capacity, self.fpr, self.keep.is_some()) else { return Ok(None) };
        let (mut all_shards, mut takes) = (Vec::new(), Vec::new());
        for level in 0..plan.capacities().len() {
            let (shards, header) = plan.shards(level, Kind::of(Tag::Text))?;
            let blocks = u64::from(shards) * header.blocks;
            all_shards.push(shards);
            takes.push(capacity_of(Layout::Blocked, header.num_hashes, blocks, plan.fpr()) as f64);
        }
        Ok(Some(Growth { plan, shards: all_shards, takes, slice: self.keep.map(|keep| keep.divided_by(SLICES)) }))
    }
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

/// The error when a snapshot doesn't see the present state of a set.
#[cold]
pub fn changed(detail: String) -> Error {
    let message = "could not serialize access due to concurrent change of a filter set";
    Error::new(SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE, message).detail(detail).hint("Retry the transaction.")
}
