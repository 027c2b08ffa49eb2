//! An index whose pages are in memory: what the access method does with buffers and WAL, without
//! them. For tests, measurements and fuzzing.

use super::{Build, Damage, Directory, IndexDirectory, Level, Mark, Options, changes, search};
use crate::index::page::Pages;
use crate::index::page::memory;
pub use crate::index::page::memory::{Failure, Memory};

/// Sets the bits of an element in a page. Returns how many bytes changed. Errors: those of
/// [`changes`].
pub fn set(mark: &Mark, page: &mut [u8]) -> Result<usize, Damage> {
    let changes = changes(&[mark], page)?;
    mark.special().write(page);
    for change in &changes {
        page[usize::from(change.offset)] = change.value;
    }
    Ok(changes.len())
}

/// An index in memory.
pub type MemoryRanges = memory::MemoryIndex<Directory>;

impl MemoryRanges {
    /// Builds an index over ranges, each a list of hashes. The table has as many pages as the
    /// ranges say that there will be. Errors: those of [`Build`].
    pub fn build<R: AsRef<[u64]>>(
        options: Options,
        hold: usize,
        ranges: impl IntoIterator<Item = R>,
    ) -> Result<MemoryRanges, Failure> {
        let mut memory = Memory::new(options.size);
        let ranges = ranges.into_iter();
        let table_pages = ranges.size_hint().0 as u32 * options.pages_per_range;
        let mut build = Build::new(Options { table_pages, ..options }, hold);
        let mut rows = 0;
        for range in ranges {
            rows += range.as_ref().len() as u64;
            build.add_range(&mut memory, range.as_ref())?;
        }
        let directory = build.finish(&mut memory, rows)?;
        memory.pages[0] = directory.metapage().into();
        Ok(MemoryRanges { memory, directory })
    }

    /// How many runs of tiles there are.
    pub fn runs(&self) -> usize {
        Level::ALL
            .into_iter()
            .map(|level| self.directory.runs[level].len())
            .sum()
    }

    /// Adds an element. Returns how many bytes of how many pages changed. Errors: as `grow` and
    /// [`changes`].
    pub fn insert(&mut self, range: u32, hash: u64) -> Result<(usize, usize), Failure> {
        let places = loop {
            match self.directory.marks(range, hash) {
                Some(places) => break places,
                None => {
                    let loads = |level| self.directory.keys_in_last_tile(&mut self.memory, level);
                    let growth = self.directory.grow(range, loads)?;
                    if let Some(page) = growth.page {
                        self.memory
                            .writable(page.number, self.directory.options.size)
                            .copy_from_slice(&page.bytes);
                    }
                    self.memory.pages[0] = growth.directory.metapage().into();
                    self.directory = growth.directory;
                }
            }
        };
        let mut changed = (0, 0);
        for mark in &places {
            if !self.memory.with_page(mark.page(), |page| mark.is_set(page))?? {
                let page = self.memory.writable(mark.page(), self.directory.options.size);
                changed = (changed.0 + set(mark, page)?, changed.1 + 1);
            }
        }
        Ok(changed)
    }

    /// The ranges that may have an element. Errors: those of [`search`].
    pub fn search(&mut self, hash: u64) -> Result<Vec<u32>, Failure> {
        let mut found = Vec::new();
        search(&self.directory, &mut self.memory, hash, |range| found.push(range))?;
        Ok(found)
    }
}
