//! Writes the inputs that fuzzing starts from: filters of every sort as the library makes them.
//!
//! `cargo run -p pg_bloom_core --example fuzz_seeds -- core/fuzz/corpus`

use pg_bloom_core::kind::Tag;
use pg_bloom_core::{Header, Kind, Layout, View, build, hash, merge, sizing};
use std::path::Path;

/// As many ascending hashes of elements.
fn hashes(elements: u64) -> Vec<u64> {
    let mut hashes: Vec<u64> = (0..elements).map(|i| hash::hash(&i.to_le_bytes())).collect();
    hashes.sort_unstable();
    hashes
}

fn filter(layout: Layout, capacity: u64, fpr: f64, kind: Kind<'_>, elements: u64) -> Vec<u8> {
    let size = sizing::size(layout, capacity, fpr).expect("a possible size");
    build::from_hashes(&Header::sized(size, kind), &hashes(elements), u64::MAX).expect("a small filter")
}

/// Filters of every layout: empty, sparse, dense, full, of named kinds, merged with others, of no size.
fn filters() -> Vec<Vec<u8>> {
    let mut filters: Vec<Vec<u8>> = vec![Header::unsized_(Layout::Blocked, 0.01).sparse(0)];
    for layout in Layout::ALL {
        let kind = Kind::of(if layout == Layout::Parquet { Tag::ParquetInt32 } else { Tag::Integer });
        let full = filter(layout, 30, 0.01, kind, 40);
        let twice = filter(layout, 60, 0.01, kind, 50);
        let merged = View::parse(&full)
            .and_then(|full| merge::union(&full, &View::parse(&twice)?, "union", u64::MAX))
            .expect("sizes that divide");
        filters.extend([
            Header::unsized_(layout, 0.2).sparse(0),
            filter(layout, 50, 0.01, Kind::NONE, 0),
            filter(layout, 1000, 0.001, kind, 5),
            filter(layout, 300_000_000, 0.01, kind, 3),
            filter(layout, 40, 0.1, Kind::other("pg_catalog.inet"), 40),
            full,
            twice,
            merged,
        ]);
    }
    filters
}

/// States of unsized builds: hashes without a size, and bits of more blocks than are needed.
fn states() -> Vec<Vec<u8>> {
    let mut states = filters();
    for layout in Layout::ALL {
        let kind = Kind::of(if layout == Layout::Parquet { Tag::ParquetByteArray } else { Tag::Text });
        let to_be_sized = Header { kind, ..Header::unsized_(layout, 0.01) };
        let mut few: Vec<u8> = to_be_sized.sparse(3);
        few[44..].copy_from_slice(hashes(3).map_bytes().as_slice());
        let large = build::oversized(&to_be_sized, 100).expect("a possible size");
        let mut dense: Vec<u8> = large.dense();
        layout.insert_all(&mut dense[large.prefix_bytes()..], large.hashes, large.blocks, &hashes(20));
        states.extend([few, dense]);
    }
    states
}

/// The little-endian bytes of numbers.
trait Bytes {
    fn map_bytes(&self) -> Vec<u8>;
}

impl Bytes for Vec<u64> {
    fn map_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}

/// Bytes with their length before them.
fn part(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat()
}

fn sizes() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for layout in 0..3u8 {
        for (capacity, fpr) in
            [(1u64, 0.01f64), (1000, 1e-9), (123_457, 0.3), (10_000_000, 1e-6), (i64::MAX as u64, 0.5)]
        {
            let mut input = vec![layout];
            input.extend(capacity.to_le_bytes());
            input.extend([0, 0]);
            input.extend(fpr.to_bits().to_le_bytes());
            input.extend((capacity.wrapping_mul(2)).to_le_bytes());
            input.extend([1, 8]);
            input.extend((capacity / 40 + 1).to_le_bytes());
            inputs.push(input);
        }
    }
    inputs
}

fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let filters = filters();
    let next = |i: usize| &filters[(i + 1) % filters.len()];
    let three = |(i, filter): (usize, &Vec<u8>)| {
        [vec![3 + i as u8 % 4, i as u8, i as u8], part(filter), part(next(i)), part(next(i + 1)), hashes(9).map_bytes()]
            .concat()
    };
    let states = states();
    let two = |state: &Vec<u8>| [part(state), part(&states[states.len() - 2]), 50u64.to_le_bytes().to_vec()].concat();
    let inputs: [(&str, Vec<Vec<u8>>); 4] = [
        ("parse", states.clone()),
        ("operations", filters.iter().enumerate().map(three).collect()),
        ("state", states.iter().map(two).collect()),
        ("sizing", sizes()),
    ];
    for (target, inputs) in inputs {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        for (i, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i:02}")), input).expect("the input can be written");
        }
    }
}
