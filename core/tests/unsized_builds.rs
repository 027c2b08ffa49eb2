//! Partial states of unsized builds: whatever way the elements are split over them, the filter in
//! the end is the same.

use pg_bloom_core::filter::build::{fold_unsized_build, from_hashes, largest_header};
use pg_bloom_core::filter::{estimate, sparse};
use pg_bloom_core::hash::word;
use pg_bloom_core::{Body, Header, Kind, Layout, View, kind::Tag, sizing};

/// Joins states as an aggregate does: hashes with hashes, and bits of the largest size with both.
fn join(header: &Header<'static>, limit: u64, parts: &[Vec<u64>]) -> Vec<u8> {
    let largest = largest_header(header, limit).expect("a limit that some filter meets");
    let mut list: Vec<u64> = Vec::new();
    let mut bits: Option<Vec<u8>> = None;
    let set = |bits: &mut Vec<u8>, hashes: &[u64]| {
        largest.shape().insert_all(bits, hashes);
    };
    for part in parts {
        let is_list = part.len() as u64 * 8 <= largest.payload_bytes();
        match &mut bits {
            None if is_list => list.extend(part),
            None => {
                let mut made = vec![0; largest.payload_bytes() as usize];
                set(&mut made, &list);
                set(&mut made, part);
                bits = Some(made);
            }
            Some(bits) => set(bits, part),
        }
    }
    match bits {
        Some(bits) => {
            let view = View { header: largest, body: Body::Dense(&bits) };
            let found = estimate::elements_by_fill(&view);
            let error = estimate::standard_error(largest.shape(), found);
            let capacity = sizing::capacity_of(largest.shape(), largest.fpr);
            let most = (found + 4.0 * error).ceil() as u64;
            let elements = if found <= capacity as f64 { most.min(capacity) } else { most };
            fold_unsized_build(&largest, &bits, elements, limit).expect("it fits the limit")
        }
        None => {
            let distinct = sparse::sort_distinct(&mut list, 0);
            from_hashes(header, &list[..distinct], limit).expect("it fits the limit")
        }
    }
}

#[test]
fn the_filter_does_not_depend_on_how_many_states_there_were() {
    const LIMIT: u64 = 150_000;
    for (seed, layout) in Layout::ALL.into_iter().enumerate() {
        for fpr in [0.1, 0.01, 1e-4] {
            let tag = if layout == Layout::Parquet { Tag::ParquetByteArray } else { Tag::Bytea };
            let header = Header {
                kind: Kind::unnamed(tag),
                ..Header::without_size(layout, fpr)
            };
            let all: Vec<u64> = (0..20_000).map(|i| word(i, seed as u32)).collect();
            let mut whole = all.clone();
            let distinct = sparse::sort_distinct(&mut whole, 0);
            let expected: Vec<u8> =
                from_hashes(&header, &whole[..distinct], LIMIT).expect("it fits the limit");
            let rate = |bytes: &[u8]| estimate::current_fpr(&View::parse(bytes).expect("a filter"));
            assert!(rate(&expected) <= fpr);
            for states in (1..=32).chain([100, 1025]) {
                // Equal shares; shares that shrink by a half; all in one; each element in three
                // states.
                let by = |share: &dyn Fn(usize) -> usize| {
                    let mut parts = vec![Vec::new(); states];
                    all.iter()
                        .enumerate()
                        .for_each(|(i, &hash)| parts[share(i).min(states - 1)].push(hash));
                    parts
                };
                let mut thrice = by(&|i| i % states);
                for (i, &hash) in all.iter().enumerate() {
                    thrice[(i * 7 + 1) % states].push(hash);
                    thrice[(i * 5 + 2) % states].push(hash);
                }
                let splits = [
                    by(&|i| i % states),
                    by(&|i| (i + 1).trailing_zeros() as usize),
                    by(&|_| states / 2),
                    thrice,
                ];
                for (n, parts) in splits.iter().enumerate() {
                    let built = join(&header, LIMIT, parts);
                    assert!(
                        built == expected,
                        "{layout:?}, rate {fpr}, {states} states, split {n}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_largest_size_is_the_largest() {
    for layout in Layout::ALL {
        for fpr in [0.5, 0.01, 1e-6] {
            let header = Header::without_size(layout, fpr);
            for limit in [200, 1000, 65_535, 65_580, 1 << 20, 256 << 20, 511 << 20] {
                let Ok(largest) = largest_header(&header, limit) else {
                    assert!(limit < 1000, "{layout:?} {fpr} {limit}");
                    continue;
                };
                assert!(largest.dense_bytes() <= limit && largest.blocks.is_power_of_two());
                let twice = Header { blocks: largest.blocks * 2, ..largest };
                assert!(twice.dense_bytes() > limit, "{layout:?} {fpr} {limit}");
                // Nothing that may be made in the end needs more.
                let size = sizing::power_of_two_size(layout, 1 << 40, fpr).expect("a size");
                assert!(size.blocks > largest.blocks);
            }
        }
    }
}
