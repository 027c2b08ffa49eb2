//! What a build keeps in memory until its tile is written: the hashes of ranges, and the slots of
//! the levels above.
//!
//! A slot of level 1 is kept as the hashes of its keys, up to a limit: with all hashes at hand, its
//! tile gets exactly the size that it needs. Beyond the limit the number of blocks is fixed to what
//! the slots so far need, and slots are kept as their bits.
//!
//! A slot of level 2 has far too many hashes. It gets bits from the start, as the tiles of level 0
//! below it are written: it is *open* until the last of them. The number of blocks is fixed for as
//! many keys as there are hashes, as if all were different. If they are not, the first slot is
//! folded to what it would have been had it been made smaller.

use super::column_bits::ColumnBits;
use super::fill::estimated_keys;
use super::rate::{SlotTarget, complete_columns, sized_for};
use super::shape::{Level, TileShape, Width};
use crate::filter::sparse;
use crate::index::page::PageSize;
use crate::memory::List;

/// Distinct hashes of neighbouring ranges.
#[derive(Default)]
pub(super) struct GatheredRanges {
    /// The hashes of all ranges, one range after the other; ascending in each.
    hashes: List<u64>,
    /// Where the hashes of each range end.
    ends: List<usize>,
}

impl GatheredRanges {
    /// Returns how many ranges there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the hashes of a range, counted from the first one that was gathered.
    pub fn hashes_of(&self, range: usize) -> &[u64] {
        let start = if range == 0 { 0 } else { self.ends[range - 1] };
        &self.hashes[start..self.ends[range]]
    }

    /// Adds a range. Its hashes may be in any order, and may repeat.
    pub fn add(&mut self, hashes: &[u64]) {
        let start = self.hashes.len();
        if self.hashes.capacity() - start < hashes.len() {
            // At least doubles the memory, so that the hashes are rarely moved.
            self.hashes.reserve_exact(hashes.len().max(start));
        }
        self.hashes.extend_from_slice(hashes);
        let distinct = sparse::sort_distinct(&mut self.hashes[start..], 0);
        self.hashes.truncate(start + distinct);
        self.ends.push(self.hashes.len());
    }

    /// Returns the hashes of all ranges, each once.
    pub fn into_distinct(mut self) -> List<u64> {
        let distinct = sparse::sort_distinct(&mut self.hashes, 0);
        self.hashes.truncate(distinct);
        self.hashes
    }
}

/// Slots of a level above level 0, in the order of their numbers, whose tile is not written yet.
#[derive(Default)]
pub(super) struct PendingSlots {
    pub contents: SlotContents,
    /// How many keys each slot has, or will have when its tile of the level below is full.
    pub keys_per_slot: List<f64>,
}

/// What is kept of some slots.
pub(super) enum SlotContents {
    /// The hashes of each slot.
    Hashes(List<List<u64>>),
    /// The bits of each slot, all in the same number of blocks.
    Bits(List<ColumnBits>),
}

impl Default for SlotContents {
    fn default() -> SlotContents {
        SlotContents::Hashes(List::new())
    }
}

impl PendingSlots {
    /// Returns how many slots there are.
    pub fn count(&self) -> usize {
        self.keys_per_slot.len()
    }

    /// Removes the first slots, `count` of them or all if there are fewer, and returns them.
    pub fn take_first(&mut self, count: usize) -> PendingSlots {
        let count = count.min(self.count());
        let slots_left = PendingSlots {
            contents: match &mut self.contents {
                SlotContents::Hashes(slots) => SlotContents::Hashes(slots.split_off(count)),
                SlotContents::Bits(slots) => SlotContents::Bits(slots.split_off(count)),
            },
            keys_per_slot: self.keys_per_slot.split_off(count),
        };
        std::mem::replace(self, slots_left)
    }

    /// Returns whether the slots can be written as tiles without an unused column: as one or
    /// several tiles of the least width. `false` if there are no slots.
    fn fill_tiles(&self) -> bool {
        let least_width = Width::MIN.columns() as usize;
        self.count() > 0 && self.count().is_multiple_of(least_width)
    }
}

/// What the tiles of a level above level 0 have in common.
pub(super) struct LevelPlan {
    pub level: Level,
    /// How many slots the tiles have.
    pub width: Width,
    /// What the slots must keep.
    pub target: SlotTarget,
    pub size: PageSize,
}

impl LevelPlan {
    /// Returns the shape of a tile of this width whose columns have `blocks` blocks: a multiple of
    /// those that a page has of each column.
    pub fn shape(&self, width: Width, blocks: u64) -> TileShape {
        TileShape {
            level: self.level,
            width,
            columns_per_slot: 1,
            num_hashes: self.target.num_hashes,
            pages: (blocks / u64::from(width.blocks_per_page())) as u32,
            size: self.size,
        }
    }

    /// Returns the shape of the narrowest tile whose columns have `blocks` blocks, for work on
    /// single columns: their bits are the same in tiles of every width.
    pub fn shape_of_column(&self, blocks: u64) -> TileShape {
        self.shape(Width::MIN, blocks)
    }

    /// Returns how many blocks each slot needs, if the slots of a tile have these numbers of keys.
    ///
    /// The number fills pages of tiles of every width: with it, a tile of the least width has a
    /// multiple of `multiple_of_pages` pages.
    fn blocks_for(&self, keys_per_slot: &[f64], multiple_of_pages: u32) -> u64 {
        let needed = sized_for(self.shape_of_column(0), self.target, keys_per_slot);
        let rounded_pages = needed.pages.next_multiple_of(multiple_of_pages);
        u64::from(rounded_pages) * u64::from(Width::MIN.blocks_per_page())
    }

    /// Returns whether a slot with this number of keys would have a much higher rate than promised
    /// if it had `blocks` blocks.
    fn would_be_overfull(&self, keys: f64, blocks: u64) -> bool {
        /// The rate is too high if it exceeds the promised one by this factor.
        const MOST_TIMES_PROMISED: f64 = 2.0;
        let rate = self.shape_of_column(blocks).rate(keys);
        rate > self.target.fpr * MOST_TIMES_PROMISED
    }
}

/// The slots of level 1 whose tile is not written yet.
pub(super) struct PendingLevelOne {
    pub plan: LevelPlan,
    slots: PendingSlots,
    hashes_kept: usize,
    most_hashes: usize,
}

impl PendingLevelOne {
    /// Returns a level without slots. About `most_hashes` hashes are kept at most; then bits.
    pub fn new(plan: LevelPlan, most_hashes: usize) -> PendingLevelOne {
        PendingLevelOne {
            plan,
            slots: PendingSlots::default(),
            hashes_kept: 0,
            most_hashes,
        }
    }

    /// Returns whether the slots that are kept fill a tile, which must be written before another
    /// slot is added.
    pub fn is_full(&self) -> bool {
        self.slots.count() == self.plan.width.columns() as usize
    }

    /// Returns whether a slot with this number of keys should begin another tile, since its number
    /// of blocks is fixed, and too small.
    pub fn needs_other_tile(&self, keys: f64) -> bool {
        match &self.slots.contents {
            SlotContents::Bits(slots) if self.slots.fill_tiles() => {
                self.plan.would_be_overfull(keys, slots[0].blocks())
            }
            _ => false,
        }
    }

    /// Adds a filter of level 1 after those that are kept already. It has all keys of one tile of
    /// level 0, given by their distinct `hashes`. `keys_if_full` is how many keys that tile will
    /// have when all of its ranges of the table are full.
    ///
    /// The filters are kept in memory until there are enough for a tile of level 1. How many bits
    /// they need follows from the keys of all of them, so they are kept as the hashes of their keys
    /// at first. If these are more than `most_hashes` together, the filters are converted to bits,
    /// which take less memory, and have a fixed size from then on.
    pub fn add_slot(&mut self, hashes: List<u64>, keys_if_full: f64) {
        self.slots.keys_per_slot.push(keys_if_full);
        match &mut self.slots.contents {
            SlotContents::Hashes(slots) => {
                self.hashes_kept += hashes.len();
                slots.push(hashes);
                if self.hashes_kept > self.most_hashes {
                    self.convert_hashes_to_bits();
                }
            }
            SlotContents::Bits(slots) => {
                let blocks_of_each = slots[0].blocks();
                let shape = self.plan.shape_of_column(blocks_of_each);
                slots.push(ColumnBits::with_keys(&hashes, shape));
            }
        }
    }

    /// Replaces the hashes of the slots by bits. The number of blocks of each slot is fixed to what
    /// the slots so far need.
    fn convert_hashes_to_bits(&mut self) {
        if let SlotContents::Hashes(slots) = &self.slots.contents {
            let complete = complete_columns(&self.slots.keys_per_slot);
            let blocks = self.plan.blocks_for(&complete, ANY_PAGES);
            let shape = self.plan.shape_of_column(blocks);
            let bits = slots.iter().map(|hashes| ColumnBits::with_keys(hashes, shape));
            self.slots.contents = SlotContents::Bits(bits.collect());
        }
    }

    /// Removes all slots and returns them. The number of blocks of the next ones is not fixed.
    pub fn take_slots(&mut self) -> PendingSlots {
        self.hashes_kept = 0;
        std::mem::take(&mut self.slots)
    }
}

/// How often a slot of level 2 can be folded in half: to a 64th.
const MOST_FOLDS: u32 = 6;
/// A tile with a multiple of so many pages can be folded as often as that.
const PAGES_TO_FOLD: u32 = 1 << MOST_FOLDS;
/// The multiple of pages, for [`LevelPlan::blocks_for`], that allows every number of them: for
/// slots that are not folded any more.
const ANY_PAGES: u32 = 1;
/// A slot of level 2 that is made for fewer keys isn't folded: there is little to save.
const LEAST_KEYS_TO_FOLD: f64 = 65_536.0;

/// A slot of level 2 that has the bits of all tiles below it.
pub(super) struct ClosedSlot {
    pub bits: ColumnBits,
    /// About how many distinct keys it has.
    pub keys: f64,
}

/// Folds a column of bits in half as often as at least `needed_blocks` blocks are left, and these
/// fill pages of a tile of the least width.
fn fold_to(mut bits: ColumnBits, needed_blocks: u64) -> ColumnBits {
    let blocks_of_two_pages = 2 * u64::from(Width::MIN.blocks_per_page());
    while bits.blocks() >= 2 * needed_blocks && bits.blocks().is_multiple_of(blocks_of_two_pages) {
        bits = bits.folded();
    }
    bits
}

/// The slots of level 2 whose tile is not written yet.
pub(super) struct PendingLevelTwo {
    pub plan: LevelPlan,
    slots: List<ColumnBits>,
    keys_per_slot: List<f64>,
    /// How many words of bits the slots take.
    words_kept: usize,
    most_words: usize,
    /// How many blocks of bits each slot has. The first slot that is opened decides it; `None`
    /// until then. All slots of a tile have the same number.
    blocks: Option<u64>,
    /// The slot that gets the keys of tiles of level 0 as these are written.
    open_slot: Option<ColumnBits>,
}

impl PendingLevelTwo {
    /// Returns a level without slots. About `most_words` words of 64 bits are kept at most, but at
    /// least eight slots.
    pub fn new(plan: LevelPlan, most_words: usize) -> PendingLevelTwo {
        PendingLevelTwo {
            plan,
            slots: List::new(),
            keys_per_slot: List::new(),
            words_kept: 0,
            most_words,
            blocks: None,
            open_slot: None,
        }
    }

    /// Returns whether the slots that are kept must be written before another one is added: they
    /// fill a tile, or take too much memory.
    pub fn is_full(&self) -> bool {
        let fills_widest = self.slots.len() == self.plan.width.columns() as usize;
        let is_too_large = self.fill_tiles() && self.words_kept > self.most_words;
        fills_widest || is_too_large
    }

    /// Returns whether the slots can be written as tiles without an unused column. `false` if there
    /// are none.
    fn fill_tiles(&self) -> bool {
        let least_width = Width::MIN.columns() as usize;
        !self.slots.is_empty() && self.slots.len().is_multiple_of(least_width)
    }

    /// Returns whether the next slot, if it has as many keys as this, should begin another tile,
    /// since the number of blocks is too small.
    pub fn needs_other_tile(&self, keys: f64) -> bool {
        let is_overfull = |blocks| self.plan.would_be_overfull(keys, blocks);
        self.fill_tiles() && self.blocks.is_some_and(is_overfull)
    }

    /// Forgets how many blocks of bits a slot has, so that the next slot decides it anew by its own
    /// number of keys. All slots must have been taken out, and none be open.
    pub fn forget_blocks(&mut self) {
        self.blocks = None;
    }

    /// Adds the keys with these hashes to the *open* slot of level 2: the filter of the keys of
    /// many tiles of level 0, which gets them as these tiles are written. Opens a slot if none is.
    ///
    /// `expected_keys` is how many keys the slot will get in all. All slots of a tile have the same
    /// number of blocks of bits, so the first one decides: it gets as many as so many keys need. If
    /// they are many, the number of blocks is also rounded up, so that the slot can be folded in
    /// half several times in case many keys are repeated.
    pub fn add_to_open_slot(&mut self, expected_keys: f64, hashes: &[u64]) {
        let can_be_folded = expected_keys >= LEAST_KEYS_TO_FOLD;
        let multiple_of_pages = if can_be_folded { PAGES_TO_FOLD } else { ANY_PAGES };
        let blocks = self
            .blocks
            .unwrap_or_else(|| self.plan.blocks_for(&[expected_keys], multiple_of_pages));
        self.blocks = Some(blocks);

        let shape = self.plan.shape_of_column(blocks);
        self.open_slot
            .get_or_insert_with(|| ColumnBits::empty(shape))
            .add_keys(hashes, shape);
    }

    /// Ends the *open* slot of level 2: the filter to which [`PendingLevelTwo::add_to_open_slot`]
    /// adds the keys of many tiles of level 0. Returns its bits with an estimate of its distinct
    /// keys. No slot is open afterwards. Panics if none was.
    ///
    /// The filter got as many blocks of bits as it needs if no key is in two of these tiles. If
    /// many are, it has far more blocks than it needs. So it is folded in half as long as half of
    /// its blocks are enough. That is only possible for the first slot of a tile: the others must
    /// have as many blocks as the first one, and stay as they are.
    pub fn close_slot(&mut self) -> ClosedSlot {
        let bits = self.open_slot.take().expect("a slot has the keys of tiles below it");
        let shape = self.plan.shape_of_column(bits.blocks());
        let bits_of_slot = bits.blocks() * u64::from(self.plan.size.block_bits());
        let keys = estimated_keys(shape, bits_of_slot as f64, bits.ones() as f64);

        let is_first_of_tile = self.slots.is_empty();
        if !is_first_of_tile {
            return ClosedSlot { bits, keys };
        }
        let needed_blocks = self.plan.blocks_for(&[keys], ANY_PAGES);
        let bits = fold_to(bits, needed_blocks);
        // The slots after this one get the number of blocks that is left.
        self.blocks = Some(bits.blocks());
        ClosedSlot { bits, keys }
    }

    /// Adds a slot after the others.
    pub fn add_slot(&mut self, bits: ColumnBits, keys: f64) {
        self.keys_per_slot.push(keys);
        self.words_kept += bits.words();
        self.slots.push(bits);
    }

    /// Removes all slots and returns them. The next ones have as many blocks, since one of them may
    /// be open.
    pub fn take_slots(&mut self) -> PendingSlots {
        self.words_kept = 0;
        PendingSlots {
            contents: SlotContents::Bits(std::mem::take(&mut self.slots)),
            keys_per_slot: std::mem::take(&mut self.keys_per_slot),
        }
    }
}
