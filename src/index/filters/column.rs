//! The column of an index over filters: which columns can be one, and by which types filters are
//! asked.

use crate::error::unsupported;
use crate::index::page::impossible;
use crate::index::session::{self, IndexColumn};
use crate::key_condition::{KEY_OF_ARRAY, STRATEGY_CONTAINS};
use crate::pg::call::error::{Error, Result, info};
use crate::pg::catalog::operators::FamilyOperator;
use crate::pg::catalog::{self, operators};
use crate::pg::method::scan::is_line;
use crate::pg::storage::relation::{ColumnClass, Relation};
use pg_bloom_core::index::filters::{Directory, FilterGroup, RowPage, SlotState};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::kind::Tag;
use pgrx::pg_sys::{self, Oid};
use std::ffi::CStr;

pub type FiltersIndex<'r> = session::OpenIndex<'r, Filters>;

/// A column of filters.
pub struct Filters {
    /// The type `bloom_key`. A query asks a filter for a value of this type as it does for a text.
    pub bloom_key_type: Oid,
}

impl IndexColumn for Filters {
    type Directory = Directory;

    /// Returns what the session remembers of a column of filters. Fails with 0A000 if the index
    /// has another operator class than the extension's.
    fn describe_column(index: Relation) -> Result<Filters> {
        Ok(Filters { bloom_key_type: bloom_key_type(index)? })
    }
}

impl FiltersIndex<'_> {
    /// Calls `visit` with the number of each slot of a row page that has a row, the slot's state
    /// and the row. Fails with XX002 if the page is damaged.
    pub fn each_slot(
        &self,
        page: &RowPage,
        visit: impl FnMut(u16, SlotState, RowId),
    ) -> Result<()> {
        self.read(page.number, |bytes| page.rows(bytes, 0..page.slots, visit))
    }
}

/// Checks that a table can have these rows, which were found in an index: each is at a line number
/// that a page can have and, in a table of the access method heap, on a page that the table has
/// now. Other access methods number rows as they like. Fails with XX002 for the first row for which
/// that isn't so: the index is damaged.
pub fn check_rows(
    index: Relation,
    table: Relation,
    mut rows: impl Iterator<Item = RowId>,
) -> Result<()> {
    let end = if table.is_heap() { table.pages() } else { u32::MAX };
    match rows.find(|row| !is_line(row.line) || row.page >= end) {
        Some(row) => Err(impossible(index, table, row)),
        None => Ok(()),
    }
}

/// Returns whether the filters of a group are of text. Filters that have no elements are in no
/// group, so nothing is said of them.
pub fn is_of_text(group: &FilterGroup) -> bool {
    matches!(group.kind().tag, Tag::Text | Tag::ParquetByteArray)
}

/// Returns the type `bloom_key`, whose values can probe filters of any key kind, for an index over
/// a column of filters.
///
/// Fails with 0A000 unless the index has the extension's operator class `bloom_ops`: it is declared
/// for the type `bloom`, its operators with `text` and with `bloom_key` on the right side are the
/// extension's own, and no operator has another strategy than `@>` has. A superuser can declare other classes for this access method.
pub fn bloom_key_type(index: Relation) -> Result<Oid> {
    let ColumnClass { family, declared: declared_type, .. } = index.column_class();
    // The types and functions of the extension are in the schema of the access method's handler.
    let handler = index.handler();
    let bloom_type = catalog::type_in_schema_of(handler, c"bloom");
    let bloom_key_type = catalog::type_in_schema_of(handler, c"bloom_key");

    let is_own_operator = |right_type: Oid, function_name: &CStr| {
        operators::family_member(family, declared_type, right_type, STRATEGY_CONTAINS)
            .map(operators::function_of)
            .is_some_and(|function| catalog::is_in_schema_of(function, handler, function_name))
    };
    if declared_type == bloom_type
        && is_own_operator(pg_sys::TEXTOID, c"bloom_contains")
        && is_own_operator(bloom_key_type, c"bloom_contains_key")
        && operators::family_operators(family)
            .iter()
            .all(|operator| has_strategy_of_contains(operator, declared_type))
    {
        return Ok(bloom_key_type);
    }
    Err(refuse_class(index))
}

/// Returns the error for an index whose operator class has an operator that doesn't ask a filter
/// whether it contains an element.
pub fn refuse_class(index: Relation) -> Error {
    let message =
        format!("index \"{}\" has an operator class that does not ask filters", index.name());
    unsupported(message, "Use the operator class bloom_ops.")
}

/// Returns whether an operator of a family is there to search an index over the type `declared` for
/// filters that contain an element, by its strategy.
fn has_strategy_of_contains(operator: &FamilyOperator, declared: Oid) -> bool {
    operator.amopstrategy == STRATEGY_CONTAINS
        && operators::is_for_search(operator)
        && operator.amoplefttype == declared
}

/// Returns whether an operator class, given by its family and the type that it is declared for, is
/// fit for an index over a column of filters: it has the function that makes keys of arrays, and
/// all its operators are for search, with strategy 2. Reports each reason why not as INFO, for
/// `amvalidate`. Whether the operators' functions are the extension's own is checked when an index
/// is opened.
pub fn validate(family: Oid, declared: Oid) -> bool {
    let mut is_valid = operators::family_function(family, declared, KEY_OF_ARRAY).is_some();
    if !is_valid {
        info(unsupported("the operator class has no support function 2", "See docs/index.md."));
    }
    for operator in &operators::family_operators(family) {
        if !has_strategy_of_contains(operator, declared) {
            is_valid = false;
            let message = format!(
                "operator {} is not of strategy 2 for search",
                operators::display(operator)
            );
            info(unsupported(message, "See docs/index.md."));
        }
    }
    is_valid
}
