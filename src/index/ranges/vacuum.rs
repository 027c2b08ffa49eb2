//! VACUUM: there is nothing to remove, since no place of a row is kept. Bits of rows that are gone stay until REINDEX;
//! they make lookups slower and never wrong.

use super::built_rows;
use crate::pg::call::error::Result;
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::Relation;

/// What a pass over the index found: no dead row. CREATE INDEX CONCURRENTLY asks in this way what the index has.
pub fn bulk_delete(index: Relation, dead: &DeadRows) -> Result<Counts> {
    built_rows::tell(index, dead);
    Ok(Counts::default())
}

pub fn cleanup(vacuum: &Vacuum, _had_pass: bool) -> Option<Counts> {
    Some(Counts {
        pages: vacuum.index.pages(),
        rows: vacuum.table_rows,
        // How many of the table's rows a partial index has is known from its build only.
        is_estimate: vacuum.is_estimate || vacuum.index.is_partial(),
        removed: 0.0,
    })
}
