//! The binary tree whose leaves are the rows of a set.
//!
//! ```text
//!                    bucket 1                  the root: all hashes
//!             ┌─────────┴─────────┐
//!         bucket 2            bucket 3         hashes that begin with 0; with 1
//!        ┌────┴────┐         ┌────┴────┐
//!     bucket 4  bucket 5  bucket 6  bucket 7   with 00; 01; 10; 11
//! ```
//!
//! A *leaf* is a part of all hashes that one row covers, and its *bucket* is its number. The halves
//! of bucket b are 2b and 2b + 1. In binary, a bucket is a 1 and then the first bits of its hashes;
//! their number is its *depth*. Each hash has exactly one leaf: the buckets 2, 6 and 7 are the
//! leaves of a tree, and so are 4, 5 and 3.

use super::form::power_of_two;

/// The depth of the leaves that a set begins with: 1,024 of them.
pub const FIRST_DEPTH: u32 = 10;

/// Returns the bucket at a depth, up to 63, that covers a hash.
pub fn covering(hash: u64, depth: u32) -> u64 {
    if depth == 0 { 1 } else { 1 << depth | hash >> (64 - depth) }
}

/// Returns the depth of a bucket, which must not be 0.
pub fn depth(bucket: u64) -> u32 {
    bucket.ilog2()
}

/// Returns whether a bucket covers a hash.
pub fn covers(bucket: u64, hash: u64) -> bool {
    covering(hash, depth(bucket)) == bucket
}

/// Returns the share of all hashes that a bucket covers, from 0 to 1.
pub fn share(bucket: u64) -> f64 {
    1.0 / power_of_two(depth(bucket))
}

/// Returns the first hash that a bucket covers.
pub fn first_hash(bucket: u64) -> u64 {
    // The bit that says how deep a bucket is, is shifted out. Nothing is left of the root.
    bucket.checked_shl(64 - depth(bucket)).unwrap_or(0)
}

/// Returns the first hash behind those that a bucket covers; `None` if it covers the last hash of
/// all.
fn hash_after(bucket: u64) -> Option<u64> {
    let count = 1u64.checked_shl(64 - depth(bucket))?;
    first_hash(bucket).checked_add(count)
}

/// Why buckets are not the leaves of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeFlaw {
    /// No bucket covers this hash.
    Gap {
        /// The first such hash.
        hash: u64,
    },
    /// Two buckets cover the same hashes, or are the same.
    Overlap {
        /// The bucket that comes first in the order of hashes.
        bucket: u64,
        /// The next one.
        next: u64,
    },
}

/// Checks that some buckets together cover all 64-bit hashes, each hash by exactly one bucket, as
/// the rows of a set must. A *bucket* is the number of a part of all hashes: those that begin with
/// the same bits. Sorts the buckets by the hashes that they cover.
///
/// Fails with the first flaw, in the order of hashes: a hash that no bucket covers, or two buckets
/// that cover the same hash.
pub fn check_leaves(buckets: &mut [u64]) -> Result<(), TreeFlaw> {
    buckets.sort_unstable_by_key(|&bucket| (first_hash(bucket), bucket));

    // The first hash that no bucket so far covers; `None` behind the last hash of all.
    let mut uncovered = Some(0);
    let mut previous = 0;
    for &bucket in buckets.iter() {
        let first = first_hash(bucket);
        match uncovered {
            Some(hash) if first == hash => {}
            Some(hash) if first > hash => return Err(TreeFlaw::Gap { hash }),
            // The bucket begins before the first uncovered hash, or all hashes are covered. The
            // buckets so far had no flaw, so this one and the previous one cover the same hashes.
            _ => return Err(TreeFlaw::Overlap { bucket: previous, next: bucket }),
        }
        uncovered = hash_after(bucket);
        previous = bucket;
    }
    match uncovered {
        Some(hash) => Err(TreeFlaw::Gap { hash }),
        None => Ok(()),
    }
}
