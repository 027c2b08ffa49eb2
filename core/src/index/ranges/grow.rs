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
use crate::index::chain::Growth;
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
    /// The highest level that has bits of the keys of these tiles.
    highest_level: Level,
}

/// Where a new tile gets its *slot*: a Bloom filter with all keys of the tile, in a tile of the level
/// above. A lookup reads the tile only if this filter may have the key.
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

/// Limits the pages of a tile to a tenth of the pages of the table that it stands for, but leaves
/// it one page at least. Rows have skipped these pages of the table, and each slot of the tile
/// stands for `skipped_pages_per_slot` of them. For example, a tile of 128 slots that stand for one
/// page each gets at most 12 pages.
fn limit_to_tenth_of_skipped(tile: &mut TileShape, skipped_pages_per_slot: u64) {
    let table_pages = u64::from(tile.slots()) * skipped_pages_per_slot;
    let most_pages = (table_pages / SKIPPED_PAGES_PER_PAGE).max(1);
    tile.pages = u64::from(tile.pages).min(most_pages) as u32;
}

impl Directory {
    /// Adds tiles, which have the filters of neighbouring ranges of the table, so that new rows can
    /// be indexed: returns a copy of the directory with tiles for the ranges up to this one. As a
    /// tile may need a slot in level 1, fewer tiles are added if level 1 has fewer free slots; call
    /// it again until the range has a tile.
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
        let missing_ranges = (u64::from(range) + 1).saturating_sub(self.end_slot(Level::Zero));
        let tiles = if new_tiles.needs_slots_above {
            missing_ranges.div_ceil(new_tiles.level_zero.slots().into())
        } else {
            // Tiles differ in width until they have slots above, so the next one is planned anew.
            1
        };
        Ok(self.with_tiles(tiles, new_tiles)?)
    }

    /// Adds small tiles for pages of the table that rows have skipped. A row is to be added to page
    /// `row_page` of the table, far behind the pages that the index has filters for. The pages
    /// between them will hardly get keys, so [`Directory::grow`] would spend tiles of full size on
    /// them for nothing. (A *tile* has the filters of up to 128 neighbouring ranges of the table.)
    ///
    /// Returns a copy of the directory with the small tiles, or `None` if fewer pages were skipped
    /// than one tile stands for. Call it until it returns `None`, as one call may add only some of
    /// the tiles. Then [`Directory::grow`] adds the tile of the row.
    ///
    /// A small tile has at most a tenth as many pages as it stands for. The skipped pages are one
    /// range each, even if the pages before them are split among several ranges.
    ///
    /// ```text
    /// pages of the table    |  with tiles  |  skipped: whole, small tiles  |  1,024 pages  | row
    /// ```
    ///
    /// `seen_keys`, the lock and errors are as for [`Directory::grow`].
    pub fn grow_over_skipped<E: From<Error>>(
        &self,
        row_page: u32,
        mut seen_keys: impl FnMut(Level) -> Result<List<f64>, E>,
    ) -> Result<Option<Growth<Directory>>, E> {
        let mut grown = self.clone();
        if self.options.split.is_some_and(|split| split.is_open()) {
            grown.make_new_pages_whole();
        }

        // Pages near the row may get rows soon, so they aren't skipped.
        let end_page = row_page.saturating_sub(PAGES_FILLED_TOGETHER);
        let end_range = grown.options.range_of(RowId { page: end_page, line: 1 });
        let skipped_ranges = u64::from(end_range).saturating_sub(self.end_slot(Level::Zero));
        if skipped_ranges == 0 {
            return Ok(None);
        }

        let mut new_tiles = grown.plan_tiles(&mut seen_keys)?;
        let skipped_tiles = skipped_ranges / u64::from(new_tiles.level_zero.slots());
        if skipped_tiles == 0 {
            return Ok(None);
        }

        // A slot of level 0 is a range; a slot of level 1 is a tile of up to 128 ranges.
        let pages_per_range = u64::from(grown.options.pages_per_range);
        limit_to_tenth_of_skipped(&mut new_tiles.level_zero, pages_per_range);
        if let Some(above) = &mut new_tiles.above {
            let pages_per_tile = pages_per_range * u64::from(MAX_WIDTH);
            limit_to_tenth_of_skipped(&mut above.level_one, pages_per_tile);
        }

        // Several tiles are added at once if each would be planned like the first one.
        let tiles = if self.has_last_plan(&new_tiles) { skipped_tiles } else { 1 };
        Ok(Some(grown.with_tiles(tiles, new_tiles)?))
    }

    /// Returns whether all later tiles of level 0 would be planned as the one in `new_tiles`, so
    /// that several can be added by this plan. Otherwise a later tile may be wider, or may be the
    /// first one that needs a filter in level 1.
    fn has_last_plan(&self, new_tiles: &NewTiles) -> bool {
        if self.options.is_flat {
            // No tile ever needs a filter above, and tiles become wider up to the greatest width.
            new_tiles.level_zero.width == Width::MAX
        } else {
            // Only the first tiles, which become wider, need no filter above.
            new_tiles.needs_slots_above
        }
    }

    /// Plans the next tile of level 0, which has the Bloom filters of neighbouring ranges of the
    /// table, and a tile of level 1, and of level 2, if it needs them. Returns their shapes. Nothing
    /// is added yet.
    ///
    /// The new tile gets a slot in level 1, unless it is one of the first: [`SlotAbove`] says where.
    /// If the slot is in a new tile of level 1, that one may need a slot in level 2 in turn.
    ///
    /// `seen_keys` returns for a level how many keys each filter of its last tile has, and nothing
    /// if the level has no tile. New tiles are sized by these.
    ///
    /// Fails if `seen_keys` does.
    fn plan_tiles<E: From<Error>>(
        &self,
        seen_keys: &mut impl FnMut(Level) -> Result<List<f64>, E>,
    ) -> Result<NewTiles, E> {
        let first_range = self.end_slot(Level::Zero);
        let width = width_of_level_zero(first_range);
        let filters_per_range = self.options.columns_per_slot(Level::Zero, first_range);
        let end_range = first_range + u64::from(width.slots(filters_per_range));

        // Without a tile to learn from, the options say how many keys a range is expected to have.
        let seen_keys_of_zero = seen_keys(Level::Zero)?;
        let keys_per_filter = rate::mean(&seen_keys_of_zero).unwrap_or_else(|| {
            f64::from(self.options.keys_per_range) / f64::from(filters_per_range)
        });

        let is_among_first = end_range <= self.options.most_always_probed_slots(Level::Zero);
        let slot_above = self.slot_above_next_tile(Level::Zero, is_among_first);

        // A lookup of an absent key reads a range only if the filters of all levels report the key.
        // So level 0 may have a higher rate if the keys of the new tile are on higher levels, too.
        let (highest_level, above) = match slot_above {
            SlotAbove::NotNeeded => (Level::Zero, None),
            SlotAbove::InLastTile => {
                let next_tile = self.tile_count(Level::Zero);
                (self.highest_level_of_tile(next_tile), None)
            }
            SlotAbove::InNewTile => {
                let keys_per_tile = keys_per_filter * f64::from(MAX_WIDTH);
                let new_tiles_above = self.plan_tiles_above(seen_keys, keys_per_tile)?;
                (new_tiles_above.highest_level, Some(new_tiles_above))
            }
        };

        let level_zero = self.shape_of_next(NextTile {
            level: Level::Zero,
            width,
            target: self.options.target(Level::Zero, highest_level, first_range),
            seen_keys: &seen_keys_of_zero,
            expected_keys: keys_per_filter,
        });
        let needs_slots_above = slot_above != SlotAbove::NotNeeded;
        Ok(NewTiles { level_zero, needs_slots_above, above })
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
    /// none is free. Returns their shapes. Nothing is added yet.
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
    ) -> Result<NewTilesAbove, E> {
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
            Some(self.plan_level_two(seen_keys, width, keys_per_filter)?)
        } else {
            None
        };
        Ok(NewTilesAbove { level_one, level_two, highest_level })
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

    /// Plans the next tile of level 2: returns its shape, which is how many Bloom filters it has
    /// and how many pages they need.
    ///
    /// A filter of level 2 has all keys of one tile of level 1. So the shape depends on the tiles
    /// of level 1 that are still to come, and will be below the new tile: each of them will have
    /// `width_below` filters, with about `keys_per_filter_below` keys in each. (A filter of level 1
    /// in turn has all keys of one tile of level 0.)
    ///
    /// `seen_keys` returns how many keys each filter of a level's last tile has. If there is a tile
    /// of level 2, the new one is sized by what it has, and otherwise by what is expected of the
    /// tiles below.
    ///
    /// Fails if `seen_keys` does.
    fn plan_level_two<E: From<Error>>(
        &self,
        seen_keys: &mut impl FnMut(Level) -> Result<List<f64>, E>,
        width_below: Width,
        keys_per_filter_below: f64,
    ) -> Result<TileShape, E> {
        // The new tile has its full size from the start, so it must fit the size of the index. It
        // is made for tiles of level 1 that double that level: then few tiles of level 2 are ever
        // needed.
        let filters_per_tile_below = width_below.columns();
        let new_tiles_below = self.filters_of_level_one() / u64::from(filters_per_tile_below);
        let width = Width::within(new_tiles_below);

        // The new tiles of level 1 may be wider than those below the last tile of level 2. If these
        // have 32 filters and the new ones 128, a filter of the new tile gets four times the keys
        // that were seen.
        let keys_ratio = match self.width_below_last_of_level_two() {
            Some(width_before) => {
                f64::from(filters_per_tile_below) / f64::from(width_before.columns())
            }
            None => 1.0,
        };
        let mut keys_per_filter = seen_keys(Level::Two)?;
        for keys in &mut keys_per_filter {
            *keys *= keys_ratio;
        }

        let level_zero_tiles = u64::from(width.columns()) * u64::from(filters_per_tile_below);
        let last_range = self.last_range_below(level_zero_tiles);
        Ok(self.shape_of_next(NextTile {
            level: Level::Two,
            width,
            target: self.options.target(Level::Two, Level::Two, last_range),
            seen_keys: &keys_per_filter,
            expected_keys: keys_per_filter_below * f64::from(filters_per_tile_below),
        }))
    }

    /// Returns the width of the tiles of level 1 that are the slots of the last tile of level 2;
    /// `None` if there is no level 2.
    fn width_below_last_of_level_two(&self) -> Option<Width> {
        let last = self.last_tile(Level::Two)?;
        let first_below = self.tile(Level::One, last.first_slot)?;
        Some(first_below.shape.width)
    }

    /// Returns a copy of the directory, which says where the tiles of the index are, with new
    /// tiles: those of levels 1 and 2 that are in `new_tiles`, and then up to `most_tiles` tiles of
    /// level 0, but at least one.
    ///
    /// If tiles of level 0 need a *slot* in level 1 (the place of a filter with all keys of the
    /// tile), only as many are added as level 1 has free slots.
    ///
    /// The metapage stores a record for neighbouring tiles of one shape. If it may lack room for
    /// the records of the new tiles, those that it has move to a new directory page. That page is
    /// part of the result, and the caller must write it.
    ///
    /// Fails with [`crate::Class::TooLarge`] if too few numbers are left for pages or ranges.
    fn with_tiles(&self, most_tiles: u64, new_tiles: NewTiles) -> error::Result<Growth<Directory>> {
        let mut grown = self.clone();
        grown.chain.change_generation();

        // Each level may need one more record.
        let most_records = self.runs_of_metapage().len() + Level::ALL.len();
        let has_room = most_records <= most_runs_of_metapage(self.options.size);
        let directory_page = if has_room { None } else { Some(grown.move_runs_to_page()?) };

        if new_tiles.needs_slots_above {
            grown.begin_slots_above(Level::Zero);
        }
        // The highest level comes first, since tiles take slots of the new tiles above them.
        if let Some(above) = new_tiles.above {
            if let Some(level_two) = above.level_two {
                grown.begin_slots_above(Level::One);
                grown.add_tiles(level_two, 1)?;
            }
            grown.add_tiles(above.level_one, 1)?;
        }

        let tiles_with_room = if new_tiles.needs_slots_above {
            grown.free_slots(Level::One)
        } else {
            u64::MAX
        };
        let tiles = most_tiles.min(tiles_with_room).max(1);
        grown.add_tiles(new_tiles.level_zero, tiles as u32)?;
        Ok(Growth { directory: grown, page: directory_page })
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

    /// Returns how many keys each Bloom filter of a level's next tile should have room for, as
    /// estimated from the bits of the last tile of the level. (A tile has up to 128 filters side by
    /// side, its *columns*.) [`Directory::grow`] sizes the next tile by these numbers. The list is
    /// empty if the level has no tile, or only filters that look incomplete.
    ///
    /// - Usually the next filters are expected to have as many keys as those of the last tile. The
    ///   list has a number for each of these, except for those that don't look complete: their
    ///   ranges of the table are still being filled.
    /// - But from some page on, pages of the table may begin or cease to be split among several
    ///   ranges. If the next tile begins there, each of its filters has the keys of a larger or
    ///   smaller part of a page than before. Then the list has one number, an average: see
    ///   [`Directory::keys_per_column_if_split`].
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
        if level != Level::Zero {
            // A filter of level 1 or 2 has the keys of a whole tile, however pages are split.
            return Ok(complete_columns(&keys_per_column));
        }

        let columns_per_page =
            self.columns_per_page(last_tile.first_slot.into(), last_tile.shape.columns_per_slot);
        let next_range = self.end_slot(Level::Zero);
        let next_columns_per_page = self
            .columns_per_page(next_range, self.options.columns_per_slot(Level::Zero, next_range));
        // Both are computed alike from whole numbers, so they are equal to the last bit if pages
        // are split as before.
        let pages_are_split_as_before = columns_per_page == next_columns_per_page;
        if pages_are_split_as_before {
            Ok(complete_columns(&keys_per_column))
        } else {
            let keys_of_tile = keys_per_column.iter().sum();
            let keys_per_next_column =
                self.keys_per_column_if_split(&last_tile, keys_of_tile, next_columns_per_page);
            Ok(List::from([keys_per_next_column]))
        }
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
