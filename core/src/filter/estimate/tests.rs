use super::*;
use crate::filter::build::tests::built;
use crate::filter::build::{Request, from_hashes};
use crate::kind::{Kind, Tag};
use crate::sizing;
use crate::sizing::rate;

fn random_hashes(seed: u64, n: u64) -> Vec<u64> {
    (0..n)
        .map(|i| crate::hash::hash(&[seed, i].map(u64::to_le_bytes).concat()))
        .collect()
}

fn build(layout: Layout, capacity: u64, fpr: f64, hashes: &[u64]) -> Vec<u8> {
    built(Request { capacity: Some(capacity), fpr, layout }, Tag::Numeric, hashes)
}

#[test]
fn cardinality_is_within_two_percent_from_a_tenth_to_one_and_a_half() {
    for layout in Layout::ALL {
        for fpr in [0.1, 0.01, 1e-3, 1e-6] {
            for n in [10_000, 25_000, 50_000, 75_000, 100_000, 125_000, 150_000] {
                let value = build(layout, 100_000, fpr, &random_hashes(n, n));
                let view = View::parse(&value).unwrap();
                let found = cardinality(&view);
                assert!((found / n as f64 - 1.0).abs() < 0.02, "{layout:?} {fpr}: {found} for {n}");
                let exact = matches!(view.body, Body::Sparse(_));
                assert!(!exact || found == n as f64, "{layout:?} {fpr}: {found} for {n}");
            }
        }
    }
}

fn merge_two(a: &[u8], b: &[u8]) -> Vec<u8> {
    crate::filter::merge::union(&View::parse(a).unwrap(), &View::parse(b).unwrap(), u64::MAX)
        .unwrap()
}

/// Filters of one rate, each with a capacity and the range of numbers that it holds.
fn merged(layout: Layout, parts: &[(u64, std::ops::Range<usize>)]) -> (f64, f64) {
    let numbers: Vec<u64> = (0..200_000u64).map(|i| crate::hash::hash(&i.to_le_bytes())).collect();
    let mut held = std::collections::HashSet::new();
    let value = parts
        .iter()
        .map(|(capacity, range)| {
            held.extend(range.clone());
            build(layout, *capacity, 0.01, &numbers[range.clone()])
        })
        .reduce(|a, b| merge_two(&a, &b))
        .unwrap();
    (cardinality(&View::parse(&value).unwrap()), held.len() as f64)
}

/// Of sizes from an eighth of the largest on, as long as the smallest would hold the union: then
/// folding to it is enough.
#[test]
fn cardinality_is_right_after_merges_across_sizes() {
    for layout in Layout::ALL {
        for parts in [
            &[(100_000, 0..60_000), (200_000, 40_000..140_000)][..],
            &[(200_000, 0..150_000), (100_000, 0..100_000)],
            &[
                (50_000, 0..30_000),
                (100_000, 30_000..50_000),
                (400_000, 10_000..70_000),
            ],
            &[
                (400_000, 0..20_000),
                (50_000, 0..50_000),
                (100_000, 5_000..15_000),
                (200_000, 49_000..50_000),
            ],
            &[(100_000, 0..100), (800_000, 50..100_000)],
        ] {
            let (found, truth) = merged(layout, parts);
            assert!(
                (found / truth - 1.0).abs() < 0.02,
                "{layout:?} {parts:?}: {found} for {truth}"
            );
        }
    }
}

/// A small filter with next to nothing in it says little, but takes nothing away from what the
/// large one says.
#[test]
fn cardinality_survives_a_merge_with_a_small_filter_that_holds_little() {
    for layout in Layout::ALL {
        for small in [25_000, 12_500, 6_250, 3_125] {
            for held in [0, 1, 20] {
                let (found, truth) = merged(layout, &[(100_000, 0..100_000), (small, 0..held)]);
                assert!(
                    (found / truth - 1.0).abs() < 0.02,
                    "{layout:?} {held} in {small}: {found} for {truth}"
                );
                let parts = [
                    (100_000, 0..60_000),
                    (small, 0..held),
                    (50_000, 20_000..40_000),
                ];
                let (found, truth) = merged(layout, &parts);
                assert!(
                    (found / truth - 1.0).abs() < 0.02,
                    "{layout:?} {held} in {small}, three: {found} for {truth}"
                );
            }
        }
    }
}

/// The spread of 200 estimates is the standard error that is claimed.
#[test]
fn standard_errors_are_true() {
    for layout in Layout::ALL {
        let n = 5000;
        let size = sizing::size_for_capacity(layout, n, 0.01).unwrap();
        let claimed = standard_error(size.shape(), n as f64);
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
                    current_fpr(
                        &View::parse(&build(layout, 50_000, fpr, &random_hashes(seed, 50_000)))
                            .unwrap(),
                    )
                })
                .sum::<f64>()
                / 10.0;
            let size = sizing::size_for_capacity(layout, 50_000, fpr).unwrap();
            let expected = rate::expected(size.shape(), 50_000.0);
            assert!(
                (found / expected - 1.0).abs() < 0.05,
                "{layout:?} {fpr}: {found} for {expected}"
            );
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
        crate::filter::merge::or_into(&mut bits, view.header.blocks, &view);
        let found = info(&view);
        assert_eq!(found.bits_set, count_ones(&bits));
        assert_eq!(found.cardinality, 100.0);
        let Body::Sparse(entries) = view.body else {
            unreachable!()
        };
        let (a, b) = (dense_form_of(&view.header, entries).fpr, rate_of_bits(&view.header, &bits));
        assert!((a - b).abs() < 1e-12 * a.max(1e-300) + 1e-300, "{a} {b}");
    }
}

#[test]
fn a_filter_that_finds_everything_says_so() {
    for layout in Layout::ALL {
        let value = build(layout, 10, 0.1, &random_hashes(1, 50_000));
        let view = View::parse(&value).unwrap();
        let found = info(&view);
        assert!(found.saturated && found.cardinality.is_infinite(), "{layout:?}");
        assert_eq!((found.current_fpr, found.fill_ratio), (1.0, 1.0));
        assert!(crate::filter::overfull::overfull(&view).is_some());
        // Merged with another, it still finds everything, and there is nothing to tell an
        // intersection from.
        let other = build(layout, 10, 0.1, &random_hashes(2, 5));
        let both = cardinality(&View::parse(&merge_two(&value, &other)).unwrap());
        assert!(both.is_infinite());
        assert!(intersection_cardinality(found.cardinality, 5.0, both).is_nan());
        assert!(jaccard(found.cardinality, 5.0, both).is_nan());
    }
}

#[test]
fn intersections_are_between_nothing_and_the_smaller() {
    assert_eq!(intersection_cardinality(10.0, 5.0, 12.0), 3.0);
    assert_eq!(intersection_cardinality(10.0, 5.0, 16.0), 0.0);
    assert_eq!(intersection_cardinality(10.0, 5.0, 9.0), 5.0);
}

/// Two filters whose union has `union` elements, of which `common` are in both: the estimates less
/// the truth, for the union, the intersection and the Jaccard index.
fn errors_of_two(
    layout: Layout,
    capacities: [u64; 2],
    fpr: f64,
    union: usize,
    common: usize,
    seed: u64,
) -> [f64; 3] {
    let hashes = random_hashes(seed, union as u64);
    let split = common + (union - common) / 2;
    let a = build(layout, capacities[0], fpr, &hashes[..split]);
    let b = build(layout, capacities[1], fpr, &[&hashes[..common], &hashes[split..]].concat());
    let [a, b, u] = [&a, &b, &merge_two(&a, &b)].map(|f| cardinality(&View::parse(f).unwrap()));
    let (truth, truth_of_both) = (union as f64, common as f64);
    [
        u - truth,
        intersection_cardinality(a, b, u) - truth_of_both,
        jaccard(a, b, u) - truth_of_both / truth,
    ]
}

/// The errors that docs/reference.md states: with u elements in the union, a standard error of at
/// most half the root of u up to capacity and the root of u up to twice of it, for unions and
/// intersections; divided by u for the Jaccard index. Of filters of different sizes, the smaller
/// capacity counts.
#[test]
fn two_filters_are_compared_within_the_stated_error() {
    const CAPACITY: u64 = 6000;
    const SEEDS: u64 = 15;
    for layout in Layout::ALL {
        for (fpr, times) in [(0.1, 1), (0.01, 1), (1e-3, 1), (0.01, 2), (0.01, 8)] {
            for (union, roots) in [(3000, 0.5), (6000, 0.5), (12_000, 1.0)] {
                for common in [0, union / 2, union * 9 / 10] {
                    let mut squares = [0.0; 3];
                    let stated = [1.0, 1.0, 1.0 / union as f64]
                        .map(|unit| unit * roots * (union as f64).sqrt());
                    for seed in 0..SEEDS {
                        let errors = errors_of_two(
                            layout,
                            [CAPACITY * times, CAPACITY],
                            fpr,
                            union,
                            common,
                            seed,
                        );
                        for i in 0..3 {
                            squares[i] += errors[i] * errors[i];
                            assert!(
                                errors[i].abs() <= 4.5 * stated[i],
                                "{layout:?} {fpr} {times} {union} {common}: {errors:?}"
                            );
                        }
                    }
                    let found = squares.map(|sum| (sum / SEEDS as f64).sqrt());
                    let within = (0..3).all(|i| found[i] <= stated[i]);
                    assert!(
                        within,
                        "{layout:?} {fpr} {times} {union} {common}: {found:?} where {stated:?} is stated"
                    );
                }
            }
        }
    }
}

#[test]
fn the_smallest_filter_can_be_full() {
    let size = sizing::FilterSize {
        layout: Layout::Classic,
        num_hashes: 3,
        blocks: 1,
        capacity: 1,
        fpr: 0.5,
    };
    let full: Vec<u8> =
        from_hashes(&Header::with_size(size, Kind::unnamed(Tag::Numeric)), &[7], u64::MAX).unwrap();
    let view = View::parse(&full).unwrap();
    assert_eq!((cardinality(&view), info(&view).saturated), (f64::INFINITY, true));
}

/// More positions than are kept as numbers, in more than one window of bits.
#[test]
fn a_large_sparse_classic_filter_counts_the_bits_of_its_dense_form() {
    let mut hashes = random_hashes(3, 150_000);
    hashes.sort_unstable();
    let size = sizing::FilterSize {
        layout: Layout::Classic,
        num_hashes: 8,
        blocks: (200 << 23) + 7,
        capacity: 1000,
        fpr: 0.01,
    };
    let header = Header::with_size(size, Kind::unnamed(Tag::Numeric));
    let value: Vec<u8> = from_hashes(&header, &hashes, u64::MAX).unwrap();
    let mut positions: Vec<u64> =
        hashes.iter().flat_map(|&h| header.shape().classic_bits(h)).collect();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(info(&View::parse(&value).unwrap()).bits_set, positions.len() as u64);
}
