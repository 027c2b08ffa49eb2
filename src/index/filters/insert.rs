//! INSERT, and UPDATE that changes the filter: a slot for the new row.
//!
//! ```text
//! claim      row page: the slot is the row's, and no lookup finds it       one record
//! blocks     some bytes to each page of the tile                             a record for four pages
//! publish    row page: lookups find it                                     one record
//! ```
//!
//! No lock is held from one record to the next. An error or a crash in between leaves a slot that
//! is claimed by a dead row; VACUUM frees it as it frees the slots of other dead rows. The last
//! record precedes the commit, so a session that sees the row finds it.

use super::column::{FiltersIndex, is_of_text};
use crate::element::with_value;
use crate::index::page::prepare;
use crate::pg::call::{Error, Result, SqlState, SqlValue, interrupt};
use crate::pg::catalog::invalidation;
use crate::pg::storage::relation::Relation;
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::View;
use pg_bloom_core::index::filters::{
    Directory, FilterGroup, RowPage, Slot, SlotChunk, SlotState, slot_bits,
};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory::List;
use std::rc::Rc;

/// Adds a row with a filter to an index over a column of filters. The row gets a *slot*, an entry
/// with a copy of the filter's bits. A filter without elements needs none: no lookup finds it.
///
/// The slot is claimed, its bits are written, and then lookups may find it: three or more WAL
/// records, between which no page is locked. If the index had only filters of text and this one
/// isn't, all sessions plan their queries of the table again.
///
/// Fails with 22P03 for a damaged filter, with 54000 if the index would have too many pages, and
/// with XX002 if it is damaged.
///
/// # Safety
/// The value must be a filter.
pub unsafe fn insert(relation: Relation, value: SqlValue, row: RowId) -> Result<()> {
    let add = |filter: &[u8]| {
        let filter = View::parse_trusted(filter)?;
        let Some(group) = FilterGroup::of_filter(&filter) else {
            return Ok(());
        };
        let bits = slot_bits(&filter, &group);
        let index = FiltersIndex::open(relation)?;
        let claimed = claim(&index, &group, row)?;
        // Existing plans may rely on all filters being of text, but not if those of the first group
        // aren't.
        let may_have_had_only_text = claimed.directory.group(0).is_some_and(is_of_text);
        if may_have_had_only_text && !is_of_text(&group) {
            invalidation::plan_again(relation.table());
        }
        write(&index, &claimed, &bits)?;
        publish(&index, &claimed, row)
    };
    // SAFETY: promised by the caller.
    unsafe { with_value(value, add) }
}

/// A slot that was claimed for a row.
struct ClaimedSlot {
    directory: Rc<Directory>,
    /// The row page that has the row of the slot.
    page: RowPage,
    slot: Slot,
}

/// Claims a free slot, an entry of the index, for a row. From then on no other row gets the slot,
/// and lookups don't find the row yet. A *group* is the filters of one key kind, layout and size,
/// whose slots are alike. If all slots of the group are in use, a *tile*, pages with more slots, is
/// added.
///
/// Fails with 54000 if the index would have too many pages, and with XX002 if it is damaged; then
/// nothing is claimed.
fn claim(index: &FiltersIndex, group: &FilterGroup, row: RowId) -> Result<ClaimedSlot> {
    let mut directory = index.known_directory();
    loop {
        if let Some(number) = directory.group_number(group) {
            let pages = directory.row_pages(number);
            // The newest tile has free slots in most cases. If it is full, slots that VACUUM has
            // freed are looked for, from the oldest tile on.
            for page in pages.last().into_iter().chain(pages) {
                if let Some(slot) = claim_in(index, &directory, page, row)? {
                    let page = *page;
                    return Ok(ClaimedSlot { directory: directory.clone(), page, slot });
                }
            }
        }
        directory = grow(index, &directory, group)?;
    }
}

/// Claims a free slot on a row page for a row: a *slot* is an entry of the index, and a *row page*
/// says which rows some slots have. Returns `None` if the page has no free slot.
///
/// The page is searched under a share lock, and again under an exclusive one before it is changed
/// and logged. The pages with the slot's bits are checked before. Fails with XX002 if one of these
/// pages is damaged; then nothing is claimed.
fn claim_in(
    index: &FiltersIndex,
    directory: &Directory,
    page: &RowPage,
    row: RowId,
) -> Result<Option<Slot>> {
    let first_free_slot = |bytes: &[u8]| -> Result<Option<Slot>> {
        let number = index.checked(page.first_free(Some(bytes)))?;
        Ok(number.and_then(|number| directory.slot(page, number)))
    };
    let pin = index.pages().existing(page.number, &directory.chain)?;
    let Some(free_slot) = first_free_slot(&pin.shared())? else {
        return Ok(None);
    };
    // The pages are checked before the slot is claimed: a row that is refused must not have taken
    // one.
    let tile = free_slot.tile;
    index.pages().check_each(tile.pages(), tile.special())?;

    let mut locked = pin.exclusive();
    let Some(slot) = first_free_slot(&locked)? else {
        return Ok(None);
    };
    if slot.tile != tile {
        // Other sessions took the last slots of the tile in the meantime. The pages of the next
        // tile must be checked, too.
        drop(locked);
        return claim_in(index, directory, page, row);
    }

    prepare(index.relation, page.special(), page.number, &mut locked)?;
    wal::change(&mut [Edit::prepare(
        &mut locked,
        Change::Bytes(&page.claim(slot.number, row)),
    )]);
    Ok(Some(slot))
}

/// Writes the bits of a filter into the slot that was claimed for its row. The slot has some bytes
/// on each page of its tile. Up to four pages at a time are locked exclusively, in the order of
/// their numbers, and share a WAL record. Fails with XX002 if a page is damaged.
fn write(index: &FiltersIndex, claimed: &ClaimedSlot, bits: &[u8]) -> Result<()> {
    let ClaimedSlot { directory, slot, .. } = claimed;
    let pages = index.pages();
    let chunks: List<SlotChunk<'_>> = slot.chunks(bits).collect();
    for chunks_of_record in chunks.chunks(wal::MAX_PAGES) {
        interrupt::check_for_interrupts();
        let mut locked = List::with_capacity(wal::MAX_PAGES);
        for chunk in chunks_of_record {
            let mut page = pages.existing(chunk.page, &directory.chain)?.exclusive();
            prepare(index.relation, slot.tile.special(), chunk.page, &mut page)?;
            locked.push(page);
        }
        let edits = locked.iter_mut().zip(chunks_of_record).map(|(page, chunk)| {
            Edit::prepare(page, Change::Piece { offset: chunk.offset, bytes: chunk.bytes })
        });
        wal::change(&mut edits.collect::<List<_>>());
    }
    Ok(())
}

/// Makes lookups find a row whose filter was added to the index: changes the state of its slot, the
/// row's entry, from claimed to used. [`write()`] must have written the filter's bits to the slot
/// before. The page that has the states of slots is locked exclusively, and the change is logged.
/// Fails with XX002 if the slot isn't claimed for this row any more.
fn publish(index: &FiltersIndex, claimed: &ClaimedSlot, row: RowId) -> Result<()> {
    let ClaimedSlot { directory, page, slot } = claimed;
    let mut locked = index.pages().existing(page.number, &directory.chain)?.exclusive();
    if index.checked(page.slot(&locked, slot.number))? != (SlotState::Claimed, row) {
        let message = format!(
            "slot {} of block {} of index \"{}\" was taken",
            slot.number,
            page.number,
            index.relation.name()
        );
        return Err(Error::new(SqlState::ERRCODE_INDEX_CORRUPTED, message).hint("REINDEX it."));
    }
    wal::change(&mut [Edit::prepare(
        &mut locked,
        Change::Bytes(&[page.publish(slot.number)]),
    )]);
    Ok(())
}

/// Adds a tile, pages with new slots, for a group of filters that are alike, unless another session
/// has changed the directory since `searched` was read. Returns the newest directory, the list of
/// all tiles; the caller looks for a free slot again. The metapage is locked exclusively meanwhile.
///
/// Fails with 54000 if the index would have too many pages, and with XX002 if it is damaged, also
/// if pages of the new tile have contents.
#[cold]
fn grow(
    index: &FiltersIndex,
    searched: &Rc<Directory>,
    group: &FilterGroup,
) -> Result<Rc<Directory>> {
    let meta = index.pages().meta()?.exclusive();
    let directory = index.directory_under(&meta)?;
    if directory != *searched {
        return Ok(directory);
    }
    let growth = directory.grow(group)?;
    index.pages().check_new(&directory.chain, &growth.directory.chain)?;
    index.write_directory(meta, growth)
}
