//! The column of an index over filters: which columns are some, and what asks them.

use crate::error::unsupported;
use crate::index::page::impossible;
use crate::index::session::{self, IndexColumn};
use crate::key_condition::{ASKS, KEY_OF_ARRAY};
use crate::pg::call::error::{Result, info};
use crate::pg::catalog::{self, operators};
use crate::pg::method::scan::is_line;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::filters::{Directory, FilterGroup, RowPage, SlotState};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::kind::Tag;
use pgrx::pg_sys::{self, Oid};

pub type Index<'r> = session::Index<'r, Filters>;

pub struct Filters {
    /// The type `bloom_key`.
    pub key: Oid,
}

impl IndexColumn for Filters {
    type Directory = Directory;

    fn of(relation: Relation) -> Result<Filters> {
        Ok(Filters { key: key_type(relation)? })
    }
}

impl Index<'_> {
    /// Calls `visit` with each slot of a row page that has a row, its state and the row. XX002 for
    /// damage.
    pub fn each_slot(
        &self,
        page: &RowPage,
        visit: impl FnMut(u16, SlotState, RowId),
    ) -> Result<()> {
        self.read(page.page, |bytes| page.rows(bytes, 0..page.slots, visit))
    }
}

/// Checks that a table can have these rows now: XX002 with the first that it can't have. Only the
/// access method `heap` has them on the pages of its file.
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

/// Whether the filters of a group can be probed for text. It can't be known of those that have
/// nothing in the index.
pub fn is_of_text(group: &FilterGroup) -> bool {
    matches!(group.kind().tag, Tag::Text | Tag::ParquetByteArray)
}

/// The type `bloom_key`: 0A000 for an operator class that asks filters otherwise than they should
/// be asked.
pub fn key_type(relation: Relation) -> Result<Oid> {
    let (family, declared, _) = relation.column_class();
    let handler = relation.handler();
    let key = catalog::type_beside(handler, c"bloom_key");
    let asks = [
        (pg_sys::TEXTOID, c"bloom_contains"),
        (key, c"bloom_contains_key"),
    ];
    let is_own = declared == catalog::type_beside(handler, c"bloom")
        && asks.into_iter().all(|(right, name)| {
            operators::family_member(family, declared, right, ASKS).is_some_and(|operator| {
                catalog::is_beside(operators::function_of(operator), handler, name)
            })
        });
    if is_own {
        return Ok(key);
    }
    let message =
        format!("index \"{}\" has an operator class that does not ask filters", relation.name());
    Err(unsupported(message, "Use the operator class bloom_ops."))
}

/// Who owns the operators' functions is checked when an index is opened.
pub fn validate(family: Oid, declared: Oid) -> bool {
    let mut is_valid = operators::family_function(family, declared, KEY_OF_ARRAY).is_some();
    if !is_valid {
        info(unsupported("the operator class has no support function 2", "See docs/index.md."));
    }
    for operator in &operators::family_operators(family) {
        if operator.amopstrategy != ASKS
            || !operators::is_for_search(operator)
            || operator.amoplefttype != declared
        {
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
