//! New tiles: when they are added, how wide, how large.
//!
//! ```text
//! level 0   |8|  32 |  32 |   64   |     128      |     128      |     128      |     128      | …
//! ranges     0 8    40    72      136            264            392            520            648
//!            ╰───── alone: every lookup probes these ─────────────╯╰── below level 1 ──────────────▶
//! level 1                                                          | 8 slots | 8 | 8 | 8 | 16 | 16 | 32 | 32 | …
//!                                                                  ╰── alone: 128 slots ──────────────────────╯
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
//! A tile is sized by those columns of the one before it that look complete ([`typical`]). So the
//! second tile corrects a wrong guess for the first one, and a change of the rows' width is
//! followed after 128 ranges. The first tile of a level above is sized for the sum of what is below
//! it, which is too much if keys are repeated between ranges.

use super::directory::Directory;
use super::fill::Fill;
use super::meta::most_open_runs;
use super::rate::{self, Target, typical};
use super::shape::{Level, MAX_WIDTH, TileShape, Width};
use crate::error::{self, Error};
use crate::index::chain::Growth;
use crate::index::page::Pages;

/// Pages of the tile before that are read to learn from.
const PAGES_READ: u32 = 16;
/// A tile of level 1 that is appended has a slot in level 2, unless it ends within so many slots.
const SLOTS_ALONE: u64 = 128;
/// The slots of the tiles that are there for each slot of the next tile of level 1 that has one in
/// level 2.
const SLOTS_PER_SLOT: u64 = 8;

/// The width of a tile of level 0 that begins with this range.
fn next_width(first_range: u64) -> Width {
    Width::holding(match first_range {
        0..8 => 8,
        8..72 => 32,
        72..136 => 64,
        _ => MAX_WIDTH.into(),
    })
}

/// The width of a tile of level 1 that follows others with this number of slots, and whether it has
/// a slot in level 2.
fn next_width_above(slots: u64) -> (Width, bool) {
    let alone = Width::within(if slots < 64 { slots / 4 + 8 } else { slots / 2 });
    let is_covered = slots + u64::from(alone.columns()) > SLOTS_ALONE;
    (if is_covered { Width::within(slots / SLOTS_PER_SLOT) } else { alone }, is_covered)
}

impl Directory {
    /// Adds tiles for ranges up to this one, or as many as level 1 has slots for, given the
    /// [`Directory::last_loads`] of a level. Call it again until the range has a tile. The
    /// directory must be current, under the exclusive lock of the metapage. Errors:
    /// [`crate::Class::TooLarge`] if there are too few numbers left for pages or ranges; those of
    /// `loads`.
    pub fn grow<E: From<Error>>(
        &self,
        range: u32,
        mut loads: impl FnMut(Level) -> Result<Vec<f64>, E>,
    ) -> Result<Growth<Directory>, E> {
        let start = self.end_slot(Level::Zero);
        let width = next_width(start);
        let columns_per_slot = self.options.columns_per_slot(Level::Zero, start);
        let is_covered = self.covered_from[Level::Zero as usize].is_some()
            || start + u64::from(width.slots(columns_per_slot))
                > self.options.slots_alone(Level::Zero);
        let seen = loads(Level::Zero)?;
        let guess = rate::mean(&seen)
            .unwrap_or(f64::from(self.options.guess) / f64::from(columns_per_slot));
        let (top, above) = if !is_covered {
            (Level::Zero, [None; 2])
        } else if self.free_slots(Level::One) > 0 {
            (self.top(self.tiles(Level::Zero)), [None; 2])
        } else {
            self.grow_above(&mut loads, guess * f64::from(MAX_WIDTH))?
        };
        let lower = self.next_shape(
            Level::Zero,
            width,
            self.options.target(Level::Zero, top, start),
            &seen,
            guess,
        );
        Ok(self.grown(range, is_covered, lower, above)?)
    }

    /// The highest level, a tile of level 1 whose slots should have `guess` elements, and one of
    /// level 2 if it needs that.
    fn grow_above<E: From<Error>>(
        &self,
        loads: &mut impl FnMut(Level) -> Result<Vec<f64>, E>,
        guess: f64,
    ) -> Result<(Level, [Option<TileShape>; 2]), E> {
        let start = self.end_slot(Level::Zero);
        let slots = self.end_slot(Level::One) - self.first_slot(Level::One);
        let (mut width, mut is_covered) = next_width_above(slots);
        is_covered |= self.covered_from[Level::One as usize].is_some();
        let top = if is_covered { Level::Two } else { Level::One };
        let last = self.last_tile(Level::Two);
        // The slots of a tile of level 2 are for tiles of one width.
        let of_last = last
            .and_then(|last| self.tile(Level::One, last.first_slot))
            .map(|tile| tile.shape.width);
        if let Some(of_last) = of_last.filter(|_| self.free_slots(Level::Two) > 0) {
            width = of_last;
        }
        let end = start + u64::from(width.columns() * MAX_WIDTH) - 1;
        let seen = loads(Level::One)?;
        let one = self.next_shape(
            Level::One,
            width,
            self.options.target(Level::One, top, end),
            &seen,
            guess,
        );
        if !is_covered || self.free_slots(Level::Two) > 0 {
            return Ok((top, [Some(one), None]));
        }
        let tiles = f64::from(width.columns());
        let guess = rate::mean(&seen).unwrap_or(guess) * tiles;
        let ratio = of_last.map_or(1.0, |before| tiles / f64::from(before.columns()));
        let seen: Vec<f64> = loads(Level::Two)?.iter().map(|load| load * ratio).collect();
        let above = Width::within(slots / u64::from(width.columns()));
        let end = start + u64::from(above.columns() * width.columns()) * u64::from(MAX_WIDTH) - 1;
        let two = self.next_shape(
            Level::Two,
            above,
            self.options.target(Level::Two, top, end),
            &seen,
            guess,
        );
        Ok((top, [Some(one), Some(two)]))
    }

    /// This directory with new tiles above, if there are any, and as many tiles of level 0 as are
    /// needed and possible.
    fn grown(
        &self,
        range: u32,
        is_covered: bool,
        lower: TileShape,
        [one, two]: [Option<TileShape>; 2],
    ) -> error::Result<Growth<Directory>> {
        let mut directory = self.clone();
        directory.chain.generation = self.chain.generation.wrapping_add(1);
        let is_full = self.open_runs().len() + Level::ALL.len() > most_open_runs(self.options.size);
        let page = if is_full { Some(directory.close()?) } else { None };
        for (level, is_covered) in [(Level::One, two.is_some()), (Level::Zero, is_covered)] {
            if is_covered {
                directory.covered_from[level as usize].get_or_insert(self.tiles(level));
            }
        }
        for shape in [two, one].into_iter().flatten() {
            directory.push(shape, 1)?;
        }
        let missing = (u64::from(range) + 1).saturating_sub(self.end_slot(Level::Zero));
        // Only tiles of full width are added several at once.
        let wanted = missing.div_ceil(u64::from(lower.slots()));
        let tiles = if is_covered { wanted.min(directory.free_slots(Level::One)) } else { 1 };
        directory.push(lower, tiles.max(1) as u32)?;
        Ok(Growth { directory, page })
    }

    fn free_slots(&self, level: Level) -> u64 {
        level
            .below()
            .map_or(0, |below| self.end_slot(level).saturating_sub(u64::from(self.tiles(below))))
    }

    /// The loads of those columns of a level's last tile that look complete, if the next one had
    /// them. Pages of the tile are read, so a session that holds the lock of one must not wait for
    /// the metapage. Errors: those of reading.
    pub fn last_loads<P: Pages>(&self, pages: &mut P, level: Level) -> Result<Vec<f64>, P::Error> {
        let Some(tile) = self.last_tile(level) else {
            return Ok(Vec::new());
        };
        let loads = Fill::of(pages, &tile, PAGES_READ)?.loads;
        if level == Level::Zero {
            // Columns that a page has.
            let (options, end) = (self.options, self.end_slot(level));
            let here = options.ranges_per_page(tile.first_slot.into())
                * f64::from(tile.shape.columns_per_slot);
            let next =
                options.ranges_per_page(end) * f64::from(options.columns_per_slot(level, end));
            if here != next {
                // What its pages have is in more columns, or in fewer, from here on.
                let last = tile.first_slot.saturating_add(tile.shape.slots() - 1);
                let pages = options.pages_of(last).end - options.pages_of(tile.first_slot).start;
                return Ok(vec![loads.iter().sum::<f64>() / pages as f64 / next]);
            }
        }
        Ok(typical(&loads))
    }

    /// The share of the last tile's columns of ranges with elements, by some pages. Errors: those
    /// of reading.
    pub fn used_share<P: Pages>(&self, pages: &mut P) -> Result<f64, P::Error> {
        let Some(tile) = self.last_tile(Level::Zero) else {
            return Ok(0.0);
        };
        let loads = Fill::of(pages, &tile, PAGES_READ)?.loads;
        Ok(loads.iter().filter(|&&load| load > 0.0).count() as f64 / loads.len() as f64)
    }

    /// The shape of the next tiles of a level, for the loads seen in the last one. If that is
    /// empty, the same shape again if it has this width, else one for a guess.
    fn next_shape(
        &self,
        level: Level,
        width: Width,
        target: Target,
        seen: &[f64],
        guess: f64,
    ) -> TileShape {
        match self.last_tile(level).map(|tile| tile.shape) {
            Some(last)
                if seen.is_empty()
                    && (last.width, last.num_hashes) == (width, target.num_hashes) =>
            {
                last
            }
            _ if seen.is_empty() => self.shape_for(level, width, target, &[guess.max(1.0)]),
            _ => self.shape_for(level, width, target, seen),
        }
    }

    /// The shape of the next tiles of a level: that of its last one, if it may stay.
    pub(super) fn shape_for(
        &self,
        level: Level,
        width: Width,
        target: Target,
        loads: &[f64],
    ) -> TileShape {
        let columns_per_slot = self.options.columns_per_slot(level, self.end_slot(level));
        let (num_hashes, size) = (target.num_hashes, self.options.size);
        let shape = TileShape { level, width, columns_per_slot, num_hashes, pages: 0, size };
        let shape = rate::with_pages(shape, target, loads);
        let last = self.last_tile(level).map(|tile| tile.shape);
        let stays = |last: &TileShape| {
            TileShape { pages: shape.pages, ..*last } == shape
                && rate::may_stay(last.pages, shape.pages)
        };
        last.filter(stays).unwrap_or(shape)
    }
}
