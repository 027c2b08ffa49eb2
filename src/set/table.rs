//! Opening a set: checks that the table is one, reads what it was made for, and prepares its
//! statements.
//!
//! A session remembers a set until PostgreSQL reports a change of its table. Functions are given
//! the table's identifier, but statements name the table, and PostgreSQL resolves the name when it
//! plans them. To make sure that both mean the same table, the name is read before and after the
//! table is locked, and again after each statement. If the table was renamed while the call waited
//! for it, as when two tables are swapped, the call fails with an error that a retry resolves.

use super::parameters::{Parameters, SetColumns, kind_code, time_slice_length};
use super::statements::{Changes, PAGE, READ, prepared};
use crate::element::ElementType;
use crate::error::advice_on_kinds;
use crate::pg::call::{Call, Error, Result, SqlState};
use crate::pg::catalog::{self, definition, invalidation, owner};
use crate::pg::sql::{self, Prepared, Sees};
use crate::pg::storage::relation::{Opened, Relation, name_of};
use crate::pg::value::encoding::{self, database_encoding_name};
use crate::pg::value::time::{self, Timestamp};
use pg_bloom_core::Layout;
use pg_bloom_core::memory::List;
use pg_bloom_core::set::SetForm;
use pgrx::pg_sys::{self, Oid};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How many sets a session remembers. When there are more, it forgets all of them.
const MOST_REMEMBERED: usize = 256;

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

    /// Returns the rights to the table that a call needs, whatever is in the set, besides SELECT,
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
    /// The name of the table as the statements have it, with its schema.
    pub table: List<u8>,
    pub parameters: Parameters,
    /// The type of the elements, as it is now.
    element: RefCell<ElementType>,
    pub form: SetForm,
    /// The length of a time slice, in microseconds; `None` for a set that doesn't forget.
    pub time_slice_length: Option<Timestamp>,
    /// Whether the table may store other rows than a statement that changes it returns: it has
    /// partitions, rules or triggers.
    pub may_store_other_rows: bool,
    /// Whether the table may have other rows after a TRUNCATE and an INSERT than were given.
    pub may_insert_others: bool,
    /// The statement that reads rows by their buckets.
    pub read_statement: Prepared,
    /// The same statement for rows that have to be read from disk, once it was needed.
    pub disk_read_statement: OnceCell<Prepared>,
    /// Whether PostgreSQL can read rows from disk by that statement: only tables of its own access
    /// method surely have bitmap heap scans. In another, the statement may read the whole table.
    pub has_bitmap_scans: bool,
    /// Whether rows that were read last by their buckets had to be read from disk: a hint whether
    /// the next ones will.
    pub was_on_disk: Cell<bool>,
    /// The statement that reads rows in the order of their buckets.
    pub page_statement: Prepared,
    /// The statements that change rows, once they were needed.
    pub changes: OnceCell<Changes>,
    /// The depth of the leaf that was found last: a hint where to look first.
    pub depth: Cell<Option<u32>>,
    /// Whether the session was warned that the set is overfull.
    pub has_warned: Cell<bool>,
    /// The last transaction that wrote one of the table's CHECK constraints, once that is known.
    last_constraint_writer: Cell<Option<u32>>,
    /// Whether the table hasn't changed since this was learned.
    is_current: Cell<bool>,
}

session_locals! {
    /// The sets that this session has used, by the identifiers of their tables.
    static KNOWN: RefCell<BTreeMap<u32, Rc<Set>>> = const { RefCell::new(BTreeMap::new()) };
    /// Whether PostgreSQL reports changes of tables to [`forget`].
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

impl Set {
    /// Opens a filter set, a table of sorted hashes, for a function that reads or changes its rows.
    /// Locks the table until the transaction ends, and returns the `Set` that the session caches:
    /// the parameters with which the set was made, and the prepared statements.
    ///
    /// `oid` identifies the table, and `purpose` says what the function will do, which decides
    /// about the lock and the rights that are required.
    ///
    /// Fails if the table isn't a set that the user may open ([`Set::lock`] has the codes), and
    /// with 40001 if the CHECK constraint of the table, which says how rows are to be read, is
    /// newer than the snapshot with which the call reads them.
    pub fn open(call: &Call, oid: Oid, purpose: Purpose) -> Result<Rc<Set>> {
        let set = Set::lock(call, oid, purpose)?;
        if purpose != Purpose::Clear {
            set.element.borrow_mut().refresh(call)?;
        }
        let reads_by_snapshot_of_query = match purpose {
            Purpose::Ask => true,
            // At READ COMMITTED, a change takes a snapshot after the table was locked, which sees
            // every committed constraint. At the stricter isolation levels the transaction keeps
            // one snapshot, which may be older.
            Purpose::Change => sql::has_one_snapshot(),
            Purpose::Clear => false,
        };
        if reads_by_snapshot_of_query {
            set.check_snapshot_sees_constraints()?;
        }
        Ok(set)
    }

    /// Locks the table of a filter set until the transaction ends, checks that it is a set, and
    /// returns the `Set` that the session caches for it. The catalogs are read only if the session
    /// hasn't used the set yet, or if the table was changed since.
    ///
    /// `oid` identifies the table, and `purpose` says what the caller will do, which decides about
    /// the lock and the rights that are required. Waits for other sessions that hold a conflicting
    /// lock. Unlike [`Set::open`], doesn't check that the snapshot of the query sees the table's
    /// present constraint.
    ///
    /// Fails with 42P01 if there is no such table, with 42501 if the user lacks a right, with 42809
    /// if the table isn't a set, with 40001 if it was renamed while the call waited for the lock,
    /// and, unless the purpose is to ask, with 25006 in a transaction that may only read.
    pub fn lock(call: &Call, oid: Oid, purpose: Purpose) -> Result<Rc<Set>> {
        if purpose != Purpose::Ask {
            sql::require_writable(c"changing a filter set");
        }
        // The name is read before and after waiting for the lock: if it differs, two tables may
        // have been swapped, and the caller may mean the other one.
        let name_before = sql::relation(oid);
        if name_before.is_some() {
            // Rights come first: a user without them must not be able to lock out others.
            owner::require_usage_of_schema(oid);
            for &right in purpose.rights() {
                owner::require(oid, right);
            }
        }
        let Some(table) = Opened::if_there(call, oid, purpose.lock_mode()) else {
            return Err(undefined(oid, name_before));
        };
        let name = sql::relation(oid).unwrap_or_default();
        if name_before.is_some_and(|before| before != name) {
            return Err(renamed(&name));
        }

        let known = KNOWN.with(|known| known.borrow().get(&oid.to_u32()).cloned());
        match known {
            Some(set) if set.is_current.get() && set.table == name => Ok(set),
            outdated => learn(call, table.relation(), name, outdated),
        }
    }

    /// Checks that the snapshot of the calling query sees the CHECK constraints that the table has
    /// now. If the set was replaced after the snapshot was taken, the old rows that the snapshot
    /// sees would be read as rows of the new set.
    ///
    /// The check reads the catalog of constraints twice. The next calls needn't: this session
    /// remembers which transaction wrote the last constraint, and a snapshot that was taken after
    /// that transaction sees all of them. Fails with 40001 if the snapshot sees other constraints.
    fn check_snapshot_sees_constraints(&self) -> Result<()> {
        let last_writer = self.last_constraint_writer.get();
        if last_writer.is_some_and(sql::snapshot_is_after) {
            return Ok(());
        }

        // With each constraint comes the transaction that wrote it, so a constraint that was
        // dropped and made again differs from the first one.
        let seen_by_query = definition::check_versions(self.oid, Sees::CallingQuery)?;
        let present = definition::check_versions(self.oid, Sees::Catalogs)?;
        if seen_by_query != present {
            let set = self.quoted_name();
            return Err(retried(
                "change",
                format!("The constraints of filter set {set} were changed after the snapshot."),
            ));
        }

        let writers = present.iter().map(|check| check.written_by);
        let last_writer = writers.reduce(|a, b| if sql::precedes(a, b) { b } else { a });
        self.last_constraint_writer.set(last_writer);
        Ok(())
    }

    /// Checks that elements of type `element` are hashed as the set's own elements are, so that an
    /// element that is in the set is found. Two types match if they have one *kind*, a name for how
    /// values are turned into hashes: `text` and `varchar` have the same.
    ///
    /// `function` is the name of the SQL function that is called, for messages.
    ///
    /// Fails with 42804 if the kinds differ, or if a command has changed how elements of the set's
    /// own type are hashed since the set was made.
    pub fn check_kind(&self, call: &Call, element: &ElementType, function: &str) -> Result<()> {
        let own_type = self.element.borrow();
        if kind_code(&own_type) != self.parameters.kind {
            return Err(self.altered_kind(call, &own_type));
        }

        let own_kind = own_type.kind(Layout::Blocked);
        let given_kind = element.kind(Layout::Blocked);
        if own_kind.unify(given_kind).is_some() {
            return Ok(());
        }
        let set = self.quoted_name();
        let message = format!(
            "cannot use {function} with filter set {set} and an element of kind {given_kind}"
        );
        let advice =
            advice_on_kinds(&own_kind.to_string(), &given_kind.to_string(), Some(function));
        Err(Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message)
            .detail(format!("The set is for elements of kind {own_kind}."))
            .hint(advice))
    }

    /// Returns the error 42804 for a set whose elements are hashed in another way now than when it
    /// was made, so that none of the earlier ones would be found. `own_type` is the type of its
    /// elements as it is now.
    ///
    /// The message says why: either the set was dumped from a database in another encoding, on
    /// which the hashes depend, or the type or its operator classes were altered. If finding this
    /// out fails, returns that error.
    #[cold]
    fn altered_kind(&self, call: &Call, own_type: &ElementType) -> Error {
        let set = self.quoted_name();
        let type_name = catalog::display_name(self.parameters.element);
        let has_kind_of_set =
            |type_there: &ElementType| kind_code(type_there) == self.parameters.kind;
        let error = match own_type.find_encoding(call, has_kind_of_set) {
            Err(error) => return error,
            Ok(Some(encoding)) => {
                let own_encoding = database_encoding_name();
                let message = format!(
                    "filter set {set} was made in a database in encoding {encoding}, and this one is in {own_encoding}"
                );
                let hint = format!(
                    "The hash of type {type_name} depends on the encoding. Make a new set, and add its elements."
                );
                Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message).hint(hint)
            }
            Ok(None) => {
                let message = format!(
                    "type {type_name}, or how it is hashed, was altered since filter set {set} was made"
                );
                Error::new(SqlState::ERRCODE_DATATYPE_MISMATCH, message)
                    .hint("Make a new set, or restore the type and its operator classes.")
            }
        };
        error.detail("Elements that were added before would never be found.")
    }

    /// Returns the present time as a number of time slices; 0 for a set that doesn't forget.
    pub fn now(&self) -> i64 {
        self.time_slice_length
            .map_or(0, |length| time::now().div_euclid(length))
    }

    /// Returns the name of the table, in quotes, for messages.
    pub fn quoted_name(&self) -> String {
        format!("\"{}\"", name_of(self.oid))
    }

    /// Checks that the statements still name the table that the caller means. Fails if it was
    /// renamed (40001).
    pub fn check_name(&self) -> Result<()> {
        if sql::relation(self.oid).as_ref() == Some(&self.table) {
            Ok(())
        } else {
            Err(renamed(&self.table))
        }
    }
}

/// Makes the `Set` of a table that the session hasn't used yet, or that was changed since: reads
/// the parameters of the set from the catalogs, prepares the statements that read its rows, and
/// caches the result for later calls of the session.
///
/// `table` is locked by the caller; `name` is its quoted name with the schema, as the statements
/// have it; `outdated` is the `Set` from before the table was changed, if there is one. Hints are
/// taken from it if the set is still the same: the depth of its rows, whether they are on disk, and
/// that a warning was raised.
///
/// Fails with 42809 if the table isn't a filter set.
fn learn(
    call: &Call,
    table: Relation,
    name: List<u8>,
    outdated: Option<Rc<Set>>,
) -> Result<Rc<Set>> {
    if !IS_WATCHED.with(|is_watched| is_watched.replace(true)) {
        // SAFETY: `forget` only sets flags of Rust's.
        unsafe { invalidation::watch_relations(forget) };
    }
    let columns = check_columns(table)?;
    let parameters = parameters_of(call, table, columns)?;
    if !definition::is_primary_key(table.oid(), columns.bucket)? {
        return Err(no_set(
            table,
            "Its column \"bucket\" is not its primary key, checked at once.",
        ));
    }

    let time_slice_length = parameters.keep.and_then(time_slice_length);
    let form = parameters.form();
    let Some(form) = form.filter(|form| form.forgets == time_slice_length.is_some()) else {
        return Err(no_set(
            table,
            "Its constraint that calls bloom_set_check has impossible arguments.",
        ));
    };
    // With the same parameters, the table is still the same set, and the hints from before still
    // hold.
    let previous = outdated.filter(|outdated| outdated.parameters == parameters);
    let set = Rc::new(Set {
        oid: table.oid(),
        read_statement: prepared(READ, &name, &[pg_sys::INT8ARRAYOID])?,
        disk_read_statement: OnceCell::new(),
        has_bitmap_scans: table.is_heap() || table.kind() == pg_sys::RELKIND_PARTITIONED_TABLE,
        was_on_disk: Cell::new(
            previous.as_ref().is_some_and(|previous| previous.was_on_disk.get()),
        ),
        page_statement: prepared(PAGE, &name, &[pg_sys::INT8OID])?,
        table: name,
        parameters,
        element: RefCell::new(ElementType::of_later_elements(call, parameters.element)?),
        form,
        time_slice_length,
        may_store_other_rows: definition::is_changed_afterwards(table),
        may_insert_others: definition::may_insert_others(table),
        changes: OnceCell::new(),
        depth: Cell::new(previous.as_ref().and_then(|previous| previous.depth.get())),
        has_warned: Cell::new(previous.is_some_and(|previous| previous.has_warned.get())),
        last_constraint_writer: Cell::new(None),
        is_current: Cell::new(true),
    });
    remember(&set);
    Ok(set)
}

/// Puts a set into the cache of this session, in place of an older version of it. If the cache is
/// full, all other sets are dropped first.
fn remember(set: &Rc<Set>) {
    // Dropping a set frees its plans, which must not happen while `KNOWN` is borrowed.
    let mut dropped_later = List::new();
    KNOWN.with(|known| {
        let mut known = known.borrow_mut();
        if known.len() >= MOST_REMEMBERED {
            dropped_later.extend(std::mem::take(&mut *known).into_values());
        }
        dropped_later.extend(known.insert(set.oid.to_u32(), set.clone()));
    });
}

/// Notes that the session's knowledge of a table is outdated. PostgreSQL calls this when the table
/// was changed, or with the invalid identifier when any table may have been.
fn forget(oid: Oid) {
    KNOWN.with(|known| {
        for set in known.borrow().values() {
            if oid == Oid::INVALID || set.oid == oid {
                set.is_current.set(false);
            }
        }
    });
}

/// Returns the numbers of the columns `bucket` and `hashes` of a table that should be a filter set.
/// Fails with 42809 unless these two are its only columns, NOT NULL, and of the types that a set
/// has, and with 55000 for a set in the form of old versions of this extension.
fn check_columns(table: Relation) -> Result<SetColumns> {
    let columns: List<NamedColumn> = table
        .columns()
        .filter(|column| !column.attisdropped)
        .map(|column| NamedColumn { name: encoding::name(&column.attname), column })
        .collect();
    let has_column = |name: &str| columns.iter().any(|column| column.name == name);
    // Old versions stored each set as rows of filters, in these two columns.
    if has_column("shard") && has_column("filter") {
        let message =
            format!("filter set \"{}\" has a form that is no longer supported", table.name());
        return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .detail("Its rows are filters.")
            .hint("Make a new set with bloom_set_create, and add its elements."));
    }

    let bucket = number_of_column(table, &columns, "bucket", pg_sys::INT8OID)?;
    let hashes = number_of_column(table, &columns, "hashes", pg_sys::BYTEAOID)?;
    let another = columns
        .iter()
        .find(|column| ![bucket, hashes].contains(&column.column.attnum));
    if let Some(another) = another {
        return Err(no_set(table, format!("It has another column, \"{}\".", another.name)));
    }
    Ok(SetColumns { bucket, hashes })
}

/// A column of a table.
struct NamedColumn {
    name: String,
    column: pg_sys::FormData_pg_attribute,
}

/// Returns the number of the column with this name and type among the `columns` of a table. Fails
/// with 42809 if the table has none, or if the column may be NULL.
fn number_of_column(
    table: Relation,
    columns: &[NamedColumn],
    name: &str,
    type_oid: Oid,
) -> Result<i16> {
    let found = columns.iter().find(|NamedColumn { name: own_name, column }| {
        own_name == name && column.atttypid == type_oid && column.attnotnull
    });
    match found {
        Some(found) => Ok(found.column.attnum),
        None => {
            let type_name = catalog::display_name(type_oid);
            let why = format!("It has no column \"{name}\" of type {type_name} that is NOT NULL.");
            Err(no_set(table, why))
        }
    }
}

/// Returns the parameters with which a filter set was made. `bloom_set_create` writes them into a
/// CHECK constraint of the set's table, as the arguments of a call of `bloom_set_check`; `columns`
/// are the two columns that this call must name.
///
/// Several such constraints may stand in a table, if they agree: a partition may have its own and
/// one that it inherits. Fails with 42809 if there is no such constraint, or if two disagree.
fn parameters_of(call: &Call, table: Relation, columns: SetColumns) -> Result<Parameters> {
    let own_function = call.function()?;
    let mut found = None;
    for check in definition::check_calls(table) {
        if !catalog::is_in_schema_of(check.function, own_function, c"bloom_set_check") {
            continue;
        }
        // SAFETY: the arguments are from a constraint that PostgreSQL has parsed, so each constant
        // has the type that it says.
        let parameters = unsafe { Parameters::in_constraint(&check.arguments, columns) };
        let Some(parameters) = parameters else {
            continue;
        };
        if found.is_some_and(|found| found != parameters) {
            return Err(no_set(
                table,
                "It has constraints that call bloom_set_check with different arguments.",
            ));
        }
        found = Some(parameters);
    }
    found.ok_or_else(|| {
        no_set(table, "It has no constraint that calls bloom_set_check for its columns.")
    })
}

/// Returns the error for a table that isn't there. `name` is its name when the call began.
#[cold]
fn undefined(oid: Oid, name: Option<List<u8>>) -> Error {
    let name = match name {
        Some(name) => encoding::utf8(&name),
        None => format!("with OID {}", oid.to_u32()),
    };
    let message = format!("relation {name} does not exist");
    Error::new(SqlState::ERRCODE_UNDEFINED_TABLE, message)
}

/// Returns the error for a table that isn't a set. `why` is a sentence.
#[cold]
fn no_set(table: Relation, why: impl Into<String>) -> Error {
    let message = format!("table \"{}\" is not a filter set", table.name());
    Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message)
        .detail(why)
        .hint("Make filter sets with bloom_set_create.")
}

/// Returns the error for a table that has another name than the statements expect.
#[cold]
fn renamed(name: &[u8]) -> Error {
    let name = encoding::utf8(name);
    retried("rename", format!("Filter set {name} was renamed, moved or replaced in the meantime."))
}

/// Returns an error that a retry resolves. `what` is what another session has done, as a noun.
#[cold]
pub fn retried(what: &str, detail: String) -> Error {
    let message = format!("could not serialize access due to concurrent {what}");
    Error::new(SqlState::ERRCODE_T_R_SERIALIZATION_FAILURE, message)
        .detail(detail)
        .hint("Retry the transaction.")
}
