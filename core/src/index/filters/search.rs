//! Lookups: one page of each tile, and the row page of a tile that may have the element.

use super::directory::Directory;
use super::row_page::{RowPage, State};
use super::tile::{Group, Holds, Mask, Tile};
use crate::index::page::{Damage, PageNumber, Pages, RowId};
use crate::memory;

/// What a lookup wants from the filters of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    Hash(u64),
    /// An element of another kind: all filters are found, so that the recheck reports the error.
    OtherKind,
}

/// A condition on a filter: that it has at least one of these elements.
pub type FilterCondition = Vec<Sought>;

/// Pages of tiles that are prefetched at first; then as many as are read.
const AHEAD: usize = 32;

impl Directory {
    /// Calls `found` with each row whose filter may meet all of a group's conditions, and with
    /// whether it must be rechecked. Errors: [`Damage`] for a page that is not what the directory
    /// says; those of reading.
    pub fn search<P: Pages>(
        &self,
        pages: &mut P,
        mut conditions: impl FnMut(&Group) -> Vec<FilterCondition>,
        mut found: impl FnMut(RowId, bool),
    ) -> Result<(), P::Error> {
        for (number, group) in self.groups() {
            let conditions = conditions(group);
            if conditions.iter().any(Vec::is_empty) {
                continue;
            }
            let again = group.holds != Holds::Bits
                || conditions.iter().flatten().any(|s| *s == Sought::OtherKind);
            let conditions: Vec<Vec<Mask>> = match group.holds {
                Holds::Nothing => Vec::new(),
                _ => memory::collect(
                    conditions.iter().filter_map(|condition| masks(group, condition)),
                ),
            };
            let tiles = self.tiles(number);
            let first = conditions.first().map_or(&[][..], Vec::as_slice);
            let mut coming = tiles.iter().flat_map(|tile| pages_of(tile, first));
            let mut prefetch = |pages: &mut P, most| {
                coming.by_ref().take(most).for_each(|(at, _)| pages.prefetch(at))
            };
            prefetch(pages, AHEAD);
            let tiles_of_pages = tiles.chunk_by(|a, b| a.row_page == b.row_page);
            for (page, own) in self.row_pages(number).iter().zip(tiles_of_pages) {
                prefetch(pages, own.iter().flat_map(|tile| pages_of(tile, first)).count());
                search(pages, page, own, &conditions, |row| found(row, again))?;
            }
        }
        Ok(())
    }
}

/// Finds the rows of a row page, given its tiles, that meet all conditions: each is the masks of
/// its elements, in the order of their blocks.
fn search<P: Pages>(
    pages: &mut P,
    page: &RowPage,
    tiles: &[Tile],
    conditions: &[Vec<Mask>],
    mut found: impl FnMut(RowId),
) -> Result<(), P::Error> {
    // For each slot of the row page, whether it may meet all conditions so far.
    let mut slots = vec![true; page.slots.into()];
    for condition in conditions {
        let mut may = vec![false; page.slots.into()];
        for tile in tiles {
            let may = &mut may[usize::from(tile.first_slot)..][..usize::from(tile.width)];
            for (at, elements) in pages_of(tile, condition) {
                pages.with(at, |bytes| {
                    // A page that was not written yet has no bits.
                    let Some(bytes) = tile.special().written(bytes, page.size, at)? else {
                        return Ok(());
                    };
                    elements
                        .iter()
                        .for_each(|mask| mask.probe(&tile.grid, &bytes[page.size.payload()], may));
                    Ok::<(), Damage>(())
                })??;
            }
        }
        slots.iter_mut().zip(may).for_each(|(slot, may)| *slot &= may);
        if !slots.contains(&true) {
            return Ok(());
        }
    }
    // The blocks were read before: a row that was given a slot since then is not visible to this
    // lookup.
    pages.with(page.page, |bytes| {
        page.rows(
            bytes,
            (0..page.slots).filter(|&slot| slots[usize::from(slot)]),
            |_, state, row| {
                if state == State::Used {
                    found(row);
                }
            },
        )
    })??;
    Ok(())
}

/// The pages of a tile with the blocks of these elements, which are in the order of blocks; each
/// with its elements.
fn pages_of<'m>(
    tile: &Tile,
    elements: &'m [Mask],
) -> impl Iterator<Item = (PageNumber, &'m [Mask])> + use<'m> {
    let tile = *tile;
    let pages = elements.chunk_by(move |a, b| tile.page_of(a.block) == tile.page_of(b.block));
    pages.map(move |elements| (tile.page_of(elements[0].block), elements))
}

/// The masks of the elements of a condition, in the order of their blocks; `None` if every slot
/// meets it.
fn masks(group: &Group, condition: &FilterCondition) -> Option<Vec<Mask>> {
    let mask = |sought: &Sought| match sought {
        Sought::Hash(hash) => Ok(Mask::of(group, *hash)),
        Sought::OtherKind => Err(()),
    };
    let mut masks = memory::try_collect(condition.iter().map(mask)).ok()?;
    masks.sort_unstable_by_key(|mask| mask.block);
    Some(masks)
}
