//! Counting filters against a multiset and an array of numbers, worked on with the plainest
//! arithmetic there is.

use pg_bloom_core::counting::{Counting, counters, empty, sum};
use pg_bloom_core::filter::build::from_hashes;
use pg_bloom_core::filter::merge;
use pg_bloom_core::filter::merge::or_into;
use pg_bloom_core::filter::{Body, Capacity, Header, View};
use pg_bloom_core::kind::{Kind, Tag};
use pg_bloom_core::sizing::FilterSize;
use pg_bloom_core::{Layout, hash, interrupt};
use proptest::prelude::*;
use std::collections::BTreeMap;

const KIND: Kind<'static> = Kind::unnamed(Tag::Numeric);

/// The counters of an element, as docs/format.md defines them: each once.
fn positions(header: &Header<'_>, h: u64) -> Vec<usize> {
    let block = ((u128::from(h) * u128::from(header.blocks)) >> 64) as usize;
    let position = |i: u32| (hash::word(h, i / 7) >> (9 * (i % 7)) & 511) as usize;
    let mut all: Vec<usize> = (0..header.num_hashes).map(|i| block * 512 + position(i)).collect();
    all.sort();
    all.dedup();
    all
}

/// A number for each counter, which stops at 15 and then stays.
#[derive(Clone, PartialEq, Debug)]
struct Numbers(Vec<u32>);

impl Numbers {
    fn new(header: &Header<'_>) -> Numbers {
        Numbers(vec![0; header.blocks as usize * 512])
    }

    fn of(value: &[u8]) -> Numbers {
        let counters = Counting::parse(value).unwrap().counters;
        Numbers(
            counters
                .iter()
                .flat_map(|byte| [u32::from(byte & 15), u32::from(byte >> 4)])
                .collect(),
        )
    }

    fn has(&self, positions: &[usize]) -> bool {
        positions.iter().all(|&p| self.0[p] > 0)
    }

    fn add(&mut self, positions: &[usize]) {
        positions.iter().for_each(|&p| self.0[p] = (self.0[p] + 1).min(15));
    }

    fn remove(&mut self, positions: &[usize]) {
        if self.has(positions) {
            positions
                .iter()
                .filter(|&&p| self.0[p] < 15)
                .copied()
                .collect::<Vec<_>>()
                .iter()
                .for_each(|&p| self.0[p] -= 1);
        }
    }

    fn any_saturated(&self) -> bool {
        self.0.contains(&15)
    }
}

fn header(hashes: u32, blocks: u64, kind: Kind<'static>) -> Header<'static> {
    Header::with_size(
        FilterSize {
            layout: Layout::Blocked,
            num_hashes: hashes,
            blocks,
            capacity: 100,
            fpr: 0.01,
        },
        kind,
    )
}

fn build(header: &Header<'_>, hashes: &[u64]) -> Vec<u8> {
    let empty: Vec<u8> = empty(header);
    Counting::parse(&empty).unwrap().add(KIND, hashes).unwrap()
}

/// The dense payload of a filter of bits.
fn dense_bits(value: &[u8]) -> Vec<u8> {
    let view = View::parse(value).unwrap();
    let mut bits = vec![0; view.header.payload_bytes() as usize];
    or_into(&mut bits, view.header.blocks, &view);
    bits
}

/// What a build of bits of these elements has.
fn bloom(header: &Header<'_>, elements: impl Iterator<Item = u64>) -> Vec<u8> {
    let hashes: Vec<u64> = elements.collect();
    let kind = if hashes.is_empty() { Kind::NONE } else { KIND };
    from_hashes(&Header { kind, ..*header }, &hashes, u64::MAX).unwrap()
}

/// A step: which of a few elements, whether it comes or goes, and how many copies.
type Step = (usize, bool, usize);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let copies = prop_oneof![4 => Just(1usize), 1 => 2usize..20];
    prop::collection::vec((0usize..40, prop::bool::weighted(0.6), copies), 0..200)
}

fn shape() -> impl Strategy<Value = Header<'static>> {
    (1u32..=20, 1u64..12).prop_map(|(hashes, blocks)| header(hashes, blocks, Kind::NONE))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Elements come and go; only those that are there are removed.
    #[test]
    fn a_multiset_that_shrinks_keeps_what_is_left(header in shape(), steps in steps(), seed in any::<u64>()) {
        let elements: Vec<u64> = (0..40).map(|i| hash::word(seed, i)).collect();
        let mut value: Vec<u8> = empty(&header);
        let mut numbers = Numbers::new(&header);
        let mut left: BTreeMap<u64, usize> = BTreeMap::new();
        let mut ever_saturated = false;
        for (which, comes, copies) in steps {
            let element = elements[which];
            let there = left.entry(element).or_default();
            let copies = if comes { copies } else { copies.min(*there) };
            let filter = Counting::parse(&value).unwrap();
            let hashes = vec![element; copies];
            let at = positions(&header, element);
            if comes {
                *there += copies;
                hashes.iter().for_each(|_| numbers.add(&at));
                value = filter.add(KIND, &hashes).unwrap();
            } else {
                *there -= copies;
                hashes.iter().for_each(|_| numbers.remove(&at));
                value = filter.remove(&hashes).unwrap_or(value);
            }
            left.retain(|_, copies| *copies > 0);
            ever_saturated |= numbers.any_saturated();

            prop_assert_eq!(&Numbers::of(&value), &numbers);
            let filter = Counting::parse(&value).unwrap();
            prop_assert!(left.keys().all(|&h| filter.contains(h)), "a false negative");
            prop_assert_eq!(filter.info().copies.is_none(), numbers.any_saturated());
            for &h in &elements {
                prop_assert_eq!(filter.contains(h), numbers.has(&positions(&header, h)));
            }
            // The bits of the filter of what is left; more of them once a counter was saturated.
            let (cast, built) = (filter.to_bloom::<Vec<u8>>(), bloom(&header, left.keys().copied()));
            if ever_saturated {
                let (cast, built) = (dense_bits(&cast), dense_bits(&built));
                prop_assert!(cast.iter().zip(&built).all(|(cast, built)| cast & built == *built));
            } else {
                prop_assert_eq!(dense_bits(&cast), dense_bits(&built));
                let is_dense = |value: &[u8]| matches!(View::parse(value).unwrap().body, Body::Dense(_));
                prop_assert!(!is_dense(&built) || cast == built, "not the same bytes");
                prop_assert!(!left.is_empty() || value == empty::<Vec<u8>>(&header));
            }
        }
    }

    /// Whatever is removed, in whatever order, no counter that was saturated falls, and what is not
    /// there is no change.
    #[test]
    fn removing_what_was_never_added(header in shape(), steps in steps(), seed in any::<u64>()) {
        let elements: Vec<u64> = (0..40).map(|i| hash::word(seed, i)).collect();
        let mut numbers = Numbers::new(&header);
        let mut value: Vec<u8> = empty(&header);
        for (which, comes, copies) in steps {
            let hashes = vec![elements[which]; copies];
            let at = positions(&header, elements[which]);
            let filter = Counting::parse(&value).unwrap();
            if comes {
                hashes.iter().for_each(|_| numbers.add(&at));
                value = filter.add(KIND, &hashes).unwrap();
            } else {
                let before = numbers.clone();
                hashes.iter().for_each(|_| numbers.remove(&at));
                prop_assert!(before.0.iter().zip(&numbers.0).all(|(&b, &a)| b != 15 || a == 15));
                let removed: Option<Vec<u8>> = filter.remove(&hashes);
                prop_assert_eq!(removed.is_some(), before.has(&at));
                value = removed.unwrap_or(value);
            }
            prop_assert_eq!(&Numbers::of(&value), &numbers);
        }
    }

    /// `+` is commutative and associative, has the empty filter as its identity, and is the build
    /// of both, bit for bit: also where counters saturate.
    #[test]
    fn sums_are_a_monoid(
        header in shape(),
        sets in prop::array::uniform3(prop::collection::vec(0u32..30, 0..250)),
        capacities in prop::array::uniform3(1u64..4),
        seed in any::<u64>(),
    ) {
        let hashes = sets.map(|set| set.into_iter().map(|i| hash::word(seed, i)).collect::<Vec<u64>>());
        let headers = capacities.map(|capacity| Header { capacity: Capacity::Elements(capacity), ..header });
        let [a, b, c] = [0, 1, 2].map(|i| build(&headers[i], &hashes[i]));
        let add = |x: &[u8], y: &[u8]| -> Vec<u8> {
            sum(&Counting::parse(x).unwrap(), &Counting::parse(y).unwrap()).unwrap()
        };
        prop_assert_eq!(add(&a, &b), add(&b, &a));
        prop_assert_eq!(add(&add(&a, &b), &c), add(&a, &add(&b, &c)));
        prop_assert_eq!(&add(&a, &empty::<Vec<u8>>(&headers[0])), &a);
        let most = Header { capacity: Capacity::Elements(*capacities.iter().max().unwrap()), ..header };
        prop_assert_eq!(&add(&add(&a, &b), &c), &build(&most, &hashes.concat()));

        // The bits of the sum are the union of the bits.
        let cast = |value: &[u8]| Counting::parse(value).unwrap().to_bloom::<Vec<u8>>();
        let (x, y) = (cast(&a), cast(&b));
        let union: Vec<u8> = merge::union(&View::parse(&x).unwrap(), &View::parse(&y).unwrap(), u64::MAX).unwrap();
        prop_assert_eq!(cast(&add(&a, &b)), union);
    }

    #[test]
    fn tallies_are_right(payload in prop::collection::vec(any::<u64>(), 0..100), mask in any::<u64>()) {
        let bytes: Vec<u8> = payload.iter().flat_map(|word| (word | mask).to_le_bytes()).collect();
        let numbers: Vec<u64> = bytes.iter().flat_map(|byte| [u64::from(byte & 15), u64::from(byte >> 4)]).collect();
        let tally = counters::tally(&bytes);
        prop_assert_eq!(tally.set, numbers.iter().filter(|&&n| n > 0).count() as u64);
        prop_assert_eq!(tally.saturated, numbers.iter().filter(|&&n| n == 15).count() as u64);
        prop_assert_eq!(tally.total, numbers.iter().sum::<u64>());
        prop_assert_eq!(interrupt::all_are_zero(&bytes), tally.total == 0);
    }

    #[test]
    fn estimates_are_near_the_truth(seed in any::<u64>(), distinct in 1u32..4000, copies in 1usize..4) {
        let header = header(6, 156, Kind::NONE);
        let hashes: Vec<u64> = (0..distinct).flat_map(|i| vec![hash::word(seed, i); copies]).collect();
        let value = build(&header, &hashes);
        let info = Counting::parse(&value).unwrap().info();
        let near = |estimate: f64, truth: f64| (estimate - truth).abs() <= 0.05 * truth + 8.0;
        prop_assert!(near(info.cardinality, f64::from(distinct)), "{info:?}");
        prop_assert!(info.copies.is_none_or(|n| near(n, hashes.len() as f64)), "{info:?}");
        prop_assert!(info.copies.is_some() || info.tally.saturated > 0);
    }
}

/// The chance that an element which was added and removed is still found is the false positive rate
/// of what is left.
#[test]
fn removed_elements_are_absent_but_for_the_rate() {
    let header = Header { blocks: 312, base_blocks: 312, ..header(6, 312, Kind::NONE) };
    let hashes: Vec<u64> = (0..16_000).map(|i| hash::word(11, i)).collect();
    let (stay, go) = hashes.split_at(8_000);
    let value = build(&header, &hashes);
    let value: Vec<u8> = Counting::parse(&value).unwrap().remove(go).unwrap();
    let filter = Counting::parse(&value).unwrap();
    assert!(stay.iter().all(|&h| filter.contains(h)));
    let found = go.iter().filter(|&&h| filter.contains(h)).count() as f64;
    let rate = filter.info().current_fpr;
    let (mean, deviation) = (rate * 8_000.0, (rate * 8_000.0).sqrt());
    assert!((found - mean).abs() < 5.0 * deviation, "{found} found where {mean} are expected");
    assert_eq!(value, build(&header, stay));
}
