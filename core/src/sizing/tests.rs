use super::*;
use crate::error::Class;
use crate::filter::capacity_for_bytes;
use crate::sizing::{check_capacity, least_fpr};
use proptest::prelude::*;

const RATES: [f64; 8] = [0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-5, 1e-6];

/// The fewest blocks that meet the rate exactly.
fn fewest(layout: Layout, hashes: u32, capacity: u64, fpr: f64) -> u64 {
    least_number(1, |blocks| {
        rate::expected(Shape { layout, num_hashes: hashes, blocks }, capacity as f64) <= fpr
    })
}

/// Rates from the least to the greatest of a layout, evenly on a logarithmic scale.
fn rates(layout: Layout, count: u32) -> impl Iterator<Item = f64> {
    let decades = (0.5 / least_fpr(layout)).log10();
    (0..=count).map(move |i| {
        (0.5 * 10f64.powf(-decades * f64::from(i) / f64::from(count))).max(least_fpr(layout))
    })
}

fn is_rounded(layout: Layout, blocks: u64) -> bool {
    blocks as f64 >= least_rounded(layout)
}

/// Every capacity up to rounded sizes and beyond: the fewest blocks that meet the rate, and never fewer
/// for more.
#[test]
fn unrounded_sizes_are_the_least_and_never_fall() {
    for layout in Layout::ALL {
        for fpr in rates(layout, 15) {
            let mut last = 1;
            for capacity in 1.. {
                let s = size_for_capacity(layout, capacity, fpr).unwrap();
                let meets =
                    |blocks| rate::expected(Shape { blocks, ..s.shape() }, capacity as f64) <= fpr;
                assert!(s.blocks >= last, "{s:?} after {last}");
                assert!(is_rounded(layout, s.blocks) || meets(s.blocks), "{s:?}");
                assert!(
                    is_rounded(layout, s.blocks) || s.blocks == 1 || !meets(s.blocks - 1),
                    "{s:?}"
                );
                last = s.blocks;
                if is_rounded(layout, s.blocks * 2 / 3) {
                    break;
                }
            }
        }
    }
}

#[test]
fn where_rounding_begins_every_rate_is_met() {
    for layout in Layout::ALL {
        for fpr in rates(layout, 2000) {
            let density = density(layout, fpr).unwrap();
            let first = (least_rounded(layout) / needed(layout, density, 1.0)) as u64;
            let mut last = 1;
            for capacity in first.max(4) - 3..first + 4 {
                let s = size_for_capacity(layout, capacity, fpr).unwrap();
                let found = rate::expected(s.shape(), capacity as f64);
                assert!(found <= fpr && s.blocks >= last, "{s:?}: {found:e}, after {last}");
                last = s.blocks;
            }
        }
    }
}

/// The sizes that once jumped: by capacity, at 1 % in `blocked`.
#[test]
fn small_sizes_are_steady() {
    let blocks = |capacity| size_for_capacity(Layout::Blocked, capacity, 0.01).unwrap().blocks;
    assert_eq!([53, 54, 102, 103, 1361, 1600, 3200].map(blocks), [1, 2, 2, 2, 27, 31, 62]);
}

#[test]
fn filters_of_few_blocks_meet_every_rate() {
    for layout in [Layout::Blocked, Layout::Parquet] {
        for fpr in (1..=100).map(|i| f64::from(i) / 200.0) {
            let density = density(layout, fpr).unwrap();
            let load = layout.block_bits() as f64 / density.bits_per_element;
            for blocks in [64, 65, 100, 1000] {
                let found = rate::expected(
                    Shape { layout, num_hashes: density.num_hashes, blocks },
                    load * blocks as f64,
                );
                assert!(found <= fpr, "{layout:?} {fpr}: {found} in {blocks}");
            }
        }
    }
}

#[test]
fn no_other_number_of_hashes_needs_fewer_bits() {
    for layout in [Layout::Blocked, Layout::Classic] {
        for fpr in RATES.into_iter().chain([0.5, 0.3, 1e-9]) {
            let best = density(layout, fpr).unwrap();
            for hashes in 1..=36 {
                assert!(
                    bits_that_keep_rate(layout, hashes, fpr) >= best.bits_per_element,
                    "{layout:?} {fpr} {hashes} {best:?}"
                );
            }
        }
    }
}

#[test]
fn densities_are_those_promised() {
    for (layout, fpr, bits, hashes) in [
        (Layout::Blocked, 0.01, 9.92, 6),
        (Layout::Blocked, 1e-3, 15.55, 9),
        (Layout::Blocked, 1e-4, 22.03, 12),
        (Layout::Blocked, 1e-6, 38.82, 18),
        (Layout::Classic, 0.01, 9.59, 7),
        (Layout::Classic, 1e-3, 14.38, 10),
        (Layout::Classic, 1e-4, 19.17, 13),
        (Layout::Parquet, 0.01, 10.53, 8),
        (Layout::Parquet, 1e-3, 16.89, 8),
        (Layout::Parquet, 1e-4, 26.34, 8),
        (Layout::Parquet, 1e-6, 64.66, 8),
    ] {
        let found = density(layout, fpr).unwrap();
        assert!((found.bits_per_element - bits).abs() < 0.0051, "{layout:?} {fpr}: {found:?}");
        if fpr > 1e-5 {
            assert_eq!(found.num_hashes, hashes, "{layout:?} {fpr}");
        }
    }
}

#[test]
fn a_bad_rate_or_capacity_is_refused() {
    for layout in Layout::ALL {
        for fpr in [
            0.0,
            1.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            1e-12,
            0.5 + f64::EPSILON,
            least_fpr(layout) * 0.999,
        ] {
            for error in [
                size_for_capacity(layout, 100, fpr).map(drop),
                table::best_practice(layout, fpr).map(drop),
            ] {
                assert_eq!(error.unwrap_err().class(), Class::InvalidParameter);
            }
        }
        for fpr in [0.5, least_fpr(layout)] {
            assert_eq!(size_for_capacity(layout, 100, fpr).unwrap().fpr, fpr);
        }
    }
    assert!(
        check_capacity(0).is_err()
            && check_capacity(-1).is_err()
            && check_capacity(i64::MIN).is_err()
    );
    assert_eq!(check_capacity(7).unwrap(), 7);
    assert_eq!(
        size_for_capacity(Layout::Blocked, i64::MAX as u64, 0.01)
            .unwrap_err()
            .class(),
        Class::TooLarge
    );
}

#[test]
fn unsized_builds_take_the_smallest_power_of_two() {
    for layout in Layout::ALL {
        for fpr in [0.1, 0.01, 1e-4] {
            for elements in [0, 1, 7, 50, 1000, 29_897, 10_000_000] {
                let s = power_of_two_size(layout, elements, fpr).unwrap();
                assert!(s.blocks.is_power_of_two());
                assert!(s.capacity >= elements.max(1), "{s:?}");
                assert!(
                    s.blocks == 1
                        || rate::expected(
                            Shape { blocks: s.blocks / 2, ..s.shape() },
                            elements.max(1) as f64
                        ) > fpr
                );
                assert!(rate::expected(s.shape(), s.capacity as f64) <= fpr);
                assert!(rate::expected(s.shape(), s.capacity as f64 + 1.0) > fpr);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn capacities_in_a_power_of_two_ratio_divide(
        layout in prop::sample::select(&Layout::ALL),
        blocks in 60.0f64..1e6,
        exponent in 0.0..1.0,
        doublings in 1u32..8,
    ) {
        let fpr = least_fpr(layout).powf(exponent) * 0.5f64.powf(1.0 - exponent);
        let blocks = blocks * least_rounded(layout) / 64.0;
        let capacity = (blocks / needed(layout, density(layout, fpr).unwrap(), 1.0)) as u64;
        let (small, large) = (size_for_capacity(layout, capacity, fpr).unwrap(), size_for_capacity(layout, capacity << doublings, fpr).unwrap());
        prop_assume!(is_rounded(layout, small.blocks));
        prop_assert_eq!(large.blocks % small.blocks, 0, "{:?} {:?}", small, large);
    }

    #[test]
    fn sizes_never_fall_and_are_close_to_the_least(
        layout in prop::sample::select(&Layout::ALL),
        magnitude in 0.0f64..27.0,
        exponent in 0.0..1.0,
    ) {
        let fpr = least_fpr(layout).powf(exponent) * 0.5f64.powf(1.0 - exponent);
        let capacity = magnitude.exp2() as u64;
        let s = size_for_capacity(layout, capacity, fpr).unwrap();
        prop_assert!(size_for_capacity(layout, capacity + 1, fpr).unwrap().blocks >= s.blocks);
        prop_assert!(rate::expected(s.shape(), capacity as f64) <= fpr);
        let least = fewest(layout, s.num_hashes, capacity, fpr) as f64;
        let most = if !is_rounded(layout, s.blocks) {
            least
        } else if layout == Layout::Classic {
            // The surplus of 1,024 bits is a share of all sizes.
            (least + 1.0) * 1.016 * classic_surplus(density(layout, fpr).unwrap())
        } else {
            least * 1.016
        };
        prop_assert!(s.blocks as f64 <= most, "{:?}: {} would do", s, least);
    }

    #[test]
    fn capacity_for_bytes_is_the_inverse(
        layout in prop::sample::select(&Layout::ALL),
        exponent in 0.0f64..27.0,
        fpr in prop::sample::select(&RATES),
    ) {
        let capacity = exponent.exp2() as u64;
        let bytes = |n| crate::filter::HEADER_BYTES as u64 + layout.payload_bytes(size_for_capacity(layout, n, fpr).unwrap().blocks);
        let given = bytes(capacity);
        let found = capacity_for_bytes(layout, given, fpr).unwrap();
        prop_assert!(found >= capacity, "{} for {}", found, capacity);
        prop_assert!(bytes(found) <= given);
        // The least that fits a byte less is less.
        let less = capacity_for_bytes(layout, given - 1, fpr);
        prop_assert!(less.is_err() || bytes(less.unwrap()) < given);
    }
}

#[test]
fn a_capacity_for_any_number_of_bytes_is_found_quickly() {
    for layout in Layout::ALL {
        for fpr in [0.5, 0.3, 0.01, 1e-6, least_fpr(layout)] {
            let random = (0..500).map(|i| crate::hash::word(i, 7) >> (1 + i % 12));
            for bytes in [0, 43, 44, 45, 100, 5000, 1 << 20, 1 << 40, i64::MAX as u64]
                .into_iter()
                .chain(random)
            {
                let Ok(capacity) = capacity_for_bytes(layout, bytes, fpr) else {
                    assert!(bytes <= 100, "{bytes}");
                    continue;
                };
                assert!(capacity as f64 > bytes as f64 / 60.0, "{capacity} for {bytes}");
                if let Ok(s) = size_for_capacity(layout, capacity, fpr) {
                    assert!(44 + layout.payload_bytes(s.blocks) <= bytes);
                }
            }
        }
    }
}
