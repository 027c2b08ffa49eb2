//! Reading a directory from its pages, and the metapage as bytes. A record is a run of tiles.
//!
//! ```text
//! payload of the metapage    │ MetaRecord │ OptionsRecord │ RunRecord │ RunRecord │ … │ zeros │
//! of a directory page        │ previous page, bytes, checksum │ RunRecord │ RunRecord │ … │ zeros │
//! ```
//!
//! Runs of all levels stand in the order of their pages, which follow each other without a gap. So
//! each run is checked against the end of those before it: [`DirectoryReader`].
//!
//! How many pages a tile may have follows from the keys that its slots were expected to have, which
//! are not stored. But they come from somewhere: [`TileLimits`].

use super::directory::{Directory, Options, TileRun};
use super::fill::estimated_keys;
use super::rate::{MAX_FPR_MANY_KEYS, MAX_TILE_PAGES, MIN_FPR};
use super::shape::{Level, MAX_HASHES, MAX_PAGES_PER_RANGE, MAX_WIDTH, PerLevel, TileShape, Width};
use super::split::{MAX_RANGES_PER_PAGE, Split};
use super::tile::TileAddress;
use crate::error;
use crate::index::chain::{
    Chain, IndexDirectory, META_HEADER, META_PAGE, MetaForm, PageImage, StoredDirectory,
};
use crate::index::page::{
    Damage, PageNumber, PageSize, Pages, WrongField, check_at_most, check_equal, check_field,
    decode, read_fixed, write_fixed,
};
use crate::memory::List;
use serde::{Deserialize, Serialize};

/// What distinguishes the metapage of this index.
const FORM: MetaForm = MetaForm { magic: *b"bfix", own_bytes: 32 };
/// Bytes of the record of a run.
const RUN_BYTES: usize = 20;
/// A range is expected to have one key for each so many bytes of its pages, at most.
const LEAST_BYTES_PER_KEY: u64 = 20;
/// Stored for "no tile" where the number of a tile is expected.
const NO_TILE: u32 = u32::MAX;

/// The fields of the metapage that only an index over ranges has, as they are stored.
#[derive(Serialize, Deserialize)]
struct OptionsRecord {
    fpr: f64,
    pages_per_range: u16,
    ranges_per_page: u8,
    lines_per_range: u8,
    keys_per_range: u32,
    level_numbers: LevelNumbers,
    table_pages: u32,
    levels: u8,
    may_split: u8,
    keys_per_row: u16,
}

/// Two numbers of the metapage, of which the field `levels` says what they are. [`LevelFields`] has
/// the same by its meaning.
///
/// | | with several levels | with one level |
/// |---|---|---|
/// | `first` | the first tile of level 0 that has a slot in level 1 | the first page of the table that is whole again, after pages that are split |
/// | `second` | the first tile of level 1 that has a slot in level 2 | the first page of the table that is split |
#[derive(Clone, Copy, Serialize, Deserialize)]
struct LevelNumbers {
    first: u32,
    second: u32,
}

impl LevelNumbers {
    /// Returns what the numbers say in an index that may have several levels: the first tile of
    /// each level that has a slot in the level above.
    fn first_tiles_with_slot_above(self) -> PerLevel<Option<u32>> {
        let mut first_tiles = PerLevel::default();
        first_tiles[Level::Zero] = stored_tile(self.first);
        first_tiles[Level::One] = stored_tile(self.second);
        first_tiles
    }

    /// Returns the first page that is split among several ranges, in an index with one level.
    fn first_split_page(self) -> u32 {
        self.second
    }

    /// Returns the first page that is whole again, in an index with one level.
    fn end_of_split_pages(self) -> u32 {
        self.first
    }
}

/// A run of tiles as it is stored.
#[derive(Serialize, Deserialize)]
struct RunRecord {
    level: u8,
    width: u8,
    num_hashes: u8,
    more_columns: u8,
    pages: u32,
    tiles: u32,
    first_slot: u32,
    first_page: PageNumber,
}

/// The value of `keys_per_row` if each row of the build had one key, or if there was no row.
const ONE_KEY_PER_ROW: u16 = 0;
/// The value of `keys_per_row` if the rows of the build had at least this number of keys on
/// average.
const KEYS_PER_ROW_OR_MORE: u16 = u16::MAX;
/// The value of `fpr` if the rate follows the size of the table. No rate that can be chosen is 0.
const FPR_FOLLOWS_TABLE: f64 = 0.0;

/// The code of `levels` in the metapage of an index that may have several levels.
const SEVERAL_LEVELS: u8 = 0;
/// The code of `levels` in the metapage of an index that has level 0 only.
const ONE_LEVEL: u8 = 1;

/// What an index has besides tiles of level 0: either levels above, or pages that are split among
/// several ranges. [`LevelNumbers`] stores it.
enum LevelFields {
    /// The first tile of each level that has a slot in the level above; `None` if no tile has. No
    /// page is split.
    Several { first_with_slot_above: PerLevel<Option<u32>> },
    /// Which pages are split; `None` if all are whole. No tile has a slot above.
    One { split: Option<Split> },
}

impl LevelFields {
    fn from_directory(directory: &Directory) -> LevelFields {
        if directory.options.is_flat {
            LevelFields::One { split: directory.options.split }
        } else {
            let first_with_slot_above = directory.first_with_slot_above;
            LevelFields::Several { first_with_slot_above }
        }
    }

    /// Returns the two numbers by which the metapage stores this: which tiles have slots in the
    /// level above, or, in an index with one level, which pages are split. 2^32 - 1 stands for
    /// `None`.
    fn to_numbers(&self) -> LevelNumbers {
        match self {
            LevelFields::Several { first_with_slot_above } => LevelNumbers {
                first: first_with_slot_above[Level::Zero].unwrap_or(NO_TILE),
                second: first_with_slot_above[Level::One].unwrap_or(NO_TILE),
            },
            LevelFields::One { split } => LevelNumbers {
                first: split.map_or(Split::NO_PAGE, |split| split.end_page),
                second: split.map_or(Split::NO_PAGE, |split| split.first_page),
            },
        }
    }
}

impl OptionsRecord {
    /// Returns the fields of the metapage, as they are stored, that only an index over ranges has:
    /// its options, and from which tiles on there are levels above. The records of its tiles are
    /// not among them.
    fn from_directory(directory: &Directory) -> OptionsRecord {
        let options = &directory.options;
        OptionsRecord {
            fpr: options.fpr.unwrap_or(FPR_FOLLOWS_TABLE),
            // Fits: MAX_PAGES_PER_RANGE is 1,024.
            pages_per_range: options.pages_per_range as u16,
            // Fits: MAX_RANGES_PER_PAGE is 128. Stored as 0 if all pages are whole.
            ranges_per_page: options.split.map_or(0, |split| split.ranges_per_page as u8),
            // Fits: Split::by_text makes no split with more than 255 lines in a range.
            lines_per_range: options.split.map_or(0, |split| split.lines_per_range as u8),
            keys_per_range: options.keys_per_range,
            level_numbers: LevelFields::from_directory(directory).to_numbers(),
            table_pages: options.table_pages,
            levels: if options.is_flat { ONE_LEVEL } else { SEVERAL_LEVELS },
            may_split: options.may_split.into(),
            keys_per_row: directory.keys_per_row,
        }
    }

    /// Checks the fields of the metapage that this record has, and returns the directory that they
    /// describe: what says where the tiles of the index are. It has no tiles yet, as the records of
    /// tiles are stored behind the fields. `chain` has the fields that indexes of every kind have,
    /// and `size` is the size of pages.
    ///
    /// Fails if a field is invalid, or if two fields contradict each other.
    fn into_directory(self, chain: Chain, size: PageSize) -> Result<Directory, WrongField> {
        let mut first_with_slot_above = PerLevel::default();
        let mut split = None;
        match self.level_fields()? {
            LevelFields::Several { first_with_slot_above: stored } => {
                first_with_slot_above = stored;
            }
            LevelFields::One { split: stored } => split = stored,
        }

        self.check_fpr()?;
        self.check_pages_per_range(split)?;
        self.check_keys_per_range(size)?;
        self.check_may_split()?;

        let mut directory = Directory::empty(Options {
            size,
            fpr: self.stored_fpr(),
            pages_per_range: self.pages_per_range.into(),
            split,
            may_split: self.may_split == 1,
            table_pages: self.table_pages,
            keys_per_range: self.keys_per_range,
            is_flat: self.levels == ONE_LEVEL,
        });
        directory.chain = chain;
        directory.keys_per_row = self.keys_per_row;
        directory.first_with_slot_above = first_with_slot_above;
        Ok(directory)
    }

    /// Reads those fields of the metapage whose meaning depends on whether the index may have
    /// several levels, or level 0 only:
    ///
    /// - With several levels, two numbers are tiles: the first one of level 0 and the first one of
    ///   level 1 that has a *slot* in the level above, a filter of all of its keys by which a
    ///   lookup can skip the tile.
    /// - With one level, the same two numbers are pages of the table: the first one that is split
    ///   among several ranges, and the first one after it that is whole again.
    ///
    /// Fails if one of these fields is invalid.
    fn level_fields(&self) -> Result<LevelFields, WrongField> {
        check_field("levels", self.levels, matches!(self.levels, SEVERAL_LEVELS | ONE_LEVEL))?;
        if self.levels == ONE_LEVEL {
            return Ok(LevelFields::One { split: self.split_with_one_level()? });
        }

        // Pages are split only where there is one level.
        check_equal("ranges per page", self.ranges_per_page, 0u8)?;
        check_equal("lines per range", self.lines_per_range, 0u8)?;
        let first_with_slot_above = self.level_numbers.first_tiles_with_slot_above();
        Ok(LevelFields::Several { first_with_slot_above })
    }

    /// Returns which pages of the table are *split*: divided into several ranges each, by their
    /// line numbers. `None` if no page is split. The metapage must be that of an index with level 0
    /// only, as no other index has split pages.
    ///
    /// Fails if a field about split pages is invalid.
    fn split_with_one_level(&self) -> Result<Option<Split>, WrongField> {
        let first_page = self.level_numbers.first_split_page();
        let end_page = self.level_numbers.end_of_split_pages();

        let has_no_split = self.ranges_per_page == 0;
        if has_no_split {
            check_equal("lines per range", self.lines_per_range, 0u8)?;
            check_equal("first page that is split", first_page, Split::NO_PAGE)?;
            check_equal("first page that is whole again", end_page, Split::NO_PAGE)?;
            return Ok(None);
        }

        let ranges_per_page = u16::from(self.ranges_per_page);
        let valid_ranges = 2..=MAX_RANGES_PER_PAGE;
        check_field("ranges per page", ranges_per_page, valid_ranges.contains(&ranges_per_page))?;
        check_field("lines per range", self.lines_per_range, self.lines_per_range > 0)?;
        check_field("first page that is split", first_page, first_page < end_page)?;
        Ok(Some(Split {
            lines_per_range: self.lines_per_range.into(),
            ranges_per_page,
            first_page,
            end_page,
        }))
    }

    /// Returns the rate that was chosen; `None` if it follows the size of the table.
    fn stored_fpr(&self) -> Option<f64> {
        // Compares bits, so that -0.0 isn't taken for a rate that follows the table: it is damage.
        let follows_table = self.fpr.to_bits() == FPR_FOLLOWS_TABLE.to_bits();
        (!follows_table).then_some(self.fpr)
    }

    fn check_fpr(&self) -> Result<(), WrongField> {
        let valid_rates = MIN_FPR..=MAX_FPR_MANY_KEYS;
        let is_valid = self.stored_fpr().is_none_or(|fpr| valid_rates.contains(&fpr));
        check_field("false positive rate", self.fpr.to_bits(), is_valid)
    }

    fn check_pages_per_range(&self, split: Option<Split>) -> Result<(), WrongField> {
        let pages = u32::from(self.pages_per_range);
        check_field("pages per range", pages, (1..=MAX_PAGES_PER_RANGE).contains(&pages))?;
        // A range can't be both several pages and a part of one.
        check_field("pages per range", pages, split.is_none() || pages == 1)
    }

    fn check_keys_per_range(&self, size: PageSize) -> Result<(), WrongField> {
        let range_bytes = u64::from(self.pages_per_range) * size.bytes() as u64;
        check_at_most("keys per range", self.keys_per_range, range_bytes / LEAST_BYTES_PER_KEY)
    }

    /// Checks the field that allows pages to be split later. That takes one level, in which a range
    /// is a page.
    fn check_may_split(&self) -> Result<(), WrongField> {
        let is_possible = self.levels == ONE_LEVEL && self.pages_per_range == 1;
        check_at_most("pages that may be split", self.may_split, is_possible.into())
    }
}

/// Returns the tile with a stored number; `None` if the number stands for "no tile".
fn stored_tile(number: u32) -> Option<u32> {
    (number != NO_TILE).then_some(number)
}

impl RunRecord {
    /// Returns the record by which a *run*, neighbouring tiles of one shape, is stored: their
    /// shape, how many they are, and where the first one is. The others follow it.
    fn from_run(run: &TileRun) -> RunRecord {
        let TileAddress { shape, first_slot, first_page, .. } = run.first;
        RunRecord {
            level: shape.level as u8,
            // Fits: MAX_WIDTH is 128.
            width: shape.width.columns() as u8,
            num_hashes: shape.num_hashes,
            // Each slot has at least one column; the others are stored.
            more_columns: shape.columns_per_slot - 1,
            pages: shape.pages,
            tiles: run.tiles,
            first_slot,
            first_page,
        }
    }

    /// Checks this record, and returns the *run* that it describes: neighbouring tiles of one
    /// shape.
    ///
    /// `directory` has all runs that are stored before this one, which is not added. The first slot
    /// of the run must be the one after the last slot of its level so far. Its first page must be
    /// `next_page`, the page after those of all runs and directory pages so far. And its tiles must
    /// not have more pages than `limits` allow.
    ///
    /// Fails with the first field that is invalid, or does not continue the runs before.
    fn into_run(
        self,
        directory: &Directory,
        next_page: u64,
        limits: &TileLimits,
    ) -> Result<TileRun, WrongField> {
        let level = decode("level", self.level, Level::from_code)?;
        let width = decode("number of columns", self.width, Width::from_columns)?;
        self.check_columns_per_slot(level, &directory.options)?;
        self.check_hashes()?;
        check_field("pages of a tile", self.pages, self.pages > 0)?;
        check_field("number of tiles", self.tiles, self.tiles > 0)?;
        check_equal("first slot", self.first_slot, directory.end_slot(level))?;
        check_equal("first page", self.first_page, next_page)?;
        // So that a damaged run can't make an insertion write gigabytes.
        check_at_most("pages of a tile", self.pages, limits.most_pages(level, width))?;

        let shape = TileShape {
            level,
            width,
            // Each slot has at least one column, which isn't stored.
            columns_per_slot: self.more_columns + 1,
            num_hashes: self.num_hashes,
            pages: self.pages,
            size: directory.options.size,
        };
        let first = TileAddress {
            shape,
            ordinal: directory.tile_count(level),
            first_slot: self.first_slot,
            first_page: self.first_page,
        };
        let run = TileRun { first, tiles: self.tiles };
        // Slots have 32-bit numbers.
        check_at_most("slots of a level", run.end_slot(), 1 << 32)?;
        Ok(run)
    }

    /// Checks how many columns of a tile a slot has on average: as many as new tiles at this place
    /// would have by the options, or one, since the tile may have been made before pages were
    /// split. The field is one less than that.
    fn check_columns_per_slot(&self, level: Level, options: &Options) -> Result<(), WrongField> {
        let expected = options.columns_per_slot(level, self.first_slot.into());
        let is_valid = self.more_columns == 0 || self.more_columns == expected - 1;
        check_field("more columns of a slot", self.more_columns, is_valid)
    }

    fn check_hashes(&self) -> Result<(), WrongField> {
        let is_valid = (1..=MAX_HASHES).contains(&usize::from(self.num_hashes));
        check_field("number of hashes", self.num_hashes, is_valid)
    }
}

impl IndexDirectory for Directory {
    fn read<P: Pages>(pages: &mut P, size: PageSize) -> Result<Directory, P::Error> {
        let stored = StoredDirectory::read(&FORM, pages, size)?;
        Ok(DirectoryReader::read(stored, size)?)
    }

    fn chain(&self) -> &Chain {
        &self.chain
    }

    fn metapage(&self) -> List<u8> {
        let mut fields = List::new();
        write_fixed(&mut fields, &OptionsRecord::from_directory(self));
        let records = encode_runs(&self.runs_of_metapage());
        self.chain.metapage(&FORM, self.options.size, &fields, &records)
    }
}

impl Directory {
    /// Moves the runs of the metapage to a new directory page, and returns that page. The metapage
    /// then has no runs.
    ///
    /// Fails with [`crate::Class::TooLarge`] if no page number is left.
    pub(super) fn move_runs_to_page(&mut self) -> error::Result<PageImage> {
        let records = encode_runs(&self.runs_of_metapage());
        let page = self.chain.allocate(1)?;
        self.chain.pages.push(page);
        Ok(self.chain.newest_page(self.options.size, &records))
    }
}

/// Returns how many runs the metapage has room for. A directory page has room for more.
pub(super) const fn most_runs_of_metapage(size: PageSize) -> usize {
    (size.payload_bytes() - META_HEADER - FORM.own_bytes) / RUN_BYTES
}

/// Returns the records of runs, one after the other.
fn encode_runs(runs: &[TileRun]) -> List<u8> {
    let mut records = List::new();
    for run in runs {
        write_fixed(&mut records, &RunRecord::from_run(run));
    }
    records
}

/// A directory that is being read, run by run.
struct DirectoryReader {
    /// Has all runs so far.
    directory: Directory,
    /// The page after those of the runs and directory pages so far: the next one begins there.
    next_page: u64,
    limits: TileLimits,
}

impl DirectoryReader {
    /// Returns the directory of an index, which says where its tiles are, by the contents of its
    /// metapage and its directory pages. `size` is the size of pages.
    ///
    /// Tiles are stored as *runs*: a record describes neighbouring tiles of one shape. Pages are
    /// allocated one after the other, so those of runs follow each other without a gap. Whenever
    /// the metapage had no room for another record, the next page became a directory page, to which
    /// all records of the metapage were moved. So the oldest runs are on the first directory page,
    /// and the newest ones on the metapage.
    ///
    /// Fails if a field or a run is invalid, if an allocated page belongs to nothing, or if the
    /// levels do not fit together.
    fn read(stored: StoredDirectory, size: PageSize) -> Result<Directory, Damage> {
        let mut reader = DirectoryReader::before_first_run(&stored.own_fields, stored.chain, size)
            .map_err(|wrong| wrong.on(META_PAGE))?;

        for directory_page in &stored.pages {
            reader.add_runs(&directory_page.bytes, directory_page.page)?;
            reader
                .add_directory_page(directory_page.page)
                .map_err(|wrong| wrong.on(directory_page.page))?;
        }
        reader.add_runs(&stored.meta_records, META_PAGE)?;

        reader.finish().map_err(|wrong| wrong.on(META_PAGE))
    }

    /// Begins to read a directory: returns a reader that has read and checked the fields of the
    /// metapage, but has no run of tiles yet. `own_fields` are the bytes of the fields that only an
    /// index over ranges has, and `chain` has the fields of the metapage that all indexes have.
    ///
    /// Fails if a field is invalid.
    fn before_first_run(
        own_fields: &[u8],
        chain: Chain,
        size: PageSize,
    ) -> Result<DirectoryReader, WrongField> {
        let record: OptionsRecord = read_fixed(&mut &own_fields[..])?;
        let directory = record.into_directory(chain, size)?;
        Ok(DirectoryReader {
            limits: TileLimits::for_first_tiles(&directory),
            directory,
            next_page: u64::from(META_PAGE) + 1,
        })
    }

    /// Takes note of a directory page, which is allocated after the pages of its runs.
    ///
    /// Fails if it is not the next page after them.
    fn add_directory_page(&mut self, page: PageNumber) -> Result<(), WrongField> {
        check_equal("page number of a directory page", page, self.next_page)?;
        self.next_page += 1;
        Ok(())
    }

    /// Adds the runs of tiles that are stored in a page, whose bytes of runs are `records`. Each
    /// record has a fixed length.
    ///
    /// Fails if a record is incomplete or invalid, or does not continue the runs before it.
    fn add_runs(&mut self, records: &[u8], page: PageNumber) -> Result<(), Damage> {
        let is_complete = records.len().is_multiple_of(RUN_BYTES);
        check_field("bytes of records", records.len() as u64, is_complete)
            .map_err(|wrong| wrong.on(page))?;

        for (record, number) in records.chunks_exact(RUN_BYTES).zip(0u32..) {
            self.add_run(record)
                .map_err(|wrong| Damage::new(page, format!("run {number} of tiles: {wrong}")))?;
        }
        Ok(())
    }

    fn add_run(&mut self, mut record: &[u8]) -> Result<(), WrongField> {
        let record: RunRecord = read_fixed(&mut record)?;
        let run = record.into_run(&self.directory, self.next_page, &self.limits)?;
        self.next_page = run.end_page();
        self.limits.raise_for_tiles_after(run.first.shape);
        self.directory.runs[run.first.shape.level].push(run);
        Ok(())
    }

    /// Ends reading: returns the directory, if all tiles that were read fit together. All runs of
    /// tiles must have been added.
    ///
    /// Fails if an allocated page belongs to nothing, if a tile that must have a slot in the level
    /// above (a filter of all of its keys) has none, or if the first page that is split among
    /// several ranges is in the middle of a tile.
    fn finish(self) -> Result<Directory, WrongField> {
        let directory = self.directory;
        check_equal("number of pages", directory.chain.allocated, self.next_page)?;
        check_slots_above(&directory, Level::Zero, Level::One)?;
        check_slots_above(&directory, Level::One, Level::Two)?;
        check_first_split_page(&directory)?;
        Ok(directory)
    }
}

/// Checks that the first page of the table that is split among several ranges is the first page of
/// a tile of level 0, if it has a tile: whether pages are split is decided when they get their
/// first tile. Does nothing if no page is split.
fn check_first_split_page(directory: &Directory) -> Result<(), WrongField> {
    let Some(split) = directory.options.split else {
        return Ok(());
    };
    // Each page before it is one range, so the first range of the page has the page's number.
    let first_split_range = split.first_page;
    let tile = directory.tile_of(Level::Zero, first_split_range);
    let begins_tile = tile.is_none_or(|tile| tile.first_slot == first_split_range);
    check_field("first page that is split", split.first_page, begins_tile)
}

/// Checks that the tiles of a level and the *slots* of the level above fit together. Slot n is a
/// Bloom filter of all keys of tile n, by which a lookup can skip the tile: the tile is *covered*.
/// The metapage says which tile of a level is the first covered one. All tiles after it are covered
/// as well, and those before it aren't.
///
/// For example, tile 2 is the first covered one, and the level above has one tile, of eight slots:
///
/// ```text
/// tiles              0   1   2   3   4
/// slots above                2   3   4   5   6   7   8   9
///              not covered │ covered   │ free, for later tiles
/// ```
///
/// Fails if the metapage names a tile that doesn't exist, if a covered tile lacks its slot, if no
/// tile is covered but the level above has tiles, if that has 128 free slots or more, or if the
/// tiles that aren't covered have too many slots themselves.
fn check_slots_above(directory: &Directory, level: Level, above: Level) -> Result<(), WrongField> {
    check_covered_tiles(directory, level, above)?;
    check_free_slots_above(directory, level, above)?;
    check_uncovered_tiles(directory, level)
}

/// Checks that the first *covered* tile of a level exists, and that each tile from it on has its
/// slot in the level above (a Bloom filter of all of its keys). If no tile is covered, the level
/// above must have no tiles.
fn check_covered_tiles(
    directory: &Directory,
    level: Level,
    above: Level,
) -> Result<(), WrongField> {
    let Some(first_covered) = directory.first_with_slot_above[level] else {
        let tiles_above = directory.tile_count(above);
        return check_equal("tiles above a level without covered tiles", tiles_above, 0u8);
    };

    let tiles = u64::from(directory.tile_count(level));
    let is_a_tile = u64::from(first_covered) < tiles;
    check_field("first covered tile", first_covered, is_a_tile)?;

    // Slots are numbered as the tiles, from the first covered one on, without gaps. So if the last
    // tile has its slot, all others have theirs.
    let end_slot = directory.end_slot(above);
    let last_tile_has_slot = tiles <= end_slot;
    check_field("tile without a slot above", end_slot, last_tile_has_slot)
}

/// Checks that the level above has at most 127 free slots: slots that are numbered beyond the last
/// tile of `level`.
///
/// A tile of the level above, which has up to 128 slots, is only added when a tile of `level` needs
/// a slot and none is free. So its first slot is used at once.
fn check_free_slots_above(
    directory: &Directory,
    level: Level,
    above: Level,
) -> Result<(), WrongField> {
    // Without tiles, the level above has no slots.
    if directory.tile_count(above) == 0 {
        return Ok(());
    }
    let most_free_slots = u64::from(MAX_WIDTH) - 1;
    let most_end_slot = u64::from(directory.tile_count(level)) + most_free_slots;
    check_at_most("slots above the tiles of a level", directory.end_slot(above), most_end_slot)
}

/// Checks that the tiles of a level that have no slot in the level above are few, as every lookup
/// reads them. Together they may have up to 512 slots of their own, or any number if this level is
/// the highest one that the index can have.
fn check_uncovered_tiles(directory: &Directory, level: Level) -> Result<(), WrongField> {
    let slots = always_probed_slots(directory, level);
    let most_slots = directory.options.most_always_probed_slots(level);
    check_at_most("slots without a level above", slots, most_slots)
}

/// Returns how many slots of a level every lookup probes: those of its first tiles, which have no
/// slot in the level above.
fn always_probed_slots(directory: &Directory, level: Level) -> u64 {
    let last_tile = directory
        .tiles_without_slot_above(level)
        .checked_sub(1)
        .and_then(|ordinal| directory.tile(level, ordinal));
    let end_slot =
        last_tile.map_or(0, |tile| u64::from(tile.first_slot) + u64::from(tile.shape.slots()));
    // The slots of a level may begin after the first number.
    end_slot.saturating_sub(directory.first_slot(level))
}

/// A build rounds the pages of a tile above level 0 up, by less than this number: see
/// [`super::pending`].
const MOST_PAGES_BY_ROUNDING: f64 = 64.0;
/// A tile may keep the shape of the one before it, which may have a 32nd more pages: see
/// [`super::rate::may_keep_pages`].
const MOST_TIMES_BY_STAYING: f64 = 1.1;
/// A range may have two hashes for a key: short windows of a text (characters that follow each
/// other) get a second one, which a range counts as another key.
const MOST_HASHES_PER_KEY: f64 = 2.0;
/// Bytes of a line pointer, of which a heap page has one for each row.
const LINE_POINTER_BYTES: usize = 4;

/// Returns how many bits a key needs at a rate of 1 / 2^32, in the limit of many blocks. No tile
/// ever has a lower rate, since no table has more pages.
///
/// The smaller the pages, the fewer bits a block has. Small blocks are filled less evenly, which
/// takes more bits.
const fn most_bits_per_key(size: PageSize) -> f64 {
    match size.bytes() {
        1024 => 3600.0,
        2048 => 460.0,
        4096 => 165.0,
        _ => 94.0,
    }
}

/// How many keys the slots of a level may have been expected to have at most, by the runs so far.
/// It limits how many pages a tile may have, so that a damaged run can't make an insertion write
/// gigabytes.
///
/// ```text
/// level 0    the keys of all rows of the build, or of a range full of rows if each has one key,
///              or the number that the options say,
///              or what the tile before has room for if all of its bits are set
/// above      the keys of 128 slots of the level below, or what the tile before has room for
/// ```
struct TileLimits {
    size: PageSize,
    /// Without what follows from the level below.
    most_keys: PerLevel<f64>,
}

impl TileLimits {
    /// Returns the limits for the first tile of an index whose metapage says what is in
    /// `directory`.
    ///
    /// That tile was sized either by the build of the index, for the keys that ranges of the table
    /// had, or by an insertion into an empty index, for the number of keys per range in the
    /// options. The larger of the two numbers counts, and at least one key.
    fn for_first_tiles(directory: &Directory) -> TileLimits {
        let options = &directory.options;
        let assumed_keys = f64::from(options.keys_per_range);
        let most_keys_of_range = most_keys_of_built_range(directory).max(assumed_keys).max(1.0);

        let mut most_keys = PerLevel::default();
        most_keys[Level::Zero] = most_keys_of_range;
        TileLimits { size: options.size, most_keys }
    }

    /// Returns the most pages that the next tile of this level and width may have: those for the
    /// most keys that its slots may have been expected to have, and some more, since the number of
    /// pages is rounded up in two ways.
    fn most_pages(&self, level: Level, width: Width) -> u64 {
        let bits_of_column = self.most_keys_of(level) * most_bits_per_key(self.size);
        let blocks_of_column = bits_of_column / f64::from(self.size.block_bits());
        let pages_needed = blocks_of_column / f64::from(width.blocks_per_page());
        let most_pages = pages_needed * MOST_TIMES_BY_STAYING + MOST_PAGES_BY_ROUNDING;

        // The narrowest tile has at most MAX_TILE_PAGES. A build gives wider tiles as many blocks,
        // which take more pages as a page then has fewer blocks of each column.
        let times_narrowest = Width::MIN.blocks_per_page() / width.blocks_per_page();
        (most_pages as u64).min(MAX_TILE_PAGES * u64::from(times_narrowest))
    }

    /// Returns the most keys that a slot of a level may have been expected to have when the next
    /// tile was made.
    fn most_keys_of(&self, level: Level) -> f64 {
        let keys_of_tile_below = match level.below() {
            Some(below) => self.most_keys_of(below) * f64::from(MAX_WIDTH),
            None => 0.0,
        };
        self.most_keys[level].max(keys_of_tile_below)
    }

    /// Raises the limits for tiles that come after tiles of this shape. The next tile of the level
    /// was sized by an estimate of the keys in the last one, which is highest if all of its bits
    /// are set.
    fn raise_for_tiles_after(&mut self, shape: TileShape) {
        let bits = shape.blocks() as f64 * f64::from(self.size.block_bits());
        let keys_with_all_bits = estimated_keys(shape, bits, bits);
        let wider_slots = match shape.level {
            Level::Zero | Level::One => 1,
            // A slot of level 2 may be a wider tile of level 1 than in this run.
            Level::Two => MAX_WIDTH / Width::MIN.columns(),
        };
        let most = keys_with_all_bits * f64::from(wider_slots);
        self.most_keys[shape.level] = self.most_keys[shape.level].max(most);
    }
}

/// Returns the most keys that a range of the table can have had when the index was built. That
/// follows from the number of rows and the average keys of a row at that time, which the metapage
/// says; infinity if the average was too large for its field.
///
/// For example, 1,000 rows had 20 keys each on average, rounded, so fewer than 20.5. All 20,500 may
/// be in one range. Each may have two hashes, which count as two keys: the result is 41,000.
fn most_keys_of_built_range(directory: &Directory) -> f64 {
    let options = &directory.options;
    let rows_of_table = directory.chain.rows_built as f64;
    match directory.keys_per_row {
        // The field also has this value if the build had no rows. The result is 0 then.
        ONE_KEY_PER_ROW => {
            // A page has at most as many rows as line pointers fit.
            let lines_per_page = options.size.bytes() / LINE_POINTER_BYTES;
            let lines_per_range = f64::from(options.pages_per_range) * lines_per_page as f64;
            rows_of_table.min(lines_per_range)
        }
        // The field was too small for the average, which may have been any greater number.
        KEYS_PER_ROW_OR_MORE if rows_of_table > 0.0 => f64::INFINITY,
        keys_per_row => {
            // The stored average is rounded, by up to one half. One range may have the keys of all
            // rows, as a few rows may have nearly all of them.
            let most_keys_per_row = f64::from(keys_per_row) + 0.5;
            rows_of_table * most_keys_per_row * MOST_HASHES_PER_KEY
        }
    }
}

#[cfg(test)]
mod tests;
