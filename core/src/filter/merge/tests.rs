use super::*;
use crate::error::{Class, Problem};
use crate::filter::build::{self, contains};
use crate::filter::estimate;
use crate::filter::resize::fold;
use crate::kind::Tag;
use crate::layout::{Layout, Shape};
use crate::sizing::FilterSize;
use proptest::prelude::*;

const NO_LIMIT: u64 = u64::MAX;

/// A filter of `hashes` in `blocks` blocks.
pub(in crate::filter) fn filter(
    layout: Layout,
    blocks: u64,
    capacity: u64,
    hashes: &[u64],
) -> Vec<u8> {
    let k = if layout == Layout::Parquet { 8 } else { 5 };
    let size = FilterSize { layout, num_hashes: k, blocks, capacity, fpr: 0.01 };
    let kind = if hashes.is_empty() { Kind::NONE } else { Kind::unnamed(Tag::Numeric) };
    let mut sorted = hashes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    build::from_hashes(&Header::with_size(size, kind), &sorted, NO_LIMIT).unwrap()
}

fn or(a: &[u8], b: &[u8]) -> Vec<u8> {
    let value: Vec<u8> =
        union(&View::parse(a).unwrap(), &View::parse(b).unwrap(), NO_LIMIT).unwrap();
    View::parse(&value).unwrap();
    value
}

fn and(a: &[u8], b: &[u8]) -> Vec<u8> {
    let value: Vec<u8> = intersection(&View::parse(a).unwrap(), &View::parse(b).unwrap()).unwrap();
    View::parse(&value).unwrap();
    value
}

fn neutral() -> Vec<u8> {
    Header::without_size(Layout::Blocked, 0.01).sparse(0)
}

/// Block counts of which each divides the next, with odd factors, and sets from empty to well above
/// the sparse limit.
fn filters(layout: Layout, count: usize) -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u64>)>> {
    let unit = if layout == Layout::Classic { 96 } else { 1 };
    let one = (
        prop::sample::select(vec![1u64, 3, 6, 24, 24, 24]),
        1u64..4,
        prop::collection::vec(any::<u64>(), 0..120),
    )
        .prop_map(move |(blocks, capacity, hashes)| {
            let keep = if capacity == 1 { hashes.len() / 16 } else { hashes.len() };
            let hashes = hashes[..keep].to_vec();
            (filter(layout, blocks * unit, capacity, &hashes), hashes)
        });
    let any = prop_oneof![9 => one, 1 => Just((neutral(), vec![]))];
    prop::collection::vec(any, count)
}

fn three_filters() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u64>)>> {
    prop::sample::select(&Layout::ALL).prop_flat_map(|layout| filters(layout, 3))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_cardinality_of_a_union_needs_no_union(f in three_filters()) {
        let merged = or(&f[0].0, &f[1].0);
        let (a, b) = (View::parse(&f[0].0).unwrap(), View::parse(&f[1].0).unwrap());
        let found = estimate::union_cardinality(&a, &b).unwrap();
        prop_assert_eq!(found, estimate::cardinality(&View::parse(&merged).unwrap()));
        let thrice = or(&merged, &f[2].0);
        let (ab, c) = (View::parse(&merged).unwrap(), View::parse(&f[2].0).unwrap());
        let found = estimate::union_cardinality(&ab, &c).unwrap();
        prop_assert_eq!(found, estimate::cardinality(&View::parse(&thrice).unwrap()));
    }

    #[test]
    fn union_is_a_commutative_idempotent_monoid_that_loses_nothing(f in three_filters()) {
        let (a, b, c) = (&f[0].0, &f[1].0, &f[2].0);
        prop_assert_eq!(or(a, b), or(b, a));
        prop_assert_eq!(or(&or(a, b), c), or(a, &or(b, c)));
        prop_assert_eq!(&or(a, a), a);
        prop_assert_eq!(&or(a, &neutral()), a);
        prop_assert_eq!(&or(&neutral(), a), a);
        // Absorbing again changes nothing.
        prop_assert_eq!(or(&or(a, b), b), or(a, b));
        let all = or(&or(a, b), c);
        let view = View::parse(&all).unwrap();
        prop_assert!(f.iter().flat_map(|(_, hashes)| hashes).all(|&hash| contains(&view, hash)), "one is lost");
    }

    #[test]
    fn intersection_is_commutative_associative_and_idempotent_and_loses_nothing(f in three_filters()) {
        let (a, b, c) = (&f[0].0, &f[1].0, &f[2].0);
        prop_assert_eq!(and(a, b), and(b, a));
        prop_assert_eq!(and(&and(a, b), c), and(a, &and(b, c)));
        prop_assert_eq!(&and(a, a), a);
        let both = and(a, b);
        let view = View::parse(&both).unwrap();
        prop_assert!(f[0].1.iter().filter(|hash| f[1].1.contains(hash)).all(|&hash| contains(&view, hash)));
    }

    /// Folding a filter never loses an element, and folding what was spread gives it back.
    #[test]
    fn folding_undoes_spreading(
        layout in prop::sample::select(&Layout::ALL),
        q in 2u64..9,
        hashes in prop::collection::vec(any::<u64>(), 1..300),
    ) {
        let blocks = if layout == Layout::Classic { 203 } else { 3 };
        let k = if layout == Layout::Parquet { 8 } else { 5 };
        let (bytes, more) = (layout.payload_bytes(blocks) as usize, layout.payload_bytes(blocks * q) as usize);
        let (mut small, mut large) = (vec![0; bytes], vec![0; more]);
        let shape = Shape { layout, num_hashes: k, blocks };
        let large_shape = Shape { blocks: blocks * q, ..shape };
        shape.insert_all(&mut small, &hashes);
        large_shape.insert_all(&mut large, &hashes);
        let mut folded = vec![0; bytes];
        layout.fold(&large, &mut folded, q);
        prop_assert_eq!(&folded, &small, "folding gives what a build at that size does");
        let mut spread = vec![0; more];
        layout.spread(&small, &mut spread, q);
        prop_assert!(hashes.iter().all(|&h| large_shape.contains(&spread, h)));
        let mut back = vec![0; bytes];
        layout.fold(&spread, &mut back, q);
        prop_assert_eq!(&back, &small);
    }

    /// `bloom_fold`: no element lost, the same value from the sparse and the dense form where both
    /// are possible.
    #[test]
    fn fold_keeps_every_element(
        layout in prop::sample::select(&Layout::ALL),
        hashes in prop::collection::vec(any::<u64>(), 0..200),
        fpr in prop::sample::select(vec![0.5, 0.1, 0.01, 1e-4]),
    ) {
        let unit = if layout == Layout::Classic { 64 } else { 1 };
        let given = filter(layout, 48 * unit, 100, &hashes);
        let view = View::parse(&given).unwrap();
        let folded: Vec<u8> = fold(&view, fpr).unwrap();
        let after = View::parse(&folded).unwrap();
        prop_assert!(hashes.iter().all(|&h| contains(&after, h)));
        prop_assert!(after.header.blocks <= view.header.blocks);
        if after.header.blocks < view.header.blocks {
            prop_assert!(estimate::current_fpr(&after) <= fpr);
        }
        let again: Vec<u8> = fold(&after, fpr).unwrap();
        prop_assert_eq!(again, folded, "folding is idempotent");
    }
}

#[test]
fn the_plain_empty_filter_is_the_identity_of_other_empty_ones_too() {
    for layout in Layout::ALL {
        for fpr in [0.5, 0.01, 1e-4] {
            let other: Vec<u8> = Header::without_size(layout, fpr).sparse(0);
            assert_eq!(or(&other, &neutral()), other);
            assert_eq!(or(&neutral(), &other), other);
        }
    }
}

#[test]
fn other_parameters_are_refused_with_both_sets() {
    let a = filter(Layout::Blocked, 4, 10, &[1]);
    for b in [
        filter(Layout::Blocked, 6, 10, &[2]),
        filter(Layout::Classic, 4, 10, &[]),
        filter(Layout::Parquet, 4, 9, &[]),
    ] {
        let error =
            union::<Vec<u8>>(&View::parse(&a).unwrap(), &View::parse(&b).unwrap(), NO_LIMIT)
                .unwrap_err();
        assert_eq!(error.class(), Class::InvalidParameter);
        let Problem::InvalidParameter(InvalidParameter::Mismatch { a: x, b: y, larger, .. }) =
            error.problem()
        else {
            panic!("{error:?}")
        };
        let parameters = [&a, &b].map(|filter| View::parse(filter).unwrap().header.size());
        assert_eq!(([*x, *y], larger.capacity), (parameters, 10));
    }
}

#[test]
fn other_kinds_are_refused_with_both_names() {
    let mut b = filter(Layout::Blocked, 4, 10, &[1]);
    let a = b.clone();
    b[2] = Tag::Integer as u8;
    let error = union::<Vec<u8>>(&View::parse(&a).unwrap(), &View::parse(&b).unwrap(), NO_LIMIT)
        .unwrap_err();
    assert_eq!(error.class(), Class::KindMismatch);
    assert_eq!(error, KindMismatch::Filters { a: "numeric".into(), b: "integer".into() }.into());
}

/// Unions that would take gigabytes: what is sparse is counted by its hashes, or at the size of
/// what is dense.
#[test]
fn the_cardinality_of_a_huge_union_needs_little_memory() {
    let hashes: Vec<u64> = (0..3000).map(|i| crate::hash::hash(&u64::to_le_bytes(i))).collect();
    for layout in Layout::ALL {
        let unit = if layout == Layout::Classic { 512 } else { 1 };
        let small = filter(layout, 64 * unit, 3000, &hashes[..2000]);
        let large = filter(layout, (1 << 21) * unit, 1 << 40, &hashes[1000..]);
        let twice = filter(layout, (1 << 22) * unit, 1 << 41, &hashes[..2500]);
        let [small, large, twice] = [&small, &large, &twice].map(|f| View::parse(f).unwrap());
        assert!(matches!((small.body, large.body), (Body::Dense(_), Body::Sparse(_))));
        assert_eq!(estimate::union_cardinality(&twice, &large).unwrap(), 3000.0);
        let found = estimate::union_cardinality(&small, &large).unwrap();
        assert!((found - 3000.0).abs() < 150.0, "{layout:?}: {found}");
    }
}

#[test]
fn a_result_over_the_limit_is_refused_before_it_is_made() {
    let hashes: Vec<u64> = (0..200).map(|i| crate::hash::word(1, i)).collect();
    let (small, large) =
        (filter(Layout::Blocked, 8, 10, &hashes), filter(Layout::Blocked, 1 << 20, 10, &[1]));
    let error =
        union::<Vec<u8>>(&View::parse(&small).unwrap(), &View::parse(&large).unwrap(), 1 << 20)
            .unwrap_err();
    assert_eq!(error.class(), Class::TooLarge);
}

/// Two empty filters of different sizes merge to bits of no kind. The first element that is added
/// gives it one.
#[test]
fn the_first_element_gives_a_merged_filter_its_kind() {
    for layout in Layout::ALL {
        let merged = or(&filter(layout, 8, 8, &[]), &filter(layout, 16, 16, &[]));
        let view = View::parse(&merged).unwrap();
        assert!(view.header.kind.is_none());
        for kind in [Kind::unnamed(Tag::Numeric), Kind::other("pg_catalog.inet")] {
            let added: Vec<u8> = build::add_hashes(&view, kind, &[5, 77], NO_LIMIT).unwrap();
            let added = View::parse(&added).unwrap();
            assert_eq!(added.header.kind, kind);
            assert!(contains(&added, 5) && contains(&added, 77));
        }
    }
}
