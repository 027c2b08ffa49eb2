//! Where the tiles are: runs of neighbouring tiles with the same shape, on all levels.
//!
//! Only the run whose pages were allocated last ever changes: it gets more tiles. The newest are in
//! the metapage. When it is full, all of them move to a new directory page, which never changes. A
//! billion rows with 65 rows per page are about 240 runs: 128 tiles of level 0, a tile of level 1,
//! and so on. The metapage has room for 403.

use super::shape::{Level, MOST_ALONE, TileShape, Width};
use super::split::Split;
use super::tile::TileAddress;
use crate::error::{Result, TooLarge};
use crate::index::chain::{Chain, META_PAGE};
use crate::index::page::{PageSize, RowId};
use crate::memory;
use std::ops::Range;

/// What was chosen when the index was created.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    pub size: PageSize,
    /// The share of ranges that a lookup of an absent key may find; `None` if it follows the size
    /// of the table.
    pub fpr: Option<f64>,
    /// Heap pages of a range, at least one; one if pages are split.
    pub pages_per_range: u32,
    pub split: Option<Split>,
    /// Whether it can be decided later that pages are split: those of a tile that is added.
    pub may_split: bool,
    /// Heap pages of the table when the index was built.
    pub table_pages: u32,
    /// How many distinct elements a range is assumed to have while there are none.
    pub guess: u32,
    /// Whether level 0 is the only one, however many ranges there are: most slots above would have
    /// all elements.
    pub is_flat: bool,
}

impl Options {
    /// Those of an index on an empty table whose pages are whole. The rate follows the size of the
    /// table.
    pub const fn of_whole_pages(size: PageSize, pages_per_range: u32, guess: u32) -> Options {
        let (fpr, split) = (None, None);
        Options {
            size,
            fpr,
            pages_per_range,
            split,
            may_split: false,
            table_pages: 0,
            guess,
            is_flat: false,
        }
    }

    /// Tiles of a level that end within so many slots have none above.
    pub(super) const fn slots_alone(&self, level: Level) -> u64 {
        match level {
            Level::Zero if self.is_flat => u64::MAX,
            Level::Zero | Level::One => MOST_ALONE,
            Level::Two => u64::MAX,
        }
    }

    #[inline(always)]
    pub fn range_of(&self, row: RowId) -> u32 {
        self.split
            .map_or(row.page / self.pages_per_range, |split| split.range_of(row))
    }

    /// How many ranges a page has, of which this is one.
    pub(super) fn ranges_per_page(&self, range: u64) -> f64 {
        let split = self.split.filter(|split| split.is_split(range));
        split.map_or(1.0 / f64::from(self.pages_per_range), |split| split.ranges.into())
    }

    pub fn ranges_of(&self, table_pages: u32) -> u64 {
        let whole = table_pages.div_ceil(self.pages_per_range);
        self.split
            .map_or(whole.into(), |split| split.first_range(table_pages))
    }

    pub fn pages_of(&self, range: u32) -> Range<u64> {
        let pages = u64::from(self.pages_per_range);
        let first = self
            .split
            .map_or(u64::from(range) * pages, |split| split.page_of(range));
        first..first + pages
    }

    /// Columns that a slot gets in the mean, in a tile from this slot on: documents differ, so they
    /// have some each. Page 0 of a table that was empty has a tile to itself, so that the pages
    /// after it may be split.
    pub(super) fn columns_per_slot(&self, level: Level, first_slot: u64) -> u8 {
        match (level, self.split) {
            (Level::Zero, Some(split)) if split.is_split(first_slot) => 2,
            (Level::Zero, _) if self.may_split && first_slot == 0 => Width::MIN.columns() as u8,
            _ => 1,
        }
    }

    /// Pages that a range has in the mean, or a part of one, in a table of so many pages.
    pub fn mean_pages(&self, table_pages: f64) -> f64 {
        let pages = (table_pages as u32).max(1);
        self.split.map_or(self.pages_per_range.into(), |split| {
            f64::from(pages) / split.first_range(pages) as f64
        })
    }
}

/// Neighbouring tiles of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: TileAddress,
    pub tiles: u32,
}

impl Run {
    pub const fn end_slot(&self) -> u64 {
        self.first.first_slot as u64 + self.tiles as u64 * self.first.shape.slots() as u64
    }

    pub const fn end_page(&self) -> u64 {
        self.first.first_page as u64 + self.tiles as u64 * self.first.shape.pages as u64
    }

    /// The number of its level's first tile after it.
    pub(super) const fn end_tile(&self) -> u32 {
        self.first.ordinal + self.tiles
    }

    /// Nothing overflows: it was checked that slots and pages of a run are 32-bit numbers.
    fn tile(&self, within: u32) -> TileAddress {
        let TileAddress { shape, ordinal, first_slot, first_page } = self.first;
        let (first_slot, first_page) =
            (first_slot + within * shape.slots(), first_page + within * shape.pages);
        TileAddress { shape, ordinal: ordinal + within, first_slot, first_page }
    }
}

/// All tiles of an index, according to its metapage and directory pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Directory {
    pub options: Options,
    pub chain: Chain,
    /// How many keys a row has in the mean, by the build of the index; 0 where each has one.
    pub keys_per_row: u16,
    /// The first tile of each level that has a slot in the level above.
    pub(super) covered_from: [Option<u32>; 3],
    pub(super) levels: [Vec<Run>; 3],
}

impl Directory {
    pub fn empty(options: Options) -> Directory {
        let levels = Default::default();
        Directory {
            options,
            chain: Chain::empty(),
            keys_per_row: 0,
            covered_from: [None; 3],
            levels,
        }
    }

    /// The first slot of a level, if it can have any.
    pub(super) fn first_slot(&self, level: Level) -> u64 {
        level
            .below()
            .and_then(|below| self.covered_from[below as usize])
            .map_or(0, u64::from)
    }

    /// The first slot of a level that has no tile yet: for level 0, how many ranges the tiles have
    /// room for.
    pub fn end_slot(&self, level: Level) -> u64 {
        self.levels[level as usize]
            .last()
            .map_or_else(|| self.first_slot(level), Run::end_slot)
    }

    pub fn tiles(&self, level: Level) -> u32 {
        self.levels[level as usize].last().map_or(0, Run::end_tile)
    }

    /// How many tiles of a level have no slot in the level above: they are the first, and every
    /// lookup probes them.
    pub fn tiles_alone(&self, level: Level) -> u32 {
        self.covered_from[level as usize].unwrap_or_else(|| self.tiles(level))
    }

    /// Whether the pages that have no tile yet may be split, those before them are whole.
    pub fn may_split(&self) -> bool {
        self.options.may_split && self.options.split.is_none() && self.tiles(Level::Zero) > 0
    }

    /// Splits the pages that have no tile yet.
    pub fn split_next(&mut self, split: Split) {
        let first_page = u32::try_from(self.end_slot(Level::Zero)).unwrap_or(Split::NO_PAGE - 1);
        self.options.split = Some(Split { first_page, ..split });
    }

    /// Lets the pages that have no tile yet be whole, where those before them are split.
    pub fn make_whole(&mut self) {
        let last = u32::try_from(self.end_slot(Level::Zero).saturating_sub(1)).unwrap_or(u32::MAX);
        let end = u32::try_from(self.options.pages_of(last).end).unwrap_or(Split::NO_PAGE);
        if let Some(split) = &mut self.options.split {
            split.end_page = end;
        }
    }

    pub fn always_probed(&self) -> u32 {
        Level::ALL.into_iter().map(|level| self.tiles_alone(level)).sum()
    }

    /// The highest level with bits of a tile of level 0.
    pub(super) fn top(&self, tile: u32) -> Level {
        let Some(above) = self.tile_of(Level::One, tile) else {
            return Level::Zero;
        };
        let is_covered =
            self.covered_from[Level::One as usize].is_some_and(|first| above.ordinal >= first);
        if is_covered { Level::Two } else { Level::One }
    }

    /// The runs in the metapage: those whose pages come after the newest directory page, in their
    /// order.
    pub(super) fn open_runs(&self) -> Vec<Run> {
        let newest = self.chain.pages.last().copied().unwrap_or(META_PAGE);
        let is_open = move |run: &&Run| run.first.first_page > newest;
        let open = self
            .levels
            .iter()
            .flat_map(|runs| runs.iter().rev().take_while(is_open));
        let mut open = memory::collect(open.copied());
        open.sort_unstable_by_key(|run| run.first.first_page);
        open
    }

    /// The tile that has a slot, which is a range on level 0, and a tile of level 0 on level 1.
    pub fn tile_of(&self, level: Level, slot: u32) -> Option<TileAddress> {
        let runs = &self.levels[level as usize];
        let run = &runs[runs
            .partition_point(|run| run.first.first_slot <= slot)
            .checked_sub(1)?];
        let within = (slot - run.first.first_slot) / run.first.shape.slots();
        (within < run.tiles).then(|| run.tile(within))
    }

    pub fn tile(&self, level: Level, ordinal: u32) -> Option<TileAddress> {
        self.tiles_from(level, ordinal).next()
    }

    pub fn last_tile(&self, level: Level) -> Option<TileAddress> {
        self.tile(level, self.tiles(level).checked_sub(1)?)
    }

    /// The tiles of a level from number `first` on.
    pub fn tiles_from(&self, level: Level, first: u32) -> impl Iterator<Item = TileAddress> {
        let runs = &self.levels[level as usize];
        let skipped = runs.partition_point(|run| run.end_tile() <= first);
        let from = move |run: &Run| first.saturating_sub(run.first.ordinal)..run.tiles;
        runs[skipped..]
            .iter()
            .flat_map(move |run| from(run).map(move |within| run.tile(within)))
    }

    /// Adds tiles of one shape, and allocates their pages. They become part of the last run if they
    /// follow it and have its shape; otherwise the metapage must have room for another run. Errors:
    /// [`crate::Class::TooLarge`] if there are too few numbers left for pages or slots.
    pub(super) fn push(&mut self, shape: TileShape, tiles: u32) -> Result<()> {
        let first_slot = self.end_slot(shape.level);
        let end_slot = first_slot + u64::from(shape.slots()) * u64::from(tiles);
        let first_page = self.chain.allocate(u64::from(shape.pages) * u64::from(tiles))?;
        if end_slot > 1 << 32 {
            return Err(TooLarge::IndexRanges(end_slot).into());
        }
        let (ordinal, first_slot) = (self.tiles(shape.level), first_slot as u32);
        let follows =
            |last: &&mut Run| last.first.shape == shape && last.end_page() == u64::from(first_page);
        let runs = &mut self.levels[shape.level as usize];
        match runs.last_mut().filter(follows) {
            // No directory page is between them.
            Some(last) => last.tiles += tiles,
            None => runs.push(Run {
                first: TileAddress { shape, ordinal, first_slot, first_page },
                tiles,
            }),
        }
        Ok(())
    }
}
