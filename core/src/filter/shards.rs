//! Sets that change: one large filter as many small ones of the same size, several of which fit a page.
//!
//! ```text
//! capacity, rate ──▶ N blocks of one filter ──▶ S shards of B blocks, S·B ≥ N, a shard at most 960 bytes as stored
//!
//! element ──▶ hash ──▶ shard of S ──▶ block of B          both uniform, as one of S·B blocks
//! ```
//!
//! So the mean rate of the shards is that of one filter of S·B blocks, however many elements each shard has.

use super::header::{Capacity, HEADER_BYTES, Header};
use crate::error::{Result, TooLarge};
use crate::kind::Kind;
use crate::layout::Layout;
use crate::sizing;

/// The most bytes of a shard without the name of its kind. Eight shards fit a page of 8 kB, so in a page that is half
/// free four rows can be updated before it must be pruned. Larger shards waste less space for headers; smaller ones are
/// locked by other sessions less often.
const MOST_BYTES: usize = 960;
/// The least shards: sessions that add to a small set at once would wait for each other otherwise, and the versions of
/// its few rows could not be cleaned up.
const LEAST_SHARDS: u64 = 64;
/// The most shards: their numbers are of type `integer`.
const MOST_SHARDS: u64 = i32::MAX as u64;

/// How many shards a set with this capacity, rate and kind has, and the header of each.
///
/// # Errors
/// Those of [`sizing::size()`]; [`TooLarge::Shards`] for a capacity that needs too many.
pub fn shards<'a>(capacity: u64, fpr: f64, kind: Kind<'a>) -> Result<(u32, Header<'a>)> {
    let layout = Layout::Blocked;
    let size = sizing::size(layout, capacity, fpr)?;
    let whole = Header::sized(size, kind);
    let most_blocks = (MOST_BYTES - HEADER_BYTES) as u64 * 8 / layout.block_bits();
    let shards = size.blocks.div_ceil(most_blocks).max(LEAST_SHARDS);
    if shards > MOST_SHARDS {
        return Err(TooLarge::Shards { capacity, fpr, shards, most: MOST_SHARDS }.into());
    }
    Ok((shards as u32, one_of(whole, size.blocks, capacity, shards)))
}

/// The header of one of so many shards of a set with this capacity, which need so many blocks together.
pub(super) fn one_of<'a>(like: Header<'a>, blocks: u64, capacity: u64, shards: u64) -> Header<'a> {
    let blocks = blocks.div_ceil(shards);
    Header { blocks, base_blocks: blocks, capacity: Capacity::Elements(shard_capacity(capacity, shards)), ..like }
}

/// The capacity of one of the shards of a set.
pub fn shard_capacity(capacity: u64, shards: u64) -> u64 {
    capacity.div_ceil(shards)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;
    use crate::hash;
    use crate::kind::Tag;
    use crate::sizing::rate;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shards_are_small_and_enough(
            exponent in 0.0f64..11.0, log_fpr in 0.7f64..20.0, name in 0usize..=512
        ) {
            let (capacity, fpr) = (10f64.powf(exponent) as u64, (-log_fpr).exp());
            let name = "x".repeat(name);
            let kind = if name.is_empty() { Kind::of(Tag::Text) } else { Kind::other(&name) };
            let (shards, header) = shards(capacity, fpr, kind).expect("possible");
            let needed = sizing::size(Layout::Blocked, capacity, fpr).expect("possible");
            let all = u64::from(shards) * header.blocks;
            prop_assert!(all >= needed.blocks && all < needed.blocks + u64::from(shards));
            prop_assert!(all as f64 <= needed.blocks as f64 * 1.08 + LEAST_SHARDS as f64, "{all} of {}", needed.blocks);
            prop_assert!(header.dense_bytes() <= 960 + 512);
            prop_assert!(header.capacity.elements().expect("sized") * u64::from(shards) >= capacity);
            prop_assert!(header.num_hashes == needed.num_hashes && header.kind == kind);
        }
    }

    #[test]
    fn too_many_are_refused() {
        let error = shards(i64::MAX as u64, 0.5, Kind::of(Tag::Text)).expect_err("too many");
        assert_eq!(error.class(), Class::TooLarge);
        assert!(shards(0x10_0000_0000, 0.01, Kind::of(Tag::Text)).is_ok());
    }

    /// At capacity the mean rate of the shards is that of one filter of as many blocks, which is at most the promise.
    #[test]
    fn the_mean_rate_is_the_promise() {
        const PROBES: u64 = 1_000_000;
        for (capacity, fpr) in [(100_000, 0.01), (30_000, 0.001), (20_000, 0.1)] {
            let (shards, header) = shards(capacity, fpr, Kind::of(Tag::Integer)).expect("possible");
            let bytes = header.payload_bytes() as usize;
            let mut bits = vec![0u8; bytes * shards as usize];
            let place = |x: u64| {
                let hash = hash::hash(&x.to_le_bytes());
                let from = hash::shard(hash, shards) as usize * bytes;
                (hash, from..from + bytes)
            };
            for x in 0..capacity {
                let (hash, at) = place(x);
                header.shape().insert_all(&mut bits[at], &[hash]);
            }
            let contains = |x: u64| {
                let (hash, at) = place(x);
                header.shape().contains(&bits[at], hash)
            };
            assert!((0..capacity).all(contains));
            let found = (capacity..capacity + PROBES).filter(|&x| contains(x)).count() as f64 / PROBES as f64;
            let all = u64::from(shards) * header.blocks;
            let expected = rate::expected(Layout::Blocked, header.num_hashes, all, capacity as f64);
            assert!(expected <= fpr);
            // Five standard deviations of the sample, and three percent for that of the set.
            let allowed = 5.0 * (expected / PROBES as f64).sqrt() + 0.03 * expected;
            assert!((found - expected).abs() < allowed, "{capacity} at {fpr}: {found}, not {expected}");
        }
    }
}
