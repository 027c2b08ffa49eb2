//! VACUUM: there is nothing to remove, since no place of a row is kept. Bits of rows that are gone stay until REINDEX;
//! they make questions slower and never wrong.

use crate::pg::relation::Relation;
use crate::pg::vacuum::{Counts, Vacuum};

/// What a pass over the index found. It tells of no row: so CREATE INDEX CONCURRENTLY, which asks in this way what the
/// index has, gives it every row again. That is cheap, as bits that are set need nothing.
pub fn bulk_delete() -> Counts {
    Counts::default()
}

/// What is said of the index at the end.
pub fn cleanup(index: Relation, vacuum: &Vacuum) -> Counts {
    Counts {
        pages: index.pages(),
        rows: vacuum.table_rows(),
        // How many of the table's rows a partial index has is known from its build only.
        is_estimate: vacuum.is_estimate() || index.is_partial(),
        removed: 0.0,
    }
}
