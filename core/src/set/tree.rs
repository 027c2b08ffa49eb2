//! The binary tree whose leaves are the rows of a set. Bucket 1 is its root, 2b and 2b + 1 are the halves of bucket b:
//! the first bit is 1, and the others are the first bits of the hashes in it.

/// The depth of the leaves that a set begins with.
pub const FIRST_DEPTH: u32 = 10;

/// The bucket at a depth that covers a hash.
pub fn covering(hash: u64, depth: u32) -> u64 {
    if depth == 0 { 1 } else { 1 << depth | hash >> (64 - depth) }
}

/// The depth of a bucket, from 0.
pub fn depth(bucket: u64) -> u32 {
    bucket.ilog2()
}

/// Whether a bucket covers a hash.
pub fn covers(bucket: u64, hash: u64) -> bool {
    covering(hash, depth(bucket)) == bucket
}

/// The share of all hashes that a bucket covers.
pub fn share(bucket: u64) -> f64 {
    1.0 / (1u64 << depth(bucket)) as f64
}

/// The first hash that a bucket covers.
pub fn first_hash(bucket: u64) -> u64 {
    bucket.checked_shl(64 - depth(bucket)).unwrap_or(0)
}

/// Why buckets are not the leaves of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No bucket covers this hash.
    Gap(u64),
    /// Two buckets cover the same hashes.
    Overlap(u64, u64),
}

/// Checks that each hash has exactly one of these buckets, which are put in the order of their hashes.
///
/// # Errors
/// The first [`Flaw`].
pub fn check(buckets: &mut [u64]) -> Result<(), Flaw> {
    buckets.sort_unstable_by_key(|&bucket| (first_hash(bucket), bucket));
    let mut next = Some(0);
    for (i, &bucket) in buckets.iter().enumerate() {
        match next {
            Some(hash) if first_hash(bucket) == hash => {}
            Some(hash) if first_hash(bucket) > hash => return Err(Flaw::Gap(hash)),
            // The one before is the longest so far, since what precedes it had no flaw.
            _ => return Err(Flaw::Overlap(buckets[i - 1], bucket)),
        }
        next = 1u64.checked_shl(64 - depth(bucket)).and_then(|width| first_hash(bucket).checked_add(width));
    }
    next.map_or(Ok(()), |hash| Err(Flaw::Gap(hash)))
}
