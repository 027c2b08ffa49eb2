//! An index whose pages are in memory: what the access method does with buffers and WAL, without them. For tests,
//! measurements and fuzzing.

use super::group::{Group, slot_bits};
use super::{Build, Directory, FilterCondition, Piece, RowPage, Slot};
use crate::filter::View;
use crate::index::chain::Tiles;
pub use crate::index::page::memory::{Failure, Memory};
use crate::index::page::{PageNumber, PageSize, Pages, RowId, Special};
use std::collections::BTreeMap;

/// An index in memory.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its pages.
    pub memory: Memory,
    /// What its metapage says.
    pub directory: Directory,
}

/// A row whose slot is being filled.
#[derive(Clone, Debug)]
pub struct Insertion {
    group: Group,
    page: RowPage,
    slot: Slot,
    bits: Vec<u8>,
    written: usize,
}

impl Index {
    /// Builds an index over filters.
    ///
    /// # Errors
    /// Those of [`Build`].
    pub fn build<'f>(
        size: PageSize,
        hold: usize,
        rows: impl IntoIterator<Item = (RowId, View<'f>)>,
    ) -> Result<Index, Failure> {
        let mut memory = Memory::new(size);
        let mut build = Build::new(size, hold);
        for (row, filter) in rows {
            build.add(&mut memory, row, &filter)?;
        }
        let directory = build.finish(&mut memory)?;
        directory.write_meta(&mut memory.pages[0]);
        Ok(Index { memory, directory })
    }

    /// Reads an index from its pages.
    ///
    /// # Errors
    /// Those of [`Directory::read`].
    pub fn open(mut memory: Memory, size: PageSize) -> Result<Index, Failure> {
        let directory = Directory::read(&mut memory, size)?;
        Ok(Index { memory, directory })
    }

    /// Adds a row with its filter. Returns how many bytes of how many pages were written.
    ///
    /// # Errors
    /// Those of [`Directory::grow`] and of reading.
    pub fn insert(&mut self, row: RowId, filter: &View<'_>) -> Result<(usize, usize), Failure> {
        let Some(mut insertion) = self.begin(row, filter)? else { return Ok((0, 0)) };
        let (mut bytes, mut pages) = (8, 1);
        while let Some(written) = self.step(&mut insertion)? {
            (bytes, pages) = (bytes + written, pages + 1);
        }
        self.publish(&insertion);
        Ok((bytes, pages))
    }

    /// The first step: claims a slot. `None` if the filter needs none.
    ///
    /// # Errors
    /// As [`Index::insert`].
    pub fn begin(&mut self, row: RowId, filter: &View<'_>) -> Result<Option<Insertion>, Failure> {
        let Some(group) = Group::of(filter) else { return Ok(None) };
        loop {
            let pages = self.directory.group_number(&group).map_or(&[][..], |number| self.directory.row_pages(number));
            for page in pages {
                let Some(free) = page.first_free(self.memory.pages.get(page.page as usize).map(Vec::as_slice))? else {
                    continue;
                };
                let page = *page;
                let slot = self.directory.slot(&page, free).expect("a slot of the row page");
                let (state, place) = page.claim(free, row);
                self.change(&page, state);
                self.change(&page, place);
                let bits = slot_bits(filter, &group).into_owned();
                return Ok(Some(Insertion { group, page, slot, bits, written: 0 }));
            }
            let growth = self.directory.grow(&group)?;
            let (number, page) = growth.page;
            self.memory.writable(number, self.directory.size).copy_from_slice(&page);
            growth.directory.write_meta(&mut self.memory.pages[0]);
            self.directory = growth.directory;
        }
    }

    /// Another step: writes blocks to a page. Returns how many bytes; `None` if all were written.
    ///
    /// # Errors
    /// Those of reading.
    pub fn step(&mut self, insertion: &mut Insertion) -> Result<Option<usize>, Failure> {
        let Insertion { group, slot, bits, written, .. } = insertion;
        let chunk = slot.chunks(self.directory.size, group, bits).nth(*written);
        let Some((page, offset, bytes)) = chunk else { return Ok(None) };
        self.write(page, slot.tile.special(), offset, bytes);
        *written += 1;
        Ok(Some(bytes.len()))
    }

    /// The last step: lookups find the row from now on.
    pub fn publish(&mut self, Insertion { page, slot, .. }: &Insertion) {
        self.change(page, page.publish(slot.number));
    }

    /// Removes the dead rows, as VACUUM does. Returns how many were removed, and how many are left.
    ///
    /// # Errors
    /// Those of reading.
    pub fn remove(&mut self, is_dead: impl Fn(RowId) -> bool) -> Result<(usize, usize), Failure> {
        let groups = self.directory.groups();
        let pages: Vec<RowPage> = groups.flat_map(|(number, _)| self.directory.row_pages(number)).copied().collect();
        let (mut removed, mut left) = (0, 0);
        for page in pages {
            let mut dead = Vec::new();
            self.memory.with(page.page, |bytes| {
                page.rows(bytes, |slot, _, row| if is_dead(row) { dead.push(slot) } else { left += 1 })
            })??;
            removed += dead.len();
            dead.into_iter().for_each(|slot| self.change(&page, page.free(slot)));
        }
        Ok((removed, left))
    }

    /// The rows that may match, and whether each must be rechecked.
    ///
    /// # Errors
    /// Those of [`Directory::search`].
    pub fn search(
        &mut self,
        conditions: impl FnMut(&Group) -> Vec<FilterCondition>,
    ) -> Result<BTreeMap<RowId, bool>, Failure> {
        let mut found = BTreeMap::new();
        self.directory.search(&mut self.memory, conditions, |row, again| {
            found.entry(row).and_modify(|known| *known |= again).or_insert(again);
        })?;
        Ok(found)
    }

    fn change<const N: usize>(&mut self, page: &RowPage, piece: Piece<N>) {
        self.write(page.page, page.special(), piece.offset, &piece.bytes);
    }

    fn write(&mut self, at: PageNumber, special: Special, offset: u16, bytes: &[u8]) {
        let page = self.memory.writable(at, self.directory.size);
        special.write(page);
        page[usize::from(offset)..][..bytes.len()].copy_from_slice(bytes);
    }
}
