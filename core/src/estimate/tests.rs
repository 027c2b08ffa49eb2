use super::*;
use crate::build::from_hashes;
use crate::kind::{Kind, Tag};
use crate::{rate, sizing};

fn random_hashes(seed: u64, n: u64) -> Vec<u64> {
    let mut hashes: Vec<u64> = (0..n).map(|i| crate::hash::hash(&[seed, i].map(u64::to_le_bytes).concat())).collect();
    hashes.sort_unstable();
    hashes
}

fn build(layout: Layout, capacity: u64, fpr: f64, hashes: &[u64]) -> Vec<u8> {
    let size = sizing::size(layout, capacity, fpr).unwrap();
    from_hashes(&Header::sized(size, Kind::of(Tag::Numeric)), hashes, u64::MAX).unwrap()
}

#[test]
fn cardinality_is_within_two_percent_from_a_tenth_to_one_and_a_half() {
    for layout in Layout::ALL {
        for share in [10_000, 50_000, 100_000, 150_000] {
            let value = build(layout, 100_000, 0.01, &random_hashes(share, share));
            let found = cardinality(&View::parse(&value).unwrap());
            assert!((found / share as f64 - 1.0).abs() < 0.02, "{layout:?}: {found} for {share}");
        }
    }
}

/// The spread of 200 estimates is the standard error that is claimed.
#[test]
fn standard_errors_are_true() {
    for layout in Layout::ALL {
        let n = 5000;
        let size = sizing::size(layout, n, 0.01).unwrap();
        let claimed = standard_error(layout, size.hashes, size.blocks, n as f64);
        let squares: f64 = (0..200)
            .map(|seed| {
                let value = build(layout, n, 0.01, &random_hashes(seed, n));
                (cardinality(&View::parse(&value).unwrap()) - n as f64).powi(2)
            })
            .sum();
        let measured = (squares / 200.0).sqrt();
        // A standard deviation from 200 values is known to about 5 %.
        assert!((measured / claimed - 1.0).abs() < 0.25, "{layout:?}: {measured} for {claimed}");
    }
}

#[test]
fn the_present_rate_is_the_expected_one() {
    for layout in Layout::ALL {
        for fpr in [0.1, 0.01, 1e-3] {
            // The mean of ten filters: in one, a few crowded blocks make several percent.
            let found = (0..10)
                .map(|seed| {
                    current_fpr(&View::parse(&build(layout, 50_000, fpr, &random_hashes(seed, 50_000))).unwrap())
                })
                .sum::<f64>()
                / 10.0;
            let size = sizing::size(layout, 50_000, fpr).unwrap();
            let expected = rate::expected(layout, size.hashes, size.blocks, 50_000.0);
            assert!((found / expected - 1.0).abs() < 0.05, "{layout:?} {fpr}: {found} for {expected}");
        }
    }
}

#[test]
fn sparse_filters_know_the_bits_of_their_dense_form() {
    for layout in Layout::ALL {
        let value = build(layout, 2000, 0.01, &random_hashes(3, 100));
        let view = View::parse(&value).unwrap();
        assert!(matches!(view.body, Body::Sparse(_)));
        let mut bits = vec![0; view.header.payload_bytes() as usize];
        crate::merge::or_into(&mut bits, view.header.blocks, &view);
        let found = info(&view);
        assert_eq!(found.bits_set, count_ones(&bits));
        assert_eq!(found.cardinality, 100.0);
        let Body::Sparse(entries) = view.body else { unreachable!() };
        let (a, b) = (rate_of_hashes(&view.header, entries), rate_of_bits(&view.header, &bits));
        assert!((a - b).abs() < 1e-12 * a.max(1e-300) + 1e-300, "{a} {b}");
    }
}

#[test]
fn overfull_is_seen_above_the_tolerance_and_not_below() {
    for layout in Layout::ALL {
        for capacity in [100, 2000, 100_000] {
            for seed in 0..20 {
                let at = build(layout, capacity, 0.01, &random_hashes(seed, capacity));
                assert_eq!(overfull(&View::parse(&at).unwrap()), None, "{layout:?} {capacity} seed {seed}");
                let twice = build(layout, capacity, 0.01, &random_hashes(seed, capacity * 2));
                let over = overfull(&View::parse(&twice).unwrap()).expect("twice the capacity is overfull");
                assert!((over.cardinality / (capacity * 2) as f64 - 1.0).abs() < 0.25);
            }
        }
    }
}

#[test]
fn a_filter_that_finds_everything_says_so() {
    let value = build(Layout::Blocked, 10, 0.1, &random_hashes(1, 5000));
    let view = View::parse(&value).unwrap();
    let found = info(&view);
    assert!(found.saturated && found.cardinality.is_infinite());
    assert_eq!((found.current_fpr, found.fill_ratio), (1.0, 1.0));
    assert!(overfull(&view).is_some());
}

#[test]
fn intersections_are_between_nothing_and_the_smaller() {
    assert_eq!(intersection_cardinality(10.0, 5.0, 12.0), 3.0);
    assert_eq!(intersection_cardinality(10.0, 5.0, 16.0), 0.0);
    assert_eq!(intersection_cardinality(10.0, 5.0, 9.0), 5.0);
}

#[test]
fn the_smallest_filter_can_be_full() {
    let size = sizing::Size { layout: Layout::Classic, hashes: 3, blocks: 1, capacity: 1, fpr: 0.5 };
    let full: Vec<u8> = from_hashes(&Header::sized(size, Kind::of(Tag::Numeric)), &[7], u64::MAX).unwrap();
    let view = View::parse(&full).unwrap();
    assert_eq!((cardinality(&view), info(&view).saturated), (f64::INFINITY, true));
}

/// More positions than are kept as numbers, in more than one window of bits.
#[test]
fn a_large_sparse_classic_filter_counts_the_bits_of_its_dense_form() {
    let hashes = random_hashes(3, 150_000);
    let size = sizing::Size { layout: Layout::Classic, hashes: 8, blocks: (200 << 23) + 7, capacity: 1000, fpr: 0.01 };
    let header = Header::sized(size, Kind::of(Tag::Numeric));
    let value: Vec<u8> = from_hashes(&header, &hashes, u64::MAX).unwrap();
    let mut positions: Vec<u64> = hashes.iter().flat_map(|&h| Layout::bits(8, header.blocks, h)).collect();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(info(&View::parse(&value).unwrap()).bits_set, positions.len() as u64);
}
