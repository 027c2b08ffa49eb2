//! What a build keeps in memory until its tile is written: the hashes of ranges, and the slots of
//! the levels above.

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
        if self.hashes.capacity() - start < hashes.len() {
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

/// Slots of a level whose tile is not written yet.
pub(super) struct Above {
    level: Level,
    /// How many slots its tiles have.
    pub width: Width,
    pub target: Target,
    size: PageSize,
    /// The hashes of each slot, or once `blocks` are fixed its bits, block by block in whole words.
    slots: Vec<Vec<u64>>,
    /// How many elements each has, or will have when its tile of the level below is full.
    loads: Vec<f64>,
    /// Hashes that are kept, or words of bits; and the most.
    held: usize,
    hold: usize,
    /// Blocks of a slot, once they are fixed: a number with which tiles of every width have full
    /// pages.
    pub blocks: Option<u64>,
    /// The slot that gets the bits of hashes as they come.
    open: Vec<u64>,
}

impl Above {
    pub fn new(level: Level, width: Width, target: Target, size: PageSize, hold: usize) -> Above {
        let (slots, loads, open) = (Vec::new(), Vec::new(), Vec::new());
        Above {
            level,
            width,
            target,
            size,
            slots,
            loads,
            held: 0,
            hold,
            blocks: None,
            open,
        }
    }

    /// Whether there are slots, as many as fill tiles of the least width.
    fn fills_tiles(&self) -> bool {
        !self.slots.is_empty() && self.slots.len().is_multiple_of(Width::MIN.columns() as usize)
    }

    /// Whether a tile must be written before another slot is kept.
    pub fn is_full(&self) -> bool {
        let is_too_large = self.level == Level::Two && self.fills_tiles() && self.held > self.hold;
        self.slots.len() == self.width.columns() as usize || is_too_large
    }

    /// Whether the next slot, which has so many elements, should begin another tile.
    pub fn is_other(&self, load: f64) -> bool {
        let is_over =
            |blocks| self.shape(Width::MIN, blocks).rate(load) > self.target.fpr * MOST_OVER;
        self.fills_tiles() && self.blocks.is_some_and(is_over)
    }

    pub fn shape(&self, width: Width, blocks: u64) -> TileShape {
        let (num_hashes, pages) =
            (self.target.num_hashes, (blocks / u64::from(width.blocks_per_page())) as u32);
        TileShape {
            level: self.level,
            width,
            columns_per_slot: 1,
            num_hashes,
            pages,
            size: self.size,
        }
    }

    /// Keeps a slot as its hashes, or if there are too many, as bits.
    pub fn keep_hashes(&mut self, hashes: Vec<u64>, load: f64) {
        if let Some(blocks) = self.blocks {
            return self.keep(bits_of(&hashes, self.shape(Width::MIN, blocks)), load);
        }
        self.keep(hashes, load);
        if self.held > self.hold {
            let blocks = self.blocks_for(&typical(&self.loads), 1);
            let shape = self.shape(Width::MIN, blocks);
            self.blocks = Some(blocks);
            self.slots.iter_mut().for_each(|slot| *slot = bits_of(slot, shape));
        }
    }

    /// Keeps a slot in the form of the others.
    pub fn keep(&mut self, slot: Vec<u64>, load: f64) {
        memory::push(&mut self.loads, load);
        self.held += slot.len();
        memory::push(&mut self.slots, slot);
    }

    /// Blocks of a slot for such loads, in a multiple of so many pages.
    fn blocks_for(&self, loads: &[f64], multiple: u32) -> u64 {
        let shape = with_pages(self.shape(Width::MIN, 0), self.target, loads);
        u64::from(shape.pages.next_multiple_of(multiple)) * u64::from(Width::MIN.blocks_per_page())
    }

    /// Sets the bits of hashes in the slot that is open, which is expected to get so many.
    pub fn mark(&mut self, load: f64, hashes: &[u64]) {
        // A small one is not folded: there is nothing to save.
        let multiple = if load < f64::from(1 << 16) { 1 } else { 1 << FOLDS };
        let blocks = self.blocks.unwrap_or_else(|| self.blocks_for(&[load], multiple));
        self.blocks = Some(blocks);
        let shape = self.shape(Width::MIN, blocks);
        if self.open.is_empty() {
            self.open = no_bits(shape);
        }
        set_all(&mut self.open, shape, hashes);
    }

    /// The bits of the slot that was open, and about how many elements it has. After it there is
    /// none.
    pub fn marked(&mut self) -> (Vec<u64>, f64) {
        let mut bits = std::mem::take(&mut self.open);
        let words = words_per_block(self.size);
        let ones: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        let mut blocks = (bits.len() / words) as u64;
        let all = blocks * u64::from(self.size.block_bits());
        let load = elements(self.shape(Width::MIN, blocks), all as f64, ones as f64);
        if self.slots.is_empty() {
            let (needed, per_page) =
                (self.blocks_for(&[load], 1), u64::from(Width::MIN.blocks_per_page()));
            while blocks >= 2 * needed && blocks.is_multiple_of(2 * per_page) {
                bits = fold(&bits, words);
                blocks /= 2;
            }
            self.blocks = Some(blocks);
        }
        (bits, load)
    }

    /// The slots, their loads, and the blocks of each if they are fixed. After them there are none.
    /// Those of level 2 that come next have as many blocks, since there may be one.
    pub fn take(&mut self) -> (Vec<Vec<u64>>, Vec<f64>, Option<u64>) {
        self.held = 0;
        let blocks = if self.level == Level::Two { self.blocks } else { self.blocks.take() };
        (std::mem::take(&mut self.slots), std::mem::take(&mut self.loads), blocks)
    }
}

/// Each two neighbouring blocks as one. A hash's block is its share of all, so it is the one with
/// what it had.
fn fold(bits: &[u64], words: usize) -> Vec<u64> {
    let mut folded = memory::with_capacity(bits.len() / 2);
    for pair in bits.chunks_exact(2 * words) {
        let (a, b) = pair.split_at(words);
        folded.extend(a.iter().zip(b).map(|(a, b)| a | b));
    }
    folded
}

pub(super) fn words_per_block(size: PageSize) -> usize {
    size.block_bits().div_ceil(64) as usize
}

pub(super) fn no_bits(shape: TileShape) -> Vec<u64> {
    memory::zeroed(shape.blocks() as usize * words_per_block(shape.size))
}

pub(super) fn bits_of(hashes: &[u64], shape: TileShape) -> Vec<u64> {
    let mut bits = no_bits(shape);
    set_all(&mut bits, shape, hashes);
    bits
}

fn set_all(bits: &mut [u64], shape: TileShape, hashes: &[u64]) {
    hashes
        .iter()
        .for_each(|&hash| set(bits, shape, &footprint(shape, hash)));
}

#[inline]
pub(super) fn set(bits: &mut [u64], shape: TileShape, footprint: &Footprint) {
    let words = words_per_block(shape.size);
    let block = &mut bits[footprint.block as usize * words..][..words];
    for &position in &footprint.positions[..usize::from(shape.num_hashes)] {
        block[usize::from(position / 64)] |= 1 << (position % 64);
    }
}
