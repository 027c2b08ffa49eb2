//! Other sizes for an existing filter.
//!
//! ```text
//! list   ──▶  as built from these elements with the other capacity
//! bits   ──▶  spread to a size that is a multiple, or folded to one that divides
//! ```
//!
//! [`fold`] halves a filter that has fewer elements than its capacity:
//!
//! ```text
//! list   while a list of its length may have that size; then it becomes bits
//! bits   neighbouring blocks are ORed
//! ```
//!
//! Resizing bits can't change the number of hashes that set them. If capacity and rate need another number, as in a
//! filter that was folded to another rate, the size is the smallest that keeps the rate and is its own times a power of
//! two.

use super::build::{insert_entries, settle};
use super::estimate::{dense_form_of, rate_of_bits};
use super::header::{Capacity, Header, payload_mut};
use super::merge::gcd;
use super::view::{Body, View};
use crate::error::{InvalidParameter, Result};
use crate::kind::Kind;
use crate::memory::Buffer;
use crate::sizing::{self, MAX_STORED_BYTES};
use crate::{interrupt, memory};

/// The filter as if built for `capacity` elements at its own rate. Without a capacity the filter must be a list, and is
/// sized for its elements. Errors: [`InvalidParameter::ResizeDoesNotDivide`] for bits whose size neither divides nor is
/// divided by the new one, [`InvalidParameter::ResizeNeedsCapacity`] for bits without a capacity;
/// [`crate::Class::TooLarge`] if it would grow to more than `limit` bytes; those of [`sizing::size()`].
pub fn resize<B: Buffer>(view: &View<'_>, capacity: Option<u64>, limit: u64) -> Result<B> {
    match (view.body, capacity) {
        (Body::Sparse(entries), _) => resize_list(&view.header, entries, capacity, limit),
        (Body::Dense(bits), Some(capacity)) => resize_bits(&view.header, bits, capacity, limit),
        (Body::Dense(_), None) => Err(InvalidParameter::ResizeNeedsCapacity.into()),
    }
}

fn resize_list<B: Buffer>(h: &Header<'_>, entries: &[[u8; 8]], capacity: Option<u64>, limit: u64) -> Result<B> {
    let header = match capacity {
        Some(capacity) => Header::sized(sizing::size(h.layout, capacity, h.fpr)?, h.kind),
        None => {
            let kind = if entries.is_empty() { Kind::NONE } else { h.kind };
            settle(&Header { kind, ..Header::unsized_(h.layout, h.fpr) }, entries.len(), u64::MAX)?
        }
    };
    if header.blocks > h.blocks {
        header.check_size(limit)?;
    }
    if header.fits_sparse(entries.len()) {
        return Ok(View { header, body: Body::Sparse(entries) }.to_buffer());
    }
    let mut value: B = header.dense();
    insert_entries(payload_mut(&mut value, &header), &header, entries);
    Ok(value)
}

fn resize_bits<B: Buffer>(h: &Header<'_>, bits: &[u8], capacity: u64, limit: u64) -> Result<B> {
    let blocks = blocks_for(h, capacity)?;
    let header = Header { capacity: Capacity::Elements(capacity), ..of_size(h, blocks) };
    if blocks > h.blocks {
        header.check_size(limit)?;
    }
    if !blocks.is_multiple_of(h.blocks) && !h.blocks.is_multiple_of(blocks) {
        let possible = capacity_that_fits(h, blocks);
        return Err(InvalidParameter::ResizeDoesNotDivide { own: h.parameters(), capacity, blocks, possible }.into());
    }
    let mut value: B = header.dense();
    let payload = payload_mut(&mut value, &header);
    if blocks >= h.blocks {
        h.layout.spread(bits, payload, blocks / h.blocks);
    } else {
        h.layout.fold(bits, payload, h.blocks / blocks);
    }
    Ok(value)
}

/// The blocks of a filter with the hashes and the rate of this one, for this many elements.
fn blocks_for(h: &Header<'_>, capacity: u64) -> Result<u64> {
    let size = sizing::size(h.layout, capacity, h.fpr)?;
    if size.num_hashes == h.num_hashes {
        return Ok(size.blocks);
    }
    let holds = |blocks| sizing::capacity_of(h.layout, h.num_hashes, blocks, h.fpr) >= capacity;
    let mut blocks = h.blocks;
    while !holds(blocks) {
        blocks *= 2;
        Header { blocks, capacity: Capacity::Elements(capacity), ..*h }.check_size(MAX_STORED_BYTES)?;
    }
    while blocks.is_multiple_of(2) && holds(blocks / 2) {
        blocks /= 2;
    }
    Ok(blocks)
}

/// The capacity of a size to which bits can be resized: the next one from `wanted` blocks up, if there is one.
fn capacity_that_fits(h: &Header<'_>, wanted: u64) -> Option<u64> {
    let mut blocks = h.blocks;
    while blocks < wanted {
        blocks *= 2;
    }
    while blocks.is_multiple_of(2) && blocks / 2 >= wanted {
        blocks /= 2;
    }
    [blocks, h.blocks].into_iter().find_map(|blocks| {
        let most = sizing::capacity_of(h.layout, h.num_hashes, blocks, h.fpr);
        // A size may be slightly larger than the least that keeps the rate.
        [0, 1, 5, 20, 50].into_iter().map(|less| most - most.saturating_mul(less).div_ceil(1000)).find(|&capacity| {
            blocks_for(h, capacity).is_ok_and(|found| found.is_multiple_of(h.blocks) || h.blocks.is_multiple_of(found))
        })
    })
}

/// Halves a filter while its present rate stays at or under `fpr`. If it becomes smaller, its rate is `fpr`, and its
/// capacity what the smaller size holds at that rate. Errors: those of [`sizing::check_fpr`].
pub fn fold<B: Buffer>(view: &View<'_>, fpr: f64) -> Result<B> {
    let h = &view.header;
    sizing::check_fpr(h.layout, fpr)?;
    let mut header = *h;
    // Its bits, once they are no longer those of `view`.
    let mut folded: Option<Vec<u8>> = None;
    while header.blocks > 0 && header.blocks.is_multiple_of(2) {
        let half = Header { fpr, ..of_size(&header, header.blocks / 2) };
        let (rate, bits) = match view.body {
            Body::Sparse(entries) if half.fits_sparse(entries.len()) => (dense_form_of(&half, entries).1, None),
            body => {
                let mut bits = memory::zeroed(half.payload_bytes() as usize);
                match (folded.as_deref(), body) {
                    (Some(own), _) | (None, Body::Dense(own)) => h.layout.fold(own, &mut bits, 2),
                    (None, Body::Sparse(entries)) => insert_entries(&mut bits, &half, entries),
                }
                (rate_of_bits(&half, &bits), Some(bits))
            }
        };
        if rate > fpr {
            break;
        }
        (header, folded) = (half, bits);
    }
    if header.blocks < h.blocks {
        header.capacity = Capacity::Elements(sizing::capacity_of(h.layout, h.num_hashes, header.blocks, fpr));
    }
    let Some(bits) = folded else { return Ok(View { header, body: view.body }.to_buffer()) };
    let mut value: B = header.dense();
    interrupt::copy(payload_mut(&mut value, &header), &bits);
    Ok(value)
}

/// The header of the filter with this many blocks, to which it is spread or folded.
fn of_size<'a>(h: &Header<'a>, blocks: u64) -> Header<'a> {
    Header { blocks, base_blocks: gcd(h.base_blocks, blocks), ..*h }
}

#[cfg(test)]
mod tests {
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
        let tag = if hashes.is_empty() { Tag::None } else { Tag::Numeric };
        built(Request { capacity, fpr: 0.01, layout }, tag, hashes)
    }

    fn resized(value: &[u8], capacity: Option<u64>) -> Result<Vec<u8>> {
        let result: Vec<u8> = resize(&View::parse(value).unwrap(), capacity, NO_LIMIT)?;
        View::parse(&result).unwrap();
        Ok(result)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// A list becomes what a build with the other capacity gives, be that a list, bits or of a power of two.
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

        /// Bits are those of a build at the other size where that is smaller, spread where it is larger; else there is
        /// an error whose capacity works.
        #[test]
        fn bits_have_sizes_that_divide(
            layout in prop::sample::select(&Layout::ALL),
            own in 1u64..3000,
            capacity in prop_oneof![1u64..3000, 3000u64..60_000],
            seed: u64,
        ) {
            let hashes = hashes(seed, own as u32);
            let given = build(layout, Some(own), &hashes);
            let view = View::parse(&given).unwrap();
            prop_assume!(matches!(view.body, Body::Dense(_)));
            let size = sizing::size(layout, capacity, 0.01).unwrap();
            let (small, large) = (size.blocks.min(view.header.blocks), size.blocks.max(view.header.blocks));
            match resized(&given, Some(capacity)) {
                Ok(result) => {
                    prop_assert!(large.is_multiple_of(small));
                    let after = View::parse(&result).unwrap();
                    prop_assert_eq!(after.header, Header { base_blocks: small, ..Header::sized(size, view.header.kind) });
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
                    if size.blocks >= 64 && view.header.blocks >= 64 {
                        prop_assert!(possible.is_some(), "{:?}", error);
                    }
                    if let Some(possible) = *possible {
                        prop_assert!(resized(&given, Some(possible)).is_ok(), "{:?}", error);
                    }
                }
            }
        }
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
            // A little less than four times as many: few blocks hold a little more at this rate than their share.
            let wanted = before.capacity.elements().unwrap() * 7 / 2;
            let larger = resized(&folded, Some(wanted)).unwrap();
            let after = View::parse(&larger).unwrap();
            assert_eq!(
                after.header,
                Header { blocks: before.blocks * 4, capacity: Capacity::Elements(wanted), ..before }
            );
            assert!(hashes.iter().all(|&hash| contains(&after, hash)));
            assert_eq!(resized(&larger, before.capacity.elements()).unwrap(), folded);
        }
    }

    #[test]
    fn what_grows_beyond_the_limit_is_refused() {
        let hashes = hashes(2, 1000);
        for layout in Layout::ALL {
            let (list, bits) = (build(layout, Some(100_000), &hashes), build(layout, Some(1000), &hashes));
            for (value, capacity, fails) in [(&list, 200_000, true), (&list, 1000, false), (&bits, 8000, true)] {
                let result = resize::<Vec<u8>>(&View::parse(value).unwrap(), Some(capacity), 1500);
                assert_eq!(result.err().map(|error| error.class()), fails.then_some(Class::TooLarge), "{layout:?}");
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
}
