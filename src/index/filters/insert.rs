//! INSERT, and UPDATE that changes the filter: a slot for the new row.
//!
//! ```text
//! claim      row page: the slot is the row's, and no lookup finds it       one record
//! blocks     some bytes to each page of the tile                             a record for four pages
//! publish    row page: lookups find it                                     one record
//! ```
//!
//! No lock is held from one record to the next. An error or a crash in between leaves a slot that
//! is claimed by a row that is dead, which VACUUM frees as those of other dead rows. The last
//! record precedes the commit: so a session that can see the row finds it.

use super::column::{Index, is_of_text};
use crate::element::with_value;
use crate::index::page::prepare;
use crate::pg::call::{Element, Error, Result, SqlState, interrupt};
use crate::pg::catalog::invalidation;
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::View;
use pg_bloom_core::index::filters::{
    Directory, FilterGroup, RowPage, Slot, SlotChunk, SlotState, slot_bits,
};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory;
use std::rc::Rc;

/// # Safety
/// The value must be a filter.
pub unsafe fn insert(relation: Relation, value: Element, row: RowId) -> Result<()> {
    let add = |filter: &[u8]| {
        let filter = View::parse_trusted(filter)?;
        let Some(group) = FilterGroup::of_filter(&filter) else {
            return Ok(());
        };
        let bits = slot_bits(&filter, &group);
        let index = Index::of(relation)?;
        let (directory, page, slot) = claim(&index, &group, row)?;
        if directory.group(0).is_some_and(is_of_text) && !is_of_text(&group) {
            // Plans may rely on there being text only.
            invalidation::plan_again(relation.table());
        }
        write(&index, &directory, slot, &bits)?;
        publish(&index, &directory, &page, slot, row)
    };
    // SAFETY: promised by the caller.
    unsafe { with_value(value, add) }
}

/// Finds a free slot, and makes it the row's.
fn claim(index: &Index, group: &FilterGroup, row: RowId) -> Result<(Rc<Directory>, RowPage, Slot)> {
    let mut directory = index.known_directory();
    loop {
        if let Some(number) = directory.group_number(group) {
            let pages = directory.row_pages(number);
            // New rows mostly go to the newest tile; where it is full, slots that were freed come
            // first.
            for page in pages.last().into_iter().chain(pages) {
                if let Some(slot) = claim_in(index, &directory, page, row)? {
                    return Ok((directory.clone(), *page, slot));
                }
            }
        }
        directory = grow(index, &directory, group)?;
    }
}

/// Claims a slot of one row page, if it has a free one, and the pages of its tile are sound.
fn claim_in(
    index: &Index,
    directory: &Directory,
    page: &RowPage,
    row: RowId,
) -> Result<Option<Slot>> {
    let free = |bytes: &[u8]| -> Result<Option<Slot>> {
        Ok(index
            .checked(page.first_free(Some(bytes)))?
            .and_then(|number| directory.slot(page, number)))
    };
    let pin = index.pages().existing(page.page, &directory.chain)?;
    let Some(Slot { tile, .. }) = free(&pin.shared())? else {
        return Ok(None);
    };
    // A row that is refused must not have taken a slot.
    index.pages().check_each(tile.pages(), tile.special())?;
    let mut locked = pin.exclusive();
    let Some(slot) = free(&locked)? else {
        return Ok(None);
    };
    if slot.tile != tile {
        // Others took the last slots of the tile in the meantime.
        drop(locked);
        return claim_in(index, directory, page, row);
    }
    prepare(index.relation, page.special(), page.page, &mut locked)?;
    wal::change(&mut [Edit::new(
        &mut locked,
        Change::Bytes(&page.claim(slot.number, row)),
    )]);
    Ok(Some(slot))
}

fn write(index: &Index, directory: &Directory, slot: Slot, bits: &[u8]) -> Result<()> {
    let pages = index.pages();
    let chunks: Vec<SlotChunk<'_>> = memory::collect(slot.chunks(bits));
    for batch in chunks.chunks(wal::MAX_PAGES) {
        interrupt::check_for_interrupts();
        let mut locked = Vec::with_capacity(wal::MAX_PAGES);
        for chunk in batch {
            let mut page = pages.existing(chunk.page, &directory.chain)?.exclusive();
            prepare(index.relation, slot.tile.special(), chunk.page, &mut page)?;
            locked.push(page);
        }
        let edits = locked.iter_mut().zip(batch);
        let edits =
            edits.map(|(page, chunk)| Edit::new(page, Change::Piece(chunk.offset, chunk.bytes)));
        wal::change(&mut edits.collect::<Vec<_>>());
    }
    Ok(())
}

/// Lets lookups find a row whose blocks are written.
fn publish(
    index: &Index,
    directory: &Directory,
    page: &RowPage,
    slot: Slot,
    row: RowId,
) -> Result<()> {
    let mut locked = index.pages().existing(page.page, &directory.chain)?.exclusive();
    if index.checked(page.slot(&locked, slot.number))? != (SlotState::Claimed, row) {
        let (number, block, index) = (slot.number, page.page, index.relation.name());
        let message = format!("slot {number} of block {block} of index \"{index}\" was taken");
        return Err(Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).hint("REINDEX it."));
    }
    wal::change(&mut [Edit::new(
        &mut locked,
        Change::Bytes(&[page.publish(slot.number)]),
    )]);
    Ok(())
}

/// Adds a tile for a group, whose pages must have no contents, if nobody else added one in the
/// meantime.
#[cold]
fn grow(index: &Index, searched: &Rc<Directory>, group: &FilterGroup) -> Result<Rc<Directory>> {
    let meta = index.pages().meta()?.exclusive();
    let directory = index.directory_under(&meta)?;
    if directory != *searched {
        return Ok(directory);
    }
    let growth = directory.grow(group)?;
    index.pages().check_new(&directory.chain, &growth.directory.chain)?;
    index.write_directory(meta, growth)
}
