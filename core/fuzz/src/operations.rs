//! Every operation on what the parser accepts, compared with sets of bits.

use super::forge::{Input, repair, repair_like};
use super::oracle;
use pg_bloom_core::filter::slices::{FilterStart, START_BYTES};
use pg_bloom_core::filter::{build, estimate, merge, overfull, resize};
use pg_bloom_core::{Body, Class, Error, Header, View};
use std::collections::BTreeSet;

/// The largest filter that an operation may make.
const LIMIT: u64 = 16 << 10;

type Made = Result<Vec<u8>, Error>;

/// An input is three filters, the second and third perhaps made mergeable with the first, then a
/// rate to fold to, then hashes.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (ratios, fpr) = ([input.byte(), input.byte()], input.byte());
    let parts = [input.part(), input.part(), input.part()];
    let hashes: BTreeSet<u64> = (0..16).map(|_| input.number()).collect();
    let hashes: Vec<u64> = hashes.into_iter().collect();

    let a = repair(parts[0], false);
    let [b, c] = [1, 2].map(|i| repair_like(parts[i], &a, ratios[i - 1]));
    let [a, b, c] =
        [&a, &b, &c].map(|value| View::parse(value).expect("a repaired value is a filter"));
    for view in [&a, &b, &c] {
        let probes = probes(view, &hashes);
        probe(view, &probes);
        describe(view);
        fold(view, [0.5, 0.3, 0.1, 0.01, 1e-4, view.header.fpr][usize::from(fpr) % 6], &probes);
        add(view, a.header.kind, &hashes);
        resize(view, hashes.first().map_or(0, |hash| hash >> (hash % 64)), &probes);
    }
    for (x, y) in [(&a, &b), (&b, &c), (&a, &a), (&c, &b)] {
        merge_two(x, y, &hashes);
    }
    merge_three(&a, &b, &c);
}

/// Hashes to probe: those given, some of the filter's own and their neighbours.
fn probes(view: &View<'_>, hashes: &[u64]) -> Vec<u64> {
    let mut probes = hashes.to_vec();
    probes.extend([0, 1, u64::MAX, u64::MAX / 2]);
    if let Body::Sparse(entries) = view.body {
        let own = entries
            .iter()
            .step_by(entries.len() / 8 + 1)
            .map(|entry| u64::from_le_bytes(*entry));
        probes.extend(own.flat_map(|hash| [hash, hash.wrapping_add(1), hash.wrapping_sub(1)]));
    }
    probes
}

/// Membership: the whole and its slices answer as the definition does, in few steps.
fn probe(view: &View<'_>, probes: &[u64]) {
    let value: Vec<u8> = view.to_buffer();
    let start = FilterStart::parse(&value[..value.len().min(START_BYTES)], value.len())
        .expect("the start of a filter");
    let steps = match view.body {
        Body::Dense(_) => view.header.num_hashes,
        Body::Sparse(entries) => 2 * (entries.len() + 1).ilog2() + 2,
    };
    for &hash in probes {
        let expected = oracle::has(view, hash);
        assert_eq!(build::contains(view, hash), expected, "contains {hash:x}");
        let mut slices = 0;
        let by_slices = start.contains(hash, |from, length| {
            slices += 1;
            Ok::<_, Error>(&value[from..from + length])
        });
        assert_eq!(by_slices, Ok(expected), "slices {hash:x}");
        assert!(slices <= steps, "{slices} slices of {} bytes", value.len());
    }
    build::prefetch(view, probes[0]);
    if let Body::Dense(bits) = view.body {
        let h = &view.header;
        let mut answers = Vec::new();
        h.shape().contains_each(bits, probes, |found| answers.push(found));
        assert!(
            answers
                .iter()
                .copied()
                .eq(probes.iter().map(|&hash| oracle::has(view, hash))),
            "contains_each"
        );
    }
}

/// The figures of a filter.
fn describe(view: &View<'_>) {
    let (info, h) = (estimate::info(view), &view.header);
    assert!(info.cardinality >= 0.0, "{info:?}");
    assert!(
        (0.0..=1.0).contains(&info.current_fpr) && (0.0..=1.0).contains(&info.fill_ratio),
        "{info:?}"
    );
    assert!(estimate::elements_by_fill(view) >= 0.0);
    if let Some(over) = overfull::overfull(view) {
        assert!(
            over.cardinality >= 0.0 && Some(over.capacity) == h.capacity.elements(),
            "{over:?}"
        );
    }
    let Some(bits) = oracle::bits_of(view) else {
        return;
    };
    let ones = oracle::ones(&bits);
    assert_eq!((info.num_bits, info.bits_set), (bits.len() as u64, ones));
    match view.body {
        Body::Sparse(entries) => assert_eq!(info.cardinality, entries.len() as f64),
        Body::Dense(_) => {
            let expected = oracle::rate(h, &bits);
            assert!(
                (info.current_fpr - expected).abs() <= 1e-9 * expected,
                "{} not {expected}",
                info.current_fpr
            );
            assert_eq!(info.saturated, ones == bits.len() as u64);
        }
    }
}

/// The view of a result, which must be a canonical filter.
fn accepted(value: &[u8]) -> View<'_> {
    let view = View::parse(value)
        .unwrap_or_else(|e| panic!("an operation made what the parser refuses: {e:?}"));
    assert_eq!(view.to_buffer::<Vec<u8>>(), value);
    view
}

/// Folding ORs neighbours, loses nothing, and is idempotent.
fn fold(view: &View<'_>, fpr: f64, probes: &[u64]) {
    let h = &view.header;
    let value: Vec<u8> = match resize::fold(view, fpr) {
        Ok(value) => value,
        Err(error) => return assert_eq!(error.class(), Class::InvalidParameter, "{error:?}"),
    };
    let folded = accepted(&value);
    let q = h.blocks.checked_div(folded.header.blocks).unwrap_or(1);
    assert!(h.is_unsized() || (q.is_power_of_two() && q * folded.header.blocks == h.blocks));
    assert_eq!(folded.header.kind, h.kind);
    assert!(q > 1 || folded == *view, "the same size, but another filter");
    assert!(q == 1 || estimate::current_fpr(&folded) <= fpr);
    assert!(
        probes
            .iter()
            .all(|&hash| !oracle::has(view, hash) || build::contains(&folded, hash)),
        "a false negative"
    );
    if let (Some(before), Some(after)) = (oracle::bits_of(view), oracle::bits_of(&folded)) {
        assert_eq!(oracle::fold(h.layout, &before, q), after);
    }
    assert_eq!(resize::fold::<Vec<u8>>(&folded, fpr), Ok(value.clone()), "folding twice");
}

/// Another size loses nothing; of a list it is that of a build, and bits can go back.
fn resize(view: &View<'_>, capacity: u64, probes: &[u64]) {
    let capacity = (capacity > 0).then_some(capacity);
    let value: Vec<u8> = match resize::resize(view, capacity, LIMIT) {
        Ok(value) => value,
        Err(error) => {
            return assert!(
                [Class::TooLarge, Class::InvalidParameter].contains(&error.class()),
                "{error:?}"
            );
        }
    };
    let (resized, h) = (accepted(&value), &view.header);
    assert!(
        resized.header.is_unsized()
            || capacity.is_none()
            || resized.header.capacity.elements() == capacity
    );
    assert!(resized.header.blocks <= h.blocks || resized.header.dense_bytes() <= LIMIT);
    assert!(
        probes
            .iter()
            .all(|&hash| !oracle::has(view, hash) || build::contains(&resized, hash)),
        "a false negative"
    );
    match view.body {
        Body::Sparse(entries) => {
            let own: Vec<u64> = entries.iter().map(|entry| u64::from_le_bytes(*entry)).collect();
            let built: Made = build::from_hashes(&resized.header, &own, u64::MAX);
            assert_eq!(built.as_ref(), Ok(&value), "a list is not what a build makes of it");
        }
        Body::Dense(_) => {
            let (small, large) = if h.blocks < resized.header.blocks {
                (view, &resized)
            } else {
                (&resized, view)
            };
            let q = large.header.blocks / small.header.blocks;
            if let (Some(small), Some(large)) = (oracle::bits_of(small), oracle::bits_of(large)) {
                assert_eq!(oracle::fold(h.layout, &large, q), small);
            }
        }
    }
}

/// Adding elements gives a filter that has them and all it had; those of another kind are refused.
fn add(view: &View<'_>, kind: pg_bloom_core::Kind<'_>, hashes: &[u64]) {
    let kind = if kind.is_none() { view.header.kind } else { kind };
    if kind.is_none() {
        return;
    }
    if view.header.kind.unify(kind).is_none() {
        let refused = build::add_hashes::<Vec<u8>>(view, kind, hashes, LIMIT);
        return assert_eq!(refused.map_err(|error| error.class()), Err(Class::KindMismatch));
    }
    let value: Vec<u8> = match build::add_hashes(view, kind, hashes, LIMIT) {
        Ok(value) => value,
        Err(error) => {
            return assert!(
                [Class::TooLarge, Class::InvalidParameter].contains(&error.class()),
                "{error:?}"
            );
        }
    };
    let grown = accepted(&value);
    assert!(hashes.iter().all(|&hash| build::contains(&grown, hash)), "a false negative");
    assert_eq!(
        build::add_hashes::<Vec<u8>>(&grown, kind, hashes, LIMIT).as_ref(),
        Ok(&value),
        "adding twice"
    );
    if view.header.is_unsized() {
        return;
    }
    assert_eq!(Header { kind, ..view.header }, grown.header);
    if let Some(mut bits) = oracle::bits_of(view) {
        oracle::set(&mut bits, &view.header, hashes.iter().copied());
        assert_eq!(oracle::bits_of(&grown), Some(bits));
    }
}

fn union(a: &View<'_>, b: &View<'_>) -> Made {
    merge::union(a, b, LIMIT)
}

fn intersection(a: &View<'_>, b: &View<'_>) -> Made {
    merge::intersection(a, b)
}

/// Union and intersection of two: commutative, idempotent, and what their bits say.
fn merge_two(a: &View<'_>, b: &View<'_>, hashes: &[u64]) {
    let (either, both) = (union(a, b), intersection(a, b));
    for (one, other) in [(&either, union(b, a)), (&both, intersection(b, a))] {
        match (one, other) {
            (Ok(one), Ok(other)) => assert_eq!(*one, other, "not commutative"),
            (Err(one), Err(other)) => assert_eq!(one.class(), other.class()),
            _ => panic!("in one order only"),
        }
    }
    for error in [&either, &both].into_iter().filter_map(|made| made.as_ref().err()) {
        assert!(error.class() != Class::InvalidBinary, "{error:?}");
    }
    if let Ok(value) = &either {
        let either = accepted(value);
        for part in [a, b] {
            assert_eq!(union(&either, part).as_ref(), Ok(value), "a part adds something");
            assert!(
                probes(part, hashes)
                    .iter()
                    .all(|&x| !oracle::has(part, x) || build::contains(&either, x)),
                "{part:?}"
            );
        }
        check_union_bits(a, b, &either);
    }
    if let Ok(value) = &both {
        let both = accepted(value);
        let common = |x: u64| oracle::has(a, x) && oracle::has(b, x);
        assert!(
            probes(a, hashes)
                .iter()
                .all(|&x| !common(x) || build::contains(&both, x)),
            "a false negative"
        );
        check_intersection_bits(a, b, &both);
    }
    if a == b {
        assert_eq!(either, Ok(a.to_buffer()), "a union with itself");
        assert_eq!(both, Ok(a.to_buffer()), "an intersection with itself");
    }
}

/// D(a) and D(b), both spread to the size of the larger.
fn spread_both(a: &View<'_>, b: &View<'_>) -> Option<(Vec<bool>, Vec<bool>)> {
    if a.header.is_unsized() || b.header.is_unsized() {
        return None;
    }
    let blocks = a.header.blocks.max(b.header.blocks);
    if blocks * a.header.layout.block_bits() > oracle::MOST_BITS {
        return None;
    }
    let spread = |v: &View<'_>| {
        Some(oracle::spread(v.header.layout, &oracle::bits_of(v)?, blocks / v.header.blocks))
    };
    spread(a).zip(spread(b))
}

fn check_union_bits(a: &View<'_>, b: &View<'_>, either: &View<'_>) {
    if let Some((x, y)) = spread_both(a, b) {
        let expected: Vec<bool> = x.iter().zip(&y).map(|(x, y)| x | y).collect();
        assert_eq!(oracle::bits_of(either), Some(expected));
    }
}

fn check_intersection_bits(a: &View<'_>, b: &View<'_>, both: &View<'_>) {
    let Body::Sparse(found) = both.body else {
        let Some((x, y)) = spread_both(a, b) else {
            return;
        };
        let expected: Vec<bool> = x.iter().zip(&y).map(|(x, y)| x & y).collect();
        return assert_eq!(oracle::bits_of(both), Some(expected));
    };
    let of = |view: &View<'_>| match view.body {
        Body::Sparse(entries) => entries.iter().map(|entry| u64::from_le_bytes(*entry)).collect(),
        Body::Dense(_) => Vec::new(),
    };
    let common: BTreeSet<u64> = of(a)
        .into_iter()
        .chain(of(b))
        .filter(|&x| oracle::has(a, x) && oracle::has(b, x))
        .collect();
    assert!(common.iter().map(|hash| hash.to_le_bytes()).eq(found.iter().copied()));
}

/// Union and intersection of three are associative wherever any two may be merged.
fn merge_three(a: &View<'_>, b: &View<'_>, c: &View<'_>) {
    for operation in [union, intersection] {
        let (Ok(ab), Ok(bc), Ok(_)) = (operation(a, b), operation(b, c), operation(a, c)) else {
            continue;
        };
        let (left, right) = (operation(&accepted(&ab), c), operation(a, &accepted(&bc)));
        match (left, right) {
            (Ok(left), Ok(right)) => assert_eq!(left, right, "not associative"),
            (Err(left), Err(right)) => assert_eq!(left.class(), right.class()),
            (left, right) => panic!("in one order only: {:?} {:?}", left.err(), right.err()),
        }
    }
}
