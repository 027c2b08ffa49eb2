//! Building an index in one pass: ranges in order, each with the hashes of its keys.
//!
//! ```text
//! range ──▶ gathered: up to 128 ranges ──▶ tile of level 0, sized by what its ranges hold, written at once
//!                                     └──▶ its distinct hashes: one slot of level 1, kept in memory
//!                                            all slots of a tile, or the end: tiles of level 1, written
//!                                     └──▶ bits of one slot of level 2, kept in memory until it has 128 such slots
//! ```
//!
//! How many levels there are follows from the pages of the table. Widths fit the number of slots:
//! 91 tiles get 64 and 32 slots above them. The last tile is sized for full ranges, though its last
//! range may have only a few rows yet.
//!
//! Slots of level 1 are kept as hashes or as bits, those of level 2 as bits: see
//! [`super::pending`]. A slot of level 1 that would be overfull begins another tile, if the slots
//! before it fill theirs: every eighth may.

use super::column_bits::ColumnBits;
use super::directory::{Directory, Options};
use super::meta::most_runs_of_metapage;
use super::pending::{
    GatheredRanges, LevelPlan, PendingLevelOne, PendingLevelTwo, PendingSlots, SlotContents,
};
use super::rate::{SlotTarget, complete_columns, mean};
use super::shape::{Level, MAX_WIDTH, PerLevel, SlotColumns, TileShape, Width, column};
use super::tile::Footprint;
use crate::index::page::PageSink;
use crate::interrupt;
use crate::memory::List;
use std::ops::Range;

/// In an index with level 2, a build makes tiles of level 1 so narrow that there are at least so
/// many of them, and mostly fewer than twice as many. Each is a slot of level 2, so at least half
/// of the 128 slots of a tile of level 2 are used.
const SLOTS_OF_LEVEL_TWO: u64 = 64;

/// An index that is being built. Call [`Build::add_range`] for each range of the table, then
/// [`Build::finish`].
pub struct Build {
    directory: Directory,
    /// The highest level that tiles of level 0 have bits in.
    highest_level: Level,
    /// What slots of level 0 must keep.
    target: SlotTarget,
    /// The ranges of the next tile of level 0.
    gathered: GatheredRanges,
    level_one: PendingLevelOne,
    level_two: PendingLevelTwo,
    /// Keys of a complete range on average, by the last tile that had any.
    mean_keys_per_range: Option<f64>,
}

/// Whether the table has more ranges than those that were added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    MoreFollows,
    Ended,
}

/// Which columns the slots of a tile have, and how many keys are in them.
struct FilledColumns {
    slot_columns: SlotColumns,
    keys_per_column: List<f64>,
}

/// A tile of level 1 or 2 before it is written.
struct TileColumns {
    shape: TileShape,
    /// The bits of the first columns; the others have none.
    columns: List<ColumnBits>,
}

/// Returns what the slots of each level must keep, if `highest_level` is the highest one. Levels
/// above it have no slots.
fn targets(options: &Options, highest_level: Level) -> PerLevel<SlotTarget> {
    let first_range = 0;
    PerLevel::from_fn(|level| options.target(level.min(highest_level), highest_level, first_range))
}

/// Returns how many tiles of level 0 a table needs that has as many pages as the options say. Each
/// has the Bloom filters of up to 128 ranges of the table.
fn level_zero_tiles(options: &Options) -> u64 {
    let ranges = options.ranges_of(options.table_pages);
    ranges.div_ceil(MAX_WIDTH.into())
}

/// Returns how many levels an index needs whose table has as many pages as the options say.
fn highest_level_of_new(options: &Options) -> Level {
    let ranges = options.ranges_of(options.table_pages);
    if ranges <= options.most_always_probed_slots(Level::Zero) {
        Level::Zero
    } else if level_zero_tiles(options) <= options.most_always_probed_slots(Level::One) {
        Level::One
    } else {
        Level::Two
    }
}

/// Returns how many Bloom filters a tile of level 1 gets in a new index with this highest level. A
/// filter of level 1 is for a tile of level 0, and a filter of level 2 for a tile of level 1.
///
/// Tiles are as wide as possible if there is no level 2. Otherwise they are narrower, so that there
/// are enough of them to use at least half of the 128 filters of a tile of level 2. For example, of
/// 2,048 tiles of level 0 each 2,048 / 64 = 32 get a tile of level 1: there are 64 such tiles.
fn width_of_level_one(options: &Options, highest_level: Level) -> Width {
    match highest_level {
        Level::Zero | Level::One => Width::MAX,
        Level::Two => Width::within(level_zero_tiles(options) / SLOTS_OF_LEVEL_TWO),
    }
}

/// Returns the directory of a new index with this highest level. The tiles of each lower level,
/// from the first one on, will have a filter of all of their keys in the level above.
fn empty_directory(options: Options, highest_level: Level) -> Directory {
    let mut directory = Directory::empty(options);
    for level in [Level::Zero, Level::One] {
        if level < highest_level {
            let first_tile = 0;
            directory.first_with_slot_above[level] = Some(first_tile);
        }
    }
    directory
}

impl Build {
    /// Begins to build an index over ranges of a table's pages. The caller must have checked that
    /// these options are possible.
    ///
    /// The index gets one to three levels of Bloom filters, by the number of pages that the options
    /// say. Each level keeps in memory what its filters are made of, until they are written:
    ///
    /// ```text
    ///           a filter for each              kept in memory
    /// level 0   range of the table             hashes of the keys of up to 128 ranges
    /// level 1   128 ranges, a tile of level 0  about `most_hashes` hashes; bits if there are more
    /// level 2   tile of level 1                bits of as many bytes, but of 8 filters at least
    /// ```
    ///
    /// A hash has 8 bytes. If the table turns out to be larger, levels are added later.
    pub fn new(options: Options, most_hashes: usize) -> Build {
        let highest_level = highest_level_of_new(&options);
        let targets = targets(&options, highest_level);

        let plan_of_level_one = LevelPlan {
            level: Level::One,
            width: width_of_level_one(&options, highest_level),
            target: targets[Level::One],
            size: options.size,
        };
        let plan_of_level_two = LevelPlan {
            level: Level::Two,
            width: Width::MAX,
            target: targets[Level::Two],
            size: options.size,
        };

        // Bits are kept as words of 64 bits, which take 8 bytes as hashes do.
        let most_words = most_hashes;
        Build {
            directory: empty_directory(options, highest_level),
            highest_level,
            target: targets[Level::Zero],
            gathered: GatheredRanges::default(),
            level_one: PendingLevelOne::new(plan_of_level_one, most_hashes),
            level_two: PendingLevelTwo::new(plan_of_level_two, most_words),
            mean_keys_per_range: None,
        }
    }

    /// Adds levels to the index until `highest_level` is its highest one; does nothing if it
    /// already has that level. The keys of tiles that were written before have bits on the old
    /// levels only.
    ///
    /// From now on each new tile of a level gets a *slot* in a tile of the level above: a filter of
    /// all of its keys, by which a lookup can skip it. The false positive rates of the levels
    /// multiply, so each level may have a higher rate from now on.
    fn add_levels(&mut self, highest_level: Level) {
        for level in [Level::Zero, Level::One] {
            let gets_level_above = (self.highest_level..highest_level).contains(&level);
            if gets_level_above {
                // The next tile is the first one of its level that has a slot above.
                let next_tile = self.directory.tile_count(level);
                self.directory.first_with_slot_above[level] = Some(next_tile);
            }
        }
        self.highest_level = self.highest_level.max(highest_level);

        let targets = targets(&self.directory.options, self.highest_level);
        self.target = targets[Level::Zero];
        self.level_one.plan.target = targets[Level::One];
        self.level_two.plan.target = targets[Level::Two];
    }

    /// Adds level 1 to an index that has level 0 only, if every lookup would probe too many tiles
    /// once the next `new_ranges` ranges of the table have tiles. That happens if the table has
    /// grown since the build began.
    fn add_level_one_if_needed(&mut self, new_ranges: u64) {
        let end_range = self.directory.end_slot(Level::Zero) + new_ranges;
        let most_ranges = self.directory.options.most_always_probed_slots(Level::Zero);
        if self.highest_level == Level::Zero && end_range > most_ranges {
            self.add_levels(Level::One);
        }
    }

    /// Adds the next range of the table, with the hashes of its keys in any order and possibly
    /// repeated; there may be none. If 128 ranges were gathered before, they are written as a tile.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    pub fn add_range<S: PageSink>(&mut self, sink: &mut S, hashes: &[u64]) -> Result<(), S::Error> {
        let slots_of_widest = Width::MAX.slots(self.columns_per_slot()) as usize;
        if self.gathered.count() == slots_of_widest {
            let gathered = std::mem::take(&mut self.gathered);
            self.write_full_tile(sink, gathered, Input::MoreFollows)?;
        }
        self.gathered.add(hashes);
        Ok(())
    }

    /// Ends the build: writes the filters that are still in memory, and returns the directory,
    /// which says where they are. The caller must write its metapage. `rows` is the number of rows
    /// that the index was built from.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    pub fn finish<S: PageSink>(mut self, sink: &mut S, rows: u64) -> Result<Directory, S::Error> {
        let last_ranges = std::mem::take(&mut self.gathered);
        let new_ranges = last_ranges.count() as u64;
        self.add_level_one_if_needed(new_ranges);
        if self.highest_level == Level::Zero {
            // The ranges may be divided among tiles of several widths, so that few columns are
            // unused.
            self.write_last_tiles(sink, &last_ranges)?;
        } else {
            // The ranges are one tile, since level 1 has one filter for all of them.
            if last_ranges.count() > 0 {
                self.write_full_tile(sink, last_ranges, Input::Ended)?;
            }
            self.write_level_one(sink, Input::Ended)?;
            self.write_level_two(sink, Input::Ended)?;
        }

        self.forget_levels_without_tiles();
        self.directory.chain.rows_built = rows;
        Ok(self.directory)
    }

    /// Notes that no tile of a level has a slot in the level above, if the first one that should
    /// have got it was never written: the metapage must not name a tile that doesn't exist. Levels
    /// are added for the pages of the table, which may have fewer ranges with rows than expected.
    fn forget_levels_without_tiles(&mut self) {
        for level in [Level::Zero, Level::One] {
            let tiles = self.directory.tile_count(level);
            let first_with_slot_above = &mut self.directory.first_with_slot_above[level];
            *first_with_slot_above = first_with_slot_above.filter(|&first| first < tiles);
        }
    }

    /// Writes tiles for the last ranges of the table, in an index that has level 0 only. There may
    /// be several tiles, since a tile has a power of two of filters: 70 ranges get tiles of 64 and
    /// 8.
    ///
    /// `gathered` has the hashes of the keys of these ranges.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_last_tiles<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: &GatheredRanges,
    ) -> Result<(), S::Error> {
        // A filter is a column of its tile. Ranges may have several on average.
        let columns_per_range = self.columns_per_slot();
        let mut first_range = 0;
        while first_range < gathered.count() {
            let ranges_left = gathered.count() - first_range;
            let columns_left = ranges_left * usize::from(columns_per_range);
            let width = width_for_slots(columns_left, Level::Zero);
            let ranges_of_tile = width.slots(columns_per_range) as usize;

            let end_range = gathered.count().min(first_range + ranges_of_tile);
            let is_last_tile = end_range == gathered.count();
            let input = if is_last_tile { Input::Ended } else { Input::MoreFollows };
            self.write_level_zero_tile(sink, gathered, first_range..end_range, width, input)?;
            first_range = end_range;
        }
        Ok(())
    }

    /// Writes a tile of level 0, which has the filters of all ranges of the table that were
    /// gathered. If the index has more levels, the keys of the tile are also kept in memory, until
    /// tiles of these levels are written. `input` says whether more ranges follow.
    ///
    /// Before that, adds level 1 or level 2 if a lookup would otherwise probe too many tiles: the
    /// table may have grown since the build began.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_full_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: GatheredRanges,
        input: Input,
    ) -> Result<(), S::Error> {
        self.add_level_one_if_needed(MAX_WIDTH.into());
        self.add_level_two_if_needed(sink)?;

        let ranges = gathered.count();
        let columns = ranges as u64 * u64::from(self.columns_per_slot());
        let width = Width::holding(columns);
        self.write_level_zero_tile(sink, &gathered, 0..ranges, width, input)?;
        if self.highest_level > Level::Zero {
            self.keep_keys_for_levels_above(sink, gathered)?;
        }
        Ok(())
    }

    /// Adds level 2 to an index whose highest level is level 1, if level 1 has as many slots, one
    /// for each tile of level 0, as it may have without a level above. The slots of level 1 that
    /// are kept in memory are written first, as they get no bits on level 2.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn add_level_two_if_needed<S: PageSink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        let tiles_of_zero = u64::from(self.directory.tile_count(Level::Zero));
        let slots_of_one = tiles_of_zero - self.directory.first_slot(Level::One);
        let most_slots_of_one = self.directory.options.most_always_probed_slots(Level::One);
        if self.highest_level == Level::One && slots_of_one >= most_slots_of_one {
            self.write_level_one(sink, Input::MoreFollows)?;
            self.add_levels(Level::Two);
        }
        Ok(())
    }

    /// Adds the keys of a tile of level 0, which was just written, to the levels above. `gathered`
    /// has these keys. A tile is some neighbouring pages with Bloom filters:
    ///
    /// ```text
    /// a tile of level 0    has a filter for each of up to 128 ranges of the table
    ///           level 1    has a filter for each of some tiles of level 0, with all keys of it
    ///           level 2    has a filter for each of some tiles of level 1, with all keys of it
    /// ```
    ///
    /// So the keys become a new filter of level 1. If there is a level 2, they are also added to
    /// its *open* filter, which isn't complete yet. Filters are kept in memory until there are
    /// enough for a tile. When a tile of level 1 is written, the open filter of level 2 has all of
    /// its keys, and is closed.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn keep_keys_for_levels_above<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: GatheredRanges,
    ) -> Result<(), S::Error> {
        let ranges = gathered.count() as f64;
        let hashes = gathered.into_distinct();
        // The last tile of the table may have fewer than 128 ranges. The filters above it need room
        // for the ranges that are appended later: if 32 ranges have 3,000 keys, for 12,000 keys.
        let keys_so_far = hashes.len() as f64;
        let keys_if_full = keys_so_far * f64::from(MAX_WIDTH) / ranges;

        // All filters of a tile have the same size. If that of the kept filters is too small for
        // the new one, and they fill tiles (their number is a multiple of 8), they are written, and
        // the new one begins another tile.
        if self.level_one.needs_other_tile(keys_if_full) {
            self.write_level_one(sink, Input::MoreFollows)?;
        }

        if self.highest_level == Level::Two {
            // A filter of level 2 gets the keys of as many tiles of level 0 as a tile of level 1
            // has filters.
            let tiles_per_filter = f64::from(self.level_one.plan.width.columns());
            let expected_keys = keys_if_full * tiles_per_filter;
            self.level_two.add_to_open_slot(expected_keys, &hashes);
        }

        self.level_one.add_slot(hashes, keys_if_full);
        if self.level_one.is_full() {
            self.write_level_one(sink, Input::MoreFollows)?;
        }
        Ok(())
    }

    /// Writes the filters of level 1 that are kept in memory, its *slots*, as one tile or several.
    /// If there is a level 2, each of these tiles is a slot of level 2, and is kept in memory until
    /// tiles of level 2 are written.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_level_one<S: PageSink>(&mut self, sink: &mut S, input: Input) -> Result<(), S::Error> {
        let tiles_before = self.directory.tile_count(Level::One);
        let slots = self.level_one.take_slots();
        self.write_slots(sink, Level::One, slots, input)?;

        let new_tiles = self.directory.tile_count(Level::One) - tiles_before;
        if self.highest_level == Level::Two && new_tiles > 0 {
            self.keep_slots_of_level_two(sink, new_tiles)?;
        }
        Ok(())
    }

    /// Gives each tile of level 1 that was just written its filter of level 2, which has all keys
    /// of the tile. There are `new_tiles` such tiles, mostly one. The filters are kept in memory
    /// until they fill a tile of level 2, or take too much memory; then they are written.
    ///
    /// While level 1 was kept in memory, its keys were also added to one filter of level 2. Usually
    /// it was then written as one tile, whose filter this is. But if it was written as several
    /// tiles, each of them gets a copy of the filter, since keys can't be taken out. A copy reports
    /// more keys than its tile has, but misses none.
    ///
    /// Example: level 1 had 24 filters when it was written before the end of the table. As no tile
    /// may have unused columns then, they became tiles of 16 and 8. One filter of level 2 has the
    /// keys of all 24, and both tiles get a copy. (At the end of the table they would be one tile
    /// of 32.)
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn keep_slots_of_level_two<S: PageSink>(
        &mut self,
        sink: &mut S,
        new_tiles: u32,
    ) -> Result<(), S::Error> {
        let filter = self.level_two.close_slot();
        for _ in 0..new_tiles {
            if self.level_two.is_full() {
                self.write_level_two(sink, Input::MoreFollows)?;
            }
            self.level_two.add_slot(filter.bits.copy(), filter.keys);
        }

        // The next filter probably has as many keys as this one.
        self.enlarge_level_two_if_needed(sink, filter.keys)
    }

    /// Makes the next filters of level 2 larger, if those that are kept in memory are too small for
    /// `keys` keys, and can be written without an unused column: if their number is a multiple of
    /// 8. Filters that are too small report too many keys that they don't have. As all filters of a
    /// tile have one size, the kept ones are written first. The next filter decides the size of its
    /// tile by its own keys.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn enlarge_level_two_if_needed<S: PageSink>(
        &mut self,
        sink: &mut S,
        keys: f64,
    ) -> Result<(), S::Error> {
        if self.level_two.needs_other_tile(keys) {
            self.write_level_two(sink, Input::MoreFollows)?;
            self.level_two.forget_blocks();
        }
        Ok(())
    }

    /// Writes the slots of level 2 that are kept.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_level_two<S: PageSink>(&mut self, sink: &mut S, input: Input) -> Result<(), S::Error> {
        let slots = self.level_two.take_slots();
        self.write_slots(sink, Level::Two, slots, input)
    }

    /// Writes filters of level 1 or 2 that were kept in memory (*slots*) as tiles. Each filter has
    /// all keys of one tile of the level below, and becomes a column of a tile. The number of
    /// columns of a tile, its width, is a power of two from 8 to 128, so several tiles may be
    /// needed.
    ///
    /// `input` says whether the table has more ranges. If so, each tile is as wide as the filters
    /// that are left can fill, since later filters go to other tiles. If not, the last tile may be
    /// wider: its free columns get filters when the table grows.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_slots<S: PageSink>(
        &mut self,
        sink: &mut S,
        level: Level,
        mut slots: PendingSlots,
        input: Input,
    ) -> Result<(), S::Error> {
        while slots.count() > 0 {
            let width = match input {
                Input::MoreFollows => Width::within(slots.count() as u64),
                Input::Ended => width_for_slots(slots.count(), level),
            };
            let slots_of_tile = slots.take_first(width.columns() as usize);
            let TileColumns { shape, columns } = self.columns_of_slots(level, width, slots_of_tile);
            let one_column_each = SlotColumns::even(width, 1);
            self.write_tile(sink, shape, &columns, one_column_each)?;
        }
        Ok(())
    }

    /// Returns the shape of a tile of level 1 or 2 of this width, and its columns: the bits of
    /// these filters, which were kept in memory. If they were kept as the hashes of their keys, the
    /// tile is sized for these, and otherwise by the bits.
    fn columns_of_slots(&self, level: Level, width: Width, slots: PendingSlots) -> TileColumns {
        let plan = match level {
            Level::Two => &self.level_two.plan,
            // Filters of level 0 are never kept as slots.
            Level::One | Level::Zero => &self.level_one.plan,
        };
        match slots.contents {
            SlotContents::Bits(columns) => {
                // Slots that are kept as bits all have the same number of blocks.
                let shape = plan.shape(width, columns[0].blocks());
                TileColumns { shape, columns }
            }
            SlotContents::Hashes(hashes_of_slots) => {
                let keys_per_slot = complete_columns(&slots.keys_per_slot);
                let shape = self.directory.shape_for(level, width, plan.target, &keys_per_slot);
                let columns = hashes_of_slots
                    .iter()
                    .map(|hashes| ColumnBits::with_keys(hashes, shape));
                TileColumns { shape, columns: columns.collect() }
            }
        }
    }

    /// Writes a tile of level 0: the Bloom filters of some neighbouring ranges of the table.
    /// `gathered` has the hashes of the keys of these ranges and perhaps others, and `ranges` says
    /// which of them are meant, counted from the first one in `gathered`.
    ///
    /// `width` is the number of columns of the tile, each of which is a filter. A range gets one
    /// column; or, where pages of the table are split among several ranges, one or more, by its
    /// number of keys. `input` says whether more ranges follow: the last range of a table is not
    /// full yet, and gets room for more keys.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_level_zero_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: &GatheredRanges,
        ranges: Range<usize>,
        width: Width,
        input: Input,
    ) -> Result<(), S::Error> {
        let keys_so_far: List<f64> = ranges
            .clone()
            .map(|range| gathered.hashes_of(range).len() as f64)
            .collect();
        self.update_mean_keys(&keys_so_far, input);

        // The tile is sized for the keys that its ranges will have when they are full.
        let keys_when_full = self.keys_when_full(keys_so_far, input);
        let filled = self.divide_columns(width, keys_when_full);
        let complete = complete_columns(&filled.keys_per_column);
        let shape = self.directory.shape_for(Level::Zero, width, self.target, &complete);

        let mut columns = List::new();
        columns.resize_with(width.columns() as usize, || ColumnBits::empty(shape));
        for (columns_of_range, range) in filled.slot_columns.slots().zip(ranges) {
            for &hash in gathered.hashes_of(range) {
                let footprint = Footprint::of_key(shape, hash);
                let column_of_key = column(&columns_of_range, footprint.column_share);
                columns[column_of_key as usize].add_key(&footprint, shape);
            }
        }
        self.write_tile(sink, shape, &columns, filled.slot_columns)
    }

    /// Sets `self.mean_keys_per_range`, the mean number of keys of a full range of the table, to
    /// the mean of some neighbouring ranges. `keys_per_range` has the number of keys of each.
    ///
    /// The last range of the table doesn't count, since it isn't full yet: that is the last one of
    /// these if no more ranges follow (`Input::Ended`). Nor do ranges that don't look full, with
    /// less than half the keys of the fuller ones ([`complete_columns`]). If no range is left, the
    /// mean stays as it is.
    fn update_mean_keys(&mut self, keys_per_range: &[f64], input: Input) {
        let full_ranges = match input {
            Input::MoreFollows => keys_per_range.len(),
            Input::Ended => keys_per_range.len().saturating_sub(1),
        };
        let keys_of_full_ranges = complete_columns(&keys_per_range[..full_ranges]);
        if let Some(mean_keys) = mean(&keys_of_full_ranges) {
            self.mean_keys_per_range = Some(mean_keys);
        }
    }

    /// Returns how many keys each of some neighbouring ranges of the table will have when its heap
    /// pages are full. `keys_per_range` has how many keys each of them has now.
    ///
    /// All ranges are full already, except for the last one of the table, which is the last one of
    /// these if no more ranges follow (`Input::Ended`). That one is expected to get as many keys as
    /// a full range has on average, unless it has more already.
    ///
    /// Example: a full range has 500 keys on average. The last three ranges of the table have 480,
    /// 510 and 20 keys now. When they are full, they will have 480, 510 and 500.
    fn keys_when_full(&self, mut keys_per_range: List<f64>, input: Input) -> List<f64> {
        if input == Input::Ended
            && let Some(keys_of_last_range) = keys_per_range.last_mut()
        {
            let assumed_by_options = f64::from(self.directory.options.keys_per_range);
            let keys_of_full_range = self.mean_keys_per_range.unwrap_or(assumed_by_options);
            *keys_of_last_range = keys_of_full_range.max(*keys_of_last_range);
        }
        keys_per_range
    }

    /// Divides the columns of a new tile of level 0, each of which is a Bloom filter, among ranges
    /// of the table. Returns which columns each range gets, and how many keys each column then has.
    ///
    /// `width` is the number of columns, and `keys_per_range` says how many keys each range has.
    /// Mostly a range gets one column. But where a page of the table is split among several ranges,
    /// these differ much in their number of keys: there the tile has two columns for each range on
    /// average, and ranges with more keys get more of them.
    ///
    /// The tile may have room for more ranges than `keys_per_range` has numbers: for those that are
    /// appended to the table later.
    fn divide_columns(&self, width: Width, mut keys_per_range: List<f64>) -> FilledColumns {
        let columns_per_range = self.columns_per_slot();
        if columns_per_range == 1 {
            // There is nothing to divide: column n of the tile has the keys of its range n.
            return FilledColumns {
                slot_columns: SlotColumns::even(width, columns_per_range),
                keys_per_column: keys_per_range,
            };
        }

        // Ranges that are appended later are expected to have as many keys as the others on
        // average.
        let most_ranges = width.slots(columns_per_range) as usize;
        keys_per_range.resize(most_ranges, self.mean_keys_per_range.unwrap_or_default());

        let slot_columns = SlotColumns::by_keys(width, &keys_per_range);
        let mut keys_per_column = List::new();
        for (columns_of_range, keys) in slot_columns.slots().zip(keys_per_range) {
            // The keys of a range are spread evenly over its columns.
            let count = columns_of_range.len();
            keys_per_column.resize(keys_per_column.len() + count, keys / count as f64);
        }
        FilledColumns { slot_columns, keys_per_column }
    }

    /// Returns how many columns a slot of the next tile of level 0 has on average.
    fn columns_per_slot(&self) -> u8 {
        let next_range = self.directory.end_slot(Level::Zero);
        self.directory.options.columns_per_slot(Level::Zero, next_range)
    }

    /// Adds a tile of this shape to the directory, which says where the tiles of the index are, and
    /// writes the pages of the tile to `sink`. They are the next pages of the file.
    ///
    /// A tile is a table of bits whose columns are Bloom filters. `columns` has the bits of the
    /// first columns; the others have none. `slot_columns` says which neighbouring columns belong
    /// together, as they have the keys of one slot (a range of the table, or a tile of the level
    /// below).
    ///
    /// The records of tiles will be stored in the metapage, which the caller writes in the end. If
    /// it has no room for another one, its records are first written to a new directory page.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        shape: TileShape,
        columns: &[ColumnBits],
        slot_columns: SlotColumns,
    ) -> Result<(), S::Error> {
        let size = shape.size;
        if self.directory.runs_of_metapage().len() == most_runs_of_metapage(size) {
            let directory_page = self.directory.move_runs_to_page()?;
            sink.write(&directory_page.bytes)?;
        }
        self.directory.add_tiles(shape, 1)?;
        let tile = self.directory.last_tile(shape.level).expect("a tile was just added");

        let mut page = List::filled(0, size.bytes());
        let blocks_per_page = shape.width.blocks_per_page() as usize;
        for first_block in (0..shape.blocks() as usize).step_by(blocks_per_page) {
            interrupt::check();
            page.fill(0);
            fill_payload(&mut page[size.payload()], shape, columns, slot_columns, first_block);
            tile.special().write(&mut page);
            sink.write(&page)?;
        }
        Ok(())
    }
}

/// Sets the bits of one page of a tile. A tile has up to 128 Bloom filters side by side, its
/// *columns*. Each consists of blocks of bits, and a page has some neighbouring blocks of every
/// column, as many as fit: block `first_block` and those after it. `payload` has the bytes of the
/// page between its header and its end, all of them zero.
///
/// The page stores one block number after the other, each as a table:
///
/// ```text
///                column 0   1   2  …
/// row 0                 .   1   .        the first bit of the block of each column
/// row 1                 1   .   .        the second bit
/// …
/// last row              1   .   1        if slots may have several columns: a bit where a slot begins
/// ```
///
/// A *slot* is what the tile has a filter for: a range of the table, say. `slot_columns` says which
/// neighbouring columns each slot has.
fn fill_payload(
    payload: &mut [u8],
    shape: TileShape,
    columns: &[ColumnBits],
    slot_columns: SlotColumns,
    first_block: usize,
) {
    let row_bytes = shape.width.row_bytes();
    let rows_per_block = shape.size.block_bits();
    let key_rows_per_block = shape.key_rows_per_block();
    let last_row_is_for_slots = key_rows_per_block < rows_per_block;
    let table_bytes = rows_per_block as usize * row_bytes;

    let tables = payload.chunks_exact_mut(table_bytes);
    for (table, block_number) in tables.zip(first_block..) {
        for (column, column_number) in columns.iter().zip(0..) {
            set_column(table, row_bytes, column_number, column.block(block_number));
        }
        if last_row_is_for_slots {
            let last_row = key_rows_per_block as usize * row_bytes;
            slot_columns.write(&mut table[last_row..]);
        }
    }
}

/// Sets the bits of one column (a Bloom filter) in the table of a block, which is stored row by
/// row: a row has `row_bytes` bytes, with one bit for each column. `words` has the bits of the
/// column: bit i of word w belongs to row 64 w + i.
#[inline]
fn set_column(table: &mut [u8], row_bytes: usize, column: usize, words: &[u64]) {
    let byte_of_row = column / 8;
    let bit = 1 << (column % 8);
    for (first_row, &word) in (0..).step_by(64).zip(words) {
        let mut bits_left = word;
        while bits_left != 0 {
            let row = first_row + bits_left.trailing_zeros() as usize;
            table[row * row_bytes + byte_of_row] |= bit;
            // Clears the lowest bit that is set.
            bits_left &= bits_left - 1;
        }
    }
}

/// Returns how many columns the next tile of a level gets, if `slots` slots are left to be written,
/// each of which takes a column.
///
/// One tile takes all of them if they use at least three quarters of its columns, or on level 2,
/// whose columns are large, fifteen sixteenths. Otherwise the tile is the widest one that has no
/// unused column, and the slots that are left go to further tiles.
///
/// For example, 91 slots of level 1 use less than three quarters of 128. So a tile of 64 comes
/// first. The 27 slots that are left use more than three quarters of 32.
pub fn width_for_slots(slots: usize, level: Level) -> Width {
    let holding = Width::holding(slots as u64);
    let columns = holding.columns() as usize;
    let most_unused = match level {
        Level::Zero | Level::One => columns / 4,
        Level::Two => columns / 16,
    };
    if slots + most_unused >= columns {
        holding
    } else {
        Width::within(slots as u64)
    }
}
