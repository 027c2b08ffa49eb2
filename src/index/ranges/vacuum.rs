//! VACUUM, and the validation of an index by CREATE INDEX CONCURRENTLY.
//!
//! VACUUM has nothing to remove, since an index over ranges doesn't know where single rows are.
//! Bits of rows that are gone stay until REINDEX; they make lookups slower and never wrong.
//!
//! CREATE INDEX CONCURRENTLY asks a new index, in the way of VACUUM, which rows it has, and inserts
//! the others. The session that builds the index therefore keeps the rows' places in memory until
//! it is asked. Rows for which there was no memory are inserted again, which costs time and changes
//! nothing: their bits are set already.

use crate::pg::call::error::Result;
use crate::pg::catalog::invalidation;
use crate::pg::method::table::maintenance_memory;
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::{File, Relation};
use pg_bloom_core::index::page::RowSet;
use pg_bloom_core::memory::List;
use std::cell::{Cell, RefCell};

/// Does a pass of VACUUM over an index, which frees nothing: an index over ranges of pages doesn't
/// know single rows. The counts are zeros.
///
/// CREATE INDEX CONCURRENTLY calls this, too, to hear which rows the index has: it inserts the
/// others. So the first pass after this session has built the index calls `dead.has` with each row
/// that the index was built with.
pub fn bulk_delete(index: Relation, dead: &DeadRows) -> Result<Counts> {
    let file = index.file();
    let rows = UNVALIDATED.with(|indexes| {
        let mut indexes = indexes.borrow_mut();
        let place = indexes.iter().position(|index| index.file == file)?;
        Some(indexes.swap_remove(place).rows)
    });
    for row in rows.iter().flat_map(RowSet::iter) {
        // PostgreSQL notes each row that it is asked about. Its answer, that no row is dead, is of
        // no use here.
        dead.has(row);
    }
    Ok(Counts::default())
}

/// Returns what VACUUM notes about an index at its end: its size in pages, and the table's number
/// of rows as its own. The number is marked as an estimate if VACUUM's is one, or if the index is
/// partial.
pub fn cleanup(index: Relation, vacuum: &Vacuum, _had_pass: bool) -> Option<Counts> {
    Some(Counts {
        num_pages: index.pages(),
        num_index_tuples: vacuum.num_heap_tuples,
        // A partial index has fewer rows; how many, only its build has counted.
        estimated_count: vacuum.estimated_count || index.is_partial(),
        ..Counts::default()
    })
}

/// The rows of all indexes that wait for their validation take at most maintenance_work_mem divided
/// by this.
const SHARE_OF_MEMORY: usize = 8;

/// An index that this session has built with CONCURRENTLY, and that PostgreSQL has not validated
/// yet.
struct UnvalidatedIndex {
    file: File,
    rows: RowSet,
}

session_locals! {
    /// Indexes that wait for their validation: REINDEX CONCURRENTLY builds several before it
    /// validates the first.
    static UNVALIDATED: RefCell<List<UnvalidatedIndex>> = const { RefCell::new(List::new()) };
    /// Whether PostgreSQL calls [`forget_unvalidated`] when a transaction of this session fails.
    static WATCHES_ABORTS: Cell<bool> = const { Cell::new(false) };
}

/// Returns an empty set for the rows of an index whose build by CREATE INDEX CONCURRENTLY begins.
/// The set takes no more memory than the rows of other indexes that wait for their validation have
/// left.
pub fn empty_row_set() -> RowSet {
    let bytes_in_use: usize =
        UNVALIDATED.with(|indexes| indexes.borrow().iter().map(|index| index.rows.bytes()).sum());
    RowSet::new((maintenance_memory() / SHARE_OF_MEMORY).saturating_sub(bytes_in_use))
}

/// Keeps in this session's memory the rows with which CREATE INDEX CONCURRENTLY has built an index.
/// PostgreSQL asks for them when it validates the index: [`bulk_delete`] names and forgets them.
///
/// If a transaction of this session fails before that, no index will be validated, so the rows of
/// all indexes are forgotten.
pub fn keep_until_validated(index: Relation, rows: RowSet) {
    let watches_aborts = WATCHES_ABORTS.with(|watches| watches.replace(true));
    if !watches_aborts {
        // SAFETY: the function frees memory of Rust's, and calls nothing of PostgreSQL.
        unsafe { invalidation::watch_aborts(forget_unvalidated) };
    }

    let file = index.file();
    UNVALIDATED.with(|indexes| {
        let mut indexes = indexes.borrow_mut();
        // A file's number may be given again after the file was dropped: rows of the older file
        // must never be named.
        indexes.retain(|index| index.file != file);
        indexes.push(UnvalidatedIndex { file, rows });
    });
}

/// Frees the rows of all indexes that wait for their validation.
fn forget_unvalidated() {
    UNVALIDATED.with(|indexes| drop(indexes.take()));
}
