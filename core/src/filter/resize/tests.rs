use super::*;
use crate::error::{Class, Problem};
use crate::filter::build::{Request, contains, tests::built};
use crate::filter::estimate;
use crate::hash::word;
use crate::kind::Tag;
use crate::layout::Layout;
use proptest::prelude::*;

const NO_LIMIT: u64 = u64::MAX;

fn hashes(seed: u64, count: u32) -> Vec<u64> {
    (0..count).map(|i| word(seed, i)).collect()
}

fn build(layout: Layout, capacity: Option<u64>, hashes: &[u64]) -> Vec<u8> {
    of_rate(layout, capacity, 0.01, hashes)
}

fn of_rate(layout: Layout, capacity: Option<u64>, fpr: f64, hashes: &[u64]) -> Vec<u8> {
    let tag = if hashes.is_empty() { Tag::None } else { Tag::Numeric };
    built(Request { capacity, fpr, layout }, tag, hashes)
}

fn resized(value: &[u8], capacity: Option<u64>) -> Result<Vec<u8>> {
    let result: Vec<u8> = resize(&View::parse(value).unwrap(), capacity, NO_LIMIT)?;
    View::parse(&result).unwrap();
    Ok(result)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A list becomes what a build with the other capacity gives, be that a list, bits or of a
    /// power of two.
    #[test]
    fn a_list_has_every_size(
        layout in prop::sample::select(&Layout::ALL),
        count in 0u32..300,
        capacity in prop::option::of(1u64..5000),
        seed: u64,
    ) {
        let hashes = hashes(seed, count);
        let given = build(layout, Some(100_000), &hashes);
        prop_assert!(matches!(View::parse(&given).unwrap().body, Body::Sparse(_)));
        prop_assert_eq!(resized(&given, capacity).unwrap(), build(layout, capacity, &hashes));
    }

    /// Bits are those of a build at the other size where that is smaller, spread where it is
    /// larger; else there is an error whose capacity works.
    #[test]
    fn bits_have_sizes_that_divide(
        layout in prop::sample::select(&Layout::ALL),
        own in 1u64..3000,
        capacity in prop_oneof![1u64..3000, 3000u64..60_000],
        fpr in prop::sample::select(&[0.1, 0.01, 1e-4, 1e-6, 1e-9]),
        seed: u64,
    ) {
        let fpr = f64::max(fpr, sizing::least_fpr(layout));
        // At a low rate it takes more elements than the capacity to be bits.
        let hashes = hashes(seed, 2 * own as u32);
        let given = of_rate(layout, Some(own), fpr, &hashes);
        let view = View::parse(&given).unwrap();
        prop_assume!(matches!(view.body, Body::Dense(_)));
        let size = sizing::size_for_capacity(layout, capacity, fpr).unwrap();
        let (small, large) = (size.blocks.min(view.header.blocks), size.blocks.max(view.header.blocks));
        match resized(&given, Some(capacity)) {
            Ok(result) => {
                prop_assert!(large.is_multiple_of(small));
                let after = View::parse(&result).unwrap();
                prop_assert_eq!(after.header, Header { base_blocks: small, ..Header::with_size(size, view.header.kind) });
                prop_assert!(hashes.iter().all(|&hash| contains(&after, hash)));
                if size.blocks <= view.header.blocks {
                    let mut expected: Vec<u8> = after.header.dense();
                    let payload = payload_mut(&mut expected, &after.header);
                    after.header.shape().insert_all(payload, &hashes);
                    prop_assert_eq!(&result, &expected);
                } else {
                    prop_assert_eq!(estimate::cardinality(&after), estimate::cardinality(&view));
                    prop_assert_eq!(resized(&result, Some(own)).unwrap(), given);
                }
            }
            Err(error) => {
                prop_assert!(!large.is_multiple_of(small));
                prop_assert_eq!(error.class(), Class::InvalidParameter);
                let Problem::InvalidParameter(InvalidParameter::ResizeDoesNotDivide { own, blocks, possible, .. }) = error.problem() else {
                    panic!("{error:?}");
                };
                prop_assert_eq!((own.blocks.min(*blocks), own.blocks.max(*blocks)), (small, large));
                // There is always one: its own size has a capacity.
                let possible = possible.unwrap();
                prop_assert!(possible > 0 && resized(&given, Some(possible)).is_ok(), "{:?}", error);
            }
        }
    }
}

/// Their sizes are powers of two, which below 64 blocks may be those of no capacity.
#[test]
fn a_filter_without_a_capacity_is_told_one_that_works() {
    let mut told = 0;
    for layout in Layout::ALL {
        for (fpr, count) in [0.1, 0.01, 1e-4, 1e-6]
            .into_iter()
            .flat_map(|fpr| (3..300).step_by(7).map(move |n| (fpr, n)))
        {
            let given = of_rate(layout, None, fpr, &hashes(5, count));
            if matches!(View::parse(&given).unwrap().body, Body::Sparse(_)) {
                continue;
            }
            for capacity in [1, 5, 77, 1000, 12_345] {
                let Err(error) = resized(&given, Some(capacity)) else {
                    continue;
                };
                let Problem::InvalidParameter(InvalidParameter::ResizeDoesNotDivide {
                    possible,
                    ..
                }) = error.problem()
                else {
                    panic!("{error:?}");
                };
                assert!(resized(&given, Some(possible.unwrap())).is_ok(), "{error:?}");
                told += 1;
            }
        }
    }
    assert!(told > 200, "{told}");
}

/// A filter that was folded has the number of hashes of another rate, and keeps it.
#[test]
fn a_folded_filter_is_resized_by_powers_of_two() {
    // In `parquet` every rate has eight hashes.
    for layout in [Layout::Blocked, Layout::Classic] {
        let hashes = hashes(1, 3000);
        let given = build(layout, Some(40_000), &hashes);
        let folded: Vec<u8> = fold(&View::parse(&given).unwrap(), 0.1).unwrap();
        let before = View::parse(&folded).unwrap().header;
        assert!(before.blocks < View::parse(&given).unwrap().header.blocks);
        // A little less than four times as many: few blocks hold a little more at this rate than
        // their share.
        let wanted = before.capacity.elements().unwrap() * 7 / 2;
        let larger = resized(&folded, Some(wanted)).unwrap();
        let after = View::parse(&larger).unwrap();
        assert_eq!(
            after.header,
            Header {
                blocks: before.blocks * 4,
                capacity: Capacity::Elements(wanted),
                ..before
            }
        );
        assert!(hashes.iter().all(|&hash| contains(&after, hash)));
        assert_eq!(resized(&larger, before.capacity.elements()).unwrap(), folded);
    }
}

#[test]
fn what_grows_beyond_the_limit_is_refused() {
    let hashes = hashes(2, 1000);
    for layout in Layout::ALL {
        let (list, bits) =
            (build(layout, Some(100_000), &hashes), build(layout, Some(1000), &hashes));
        for (value, capacity, fails) in [
            (&list, 200_000, true),
            (&list, 1000, false),
            (&bits, 8000, true),
        ] {
            let result = resize::<Vec<u8>>(&View::parse(value).unwrap(), Some(capacity), 1500);
            assert_eq!(
                result.err().map(|error| error.class()),
                fails.then_some(Class::TooLarge),
                "{layout:?}"
            );
        }
        let same = resize::<Vec<u8>>(&View::parse(&bits).unwrap(), Some(1000), 1).unwrap();
        assert_eq!(same, bits);
    }
}

#[test]
fn bits_need_a_capacity() {
    let error = resized(&build(Layout::Blocked, Some(1000), &hashes(3, 4000)), None).unwrap_err();
    assert_eq!(error.class(), Class::InvalidParameter);
    let none = build(Layout::Classic, None, &[]);
    assert_eq!(resized(&none, None).unwrap(), none);
    assert_eq!(resized(&none, Some(77)).unwrap(), build(Layout::Classic, Some(77), &[]));
}
