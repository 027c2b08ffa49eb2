//! Measures indexes in memory: the figures in the documentation of `range`.
//!
//! `cargo run --release -p pg_bloom_core --example index_figures -- [ROWS...]`

use pg_bloom_core::hash::{hash, word};
use pg_bloom_core::index::keys::memory::Index;
use pg_bloom_core::index::keys::{DEFAULT_FPR, Level, Options, PageSize, Rates};
use std::time::Instant;

/// Rows of a heap page and heap pages of a range, as in the contract's measurements.
const ROWS_PER_PAGE: u64 = 65;
const PAGES_PER_RANGE: u64 = 8;

fn element(i: u64) -> u64 {
    hash(&i.to_le_bytes())
}

/// Looks up elements. Returns index pages and ranges read, and microseconds, per lookup.
fn look_up(index: &mut Index, lookups: u64, element: impl Fn(u64) -> u64) -> (f64, f64, f64) {
    index.memory.reads = 0;
    let started = Instant::now();
    let ranges: usize = (0..lookups).map(|i| index.search(element(i)).expect("sound pages").len()).sum();
    let n = lookups as f64;
    (1.0 + index.memory.reads as f64 / n, ranges as f64 / n, started.elapsed().as_secs_f64() * 1e6 / n)
}

fn measure(index: &mut Index, rows: u64, how: &str, seconds: f64) {
    let lookups = 200_000;
    let (pages, ranges, absent_us) = look_up(index, lookups, |i| element(1 << 40 | i));
    let (present_pages, present, _) = look_up(index, lookups, |i| element(word(i, 0) % rows));
    let survey = index.directory.survey(&mut index.memory).expect("sound pages");
    let bytes = u64::from(index.directory.chain.allocated()) * index.directory.options.size.bytes() as u64;
    let heap_ranges = rows.div_ceil(ROWS_PER_PAGE * PAGES_PER_RANGE) as f64;
    println!(
        "{rows:>10} {how:>8} {:>6.2} bytes/row {:>5} tiles, always probed {:>2}; absent {pages:>6.2} pages (expected \
         {:>6.2}) fpr \
         {:.2e} (now {:.2e}) {absent_us:.2} us; present {present_pages:.2} pages {:.3} ranges beside; \
         overfull {}, {:.2} \
         bits/element, {} runs, {seconds:.2} s",
        bytes as f64 / rows as f64,
        index.directory.tiles(Level::Zero),
        index.directory.tiles_alone() + index.directory.tiles(Level::One),
        index.directory.expectation().pages,
        ranges / heap_ranges,
        survey.fpr,
        present - 1.0,
        survey.overfull,
        survey.bits_per_element(),
        index.directory.runs(),
    );
}

fn rates() {
    for fpr in [0.1, 0.01, 0.001, 1e-4, DEFAULT_FPR, 1e-5, 1e-6, 1e-7] {
        let started = Instant::now();
        let r = Rates::of(PageSize::DEFAULT, fpr).expect("a possible rate");
        let each = |t: pg_bloom_core::index::keys::Target| (t.fpr, t.num_hashes, (t.bits * 100.0).round() / 100.0);
        println!(
            "//! | {fpr} | {}, {:.1} | {:.2e}, {}, {:.1} | {:.2e}, {}, {:.1} | {:.1} | {:.2} | {:?}",
            r.alone.num_hashes,
            r.alone.bits,
            each(r.above).0,
            each(r.above).1,
            each(r.above).2,
            each(r.below).0,
            each(r.below).1,
            each(r.below).2,
            r.above.bits + r.below.bits,
            r.beside_present(),
            started.elapsed(),
        );
    }
}

fn main() {
    rates();
    let sizes: Vec<u64> = std::env::args().skip(1).map(|rows| rows.parse().expect("a number of rows")).collect();
    let sizes = if sizes.is_empty() { vec![60_000, 600_000, 6_000_000] } else { sizes };
    let per_range = ROWS_PER_PAGE * PAGES_PER_RANGE;
    let options = Options {
        size: PageSize::DEFAULT,
        fpr: DEFAULT_FPR,
        pages_per_range: PAGES_PER_RANGE as u32,
        guess: per_range as u32,
        is_flat: false,
    };
    for &rows in &sizes {
        let ranges = (0..rows.div_ceil(per_range))
            .map(|range| (range * per_range..rows.min((range + 1) * per_range)).map(element).collect::<Vec<u64>>());
        let started = Instant::now();
        let mut built = Index::build(options, 4 << 20, ranges).expect("a possible index");
        measure(&mut built, rows, "built", started.elapsed().as_secs_f64());
        drop(built);
        let mut appended = Index::build(options, 0, std::iter::empty::<Vec<u64>>()).expect("a possible index");
        let started = Instant::now();
        let mut bytes = 0;
        for row in 0..rows {
            bytes += appended.insert((row / per_range) as u32, element(row)).expect("sound pages").0;
        }
        measure(&mut appended, rows, "appended", started.elapsed().as_secs_f64());
        println!("{:>20} {:.2} bytes changed per row", "", bytes as f64 / rows as f64);
    }
}
