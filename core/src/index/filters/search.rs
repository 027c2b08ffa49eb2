//! Lookups: one page of each tile, and the row page of a tile that may have the element.

use super::directory::Directory;
use super::row_page::{RowPage, State};
use super::tile::{Grid, Group, Holds, Mask, Tile};
use crate::index::page::{Damage, PageNumber, PageSize, Pages, RowId};
use crate::memory;

/// What a lookup wants from the filters of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The element with this hash.
    Hash(u64),
    /// An element of another kind: all filters are found, so that the recheck reports the error.
    OtherKind,
}

/// A condition on a filter: that it has at least one of these elements.
pub type FilterCondition = Vec<Sought>;

/// How many pages of tiles are prefetched at first; then as many as are read.
const AHEAD: usize = 32;

/// A lookup in the tiles of a group.
struct Lookup<'q, P> {
    pages: &'q mut P,
    size: PageSize,
    group: &'q Group,
    /// For each condition the masks of its elements, in the order of their blocks.
    conditions: &'q [Vec<Mask>],
}

impl Directory {
    /// Calls `found` with each row whose filter may meet all of a group's conditions, and with whether it must be
    /// rechecked. Errors: [`Damage`] for a page that is not what the directory says; those of reading.
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
            let again = group.holds != Holds::Bits || conditions.iter().flatten().any(|s| *s == Sought::OtherKind);
            let conditions: Vec<Vec<Mask>> = match group.holds {
                Holds::Nothing => Vec::new(),
                _ => memory::collect(conditions.iter().filter_map(|condition| masks(group, condition))),
            };
            let tiles = self.tiles(number);
            let first = conditions.first().map_or(&[][..], Vec::as_slice);
            let pages_of = |tile: &Tile| pages_of(Grid::new(self.size, group, tile.width), tile.first_page, first);
            let mut coming = tiles.iter().flat_map(pages_of);
            let mut prefetch = |pages: &mut P, most| coming.by_ref().take(most).for_each(|(at, _)| pages.prefetch(at));
            prefetch(pages, AHEAD);
            let mut lookup = Lookup { pages, size: self.size, group, conditions: &conditions };
            let tiles_of_pages = tiles.chunk_by(|a, b| a.row_page == b.row_page);
            for (page, own) in self.row_pages(number).iter().zip(tiles_of_pages) {
                prefetch(lookup.pages, own.iter().flat_map(pages_of).count());
                lookup.search(page, own, |row| found(row, again))?;
            }
        }
        Ok(())
    }
}

impl<P: Pages> Lookup<'_, P> {
    /// Finds rows of one row page, given its tiles.
    fn search(&mut self, page: &RowPage, tiles: &[Tile], mut found: impl FnMut(RowId)) -> Result<(), P::Error> {
        // For each slot of the row page, whether it may meet all conditions so far.
        let mut slots = vec![true; page.slots.into()];
        for condition in self.conditions {
            let mut may = vec![false; page.slots.into()];
            for tile in tiles {
                self.probe(tile, condition, &mut may)?;
            }
            slots.iter_mut().zip(may).for_each(|(slot, may)| *slot &= may);
            if !slots.contains(&true) {
                return Ok(());
            }
        }
        // The blocks were read before: a row that was given a slot since then is not visible to this lookup.
        self.pages.with(page.page, |bytes| {
            page.rows(bytes, (0..page.slots).filter(|&slot| slots[usize::from(slot)]), |_, state, row| {
                if state == State::Used {
                    found(row);
                }
            })
        })??;
        Ok(())
    }

    /// Adds the slots of a tile that may have at least one of the elements.
    fn probe(&mut self, tile: &Tile, elements: &[Mask], may: &mut [bool]) -> Result<(), P::Error> {
        let grid = Grid::new(self.size, self.group, tile.width);
        let may = &mut may[usize::from(tile.first_slot)..][..usize::from(tile.width)];
        for (at, elements) in pages_of(grid, tile.first_page, elements) {
            self.pages.with(at, |page| {
                // A page that was not written yet has no bits.
                let Some(page) = tile.special().written(page, self.size, at)? else { return Ok(()) };
                elements.iter().for_each(|mask| mask.probe(&grid, &page[self.size.payload()], may));
                Ok::<(), Damage>(())
            })??;
        }
        Ok(())
    }
}

/// The pages of a tile with the blocks of these elements, which are in the order of blocks; each with its elements.
fn pages_of(grid: Grid, first: PageNumber, elements: &[Mask]) -> impl Iterator<Item = (PageNumber, &[Mask])> {
    let page_of = move |mask: &Mask| first + (mask.block / grid.per_page) as u32;
    elements.chunk_by(move |a, b| page_of(a) == page_of(b)).map(move |elements| (page_of(&elements[0]), elements))
}

/// The masks of the elements of a condition, in the order of their blocks; `None` if every slot meets it.
fn masks(group: &Group, condition: &FilterCondition) -> Option<Vec<Mask>> {
    let mask = |sought: &Sought| match sought {
        Sought::Hash(hash) => Ok(Mask::of(group, *hash)),
        Sought::OtherKind => Err(()),
    };
    let mut masks = memory::try_collect(condition.iter().map(mask)).ok()?;
    masks.sort_unstable_by_key(|mask| mask.block);
    Some(masks)
}
