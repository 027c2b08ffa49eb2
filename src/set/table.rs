//! Opening a set: checks that the table is one, reads what it was made for, and prepares its
//! statements.
//!
//! A session remembers a set until PostgreSQL reports a change of its table. Functions are given
//! the table's identifier, but statements name the table, and PostgreSQL resolves the name when it
//! plans them. To make sure that both mean the same table, the name is read before and after the
//! table is locked, and again after each statement. If the table was renamed while the call waited
//! for it, as when two tables are swapped, the call fails with an error that a retry resolves.

use super::statements::{Changes, PAGE, READ, prepared};
use crate::element::ElementType;
use crate::error::advice_on_kinds;
use crate::pg::call::{Call, Error, Result, SqlState};
use crate::pg::catalog::definition::{self, CheckArgument};
use crate::pg::catalog::{self, invalidation, owner};
use crate::pg::sql::{self, Prepared, Sees};
use crate::pg::storage::relation::{Opened, Relation, name_of};
use crate::pg::value::encoding::{self, database_encoding_name};
use crate::pg::value::time::{Interval, Timestamp};
use pg_bloom_core::set::Form;
use pg_bloom_core::set::tree::{DEFAULT_CAPACITY, SLICES};
use pg_bloom_core::{Layout, hash};
use pgrx::pg_sys::{self, Oid};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Sets that a session remembers; when there are more, all are forgotten.
const MOST_REMEMBERED: usize = 256;

/// What a set was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The type of its elements, as given then.
    pub element: Oid,
    /// The kind that elements of this type had then, by [`kind_code`].
    pub kind: i64,
    /// Elements with which it reaches its rate; `None` if none were given.
    pub capacity: Option<u64>,
    /// The rate at that capacity.
    pub fpr: f64,
    /// For how long it remembers, if it forgets.
    pub keep: Option<Interval>,
    /// Whether elements that are added again are remembered from then on.
    pub renews: bool,
}

/// The shortest slice of time, in microseconds.
const SHORTEST_SLICE: i64 = 1000;
/// The longest time for which a set remembers, 10,000 years in microseconds.
const LONGEST: i64 = 10_000 * 12 * 30 * 86_400 * 1_000_000;

/// The slice of the time for which a set remembers, in microseconds; `None` if it is too short or
/// too long.
pub fn slice_of(keep: Interval) -> Option<Timestamp> {
    let slice = keep.microseconds().filter(|&keep| keep <= LONGEST)? / SLICES;
    (slice >= SHORTEST_SLICE).then_some(slice)
}

/// Stands for the kind of elements of a type. Kinds have long names, and a type may be altered.
pub fn kind_code(element: &ElementType) -> i64 {
    let kind = element.kind(Layout::Blocked);
    hash::hash(format!("{} {kind}", kind.tag as u8).as_bytes()) as i64
}

/// What a set is opened for.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    /// Reading its rows.
    Ask,
    /// Adding or removing elements.
    Change,
    /// Making it empty, whatever its table has in it.
    Clear,
}

impl Purpose {
    /// Returns the lock of the table that is taken when the set is opened.
    ///
    /// A set that will be changed is locked as for UPDATE from the start. A session that first read
    /// an index, and then waited for REINDEX to release the table, would hold what REINDEX waits
    /// for.
    fn lock_mode(self) -> pg_sys::LOCKMODE {
        let lock = match self {
            Purpose::Ask => pg_sys::AccessShareLock,
            Purpose::Change => pg_sys::RowExclusiveLock,
            Purpose::Clear => pg_sys::AccessExclusiveLock,
        };
        lock as pg_sys::LOCKMODE
    }

    /// Returns the rights of the table that a call needs, whatever is in the set, besides SELECT,
    /// which the statements check.
    fn rights(self) -> &'static [u32] {
        match self {
            Purpose::Ask => &[],
            Purpose::Change => &[pg_sys::ACL_INSERT, pg_sys::ACL_UPDATE, pg_sys::ACL_DELETE],
            Purpose::Clear => &[pg_sys::ACL_TRUNCATE, pg_sys::ACL_INSERT],
        }
    }
}

/// What a session remembers of a set.
pub struct Set {
    pub oid: Oid,
    /// The name of the table in the statements, qualified.
    pub table: Vec<u8>,
    pub parameters: Parameters,
    element: RefCell<ElementType>,
    pub form: Form,
    /// The slices in which it forgets, in microseconds.
    pub slice: Option<Timestamp>,
    /// Whether the table may have other values after an UPDATE than that returned.
    pub is_changed_after: bool,
    /// Whether the table may have other rows after a TRUNCATE and an INSERT than that was given.
    pub may_insert_others: bool,
    pub read: Prepared,
    /// The statement that reads rows in their order.
    pub page: Prepared,
    pub changes: OnceCell<Changes>,
    /// The depth of the leaf that was found last: a hint where to look first.
    pub depth: Cell<Option<u32>>,
    /// Whether the session was warned that the set is overfull.
    pub has_warned: Cell<bool>,
    /// The last transaction that wrote the constraints that the session knows.
    pub written_by: Cell<Option<u32>>,
    /// Whether the table hasn't changed since.
    pub is_current: Cell<bool>,
}

session_locals! {
    /// The sets that this session has used.
    static KNOWN: RefCell<BTreeMap<u32, Rc<Set>>> = const { RefCell::new(BTreeMap::new()) };
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

impl Set {
    /// Locks the table of a set, as [`Set::lock`] does, for a call that uses its rows.
    ///
    /// Fails as that does, and if the constraint of the table is newer than the snapshot by which
    /// the call reads (40001).
    pub fn open(call: &Call, oid: Oid, purpose: Purpose) -> Result<Rc<Set>> {
        let set = Set::lock(call, oid, purpose)?;
        if purpose != Purpose::Clear {
            set.element.borrow_mut().refresh(call)?;
        }
        let reads_by_snapshot_of_query = match purpose {
            Purpose::Ask => true,
            // A change takes a snapshot after the table was locked, unless the transaction has one.
            Purpose::Change => sql::has_one_snapshot(),
            Purpose::Clear => false,
        };
        if reads_by_snapshot_of_query {
            set.check_snapshot_of_constraint()?;
        }
        Ok(set)
    }

    /// Locks the table of a set until the transaction ends, checks that it is a set, and returns
    /// what the session knows of it.
    ///
    /// Fails if there is no such table (42P01), if the caller lacks a right (42501), if the table
    /// isn't a set (42809), if it was renamed while the call waited for it (40001), and, unless the
    /// purpose is to ask, in a transaction that may only read (25006).
    pub fn lock(call: &Call, oid: Oid, purpose: Purpose) -> Result<Rc<Set>> {
        if purpose != Purpose::Ask {
            sql::require_writable(c"changing a filter set");
        }
        let name = sql::relation(oid);
        if name.is_some() {
            // Without the rights a caller must not be able to lock out others.
            owner::require_usage_of_schema(oid);
            for &right in purpose.rights() {
                owner::require(oid, right);
            }
        }
        let Some(table) = Opened::if_there(call, oid, purpose.lock_mode()) else {
            let name =
                name.map_or(format!("with OID {}", oid.to_u32()), |name| encoding::utf8(&name));
            return Err(Error::new(
                SqlState::ERRCODE_UNDEFINED_TABLE,
                format!("relation {name} does not exist"),
            ));
        };
        let name_now = sql::relation(oid).unwrap_or_default();
        if name.is_some_and(|before| before != name_now) {
            return Err(renamed(&name_now));
        }
        let known = KNOWN.with(|all| all.borrow().get(&oid.to_u32()).cloned());
        match known {
            Some(known) if known.is_current.get() && known.table == name_now => Ok(known),
            before => learn(call, table.relation(), name_now, before),
        }
    }

    /// Raises 40001 if the snapshot of the query doesn't see the present constraint: rows of a set
    /// that was replaced since would be looked up by wrong numbers.
    fn check_snapshot_of_constraint(&self) -> Result<()> {
        if self.written_by.get().is_some_and(sql::snapshot_is_after) {
            return Ok(());
        }
        let read = |sees| definition::checks_written_by(self.oid, sees);
        let (seen, present) = (read(Sees::CallingQuery)?, read(Sees::Catalogs)?);
        if seen != present {
            let set = self.quoted_name();
            return Err(retried(
                "change",
                format!("The constraints of filter set {set} were changed after the snapshot."),
            ));
        }
        let writers = present.iter().map(|&(_, by)| by);
        self.written_by
            .set(writers.reduce(|a, b| if sql::precedes(a, b) { b } else { a }));
        Ok(())
    }

    /// Checks for the function `operation` that elements of this type are of the set's kind.
    /// Errors: 42804 if not.
    pub fn check_kind(&self, call: &Call, element: &ElementType, operation: &str) -> Result<()> {
        let own = self.element.borrow();
        if kind_code(&own) != self.parameters.kind {
            return Err(self.refuse_altered_kind(call, &own));
        }
        let (own, given) = (own.kind(Layout::Blocked), element.kind(Layout::Blocked));
        if own.unify(given).is_some() {
            return Ok(());
        }
        let message = format!(
            "cannot use {operation} with filter set {} and an element of kind {given}",
            self.quoted_name()
        );
        Err(Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message)
            .detail(format!("The set is for elements of kind {own}."))
            .hint(advice_on_kinds(&own.to_string(), &given.to_string(), Some(operation))))
    }

    /// The error for a set whose elements, of the type `own`, now have another kind than those that
    /// were added: 42804, or what resolving the type fails with.
    #[cold]
    fn refuse_altered_kind(&self, call: &Call, own: &ElementType) -> Error {
        let set = self.quoted_name();
        let name = catalog::display_name(self.parameters.element);
        let is_of_set = |there: &ElementType| kind_code(there) == self.parameters.kind;
        let (message, hint) = match own.encoding_where(call, is_of_set) {
            Err(error) => return error,
            Ok(Some(encoding)) => (
                format!(
                    "filter set {set} was made in a database in encoding {encoding}, and this one is in {}",
                    database_encoding_name()
                ),
                format!(
                    "The hash of type {name} depends on the encoding. Make a new set, and add its elements."
                ),
            ),
            Ok(None) => (
                format!(
                    "type {name}, or how it is hashed, was altered since filter set {set} was made"
                ),
                "Make a new set, or restore the type and its operator classes.".to_owned(),
            ),
        };
        Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message)
            .detail("Elements that were added before would never be found.")
            .hint(hint)
    }

    /// The name of the table, quoted as messages have it.
    pub fn quoted_name(&self) -> String {
        format!("\"{}\"", name_of(self.oid))
    }

    /// Checks that the statements still name the table that the caller means. Errors: 40001 if it
    /// was renamed.
    pub fn check_name(&self) -> Result<()> {
        let table = &self.table;
        if sql::relation(self.oid).as_ref() == Some(table) {
            Ok(())
        } else {
            Err(renamed(table))
        }
    }
}

/// Reads what a set was made for, and prepares the statements that read it.
fn learn(call: &Call, table: Relation, name: Vec<u8>, before: Option<Rc<Set>>) -> Result<Rc<Set>> {
    if !IS_WATCHED.with(|is_watched| is_watched.replace(true)) {
        // SAFETY: flags of Rust's are set.
        unsafe { invalidation::watch_relations(forget) };
    }
    let columns = check_columns(table)?;
    let (checks, own) = (definition::check_calls(table), call.function()?);
    let checks = checks
        .iter()
        .filter(|check| catalog::is_beside(check.function, own, c"bloom_set_check"));
    // SAFETY: those that a constraint has.
    let mut all = checks.filter_map(|check| unsafe { parameters(&check.arguments, columns) });
    let parameters = all.next().ok_or_else(|| {
        no_set(table, "It has no constraint that calls bloom_set_check for its columns.")
    })?;
    if all.any(|other| other != parameters) {
        return Err(no_set(
            table,
            "It has constraints that call bloom_set_check with different arguments.",
        ));
    }
    if !definition::is_primary_key(table.oid(), columns[0])? {
        return Err(no_set(
            table,
            "Its column \"bucket\" is not its primary key, checked at once.",
        ));
    }
    let Parameters { capacity, fpr, keep, .. } = parameters;
    let slice = keep.and_then(slice_of);
    let form = Form::new(capacity.unwrap_or(DEFAULT_CAPACITY), fpr, keep.is_some());
    let Some(form) = form.filter(|form| form.keeps == slice.is_some()) else {
        return Err(no_set(
            table,
            "Its constraint that calls bloom_set_check has impossible arguments.",
        ));
    };
    let before = before.filter(|known| known.parameters == parameters);
    let oid = table.oid();
    let set = Rc::new(Set {
        oid,
        read: prepared(READ, &name, &[pg_sys::INT8ARRAYOID])?,
        page: prepared(PAGE, &name, &[pg_sys::INT8OID])?,
        table: name,
        parameters,
        element: RefCell::new(ElementType::of_later_elements(call, parameters.element)?),
        form,
        slice,
        is_changed_after: definition::is_changed_afterwards(table),
        may_insert_others: definition::may_insert_others(table),
        changes: OnceCell::new(),
        depth: Cell::new(before.as_ref().and_then(|known| known.depth.get())),
        has_warned: Cell::new(before.is_some_and(|known| known.has_warned.get())),
        written_by: Cell::new(None),
        is_current: Cell::new(true),
    });
    // Forgotten sets are dropped after the borrow ends.
    let _forgotten = KNOWN.with(|all| {
        let mut all = all.borrow_mut();
        let most = if all.len() >= MOST_REMEMBERED {
            std::mem::take(&mut *all)
        } else {
            BTreeMap::new()
        };
        (most, all.insert(oid.to_u32(), set.clone()))
    });
    Ok(set)
}

/// Called by PostgreSQL when a table changed, or with an invalid identifier when any table may
/// have.
fn forget(oid: Oid) {
    let is_meant = |set: &&Rc<Set>| oid == Oid::INVALID || set.oid == oid;
    KNOWN.with(|all| {
        all.borrow()
            .values()
            .filter(is_meant)
            .for_each(|set| set.is_current.set(false))
    });
}

/// The numbers of the columns `bucket` and `hashes`, if the table has exactly these.
fn check_columns(table: Relation) -> Result<[i16; 2]> {
    let columns = table.columns().filter(|column| !column.attisdropped);
    let columns: Vec<_> = columns
        .map(|column| (encoding::name(&column.attname), column))
        .collect();
    if ["shard", "filter"]
        .iter()
        .all(|name| columns.iter().any(|(own, _)| own == name))
    {
        let message =
            format!("filter set \"{}\" has a form that is no longer supported", table.name());
        return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail("Its rows are filters.")
            .hint("Make a new set with bloom_set_create, and add its elements."));
    }
    let number = |name: &str, oid: Oid| {
        let is_it =
            |column: &pg_sys::FormData_pg_attribute| column.atttypid == oid && column.attnotnull;
        let column = columns.iter().find(|(own, column)| own == name && is_it(column));
        column.map(|(_, column)| column.attnum).ok_or_else(|| {
            let type_name = catalog::display_name(oid);
            no_set(
                table,
                format!("It has no column \"{name}\" of type {type_name} that is NOT NULL."),
            )
        })
    };
    let numbers = [
        number("bucket", pg_sys::INT8OID)?,
        number("hashes", pg_sys::BYTEAOID)?,
    ];
    if let Some((name, _)) = columns.iter().find(|(_, column)| !numbers.contains(&column.attnum)) {
        return Err(no_set(table, format!("It has another column, \"{name}\".")));
    }
    Ok(numbers)
}

/// The parameters in the arguments of `bloom_set_check`, if they have the form and the types that
/// `bloom_set_create` writes: a function of that name may have others.
///
/// # Safety
/// The constants must be of the types that they say.
unsafe fn parameters(arguments: &[CheckArgument], columns: [i16; 2]) -> Option<Parameters> {
    use CheckArgument::{Column, Null};
    let [
        Column(a),
        Column(b),
        element,
        kind,
        capacity,
        fpr,
        keep,
        renews,
    ] = arguments
    else {
        return None;
    };
    if [*a, *b] != columns {
        return None;
    }
    let number = |argument: &CheckArgument| {
        argument.constant(pg_sys::INT8OID).map(|datum| datum.value() as i64)
    };
    let capacity = match capacity {
        Null => None,
        given => Some(u64::try_from(number(given)?).ok().filter(|&capacity| capacity > 0)?),
    };
    let keep = match keep {
        Null => None,
        // SAFETY: promised by the caller.
        given => Some(unsafe { Interval::of(given.constant(pg_sys::INTERVALOID)?) }),
    };
    Some(Parameters {
        element: Oid::from(element.constant(pg_sys::REGTYPEOID)?.value() as u32),
        kind: number(kind)?,
        capacity,
        fpr: f64::from_bits(fpr.constant(pg_sys::FLOAT8OID)?.value() as u64),
        keep,
        renews: renews.constant(pg_sys::BOOLOID)?.value() != 0,
    })
}

#[cold]
fn no_set(table: Relation, why: impl Into<String>) -> Error {
    let message = format!("table \"{}\" is not a filter set", table.name());
    Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message)
        .detail(why)
        .hint("Make filter sets with bloom_set_create.")
}

#[cold]
fn renamed(name: &[u8]) -> Error {
    let name = encoding::utf8(name);
    retried("rename", format!("Filter set {name} was renamed, moved or replaced in the meantime."))
}

#[cold]
pub fn retried(what: &str, detail: String) -> Error {
    let message = format!("could not serialize access due to concurrent {what}");
    Error::new(SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE, message)
        .detail(detail)
        .hint("Retry the transaction.")
}
