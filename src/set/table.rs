//! Opening a set: which table is one, and what it was made for.

use crate::element::ElementType;
use crate::pg::call::Call;
use crate::pg::catalog::{self, TableColumn};
use crate::pg::check_expression::{CheckArgument, CheckCall, call_of};
use crate::pg::error::{Error, Result, SqlState};
use crate::pg::keyed_rows::KeyedRows;
use crate::pg::open_table::{Access, Table};
use pgrx::pg_sys::{self, Oid};
use std::ffi::{CStr, CString};

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

/// A set that is open.
pub struct Set {
    table: Table,
    /// The index of the primary key.
    index: Oid,
    shard: TableColumn,
    filter: TableColumn,
    /// What it was made for.
    pub parameters: Parameters,
}

/// The constraint of a set as a call site read it last.
#[derive(Default)]
pub struct Constraint {
    last: Option<(CString, Parameters)>,
}

/// What a call site with elements remembers.
pub struct Site {
    /// The type of the elements.
    pub element: ElementType,
    /// The type of the array that they are in, and of its elements.
    pub array: (Oid, Oid),
    /// The last set.
    pub constraint: Constraint,
}

impl Site {
    /// A call whose argument 1 is one element.
    ///
    /// # Errors
    /// 0A000 for a type that can't be an element.
    pub fn of_element(call: &Call) -> Result<&mut Site> {
        let site = call.remembered(|| {
            let element = ElementType::of_argument(call, 1)?;
            Ok(Site { element, array: (Oid::INVALID, Oid::INVALID), constraint: Constraint::default() })
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
            Ok(Site { element, array: (array, oid), constraint: Constraint::default() })
        })?;
        site.element.refresh(call)?;
        Ok(site)
    }
}

impl Set {
    /// Opens the table `oid` on behalf of a call, with the rights of the caller.
    ///
    /// # Errors
    /// 42809 for a table that is no set, 0A000 for what only the executor can follow; 42501 without the rights to read
    /// it or, for an update, to update its filters; those of [`Table::open`].
    pub fn open(call: &Call, oid: Oid, access: Access, constraint: &mut Constraint) -> Result<Set> {
        let table = Table::open(oid, access)?;
        let columns = table.columns();
        table.check_readable(&columns);
        let (shard, filter) = check_columns(&table, columns, catalog::type_beside(call.function()?, c"bloom"))?;
        if access == Access::Update {
            table.check_updatable(std::slice::from_ref(&filter));
        }
        let parameters = constraint
            .parameters(call, &table, &shard, &filter)?
            .ok_or_else(|| no_set(&table, "It has no constraint that calls bloom_set_check for its columns."))?;
        let index = table
            .primary_key(&shard)
            .ok_or_else(|| no_set(&table, "Its column \"shard\" is not its primary key, checked at once."))?;
        if let Some(obstacle) = table.obstacle(&filter) {
            return Err(obstructed(&table, obstacle));
        }
        if access == Access::Update && table.checks().len() > 1 {
            return Err(obstructed(&table, "CHECK constraints of its own"));
        }
        Ok(Set { table, index, shard, filter, parameters })
    }

    /// Closes it.
    pub fn close(self) {
        self.table.close();
    }

    /// Refuses a change where none can be.
    pub fn check_writable(&self, function: &CStr) {
        self.table.check_writable(function);
    }

    /// Whether two batches that change so many of its rows each have some in common, in 98 of 100 cases or more.
    pub fn is_shared_by_two_of(&self, rows: u64) -> bool {
        rows * rows > 4 * u64::from(self.parameters.shards)
    }

    /// Lets other large batches end first, and later ones wait for the end of the transaction.
    pub fn take_turn(&self) {
        self.table.take_turn();
    }

    /// Its rows, by their shards.
    pub fn rows(&self, snapshot: pg_sys::Snapshot) -> KeyedRows<'_> {
        KeyedRows::begin(&self.table, self.index, snapshot, &self.shard, &self.filter)
    }

    /// Bytes on disk, with its index.
    pub fn bytes(&self) -> u64 {
        self.table.bytes(self.index)
    }

    /// The error for a row that isn't there.
    #[cold]
    pub fn missing(&self, shard: u32) -> Error {
        let name = self.table.quoted_name();
        Error::new(
            SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("filter set {name} has no row for shard {shard}"),
        )
        .detail(format!("Its {} rows must be there; what was added to this one is lost.", self.parameters.shards))
        .hint("Restore the row from a backup, or make a new set.")
    }
}

/// The columns `shard` and `filter`, if the table has these two and no other.
fn check_columns(table: &Table, columns: Vec<TableColumn>, bloom: Oid) -> Result<(TableColumn, TableColumn)> {
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

impl Constraint {
    /// What the set that this table is was made for, as its constraint says; nothing if it has none.
    fn parameters(
        &mut self,
        call: &Call,
        table: &Table,
        shard: &TableColumn,
        filter: &TableColumn,
    ) -> Result<Option<Parameters>> {
        for expression in table.checks() {
            if let Some((known, parameters)) = &self.last
                && known.as_c_str() == expression
            {
                return Ok(Some(*parameters));
            }
            let found = call_of(expression).filter(|check| is_check(call, check));
            if let Some(parameters) = found.and_then(|check| read(&check.arguments, shard, filter)) {
                self.last = Some((expression.to_owned(), parameters));
                return Ok(Some(parameters));
            }
        }
        Ok(None)
    }
}

/// Whether it is the function of this extension that is called.
fn is_check(call: &Call, check: &CheckCall) -> bool {
    call.function().is_ok_and(|own| catalog::is_beside(check.function, own, c"bloom_set_check"))
}

/// What the arguments of `bloom_set_check` say, if they are what `bloom_set_create` writes.
fn read(arguments: &[CheckArgument], shard: &TableColumn, filter: &TableColumn) -> Option<Parameters> {
    use CheckArgument::{Column, Constant};
    let [Column(a), Column(b), Constant(_, element), Constant(_, shards), Constant(_, capacity), Constant(_, fpr)] =
        arguments
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
fn no_set(table: &Table, why: impl Into<String>) -> Error {
    let message = format!("table {} is not a filter set", table.quoted_name());
    Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message).detail(why).hint("Make filter sets with bloom_set_create.")
}

#[cold]
fn obstructed(table: &Table, obstacle: &str) -> Error {
    let message = format!("filter set {} has {obstacle}", table.quoted_name());
    Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message)
        .detail("The functions for filter sets work on the table directly.")
        .hint("Read and update its rows by SQL, or remove what they can't follow.")
}
