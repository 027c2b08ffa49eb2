//! What docs/sizing.md says of merging other sizes is what the core computes, and its figures are
//! there. The core's tests have its tables of sizes.

use pg_bloom_core::canonical::scalar;
use pg_bloom_core::filter::{Header, View};
use pg_bloom_core::filter::{build, estimate, merge};
use pg_bloom_core::kind::{Kind, Tag};
use pg_bloom_core::{Layout, MAX_STORED_BYTES, hash::hash, sizing};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn page() -> String {
    fs::read_to_string(docs().join("sizing.md")).expect("docs/sizing.md can be read")
}

/// The cells below the one header line that is this.
fn table(header: &str) -> Vec<Vec<String>> {
    let page = page();
    assert_eq!(page.lines().filter(|line| *line == header).count(), 1, "{header}");
    let below = page.lines().skip_while(|line| *line != header).skip(2);
    let rows = below.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

/// A whole number with commas between its thousands.
fn number(text: &str) -> u64 {
    text.replace(',', "")
        .parse()
        .unwrap_or_else(|_| panic!("{text} is a number"))
}

/// A filter of integers.
fn filter(capacity: u64, elements: std::ops::Range<i64>) -> Vec<u8> {
    let size = sizing::size_for_capacity(Layout::Blocked, capacity, 0.01).unwrap();
    let mut hashes: Vec<u64> = elements.map(|i| hash(&scalar::integer(i))).collect();
    hashes.sort_unstable();
    build::from_hashes(
        &Header::with_size(size, Kind::unnamed(Tag::Integer)),
        &hashes,
        MAX_STORED_BYTES,
    )
    .unwrap()
}

#[test]
fn merging_other_sizes_costs_what_the_page_says() {
    let rows = table("| capacity of the smaller | its bytes | rate of the union |");
    assert_eq!(rows.len(), 4);
    let large = filter(80_000, 10_000..80_000);
    for row in rows {
        let small = filter(number(&row[0]), 0..10_000);
        assert_eq!(number(&row[1]), small.len() as u64, "bytes at capacity {}", row[0]);
        let (small, large) = (View::parse(&small).unwrap(), View::parse(&large).unwrap());
        let union: Vec<u8> = merge::union(&small, &large, MAX_STORED_BYTES).unwrap();
        let rate = estimate::current_fpr(&View::parse(&union).unwrap());
        assert_eq!(row[2], format!("{rate:.3}"), "rate at capacity {}", row[0]);
    }
}

/// Each figure is on a page, each that is on a page is there, and none is larger than a page should
/// load.
#[test]
fn figures_are_there_and_small() {
    const MOST: u64 = 60_000;
    let files = fs::read_dir(docs().join("figures")).expect("docs/figures can be read");
    let there: BTreeSet<String> = files
        .map(|file| {
            let file = file.expect("docs/figures can be read");
            let bytes = file.metadata().expect("a figure has a size").len();
            assert!((1..MOST).contains(&bytes), "{:?} has {bytes} bytes", file.path());
            file.file_name().into_string().expect("figures have plain names")
        })
        .collect();
    let readme = fs::read_to_string(docs().join("../README.md")).expect("README.md can be read");
    let mut pages = readme.replace("](docs/figures/", "](figures/");
    for file in fs::read_dir(docs()).expect("docs can be read") {
        let path = file.expect("docs can be read").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages += &fs::read_to_string(path).expect("a page can be read");
        }
    }
    let shown: BTreeSet<String> = pages
        .split("](figures/")
        .skip(1)
        .map(|rest| rest.split_once(')').expect("a link ends").0.to_owned())
        .collect();
    assert_eq!(there, shown);
}
