//! `bloom_index_info` of an index over filters, whose filters have rates of their own, so what is
//! said of rates is NULL; and `bloom_index_check`: whether each row has a slot with all bits of its
//! filter.

use super::column::{FiltersIndex, check_rows};
use crate::element::with_value;
use crate::heap::HeapPage;
use crate::index::kind::IndexInfo;
use crate::index::live_rows::each_live_row;
use crate::index::named_index::NamedIndex;
use crate::index::page::{PAGE_SIZE, impossible, missed, wrong_row};
use crate::pg::call::{Result, interrupt};
use crate::pg::method::table::Latest;
use crate::pg::storage::buffer::TablePage;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::View;
use pg_bloom_core::index::filters::{
    Directory, FilterGroup, Holds, RowPage, Slot, SlotChunk, SlotState, slot_bits,
};
use pg_bloom_core::index::page::{Damage, RowId};
use pg_bloom_core::memory::List;
use std::collections::HashMap;

/// Returns the row of the SQL function `bloom_index_info` for an index over a column of filters.
/// Each row of the table has a *slot*, its entry in the index, with a copy of its filter's bits. The
/// slots are counted on all *row pages*, which say what row each slot has. Fails with XX002 if the
/// index is damaged.
pub fn info(named: &NamedIndex) -> Result<IndexInfo> {
    let index = FiltersIndex::open(named.index())?;
    let directory = index.directory()?;
    let mut filters = 0;
    let mut slots = 0;
    let mut always_probed = 0;
    for page in directory.all_row_pages() {
        // Filters that an index can't look into have no bits in it. Every lookup finds their rows,
        // and PostgreSQL probes the filters themselves.
        let group = directory.group(page.group);
        let has_no_bits = group.is_some_and(|group| group.holds == Holds::Nothing);
        slots += u64::from(page.slots);
        index.each_slot(page, |_number, state, _row| {
            let is_used = state == SlotState::Used;
            filters += u64::from(is_used);
            always_probed += u64::from(is_used && has_no_bits);
        })?;
    }
    Ok(IndexInfo {
        pages: named.index().pages().into(),
        table_pages: named.table().pages().into(),
        levels: 1,
        rows_built: directory.chain.rows_built,
        pages_per_lookup: directory.pages_per_lookup() as f64,
        filters: Some(filters),
        slots: Some(slots),
        always_probed: Some(always_probed),
        ..IndexInfo::default()
    })
}

/// A slot: a row page, and the number of the slot there.
type SlotOfRow = (RowPage, u16);

/// The slots that each row of the table has.
type SlotsByRow = HashMap<RowId, List<SlotOfRow>>;

/// Checks an index over a column of filters against its table, for the SQL function
/// `bloom_index_check`, and returns how many rows have a filter that isn't NULL.
///
/// A row's *slot* is its entry in the index, with a copy of the filter's bits. The slots of all
/// rows are read into memory. Then each row that a snapshot taken here sees must have a slot with
/// the bits of its filter, and none with others. The slots of other rows must at least be for a
/// line that the table has.
///
/// Fails with XX002 if a page is damaged, if a row has no such slot or another one, or if the table
/// can't have the row of a slot.
pub fn check(named: &NamedIndex) -> Result<i64> {
    let relation = named.index();
    // Rows that the snapshot sees got their slots before it was taken.
    let snapshot = Latest::take(named.table());
    let index = FiltersIndex::open(relation)?;
    let directory = index.directory()?;
    let mut slots = all_slots(&index, &directory, named.table())?;
    let mut rows = 0i64;
    each_live_row(named.table(), relation, &snapshot, |row, value| {
        interrupt::check_for_interrupts();
        let slots_of_row = slots.remove(&row).unwrap_or_default();
        // A filter that is NULL is never looked for.
        let Some(value) = value else {
            return check_row(named, row, MatchingSlots::NONE_NEEDED, slots_of_row.len());
        };
        rows += 1;
        let count = |filter: &[u8]| {
            let filter = View::parse_trusted(filter)?;
            count_matching_slots(&index, &directory, &slots_of_row, &filter)
        };
        // SAFETY: the column is one of filters, as its operator class says.
        let matching = unsafe { with_value(value, count) }?;
        check_row(named, row, matching, slots_of_row.len())
    })?;
    check_slots_of_unseen_rows(&index, named.table(), slots)?;
    Ok(rows)
}

/// How many slots of a row have all bits of its filter.
struct MatchingSlots {
    /// How many must have them, at least: one, unless lookups never ask for the filter.
    needed: usize,
    found: usize,
}

impl MatchingSlots {
    const NONE_NEEDED: MatchingSlots = MatchingSlots { needed: 0, found: 0 };
}

/// Checks a row that has `slots` slots. Fails with XX002 if too few of them have the bits of its
/// filter, or if one doesn't.
fn check_row(named: &NamedIndex, row: RowId, matching: MatchingSlots, slots: usize) -> Result<()> {
    let (index, table) = (named.index(), named.table());
    if matching.found < matching.needed {
        return Err(missed(index, table, row));
    }
    if matching.found < slots {
        let detail = "A query that uses the index may find this row where it should not.";
        return Err(wrong_row(index, table, row, "has another filter for", detail));
    }
    Ok(())
}

/// Checks each page of an index over filters, and returns the slots of all rows: a *slot* is a
/// row's entry in the index. Slots that are free, or claimed and not filled yet, are left out.
///
/// Fails with XX002 if a page is damaged, or if the table can't have the row of a slot.
fn all_slots(index: &FiltersIndex, directory: &Directory, table: Relation) -> Result<SlotsByRow> {
    for (group, _) in directory.groups() {
        for tile in directory.tiles(group) {
            index.pages().check_each(tile.pages(), tile.special())?;
        }
    }
    let mut slots = SlotsByRow::new();
    for row_page in directory.all_row_pages() {
        index
            .pages()
            .check_each(row_page.number..row_page.number + 1, row_page.special())?;
        index.each_slot(row_page, |slot, state, row| {
            if state == SlotState::Used {
                slots.entry(row).or_default().push((*row_page, slot));
            }
        })?;
    }
    // The table is at least as long now as it was when the slots were read.
    check_rows(index.relation, table, slots.keys().copied())?;
    Ok(slots)
}

/// Checks the slots of rows that the snapshot didn't see: rows of other sessions, and rows that are
/// deleted but not vacuumed yet. The table must still have a line for each: VACUUM frees the slots
/// of a row before its line.
///
/// So while a slot is in use, its row has a line. To see both at one moment, the line is looked at
/// while the slot's page is locked, so that VACUUM can't free the slot in between.
///
/// Fails with XX002 if a slot is in use and its row has no line.
fn check_slots_of_unseen_rows(
    index: &FiltersIndex,
    table: Relation,
    slots: SlotsByRow,
) -> Result<()> {
    // Tables of other access methods have no lines.
    if !table.is_heap() {
        return Ok(());
    }
    let mut rows: List<(RowId, List<SlotOfRow>)> = slots.into_iter().collect();
    rows.sort_unstable_by_key(|(row, _)| *row);
    for (row, slots_of_row) in rows {
        interrupt::check_for_interrupts();
        let table_page = TablePage::read(table, row.page);
        for (row_page, number) in slots_of_row {
            let is_sound = index.read(row_page.number, |bytes| {
                let Some(bytes) = row_page.bytes_if_written(bytes)? else {
                    return Ok(true);
                };
                // Meanwhile the slot may have been freed, and given to another row.
                let is_in_use = row_page.slot(bytes, number)? == (SlotState::Used, row);
                Ok(!is_in_use || HeapPage::lock(&table_page).has_line(row.line))
            })?;
            if !is_sound {
                return Err(impossible(index.relation, table, row));
            }
        }
    }
    Ok(())
}

/// Counts those of a row's slots, its entries in the index, whose bits are the ones of the row's
/// filter. One is needed, or none if the filter is empty, since no lookup finds an empty filter. A
/// slot in another group, the filters of another type or size, doesn't count. Fails with XX002 if a
/// page is damaged.
fn count_matching_slots(
    index: &FiltersIndex,
    directory: &Directory,
    slots_of_row: &[SlotOfRow],
    filter: &View,
) -> Result<MatchingSlots> {
    let Some(group) = FilterGroup::of_filter(filter) else {
        return Ok(MatchingSlots::NONE_NEEDED);
    };
    let bits = slot_bits(filter, &group);
    let mut found = 0;
    for (row_page, number) in slots_of_row {
        if directory.group(row_page.group) == Some(&group)
            && let Some(slot) = directory.slot(row_page, *number)
        {
            found += usize::from(has_bits(index, slot, &bits)?);
        }
    }
    Ok(MatchingSlots { needed: 1, found })
}

/// Returns whether a slot, the entry of a row in an index over filters, has exactly these bits. The
/// slot has some bytes on each page of its tile; a page that was never written has none of them.
/// Each page is locked for sharing while it is read. Fails with XX002 if a page is damaged.
fn has_bits(index: &FiltersIndex, slot: Slot, bits: &[u8]) -> Result<bool> {
    for SlotChunk { page: number, offset, bytes: expected } in slot.chunks(bits) {
        let is_there = index.read(number, |page| {
            // The file may end before pages that were allocated, but not yet written.
            if page.is_none() {
                return Ok(false);
            }
            let written = slot.tile.special().bytes_if_written(page, PAGE_SIZE, number)?;
            let page = written.ok_or_else(|| Damage::empty(number))?;
            let from_slot = page.get(offset.into()..);
            Ok(from_slot.is_some_and(|bytes| bytes.starts_with(expected)))
        })?;
        if !is_there {
            return Ok(false);
        }
    }
    Ok(true)
}
