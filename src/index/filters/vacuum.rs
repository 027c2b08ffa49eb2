//! VACUUM: frees the slots of dead rows. The bits of a freed slot stay until the next row gets it.
//!
//! A lookup may read the bits of a slot, and the slot's row only after another row has got the
//! slot. It may then judge the new row by the bits of the old one. That does no harm: the lookup
//! began before the new row was inserted, so its snapshot doesn't see that row.

use super::column::FiltersIndex;
use crate::pg::call::error::Result;
use crate::pg::method::vacuum::{Counts, DeadRows, Vacuum};
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal::{self, Change, Edit};
use crate::pg::version;
use pg_bloom_core::index::filters::{Directory, RowPage};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory::List;

/// A slot of a row page that has a row.
struct OccupiedSlot {
    number: u16,
    row: RowId,
}

/// Does a pass of VACUUM over an index of filters: frees the entries of dead rows, and returns how
/// many it has freed and how many are left.
///
/// Each row has a *slot* in the index: the row's place in the table, on a *row page*, and the bits
/// of its filter elsewhere. Freeing changes only the state on the row page; the bits stay until the
/// next row gets the slot. A row page is first read under a share lock, then changed under an
/// exclusive one, and `dead` is asked under the share lock. Fails with XX002 if the index is
/// damaged.
pub fn bulk_delete(relation: Relation, dead: &DeadRows) -> Result<Counts> {
    let index = FiltersIndex::open(relation)?;
    let directory = index.directory()?;
    let mut num_live = 0u64;
    let mut num_dead = 0;
    for page in directory.all_row_pages() {
        version::vacuum_delay_point();
        let mut dead_slots = List::new();
        // Slots that are claimed for a row and not filled yet count as occupied, too.
        index.each_slot(page, |number, _, row| {
            if dead.has(row) {
                dead_slots.push(OccupiedSlot { number, row });
            } else {
                num_live += 1;
            }
        })?;
        num_dead += dead_slots.len();
        free_slots(&index, &directory, page, &dead_slots)?;
    }
    Ok(Counts {
        num_pages: relation.pages(),
        num_index_tuples: num_live as f64,
        tuples_removed: num_dead as f64,
        ..Counts::default()
    })
}

/// Frees these slots of a row page. A *row page* is a page of an index over filters that says for
/// each *slot*, a row's entry in the index, which row of the table has it. A slot that has another
/// row by now is left as it is.
///
/// The page is locked exclusively for up to 64 slots at a time, which share a WAL record. Fails
/// with XX002 if the page is damaged.
fn free_slots(
    index: &FiltersIndex,
    directory: &Directory,
    page: &RowPage,
    slots: &[OccupiedSlot],
) -> Result<()> {
    for slots_of_wal_record in slots.chunks(wal::MAX_PIECES) {
        let mut locked = index.pages().existing(page.number, &directory.chain)?.exclusive();
        let mut changes = List::with_capacity(slots_of_wal_record.len());
        for slot in slots_of_wal_record {
            // No other VACUUM runs on this table, and the place of a dead row gets no other row
            // before VACUUM is done with it. So a slot with this row is still the dead row's.
            let (_, row_now) = index.checked(page.slot(&locked, slot.number))?;
            if row_now == slot.row {
                changes.push(page.free(slot.number));
            }
        }
        wal::change(&mut [Edit::prepare(&mut locked, Change::Bytes(&changes))]);
    }
    Ok(())
}

/// Returns what VACUUM notes about an index at its end: its size in pages, and the table's number
/// of rows as an estimate of its own. Returns `None` after a pass of this VACUUM, which has counted
/// the rows: then the pass's numbers stay.
pub fn cleanup(index: Relation, vacuum: &Vacuum, had_pass: bool) -> Option<Counts> {
    if had_pass {
        return None;
    }
    Some(Counts {
        num_pages: index.pages(),
        num_index_tuples: vacuum.num_heap_tuples,
        estimated_count: true,
        ..Counts::default()
    })
}
