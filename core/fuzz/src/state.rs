//! States of unsized aggregates: what one process hands to another.

use super::forge::{Input, mend};
use super::oracle;
use pg_bloom_core::{Body, Code, View, build, estimate, merge};

/// The largest filter that an operation may make.
const LIMIT: u64 = 64 << 10;

/// An input is two states, then the number of elements that the first is said to have, then hashes.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let parts = [input.part(), input.part()];
    let elements = input.number() >> (input.byte() % 64);
    let hashes: Vec<u64> = (0..8).map(|_| input.number()).collect();
    let [a, b] = parts.map(|part| mend(part, true));
    let [a, b] = [&a, &b].map(|value| View::parse_state(value));
    for state in [&a, &b].into_iter().flatten() {
        settle(state, elements, &hashes);
    }
    if let (Ok(a), Ok(b)) = (&a, &b) {
        absorb(a, b);
    }
}

/// Whether a state has an element, by definition.
fn has(view: &View<'_>, hash: u64) -> bool {
    let h = &view.header;
    match view.body {
        Body::Sparse(entries) => entries.contains(&hash.to_le_bytes()),
        Body::Dense(bits) => oracle::positions(h.layout, h.hashes, h.blocks, hash)
            .iter()
            .all(|p| bits[(p / 8) as usize] >> (p % 8) & 1 == 1),
    }
}

/// Ends an unsized build: what comes of it is a filter that has every element, at the rate if that can be told.
fn settle(state: &View<'_>, elements: u64, hashes: &[u64]) {
    let h = &state.header;
    let value: Vec<u8> = match (state.body, h.is_to_be_sized()) {
        (Body::Sparse(entries), true) => {
            let own: Vec<u64> = entries.iter().map(|entry| u64::from_le_bytes(*entry)).collect();
            let Some(value) = possible(build::from_hashes(h, &own, LIMIT)) else { return };
            let view = View::parse(&value).expect("a settled build is a filter");
            assert!(own.iter().all(|&hash| build::contains(&view, hash)), "a false negative");
            assert!(own.is_empty() || view.header.capacity >= own.len() as u64);
            value
        }
        (Body::Dense(bits), true) => {
            // No filter that can be stored holds more, and the state is asked for no more.
            let Some(value) = possible(build::settle_dense(h, bits, elements.min(1 << 40), LIMIT)) else { return };
            value
        }
        (_, false) => state.to_buffer(),
    };
    let view = View::parse(&value).expect("a settled build is a filter");
    assert!(hashes.iter().all(|&hash| !has(state, hash) || build::contains(&view, hash)), "a false negative");
    assert!(estimate::cardinality(&view) >= 0.0);
    if let (Body::Dense(_), Some(before), Some(after)) = (state.body, oracle::bits_of(state), oracle::bits_of(&view)) {
        let q = h.blocks / view.header.blocks;
        assert_eq!(oracle::fold(h.layout, &before, q), after);
    }
}

fn possible(made: pg_bloom_core::Result<Vec<u8>>) -> Option<Vec<u8>> {
    if let Err(error) = &made {
        assert!([Code::TooLarge, Code::InvalidParameter].contains(&error.code), "{error:?}");
    }
    made.ok()
}

/// Merges one state into another as far as that is the core's work.
fn absorb(a: &View<'_>, b: &View<'_>) {
    let Ok(header) = merge::merged_header(&a.header, &b.header, "merge") else { return };
    // Hashes without a size are added one by one, and only to a state of their own layout.
    if a.header.is_unsized() || b.header.is_unsized() || header.check_size(LIMIT).is_err() {
        return;
    }
    let mut value: Vec<u8> = header.dense();
    let payload = &mut value[header.prefix_bytes()..];
    for state in [a, b] {
        merge::or_into(payload, header.blocks, state);
    }
    let merged = match View::parse_state(&value) {
        Ok(merged) => merged,
        Err(error) => {
            // Bits need a kind, as the parser says; a state has one as soon as it has an element.
            assert!(header.kind.is_none(), "{error:?} for {header:?}");
            return;
        }
    };
    let Some(found) = oracle::bits_of(&merged) else { return };
    let mut expected = vec![false; found.len()];
    for state in [a, b] {
        let Some(bits) = oracle::bits_of(state) else { return };
        let spread = oracle::spread(header.layout, &bits, header.blocks / state.header.blocks);
        expected.iter_mut().zip(spread).for_each(|(bit, other)| *bit |= other);
    }
    assert_eq!(found, expected, "{:?}", merged.header);
}
