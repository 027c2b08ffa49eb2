//! The core against the crates `fastbloom` and `parquet` (`Sbbf`): nanoseconds for one integer to
//! be hashed and added, or asked for, with as many bits per element, in a filter larger than the
//! cache and in one that fits it.

use crate::{ROUNDS, show};
use fastbloom::BloomFilter;
use parquet::bloom_filter::Sbbf;
use pg_bloom_benches::median;
use pg_bloom_core::canonical::scalar;
use pg_bloom_core::layout::Shape;
use pg_bloom_core::{Header, Kind, Layout, hash::hash, sizing};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

/// Elements hashed before their bits are set or read.
const BATCH: usize = 512;
const FPR: f64 = 0.01;
const WORKS: [&str; 3] = ["insert", "contains, present", "contains, absent"];

/// A filter to measure.
trait Filter {
    fn insert(&mut self, keys: &[i64]);
    fn count(&self, keys: &[i64]) -> usize;
}

struct Ours {
    shape: Shape,
    payload: Vec<u8>,
}

impl Ours {
    fn new(layout: Layout, capacity: usize) -> Self {
        let size = sizing::size_for_capacity(layout, capacity as u64, FPR)
            .expect("the capacity is a possible one");
        let shape = Header::with_size(size, Kind::NONE).shape();
        Ours { shape, payload: vec![0; shape.payload_bytes() as usize] }
    }
}

fn hash_all<'a>(keys: &[i64], hashes: &'a mut [u64; BATCH]) -> &'a [u64] {
    hashes
        .iter_mut()
        .zip(keys)
        .for_each(|(h, &key)| *h = hash(&scalar::integer(key)));
    &hashes[..keys.len()]
}

impl Filter for Ours {
    fn insert(&mut self, keys: &[i64]) {
        let mut hashes = [0; BATCH];
        for keys in keys.chunks(BATCH) {
            let hashes = hash_all(keys, &mut hashes);
            self.shape.insert_all(&mut self.payload, hashes);
        }
    }

    fn count(&self, keys: &[i64]) -> usize {
        let mut hashes = [0; BATCH];
        let mut count = 0;
        for keys in keys.chunks(BATCH) {
            let hashes = hash_all(keys, &mut hashes);
            self.shape
                .contains_each(&self.payload, hashes, |found| count += usize::from(found));
        }
        count
    }
}

impl Filter for BloomFilter {
    fn insert(&mut self, keys: &[i64]) {
        keys.iter().for_each(|key| {
            BloomFilter::insert(self, key);
        });
    }

    fn count(&self, keys: &[i64]) -> usize {
        keys.iter().filter(|key| self.contains(key)).count()
    }
}

impl Filter for Sbbf {
    fn insert(&mut self, keys: &[i64]) {
        keys.iter().for_each(|key| Sbbf::insert(self, key));
    }

    fn count(&self, keys: &[i64]) -> usize {
        keys.iter().filter(|key| self.check(*key)).count()
    }
}

/// Seconds a key.
fn time(keys: &[i64], repeat: usize, mut work: impl FnMut(&[i64]) -> usize) -> f64 {
    let start = Instant::now();
    for _ in 0..repeat {
        black_box(work(black_box(keys)));
    }
    start.elapsed().as_secs_f64() / (keys.len() * repeat) as f64
}

/// Adds to, and probes, our filter and another, in turn. Returns a cell of the table for each of
/// [`WORKS`].
fn compare(present: &[i64], make: impl Fn() -> (Box<dyn Filter>, Box<dyn Filter>)) -> [String; 3] {
    let absent: Vec<i64> = present.iter().map(|key| !key).collect();
    let repeat = (2_000_000 / present.len()).max(1);
    let mut times: [[Vec<f64>; 2]; 3] = Default::default();
    for _ in 0..ROUNDS {
        let (ours, theirs) = make();
        let mut filters = [ours, theirs];
        for (i, filter) in filters.iter_mut().enumerate() {
            times[0][i].push(time(present, repeat, |keys| {
                filter.insert(keys);
                0
            }));
        }
        for (i, filter) in filters.iter().enumerate() {
            assert_eq!(filter.count(present), present.len(), "an element is missing");
            times[1][i].push(time(present, repeat, |keys| filter.count(keys)));
        }
        for (i, filter) in filters.iter().enumerate() {
            times[2][i].push(time(&absent, repeat, |keys| filter.count(keys)));
        }
    }
    times.map(|[mut ours, mut theirs]| {
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        let cell = format!("{} / {}", show(ours), show(theirs));
        if ours > theirs { format!("**{cell}**") } else { cell }
    })
}

/// The table: for each work the time of ours and of each of the others, which are measured in turn.
pub fn table(rows: usize) -> String {
    let mut table =
        String::from("| ours / theirs | `fastbloom` | `parquet` (`Sbbf`) |\n|---|---:|---:|\n");
    for elements in [100_000, rows] {
        let keys: Vec<i64> = (0..elements as i64).collect();
        for layout in [Layout::Blocked, Layout::Parquet] {
            let ours = || Box::new(Ours::new(layout, elements));
            let bytes = ours().payload.len();
            let fastbloom = compare(&keys, || {
                (ours(), Box::new(BloomFilter::with_num_bits(bytes * 8).expected_items(elements)))
            });
            let sbbf = compare(&keys, || (ours(), Box::new(Sbbf::new(&vec![0; bytes]))));
            for ((work, fastbloom), sbbf) in WORKS.iter().zip(fastbloom).zip(sbbf) {
                let layout = layout.name();
                writeln!(table, "| {work}, {layout}, {elements} elements | {fastbloom} | {sbbf} |")
                    .expect("text can be written to");
            }
        }
    }
    table
}
