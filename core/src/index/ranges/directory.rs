//! Where the tiles are: runs of neighbouring tiles with the same shape, on all levels.
//!
//! Only the run whose pages were allocated last ever changes: it gets more tiles. The newest are in
//! the metapage. When it is full, all of them move to a new directory page, which never changes. A
//! billion rows with 65 rows per page are about 240 runs: 128 tiles of level 0, a tile of level 1,
//! and so on. The metapage has room for 403.
//!
//! `meta` reads a directory and writes its metapage, `grow` adds tiles to it, and `search` looks
//! keys up by it.

use super::shape::{Level, MOST_ALWAYS_PROBED_SLOTS, PerLevel, TileShape, Width};
use super::split::Split;
use super::tile::{Mark, SlotAddress, TileAddress};
use crate::error::{Result, TooLarge};
use crate::index::chain::{Chain, META_PAGE};
use crate::index::page::{PageSize, RowId};
use crate::memory::List;
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
    /// Which pages are *split*: they have so much text that each is divided among several ranges.
    /// `None` if each range has whole pages.
    pub split: Option<Split>,
    /// Whether pages that the table gets later may be split, if none is split now.
    pub may_split: bool,
    /// Heap pages of the table when the index was built.
    pub table_pages: u32,
    /// How many distinct keys a range is assumed to have while the index has none.
    pub keys_per_range: u32,
    /// Whether the index has only level 0, the filters of ranges, however many these are. Otherwise
    /// it gets filters of higher levels, each for many ranges that a lookup can skip together. In
    /// an index of texts such filters would have nearly all keys, and let it skip nothing.
    pub is_flat: bool,
}

impl Options {
    /// Returns the options of an index on a table without rows. Each *range*, the part of the table
    /// that has one Bloom filter, is `pages_per_range` whole pages, and no page is ever split among
    /// several ranges. The index gets filters of higher levels as it grows (it isn't *flat*). The
    /// false positive rate follows the size of the table. `keys_per_range` is a guess of how many
    /// distinct keys a range will have, for its first filters. A caller that wants other options
    /// changes these fields.
    pub const fn for_empty_table(
        size: PageSize,
        pages_per_range: u32,
        keys_per_range: u32,
    ) -> Options {
        Options {
            size,
            fpr: None,
            pages_per_range,
            split: None,
            may_split: false,
            table_pages: 0,
            keys_per_range,
            is_flat: false,
        }
    }

    /// Returns the most slots of a level that may be in tiles without a slot in the level above.
    /// Every lookup reads such tiles. The highest level has no level above, and no limit.
    pub(super) const fn most_always_probed_slots(&self, level: Level) -> u64 {
        match level {
            Level::Zero if self.is_flat => u64::MAX,
            Level::Zero | Level::One => MOST_ALWAYS_PROBED_SLOTS,
            Level::Two => u64::MAX,
        }
    }

    /// Returns the range of a row.
    #[inline(always)]
    pub fn range_of(&self, row: RowId) -> u32 {
        match self.split {
            Some(split) => split.range_of(row),
            None => row.page / self.pages_per_range,
        }
    }

    /// Returns how many ranges a page has around this range: a fraction if a range has several
    /// pages.
    pub(super) fn ranges_per_page(&self, range: u64) -> f64 {
        match self.split {
            Some(split) if split.is_split(range) => split.ranges_per_page.into(),
            _ => 1.0 / f64::from(self.pages_per_range),
        }
    }

    /// Returns how many ranges a table of `table_pages` pages has.
    pub fn ranges_of(&self, table_pages: u32) -> u64 {
        match self.split {
            Some(split) => split.first_range(table_pages),
            None => table_pages.div_ceil(self.pages_per_range).into(),
        }
    }

    /// Returns the heap pages of a range. If pages are split, it is the page that the range is a
    /// part of.
    pub fn pages_of(&self, range: u32) -> Range<u64> {
        let pages_per_range = u64::from(self.pages_per_range);
        let first = match self.split {
            Some(split) => split.page_of(range),
            None => u64::from(range) * pages_per_range,
        };
        first..first + pages_per_range
    }

    /// Returns how many columns a slot of a new tile gets on average. A column is a Bloom filter,
    /// and a *slot* is what the tile has filters for: a range of the table on level 0, a tile of
    /// the level below on another level. The tile begins with slot `first_slot` of its level.
    ///
    /// Mostly it is one column. It is two on level 0 where pages of the table are split among
    /// several ranges, and eight for the first page of a table that was empty when the index was
    /// made.
    pub(super) fn columns_per_slot(&self, level: Level, first_slot: u64) -> u8 {
        match (level, self.split) {
            // Documents differ in length, so that some need several columns.
            (Level::Zero, Some(split)) if split.is_split(first_slot) => 2,
            // Page 0 of a table that was empty has all columns of the first tile, so that the pages
            // after it may be split.
            (Level::Zero, _) if self.may_split && first_slot == 0 => Width::MIN.columns() as u8,
            _ => 1,
        }
    }

    /// Returns how many heap pages a range has on average, in a table of `table_pages` pages; less
    /// than one if pages are split.
    pub fn mean_pages(&self, table_pages: f64) -> f64 {
        match self.split {
            Some(split) => {
                let pages = (table_pages as u32).max(1);
                f64::from(pages) / split.first_range(pages) as f64
            }
            None => self.pages_per_range.into(),
        }
    }
}

/// Neighbouring tiles of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileRun {
    pub first: TileAddress,
    /// How many tiles there are, at least one.
    pub tiles: u32,
}

impl TileRun {
    /// Returns the first slot of the level after those of the run.
    pub const fn end_slot(&self) -> u64 {
        self.first.first_slot as u64 + self.tiles as u64 * self.first.shape.slots() as u64
    }

    /// Returns the first page of the index after those of the run.
    pub const fn end_page(&self) -> u64 {
        self.first.first_page as u64 + self.tiles as u64 * self.first.shape.pages as u64
    }

    /// Returns the ordinal of the level's first tile after the run.
    pub(super) const fn end_tile(&self) -> u32 {
        self.first.ordinal + self.tiles
    }

    /// Returns tile number `index` of the run, counted from 0.
    fn tile(&self, index: u32) -> TileAddress {
        let TileAddress { shape, ordinal, first_slot, first_page } = self.first;
        // No product overflows: slots and pages of a run are 32-bit numbers, as was checked when
        // the run was read or added.
        TileAddress {
            shape,
            ordinal: ordinal + index,
            first_slot: first_slot + index * shape.slots(),
            first_page: first_page + index * shape.pages,
        }
    }
}

/// All tiles of an index, according to its metapage and directory pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Directory {
    pub options: Options,
    pub chain: Chain,
    /// How many keys a row has on average, by the build of the index; 0 if each has one.
    pub keys_per_row: u16,
    /// The first tile of each level that has a slot in the level above; `None` if no tile has.
    pub(super) first_with_slot_above: PerLevel<Option<u32>>,
    /// The runs of each level, in the order of their slots.
    pub(super) runs: PerLevel<List<TileRun>>,
}

impl Directory {
    /// Returns the directory of an index without tiles.
    pub fn empty(options: Options) -> Directory {
        Directory {
            options,
            chain: Chain::empty(),
            keys_per_row: 0,
            first_with_slot_above: PerLevel::default(),
            runs: PerLevel::default(),
        }
    }

    /// Returns the first slot that a level has or would have. The slots of levels 1 and 2 are
    /// numbered as the tiles below, and the first of these may have no slot above.
    pub(super) fn first_slot(&self, level: Level) -> u64 {
        let first_below_with_slot =
            level.below().and_then(|below| self.first_with_slot_above[below]);
        first_below_with_slot.map_or(0, u64::from)
    }

    /// Returns the first slot of a level that has no tile yet: for level 0, how many ranges the
    /// tiles have room for.
    pub fn end_slot(&self, level: Level) -> u64 {
        match self.runs[level].last() {
            Some(last) => last.end_slot(),
            None => self.first_slot(level),
        }
    }

    /// Returns how many tiles a level has.
    pub fn tile_count(&self, level: Level) -> u32 {
        self.runs[level].last().map_or(0, TileRun::end_tile)
    }

    /// Returns how many tiles of a level have no slot in the level above. They are the first ones
    /// of the level, and every lookup probes them.
    pub fn tiles_without_slot_above(&self, level: Level) -> u32 {
        self.first_with_slot_above[level].unwrap_or_else(|| self.tile_count(level))
    }

    /// Returns how many tiles every lookup probes, on all levels together.
    pub fn always_probed(&self) -> u32 {
        Level::ALL
            .into_iter()
            .map(|level| self.tiles_without_slot_above(level))
            .sum()
    }

    /// Returns whether the pages that have no tile yet may be split: those with a tile are whole,
    /// and there are such.
    pub fn may_split_new_pages(&self) -> bool {
        let is_undecided = self.options.may_split && self.options.split.is_none();
        is_undecided && self.tile_count(Level::Zero) > 0
    }

    /// Makes several ranges of each page of the table that has no tile yet, as `split` says;
    /// `split.first_page` is ignored. Until now each page must have been one range.
    pub fn split_new_pages(&mut self, split: Split) {
        // A range is a page here.
        let end_range = self.end_slot(Level::Zero);
        let first_page = u32::try_from(end_range).unwrap_or(Split::NO_PAGE - 1);
        self.options.split = Some(Split { first_page, ..split });
    }

    /// Makes one range of each page of the table that has no tile yet, if the pages before them are
    /// split among several ranges each. Does nothing if no pages are split.
    pub fn make_new_pages_whole(&mut self) {
        let last_range = self.end_slot(Level::Zero).saturating_sub(1);
        let last_range = u32::try_from(last_range).unwrap_or(u32::MAX);
        let end_page = self.options.pages_of(last_range).end;
        if let Some(split) = &mut self.options.split {
            split.end_page = u32::try_from(end_page).unwrap_or(Split::NO_PAGE);
        }
    }

    /// Returns the highest level that has bits of the keys in this tile of level 0.
    pub(super) fn highest_level_of_tile(&self, tile: u32) -> Level {
        let Some(above) = self.tile_of(Level::One, tile) else {
            return Level::Zero;
        };
        match self.first_with_slot_above[Level::One] {
            Some(first_with_slot_above) if above.ordinal >= first_with_slot_above => Level::Two,
            _ => Level::One,
        }
    }

    /// Returns the runs of tiles whose records are in the metapage, in the order of the pages of
    /// their tiles. (A run is neighbouring tiles of one shape.) When the metapage was full, all of
    /// its records were moved to a new directory page. So its runs are those that were added later,
    /// whose pages have greater numbers than the newest directory page.
    pub(super) fn runs_of_metapage(&self) -> List<TileRun> {
        let newest_directory_page = self.chain.pages.last().copied().unwrap_or(META_PAGE);
        let is_in_metapage = move |run: &&TileRun| run.first.first_page > newest_directory_page;
        let runs_of_levels = Level::ALL.into_iter().flat_map(|level| {
            // The newest runs of a level are its last ones.
            self.runs[level].iter().rev().take_while(is_in_metapage)
        });

        let mut runs = runs_of_levels.copied().collect::<List<_>>();
        runs.sort_unstable_by_key(|run| run.first.first_page);
        runs
    }

    /// Returns the tile of a level that has the slot with this number; `None` if no tile has it. On
    /// level 0 the number is that of a range of the table, on another level it is the ordinal of a
    /// tile of the level below.
    pub fn tile_of(&self, level: Level, slot: u32) -> Option<TileAddress> {
        // The slot is in the last run that begins with it or before it.
        let runs = &self.runs[level];
        let begun = runs.partition_point(|run| run.first.first_slot <= slot);
        let run = runs[..begun].last()?;

        let tile_in_run = (slot - run.first.first_slot) / run.first.shape.slots();
        (tile_in_run < run.tiles).then(|| run.tile(tile_in_run))
    }

    /// Returns the tile of a level with this ordinal; `None` if there are fewer.
    pub fn tile(&self, level: Level, ordinal: u32) -> Option<TileAddress> {
        self.tiles_from(level, ordinal).next()
    }

    /// Returns the last tile of a level; `None` if there is none.
    pub fn last_tile(&self, level: Level) -> Option<TileAddress> {
        self.tile(level, self.tile_count(level).checked_sub(1)?)
    }

    /// Returns the tiles of a level in their order, from the one with this ordinal on.
    pub fn tiles_from(&self, level: Level, first: u32) -> impl Iterator<Item = TileAddress> {
        let runs = &self.runs[level];
        let runs_before = runs.partition_point(|run| run.end_tile() <= first);
        runs[runs_before..].iter().flat_map(move |run| {
            let first_of_run = first.saturating_sub(run.first.ordinal);
            (first_of_run..run.tiles).map(|index| run.tile(index))
        })
    }

    /// Returns where the bits of a key of a range belong: one mark for each level that has such
    /// bits, from the highest level down. `None` if the range has no tile yet.
    ///
    /// To add a key, take the exclusive locks of the pages in the order of their numbers, and write
    /// the [`changes`](super::changes) of each, with one WAL record. A page that has none needs
    /// nothing: the backend that set its bits held the lock until it had inserted the WAL record,
    /// which therefore precedes our commit. The metapage is never locked while a page of a tile is.
    pub fn marks(&self, range: u32, hash: u64) -> Option<List<Mark>> {
        let slots = self.slots_of_range(range)?;
        Some(slots.iter().map(|slot| slot.mark(hash)).collect())
    }

    /// Returns where the index keeps the keys of a range of the table: one *slot*, the place of a
    /// filter in a tile, for each level that has bits of the keys, from the highest level down.
    /// `None` if the range has no tile yet.
    ///
    /// On level 0 each range has a slot. On levels 1 and 2 each tile of the level below has a slot,
    /// a filter of all of its keys; except for the first tiles of a level, whose keys have bits on
    /// no higher level.
    pub fn slots_of_range(&self, range: u32) -> Option<List<SlotAddress>> {
        let mut slots = List::with_capacity(Level::ALL.len());
        let mut slot_number = range;
        for level in Level::ALL {
            let tile = self.tile_of(level, slot_number)?;
            let slot_in_tile = (slot_number - tile.first_slot) as u8;
            slots.push(SlotAddress { tile, slot_in_tile });

            let has_slot_above = tile.ordinal >= self.tiles_without_slot_above(level);
            if !has_slot_above {
                break;
            }
            // The level above numbers its slots as this level its tiles. Reading the directory has
            // checked that the slot exists.
            slot_number = tile.ordinal;
        }
        slots.reverse();
        Some(slots)
    }

    /// Adds `count` tiles of one shape behind the last tile of their level, and allocates their
    /// pages: the next ones of the index file that belong to nothing. Nothing is written.
    ///
    /// Neighbouring tiles of one shape whose pages follow each other are a *run*, and are stored as
    /// one record in the metapage. The new tiles become part of the level's last run if they can.
    /// Otherwise they are a run of their own: then the caller must have made sure that the metapage
    /// has room for another record, as this function doesn't check that.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few 32-bit numbers are left for pages or for
    /// slots (ranges of the table on level 0, tiles of the level below on another level). The
    /// directory is of no use then.
    pub(super) fn add_tiles(&mut self, shape: TileShape, count: u32) -> Result<()> {
        let level = shape.level;
        let first_slot = self.end_slot(level);
        let end_slot = first_slot + u64::from(shape.slots()) * u64::from(count);
        let pages = u64::from(shape.pages) * u64::from(count);
        let first_page = self.chain.allocate(pages)?;
        // Slots have 32-bit numbers.
        if end_slot > 1 << 32 {
            return Err(TooLarge::IndexRanges(end_slot).into());
        }

        let first = TileAddress {
            shape,
            ordinal: self.tile_count(level),
            first_slot: first_slot as u32,
            first_page,
        };
        let runs = &mut self.runs[level];
        match runs.last_mut() {
            // The pages don't follow each other if tiles of another level, or a directory page, are
            // between them.
            Some(last) if last.first.shape == shape && last.end_page() == u64::from(first_page) => {
                last.tiles += count;
            }
            _ => runs.push(TileRun { first, tiles: count }),
        }
        Ok(())
    }
}
