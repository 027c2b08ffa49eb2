//! VACUUM: there is nothing to remove, since no place of a row is kept. Bits of rows that are gone
//! stay until REINDEX; they make lookups slower and never wrong.
//!
//! To validate an index that CREATE INDEX CONCURRENTLY has built, PostgreSQL asks it as VACUUM does
//! which rows it has, and gives it the others. An index has no places of rows; so the session that
//! built it keeps them in memory until then. Rows that there was no memory for come again, which
//! costs time only: bits that are set need nothing.

use crate::pg::call::error::Result;
use crate::pg::catalog::invalidation;
use crate::pg::method::table::maintenance_memory;
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::{File, Relation};
use pg_bloom_core::index::page::RowSet;
use std::cell::{Cell, RefCell};

/// A pass finds no dead row. At the first request after a build it says which rows the index was
/// made with.
pub fn bulk_delete(index: Relation, dead: &DeadRows) -> Result<Counts> {
    let file = index.file();
    let built = WAITING.with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        let at = waiting.iter().position(|(of, _)| *of == file)?;
        Some(waiting.swap_remove(at).1)
    });
    for row in built.iter().flat_map(RowSet::iter) {
        // The answer doesn't matter: being asked is what the row is marked by.
        dead.has(row);
    }
    Ok(Counts::default())
}

pub fn cleanup(index: Relation, vacuum: &Vacuum, _had_pass: bool) -> Option<Counts> {
    Some(Counts {
        num_pages: index.pages(),
        num_index_tuples: vacuum.num_heap_tuples,
        // How many of the table's rows a partial index has is known from its build only.
        estimated_count: vacuum.estimated_count || index.is_partial(),
        ..Counts::default()
    })
}

/// The share of the memory for maintenance that rows may take.
const SHARE: usize = 8;

session_locals! {
    /// Indexes that wait for their validation: REINDEX CONCURRENTLY builds several before it
    /// validates the first.
    static WAITING: RefCell<Vec<(File, RowSet)>> = const { RefCell::new(Vec::new()) };
    /// Whether the session is notified of the end of a transaction.
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// For the rows of an index whose build has begun.
pub fn built_rows() -> RowSet {
    let taken: usize =
        WAITING.with(|waiting| waiting.borrow().iter().map(|(_, rows)| rows.bytes()).sum());
    RowSet::new((maintenance_memory() / SHARE).saturating_sub(taken))
}

/// Keeps the rows of an index until it is validated, or the transaction fails.
pub fn keep(index: Relation, rows: RowSet) {
    if !IS_WATCHED.with(|is_watched| is_watched.replace(true)) {
        // SAFETY: rows of Rust's are forgotten.
        unsafe { invalidation::watch_aborts(|| drop(WAITING.with(|waiting| waiting.take()))) };
    }
    let file = index.file();
    WAITING.with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        // The rows of an older file of that number must never be reported.
        waiting.retain(|(of, _)| *of != file);
        waiting.push((file, rows));
    });
}
