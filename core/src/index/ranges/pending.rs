//! What a build keeps in memory until its tile is written: the hashes of ranges, and the slots of the levels above.

use super::fill::elements;
use super::rate::{Target, typical, with_pages};
use super::shape::{Level, TileShape, Width};
use super::tile::{Footprint, footprint};
use crate::filter::sparse;
use crate::index::page::PageSize;
use crate::memory;

/// Distinct hashes of neighbouring ranges.
#[derive(Default)]
pub(super) struct Gathered {
    hashes: Vec<u64>,
    /// Where the hashes of each range end.
    ends: Vec<usize>,
}

impl Gathered {
    pub fn ranges(&self) -> usize {
        self.ends.len()
    }

    pub fn range(&self, range: usize) -> &[u64] {
        let start = range.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.hashes[start..self.ends[range]]
    }

    /// Adds a range. Its hashes may be in any order, and may repeat.
    pub fn add(&mut self, hashes: &[u64]) {
        let start = self.hashes.len();
        let free = self.hashes.capacity() - start;
        if free < hashes.len() {
            memory::reserve(&mut self.hashes, hashes.len().max(start));
        }
        self.hashes.extend_from_slice(hashes);
        let distinct = sparse::sort_distinct(&mut self.hashes[start..], 0);
        self.hashes.truncate(start + distinct);
        self.ends.push(self.hashes.len());
    }

    /// All of its hashes, each once.
    pub fn distinct(mut self) -> Vec<u64> {
        let distinct = sparse::sort_distinct(&mut self.hashes, 0);
        self.hashes.truncate(distinct);
        self.hashes
    }
}

/// A slot whose rate would be higher than promised by this factor begins another tile.
const MOST_OVER: f64 = 2.0;
/// How often a slot can be folded in half.
const FOLDS: u32 = 6;

/// What a slot is kept as.
pub(super) enum Kept {
    Hashes(Vec<u64>),
    /// Its bits, block by block in whole words.
    Bits(Vec<u64>),
}

impl Kept {
    /// Its bits in a tile of this shape.
    pub fn bits(self, shape: &TileShape, size: PageSize) -> Vec<u64> {
        match self {
            Kept::Bits(bits) => bits,
            Kept::Hashes(hashes) => bits_of(&hashes, *shape, size),
        }
    }
}

/// Slots of a level whose tile is not written yet.
pub(super) struct Above {
    level: Level,
    /// How many slots its tiles have.
    pub width: Width,
    slots: Vec<Kept>,
    /// How many elements each has, or will have when its tile of the level below is full.
    loads: Vec<f64>,
    /// Hashes that are kept.
    held: usize,
    /// Most hashes that are kept, or words of bits.
    hold: usize,
    /// Blocks of a slot, once they are fixed: a number with which tiles of every width have full pages.
    pub blocks: Option<u64>,
    /// The slot that gets the bits of hashes as they come.
    open: Vec<u64>,
}

impl Above {
    /// No slots yet. Tiles get this width.
    pub fn new(level: Level, width: Width, hold: usize) -> Above {
        let (slots, loads, open) = (Vec::new(), Vec::new(), Vec::new());
        Above { level, width, slots, loads, held: 0, hold, blocks: None, open }
    }

    /// Whether a tile must be written before another slot is kept.
    pub fn is_full(&self) -> bool {
        let eighth = !self.slots.is_empty() && self.slots.len().is_multiple_of(Width::MIN.columns() as usize);
        let is_too_large = self.level == Level::Two && eighth && self.held > self.hold;
        self.slots.len() == self.width.columns() as usize || is_too_large
    }

    /// Whether the next slot, which has so many elements, should begin another tile.
    pub fn is_other(&self, size: PageSize, target: Target, load: f64) -> bool {
        let Some(blocks) = self.blocks else { return false };
        if self.slots.is_empty() || !self.slots.len().is_multiple_of(Width::MIN.columns() as usize) {
            return false;
        }
        self.shape(target, blocks).rate(size, load) > target.fpr * MOST_OVER
    }

    /// The narrowest tile whose slots have so many blocks.
    fn shape(&self, target: Target, blocks: u64) -> TileShape {
        let pages = (blocks / u64::from(Width::MIN.blocks_per_page())) as u32;
        let (level, num_hashes) = (self.level, target.num_hashes);
        TileShape { level, width: Width::MIN, columns_per_slot: 1, num_hashes, pages }
    }

    pub fn keep(&mut self, size: PageSize, target: Target, slot: Kept, load: f64) {
        memory::push(&mut self.loads, load);
        self.held += match &slot {
            Kept::Hashes(kept) | Kept::Bits(kept) => kept.len(),
        };
        memory::push(&mut self.slots, slot);
        if self.blocks.is_none() && self.held > self.hold {
            self.blocks = Some(self.blocks_for(size, target, &typical(&self.loads), 1));
        }
        let Some(shape) = self.blocks.map(|blocks| self.shape(target, blocks)) else { return };
        for slot in &mut self.slots {
            if let Kept::Hashes(hashes) = slot {
                *slot = Kept::Bits(bits_of(hashes, shape, size));
            }
        }
    }

    /// Blocks of a slot for such loads, in a multiple of so many pages.
    fn blocks_for(&self, size: PageSize, target: Target, loads: &[f64], multiple: u32) -> u64 {
        let shape = with_pages(self.shape(target, 0), size, target, loads);
        u64::from(shape.pages.next_multiple_of(multiple)) * u64::from(Width::MIN.blocks_per_page())
    }

    /// Sets the bits of hashes in the slot that is open, which is expected to get so many.
    pub fn mark(&mut self, size: PageSize, target: Target, load: f64, hashes: &[u64]) {
        let blocks = match self.blocks {
            Some(blocks) => blocks,
            // A small one is not folded: there is nothing to save.
            None if load < f64::from(1 << 16) => self.blocks_for(size, target, &[load], 1),
            None => self.blocks_for(size, target, &[load], 1 << FOLDS),
        };
        self.blocks = Some(blocks);
        let shape = self.shape(target, blocks);
        if self.open.is_empty() {
            self.open = no_bits(shape, size);
        }
        set(&mut self.open, shape, size, hashes);
    }

    /// The bits of the slot that was open, and about how many elements it has. After it there is none.
    pub fn marked(&mut self, size: PageSize, target: Target) -> (Vec<u64>, f64) {
        let mut bits = std::mem::take(&mut self.open);
        let words = words_per_block(size);
        let ones: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        let mut blocks = (bits.len() / words) as u64;
        let all = blocks * u64::from(size.block_bits());
        let load = elements(self.shape(target, blocks), size, all as f64, ones as f64);
        let per_page = u64::from(Width::MIN.blocks_per_page());
        let needed = self.blocks_for(size, target, &[load], 1);
        while self.slots.is_empty() && blocks >= 2 * needed && blocks.is_multiple_of(2 * per_page) {
            bits = fold(&bits, words);
            blocks /= 2;
        }
        if self.slots.is_empty() {
            self.blocks = Some(blocks);
        }
        (bits, load)
    }

    /// The slots, their loads, and the blocks of each if they are fixed. After them there are none. Those of level 2
    /// that come next have as many blocks, since there may be one.
    pub fn take(&mut self) -> (Vec<Kept>, Vec<f64>, Option<u64>) {
        self.held = 0;
        let blocks = if self.level == Level::Two { self.blocks } else { self.blocks.take() };
        (std::mem::take(&mut self.slots), std::mem::take(&mut self.loads), blocks)
    }
}

/// Each two neighbouring blocks as one. A hash's block is its share of all blocks, so it is the one that has the block
/// that it had.
fn fold(bits: &[u64], words: usize) -> Vec<u64> {
    let mut folded = memory::list(bits.len() / 2);
    for pair in bits.chunks_exact(2 * words) {
        let (a, b) = pair.split_at(words);
        folded.extend(a.iter().zip(b).map(|(a, b)| a | b));
    }
    folded
}

/// Words in which a slot's block is kept.
pub(super) fn words_per_block(size: PageSize) -> usize {
    size.block_bits().div_ceil(64) as usize
}

fn no_bits(shape: TileShape, size: PageSize) -> Vec<u64> {
    memory::zeroed(shape.blocks() as usize * words_per_block(size))
}

/// The bits of a slot in a tile of this shape.
fn bits_of(hashes: &[u64], shape: TileShape, size: PageSize) -> Vec<u64> {
    let mut bits = no_bits(shape, size);
    set(&mut bits, shape, size, hashes);
    bits
}

fn set(bits: &mut [u64], shape: TileShape, size: PageSize, hashes: &[u64]) {
    let words = words_per_block(size);
    for &hash in hashes {
        let Footprint { block, positions, .. } = footprint(shape, shape.block_bits(size), hash);
        let block = &mut bits[block as usize * words..][..words];
        for &position in &positions[..usize::from(shape.num_hashes)] {
            block[usize::from(position / 64)] |= 1 << (position % 64);
        }
    }
}
