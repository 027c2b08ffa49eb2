//! Lookups: one page of each tile, and the row page of a tile that may have the element.

use super::directory::Directory;
use super::row_page::{RowPage, SlotState};
use super::tile::{ElementMask, FilterGroup, Holds, Tile};
use crate::index::page::{Damage, PageNumber, PageSize, Pages, RowId};
use crate::memory;

/// What a lookup wants from the filters of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The element with this hash, of the same kind as those of the filters.
    Hash(u64),
    /// An element of another kind: all filters are found, so that the recheck reports the error.
    OtherKind,
}

/// A condition on a filter: that it has at least one of these elements.
pub type FilterCondition = Vec<Sought>;

/// A row that a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRow {
    pub row: RowId,
    /// Whether the filter itself must be asked as well: the index holds less than the filter.
    pub must_recheck: bool,
}

/// Calls `found` with each row whose filter may meet some conditions, all of them. A condition is a
/// list of elements, and is met by a filter that has at least one of them.
///
/// `conditions` returns the conditions for a group of filters, which have the same shape and hold
/// elements of the same kind: the hash of an element depends on the kind.
///
/// Fails with [`Damage`] if a page is not what the directory says, or if a page can't be read.
pub fn search<P: Pages>(
    directory: &Directory,
    pages: &mut P,
    mut conditions: impl FnMut(&FilterGroup) -> Vec<FilterCondition>,
    mut found: impl FnMut(FoundRow),
) -> Result<(), P::Error> {
    for (number, group) in directory.groups() {
        let conditions = conditions(group);
        let is_impossible = conditions.iter().any(Vec::is_empty);
        if is_impossible {
            continue;
        }

        let must_recheck = group.holds != Holds::Bits
            || conditions.iter().flatten().any(|sought| *sought == Sought::OtherKind);
        let masks = masks_of_conditions(group, &conditions);
        search_group(directory, number, pages, &masks, |row| {
            found(FoundRow { row, must_recheck });
        })?;
    }
    Ok(())
}

/// Returns, for each condition on the filters of a group, the bits that its elements must have: one
/// mask for each element, in the order of the blocks that have the bits. Conditions that every
/// filter of the group meets, as far as the index knows, are left out.
fn masks_of_conditions(
    group: &FilterGroup,
    conditions: &[FilterCondition],
) -> Vec<Vec<ElementMask>> {
    match group.holds {
        Holds::Bits | Holds::Hashes => {
            let masks = conditions
                .iter()
                .filter_map(|condition| masks_of_condition(group, condition));
            memory::collect(masks)
        }
        Holds::Nothing => Vec::new(),
    }
}

/// Returns the bits that the elements of a condition must have in a filter of this group: one mask
/// for each element, in the order of the blocks that have the bits. `None` if every filter meets
/// the condition, as far as the index knows.
fn masks_of_condition(
    group: &FilterGroup,
    condition: &FilterCondition,
) -> Option<Vec<ElementMask>> {
    let mut masks = memory::with_capacity(condition.len());
    for sought in condition {
        match sought {
            Sought::Hash(hash) => memory::push(&mut masks, ElementMask::new(group, *hash)),
            // The error about the kind is raised when the filter itself is asked.
            Sought::OtherKind => return None,
        }
    }
    masks.sort_unstable_by_key(|mask| mask.block);
    Some(masks)
}

/// Calls `found` with each row whose filter may meet all conditions, among the filters of a group:
/// those of one shape, which share tiles. `group` is its number. Each condition is a list of masks,
/// and is met by filters that have the bits of one of them.
///
/// Fails with [`Damage`] if a page is not what the directory says, or if a page can't be read.
fn search_group<P: Pages>(
    directory: &Directory,
    group: u32,
    pages: &mut P,
    conditions: &[Vec<ElementMask>],
    mut found: impl FnMut(RowId),
) -> Result<(), P::Error> {
    // Only the pages for the first condition are announced: those for the others may not be needed.
    let announced_masks = conditions.first().map_or(&[][..], Vec::as_slice);
    let tiles = directory.tiles(group);
    let tiles_by_row_page = || tiles.chunk_by(|a, b| a.row_page == b.row_page);
    // Pages with the number of the row page whose tile they are of.
    let mut unannounced = tiles_by_row_page()
        .enumerate()
        .flat_map(|(number, tiles)| {
            let probed = tiles.iter().flat_map(|tile| pages_with(tile, announced_masks));
            probed.map(move |probed| (number, probed.page))
        })
        .peekable();

    let row_pages = directory.row_pages(group).iter().enumerate();
    for ((number, row_page), tiles) in row_pages.zip(tiles_by_row_page()) {
        while pages.can_announce()
            && let Some((number_of_page, page)) = unannounced.next()
        {
            // Pages were read unannounced while the index seemed to be in memory.
            if number_of_page >= number {
                pages.announce(page);
            }
        }
        search_row_page(row_page, tiles, pages, conditions, &mut found)?;
    }
    Ok(())
}

/// Calls `found` with each row of a row page whose filter may meet all conditions. A row page lists
/// the rows of the slots of some `tiles`, which have the bits of the filters. Each condition is a
/// list of masks, and is met by slots that have the bits of one of them.
///
/// Fails with [`Damage`] if a page is not what the directory says, or if a page can't be read.
fn search_row_page<P: Pages>(
    row_page: &RowPage,
    tiles: &[Tile],
    pages: &mut P,
    conditions: &[Vec<ElementMask>],
    mut found: impl FnMut(RowId),
) -> Result<(), P::Error> {
    // For each slot of the row page, whether it may meet all conditions so far.
    let mut may_match = vec![true; row_page.slots.into()];
    for condition in conditions {
        let mut may_meet_condition = vec![false; row_page.slots.into()];
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
    pages.with(row_page.page, |bytes| {
        let matching_slots = (0..row_page.slots).filter(|&slot| may_match[usize::from(slot)]);
        row_page.rows(bytes, matching_slots, |_slot, state, row| {
            if state == SlotState::Used {
                found(row);
            }
        })
    })??;
    Ok(())
}

/// Finds the slots of a tile whose filters may have one of some elements. `masks` has the bits of
/// each element, in the order of the blocks that have them. `may_have` has an entry for each slot
/// of the tile, which is set if the slot may have an element; others stay as they are.
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
        pages.with(page, |bytes| {
            let Some(bytes) = tile.special().written(bytes, size, page)? else {
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

/// Returns the pages of a tile that have the blocks of elements. The masks must be in the order of
/// their blocks.
fn pages_with<'m>(
    tile: &Tile,
    masks: &'m [ElementMask],
) -> impl Iterator<Item = ProbedPage<'m>> + use<'m> {
    let tile = *tile;
    let masks_by_page =
        masks.chunk_by(move |a, b| tile.page_with_block(a.block) == tile.page_with_block(b.block));
    masks_by_page.map(move |masks| ProbedPage { page: tile.page_with_block(masks[0].block), masks })
}
