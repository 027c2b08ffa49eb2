//! States of unsized aggregates, which one process passes to another.

use super::forge::{Input, repair, repair_like};
use super::oracle;
use pg_bloom_core::filter::merging::heap::Heap;
use pg_bloom_core::filter::merging::{MergedFilters, Operation, PartialMerge};
use pg_bloom_core::filter::{build, estimate, merge};
use pg_bloom_core::{Body, Class, View};

/// The largest filter that an operation may make.
const LIMIT: u64 = 64 << 10;

/// An input is two states, then the number of elements that the first is said to have, then hashes.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let parts = [input.part(), input.part()];
    let elements = input.number() >> (input.byte() % 64);
    let hashes: Vec<u64> = (0..8).map(|_| input.number()).collect();
    as_parts(parts[0]);
    merge_set(parts, elements, &hashes);
    let [a, b] = parts.map(|part| repair(part, true));
    let [a, b] = [&a, &b].map(|value| View::parse_partial(value));
    for state in [&a, &b].into_iter().flatten() {
        settle(state, elements, &hashes);
    }
    if let (Ok(a), Ok(b)) = (&a, &b) {
        absorb(a, b);
    }
}

/// Bytes that may be the state of a merge from another process.
fn as_parts(bytes: &[u8]) {
    let Ok(parts) = PartialMerge::parse(bytes) else {
        return;
    };
    let mut set = MergedFilters::new(&mut Heap, parts.operation);
    if set.add_partial(&mut Heap, &parts).is_ok() {
        finish(&mut set);
    }
}

/// The filter that a set is in the end, if it is one.
fn finish(set: &mut MergedFilters<Heap>) -> Option<Vec<u8>> {
    let value = possible(set.finish(&mut Heap, LIMIT))?;
    View::parse(&value).expect("a merged set is a filter");
    Some(value)
}

/// Filters merge to the same in both orders, in one process and in several.
fn merge_set(parts: [&[u8]; 2], ratios: u64, hashes: &[u64]) {
    let first = repair(parts[0], false);
    let mut filters = vec![first.clone()];
    for (i, ratio) in ratios.to_le_bytes()[..4].iter().enumerate() {
        filters.push(repair_like(parts[i % 2], &first, *ratio));
    }
    for operation in [Operation::Union, Operation::Intersection] {
        let merged = |order: &mut dyn Iterator<Item = &Vec<u8>>, apart: bool| {
            let mut set = MergedFilters::new(&mut Heap, operation);
            for value in order {
                let view = View::parse(value).expect("a repaired value is a filter");
                if apart {
                    let mut own = MergedFilters::new(&mut Heap, operation);
                    own.add(&mut Heap, &view).ok()?;
                    let bytes: Vec<u8> =
                        own.to_partial().expect("a filter is not too much to hand over");
                    assert!(View::parse_partial(&bytes).is_err());
                    let parts =
                        PartialMerge::parse(&bytes).expect("what was handed over can be read");
                    set.add_partial(&mut Heap, &parts).ok()?;
                } else {
                    set.add(&mut Heap, &view).ok()?;
                }
            }
            finish(&mut set)
        };
        let value = merged(&mut filters.iter(), false);
        for apart in [false, true] {
            assert_eq!(
                merged(&mut filters.iter().rev(), apart),
                value,
                "another order, apart: {apart}"
            );
        }
        let Some(value) = value else { continue };
        let view = View::parse(&value).expect("it was read before");
        for &hash in hashes {
            let mut has = filters
                .iter()
                .map(|value| build::contains(&View::parse(value).expect("a filter"), hash));
            let expected = if operation == Operation::Union {
                has.any(|has| has)
            } else {
                has.all(|has| has)
            };
            assert!(!expected || build::contains(&view, hash), "a false negative");
        }
    }
}

/// Ends an unsized build: what comes of it is a filter that has every element, at the rate if that
/// can be told.
fn settle(state: &View<'_>, elements: u64, hashes: &[u64]) {
    let h = &state.header;
    let value: Vec<u8> = match (state.body, h.is_to_be_sized()) {
        (Body::Sparse(entries), true) => {
            let own: Vec<u64> = entries.iter().map(|entry| u64::from_le_bytes(*entry)).collect();
            let Some(value) = possible(build::from_hashes(h, &own, LIMIT)) else {
                return;
            };
            let view = View::parse(&value).expect("a settled build is a filter");
            assert!(own.iter().all(|&hash| build::contains(&view, hash)), "a false negative");
            assert!(own.is_empty() || view.header.capacity.elements() >= Some(own.len() as u64));
            value
        }
        (Body::Dense(bits), true) => {
            // No filter that can be stored holds more elements.
            let Some(value) =
                possible(build::fold_unsized_build(h, bits, elements.min(1 << 40), LIMIT))
            else {
                return;
            };
            value
        }
        (_, false) => state.to_buffer(),
    };
    let view = View::parse(&value).expect("a settled build is a filter");
    assert!(
        hashes
            .iter()
            .all(|&hash| !oracle::has(state, hash) || build::contains(&view, hash)),
        "a false negative"
    );
    assert!(estimate::cardinality(&view) >= 0.0);
    if let (Body::Dense(_), Some(before), Some(after)) =
        (state.body, oracle::bits_of(state), oracle::bits_of(&view))
    {
        let q = h.blocks / view.header.blocks;
        assert_eq!(oracle::fold(h.layout, &before, q), after);
    }
}

fn possible(made: pg_bloom_core::Result<Vec<u8>>) -> Option<Vec<u8>> {
    if let Err(error) = &made {
        assert!([Class::TooLarge, Class::InvalidParameter].contains(&error.class()), "{error:?}");
    }
    made.ok()
}

/// Merges one state into another as far as that is the core's work.
fn absorb(a: &View<'_>, b: &View<'_>) {
    let Ok(header) = merge::merged_header(&a.header, &b.header) else {
        return;
    };
    // Hashes without a size are added one by one, and only to a state of their own layout.
    if a.header.is_unsized() || b.header.is_unsized() || header.check_size(LIMIT).is_err() {
        return;
    }
    let mut value: Vec<u8> = header.dense();
    let payload = &mut value[header.prefix_bytes()..];
    for state in [a, b] {
        merge::or_into(payload, header.blocks, state);
    }
    let merged = match View::parse_partial(&value) {
        Ok(merged) => merged,
        Err(error) => {
            // Bits need a kind, as the parser says; a state has one as soon as it has an element.
            assert!(header.kind.is_none(), "{error:?} for {header:?}");
            return;
        }
    };
    let Some(found) = oracle::bits_of(&merged) else {
        return;
    };
    let mut expected = vec![false; found.len()];
    for state in [a, b] {
        let Some(bits) = oracle::bits_of(state) else {
            return;
        };
        let spread = oracle::spread(header.layout, &bits, header.blocks / state.header.blocks);
        expected.iter_mut().zip(spread).for_each(|(bit, other)| *bit |= other);
    }
    assert_eq!(found, expected, "{:?}", merged.header);
}
