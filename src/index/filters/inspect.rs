//! `bloom_index_info` of an index over filters, whose filters have rates of their own, so what is
//! said of rates is NULL; and `bloom_index_check`: whether each row has a slot with all bits of its
//! filter.

use super::column::{Index, check_rows};
use crate::element::with_value;
use crate::heap::HeapPage;
use crate::index::live_rows::each_live_row;
use crate::index::named_index::NamedIndex;
use crate::index::page::{PAGE_SIZE, impossible, missed, wrong_row};
use crate::pg::call::{Result, interrupt};
use crate::pg::method::table::Latest;
use crate::pg::storage::buffer::TablePage;
use crate::pg::storage::relation::Relation;
use crate::pg::value::row::ResultColumn::{self, F64, I32, I64, Null};
use pg_bloom_core::View;
use pg_bloom_core::index::filters::{
    Directory, FilterGroup, Holds, RowPage, Slot, SlotChunk, SlotState, slot_bits,
};
use pg_bloom_core::index::page::{Damage, RowId};
use std::collections::HashMap;

pub fn info(named: &NamedIndex) -> Result<[ResultColumn; 18]> {
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let (mut filters, mut slots, mut always) = (0, 0, 0);
    for page in directory.all_row_pages() {
        let is_always = directory
            .group(page.group)
            .is_some_and(|group| group.holds == Holds::Nothing);
        slots += i64::from(page.slots);
        index.each_slot(page, |_, state, _| {
            filters += i64::from(state == SlotState::Used);
            always += i64::from(state == SlotState::Used && is_always);
        })?;
    }
    Ok([
        I64(named.index().pages().into()),
        I64(named.table().pages().into()),
        Null, // pages_per_range
        Null, // ranges
        I32(1),
        I64(directory.chain.rows_built.cast_signed()),
        Null, // elements
        Null, // bits_per_element
        Null, // target_fpr
        Null, // current_fpr
        Null, // overfull_ranges
        F64(directory.pages_per_lookup() as f64),
        I64(filters),
        I64(slots),
        I64(always),
        Null, // keys_per_row
        Null, // keys_per_range
        Null, // ranges_per_page
    ])
}

type Slots = HashMap<RowId, Vec<(RowPage, u16)>>;

pub fn check(named: &NamedIndex) -> Result<i64> {
    let relation = named.index();
    // Rows that the snapshot sees got their slots before it was taken.
    let snapshot = Latest::take(named.table());
    let index = Index::of(relation)?;
    let directory = index.directory()?;
    let mut slots = all_slots(&index, &directory, named.table())?;
    let mut rows = 0i64;
    each_live_row(named.table(), relation, &snapshot, |row, value| {
        interrupt::check_for_interrupts();
        let own = slots.remove(&row).unwrap_or_default();
        // One that is NULL is never looked for.
        rows += i64::from(value.is_some());
        let slots_of =
            |filter: &[u8]| slots_of(&index, &directory, &own, &View::parse_trusted(filter)?);
        // SAFETY: the column is one of filters, as its operator class says.
        let found = value
            .map(|value| unsafe { with_value(value, slots_of) })
            .transpose()?;
        let (needed, right) = found.unwrap_or_default();
        if right < needed {
            return Err(missed(relation, named.table(), row));
        }
        if right < own.len() {
            let detail = "A query that uses the index may find this row where it should not.";
            return Err(wrong_row(relation, named.table(), row, "has another filter for", detail));
        }
        Ok(())
    })?;
    check_unseen(&index, named.table(), slots)?;
    Ok(rows)
}

/// The slots of all rows, once all pages were looked at. Fails for a row that the table can't have.
fn all_slots(index: &Index, directory: &Directory, table: Relation) -> Result<Slots> {
    let mut slots = Slots::new();
    for (number, _) in directory.groups() {
        for tile in directory.tiles(number) {
            index.pages().check_each(tile.pages(), tile.special())?;
        }
    }
    for page in directory.all_row_pages() {
        index.pages().check_each(page.page..page.page + 1, page.special())?;
        index.each_slot(page, |slot, state, row| {
            if state == SlotState::Used {
                slots.entry(row).or_default().push((*page, slot));
            }
        })?;
    }
    // Now the table is at least as long as it was when they were read.
    check_rows(index.relation, table, slots.keys().copied())?;
    Ok(slots)
}

/// Checks slots of rows that the scan has not seen: the table has at least their lines, since
/// VACUUM frees a slot before the line of its row. So both are looked at while the page of the slot
/// is locked, before that of the table.
fn check_unseen(index: &Index, table: Relation, slots: Slots) -> Result<()> {
    if !table.is_heap() {
        return Ok(());
    }
    let mut unseen: Vec<(RowId, Vec<(RowPage, u16)>)> = slots.into_iter().collect();
    unseen.sort_unstable_by_key(|(row, _)| *row);
    for (row, own) in unseen {
        interrupt::check_for_interrupts();
        let table_page = TablePage::read(table, row.page);
        let is_there = || HeapPage::lock(&table_page).has_line(row.line);
        for (page, number) in own {
            let is_right = index.read(page.page, |bytes| match page.written(bytes)? {
                Some(bytes) => {
                    Ok(page.slot(bytes, number)? != (SlotState::Used, row) || is_there())
                }
                None => Ok(true),
            })?;
            if !is_right {
                return Err(impossible(index.relation, table, row));
            }
        }
    }
    Ok(())
}

/// How many of a row's own slots must have the bits of its filter, at least, and how many have
/// them.
fn slots_of(
    index: &Index,
    directory: &Directory,
    own: &[(RowPage, u16)],
    filter: &View,
) -> Result<(usize, usize)> {
    let Some(group) = FilterGroup::of_filter(filter) else {
        return Ok((0, 0));
    };
    let bits = slot_bits(filter, &group);
    let mut right = 0;
    for (page, number) in own {
        if directory.group(page.group) == Some(&group)
            && let Some(slot) = directory.slot(page, *number)
        {
            right += usize::from(has_bits(index, slot, &bits)?);
        }
    }
    Ok((1, right))
}

/// Whether the blocks of a slot are these bits.
fn has_bits(index: &Index, slot: Slot, bits: &[u8]) -> Result<bool> {
    for SlotChunk { page: at, offset, bytes: expected } in slot.chunks(bits) {
        let is_there = index.read(at, |page| {
            if page.is_none() {
                return Ok(false);
            }
            let page = slot
                .tile
                .special()
                .written(page, PAGE_SIZE, at)?
                .ok_or_else(|| Damage::empty(at))?;
            Ok(page
                .get(offset.into()..)
                .is_some_and(|rest| rest.starts_with(expected)))
        })?;
        if !is_there {
            return Ok(false);
        }
    }
    Ok(true)
}
