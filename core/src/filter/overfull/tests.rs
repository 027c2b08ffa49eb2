use super::*;
use crate::filter::build::{Request, tests::built};
use crate::kind::{Kind, Tag};
use crate::sizing::{self, FilterSize};

/// The rates of dense filters of `elements` elements each, of as many sets.
fn rates(size: &FilterSize, elements: u64, sets: u64) -> Vec<f64> {
    let header = Header::with_size(*size, Kind::unnamed(Tag::Numeric));
    let mut bits = vec![0; header.payload_bytes() as usize];
    (0..sets)
        .map(|set| {
            let seed = crate::hash::word(set, elements as u32);
            let hashes: Vec<u64> = (0..elements)
                .map(|i| crate::hash::word(seed.wrapping_add(i << 20), 1))
                .collect();
            bits.fill(0);
            header.shape().insert_all(&mut bits, &hashes);
            estimate::rate_of_bits(&header, &bits)
        })
        .collect()
}

/// Of many filters at capacity few exceed two and a half deviations, but some do; none exceeds the
/// limit that is used.
#[test]
fn filters_at_capacity_exceed_the_limit_as_often_as_it_says() {
    for layout in Layout::ALL {
        let (mut beyond, mut all) = (0, 0);
        for fpr in [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6] {
            for (capacity, sets) in [
                (15, 4000),
                (51, 4000),
                (105, 4000),
                (300, 2000),
                (1600, 1000),
                (20_000, 100),
            ] {
                let size = sizing::size_for_capacity(layout, capacity, fpr).unwrap();
                let [often, never] =
                    [2.5, DEVIATIONS].map(|z| rate_at_deviations(size.shape(), capacity, z));
                let rates = rates(&size, capacity, sets);
                let found = rates.iter().filter(|&&rate| rate > often).count();
                let label =
                    format!("{layout:?} {fpr:e} {capacity}: {found} of {sets} beyond {often:e}");
                let expected = sets as f64 / 100.0;
                assert!(found as f64 <= expected + 5.0 * expected.sqrt(), "{label}");
                assert!(
                    often <= never && rates.iter().all(|&rate| rate <= never),
                    "{label}, {never:e}"
                );
                (beyond, all) = (beyond + found as u64, all + sets);
            }
        }
        assert!(beyond * 1000 > all, "{layout:?}: {beyond} of {all}");
    }
}

/// The limits are not far above the rates: those of the contract's sizes, and of large filters.
#[test]
fn limits_are_close_to_the_promise() {
    let limit = |layout, capacity, fpr| {
        let size = sizing::size_for_capacity(layout, capacity, fpr).unwrap();
        rate_at_deviations(size.shape(), capacity, DEVIATIONS) / fpr
    };
    assert!((1.17..1.5).contains(&limit(Layout::Blocked, 1600, 0.01)));
    assert!((1.56..2.3).contains(&limit(Layout::Blocked, 51, 0.01)));
    for layout in Layout::ALL {
        for (capacity, fpr, most) in [
            (20_000, 0.01, 1.15),
            (1_000_000, 0.01, 1.02),
            (1_000_000, 1e-4, 1.1),
        ] {
            let found = limit(layout, capacity, fpr);
            assert!(found < most, "{layout:?} {capacity} {fpr:e}: {found}");
        }
    }
    // Whatever a header says, an answer comes.
    for (blocks, elements) in [
        (1, i64::MAX as u64),
        (1, 1),
        (2, 1),
        (1 << 20, 1),
        (1 << 20, 1 << 24),
        (3, 20_000),
    ] {
        for (layout, hashes) in [
            (Layout::Blocked, 1),
            (Layout::Blocked, 64),
            (Layout::Classic, 64),
            (Layout::Parquet, 8),
        ] {
            let found = rate_at_deviations(
                Shape { layout, num_hashes: hashes, blocks },
                elements,
                DEVIATIONS,
            );
            assert!(
                (0.0..=1.0).contains(&found),
                "{layout:?} {hashes} {blocks} {elements}: {found}"
            );
        }
    }
}

fn overfull_of(layout: Layout, capacity: u64, fpr: f64, elements: u64) -> Option<Overfull> {
    let hashes: Vec<u64> = (0..elements).map(|i| crate::hash::word(i, 3)).collect();
    let value = built(Request { capacity: Some(capacity), fpr, layout }, Tag::Numeric, &hashes);
    overfull(&View::parse(&value).unwrap())
}

#[test]
fn twice_the_capacity_is_overfull_and_the_capacity_is_not() {
    for layout in Layout::ALL {
        for capacity in [300, 2000, 100_000] {
            assert_eq!(
                overfull_of(layout, capacity, 0.01, capacity),
                None,
                "{layout:?} {capacity}"
            );
            let over = overfull_of(layout, capacity, 0.01, capacity * 2)
                .expect("twice the capacity is overfull");
            assert!(
                (over.cardinality / (capacity * 2) as f64 - 1.0).abs() < 0.25
                    && over.capacity == capacity
            );
            assert!(over.current_fpr > 0.05 && over.fpr == 0.01);
        }
    }
    // A list is not, however many elements it has.
    assert_eq!(overfull_of(Layout::Blocked, 100, 1e-9, 105), None);
}
