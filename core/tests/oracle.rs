//! Filters against a textbook filter that works bit by bit, with the plainest arithmetic there is.

use pg_bloom_core::filter::build::{contains, from_hashes};
use pg_bloom_core::filter::{Body, Header, View};
use pg_bloom_core::hash::hash;
use pg_bloom_core::kind::{Kind, Tag};
use pg_bloom_core::layout::Layout;
use pg_bloom_core::sizing::FilterSize;
use proptest::prelude::*;

const MASK: u128 = u64::MAX as u128;

/// Word `j` of a hash: SplitMix64, in 128-bit arithmetic modulo 2^64.
fn word(h: u64, j: u128) -> u128 {
    let mut z = (u128::from(h) + (j + 1) * 0x9E37_79B9_7F4A_7C15) & MASK;
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK;
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & MASK;
    z ^ (z >> 31)
}

/// The positions of an element in the whole payload, as docs/format.md defines them.
fn positions(layout: Layout, k: u128, blocks: u128, h: u64) -> Vec<u128> {
    const SALT: [u128; 8] = [
        0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947,
        0x5c6bfb31,
    ];
    match layout {
        Layout::Blocked => {
            let block = (u128::from(h) * blocks) >> 64;
            (0..k)
                .map(|i| block * 512 + ((word(h, i / 7) >> (9 * (i % 7))) & 511))
                .collect()
        }
        Layout::Classic => (0..k).map(|i| (word(h, i) * blocks) >> 64).collect(),
        Layout::Parquet => {
            let block = (u128::from(h >> 32) * blocks) >> 32;
            let low = u128::from(h & 0xFFFF_FFFF);
            (0..8)
                .map(|i| block * 256 + i * 32 + (((low * SALT[i as usize]) & 0xFFFF_FFFF) >> 27))
                .collect()
        }
    }
}

fn dense(layout: Layout, hashes: u32, blocks: u64, elements: &[u64]) -> Vec<u8> {
    let size = FilterSize { layout, num_hashes: hashes, blocks, capacity: 1, fpr: 0.01 };
    let header = Header::with_size(size, Kind::unnamed(Tag::Numeric));
    let mut value: Vec<u8> = header.dense();
    header
        .shape()
        .insert_all(&mut value[header.prefix_bytes()..], elements);
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bits_are_those_of_the_textbook(
        layout in prop::sample::select(&Layout::ALL),
        k in 1u32..34,
        blocks in 1u64..400,
        elements in prop::collection::vec(any::<u64>(), 1..60),
        absent in prop::collection::vec(any::<u64>(), 1..60),
    ) {
        let k = if layout == Layout::Parquet { 8 } else { k };
        let value = dense(layout, k, blocks, &elements);
        let view = View::parse(&value).unwrap();
        let Body::Dense(bits) = view.body else { unreachable!() };
        let mut oracle = vec![false; bits.len() * 8];
        for &h in &elements {
            for p in positions(layout, u128::from(k), u128::from(blocks), h) {
                oracle[p as usize] = true;
            }
        }
        let found: Vec<bool> = (0..oracle.len()).map(|i| bits[i / 8] >> (i % 8) & 1 == 1).collect();
        prop_assert_eq!(&found, &oracle);
        for &h in elements.iter().chain(&absent) {
            let all = positions(layout, u128::from(k), u128::from(blocks), h).iter().all(|&p| oracle[p as usize]);
            prop_assert_eq!(contains(&view, h), all);
        }
    }
}

/// Index arithmetic above 2^32 bits: the last blocks of a 511 MB filter are reached, and none
/// beyond.
#[test]
fn filters_above_four_billion_bits() {
    for layout in [Layout::Blocked, Layout::Classic] {
        let blocks = (510 * 1024 * 1024 * 8) / layout.block_bits();
        let elements = [u64::MAX, u64::MAX - 1, 0, hash(b"x")];
        let value = dense(layout, 7, blocks, &elements);
        let view = View::parse(&value).unwrap();
        assert!(elements.iter().all(|&h| contains(&view, h)));
        assert!(!contains(&view, hash(b"y")));
        let Body::Dense(bits) = view.body else {
            unreachable!()
        };
        for &h in &elements {
            for p in positions(layout, 7, u128::from(blocks), h) {
                assert_eq!(bits[(p / 8) as usize] >> (p % 8) & 1, 1);
            }
        }
    }
}

/// Frozen: the payloads of these filters can never change.
#[test]
fn payloads_are_frozen() {
    let elements: Vec<u64> = ["", "a", "bloom", "https://www.postgresql.org/"]
        .map(|s| hash(s.as_bytes()))
        .to_vec();
    let digest = |layout, k, blocks| {
        let value = dense(layout, k, blocks, &elements);
        let Body::Dense(bits) = View::parse(&value).unwrap().body else {
            unreachable!()
        };
        hash(bits)
    };
    assert_eq!(
        [
            digest(Layout::Blocked, 6, 39),
            digest(Layout::Blocked, 18, 76),
            digest(Layout::Classic, 7, 9600),
            digest(Layout::Parquet, 8, 42)
        ],
        [
            14881863870640535226,
            1425779473468492646,
            5640156947153503851,
            9404536503101227387
        ]
    );
}

#[test]
fn unsized_filters_keep_their_sets() {
    for layout in Layout::ALL {
        let mut hashes: Vec<u64> = (0..5000u64).map(|i| hash(&i.to_le_bytes())).collect();
        hashes.sort_unstable();
        let header = Header {
            kind: Kind::unnamed(Tag::Numeric),
            ..Header::without_size(layout, 0.01)
        };
        let value: Vec<u8> = from_hashes(&header, &hashes, u64::MAX).unwrap();
        let view = View::parse(&value).unwrap();
        assert!(
            view.header.blocks.is_power_of_two() && view.header.capacity.elements() >= Some(5000)
        );
        assert!(hashes.iter().all(|&h| contains(&view, h)));
    }
}
