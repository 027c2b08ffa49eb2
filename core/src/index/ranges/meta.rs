//! The directory as bytes, and the one check of what was read from disk. A record is a run.
//!
//! How many pages a tile has follows from the elements that its slots were expected to have, which
//! are not stored. But they come from somewhere:
//!
//! ```text
//! level 0    those of all rows of the build, of a range full of them where each has one, or the guess,
//!              or what the tile before it has room for if all bits are set
//! above      those of 128 slots of the level below, or what the tile before it has room for
//! ```
//!
//! So a run that says more is damaged, however right its checksum is, and can't make an insertion
//! write gigabytes.

use super::directory::{Directory, Options, Run};
use super::fill::elements;
use super::rate::{MAX_PART_FPR, MAX_TILE_PAGES, MIN_FPR};
use super::shape::{Level, MAX_HASHES, MAX_PAGES_PER_RANGE, MAX_WIDTH, TileShape, Width};
use super::split::{MAX_RANGES_PER_PAGE, Split};
use super::tile::TileAddress;
use crate::error;
use crate::index::chain::{Chain, ChainForm, META_HEADER, META_PAGE, Stored, Tiles};
use crate::index::page::{Damage, PageNumber, PageSize, Pages, Reader, require};

const FORM: ChainForm = ChainForm { magic: *b"bfix", fields: 32 };
const RUN_BYTES: usize = 20;
/// Bytes of the heap that an element is expected for at least.
const LEAST_BYTES: u64 = 20;
const NONE_COVERED: u32 = u32::MAX;

/// Runs that the metapage has room for; a directory page has room for more.
pub(super) const fn most_open_runs(size: PageSize) -> usize {
    (size.payload_bytes() - META_HEADER - FORM.fields) / RUN_BYTES
}

fn field(field: &str, found: impl Into<u64>) -> Damage {
    Damage::field(META_PAGE, field, found)
}

/// The split of such pages that fields say.
fn split_of(
    [ranges, lines]: [u8; 2],
    [end_page, first_page]: [u32; 2],
) -> Result<Option<Split>, Damage> {
    let (lines, ranges) = (u16::from(lines), u16::from(ranges));
    require(ranges == 0 || (2..=MAX_RANGES_PER_PAGE).contains(&ranges), || {
        field("ranges per page", ranges)
    })?;
    require((lines == 0) == (ranges == 0), || field("lines per range", lines))?;
    let has_pages = if ranges > 0 {
        first_page < end_page
    } else {
        end_page.min(first_page) == Split::NO_PAGE
    };
    require(has_pages, || field("first page that is split", first_page))?;
    Ok((ranges > 0).then_some(Split { lines, ranges, first_page, end_page }))
}

impl Tiles for Directory {
    fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Directory, P::Error> {
        Ok(Directory::parse(Stored::read(&FORM, pages, size)?, size)?)
    }

    fn chain(&self) -> &Chain {
        &self.chain
    }

    fn metapage(&self) -> Vec<u8> {
        let Options {
            fpr,
            pages_per_range,
            split,
            may_split,
            guess,
            table_pages,
            is_flat,
            ..
        } = self.options;
        let mut fields = fpr.unwrap_or(0.0).to_bits().to_le_bytes().to_vec();
        let [zero, one, _] = self.covered_from.map(|first| first.unwrap_or(NONE_COVERED));
        let [zero, one] = split.map_or([zero, one], |split| [split.end_page, split.first_page]);
        let (lines, ranges) = split.map_or((0, 0), |split| (split.lines, split.ranges));
        fields.extend((pages_per_range as u16).to_le_bytes());
        fields.extend([ranges as u8, lines as u8]);
        fields.extend([guess, zero, one, table_pages].into_iter().flat_map(u32::to_le_bytes));
        fields.extend([u8::from(is_flat), u8::from(may_split)]);
        fields.extend(self.keys_per_row.to_le_bytes());
        self.chain
            .metapage(&FORM, self.options.size, &fields, &self.open_records())
    }
}

impl Directory {
    fn parse(stored: Stored, size: PageSize) -> Result<Directory, Damage> {
        let mut bytes = Reader(&stored.fields);
        let rate = f64::from_bits(bytes.u64());
        let (pages_per_range, divided) = (u32::from(bytes.u16()), bytes.take());
        let (guess, covered) = (bytes.u32(), [bytes.u32(), bytes.u32()]);
        let (table_pages, [levels, may_split], keys_per_row) =
            (bytes.u32(), bytes.take(), bytes.u16());
        require(levels <= 1, || field("levels", levels))?;
        let is_flat = levels == 1;
        let [split_pages, covered] = if is_flat {
            [covered, [NONE_COVERED; 2]]
        } else {
            [[Split::NO_PAGE; 2], covered]
        };
        let split = split_of(divided, split_pages)?;
        let fpr = (rate.to_bits() != 0).then_some(rate);
        let is_promised = fpr.is_none_or(|fpr| (MIN_FPR..=MAX_PART_FPR).contains(&fpr));
        require(is_promised, || field("false positive rate", rate.to_bits()))?;
        let is_possible = (1..=MAX_PAGES_PER_RANGE).contains(&pages_per_range);
        require(is_possible && (split.is_none() || pages_per_range == 1), || {
            field("pages per range", pages_per_range)
        })?;
        let most = u64::from(pages_per_range) * size.bytes() as u64 / LEAST_BYTES;
        require(u64::from(guess) <= most, || field("elements per range", guess))?;
        let may_be = u8::from(is_flat && pages_per_range == 1);
        require(may_split <= may_be, || field("pages that may be split", may_split))?;
        let may_split = may_split == 1;
        let options = Options {
            size,
            fpr,
            pages_per_range,
            split,
            may_split,
            table_pages,
            guess,
            is_flat,
        };
        let mut directory = Directory::empty(options);
        directory.keys_per_row = keys_per_row;
        directory.chain = stored.chain;
        let [zero, one] = covered.map(|first| (first != NONE_COVERED).then_some(first));
        directory.covered_from = [zero, one, None];
        let mut end = 1;
        let mut most = Most::new(&directory.options, directory.chain.rows_built, keys_per_row);
        for (at, records) in stored.records {
            directory.add_runs(&records, at, &mut end, &mut most)?;
            // A directory page is allocated after the tiles that it is about.
            require(u64::from(at) == end, || {
                Damage::field(at, "the first page after its tiles", end)
            })?;
            end += 1;
        }
        directory.add_runs(&stored.open, META_PAGE, &mut end, &mut most)?;
        let allocated = directory.chain.allocated;
        require(u64::from(allocated) == end, || field("number of pages", allocated))?;
        directory.check_covered(Level::Zero, Level::One)?;
        directory.check_covered(Level::One, Level::Two)?;
        if let Some(Split { first_page, .. }) = split {
            let tile = directory.tile_of(Level::Zero, first_page);
            let is_first = tile.is_none_or(|tile| tile.first_slot == first_page);
            require(is_first, || field("first page that is split", first_page))?;
        }
        Ok(directory)
    }

    /// Adds the runs of a page, the first of which must begin at page `end`.
    fn add_runs(
        &mut self,
        bytes: &[u8],
        page: PageNumber,
        end: &mut u64,
        most: &mut Most,
    ) -> Result<(), Damage> {
        let (records, rest) = bytes.as_chunks::<RUN_BYTES>();
        require(rest.is_empty(), || Damage::field(page, "bytes of records", bytes.len() as u64))?;
        for (record, number) in records.iter().zip(0u32..) {
            let run = self.parse_run(record, *end, most);
            let run = run.map_err(|problem| {
                Damage::new(page, format!("run {number} of tiles: {problem}"))
            })?;
            *end = run.end_page();
            self.levels[run.first.shape.level as usize].push(run);
            most.add(run.first.shape);
        }
        Ok(())
    }

    /// The run of a record, which must agree with those before it, which end before page `end`.
    fn parse_run(&self, record: &[u8; RUN_BYTES], end: u64, most: &Most) -> Result<Run, String> {
        let mut bytes = Reader(record);
        let [code, width, num_hashes, more_columns] = bytes.take();
        let (pages, tiles) = (bytes.u32(), bytes.u32());
        let (first_slot, first_page) = (bytes.u32(), bytes.u32());
        let level = Level::ALL.into_iter().find(|&level| level as u8 == code);
        let level = level.ok_or_else(|| format!("level {code} is unknown"))?;
        let possible = Width::ALL
            .into_iter()
            .find(|possible| possible.columns() == width.into());
        let width = possible.ok_or_else(|| format!("a tile cannot have {width} columns"))?;
        let columns_per_slot = more_columns.saturating_add(1);
        let shape = TileShape {
            level,
            width,
            columns_per_slot,
            num_hashes,
            pages,
            size: self.options.size,
        };
        let run = Run {
            first: TileAddress { shape, ordinal: self.tiles(level), first_slot, first_page },
            tiles,
        };
        let expected = self.end_slot(level);
        let columns = [1, self.options.columns_per_slot(level, expected)];
        let most_pages = most.pages(level, width);
        Err(if num_hashes == 0 || usize::from(num_hashes) > MAX_HASHES {
            format!("{num_hashes} hashes are not possible")
        } else if pages == 0 || tiles == 0 {
            format!("{tiles} tiles of {pages} pages")
        } else if u64::from(first_slot) != expected {
            format!("begins with slot {first_slot} instead of {expected}")
        } else if run.end_slot() > 1 << 32 {
            format!("{} slots are too many", run.end_slot())
        } else if u64::from(first_page) != end {
            format!("begins at page {first_page} instead of {end}")
        } else if !columns.contains(&columns_per_slot) {
            format!("its slots cannot have {columns_per_slot} columns")
        } else if u64::from(pages) > most_pages {
            format!("tiles of {pages} pages, which can have {most_pages} at most")
        } else {
            return Ok(run);
        })
    }

    /// Checks that all tiles of a level from the first covered one on have slots above, and that no
    /// lookup probes more tiles than necessary.
    fn check_covered(&self, level: Level, above: Level) -> Result<(), Damage> {
        let covered_from = self.covered_from[level as usize];
        let (tiles, slots) = (u64::from(self.tiles(level)), self.end_slot(above));
        let first = covered_from.map_or(tiles, u64::from);
        require(first < tiles || covered_from.is_none(), || field("first covered tile", first))?;
        let has_tiles = self.tiles(above) > 0;
        require(covered_from.is_some() || !has_tiles, || {
            field("first covered tile", NONE_COVERED)
        })?;
        let uncovered = || format!("tile {slots} of {tiles} has no slot in level 1");
        require(first == tiles || slots >= tiles, || Damage::new(META_PAGE, uncovered()))?;
        require(!has_tiles || slots < tiles + u64::from(MAX_WIDTH), || {
            field("slots of a level", slots)
        })?;
        let last_alone = self
            .tiles_alone(level)
            .checked_sub(1)
            .and_then(|last| self.tile(level, last));
        let end =
            last_alone.map_or(0, |last| u64::from(last.first_slot) + u64::from(last.shape.slots()));
        let alone = end.saturating_sub(self.first_slot(level));
        require(alone <= self.options.slots_alone(level), || {
            field("slots without a level above", alone)
        })
    }

    /// The runs in the metapage, as bytes.
    fn open_records(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for Run {
            first: TileAddress { shape, first_slot, first_page, .. },
            tiles,
        } in self.open_runs()
        {
            let TileShape { level, width, columns_per_slot, num_hashes, pages, .. } = shape;
            bytes.extend([
                level as u8,
                width.columns() as u8,
                num_hashes,
                columns_per_slot - 1,
            ]);
            bytes.extend(
                [pages, tiles, first_slot, first_page]
                    .into_iter()
                    .flat_map(u32::to_le_bytes),
            );
        }
        bytes
    }

    /// Moves the runs of the metapage to a new directory page, and returns that with its number.
    pub(super) fn close(&mut self) -> error::Result<(PageNumber, Vec<u8>)> {
        let (records, page) = (self.open_records(), self.chain.allocate(1)?);
        self.chain.pages.push(page);
        Ok(self.chain.newest_page(self.options.size, &records))
    }
}

/// Pages that a tile may have beyond those that it needs: a level above is rounded up, and a shape
/// may stay.
const ROUNDED: f64 = 64.0;
const STAYED: f64 = 1.1;

/// Bits of an element at a rate of 1 / 2^32, the lowest that is promised, in the limit of many
/// blocks.
const fn most_bits(size: PageSize) -> f64 {
    match size.bytes() {
        1024 => 3600.0,
        2048 => 460.0,
        4096 => 165.0,
        _ => 94.0,
    }
}

/// The most elements that slots of each level were expected to have, by the runs so far.
struct Most {
    size: PageSize,
    elements: [f64; 3],
}

impl Most {
    /// Before the first run, of an index built from so many rows with so many keys in the mean; 0
    /// where each has one.
    pub fn new(options: &Options, rows: u64, keys_per_row: u16) -> Most {
        let rows = rows as f64;
        let built = match keys_per_row {
            // A page has at most as many rows as it has room for their pointers, of four bytes.
            0 => rows.min(f64::from(options.pages_per_range) * (options.size.bytes() / 4) as f64),
            u16::MAX if rows > 0.0 => f64::INFINITY,
            // It is rounded, and a key of text may have two hashes.
            keys => rows * 2.0 * (f64::from(keys) + 0.5),
        };
        Most {
            size: options.size,
            elements: [built.max(options.guess.into()).max(1.0), 0.0, 0.0],
        }
    }

    /// The most pages of another tile of this level and width.
    pub fn pages(&self, level: Level, width: Width) -> u64 {
        let blocks =
            self.elements_of(level) * most_bits(self.size) / f64::from(self.size.block_bits());
        let pages = blocks / f64::from(width.blocks_per_page()) * STAYED + ROUNDED;
        // Those of a level above are counted as if they were the narrowest.
        let narrower = Width::MIN.blocks_per_page() / width.blocks_per_page();
        (pages as u64).min(MAX_TILE_PAGES * u64::from(narrower))
    }

    fn elements_of(&self, level: Level) -> f64 {
        let below = level
            .below()
            .map_or(0.0, |below| self.elements_of(below) * f64::from(MAX_WIDTH));
        self.elements[level as usize].max(below)
    }

    /// Takes note of a run: the next tile of its level may be made for what this one has.
    pub fn add(&mut self, shape: TileShape) {
        let bits = shape.blocks() as f64 * f64::from(self.size.block_bits());
        // A slot of level 2 may be a tile of another width.
        let wider = if shape.level == Level::Two {
            f64::from(MAX_WIDTH / Width::MIN.columns())
        } else {
            1.0
        };
        let full = elements(shape, bits, bits) * wider;
        let known = &mut self.elements[shape.level as usize];
        *known = known.max(full);
    }
}

#[cfg(test)]
mod tests;
