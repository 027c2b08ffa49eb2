//! Building an index in one pass: ranges in order, each with the hashes of its elements.
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
//! The slots of level 1 are kept as hashes up to a limit, so that the size of their tile is exact.
//! Beyond the limit the size is that which the slots so far need, and bits are kept. A slot that
//! would then be overfull begins another tile, if the slots before it fill theirs: every eighth
//! may. A slot of level 2 gets bits from the start, for hashes that are all different; if they are
//! not, the first slot is folded, to what it would have been had it been made smaller.

use super::directory::{Directory, Options};
use super::meta::most_open_runs;
use super::pending::{Above, Gathered, bits_of, no_bits, set, words_per_block};
use super::rate::{Target, mean, typical};
use super::shape::{Columns, Level, MAX_WIDTH, TileShape, Width, column};
use super::tile::footprint;
use crate::index::page::PageSink;
use crate::memory;
use std::ops::Range;

/// Slots of level 2 that a build makes tiles of level 1 for: so few of the last tile are empty.
const SLOTS_OF_TOP: u64 = 64;

pub struct Build {
    directory: Directory,
    /// The highest level that tiles of level 0 have bits in.
    top: Level,
    /// What slots of level 0 must keep.
    target: Target,
    gathered: Gathered,
    above: [Above; 2],
    /// Elements of a complete range, by the last tile that had any.
    per_range: Option<f64>,
}

/// What slots of each level must keep, if `top` is the highest. Levels above that have none.
fn targets(options: &Options, top: Level) -> [Target; 3] {
    Level::ALL.map(|level| options.target(level.min(top), top, 0))
}

impl Build {
    /// Begins an index. At most `hold` hashes are kept in memory for level 1 besides those of 128
    /// ranges, and as many bytes for level 2 as they take, but at least those of eight slots. The
    /// options must be possible.
    pub fn new(options: Options, hold: usize) -> Build {
        let ranges = options.ranges_of(options.table_pages);
        let tiles = ranges.div_ceil(MAX_WIDTH.into());
        let top = if ranges <= options.slots_alone(Level::Zero) {
            Level::Zero
        } else if tiles <= options.slots_alone(Level::One) {
            Level::One
        } else {
            Level::Two
        };
        let width =
            if top == Level::Two { Width::within(tiles / SLOTS_OF_TOP) } else { Width::MAX };
        let [target, one, two] = targets(&options, Level::Zero);
        let one = Above::new(Level::One, width, one, options.size, hold);
        let two = Above::new(Level::Two, Width::MAX, two, options.size, hold);
        let (directory, gathered) = (Directory::empty(options), Gathered::default());
        let mut build = Build {
            directory,
            top: Level::Zero,
            target,
            gathered,
            above: [one, two],
            per_range: None,
        };
        build.raise(top);
        build
    }

    /// Adds levels for the tiles that come next.
    fn raise(&mut self, top: Level) {
        for level in [Level::Zero, Level::One]
            .into_iter()
            .filter(|level| (self.top..top).contains(level))
        {
            self.directory.covered_from[level as usize] = Some(self.directory.tiles(level));
        }
        self.top = self.top.max(top);
        [self.target, self.above[0].target, self.above[1].target] =
            targets(&self.directory.options, self.top);
    }

    /// Adds level 1 if so many more ranges are too many without it: there are more than the table
    /// had pages for.
    fn raise_for(&mut self, ranges: u64) {
        let end = self.directory.end_slot(Level::Zero) + ranges;
        if self.top == Level::Zero && end > self.directory.options.slots_alone(Level::Zero) {
            self.raise(Level::One);
        }
    }

    /// Adds the next range, with the hashes of its elements in any order and possibly repeated;
    /// there may be none. Errors: [`crate::Class::TooLarge`] if too few numbers are left for pages
    /// or ranges; those of writing.
    pub fn range<S: PageSink>(&mut self, sink: &mut S, hashes: &[u64]) -> Result<(), S::Error> {
        if self.gathered.ranges() == Width::MAX.slots(self.columns_per_slot()) as usize {
            let full = std::mem::take(&mut self.gathered);
            self.full_tile(sink, full, false)?;
        }
        self.gathered.add(hashes);
        Ok(())
    }

    /// Writes what is left. Returns the directory, whose metapage the caller writes. Errors: as
    /// [`Build::range`].
    pub fn finish<S: PageSink>(mut self, sink: &mut S, rows: u64) -> Result<Directory, S::Error> {
        let rest = std::mem::take(&mut self.gathered);
        self.raise_for(rest.ranges() as u64);
        if self.top > Level::Zero {
            if rest.ranges() > 0 {
                self.full_tile(sink, rest, true)?;
            }
            self.write_one(sink, true)?;
            self.write_above(sink, Level::Two, true)?;
        } else {
            let mut first = 0;
            let each = self.columns_per_slot();
            while first < rest.ranges() {
                let width = next_piece((rest.ranges() - first) * usize::from(each), Level::Zero);
                let end = rest.ranges().min(first + width.slots(each) as usize);
                self.tile(sink, &rest, first..end, width, end == rest.ranges())?;
                first = end;
            }
        }
        // A table without rows has none of the levels that its pages let expect.
        for level in [Level::Zero, Level::One] {
            let tiles = self.directory.tiles(level);
            let covered = &mut self.directory.covered_from[level as usize];
            *covered = covered.filter(|&first| first < tiles);
        }
        self.directory.chain.rows_built = rows;
        Ok(self.directory)
    }

    /// Writes a tile of level 0 and keeps its slots of the levels above. The table may have more
    /// ranges than it had when the build began: then there are more levels from here on.
    fn full_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        ranges: Gathered,
        last: bool,
    ) -> Result<(), S::Error> {
        self.raise_for(MAX_WIDTH.into());
        let slots =
            u64::from(self.directory.tiles(Level::Zero)) - self.directory.first_slot(Level::One);
        if self.top == Level::One && slots >= self.directory.options.slots_alone(Level::One) {
            self.write_one(sink, false)?;
            self.raise(Level::Two);
        }
        let width = Width::holding(ranges.ranges() as u64 * u64::from(self.columns_per_slot()));
        self.tile(sink, &ranges, 0..ranges.ranges(), width, last)?;
        if self.top == Level::Zero {
            return Ok(());
        }
        let (seen, hashes) = (ranges.ranges() as f64, ranges.distinct());
        // The tiles that will be beside the last one are full.
        let load = hashes.len() as f64 * f64::from(MAX_WIDTH) / seen;
        if self.above[0].is_other(load) {
            self.write_one(sink, false)?;
        }
        if self.top == Level::Two {
            self.above[1].mark(load * f64::from(self.above[0].width.columns()), &hashes);
        }
        self.above[0].keep_hashes(hashes, load);
        if self.above[0].is_full() {
            self.write_one(sink, false)?;
        }
        Ok(())
    }

    /// Writes the slots of level 1 that are kept, and keeps their slots of level 2.
    fn write_one<S: PageSink>(&mut self, sink: &mut S, last: bool) -> Result<(), S::Error> {
        let before = self.directory.tiles(Level::One);
        self.write_above(sink, Level::One, last)?;
        let tiles = self.directory.tiles(Level::One) - before;
        if self.top < Level::Two || tiles == 0 {
            return Ok(());
        }
        let (bits, load) = self.above[1].marked();
        // If there are several tiles, each of their slots has the bits of all.
        for _ in 0..tiles {
            if self.above[1].is_full() {
                self.write_above(sink, Level::Two, false)?;
            }
            self.above[1].keep(memory::collect(bits.iter().copied()), load);
        }
        if self.above[1].is_other(load) {
            self.write_above(sink, Level::Two, false)?;
            // None is open yet, so the next slot may have another number.
            self.above[1].blocks = None;
        }
        Ok(())
    }

    /// Writes a tile of level 0 for some of the ranges that were gathered.
    fn tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        gathered: &Gathered,
        ranges: Range<usize>,
        width: Width,
        last: bool,
    ) -> Result<(), S::Error> {
        let mut loads: Vec<f64> = ranges
            .clone()
            .map(|range| gathered.range(range).len() as f64)
            .collect();
        // The last range of all may go on growing.
        let begun = if last { loads.pop() } else { None };
        self.per_range = mean(&typical(&loads)).or(self.per_range);
        if let Some(begun) = begun {
            loads.push(
                self.per_range
                    .unwrap_or(f64::from(self.directory.options.guess))
                    .max(begun),
            );
        }
        let columns = self.columns(width, &mut loads);
        let shape = self
            .directory
            .shape_for(Level::Zero, width, self.target, &typical(&loads));
        let mut bits = Vec::new();
        bits.resize_with(width.columns() as usize, || no_bits(shape));
        for (of_slot, range) in columns.slots().zip(ranges) {
            for &hash in gathered.range(range) {
                let footprint = footprint(shape, hash);
                set(&mut bits[column(&of_slot, footprint.share) as usize], shape, &footprint);
            }
        }
        self.write_tile(sink, shape, &bits, columns)
    }

    /// The columns of the slots of a tile, whose loads become those of its columns where these
    /// differ. Slots that are left have ranges like the others later.
    fn columns(&self, width: Width, loads: &mut Vec<f64>) -> Columns {
        let each = self.columns_per_slot();
        if each == 1 {
            return Columns::even(width, each);
        }
        loads.resize(width.slots(each) as usize, self.per_range.unwrap_or_default());
        let columns = Columns::by_load(width, loads);
        let of_slot =
            |(columns, load): (Range<u32>, &f64)| vec![load / columns.len() as f64; columns.len()];
        *loads = columns.slots().zip(&*loads).flat_map(of_slot).collect();
        columns
    }

    fn columns_per_slot(&self) -> u8 {
        self.directory
            .options
            .columns_per_slot(Level::Zero, self.directory.end_slot(Level::Zero))
    }

    /// Writes the slots of a level that are kept, as tiles of several widths. Only the very last
    /// may have slots left: the next tile below has the slot after the last one written.
    fn write_above<S: PageSink>(
        &mut self,
        sink: &mut S,
        level: Level,
        last: bool,
    ) -> Result<(), S::Error> {
        let (mut slots, mut loads, blocks) = self.above[level as usize - 1].take();
        while !slots.is_empty() {
            let width = if last {
                next_piece(slots.len(), level)
            } else {
                Width::within(slots.len() as u64)
            };
            let used = slots.len().min(width.columns() as usize);
            let (rest, other_loads) = (slots.split_off(used), loads.split_off(used));
            let above = &self.above[level as usize - 1];
            let shape = match blocks {
                Some(blocks) => above.shape(width, blocks),
                None => self.directory.shape_for(level, width, above.target, &typical(&loads)),
            };
            if blocks.is_none() {
                slots = memory::collect(slots.into_iter().map(|hashes| bits_of(&hashes, shape)));
            }
            self.write_tile(sink, shape, &slots, Columns::even(width, 1))?;
            (slots, loads) = (rest, other_loads);
        }
        Ok(())
    }

    /// Writes a tile whose first columns have these bits. Writes a directory page before it if the
    /// metapage is full.
    fn write_tile<S: PageSink>(
        &mut self,
        sink: &mut S,
        shape: TileShape,
        bits: &[Vec<u64>],
        columns: Columns,
    ) -> Result<(), S::Error> {
        let size = shape.size;
        if self.directory.open_runs().len() == most_open_runs(size) {
            sink.write(&self.directory.close()?.1)?;
        }
        self.directory.push(shape, 1)?;
        let special = self
            .directory
            .last_tile(shape.level)
            .expect("it was just added")
            .special();
        let (row_bytes, words) = (shape.width.bytes(), words_per_block(size));
        let mut page = vec![0; size.bytes()];
        for first in (0..shape.blocks() as usize).step_by(shape.width.blocks_per_page() as usize) {
            crate::interrupt::check();
            page.fill(0);
            let blocks =
                page[size.payload()].chunks_exact_mut(size.block_bits() as usize * row_bytes);
            for (block, number) in blocks.zip(first..) {
                for (column, bits) in bits.iter().enumerate() {
                    let (byte, bit) = (column / 8, 1 << (column % 8));
                    for (first, &word) in (0..).step_by(64).zip(&bits[number * words..][..words]) {
                        let mut left = word;
                        while left != 0 {
                            block[(first + left.trailing_zeros() as usize) * row_bytes + byte] |=
                                bit;
                            left &= left - 1;
                        }
                    }
                }
                if shape.block_bits() < size.block_bits() {
                    columns.write(&mut block[shape.block_bits() as usize * row_bytes..]);
                }
            }
            special.write(&mut page);
            sink.write(&page)?;
        }
        Ok(())
    }
}

/// The width of the next tile when so many slots are left: the narrowest that has room for all of
/// them if three quarters of it are used (on level 2, whose slots are large, fifteen sixteenths),
/// else the widest that they fill.
pub fn next_piece(slots: usize, level: Level) -> Width {
    let holding = Width::holding(slots as u64);
    let most = holding.columns() / if level == Level::Two { 16 } else { 4 };
    if slots + most as usize >= holding.columns() as usize {
        holding
    } else {
        Width::within(slots as u64)
    }
}
