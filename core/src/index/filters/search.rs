//! Asking: one page of each tile, and the row page where a tile has an answer.

use super::directory::Directory;
use super::group::{Group, Holds};
use super::row_page::{RowPage, State};
use super::tile::{Grid, Mask, Tile};
use crate::index::page::{PageNumber, PageSize, Pages, RowId};

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

    fn retain(&mut self, other: &Found) {
        self.0.iter_mut().zip(&other.0).for_each(|(found, other)| *found &= other);
    }

    fn is_none(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    fn iter(&self) -> impl Iterator<Item = u16> {
        let some = |word: u64| (word != 0).then_some(word);
        let words = self.0.iter().zip((0..).step_by(64));
        words.flat_map(move |(&word, first): (_, u16)| {
            let rest = std::iter::successors(some(word), move |word| some(word & (word - 1)));
            rest.map(move |rest| first + rest.trailing_zeros() as u16)
        })
    }
}

/// How many pages of tiles are said to be asked for soon.
const AHEAD: usize = 32;

/// A question for the slots of a group.
struct Question<'q, P, C> {
    pages: &'q mut P,
    size: PageSize,
    group: &'q Group,
    /// Of each condition where to look for its elements, in the order of their blocks.
    conditions: &'q [Vec<Mask>],
    /// Pages that the first condition will read.
    coming: C,
}

impl Directory {
    /// Calls `found` with each row whose filter may have elements as all of the conditions say, and with whether it
    /// must be asked again. `conditions` says what is asked of a group.
    ///
    /// # Errors
    /// [`crate::index::page::Damage`] for a page that is not what the directory says; those of reading.
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
            let first = conditions.first().map_or(&[][..], Vec::as_slice);
            let coming = tiles.iter().flat_map(|tile| asked(self.size, group, tile, first).map(|(page, _)| page));
            let mut question = Question { pages, size: self.size, group, conditions: &conditions, coming };
            question.announce(AHEAD);
            for page in self.row_pages(number) {
                let own = tiles.iter().take_while(|tile| tile.row_page == page.page).count();
                let (own, rest) = tiles.split_at(own);
                tiles = rest;
                question.search(page, own, |row| found(row, again))?;
            }
        }
        Ok(())
    }
}

impl<P: Pages, C: Iterator<Item = PageNumber>> Question<'_, P, C> {
    /// Says which pages come next.
    fn announce(&mut self, pages: usize) {
        self.coming.by_ref().take(pages).for_each(|page| self.pages.prefetch(page));
    }

    /// The rows of one row page, given its tiles.
    fn search(&mut self, page: &RowPage, tiles: &[Tile], mut found: impl FnMut(RowId)) -> Result<(), P::Error> {
        let mut slots: Option<Found> = None;
        for (number, condition) in self.conditions.iter().enumerate() {
            let mut may = Found::none(page.slots);
            for tile in tiles {
                self.ask(tile, condition, number == 0, &mut may)?;
            }
            slots.as_mut().map(|slots| slots.retain(&may)).unwrap_or_else(|| slots = Some(may));
            if slots.as_ref().is_some_and(Found::is_none) {
                return Ok(());
            }
        }
        // Blocks were read before: a slot that got another owner since got one that this question can't see.
        self.pages.with(page.page, |bytes| {
            let mut of_slot = |_, state, row| {
                if state == State::Used {
                    found(row);
                }
            };
            match slots {
                Some(slots) => page.rows_of(bytes, slots.iter(), &mut of_slot),
                None => page.rows(bytes, &mut of_slot),
            }
        })??;
        Ok(())
    }

    /// The slots of a tile that may have at least one of some elements.
    fn ask(&mut self, tile: &Tile, elements: &[Mask], is_first: bool, may: &mut Found) -> Result<(), P::Error> {
        let Some(grid) = Grid::new(self.size, self.group, tile.width) else { return Ok(()) };
        for (at, elements) in asked(self.size, self.group, tile, elements) {
            self.announce(usize::from(is_first));
            self.pages.with(at, |page| {
                elements.iter().try_for_each(|mask| {
                    mask.ask(tile, &grid, self.size, page, at, |slot| may.add(tile.first_slot + slot))
                })
            })??;
        }
        Ok(())
    }
}

/// The pages of a tile that have the blocks of some elements, each with these. The elements are in the order of their
/// blocks.
fn asked<'m>(
    size: PageSize,
    group: &Group,
    tile: &Tile,
    elements: &'m [Mask],
) -> impl Iterator<Item = (PageNumber, &'m [Mask])> + use<'m> {
    let per_page = Grid::new(size, group, tile.width).map_or(1, |grid| grid.per_page);
    let first_page = tile.first_page;
    let page_of = move |mask: &Mask| first_page + (mask.block / per_page) as u32;
    elements.chunk_by(move |a, b| page_of(a) == page_of(b)).map(move |elements| (page_of(&elements[0]), elements))
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
