//! Lookups: one page of each tile, and the row page of a tile that may have the element.

use super::directory::Directory;
use super::row_page::{RowPage, SlotState};
use super::tile::{ElementMask, FilterGroup, Holds, Tile};
use crate::index::page::{Damage, PageNumber, PageSize, Pages, RowId};
use crate::memory::List;

/// What a lookup wants from the filters of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The element with this hash, of the same kind as those of the filters.
    Hash(u64),
    /// An element of another kind: all filters are found, so that the recheck reports the error.
    OtherKind,
}

/// A condition on a filter: that it has at least one of these elements.
pub type FilterCondition = List<Sought>;

/// A row that a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRow {
    pub row: RowId,
    /// Whether the filter itself must be asked as well: the index holds less than the filter.
    pub must_recheck: bool,
}

/// Calls `found` with each row of the table whose filter may meet all of some conditions. A
/// condition is a list of elements, and is met by a filter that has at least one of them.
///
/// Filters are searched in groups, which have the same shape and hold elements of the same kind.
/// `conditions` returns the conditions for a group, since the hash of an element depends on the
/// kind.
///
/// Fails with [`Damage`] if a page is not what the directory says, or if a page can't be read.
pub fn search<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    mut conditions: impl FnMut(&FilterGroup) -> List<FilterCondition>,
    mut found: impl FnMut(FoundRow),
) -> Result<(), P::Error> {
    for (group_number, group) in directory.groups() {
        let conditions = conditions(group);
        // No filter has one of no elements.
        let is_impossible = conditions.iter().any(List::is_empty);
        if is_impossible {
            continue;
        }

        let must_recheck = group.holds != Holds::Bits
            || conditions.iter().flatten().any(|sought| *sought == Sought::OtherKind);
        let masks = masks_of_conditions(group, &conditions);
        search_group(directory, group_number, pages, &masks, |row| {
            found(FoundRow { row, must_recheck });
        })?;
    }
    Ok(())
}

/// Returns which bits the filters of a group must have to meet some conditions. All filters of a
/// group have the same shape, so an element has the same bits in each of them.
///
/// The result has a list of masks for each condition, see [`masks_of_condition`]. A condition is
/// left out if bits can't show that a filter doesn't meet it. If the index keeps no bits of these
/// filters, that is true of all conditions, and the result is empty.
fn masks_of_conditions(
    group: &FilterGroup,
    conditions: &[FilterCondition],
) -> List<List<ElementMask>> {
    match group.holds {
        Holds::Bits | Holds::Hashes => {
            let masks = conditions
                .iter()
                .filter_map(|condition| masks_of_condition(group, condition));
            masks.collect()
        }
        Holds::Nothing => List::new(),
    }
}

/// Returns the bits that a filter must have to meet a condition: that it has at least one of some
/// elements. The result has a mask for each element, which says in which block of the filter its
/// bits are, and where. A filter may meet the condition if it has all bits of one mask. Masks are
/// in the order of their blocks, as probing wants them.
///
/// Returns `None` if an element is of another kind than those of the filters. Then the index must
/// report every filter of the group, so that probing the filter itself raises the error about the
/// kind.
fn masks_of_condition(
    group: &FilterGroup,
    condition: &FilterCondition,
) -> Option<List<ElementMask>> {
    let mut masks = List::with_capacity(condition.len());
    for sought in condition {
        match sought {
            Sought::Hash(hash) => masks.push(ElementMask::new(group, *hash)),
            Sought::OtherKind => return None,
        }
    }
    masks.sort_unstable_by_key(|mask| mask.block);
    Some(masks)
}

/// Calls `found` with each row of the table whose filter may meet all conditions, among the filters
/// of one group. Filters of a group have the same shape, and their bits are side by side in the
/// pages of *tiles*. `group` is the number of the group. Each condition is a list of masks, one for
/// each element that is looked for, and is met by a filter that has all bits of at least one mask.
///
/// Tiles are searched by their *row page*, the page that says to which rows of the table the
/// filters of some tiles belong. The pages that are read next are announced (prefetched) as far as
/// `pages` allows.
///
/// Fails with [`Damage`] if a page is not what the directory says, or if a page can't be read.
fn search_group<P: Pages>(
    directory: &Directory,
    group: u32,
    pages: &mut P,
    conditions: &[List<ElementMask>],
    mut found: impl FnMut(RowId),
) -> Result<(), P::Error> {
    let tiles = directory.tiles(group);
    // Only the pages for the first condition are announced: those for the others may not be needed.
    let first_condition = conditions.first().map_or(&[][..], List::as_slice);
    let mut unannounced = pages_to_read(tiles, first_condition);

    let row_pages = directory.row_pages(group).iter().enumerate();
    for ((row_page_index, row_page), tiles_of_rows) in row_pages.zip(tiles_by_row_page(tiles)) {
        // Announces pages that are read for this row page and later ones. Those of earlier row
        // pages have been read, perhaps without being announced: `can_announce` may have been false
        // until now.
        while pages.can_announce()
            && let Some(next) = unannounced.next()
        {
            if next.row_page_index >= row_page_index {
                pages.announce(next.page);
            }
        }
        search_row_page(row_page, tiles_of_rows, pages, conditions, &mut found)?;
    }
    Ok(())
}

/// Returns the tiles of a group in lists: each list has all tiles whose rows are in one row page.
fn tiles_by_row_page(tiles: &[Tile]) -> impl Iterator<Item = &[Tile]> {
    tiles.chunk_by(|a, b| a.row_page == b.row_page)
}

/// A page of a tile that a search will read.
struct PageToRead {
    page: PageNumber,
    /// The index of the tile's row page among those of the group.
    row_page_index: usize,
}

/// Returns the pages of some tiles that have a block of one of these elements, in the order in
/// which a search reads them. `masks` has the bits of the elements, in the order of their blocks.
fn pages_to_read(tiles: &[Tile], masks: &[ElementMask]) -> impl Iterator<Item = PageToRead> {
    let lists = tiles_by_row_page(tiles).enumerate();
    lists.flat_map(move |(row_page_index, tiles_of_rows)| {
        let probed_pages = tiles_of_rows.iter().flat_map(|tile| pages_with(tile, masks));
        probed_pages.map(move |probed| PageToRead { page: probed.page, row_page_index })
    })
}

/// Calls `found` with each row of a *row page* whose filter may meet all conditions. A row page
/// says to which row of the table each filter in some tiles belongs; `tiles` must be all of these
/// tiles. A *tile* is some pages with the bits of filters side by side.
///
/// Each condition is a list of masks, one for each element that is looked for, and is met by a
/// filter that has all bits of at least one mask. With no condition, all rows are found.
///
/// Fails with [`Damage`] if a page is not what the directory says, or if a page can't be read.
fn search_row_page<P: Pages>(
    row_page: &RowPage,
    tiles: &[Tile],
    pages: &mut P,
    conditions: &[List<ElementMask>],
    mut found: impl FnMut(RowId),
) -> Result<(), P::Error> {
    // For each slot of the row page, which is the place of one filter, whether the filter may meet
    // all conditions so far.
    let mut may_match = List::filled(true, row_page.slots.into());
    for condition in conditions {
        let mut may_meet_condition = List::filled(false, row_page.slots.into());
        for tile in tiles {
            let slots_of_tile = usize::from(tile.first_slot)..usize::from(tile.slots().end);
            let may_have = &mut may_meet_condition[slots_of_tile];
            probe_tile(tile, pages, row_page.size, condition, may_have)?;
        }
        for (may_match, may_meet) in may_match.iter_mut().zip(may_meet_condition) {
            *may_match &= may_meet;
        }
        if !may_match.contains(&true) {
            return Ok(());
        }
    }

    // Rows are read after blocks: a row that was given a slot since then is not visible to this
    // lookup.
    pages.with_page(row_page.number, |bytes| {
        let matching_slots = (0..row_page.slots).filter(|&slot| may_match[usize::from(slot)]);
        row_page.rows(bytes, matching_slots, |_slot, state, row| {
            if state == SlotState::Used {
                found(row);
            }
        })
    })??;
    Ok(())
}

/// Finds out which filters of a tile may have at least one of some elements: sets their entries in
/// `may_have`, which has an entry for each filter of the tile. Other entries stay as they are.
/// `masks` has the bits of each element, in the order of the blocks that have them. Reads one page
/// for each block, or for several blocks if they are in one page.
///
/// Fails with [`Damage`] if a page is not one of the tile, or if a page can't be read.
fn probe_tile<P: Pages>(
    tile: &Tile,
    pages: &mut P,
    size: PageSize,
    masks: &[ElementMask],
    may_have: &mut [bool],
) -> Result<(), P::Error> {
    for ProbedPage { page, masks } in pages_with(tile, masks) {
        pages.with_page(page, |bytes| {
            let Some(bytes) = tile.special().bytes_if_written(bytes, size, page)? else {
                // A page that was not written yet has no bits.
                return Ok(());
            };
            for mask in masks {
                mask.probe(&tile.grid, &bytes[size.payload()], may_have);
            }
            Ok::<(), Damage>(())
        })??;
    }
    Ok(())
}

/// A page of a tile, and the masks of the elements whose blocks are in it.
struct ProbedPage<'m> {
    page: PageNumber,
    masks: &'m [ElementMask],
}

/// Returns the pages of a tile that a lookup of some elements reads: those that have the block of
/// an element, each with the masks of the elements there. `masks` has the bits of the elements, in
/// the order of their blocks.
fn pages_with<'m>(
    tile: &Tile,
    masks: &'m [ElementMask],
) -> impl Iterator<Item = ProbedPage<'m>> + use<'m> {
    let tile = *tile;
    let masks_by_page =
        masks.chunk_by(move |a, b| tile.page_with_block(a.block) == tile.page_with_block(b.block));
    masks_by_page.map(move |masks| ProbedPage { page: tile.page_with_block(masks[0].block), masks })
}
