//! Writes the inputs that fuzzing starts from: filters of every sort as the library makes them.
//!
//! `cargo run -p pg_bloom_core --example fuzz_seeds -- core/fuzz/corpus`

use pg_bloom_core::counting::{self, Counting};
use pg_bloom_core::filter::{build, merge};
use pg_bloom_core::index::filters;
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::index::ranges::memory::MemoryRanges;
use pg_bloom_core::index::ranges::{Options, PageSize};
use pg_bloom_core::kind::Tag;
use pg_bloom_core::set::SetForm;
use pg_bloom_core::set::memory::MemorySet;
use pg_bloom_core::{Header, Kind, Layout, View, hash, parquet, sizing};
use std::path::Path;

/// As many ascending hashes of elements.
fn hashes(elements: u64) -> Vec<u64> {
    let mut hashes: Vec<u64> = (0..elements).map(|i| hash::hash(&i.to_le_bytes())).collect();
    hashes.sort_unstable();
    hashes
}

fn filter(layout: Layout, capacity: u64, fpr: f64, kind: Kind<'_>, elements: u64) -> Vec<u8> {
    let size = sizing::size_for_capacity(layout, capacity, fpr).expect("a possible size");
    build::from_hashes(&Header::with_size(size, kind), &hashes(elements), u64::MAX)
        .expect("a small filter")
}

/// Filters of every layout: empty, sparse, dense, full, of named kinds, merged with others, of no
/// size.
fn filters() -> Vec<Vec<u8>> {
    let mut filters: Vec<Vec<u8>> = vec![Header::without_size(Layout::Blocked, 0.01).sparse(0)];
    for layout in Layout::ALL {
        let kind =
            Kind::unnamed(if layout == Layout::Parquet { Tag::ParquetInt32 } else { Tag::Integer });
        let full = filter(layout, 30, 0.01, kind, 40);
        let twice = filter(layout, 60, 0.01, kind, 50);
        // Small sizes of `classic` don't divide each other.
        let merged = View::parse(&full)
            .and_then(|full| merge::union(&full, &View::parse(&twice)?, u64::MAX));
        filters.extend([
            Header::without_size(layout, 0.2).sparse(0),
            filter(layout, 50, 0.01, Kind::NONE, 0),
            filter(layout, 1000, 0.001, kind, 5),
            filter(layout, 300_000_000, 0.01, kind, 3),
            filter(layout, 40, 0.1, Kind::other("pg_catalog.inet"), 40),
            full,
            twice,
        ]);
        filters.extend(merged);
    }
    filters
}

/// States of unsized builds: hashes without a size, and bits of more blocks than are needed.
fn states() -> Vec<Vec<u8>> {
    let mut states = filters();
    for layout in Layout::ALL {
        let kind = Kind::unnamed(if layout == Layout::Parquet {
            Tag::ParquetByteArray
        } else {
            Tag::Text
        });
        let to_be_sized = Header { kind, ..Header::without_size(layout, 0.01) };
        let mut few: Vec<u8> = to_be_sized.sparse(3);
        few[44..].copy_from_slice(hashes(3).map_bytes().as_slice());
        let large = build::largest_header(&to_be_sized, 200).expect("a possible size");
        let mut dense: Vec<u8> = large.dense();
        large
            .shape()
            .insert_all(&mut dense[large.prefix_bytes()..], &hashes(20));
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
        for (capacity, fpr) in [
            (1u64, 0.01f64),
            (1000, 1e-9),
            (123_457, 0.3),
            (10_000_000, 1e-6),
            (i64::MAX as u64, 0.5),
        ] {
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

/// Filters of Parquet files, stored filters that can be written to such, and inputs that say how to
/// write a header.
fn parquet() -> Vec<Vec<u8>> {
    let kinds = [
        Tag::None,
        Tag::ParquetInt32,
        Tag::ParquetFloat,
        Tag::ParquetDouble,
        Tag::ParquetByteArray,
    ];
    let mut inputs = Vec::new();
    for (kind, elements) in kinds.into_iter().zip([0, 5, 40, 300, 900]) {
        let kind = if elements == 0 { Kind::NONE } else { Kind::unnamed(kind) };
        let value = filter(Layout::Parquet, elements.max(20), 0.01, kind, elements);
        let view = View::parse(&value).expect("a filter");
        inputs.push(parquet::export(&view, u64::MAX).expect("a filter of Parquet"));
        inputs.push(value);
    }
    // How many blocks, how to write their header, bits: an unknown field of each type, then a known
    // one.
    for wire_type in 0..13u8 {
        let script = [
            2,
            4,
            0,
            100,
            wire_type,
            wire_type,
            3,
            wire_type,
            2,
            1,
            2,
            3,
            4,
            5,
            wire_type % 4,
            7,
        ];
        inputs.push([vec![wire_type * 19], part(&script), hashes(4).map_bytes()].concat());
    }
    // Lists in lists and structs in structs, as deep as may be and deeper.
    for (nested, depth) in [
        (&[1u8, 8][..], 62),
        (&[1, 8], 70),
        (&[1, 1, 11], 62),
        (&[1, 1, 11], 70),
    ] {
        let script = [
            &[1, 4, 0, 200, 0, nested[nested.len() - 1]],
            &nested.repeat(depth)[..],
        ]
        .concat();
        inputs.push([vec![0], part(&script)].concat());
    }
    inputs
}

/// Counting filters: of no size, without elements, of named kinds, with counters that are full.
fn counting_filters() -> Vec<Vec<u8>> {
    let empty = |capacity, fpr| -> Vec<u8> {
        counting::empty(&counting::sized_header(capacity, fpr, u64::MAX).expect("a possible size"))
    };
    let grown = |value: &[u8], kind: Kind<'_>, elements: u64, copies: usize| -> Vec<u8> {
        let filter = Counting::parse(value).expect("a counting filter");
        filter
            .add(kind, &hashes(elements).repeat(copies))
            .expect("elements of the first kind")
    };
    let text = Kind::unnamed(Tag::Text);
    vec![
        counting::empty(&counting::unsized_header(0.01).expect("a possible rate")),
        counting::empty(&counting::unsized_header(0.2).expect("a possible rate")),
        empty(50, 0.01),
        grown(&empty(50, 0.01), text, 3, 1),
        grown(&empty(50, 0.01), text, 60, 2),
        grown(&empty(30, 0.001), Kind::other("pg_catalog.inet"), 30, 1),
        grown(&empty(40, 0.3), Kind::unnamed(Tag::Uuid), 10, 14),
        grown(&empty(100, 0.1), Kind::unnamed(Tag::Integer), 4, 40),
    ]
}

/// Histories of indexes: built and appended, of many sizes, with damage; and directories to start
/// from.
fn ranges() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (built, each, hold) in [
        (0u16, 0u8, 0u16),
        (5, 3, 0),
        (130, 9, 500),
        (600, 4, 0),
        (700, 2, 60_000),
    ] {
        for (fpr, steps) in [(1u8, 0u8), (2, 40), (0, 120), (3, 200)] {
            let options = [
                &[fpr, 10][..],
                &built.to_le_bytes(),
                &[each],
                &hold.to_le_bytes(),
            ]
            .concat();
            let history = (0..steps).flat_map(|i| [i.wrapping_mul(37), i, i / 3]);
            let damage: Vec<u8> =
                (0..fpr).flat_map(|i| [i * 3, 56 + i * 17, 0, 1 << (i % 8)]).collect();
            inputs.push(
                [
                    part(&options.into_iter().chain(history).collect::<Vec<u8>>()),
                    part(&damage),
                ]
                .concat(),
            );
        }
    }
    // Metapages of 1,024 bytes as they are written, without header and end; and one whose runs are
    // in a directory page.
    for ranges in [1u64, 100, 700] {
        let lists = (0..ranges).map(|range| hashes(range % 5));
        let size = PageSize::new(1024).expect("a possible size");
        let options = Options { fpr: Some(0.01), ..Options::for_empty_table(size, 8, 3) };
        let index = MemoryRanges::build(options, 0, lists).expect("possible options");
        let meta = index.memory.pages[0][size.payload()].to_vec();
        inputs.push([&[0; 4][..], &meta].concat());
        let mut moved = meta.clone();
        moved[40..52].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let closed = [&[0; 4][..], &meta[48..52], &meta[64..]].concat();
        inputs.push([&[0; 4][..], &moved, &closed].concat());
    }
    inputs
}

/// Histories of indexes over filters: of each filter alone and of several, with damage; and
/// directories to start from.
fn rows() -> Vec<Vec<u8>> {
    let filters = filters();
    let mut inputs = Vec::new();
    for (i, filter) in filters.iter().enumerate() {
        let next = |by: usize| part(&filters[(i + by) % filters.len()]);
        let steps = (0..20 * (i as u8 % 4)).flat_map(|step| [step.wrapping_mul(37), step / 3]);
        let history: Vec<u8> = [i as u8 * 9, 0, 4].into_iter().chain(steps).collect();
        let damage: Vec<u8> = (0..i as u8 % 3)
            .flat_map(|n| [n * 3, 32 + i as u8, 0, 1 << (n % 8)])
            .collect();
        inputs.push(
            [
                vec![2],
                part(filter),
                next(1),
                next(9),
                part(&history),
                part(&damage),
            ]
            .concat(),
        );
    }
    let size = PageSize::new(1024).expect("a possible size");
    for count in [1usize, 30, 400] {
        let views = filters
            .iter()
            .cycle()
            .take(count)
            .map(|filter| View::parse(filter).expect("a filter"));
        let rows = views.zip(1..).map(|(view, page)| (RowId { page, line: 1 }, view));
        let index =
            filters::memory::MemoryFilters::build(size, 5_000, rows).expect("possible filters");
        // The directory pages come right after the metapage.
        let meta = index.memory.pages[0][size.payload()].to_vec();
        let pages = index
            .directory
            .chain
            .pages
            .iter()
            .flat_map(|&page| &index.memory.pages[page as usize][size.payload()]);
        inputs.push([&[0; 7][..], &meta, &pages.copied().collect::<Vec<u8>>()].concat());
    }
    inputs
}

/// Rows of sets of every form, with histories that change some of their elements.
fn sets() -> Vec<Vec<u8>> {
    let forms = [16u32, 20, 28, 40, 60]
        .into_iter()
        .flat_map(|bits| [false, true].map(|forgets| SetForm { bits, forgets }));
    let input = |(i, form): (usize, SetForm)| {
        let mut set = MemorySet::new(form, 512, i as u32 % 12);
        set.put(&hashes(40 * i as u64 * i as u64), 7);
        let (bucket, row) = set.rows.first_key_value().expect("a set has rows");
        let shape = u8::from(form.forgets) | (i as u8 * 29) & 0xfe;
        let head = [
            vec![form.bits as u8 - 16, shape],
            bucket.to_le_bytes().to_vec(),
            part(row),
        ]
        .concat();
        let steps = (0..4 * i as u16).flat_map(|step| match step % 7 {
            0..3 => [&[0, 3][..], &[step as u8, 0, step as u8 + 1, 1, 9, 0]].concat(),
            3 | 4 => vec![2, step as u8 - 1, 0],
            5 => vec![3, 95 + step as u8 % 20],
            _ => vec![4, step as u8, 0],
        });
        [head, vec![128], steps.collect()].concat()
    };
    let all: Vec<SetForm> = forms.collect();
    all.iter().chain(&all).copied().enumerate().map(input).collect()
}

fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let filters = filters();
    let next = |i: usize| &filters[(i + 1) % filters.len()];
    let three = |(i, filter): (usize, &Vec<u8>)| {
        [
            vec![3 + i as u8 % 4, i as u8, i as u8],
            part(filter),
            part(next(i)),
            part(next(i + 1)),
            hashes(9).map_bytes(),
        ]
        .concat()
    };
    let states = states();
    let two = |state: &Vec<u8>| {
        [
            part(state),
            part(&states[states.len() - 2]),
            50u64.to_le_bytes().to_vec(),
        ]
        .concat()
    };
    let counting = counting_filters();
    let sums = |(i, filter): (usize, &Vec<u8>)| {
        let next = |by: usize| part(&counting[(i + by) % counting.len()]);
        let choices = vec![i as u8, 128 + 31 * (i as u8 % 2), 100];
        [
            choices,
            part(filter),
            next(1),
            next(2),
            hashes(8).map_bytes(),
            vec![1, 0, 2, 15, 16, 1, 3, 1],
        ]
        .concat()
    };
    let inputs: [(&str, Vec<Vec<u8>>); 9] = [
        ("parse", states.clone()),
        ("operations", filters.iter().enumerate().map(three).collect()),
        ("state", states.iter().map(two).collect()),
        ("sizing", sizes()),
        ("parquet", parquet()),
        (
            "counting",
            counting
                .iter()
                .cloned()
                .chain(counting.iter().enumerate().map(sums))
                .collect(),
        ),
        ("index_keys", ranges()),
        ("index_filters", rows()),
        ("sets", sets()),
    ];
    for (target, inputs) in inputs {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        for (i, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i:02}")), input)
                .expect("the input can be written");
        }
    }
}
