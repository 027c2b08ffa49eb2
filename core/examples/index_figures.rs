//! Figures of the index over keys: indexes measured in memory, and a model of larger ones that
//! counts every page.
//!
//! `cargo run --release -p pg_bloom_core --features testing --example index_figures -- [ROWS...]`
//!
//! With 60000 600000 6000000 60000000 for ROWS: 65 rows per page, 8 pages per range, all elements
//! different, default options. Pages include the metapage; those of the heap are what a lookup of
//! an absent key reads unnecessarily. "Beside" is how many ranges a lookup of a present key finds
//! besides its own.
//!
//! | rows | | bytes a row | index pages, absent key | expected | heap pages | beside | runs |
//! |---:|---|---:|---:|---:|---:|---:|---:|
//! | 60,000 | built | 4.10 | 2.00 | 2.00 | 0.01 | 0.001 | 1 |
//! | | appended | 4.64 | 5.00 | 5.00 | 0.01 | 0.001 | 3 |
//! | 600,000 | built | 4.14 | 3.08 | 3.09 | 0.11 | 0.18 | 3 |
//! | | appended | 3.62 | 8.05 | 8.05 | 0.10 | 0.12 | 6 |
//! | 6,000,000 | built | 3.26 | 3.68 | 3.71 | 0.95 | 0.29 | 4 |
//! | | appended | 3.61 | 14.54 | 14.63 | 0.68 | 0.21 | 19 |
//! | 60,000,000 | built | 3.89 | 7.03 | 7.07 | 0.69 | 0.51 | 231 |
//! | | appended | 4.48 | 18.91 | 19.10 | 0.86 | 0.40 | 73 |
//!
//! The same by the model, which counts every page, for three levels and for two whose rate follows
//! the table in the same way:
//!
//! | rows | | bytes a row | index pages, absent key | heap pages |
//! |---:|---|---:|---:|---:|
//! | 6,000,000 | two levels | 3.27 | 3.7 | 0.96 |
//! | | three levels | 3.65 | 3.5 | 0.64 |
//! | | appended | 3.61 | 14.6 | 0.71 |
//! | 100,000,000 | two levels | 4.14 | 17.5 | 0.79 |
//! | | three levels | 3.93 | 4.6 | 0.87 |
//! | | appended | 4.89 | 20.0 | 0.92 |
//! | a billion | two levels | 4.95 | 132.2 | 0.80 |
//! | | three levels | 4.70 | 6.6 | 0.69 |
//! | | appended | 5.21 | 23.6 | 1.10 |
//! | ten billion | two levels | 5.77 | 1224.8 | 0.91 |
//! | | three levels | 5.33 | 17.9 | 0.83 |
//! | | appended | 5.91 | 35.6 | 1.30 |
//!
//! Six million rows are built in 0.7 s and appended in 5.7 s. A lookup of an absent key takes 1.1
//! µs in an index that was built, 2.8 µs in one that was appended. All of this is in memory, with
//! the element already hashed.

use pg_bloom_core::error::Error;
use pg_bloom_core::hash::{hash, word};
use pg_bloom_core::index::ranges::memory::MemoryRanges;
use pg_bloom_core::index::ranges::{
    Directory, Expectation, Level, MAX_WIDTH, Options, PageSize, SlotTarget, Survey, TileAddress,
    TileShape, Width, mean_rate, rate_of_level, sized_for, width_for_slots,
};
use std::collections::HashMap;
use std::time::Instant;

/// Rows of a heap page and heap pages of a range, as in the contract's measurements.
const ROWS_PER_PAGE: u64 = 65;
const PAGES_PER_RANGE: u64 = 8;
const PER_RANGE: u64 = ROWS_PER_PAGE * PAGES_PER_RANGE;

fn element(i: u64) -> u64 {
    hash(&i.to_le_bytes())
}

/// The options that an index has by default, over a table that has so many rows when it is built.
fn options(rows: u64) -> Options {
    let options =
        Options::for_empty_table(PageSize::DEFAULT, PAGES_PER_RANGE as u32, PER_RANGE as u32);
    Options { table_pages: rows.div_ceil(ROWS_PER_PAGE) as u32, ..options }
}

/// Looks up elements. Returns index pages and ranges read, and microseconds, per lookup.
fn look_up(
    index: &mut MemoryRanges,
    lookups: u64,
    element: impl Fn(u64) -> u64,
) -> (f64, f64, f64) {
    index.memory.reads = 0;
    let started = Instant::now();
    let ranges: usize = (0..lookups)
        .map(|i| index.search(element(i)).expect("sound pages").len())
        .sum();
    let n = lookups as f64;
    (
        1.0 + index.memory.reads as f64 / n,
        ranges as f64 / n,
        started.elapsed().as_secs_f64() * 1e6 / n,
    )
}

fn measure(index: &mut MemoryRanges, rows: u64, how: &str, seconds: f64) {
    let lookups = 200_000;
    let (pages, ranges, absent) = look_up(index, lookups, |i| element(1 << 40 | i));
    let (_, present, _) = look_up(index, lookups, |i| element(word(i, 0) % rows));
    let survey = Survey::read(&index.directory, &mut index.memory).expect("sound pages");
    let bytes =
        u64::from(index.directory.chain.allocated) * index.directory.options.size.bytes() as u64;
    println!(
        "{rows} rows {how}: {:.2} bytes a row; absent: {pages:.2} pages of the index, {:.2} expected, {:.2} of the heap, \
         {absent:.2} us; present: {:.3} ranges beside; overfull {}; {} runs; {seconds:.2} s",
        bytes as f64 / rows as f64,
        Expectation::for_directory(&index.directory).index_pages,
        ranges * PAGES_PER_RANGE as f64,
        present - 1.0,
        survey.overfull,
        index.runs(),
    );
}

fn measure_both(rows: u64) {
    let ranges = rows.div_ceil(PER_RANGE);
    let list = |range: u64| {
        (range * PER_RANGE..rows.min((range + 1) * PER_RANGE))
            .map(element)
            .collect::<Vec<u64>>()
    };
    let started = Instant::now();
    let mut built = MemoryRanges::build(options(rows), 4 << 20, (0..ranges).map(list))
        .expect("a possible index");
    measure(&mut built, rows, "built", started.elapsed().as_secs_f64());
    drop(built);
    let mut appended = MemoryRanges::build(options(0), 0, std::iter::empty::<Vec<u64>>())
        .expect("a possible index");
    let started = Instant::now();
    for row in 0..rows {
        appended
            .insert((row / PER_RANGE) as u32, element(row))
            .expect("sound pages");
    }
    measure(&mut appended, rows, "appended", started.elapsed().as_secs_f64());
}

/// Tiles of an index, each of whose ranges is full: how many, and the shape.
type Tiles = Vec<(u64, TileShape)>;

/// The rate of a tile's slots, which have so many ranges each.
fn rate_of(shape: TileShape, ranges: u64) -> f64 {
    mean_rate(shape, &[(ranges * PER_RANGE) as f64])
}

fn print(rows: u64, how: &str, index_pages: u64, read: f64, heap_pages: f64) {
    println!(
        "//! | {rows} | {how} | {:.2} | {read:.1} | {heap_pages:.2} |",
        index_pages as f64 * 8192.0 / rows as f64
    );
}

/// The tiles of a level that a build makes for so many slots, of a usual width.
fn pieces(level: Level, width: Width, mut slots: u64, shape: impl Fn(Width) -> TileShape) -> Tiles {
    let mut tiles = Vec::new();
    if slots >= u64::from(width.columns()) {
        tiles.push((slots / u64::from(width.columns()), shape(width)));
        slots %= u64::from(width.columns());
    }
    while slots > 0 {
        let width = width_for_slots(slots as usize, level);
        tiles.push((1, shape(width)));
        slots = slots.saturating_sub(width.columns().into());
    }
    tiles
}

/// What a build of so many rows makes, tile by tile, with one, two or three levels.
fn model_built(rows: u64, top: Level, how: &str) {
    let options = options(rows);
    let ranges = rows.div_ceil(PER_RANGE);
    let tiles = ranges.div_ceil(MAX_WIDTH.into());
    let fpr = options.promised_fpr(0);
    let shape = |level, width, ranges: u64| {
        let target = SlotTarget::for_rate(options.size, rate_of_level(fpr, level, top));
        let (num_hashes, size) = (target.num_hashes, options.size);
        let shape = TileShape {
            level,
            width,
            columns_per_slot: 1,
            num_hashes,
            pages: 0,
            size,
        };
        sized_for(shape, target, &[(ranges * PER_RANGE) as f64])
    };
    let full = u64::from(MAX_WIDTH);
    let width = if top == Level::Two { Width::within(tiles / 64) } else { Width::MAX };
    let above = full * u64::from(width.columns());
    let zero = vec![(tiles, shape(Level::Zero, Width::MAX, 1))];
    let one = pieces(Level::One, width, if top > Level::Zero { tiles } else { 0 }, |w| {
        shape(Level::One, w, full)
    });
    let count = |tiles: &Tiles| tiles.iter().map(|(count, _)| count).sum::<u64>();
    let slots = if top == Level::Two { count(&one) } else { 0 };
    let two = pieces(Level::Two, Width::MAX, slots, |w| shape(Level::Two, w, above));
    let levels = [(&zero, 1), (&one, full), (&two, above)];
    let [f0, f1, f2] =
        levels.map(|(tiles, ranges)| tiles.first().map_or(1.0, |tile| rate_of(tile.1, ranges)));
    let tiles = tiles as f64;
    let (read, wrong) = match top {
        Level::Zero => (tiles, f0),
        Level::One => (count(&one) as f64 + tiles * f1, f0 * f1),
        Level::Two => {
            (count(&two) as f64 + count(&one) as f64 * f2 + tiles * f2 * f1, f0 * f1 * f2)
        }
    };
    let pages: u64 = [zero, one, two]
        .iter()
        .flatten()
        .map(|(count, shape)| count * u64::from(shape.pages))
        .sum();
    print(rows, how, 1 + pages, 1.0 + read, ranges as f64 * wrong * PAGES_PER_RANGE as f64);
}

/// How many ranges a slot of a tile has, of which there are none or all.
fn ranges_per_slot(directory: &Directory, tile: &TileAddress) -> u64 {
    let below = || {
        directory
            .tile(Level::One, tile.first_slot)
            .map_or(1, |tile| tile.shape.slots())
    };
    match tile.shape.level {
        Level::Zero => 1,
        Level::One => MAX_WIDTH.into(),
        Level::Two => u64::from(MAX_WIDTH * below()),
    }
}

/// An index that grew with its table, of which only the tiles are known, all ranges full.
struct Grown {
    directory: Directory,
    rates: HashMap<(TileShapeKey, u64), f64>,
}

/// What tells shapes apart.
type TileShapeKey = (Level, Width, u8, u32);

impl Grown {
    fn new(rows: u64) -> Grown {
        let mut directory = Directory::empty(options(0));
        let last = (rows.div_ceil(PER_RANGE) - 1) as u32;
        while directory.tile_of(Level::Zero, last).is_none() {
            let next = directory.end_slot(Level::Zero) as u32;
            let slot_of_last = |level| {
                let last = directory
                    .tile_count(level)
                    .checked_sub(1)
                    .and_then(|last| directory.tile(level, last));
                last.map(|last| ranges_per_slot(&directory, &last))
            };
            let loads = |level| {
                slot_of_last(level)
                    .map(|ranges| (ranges * PER_RANGE) as f64)
                    .into_iter()
                    .collect()
            };
            let growth = directory.grow(next, |level| Ok::<_, Error>(loads(level)));
            directory = growth.expect("a possible tile").directory;
        }
        Grown { directory, rates: HashMap::new() }
    }

    /// The rate of a tile's slots.
    fn rate(&mut self, tile: &TileAddress) -> f64 {
        let TileShape { level, width, num_hashes, pages, .. } = tile.shape;
        let ranges = ranges_per_slot(&self.directory, tile);
        *self
            .rates
            .entry(((level, width, num_hashes, pages), ranges))
            .or_insert_with(|| rate_of(tile.shape, ranges))
    }

    /// How often a lookup of an absent key probes a tile.
    fn probed(&mut self, tile: &TileAddress) -> f64 {
        let above = Level::ALL.get(tile.shape.level as usize + 1);
        match above.and_then(|&level| self.directory.tile_of(level, tile.ordinal)) {
            Some(above) => self.rate(&above) * self.probed(&above),
            None => 1.0,
        }
    }

    fn print(mut self, rows: u64) {
        let (mut read, mut heap_pages) = (1.0, 0.0);
        let tiles = |level| self.directory.tiles_from(level, 0).collect::<Vec<_>>();
        for tile in Level::ALL.into_iter().flat_map(tiles).collect::<Vec<_>>() {
            let probed = self.probed(&tile);
            read += probed;
            if tile.shape.level == Level::Zero {
                let ranges = f64::from(tile.shape.slots());
                heap_pages += probed * self.rate(&tile) * ranges * PAGES_PER_RANGE as f64;
            }
        }
        print(rows, "appended", self.directory.chain.allocated.into(), read, heap_pages);
    }
}

/// Bits per element of each level, in the limit of many blocks.
fn print_bits() {
    for fpr in [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8] {
        let of_top = Level::ALL.map(|top| {
            let levels = Level::ALL.into_iter().filter(|&level| level <= top);
            let bits: Vec<f64> = levels
                .map(|level| {
                    SlotTarget::for_rate(PageSize::DEFAULT, rate_of_level(fpr, level, top))
                        .bits_per_key
                })
                .collect();
            let each: Vec<String> = bits.iter().map(|bits| format!("{bits:.1}")).collect();
            format!("{} = {:.1}", each.join(" + "), bits.iter().sum::<f64>())
        });
        println!("//! | {fpr} | {} |", of_top.join(" | "));
    }
}

fn main() {
    print_bits();
    let sizes: Vec<u64> = std::env::args()
        .skip(1)
        .map(|rows| rows.parse().expect("a number of rows"))
        .collect();
    for &rows in if sizes.is_empty() { &[60_000, 600_000, 6_000_000] } else { sizes.as_slice() } {
        measure_both(rows);
    }
    for rows in [
        6_000_000,
        60_000_000,
        100_000_000,
        1_000_000_000,
        10_000_000_000,
    ] {
        model_built(rows, Level::One, "two levels");
        model_built(rows, Level::Two, "three levels");
        Grown::new(rows).print(rows);
    }
}
