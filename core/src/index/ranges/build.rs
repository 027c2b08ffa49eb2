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
//! Slots of level 1 are kept as hashes or as bits, those of level 2 as bits: see [`super::pending`].
//! A slot of level 1 that would be overfull begins another tile, if the slots before it fill theirs:
//! every eighth may.

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
use crate::memory;
use std::ops::Range;

/// A build makes tiles of level 1 for about so many slots of level 2: then few of the last tile of
/// level 2 are empty.
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
    keys_per_range: Option<f64>,
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
    keys_per_column: Vec<f64>,
}

/// Returns what the slots of each level must keep, if `highest_level` is the highest one. Levels
/// above it have no slots.
fn targets(options: &Options, highest_level: Level) -> PerLevel<SlotTarget> {
    let first_range = 0;
    PerLevel::from_fn(|level| options.target(level.min(highest_level), highest_level, first_range))
}

/// Returns how many levels an index needs whose table has as many pages as the options say.
fn highest_level_of_new(options: &Options) -> Level {
    let ranges = options.ranges_of(options.table_pages);
    let tiles = ranges.div_ceil(MAX_WIDTH.into());
    if ranges <= options.most_uncovered_slots(Level::Zero) {
        Level::Zero
    } else if tiles <= options.most_uncovered_slots(Level::One) {
        Level::One
    } else {
        Level::Two
    }
}

impl Build {
    /// Begins an index. At most `most_hashes` hashes are kept in memory for level 1 besides those of
    /// 128 ranges, and as many bytes for level 2 as they take, but at least those of eight slots.
    /// The options must be possible.
    pub fn new(options: Options, most_hashes: usize) -> Build {
        let highest_level = highest_level_of_new(&options);
        let targets = targets(&options, Level::Zero);
        let plan =
            |level, width| LevelPlan { level, width, target: targets[level], size: options.size };

        let ranges = options.ranges_of(options.table_pages);
        let tiles = ranges.div_ceil(MAX_WIDTH.into());
        let width_of_one = if highest_level == Level::Two {
            Width::within(tiles / SLOTS_OF_LEVEL_TWO)
        } else {
            Width::MAX
        };
        let most_words = most_hashes;
        let mut build = Build {
            directory: Directory::empty(options),
            highest_level: Level::Zero,
            target: targets[Level::Zero],
            gathered: GatheredRanges::default(),
            level_one: PendingLevelOne::new(plan(Level::One, width_of_one), most_hashes),
            level_two: PendingLevelTwo::new(plan(Level::Two, Width::MAX), most_words),
            keys_per_range: None,
        };
        build.raise(highest_level);
        build
    }

    /// Lets the keys of the next tiles of level 0 have bits on higher levels too, up to this one, if
    /// it is higher than before. From then on each tile is a slot of a tile of the level above.
    fn raise(&mut self, highest_level: Level) {
        for level in [Level::Zero, Level::One] {
            if (self.highest_level..highest_level).contains(&level) {
                // The first tile that has a slot above.
                let next_tile = self.directory.tile_count(level);
                self.directory.first_covered[level] = Some(next_tile);
            }
        }
        self.highest_level = self.highest_level.max(highest_level);

        let targets = targets(&self.directory.options, self.highest_level);
        self.target = targets[Level::Zero];
        self.level_one.plan.target = targets[Level::One];
        self.level_two.plan.target = targets[Level::Two];
    }

    /// Adds level 1 if `more_ranges` ranges more would be too many without it. That happens if the
    /// table has grown since the build began.
    fn raise_for(&mut self, more_ranges: u64) {
        let end_range = self.directory.end_slot(Level::Zero) + more_ranges;
        let most_ranges = self.directory.options.most_uncovered_slots(Level::Zero);
        if self.highest_level == Level::Zero && end_range > most_ranges {
            self.raise(Level::One);
        }
    }

    /// Adds the next range, with the hashes of its keys in any order and possibly repeated; there
    /// may be none.
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

    /// Writes what is left: a tile for the last ranges, and on the levels above tiles whose slots are
    /// the tiles below. Returns the directory, which says where the tiles are, and whose metapage the
    /// caller writes. `rows` is the number of rows that the index was built from.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    pub fn finish<S: PageSink>(mut self, sink: &mut S, rows: u64) -> Result<Directory, S::Error> {
        let gathered = std::mem::take(&mut self.gathered);
        self.raise_for(gathered.count() as u64);
        if self.highest_level > Level::Zero {
            if gathered.count() > 0 {
                self.write_full_tile(sink, gathered, Input::Ended)?;
            }
            self.write_level_one(sink, Input::Ended)?;
            self.write_level_two(sink, Input::Ended)?;
        } else {
            self.write_last_tiles(sink, &gathered)?;
        }

        // A table without rows has none of the levels that its pages let expect.
        for level in [Level::Zero, Level::One] {
            let tiles = self.directory.tile_count(level);
            let first_covered = &mut self.directory.first_covered[level];
            *first_covered = first_covered.filter(|&first| first < tiles);
        }
        self.directory.chain.rows_built = rows;
        Ok(self.directory)
    }

    /// Writes tiles for the last ranges of an index that has no levels above level 0. There may be
    /// several, since the number of columns of a tile, its width, is a power of two: 70 ranges get
    /// tiles of 64 and 8.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_last_tiles<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: &GatheredRanges,
    ) -> Result<(), S::Error> {
        let columns_per_slot = self.columns_per_slot();
        let mut first = 0;
        while first < gathered.count() {
            let columns_left = (gathered.count() - first) * usize::from(columns_per_slot);
            let width = width_for_slots(columns_left, Level::Zero);
            let slots = width.slots(columns_per_slot) as usize;
            let end = gathered.count().min(first + slots);
            let input = if end == gathered.count() { Input::Ended } else { Input::MoreFollows };
            self.write_level_zero_tile(sink, gathered, first..end, width, input)?;
            first = end;
        }
        Ok(())
    }

    /// Writes a tile of level 0 for all ranges that were gathered. If the index has more levels, the
    /// tile is a slot of a tile of level 1, and its keys are kept until that is written.
    ///
    /// The table may have more ranges than it had when the build began. Then there are more levels
    /// from here on.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_full_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: GatheredRanges,
        input: Input,
    ) -> Result<(), S::Error> {
        self.raise_for(MAX_WIDTH.into());
        // Level 2 is added when level 1 has as many slots as it may have without.
        let tiles = u64::from(self.directory.tile_count(Level::Zero));
        let slots_of_one = tiles - self.directory.first_slot(Level::One);
        let most_slots_of_one = self.directory.options.most_uncovered_slots(Level::One);
        if self.highest_level == Level::One && slots_of_one >= most_slots_of_one {
            self.write_level_one(sink, Input::MoreFollows)?;
            self.raise(Level::Two);
        }

        let ranges = gathered.count();
        let columns = ranges as u64 * u64::from(self.columns_per_slot());
        let width = Width::holding(columns);
        self.write_level_zero_tile(sink, &gathered, 0..ranges, width, input)?;
        if self.highest_level > Level::Zero {
            self.keep_slots_above(sink, gathered)?;
        }
        Ok(())
    }

    /// Keeps the keys of a tile of level 0, which has these ranges, for the levels above: the tile is
    /// a slot of level 1, and one of many that share a slot of level 2. Writes tiles of these levels
    /// that are full.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn keep_slots_above<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: GatheredRanges,
    ) -> Result<(), S::Error> {
        let ranges = gathered.count() as f64;
        let hashes = gathered.into_distinct();
        // The last tile may have fewer ranges. Its slot has the same size as those beside it, whose
        // tiles are full.
        let keys_if_full = hashes.len() as f64 * f64::from(MAX_WIDTH) / ranges;
        if self.level_one.needs_other_tile(keys_if_full) {
            self.write_level_one(sink, Input::MoreFollows)?;
        }

        if self.highest_level == Level::Two {
            let tiles_per_slot = f64::from(self.level_one.plan.width.columns());
            self.level_two
                .add_to_open_slot(keys_if_full * tiles_per_slot, &hashes);
        }
        self.level_one.add_slot(hashes, keys_if_full);
        if self.level_one.is_full() {
            self.write_level_one(sink, Input::MoreFollows)?;
        }
        Ok(())
    }

    /// Writes the slots of level 1 that are kept, as one tile or several. If there is a level 2, each
    /// of these tiles is a slot of it, which is kept until the tile of level 2 is written.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// a page can't be written.
    fn write_level_one<S: PageSink>(&mut self, sink: &mut S, input: Input) -> Result<(), S::Error> {
        let tiles_before = self.directory.tile_count(Level::One);
        let slots = self.level_one.take_slots();
        self.write_slots(sink, Level::One, slots, input)?;
        let new_tiles = self.directory.tile_count(Level::One) - tiles_before;
        if self.highest_level < Level::Two || new_tiles == 0 {
            return Ok(());
        }

        // Each tile is a slot of level 2. The keys of several tiles weren't told apart, so each of
        // their slots has the bits of all.
        let slot = self.level_two.close_slot();
        for _ in 0..new_tiles {
            if self.level_two.is_full() {
                self.write_level_two(sink, Input::MoreFollows)?;
            }
            self.level_two.add_slot(slot.bits.copy(), slot.keys);
        }
        if self.level_two.needs_other_tile(slot.keys) {
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

    /// Writes slots of level 1 or 2 as tiles. There may be several, since the number of columns of a
    /// tile, its width, is a power of two.
    ///
    /// Only if the input has ended may the last tile have columns without a slot. Else the next tile
    /// of the level below would belong to the first of them, but it gets the slot after the last one
    /// written.
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
                Input::Ended => width_for_slots(slots.count(), level),
                Input::MoreFollows => Width::within(slots.count() as u64),
            };
            let slots_of_tile = slots.take_first(width.columns() as usize);
            let plan = match level {
                Level::Two => &self.level_two.plan,
                _ => &self.level_one.plan,
            };
            let (shape, columns) = match slots_of_tile.contents {
                SlotContents::Bits(columns) => (plan.shape(width, columns[0].blocks()), columns),
                SlotContents::Hashes(hashes) => {
                    let complete = complete_columns(&slots_of_tile.keys_per_slot);
                    let shape = self.directory.shape_for(level, width, plan.target, &complete);
                    let columns = hashes.iter().map(|hashes| ColumnBits::with_keys(hashes, shape));
                    (shape, memory::collect(columns))
                }
            };
            self.write_tile(sink, shape, &columns, SlotColumns::even(width, 1))?;
        }
        Ok(())
    }

    /// Writes a tile of level 0 for some of the ranges that were gathered: each is a slot, which has
    /// one of the tile's columns, or several if ranges differ much in their number of keys. `width`
    /// is the number of columns.
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
        let keys_per_range = self.expected_keys(gathered, ranges.clone(), input);
        let filled = self.columns_for(width, keys_per_range);
        let complete = complete_columns(&filled.keys_per_column);
        let shape = self.directory.shape_for(Level::Zero, width, self.target, &complete);

        let mut columns = Vec::new();
        columns.resize_with(width.columns() as usize, || ColumnBits::empty(shape));
        for (columns_of_slot, range) in filled.slot_columns.slots().zip(ranges) {
            for &hash in gathered.hashes_of(range) {
                let footprint = Footprint::new(shape, hash);
                let column = column(&columns_of_slot, footprint.column_share);
                columns[column as usize].add_key(&footprint, shape);
            }
        }
        self.write_tile(sink, shape, &columns, filled.slot_columns)
    }

    /// Returns how many keys each of these ranges, of those that were gathered, will have when its
    /// heap pages are full. Only the very last range of the table may still grow: it will have as
    /// many keys as a complete range on average, unless it has more already.
    ///
    /// Remembers how many keys a complete range has on average.
    fn expected_keys(
        &mut self,
        gathered: &GatheredRanges,
        ranges: Range<usize>,
        input: Input,
    ) -> Vec<f64> {
        let mut keys_per_range: Vec<f64> =
            ranges.map(|range| gathered.hashes_of(range).len() as f64).collect();
        let keys_of_growing_range = if input == Input::Ended { keys_per_range.pop() } else { None };
        self.keys_per_range = mean(&complete_columns(&keys_per_range)).or(self.keys_per_range);
        if let Some(keys) = keys_of_growing_range {
            let keys_of_complete_range = self
                .keys_per_range
                .unwrap_or(f64::from(self.directory.options.keys_per_range));
            keys_per_range.push(keys_of_complete_range.max(keys));
        }
        keys_per_range
    }

    /// Returns which columns of a tile of level 0 each range gets, and how many keys each column then
    /// has. The ranges have these numbers of keys; `width` is the number of columns.
    ///
    /// If pages of the table are split among ranges, there are two columns for each range on average,
    /// and ranges with more keys get more of them.
    fn columns_for(&self, width: Width, mut keys_per_range: Vec<f64>) -> FilledColumns {
        let columns_per_slot = self.columns_per_slot();
        if columns_per_slot == 1 {
            return FilledColumns {
                slot_columns: SlotColumns::even(width, columns_per_slot),
                keys_per_column: keys_per_range,
            };
        }

        // Slots that are left have ranges like the others later.
        let slots = width.slots(columns_per_slot) as usize;
        keys_per_range.resize(slots, self.keys_per_range.unwrap_or_default());
        let slot_columns = SlotColumns::by_keys(width, &keys_per_range);
        let mut keys_per_column = Vec::new();
        for (columns, keys) in slot_columns.slots().zip(keys_per_range) {
            let count = columns.len();
            keys_per_column.resize(keys_per_column.len() + count, keys / count as f64);
        }
        FilledColumns { slot_columns, keys_per_column }
    }

    /// Returns how many columns a slot of the next tile of level 0 has on average.
    fn columns_per_slot(&self) -> u8 {
        let next_range = self.directory.end_slot(Level::Zero);
        self.directory.options.columns_per_slot(Level::Zero, next_range)
    }

    /// Writes the pages of a new tile. Each page has the same blocks of all columns, bit by bit side
    /// by side. `columns` has the bits of the first columns; the others have none. `slot_columns`
    /// says which columns belong to one slot.
    ///
    /// If the metapage has no room for the record of another tile, a directory page is written
    /// first, which takes its records.
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

        let row_bytes = shape.width.row_bytes();
        let block_bytes = size.block_bits() as usize * row_bytes;
        let blocks_per_page = shape.width.blocks_per_page() as usize;
        let mut page = vec![0; size.bytes()];
        for first_block in (0..shape.blocks() as usize).step_by(blocks_per_page) {
            interrupt::check();
            page.fill(0);
            let blocks = page[size.payload()].chunks_exact_mut(block_bytes);
            for (block, number) in blocks.zip(first_block..) {
                for (bits, column) in columns.iter().zip(0..) {
                    set_column(block, row_bytes, column, bits.block(number));
                }
                let has_column_row = shape.block_bits() < size.block_bits();
                if has_column_row {
                    let last_row = shape.block_bits() as usize * row_bytes;
                    slot_columns.write(&mut block[last_row..]);
                }
            }
            tile.special().write(&mut page);
            sink.write(&page)?;
        }
        Ok(())
    }
}

/// Sets the bits of a column in a block of a page, which has rows of `row_bytes` bytes. Bit i of
/// word w in `words` is that of row 64 w + i.
#[inline]
fn set_column(block: &mut [u8], row_bytes: usize, column: usize, words: &[u64]) {
    let byte_of_row = column / 8;
    let bit = 1 << (column % 8);
    for (first_row, &word) in (0..).step_by(64).zip(words) {
        let mut bits_left = word;
        while bits_left != 0 {
            let row = first_row + bits_left.trailing_zeros() as usize;
            block[row * row_bytes + byte_of_row] |= bit;
            // Clears the lowest bit that is set.
            bits_left &= bits_left - 1;
        }
    }
}

/// Returns the width of the next tile of a level, if `slots` slots are left: the narrowest that has
/// room for all of them if three quarters of it are used (on level 2, whose slots are large, fifteen
/// sixteenths), else the widest that they fill.
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
