//! An index whose pages are in memory: what the access method does with buffers and WAL, without
//! them. For tests, measurements and fuzzing.

use super::tile::{FilterGroup, SlotChunk, slot_bits};
use super::{Build, Directory, FoundRow, RowPage, Slot, Sought, search};
use crate::filter::View;
use crate::index::chain::{IndexDirectory, PageImage};
use crate::index::page::memory;
pub use crate::index::page::memory::{Failure, Memory};
use crate::index::page::{ByteChange, PageNumber, PageSize, Pages, RowId, Special};
use crate::memory::List;
use std::collections::{BTreeMap, VecDeque};

/// An index in memory.
pub type MemoryFilters = memory::MemoryIndex<Directory>;

/// A row whose slot is being filled.
#[derive(Clone, Debug)]
pub struct Insertion {
    page: RowPage,
    slot: Slot,
    /// What is not written yet: page, offset and bytes.
    chunks: VecDeque<(PageNumber, u16, Vec<u8>)>,
}

impl MemoryFilters {
    /// Builds an index over filters. Errors: those of [`Build`].
    pub fn build<'f>(
        size: PageSize,
        hold: usize,
        rows: impl IntoIterator<Item = (RowId, View<'f>)>,
    ) -> Result<MemoryFilters, Failure> {
        let mut memory = Memory::new(size);
        let mut build = Build::new(size, hold);
        for (row, filter) in rows {
            build.add(&mut memory, row, &filter)?;
        }
        let directory = build.finish(&mut memory)?;
        memory.pages[0] = directory.metapage().into();
        Ok(MemoryFilters { memory, directory })
    }

    /// Adds a row with its filter. Errors: those of [`Directory::grow`] and of reading.
    pub fn insert(&mut self, row: RowId, filter: &View<'_>) -> Result<(), Failure> {
        if let Some(mut insertion) = self.begin(row, filter)? {
            while self.step(&mut insertion) {}
            self.publish(&insertion);
        }
        Ok(())
    }

    /// The first step: claims a slot. `None` if the filter needs none. Errors: as
    /// [`MemoryFilters::insert`].
    pub fn begin(&mut self, row: RowId, filter: &View<'_>) -> Result<Option<Insertion>, Failure> {
        let Some(group) = FilterGroup::of_filter(filter) else {
            return Ok(None);
        };
        loop {
            let number = self.directory.group_number(&group);
            for &page in number.map_or(&[][..], |number| self.directory.row_pages(number)) {
                let bytes = self.memory.pages.get(page.number as usize).map(Vec::as_slice);
                let Some(free) = page.first_free(bytes)? else {
                    continue;
                };
                let slot = self.directory.slot(&page, free).expect("a slot of the row page");
                page.claim(free, row)
                    .into_iter()
                    .for_each(|change| self.change(&page, change));
                let bits = slot_bits(filter, &group);
                let chunks = slot.chunks(&bits);
                let chunks = chunks
                    .map(|SlotChunk { page, offset, bytes }| (page, offset, bytes.to_vec()))
                    .collect();
                return Ok(Some(Insertion { page, slot, chunks }));
            }
            let growth = self.directory.grow(&group)?;
            let PageImage { number, bytes } = growth.page.expect("a page with the tile's record");
            self.memory
                .writable(number, self.directory.size)
                .copy_from_slice(&bytes);
            self.memory.pages[0] = growth.directory.metapage().into();
            self.directory = growth.directory;
        }
    }

    /// Another step: writes blocks to a page. Returns whether there were some left.
    pub fn step(&mut self, insertion: &mut Insertion) -> bool {
        let Some((page, offset, bytes)) = insertion.chunks.pop_front() else {
            return false;
        };
        self.write(page, insertion.slot.tile.special(), offset, &bytes);
        true
    }

    /// The last step: lookups find the row from now on.
    pub fn publish(&mut self, Insertion { page, slot, .. }: &Insertion) {
        self.change(page, page.publish(slot.number));
    }

    /// Removes dead rows, as VACUUM does. Returns how many, and how many are left. Errors: those of
    /// reading.
    pub fn remove(&mut self, is_dead: impl Fn(RowId) -> bool) -> Result<(usize, usize), Failure> {
        let pages: Vec<RowPage> = self.directory.all_row_pages().copied().collect();
        let (mut removed, mut left) = (0, 0);
        for page in pages {
            let mut dead = Vec::new();
            self.memory.with_page(page.number, |bytes| {
                page.rows(bytes, 0..page.slots, |slot, _, row| {
                    if is_dead(row) { dead.push(slot) } else { left += 1 }
                })
            })??;
            removed += dead.len();
            dead.into_iter().for_each(|slot| self.change(&page, page.free(slot)));
        }
        Ok((removed, left))
    }

    /// The rows that may match, and whether each must be rechecked. Errors: those of [`search`].
    pub fn search(
        &mut self,
        mut conditions: impl FnMut(&FilterGroup) -> Vec<Vec<Sought>>,
    ) -> Result<BTreeMap<RowId, bool>, Failure> {
        let conditions =
            |group: &FilterGroup| conditions(group).into_iter().map(List::from).collect();
        let mut found = BTreeMap::new();
        search(&self.directory, &mut self.memory, conditions, |FoundRow { row, must_recheck }| {
            *found.entry(row).or_insert(false) |= must_recheck;
        })?;
        Ok(found)
    }

    fn change(&mut self, page: &RowPage, change: ByteChange) {
        self.write(page.number, page.special(), change.offset, &[change.value]);
    }

    fn write(&mut self, at: PageNumber, special: Special, offset: u16, bytes: &[u8]) {
        let page = self.memory.writable(at, self.directory.size);
        special.write(page);
        page[usize::from(offset)..][..bytes.len()].copy_from_slice(bytes);
    }
}
