use super::heap::Heap;
use super::*;
use crate::error::{Class, InvalidParameter, Mismatch, Problem, Result};
use crate::filter::merge::tests::filter;
use crate::filter::merge::{intersection, union};
use crate::filter::{Header, View};
use crate::layout::Layout;
use proptest::prelude::*;

const NO_LIMIT: u64 = u64::MAX;
/// Block counts of which many divide each other, and many don't.
const BLOCKS: [u64; 12] = [1, 2, 3, 4, 5, 6, 8, 12, 24, 24, 24, 48];

/// What pairwise merging gives in an order that works, if there is one: that from the largest down.
fn naive(
    operation: Operation,
    filters: &[Vec<u8>],
    limit: u64,
) -> std::result::Result<Vec<u8>, Class> {
    let mut views: Vec<View<'_>> =
        filters.iter().map(|value| View::parse(value).unwrap()).collect();
    views.sort_by_key(|view| std::cmp::Reverse(view.header.blocks));
    let mut result: Vec<u8> = views[0].to_buffer();
    for view in &views[1..] {
        let own = View::parse(&result).unwrap();
        let merged = match operation {
            Operation::Union => union(&own, view, NO_LIMIT),
            Operation::Intersection => intersection(&own, view),
        };
        result = merged.map_err(|error| error.class())?;
    }
    let given = views.iter().map(View::payload_bytes).max().unwrap();
    let grown = View::parse(&result).unwrap().payload_bytes() > given;
    if grown && result.len() as u64 > limit {
        Err(Class::TooLarge)
    } else {
        Ok(result)
    }
}

/// The same by one merge for each part of the filters, of which all except the last are passed on
/// as bytes.
fn merged(operation: Operation, parts: &[&[Vec<u8>]], limit: u64) -> Result<Vec<u8>> {
    let memory = &mut Heap;
    let (last, others) = parts.split_last().unwrap();
    let mut merged = taken(operation, last, limit)?;
    for part in others {
        let bytes: Vec<u8> = taken(operation, part, limit)?.to_partial()?;
        assert!(View::parse(&bytes).is_err() && View::parse_partial(&bytes).is_err());
        let parts = PartialMerge::parse(&bytes).unwrap();
        assert_eq!((parts.operation, parts.filters.is_empty()), (operation, false));
        merged.add_partial(memory, &parts)?;
    }
    let value: Vec<u8> = merged.finish(memory, limit)?;
    View::parse(&value).unwrap();
    assert_eq!(merged.finish::<Vec<u8>>(memory, limit).as_ref(), Ok(&value), "finished twice");
    Ok(value)
}

fn taken(operation: Operation, filters: &[Vec<u8>], limit: u64) -> Result<MergedFilters<Heap>> {
    let mut merged = MergedFilters::new(&mut Heap, operation);
    for value in filters {
        merged.add(&mut Heap, &View::parse(value).unwrap())?;
        // A window's result in between changes nothing.
        let _ = merged.finish::<Vec<u8>>(&mut Heap, limit);
    }
    Ok(merged)
}

fn some_filters() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let hashes = prop::collection::vec((any::<u64>(), 0u64..40), 0..80);
    let one = (prop::sample::select(&BLOCKS), 1u64..4, hashes, any::<bool>(), 0..12);
    (prop::sample::select(&Layout::ALL), prop::collection::vec(one, 1..8), any::<bool>()).prop_map(
        |(layout, filters, all)| {
            let unit = if layout == Layout::Classic { 96 } else { 1 };
            let one =
                |(blocks, capacity, hashes, few, none): (u64, u64, Vec<(u64, u64)>, bool, i32)| {
                    if none == 0 {
                        let fpr = if capacity == 1 { 0.5 } else { crate::sizing::DEFAULT_FPR };
                        return Header::without_size(Layout::Blocked, fpr).sparse(0);
                    }
                    // Some elements are those of other filters, too.
                    let count = if few { hashes.len() / 16 } else { hashes.len() };
                    let hashes = hashes[..count].iter().map(|&(own, shared)| {
                        if shared < 20 { crate::hash::word(3, shared as u32) } else { own }
                    });
                    let blocks = if all { blocks } else { 12 * (1 + blocks % 2) };
                    filter(layout, blocks * unit, capacity, &hashes.collect::<Vec<_>>())
                };
            filters.into_iter().map(one).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// In every order and however they are spread over processes, filters merge to what they merge
    /// to pairwise in an order that works, or not at all.
    #[test]
    fn any_order_gives_the_same(
        (filters, shuffled) in some_filters().prop_flat_map(|filters| (Just(filters.clone()), Just(filters).prop_shuffle())),
        cuts in (0usize..8, 0usize..8),
        limit in prop::sample::select(vec![NO_LIMIT, 0, 200, 800, 2000]),
        operation in prop::sample::select(vec![Operation::Union, Operation::Intersection]),
    ) {
        let expected = naive(operation, &filters, limit);
        let (first, second) = (cuts.0.min(filters.len()), cuts.1.min(filters.len()));
        let (first, second) = (first.min(second), first.max(second));
        for filters in [&filters, &shuffled] {
            let whole: &[&[Vec<u8>]] = &[filters];
            let split = [&filters[..first], &filters[second..], &filters[first..second]];
            let split: Vec<&[Vec<u8>]> = split.into_iter().filter(|part| !part.is_empty()).collect();
            for parts in [whole, &split] {
                let found = merged(operation, parts, limit).map_err(|error| error.class());
                prop_assert_eq!(&found, &expected, "{:?}", parts.iter().map(|part| part.len()).collect::<Vec<_>>());
            }
        }
    }

    /// Whatever is changed in a partial state, it is refused or makes a filter.
    #[test]
    fn a_damaged_state_is_refused_or_works(
        filters in some_filters(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        operation in prop::sample::select(vec![Operation::Union, Operation::Intersection]),
    ) {
        let Ok(mut merged) = taken(operation, &filters, NO_LIMIT) else { return Ok(()) };
        let mut bytes: Vec<u8> = merged.to_partial().unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len().min(160));
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            let len = cut.index(bytes.len());
            Vec::truncate(&mut bytes, len);
        }
        let Ok(parts) = PartialMerge::parse(&bytes) else { return Ok(()) };
        let mut merged = MergedFilters::new(&mut Heap, parts.operation);
        if merged.add_partial(&mut Heap, &parts).is_ok()
            && let Ok(value) = merged.finish::<Vec<u8>>(&mut Heap, 4000)
        {
            prop_assert!(View::parse(&value).is_ok());
        }
    }
}

#[test]
fn the_error_names_a_pair_and_a_capacity_that_would_have_fitted() {
    for operation in [Operation::Union, Operation::Intersection] {
        let sizes = [(64, 640), (96, 960), (192, 1920)];
        let [a, b, c] =
            sizes.map(|(blocks, capacity)| filter(Layout::Blocked, blocks, capacity, &[blocks]));
        for filters in [vec![a.clone(), b.clone()], vec![b.clone(), a.clone()]] {
            let error = merged(operation, &[&filters], NO_LIMIT).unwrap_err();
            let Problem::InvalidParameter(InvalidParameter::Mismatch { why, a, b, larger }) =
                error.problem()
            else {
                panic!("{error:?}")
            };
            assert_eq!((*why, larger.capacity), (Mismatch::Sizes, 960));
            assert_eq!(a.capacity.min(b.capacity), 640);
            assert_eq!(a.capacity.max(b.capacity), 960);
        }
        let all = [a, b, c];
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let filters = order.map(|i| all[i].clone());
            assert_eq!(
                merged(operation, &[&filters], NO_LIMIT).unwrap(),
                naive(operation, &all, NO_LIMIT).unwrap()
            );
        }
    }
}

/// Sizes that no filter can be a multiple of are refused at once, and lists are no reason to make
/// bits.
#[test]
fn memory_is_what_came() {
    let mut merged = MergedFilters::new(&mut Heap, Operation::Union);
    let large = |blocks| filter(Layout::Blocked, blocks, 1 << 30, &[blocks]);
    for blocks in [1 << 21, 3 << 20] {
        merged.add(&mut Heap, &View::parse(&large(blocks)).unwrap()).unwrap();
    }
    assert!(
        merged
            .sizes
            .iter()
            .all(|size| matches!(size.elements, MergedElements::Hashes { .. }))
    );
    let error = merged
        .add(&mut Heap, &View::parse(&large(5 << 20)).unwrap())
        .unwrap_err();
    assert_eq!(error.class(), Class::InvalidParameter);
}
