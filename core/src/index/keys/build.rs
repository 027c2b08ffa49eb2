//! Building an index in one pass: ranges in order, each with the hashes of its elements.
//!
//! ```text
//! range ──▶ gathered: up to 128 ranges ──▶ tile of level 0, sized by what its ranges hold, written at once
//!                                     └──▶ its distinct hashes: one slot of level 1, kept in memory
//!                                            128 slots, or the end: tiles of level 1, written
//! ```
//!
//! Hashes are kept until the 513th range shows that there is a level 1. Widths fit the number of slots: 91 tiles get 64
//! and 32 slots above them. The last tile is sized for full ranges, though its last range may have only a few rows yet.
//!
//! The slots of level 1 are kept as hashes up to a limit, so that the size of their tile is exact. Beyond the limit the
//! size is that which the slots so far need, and bits are kept. A slot that would then be overfull begins another tile,
//! if the slots before it fill theirs: every eighth slot may.

use super::directory::{Directory, Options};
use super::gather::Gathered;
use super::level::Level;
use super::level::RANGES_ALONE;
use super::meta::open_runs;
use super::rate::{Rates, Target, mean, pages_for, typical};
use super::tile::{MAX_WIDTH, TileAddress, TileShape, Width, footprint};
use crate::error::Result;
use crate::index::page::{PageSize, Sink};
use crate::memory;

/// A slot of level 1 whose rate would be higher than promised by this factor begins another tile.
const MOST_OVER: f64 = 2.0;

/// What a slot of level 1 is kept as until its tile is written.
enum Kept {
    Hashes(Vec<u64>),
    Bits(Vec<u64>),
}

/// Slots of level 1 whose tile was not written yet.
#[derive(Default)]
struct Above {
    slots: Vec<Kept>,
    /// How many elements each has, or will have when its tile of level 0 is full.
    loads: Vec<f64>,
    /// Hashes that are kept.
    held: usize,
    /// Blocks of a slot, once they are fixed: a number with which tiles of every width have full pages.
    blocks: Option<u64>,
}

/// An index that is being built.
pub struct Build {
    directory: Directory,
    rates: Rates,
    /// Most hashes that are kept for level 1.
    hold: usize,
    gathered: Gathered,
    /// Full tiles that may or may not get a slot in level 1.
    undecided: Vec<Gathered>,
    above: Above,
    /// Elements of a complete range, by the last tile that had any.
    per_range: Option<f64>,
}

impl Build {
    /// Begins an index. At most `hold` hashes are kept in memory for level 1, besides those of 512 ranges.
    ///
    /// # Errors
    /// Those of [`super::rate::check_fpr`].
    pub fn new(options: Options, hold: usize) -> Result<Build> {
        Ok(Build {
            rates: Rates::of(options.size, options.fpr)?,
            directory: Directory::empty(options),
            hold,
            gathered: Gathered::default(),
            undecided: Vec::new(),
            above: Above::default(),
            per_range: None,
        })
    }

    /// Adds the next range, with the hashes of its elements in any order and possibly repeated. Ranges without elements
    /// must be added too.
    ///
    /// # Errors
    /// [`crate::Class::TooLarge`] if there are too few numbers left for pages or ranges; those of writing.
    pub fn range<S: Sink>(&mut self, sink: &mut S, hashes: &[u64]) -> std::result::Result<(), S::Error> {
        if self.gathered.ranges() == MAX_WIDTH as usize {
            let full = std::mem::take(&mut self.gathered);
            if self.directory.options.is_flat {
                self.tile(sink, &full, Width::MAX, self.rates.alone, false)?;
                self.gathered.add(hashes);
                return Ok(());
            }
            self.undecided.push(full);
            let ranges = self.undecided.len() as u64 * u64::from(MAX_WIDTH);
            if self.directory.covered_from.is_some() || ranges >= RANGES_ALONE {
                self.directory.covered_from = Some(0);
                for full in std::mem::take(&mut self.undecided) {
                    self.covered_tile(sink, full, false)?;
                }
            }
        }
        self.gathered.add(hashes);
        Ok(())
    }

    /// Writes what is left, after the last range, and returns the directory, whose metapage the caller writes.
    ///
    /// # Errors
    /// As [`Build::range`].
    pub fn finish<S: Sink>(mut self, sink: &mut S, rows: u64) -> std::result::Result<Directory, S::Error> {
        let rest = std::mem::take(&mut self.gathered);
        if self.directory.covered_from.is_some() {
            if rest.ranges() > 0 {
                self.covered_tile(sink, rest, true)?;
            }
            self.write_above(sink, true)?;
        } else {
            for full in std::mem::take(&mut self.undecided) {
                self.tile(sink, &full, Width::MAX, self.rates.alone, false)?;
            }
            let mut rest = rest;
            while rest.ranges() > 0 {
                let width = next_piece(rest.ranges());
                let after = rest.split_off(rest.ranges().min(width.slots() as usize));
                self.tile(sink, &rest, width, self.rates.alone, after.ranges() == 0)?;
                rest = after;
            }
        }
        self.directory.chain.rows_built = rows;
        Ok(self.directory)
    }

    /// Writes a tile of level 0 and keeps its slot of level 1.
    fn covered_tile<S: Sink>(
        &mut self,
        sink: &mut S,
        ranges: Gathered,
        last: bool,
    ) -> std::result::Result<(), S::Error> {
        let width = Width::holding(ranges.ranges() as u32);
        self.tile(sink, &ranges, width, self.rates.below, last)?;
        let seen = ranges.ranges() as f64;
        let hashes = ranges.distinct();
        // The tiles that will be beside the last one are full.
        let load = hashes.len() as f64 * f64::from(MAX_WIDTH) / seen;
        self.keep(sink, hashes, load)
    }

    /// Writes a tile of level 0.
    fn tile<S: Sink>(
        &mut self,
        sink: &mut S,
        ranges: &Gathered,
        width: Width,
        target: Target,
        last: bool,
    ) -> std::result::Result<(), S::Error> {
        let mut loads: Vec<f64> = (0..ranges.ranges()).map(|range| ranges.range(range).len() as f64).collect();
        // The last range of all may go on growing.
        let begun = if last { loads.pop() } else { None };
        self.per_range = mean(&typical(&loads)).or(self.per_range);
        if let Some(begun) = begun {
            loads.push(self.per_range.unwrap_or(f64::from(self.directory.options.guess)).max(begun));
        }
        let shape = self.directory.shape_for(Level::Zero, width, target, &typical(&loads));
        let tile = self.add(sink, shape)?;
        let size = tile.size;
        let mut pages = memory::zeroed(shape.pages as usize * size.bytes());
        for slot in 0..ranges.ranges() {
            for &hash in ranges.range(slot) {
                let (block, positions) = footprint(Level::Zero, shape.num_hashes, shape.blocks(), size, hash);
                let start = block_start(&tile, block);
                for &position in &positions[..usize::from(shape.num_hashes)] {
                    set(&mut pages[start..], width, usize::from(position), slot);
                }
            }
        }
        for (page, number) in pages.chunks_exact_mut(size.bytes()).zip(tile.pages()) {
            tile.special().write(page);
            sink.write(number, page)?;
        }
        Ok(())
    }

    /// Adds a tile and allocates its pages. Writes a directory page if the metapage is full.
    fn add<S: Sink>(&mut self, sink: &mut S, shape: TileShape) -> std::result::Result<TileAddress, S::Error> {
        if self.directory.open.len() == open_runs(self.directory.options.size) {
            let (number, page) = self.directory.close()?;
            sink.write(number, &page)?;
        }
        self.directory.push(shape, 1)?;
        let last = self.directory.tiles(shape.level) - 1;
        Ok(self.directory.tile(shape.level, last).expect("the tile was just added"))
    }

    /// Keeps a slot of level 1, and writes the tile when it has all.
    fn keep<S: Sink>(&mut self, sink: &mut S, hashes: Vec<u64>, load: f64) -> std::result::Result<(), S::Error> {
        let size = self.directory.options.size;
        let target = self.rates.above;
        if let Some(blocks) = self.above.blocks
            && self.above.slots.len().is_multiple_of(Width::MIN.slots() as usize)
        {
            let pages = (blocks / u64::from(Width::MIN.blocks_per_page())) as u32;
            let shape = TileShape { level: Level::One, width: Width::MIN, num_hashes: target.num_hashes, pages };
            if shape.rate(size, load) > target.fpr * MOST_OVER {
                self.write_above(sink, false)?;
            }
        }
        let above = &mut self.above;
        above.loads.push(load);
        above.held += hashes.len();
        above.slots.push(match above.blocks {
            Some(blocks) => Kept::Bits(bits_of(&hashes, target, blocks, size)),
            None => Kept::Hashes(hashes),
        });
        if above.blocks.is_none() && above.held > self.hold {
            let pages = pages_for(size, Level::One, Width::MIN, target, &typical(&above.loads));
            let blocks = u64::from(pages) * u64::from(Width::MIN.blocks_per_page());
            above.blocks = Some(blocks);
            for slot in &mut above.slots {
                if let Kept::Hashes(hashes) = slot {
                    *slot = Kept::Bits(bits_of(hashes, target, blocks, size));
                }
            }
        }
        if self.above.slots.len() == MAX_WIDTH as usize {
            self.write_above(sink, false)?;
        }
        Ok(())
    }

    /// Writes the slots of level 1 that are kept, as tiles of several widths. Only the very last may have slots left:
    /// the next tile of level 0 has the slot after the last one written.
    fn write_above<S: Sink>(&mut self, sink: &mut S, last: bool) -> std::result::Result<(), S::Error> {
        let Above { mut slots, mut loads, blocks, .. } = std::mem::take(&mut self.above);
        while !slots.is_empty() {
            let width = if last { next_piece(slots.len()) } else { Width::within(slots.len() as u32) };
            let used = slots.len().min(width.slots() as usize);
            let (rest, other_loads) = (slots.split_off(used), loads.split_off(used));
            self.tile_above(sink, width, slots, &loads, blocks)?;
            (slots, loads) = (rest, other_loads);
        }
        Ok(())
    }

    /// Writes one tile of level 1.
    fn tile_above<S: Sink>(
        &mut self,
        sink: &mut S,
        width: Width,
        slots: Vec<Kept>,
        loads: &[f64],
        blocks: Option<u64>,
    ) -> std::result::Result<(), S::Error> {
        let target = self.rates.above;
        let shape = match blocks {
            Some(blocks) => {
                let pages = (blocks / u64::from(width.blocks_per_page())) as u32;
                TileShape { level: Level::One, width, num_hashes: target.num_hashes, pages }
            }
            None => self.directory.shape_for(Level::One, width, target, &typical(loads)),
        };
        let tile = self.add(sink, shape)?;
        let (size, blocks) = (tile.size, shape.blocks());
        let bits: Vec<Vec<u64>> = slots
            .into_iter()
            .map(|kept| match kept {
                Kept::Bits(bits) => bits,
                Kept::Hashes(hashes) => bits_of(&hashes, target, blocks, size),
            })
            .collect();
        let words = words_per_block(size);
        let per_page = width.blocks_per_page() as usize;
        let mut page = vec![0; size.bytes()];
        for (number, first) in tile.pages().zip((0..).step_by(per_page)) {
            crate::interrupt::check();
            page.fill(0);
            for (slot, bits) in bits.iter().enumerate() {
                let blocks = bits[first * words..].chunks_exact(words).take(per_page);
                for (block, words) in (0..).zip(blocks) {
                    let block = &mut page[block_start(&tile, block)..];
                    each_one(words, |position| set(block, width, position, slot));
                }
            }
            tile.special().write(&mut page);
            sink.write(number, &page)?;
        }
        Ok(())
    }
}

/// The width of the next tile when so many slots are left: the narrowest that has room for all of them if three
/// quarters of it are used, else the widest that they fill.
fn next_piece(slots: usize) -> Width {
    let slots = u32::try_from(slots).unwrap_or(u32::MAX);
    let holding = Width::holding(slots);
    if slots >= holding.slots() / 4 * 3 { holding } else { Width::within(slots) }
}

/// Where a block begins in the pages of its tile, of which it counts from the first.
fn block_start(tile: &TileAddress, block: u64) -> usize {
    let TileShape { width, .. } = tile.shape;
    let per_page = u64::from(width.blocks_per_page());
    let block_bytes = tile.size.block_bits() as usize * width.bytes();
    (block / per_page) as usize * tile.size.bytes()
        + tile.size.payload().start
        + (block % per_page) as usize * block_bytes
}

/// Sets a bit of a block.
#[inline(always)]
fn set(block: &mut [u8], width: Width, position: usize, slot: usize) {
    block[position * width.bytes() + slot / 8] |= 1 << (slot % 8);
}

/// Words in which a slot's block is kept.
fn words_per_block(size: PageSize) -> usize {
    size.block_bits().div_ceil(64) as usize
}

/// The bits of a slot of level 1, block by block in whole words.
fn bits_of(hashes: &[u64], target: Target, blocks: u64, size: PageSize) -> Vec<u64> {
    let words = words_per_block(size);
    let mut bits = memory::list(blocks as usize * words);
    bits.resize(blocks as usize * words, 0);
    for &hash in hashes {
        let (block, positions) = footprint(Level::One, target.num_hashes, blocks, size, hash);
        let block = &mut bits[block as usize * words..][..words];
        for &position in &positions[..usize::from(target.num_hashes)] {
            block[usize::from(position / 64)] |= 1 << (position % 64);
        }
    }
    bits
}

/// Calls `f` with the number of each set bit.
fn each_one(words: &[u64], mut f: impl FnMut(usize)) {
    for (i, &word) in words.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            f(i * 64 + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}
