//! `bloom_index_check` of an index over filters: whether each row has a slot with all bits of its filter.

use super::super::opened::Named;
use super::super::page::{Failure, missed};
use super::column::Index;
use crate::pg::error::{Result, raise};
use crate::pg::interrupt;
use crate::pg::relation::PAGE_BYTES;
use crate::pg::snapshot::Latest;
use crate::pg::table::{Row, scan_for_check};
use crate::pg::varlena::Value;
use pg_bloom_core::View;
use pg_bloom_core::page::Pages;
use pg_bloom_core::rows::{Directory, Group, RowId, RowPage, Slot, State, slot_bits};
use std::collections::HashMap;

/// The slots of all rows.
type Slots = HashMap<RowId, Vec<(RowPage, u16)>>;

/// Looks for every row. Returns how many there are.
///
/// # Errors
/// XX002 with the first one that is missed, and for damage.
pub fn check(named: &Named) -> Result<i64> {
    let relation = named.index();
    // Rows that the snapshot sees got their slots before it was taken.
    let snapshot = Latest::take();
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let slots = all_slots(&index, &directory)?;
    let mut rows = 0i64;
    scan_for_check(named.table(), relation, &snapshot, |row| {
        interrupt::check_for_interrupts();
        match has(&index, &directory, &slots, row) {
            Ok(Some(true)) => rows += 1,
            Ok(Some(false)) => raise(missed(relation, named.table(), row)),
            // One that is NULL is never looked for.
            Ok(None) => {}
            Err(error) => raise(error),
        }
    });
    Ok(rows)
}

fn all_slots(index: &Index, directory: &Directory) -> Result<Slots> {
    let mut slots = Slots::new();
    for (number, _) in directory.groups() {
        for page in directory.row_pages(number) {
            let found = |slot, state, row| {
                if state == State::Used {
                    slots.entry(row).or_default().push((*page, slot));
                }
            };
            let read = index.pages().with(page.page, |bytes| page.rows(bytes, found));
            read.and_then(|read| read.map_err(Failure::from)).map_err(|failure| failure.of(index.relation()))?;
        }
    }
    Ok(slots)
}

/// Whether a row would be found; nothing for one without a filter.
fn has(index: &Index, directory: &Directory, slots: &Slots, row: Row) -> Result<Option<bool>> {
    let Some(value) = row.value else { return Ok(None) };
    // SAFETY: the column is one of filters, as its operator class says.
    let value = unsafe { Value::detoast(value) };
    let filter = View::parse_trusted(value.bytes())?;
    let Some(group) = Group::of(&filter) else { return Ok(Some(true)) };
    let bits = slot_bits(&filter, &group);
    let own = slots.get(&RowId { page: row.page, line: row.line }).map_or(&[][..], Vec::as_slice);
    let mut found = false;
    for (page, number) in own {
        let slot = directory.slot(page, *number).filter(|_| directory.group(page.group) == Some(&group));
        if let Some(slot) = slot {
            found = found || has_bits(index, directory, &group, slot, &bits)?;
        }
    }
    value.free();
    Ok(Some(found))
}

/// Whether the blocks of a slot are those that they should be.
fn has_bits(index: &Index, directory: &Directory, group: &Group, slot: Slot, bits: &[u8]) -> Result<bool> {
    let mut pages = index.pages();
    for (at, offset, expected) in slot.chunks(directory.size, group, bits) {
        let is_there = pages.with(at, |page| {
            let Some(page) = page else { return Ok(false) };
            slot.tile.special().check(page, directory.size, at)?;
            let offset = usize::from(offset);
            Ok(offset + expected.len() <= PAGE_BYTES && page[offset..][..expected.len()] == *expected)
        });
        if !is_there.and_then(|checked| checked).map_err(|failure: Failure| failure.of(index.relation()))? {
            return Ok(false);
        }
    }
    Ok(true)
}
