//! New tiles: when they are added, how wide, how large.
//!
//! ```text
//! level 0   |8|  32 |  32 |   64   |     128      |     128      |     128      |     128      | …
//! ranges     0 8    40    72      136            264            392            520            648
//!            ╰───── uncovered: every lookup probes these ─────────╯╰── below level 1 ──────────────▶
//! level 1                                                          | 8 slots | 8 | 8 | 8 | 16 | 16 | 32 | 32 | …
//!                                                                  ╰── uncovered: 128 slots ──────────────────╯
//! level 1 from slot  128                256                512                1024               2048 …
//!   width            16                 32                 64                 128                128
//! level 2            a tile of 8        8                  8                  8                  16, 32, 64, 128 …
//! ```
//!
//! A small table has narrow tiles, since a tile has its full size from the start; REINDEX makes
//! wide ones. On level 1 a tile above eight tiles has about 80 pages, one above 128 about 1,300,
//! and each costs every lookup a page: with these widths an index of 1,000,000 to 6,000,000 rows
//! has 3.4 bytes per row on average and 3.8 at worst.
//!
//! A tile is sized by those columns of the one before it that look complete ([`complete_columns`]).
//! So the second tile corrects a wrong guess for the first one, and a change of the rows' width is
//! followed after 128 ranges. The first tile of a level above is sized for the sum of what is below
//! it, which is too much if keys are repeated between ranges.
//!
//! Example: an index that promises a rate of 0.00002 has three tiles, of 8, 32 and 32 slots, for
//! the ranges 0 to 71. Each of these has 400 keys. A row of range 72 is inserted:
//!
//! 1. A tile that begins with range 72 gets 64 slots. It ends before range 136, so it is one of
//!    those within the first 512 ranges that have no slot above. Level 0 alone must keep the rate,
//!    which takes 13 hashes.
//! 2. All 32 columns of the last tile look complete, with 400 keys each. So a column of the new
//!    tile is sized for 400 keys, and the tile gets 11 pages.
//! 3. Pages were allocated up to number 14. The new tile gets pages 15 to 25. It has another shape
//!    than the tile before it, and is a run of its own.
//!
//! When range 392 comes, a tile for it would end after range 512, so it needs a slot above. Level 1
//! gets its first tile, of 8 slots. The first of them is slot 6, for tile 6 of level 0, and each is
//! sized for the 128 · 400 keys of a tile below. From here on level 0 must only keep
//! 0.00002^0.575 = 0.002, which takes 8 hashes, and level 1 keeps the rest.

use super::directory::Directory;
use super::fill::Fill;
use super::meta::most_runs_of_metapage;
use super::rate::{self, SlotTarget, complete_columns};
use super::shape::{Level, MAX_WIDTH, TileShape, Width};
use super::tile::TileAddress;
use crate::error::{self, Error};
use crate::index::chain::{Growth, PageImage};
use crate::index::page::{Pages, RowId};
use crate::memory::List;

/// How many pages of the tile before are read at most to learn how many keys its columns have.
const PAGES_READ: u32 = 16;
/// A tile of level 1 that is appended has a slot in level 2, unless it ends within so many slots.
const ALWAYS_PROBED_SLOTS_OF_LEVEL_ONE: u64 = 128;
/// A tile of level 1 that has a slot in level 2 gets one slot for so many slots that level 1 has
/// already. So eight such tiles double the slots of the level.
const SLOTS_PER_NEW_SLOT: u64 = 8;

/// Pages of the table before that of a row that is added may get keys soon, unless they are farther
/// from it than this. PostgreSQL adds up to 512 pages at once where sessions wait for room, and
/// these sessions fill them in any order.
const PAGES_FILLED_TOGETHER: u32 = 1024;
/// Tiles for pages that are farther away have at most one page for so many pages of the table.
/// Tiles of a table with narrow rows and a key in each have about as many.
const SKIPPED_PAGES_PER_PAGE: u64 = 10;

/// Returns the width of a tile of level 0 that begins with this range.
fn width_of_level_zero(first_range: u64) -> Width {
    let columns = match first_range {
        0..8 => 8,
        8..72 => 32,
        72..136 => 64,
        _ => MAX_WIDTH.into(),
    };
    Width::holding(columns)
}

/// Returns how many filters the next tile of level 1 gets if it is one of the first tiles, which
/// have no filter of their own keys in level 2, so that every lookup probes them. The tiles before
/// it have `slots_before` filters together. Returns `None` if the tile would end after the first
/// [`ALWAYS_PROBED_SLOTS_OF_LEVEL_ONE`] filters: then it needs a filter in level 2.
fn width_of_always_probed_level_one(slots_before: u64) -> Option<Width> {
    let columns = if slots_before < 64 { slots_before / 4 + 8 } else { slots_before / 2 };
    let width = Width::within(columns);
    let end_slot = slots_before + u64::from(width.columns());
    (end_slot <= ALWAYS_PROBED_SLOTS_OF_LEVEL_ONE).then_some(width)
}

/// The shapes of new tiles.
struct NewTiles {
    /// The tiles of level 0, of which one or more are added.
    level_zero: TileShape,
    /// Whether the tiles of level 0 have slots in level 1.
    needs_slots_above: bool,
    /// A tile of level 1 and perhaps one of level 2, if the tiles of level 0 need slots above and
    /// no tile of level 1 has a free one.
    above: Option<NewTilesAbove>,
}

/// The shapes of new tiles above level 0.
struct NewTilesAbove {
    level_one: TileShape,
    /// A tile of level 2, if the tile of level 1 needs a slot and there is none free.
    level_two: Option<TileShape>,
}

/// What the next tile of level 0 has above it.
struct LevelsAbove {
    /// The highest level that will have bits of the keys of the tile: level 0 if it gets no slot
    /// above.
    highest_level: Level,
    /// The tiles that must be added to these levels first; `None` if none are needed.
    new_tiles: Option<NewTilesAbove>,
}

/// Where a new tile gets its *slot*: a Bloom filter with all keys of the tile, in a tile of the
/// level above. A lookup reads the tile only if this filter may have the key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotAbove {
    /// The tile gets none, since it is one of the first of its level. Every lookup reads it.
    NotNeeded,
    /// In the last tile of the level above, which has a free one.
    InLastTile,
    /// In a new tile of the level above: there is none yet, or the last one is full.
    InNewTile,
}

/// What the shape of the next tile of a level depends on.
struct NextTile<'k> {
    level: Level,
    width: Width,
    target: SlotTarget,
    /// The keys of some columns of the tile before it, by [`Directory::keys_in_last_tile`].
    seen_keys: &'k [f64],
    /// How many keys a column should have if none were seen.
    expected_keys: f64,
}

impl NewTiles {
    /// Makes the planned tiles small, since they are for pages of the table that hardly have rows:
    /// tiles of levels 0 and 1 get at most a tenth as many pages as the part of the table that they
    /// stand for. A range is `pages_per_range` pages of the table.
    fn make_small(&mut self, pages_per_range: u32) {
        let pages_per_range = u64::from(pages_per_range);
        // A tile of level 0 has a slot for each range, and a tile of level 1 has a slot for each
        // tile of level 0.
        limit_to_tenth(&mut self.level_zero, pages_per_range);
        if let Some(above) = &mut self.above {
            let pages_per_tile = u64::from(MAX_WIDTH) * pages_per_range;
            limit_to_tenth(&mut above.level_one, pages_per_tile);
        }
    }
}

/// Limits the pages of a tile to a tenth of the pages of the table that it stands for, but leaves
/// it at least one. Each slot of the tile stands for `table_pages_per_slot` pages of the table. For
/// example, a tile of 128 slots that stand for one page each gets at most 12 pages.
fn limit_to_tenth(tile: &mut TileShape, table_pages_per_slot: u64) {
    let table_pages = u64::from(tile.slots()) * table_pages_per_slot;
    let most_pages = (table_pages / SKIPPED_PAGES_PER_PAGE).max(1);
    tile.pages = u64::from(tile.pages).min(most_pages) as u32;
}

impl Directory {
    /// Adds tiles, so that rows of this range of the table can be indexed. A *tile* has the Bloom
    /// filters of up to 128 neighbouring ranges. Returns a copy of the directory (which says where
    /// tiles are) with new tiles behind the last one.
    ///
    /// One call may add fewer tiles than are missing. Call it again, on its result, until the range
    /// has a tile:
    ///
    /// - The first tiles are added one at a time, since each may be wider than the one before.
    ///   (If the index is *flat*, that is, never gets level 1, this holds for all tiles.)
    /// - Later tiles are equal, so several may be added at once. But each needs a *slot above*: a
    ///   filter with all of its keys, in a tile of level 1, by which lookups can skip the tile. If
    ///   20 tiles are missing and level 1 has 5 free slots, 5 are added. If level 1 has none, it
    ///   gets a new tile first.
    ///
    /// `seen_keys` returns the [`Directory::keys_in_last_tile`] of a level, by which new tiles are
    /// sized. The directory must be current, and the caller must hold the exclusive lock of the
    /// metapage.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges, or if
    /// `seen_keys` fails.
    pub fn grow<E: From<Error>>(
        &self,
        range: u32,
        mut seen_keys: impl FnMut(Level) -> Result<List<f64>, E>,
    ) -> Result<Growth<Directory>, E> {
        let new_tiles = self.plan_tiles(&mut seen_keys)?;

        let wanted_ranges = u64::from(range) + 1;
        let missing_ranges = wanted_ranges.saturating_sub(self.end_slot(Level::Zero));
        let missing_tiles = missing_ranges.div_ceil(new_tiles.level_zero.slots().into());

        // `with_tiles` adds fewer if level 1 has fewer free slots.
        let most_tiles = if new_tiles.needs_slots_above {
            // A tile is added even if the range has one already.
            missing_tiles.max(1)
        } else {
            1
        };
        Ok(self.with_tiles(most_tiles, new_tiles)?)
    }

    /// Adds small tiles for pages of the table that have been skipped: a row is to be added to page
    /// `row_page`, far behind all pages that have a tile. (A *tile* has the Bloom filters of up to
    /// 128 neighbouring ranges of the table.) Pages between them will hardly get rows, so tiles of
    /// full size, as [`Directory::grow`] makes, would waste space.
    ///
    /// Returns a copy of the directory with one or more small tiles, or `None` if too few pages are
    /// left for one. Call it again, on its result, until it returns `None`; then call `grow` for
    /// the range of the row.
    ///
    /// Example: ranges are single pages, and the pages before 12,936 have tiles. A row is to be
    /// added to page 142,000.
    ///
    /// ```text
    /// pages 12,936 to 140,935     1,000 small tiles of 128 pages each, by one call or several
    /// pages 140,936 to 140,975    fewer than a tile: left to grow
    /// pages 140,976 to 142,000    the row and the 1,024 pages before it: left to grow
    /// ```
    ///
    /// Each skipped page is in one range only, even if the pages before are split among several
    /// ranges each. `seen_keys`, the lock and errors are as for `grow`.
    pub fn grow_over_skipped<E: From<Error>>(
        &self,
        row_page: u32,
        mut seen_keys: impl FnMut(Level) -> Result<List<f64>, E>,
    ) -> Result<Option<Growth<Directory>>, E> {
        // A *whole* page is in one range only.
        let directory = self.with_new_pages_whole();
        let skipped_ranges = directory.skipped_ranges(row_page);
        if skipped_ranges == 0 {
            return Ok(None);
        }

        let mut new_tiles = directory.plan_tiles(&mut seen_keys)?;
        // Ranges at the end that don't fill a tile are left to `grow`.
        let skipped_tiles = skipped_ranges / u64::from(new_tiles.level_zero.slots());
        if skipped_tiles == 0 {
            return Ok(None);
        }
        new_tiles.make_small(directory.options.pages_per_range);

        // If the tile after the first one may be wider, the next call plans it anew.
        let most_tiles =
            if directory.later_tiles_are_equal(&new_tiles) { skipped_tiles } else { 1 };
        Ok(Some(directory.with_tiles(most_tiles, new_tiles)?))
    }

    /// Returns a copy of the directory in which each page of the table that has no tile yet is
    /// *whole*: it belongs to one range, even if pages before it are split among several ranges.
    fn with_new_pages_whole(&self) -> Directory {
        let mut directory = self.clone();
        let new_pages_are_split = self.options.split.is_some_and(|split| split.is_open());
        if new_pages_are_split {
            directory.make_new_pages_whole();
        }
        directory
    }

    /// Returns how many ranges of the table are *skipped* if a row is added to page `row_page`:
    /// those that have no tile yet, and are more than 1,024 pages before the row.
    fn skipped_ranges(&self, row_page: u32) -> u64 {
        // Pages near the row may get rows soon.
        let end_page = row_page.saturating_sub(PAGES_FILLED_TOGETHER);
        let end_range = self.options.range_of(RowId { page: end_page, line: 1 });
        u64::from(end_range).saturating_sub(self.end_slot(Level::Zero))
    }

    /// Returns whether all later tiles of level 0 would be planned as the one in `new_tiles`, so
    /// that several can be added by this plan. Otherwise a later tile may be wider, or may be the
    /// first one that needs a filter in level 1.
    fn later_tiles_are_equal(&self, new_tiles: &NewTiles) -> bool {
        if self.options.is_flat {
            // No tile ever needs a filter above, and tiles become wider up to the greatest width.
            new_tiles.level_zero.width == Width::MAX
        } else {
            // Only the first tiles, which become wider, need no filter above.
            new_tiles.needs_slots_above
        }
    }

    /// Plans the next tile of level 0, and the tiles of levels 1 and 2 that must be added with it.
    /// Returns their shapes: how many Bloom filters each has, and how many pages. Nothing is added
    /// yet.
    ///
    /// A tile of level 0 has the filters of neighbouring ranges of the table. Unless it is one of
    /// the first tiles, it also gets a *slot* in a tile of level 1: a filter of all of its keys.
    ///
    /// Example: the last tile ends with range 391, and its filters have 400 keys each. The new tile
    /// has filters of 128 ranges, up to 519. Only tiles that end before range 512 need no slot, so
    /// it needs one. Level 1 has no tile yet, so one is planned. Each of its filters gets room for
    /// 128 · 400 = 51,200 keys.
    ///
    /// `seen_keys` returns for a level how many keys each filter of its last tile has, and nothing
    /// if the level has no tile. Fails if `seen_keys` does.
    fn plan_tiles<E: From<Error>>(
        &self,
        seen_keys: &mut impl FnMut(Level) -> Result<List<f64>, E>,
    ) -> Result<NewTiles, E> {
        let first_range = self.end_slot(Level::Zero);
        let width = width_of_level_zero(first_range);
        let filters_per_range = self.options.columns_per_slot(Level::Zero, first_range);
        let end_range = first_range + u64::from(width.slots(filters_per_range));

        let is_among_first = end_range <= self.options.most_always_probed_slots(Level::Zero);
        let slot_above = self.slot_above_next_tile(Level::Zero, is_among_first);

        // Without a tile to learn from, the options say how many keys a range is expected to have.
        let seen_keys_of_zero = seen_keys(Level::Zero)?;
        let keys_per_filter = rate::mean(&seen_keys_of_zero).unwrap_or_else(|| {
            f64::from(self.options.keys_per_range) / f64::from(filters_per_range)
        });

        let keys_per_tile = keys_per_filter * f64::from(MAX_WIDTH);
        let above = self.plan_levels_above(slot_above, seen_keys, keys_per_tile)?;

        // A lookup of an absent key reads a range only if the filters of all levels report the key.
        // So level 0 may have a higher rate if the keys of the new tile are on higher levels, too.
        let target = self.options.target(Level::Zero, above.highest_level, first_range);
        let level_zero = self.shape_of_next(NextTile {
            level: Level::Zero,
            width,
            target,
            seen_keys: &seen_keys_of_zero,
            expected_keys: keys_per_filter,
        });
        let needs_slots_above = slot_above != SlotAbove::NotNeeded;
        Ok(NewTiles { level_zero, needs_slots_above, above: above.new_tiles })
    }

    /// Returns which levels above level 0 will have bits of the keys of the next tile of level 0,
    /// and plans the tiles that must be added to these levels first.
    ///
    /// `slot_above` says where the tile gets its *slot*, a filter of all of its keys on level 1.
    /// The slot is expected to have `keys_per_tile` keys. `seen_keys` is as for
    /// [`Directory::plan_tiles`]. Fails if it does.
    fn plan_levels_above<E: From<Error>>(
        &self,
        slot_above: SlotAbove,
        seen_keys: &mut impl FnMut(Level) -> Result<List<f64>, E>,
        keys_per_tile: f64,
    ) -> Result<LevelsAbove, E> {
        match slot_above {
            SlotAbove::NotNeeded => Ok(LevelsAbove { highest_level: Level::Zero, new_tiles: None }),
            SlotAbove::InLastTile => {
                // The slot exists already, and so does one on level 2 if it is needed.
                let next_tile = self.tile_count(Level::Zero);
                let highest_level = self.highest_level_of_tile(next_tile);
                Ok(LevelsAbove { highest_level, new_tiles: None })
            }
            SlotAbove::InNewTile => self.plan_tiles_above(seen_keys, keys_per_tile),
        }
    }

    /// Returns where the next tile of a level gets its slot. It gets none if it is among the first
    /// tiles of its level, and no tile before it has one. Tiles of level 2 never have one.
    fn slot_above_next_tile(&self, level: Level, is_among_first: bool) -> SlotAbove {
        let Some(level_above) = level.above() else {
            return SlotAbove::NotNeeded;
        };
        let some_tile_has_slot_above = self.first_with_slot_above[level].is_some();
        if is_among_first && !some_tile_has_slot_above {
            SlotAbove::NotNeeded
        } else if self.free_slots(level_above) > 0 {
            SlotAbove::InLastTile
        } else {
            SlotAbove::InNewTile
        }
    }

    /// Plans a tile of level 1, for a new tile of level 0 that needs a slot when no tile of level 1
    /// has a free one. Plans a tile of level 2, too, if the tile of level 1 needs a slot there and
    /// none is free. Returns their shapes, and the highest level that will have bits of the keys of
    /// the tile of level 0. Nothing is added yet.
    ///
    /// `keys_per_level_zero_tile` is how many keys a filter of the new tile is expected to have,
    /// which is all keys of one tile of level 0; a key counts once in every range that has it. If
    /// there is a tile of level 1 already, the new one is sized by the keys of that instead.
    ///
    /// `seen_keys` is as for [`Directory::plan_tiles`]. Fails if it does.
    fn plan_tiles_above<E: From<Error>>(
        &self,
        seen_keys: &mut impl FnMut(Level) -> Result<List<f64>, E>,
        keys_per_level_zero_tile: f64,
    ) -> Result<LevelsAbove, E> {
        let filters_before = self.filters_of_level_one();
        let is_among_first = width_of_always_probed_level_one(filters_before).is_some();
        let slot_above = self.slot_above_next_tile(Level::One, is_among_first);
        let highest_level = match slot_above {
            SlotAbove::NotNeeded => Level::One,
            SlotAbove::InLastTile | SlotAbove::InNewTile => Level::Two,
        };

        let width = self.width_of_next_level_one(filters_before);
        let last_range = self.last_range_below(u64::from(width.columns()));
        let seen_keys_of_one = seen_keys(Level::One)?;
        let level_one = self.shape_of_next(NextTile {
            level: Level::One,
            width,
            target: self.options.target(Level::One, highest_level, last_range),
            seen_keys: &seen_keys_of_one,
            expected_keys: keys_per_level_zero_tile,
        });

        let level_two = if slot_above == SlotAbove::InNewTile {
            let keys_per_filter = rate::mean(&seen_keys_of_one).unwrap_or(keys_per_level_zero_tile);
            let seen_keys_of_two = seen_keys(Level::Two)?;
            Some(self.plan_level_two(width, keys_per_filter, &seen_keys_of_two))
        } else {
            None
        };
        let new_tiles = Some(NewTilesAbove { level_one, level_two });
        Ok(LevelsAbove { highest_level, new_tiles })
    }

    /// Returns how many filters the tiles of level 1 have together, of which some may have no keys
    /// yet.
    fn filters_of_level_one(&self) -> u64 {
        self.end_slot(Level::One) - self.first_slot(Level::One)
    }

    /// Returns the last range of the table whose keys can ever be in a new tile of level 1 or 2.
    /// The tile is above `level_zero_tiles` tiles of level 0, which are still to come and have up
    /// to 128 ranges each.
    ///
    /// The new tile must keep the false positive rate that is promised for this range: the promised
    /// rate falls as the table grows, and a tile can't be enlarged later.
    fn last_range_below(&self, level_zero_tiles: u64) -> u64 {
        let most_ranges = level_zero_tiles * u64::from(MAX_WIDTH);
        self.end_slot(Level::Zero) + most_ranges - 1
    }

    /// Returns how many slots (Bloom filters) the next tile of level 1 gets. `slots_before` is how
    /// many slots level 1 has so far.
    ///
    /// - If the last tile of level 2 has a free slot, the tile gets that slot, and as many slots as
    ///   the other tiles below that tile of level 2: its filters all have one size, so each should
    ///   have the keys of equally many tiles of level 0.
    /// - If the tile is one of the first, which have no slot in level 2, its width follows the
    ///   steps of [`width_of_always_probed_level_one`].
    /// - Otherwise it is about an eighth of the slots that level 1 has, so that a larger table gets
    ///   larger tiles, and a new tile is never much of the index.
    fn width_of_next_level_one(&self, slots_before: u64) -> Width {
        if self.free_slots(Level::Two) > 0
            && let Some(width_of_siblings) = self.width_below_last_of_level_two()
        {
            return width_of_siblings;
        }
        width_of_always_probed_level_one(slots_before)
            .unwrap_or_else(|| Width::within(slots_before / SLOTS_PER_NEW_SLOT))
    }

    /// Plans the next tile of level 2: returns how many Bloom filters it has, and how many pages.
    /// Each filter will have all keys of one tile of level 1. These tiles are still to come, and
    /// will have `width_below` filters each, of about `keys_per_filter_below` keys. Each of their
    /// filters in turn will have all keys of one tile of level 0. `seen_keys_of_two` says how many
    /// keys each filter of the last tile of level 2 has; it is empty if there is none.
    ///
    /// Example: level 1 has 1,024 filters now. Its next tiles have 128 filters, of 50,000 keys
    /// each.
    ///
    /// 1. The tile gets a filter for each tile of level 1 that is needed to double that level:
    ///    1,024 / 128 = 8 filters.
    /// 2. It will have the keys of 8 · 128 = 1,024 tiles of level 0. It must keep the false
    ///    positive rate that is promised for the last range of the table in these.
    /// 3. The filters of the last tile of level 2 have 3,000,000 keys each. Each of them is for a
    ///    tile of only 64 filters, so a new filter gets room for twice as many keys: 6,000,000.
    ///    Without a tile of level 2 it would get room for 128 · 50,000 = 6,400,000 keys.
    fn plan_level_two(
        &self,
        width_below: Width,
        keys_per_filter_below: f64,
        seen_keys_of_two: &[f64],
    ) -> TileShape {
        // A tile has its full size from the start, so it must not be too large for the index. If it
        // doubles the level below, few tiles of level 2 are ever needed.
        let filters_per_tile_below = width_below.columns();
        let new_tiles_below = self.filters_of_level_one() / u64::from(filters_per_tile_below);
        let width = Width::within(new_tiles_below);

        let level_zero_tiles = u64::from(width.columns()) * u64::from(filters_per_tile_below);
        let last_range = self.last_range_below(level_zero_tiles);
        let highest_level = Level::Two;
        let target = self.options.target(Level::Two, highest_level, last_range);

        let last_width_below = self.width_below_last_of_level_two().unwrap_or(width_below);
        let times_as_many_keys =
            f64::from(filters_per_tile_below) / f64::from(last_width_below.columns());
        let likely_keys: List<f64> = seen_keys_of_two
            .iter()
            .map(|keys| keys * times_as_many_keys)
            .collect();

        self.shape_of_next(NextTile {
            level: Level::Two,
            width,
            target,
            seen_keys: &likely_keys,
            expected_keys: keys_per_filter_below * f64::from(filters_per_tile_below),
        })
    }

    /// Returns the width of the tiles of level 1 that are the slots of the last tile of level 2;
    /// `None` if there is no level 2.
    fn width_below_last_of_level_two(&self) -> Option<Width> {
        let last = self.last_tile(Level::Two)?;
        let first_below = self.tile(Level::One, last.first_slot)?;
        Some(first_below.shape.width)
    }

    /// Returns a copy of the directory, which says where the tiles of the index are, with new tiles
    /// of the shapes in `new_tiles`: first those of levels 2 and 1, if any, and then up to
    /// `most_tiles` tiles of level 0. `most_tiles` must be at least 1.
    ///
    /// A *tile* has up to 128 *slots*, the places of its Bloom filters. Each tile of level 0,
    /// except for the first ones of the index, needs a slot in level 1: a filter of all keys of the
    /// tile. So no more are added than level 1 has free slots. For example, if 20 tiles are wanted,
    /// and level 1 has just got a new tile of 8 slots, 8 are added.
    ///
    /// The result may have a directory page, which the caller must write: see
    /// [`Directory::make_room_for_records`].
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges.
    fn with_tiles(&self, most_tiles: u64, new_tiles: NewTiles) -> error::Result<Growth<Directory>> {
        let mut grown = self.clone();
        grown.chain.change_generation();
        let directory_page = grown.make_room_for_records()?;

        // Levels 2 and 1 come first, since the tiles of level 0 take slots of level 1.
        if new_tiles.needs_slots_above {
            grown.begin_slots_above(Level::Zero);
        }
        if let Some(above) = new_tiles.above {
            grown.add_tiles_above(above)?;
        }

        let tiles = if new_tiles.needs_slots_above {
            // At least one is free: the last tile of level 1 had one, or the tile was just added.
            most_tiles.min(grown.free_slots(Level::One))
        } else {
            most_tiles
        };
        grown.add_tiles(new_tiles.level_zero, tiles as u32)?;
        Ok(Growth { directory: grown, page: directory_page })
    }

    /// Makes room in the metapage for the records of new tiles. A record is for a *run*, which is
    /// neighbouring tiles of one shape, so the new tiles need at most one record on each level.
    ///
    /// If the metapage may lack room for these, all records that it has move to a new directory
    /// page. Returns that page, which the caller must write, or else `None`.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages.
    fn make_room_for_records(&mut self) -> error::Result<Option<PageImage>> {
        let most_records = self.runs_of_metapage().len() + Level::ALL.len();
        if most_records <= most_runs_of_metapage(self.options.size) {
            return Ok(None);
        }
        let directory_page = self.move_runs_to_page()?;
        Ok(Some(directory_page))
    }

    /// Adds a tile of level 1, and one of level 2 if `above` has its shape. Then the tile of level
    /// 1 has a slot in that of level 2.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges.
    fn add_tiles_above(&mut self, above: NewTilesAbove) -> error::Result<()> {
        if let Some(level_two) = above.level_two {
            self.begin_slots_above(Level::One);
            self.add_tiles(level_two, 1)?;
        }
        self.add_tiles(above.level_one, 1)
    }

    /// Notes that the tiles of a level that are added from now on have slots in the level above.
    /// Does nothing if earlier tiles already have some.
    fn begin_slots_above(&mut self, level: Level) {
        let next_tile = self.tile_count(level);
        self.first_with_slot_above[level].get_or_insert(next_tile);
    }

    /// Returns how many slots a level has for tiles of the level below that are still to come.
    fn free_slots(&self, level: Level) -> u64 {
        match level.below() {
            Some(below) => {
                let next_tile = u64::from(self.tile_count(below));
                self.end_slot(level).saturating_sub(next_tile)
            }
            None => 0,
        }
    }

    /// Returns how many keys each Bloom filter of a level's next tile should have room for, by the
    /// last tile of the level. (A tile has up to 128 filters side by side, its *columns*.) The list
    /// is empty if the level has no tile, or only filters that look incomplete.
    ///
    /// A new column is expected to have as many keys as the last ones. So the list has the number
    /// of keys of each column of the last tile, estimated from its bits. Columns that look
    /// incomplete, since their ranges of the table are still being filled, are left out.
    ///
    /// On level 0, the next pages of the table may have more or fewer columns than those before
    /// them: whether a page is split among several ranges can change with each tile. Then the list
    /// has one number, an average. For example, if a page with 600 keys had one column, and the
    /// next pages have 20, the number is 600 / 20 = 30.
    ///
    /// Locks the pages of the tile that it reads, one at a time. The caller may hold the lock of
    /// the metapage, but no lock of a page of a tile.
    ///
    /// Fails with [`Damage`](super::Damage) if a page is not one of the tile, or if it can't be
    /// read.
    pub fn keys_in_last_tile<P: Pages>(
        &self,
        pages: &mut P,
        level: Level,
    ) -> Result<List<f64>, P::Error> {
        let Some(last_tile) = self.last_tile(level) else {
            return Ok(List::new());
        };
        let keys_per_column = Fill::read(pages, &last_tile, PAGES_READ)?.keys_per_column;

        // A column of level 1 or 2 has the keys of a whole tile, however pages are split.
        if level != Level::Zero || self.next_pages_are_split_as_in(&last_tile) {
            return Ok(complete_columns(&keys_per_column));
        }
        let keys_of_tile = keys_per_column.iter().sum();
        let columns_per_page = self.columns_per_next_page();
        let keys_per_next_column =
            self.keys_per_column_if_split(&last_tile, keys_of_tile, columns_per_page);
        Ok(List::from([keys_per_next_column]))
    }

    /// Returns whether pages of the table will have as many columns (Bloom filters) in the next
    /// tile of level 0 as they have in `last_tile`, the last one. The number changes where pages
    /// begin or cease to be split among several ranges.
    fn next_pages_are_split_as_in(&self, last_tile: &TileAddress) -> bool {
        let first_range = last_tile.first_slot.into();
        let columns_per_page = self.columns_per_page(first_range, last_tile.shape.columns_per_slot);
        // May be compared exactly: equal numbers were computed in one way from whole numbers.
        columns_per_page == self.columns_per_next_page()
    }

    /// Returns how many columns (Bloom filters) a page of the table will have in the next tile of
    /// level 0: a fraction if a range has several pages.
    fn columns_per_next_page(&self) -> f64 {
        let next_range = self.end_slot(Level::Zero);
        let columns_per_range = self.options.columns_per_slot(Level::Zero, next_range);
        self.columns_per_page(next_range, columns_per_range)
    }

    /// Returns how many columns (Bloom filters) of level 0 there are for each page of the table
    /// around a range, if a range has `columns_per_range` of them.
    fn columns_per_page(&self, range: u64, columns_per_range: u8) -> f64 {
        self.options.ranges_per_page(range) * f64::from(columns_per_range)
    }

    /// Returns how many keys a column (Bloom filter) of the next tile of level 0 will have, if a
    /// page of the table goes on to have as many keys as in the last tile, but spread over
    /// `columns_per_page` columns: where the next tile begins, pages begin or cease to be split
    /// among several ranges. `last_tile` has `keys_of_tile` keys in all of its columns together.
    ///
    /// For example, the last tile stands for 128 whole pages, and has 76,800 keys: 600 for each
    /// page. If the next pages are split among 10 ranges, with two columns for each, a column gets
    /// 600 / 20 = 30 keys.
    fn keys_per_column_if_split(
        &self,
        last_tile: &TileAddress,
        keys_of_tile: f64,
        columns_per_page: f64,
    ) -> f64 {
        let first_range = last_tile.first_slot;
        let last_range = first_range.saturating_add(last_tile.shape.slots() - 1);
        let first_page = self.options.pages_of(first_range).start;
        let end_page = self.options.pages_of(last_range).end;
        let keys_per_page = keys_of_tile / (end_page - first_page) as f64;
        keys_per_page / columns_per_page
    }

    /// Returns which share of the columns of level 0's last tile has keys, by some of its pages; 0
    /// if there is no tile.
    ///
    /// Fails with [`Damage`](super::Damage) if a page is not one of the tile, or if it can't be
    /// read.
    pub fn used_share<P: Pages>(&self, pages: &mut P) -> Result<f64, P::Error> {
        let Some(tile) = self.last_tile(Level::Zero) else {
            return Ok(0.0);
        };
        let keys_per_column = Fill::read(pages, &tile, PAGES_READ)?.keys_per_column;
        let used = keys_per_column.iter().filter(|&&keys| keys > 0.0).count();
        Ok(used as f64 / keys_per_column.len() as f64)
    }

    /// Returns the shape of the next tile of a level. Its width (number of columns, each of which
    /// is a Bloom filter) and its false positive rate are given; how many pages it gets is decided
    /// here:
    ///
    /// - those that it needs for as many keys in a column as the last tile of the level has
    ///   (`seen_keys`);
    /// - if that is not known, as many as the last tile, if this has the same width and number of
    ///   hashes;
    /// - otherwise those that it needs for `expected_keys` in each column.
    fn shape_of_next(&self, next: NextTile<'_>) -> TileShape {
        let NextTile { level, width, target, seen_keys, expected_keys } = next;
        if !seen_keys.is_empty() {
            return self.shape_for(level, width, target, seen_keys);
        }
        match self.last_tile(level).map(|tile| tile.shape) {
            Some(last) if last.width == width && last.num_hashes == target.num_hashes => last,
            _ => self.shape_for(level, width, target, &[expected_keys.max(1.0)]),
        }
    }

    /// Returns the shape of the next tile of a level: how many pages it needs. The tile has `width`
    /// columns, each of which is a Bloom filter. `keys_per_column` says how many keys the filters
    /// have; it may have fewer numbers than the tile has columns, and the others are taken to be
    /// like these. The tile gets the fewest pages with which the mean false positive rate of these
    /// filters is at most `target.fpr`.
    ///
    /// If the last tile of the level has a few pages more, and is otherwise equal, its shape is
    /// returned instead, since neighbouring tiles of one shape are stored as one record.
    pub(super) fn shape_for(
        &self,
        level: Level,
        width: Width,
        target: SlotTarget,
        keys_per_column: &[f64],
    ) -> TileShape {
        let shape_without_pages = TileShape {
            level,
            width,
            columns_per_slot: self.options.columns_per_slot(level, self.end_slot(level)),
            num_hashes: target.num_hashes,
            pages: 0, // replaced by sized_for
            size: self.options.size,
        };
        let smallest = rate::sized_for(shape_without_pages, target, keys_per_column);
        let Some(last) = self.last_tile(level).map(|tile| tile.shape) else {
            return smallest;
        };
        let differs_in_pages_only = TileShape { pages: smallest.pages, ..last } == smallest;
        if differs_in_pages_only && rate::may_keep_pages(last.pages, smallest.pages) {
            last
        } else {
            smallest
        }
    }
}
