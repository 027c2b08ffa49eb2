//! Asking: one page of each tile, and the row page where a tile has an answer.

use super::directory::Directory;
use super::group::{Group, Holds};
use super::row_page::{RowId, RowPage, State};
use super::tile::{Grid, Mask, Tile};
use crate::page::Pages;

/// What is asked of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The element with this hash.
    Hash(u64),
    /// An element of another kind: all filters are found, and asked again for the error that this is.
    OtherKind,
}

/// A condition on a filter: that it has at least one of these elements.
pub type Condition = Vec<Sought>;

/// Slots of a row page.
struct Found(Vec<u64>);

impl Found {
    fn none(slots: u16) -> Found {
        Found(vec![0; usize::from(slots).div_ceil(64)])
    }

    fn add(&mut self, slot: u16) {
        self.0[usize::from(slot / 64)] |= 1 << (slot % 64);
    }

    fn has(&self, slot: u16) -> bool {
        self.0[usize::from(slot / 64)] >> (slot % 64) & 1 == 1
    }

    fn retain(&mut self, other: &Found) {
        self.0.iter_mut().zip(&other.0).for_each(|(found, other)| *found &= other);
    }

    fn is_none(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

impl Directory {
    /// Calls `found` with each row whose filter may have elements as all of the conditions say, and with whether it
    /// must be asked again. `conditions` says what is asked of a group.
    ///
    /// # Errors
    /// [`crate::page::Damage`] for a page that is not what the directory says; those of reading.
    pub fn search<P: Pages>(
        &self,
        pages: &mut P,
        mut conditions: impl FnMut(&Group) -> Vec<Condition>,
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
                _ => conditions.iter().filter_map(|condition| masks(group, condition)).collect(),
            };
            let mut tiles = self.tiles(number);
            for page in self.row_pages(number) {
                let own = tiles.iter().take_while(|tile| tile.row_page == page.page).count();
                let (own, rest) = tiles.split_at(own);
                tiles = rest;
                self.search_page(pages, group, page, own, &conditions, |row| found(row, again))?;
            }
        }
        Ok(())
    }

    /// The rows of one row page, given its tiles.
    fn search_page<P: Pages>(
        &self,
        pages: &mut P,
        group: &Group,
        page: &RowPage,
        tiles: &[Tile],
        conditions: &[Vec<Mask>],
        mut found: impl FnMut(RowId),
    ) -> Result<(), P::Error> {
        let mut slots: Option<Found> = None;
        for condition in conditions {
            let mut may = Found::none(page.slots);
            for tile in tiles {
                self.ask(pages, group, tile, condition, &mut may)?;
            }
            slots.as_mut().map(|slots| slots.retain(&may)).unwrap_or_else(|| slots = Some(may));
            if slots.as_ref().is_some_and(Found::is_none) {
                return Ok(());
            }
        }
        // Blocks were read before: a slot that got another owner since got one that this question can't see.
        pages.with(page.page, |bytes| {
            page.rows(bytes, |slot, state, row| {
                if state == State::Used && slots.as_ref().is_none_or(|slots| slots.has(slot)) {
                    found(row);
                }
            })
        })??;
        Ok(())
    }

    /// The slots of a tile that may have at least one of some elements, which are in the order of their blocks.
    fn ask<P: Pages>(
        &self,
        pages: &mut P,
        group: &Group,
        tile: &Tile,
        elements: &[Mask],
        may: &mut Found,
    ) -> Result<(), P::Error> {
        let Some(grid) = Grid::new(self.size, group, tile.width) else { return Ok(()) };
        let page_of = |mask: &Mask| tile.first_page + (mask.block / grid.per_page) as u32;
        for elements in elements.chunk_by(|a, b| page_of(a) == page_of(b)) {
            let at = page_of(&elements[0]);
            pages.with(at, |page| {
                elements.iter().try_for_each(|mask| {
                    mask.ask(tile, &grid, self.size, page, at, |slot| may.add(tile.first_slot + slot))
                })
            })??;
        }
        Ok(())
    }
}

/// Where to look for the elements of a condition, in the order of their blocks; nothing if all slots are found.
fn masks(group: &Group, condition: &Condition) -> Option<Vec<Mask>> {
    let mask = |sought: &Sought| match sought {
        Sought::Hash(hash) => Some(Mask::of(group, *hash)),
        Sought::OtherKind => None,
    };
    let mut masks = condition.iter().map(mask).collect::<Option<Vec<Mask>>>()?;
    masks.sort_unstable_by_key(|mask| mask.block);
    Some(masks)
}
