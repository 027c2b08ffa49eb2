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
use std::cell::{Cell, RefCell};

/// Does a pass of VACUUM over an index, which frees nothing: an index over ranges of pages doesn't
/// know single rows. The counts are zeros.
///
/// CREATE INDEX CONCURRENTLY calls this, too, to hear which rows the index has: it inserts the
/// others. So the first pass after this session has built the index calls `dead.has` with each row
/// that the index was built with.
pub fn bulk_delete(index: Relation, dead: &DeadRows) -> Result<Counts> {
    let file = index.file();
    let rows = BUILT.with(|built| {
        let mut built_indexes = built.borrow_mut();
        let place = built_indexes.iter().position(|index| index.file == file)?;
        Some(built_indexes.swap_remove(place).rows)
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

/// An index that this session has built, and that isn't validated yet.
struct BuiltIndex {
    file: File,
    rows: RowSet,
}

session_locals! {
    /// Indexes that wait for their validation: REINDEX CONCURRENTLY builds several before it
    /// validates the first.
    static BUILT: RefCell<Vec<BuiltIndex>> = const { RefCell::new(Vec::new()) };
    /// Whether the session is notified when a transaction fails.
    static WATCHES_ABORTS: Cell<bool> = const { Cell::new(false) };
}

/// Returns an empty set for the rows of an index whose build begins. It takes no more memory than
/// other indexes that wait have left.
pub fn built_rows() -> RowSet {
    let bytes_in_use: usize =
        BUILT.with(|built| built.borrow().iter().map(|index| index.rows.bytes()).sum());
    RowSet::new((maintenance_memory() / SHARE_OF_MEMORY).saturating_sub(bytes_in_use))
}

/// Keeps in this session which rows an index was built with, until CREATE INDEX CONCURRENTLY
/// validates the index and asks for them, or a transaction of the session fails. They replace any
/// rows that were kept for the same file.
pub fn keep(index: Relation, rows: RowSet) {
    if !WATCHES_ABORTS.with(|watches| watches.replace(true)) {
        // SAFETY: the function frees memory of Rust's, and calls nothing of PostgreSQL.
        unsafe { invalidation::watch_aborts(|| drop(BUILT.with(|built| built.take()))) };
    }
    let file = index.file();
    BUILT.with(|built| {
        let mut built = built.borrow_mut();
        // A file's number may be given again after the file was dropped: rows of the older file
        // must never be named.
        built.retain(|index| index.file != file);
        built.push(BuiltIndex { file, rows });
    });
}
