//! VACUUM: slots of rows that are gone become free. Their blocks stay, and are written over by the
//! next that has the slot.
//!
//! A lookup may read the blocks of a slot before another row gets it, and the slot's owner after
//! that. Then it may take the new row for a match by the old blocks, or for none; but it began
//! before that row was inserted, and can't see it.

use super::column::Index;
use crate::pg::call::error::Result;
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal::{self, Change, Edit};
use crate::pg::version;
use pg_bloom_core::index::page::RowId;

/// Frees the slots of dead rows.
pub fn bulk_delete(relation: Relation, dead: &DeadRows) -> Result<Counts> {
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let mut counts = Counts::default();
    for page in directory.all_row_pages() {
        version::vacuum_delay_point();
        let mut rows: Vec<(u16, RowId)> = Vec::new();
        index.each_slot(page, |slot, _, row| rows.push((slot, row)))?;
        counts.num_index_tuples += rows.len() as f64;
        rows.retain(|&(_, row)| dead.has(row));
        counts.num_index_tuples -= rows.len() as f64;
        counts.tuples_removed += rows.len() as f64;
        // Many bytes of a page take several records.
        for rows in rows.chunks(wal::MAX_PIECES) {
            let mut locked = index.pages().existing(page.page, &directory.chain)?.exclusive();
            let mut bytes = Vec::with_capacity(rows.len());
            for &(slot, row) in rows {
                // Only one VACUUM frees slots at a time, and a dead row's place gets no other row
                // before.
                if index.checked(page.slot(&locked, slot))?.1 == row {
                    bytes.push(page.free(slot));
                }
            }
            wal::change(&mut [Edit::new(&mut locked, Change::Bytes(&bytes))]);
        }
    }
    counts.num_pages = relation.pages();
    Ok(counts)
}

pub fn cleanup(index: Relation, vacuum: &Vacuum, had_pass: bool) -> Option<Counts> {
    let (num_pages, num_index_tuples) = (index.pages(), vacuum.num_heap_tuples);
    (!had_pass).then_some(Counts {
        num_pages,
        num_index_tuples,
        estimated_count: true,
        ..Counts::default()
    })
}
