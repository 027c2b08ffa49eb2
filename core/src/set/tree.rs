//! The binary tree whose leaves are the rows of a set. Bucket 1 is its root, 2b and 2b + 1 are the
//! halves of bucket b: the first bit is 1, and the others are the first bits of the hashes in it.
//!
//! And the form that all rows of a set share: how many bits of each hash, and whether it forgets.

/// Slices that the time for which a set remembers is cut into.
pub const SLICES: i64 = 8;
/// The capacity of a set for which none is given.
pub const DEFAULT_CAPACITY: u64 = 10_000_000_000;

/// The fewest bits of a hash that a set has.
const FEWEST_BITS: u32 = 16;
/// The most: those that split rows come from them, so a deeper tree would need more.
const MOST_BITS: u32 = 60;

/// The form of the rows of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How many bits of a hash a set has (B).
    pub bits: u32,
    /// Whether each hash has the slice of time in which it was added.
    pub keeps: bool,
}

impl Form {
    /// The form of a set whose rate is at most `fpr` with `capacity` elements; `None` if that needs
    /// too many bits.
    pub fn new(capacity: u64, fpr: f64, keeps: bool) -> Option<Form> {
        let is_enough = |bits: &u32| capacity as f64 <= fpr * exp2(*bits);
        (FEWEST_BITS..=MOST_BITS)
            .find(is_enough)
            .map(|bits| Form { bits, keeps })
    }

    /// The first bits of a hash.
    pub fn prefix(self, hash: u64) -> u64 {
        hash >> (64 - self.bits)
    }

    /// The false positive rate of a set with so many of all possible prefixes.
    pub fn rate(self, elements: f64) -> f64 {
        elements / exp2(self.bits)
    }

    /// Whether a set remembers at time `now` what was added at time `slice`, both in slices.
    pub fn remembers(self, slice: i64, now: i64) -> bool {
        !self.keeps || slice >= now.saturating_sub(SLICES)
    }
}

fn exp2(bits: u32) -> f64 {
    (1u64 << bits) as f64
}

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
    1.0 / exp2(depth(bucket))
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

/// Sorts buckets by their hashes, and checks that each hash has exactly one. Errors: the first
/// [`Flaw`].
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
        next = 1u64
            .checked_shl(64 - depth(bucket))
            .and_then(|width| first_hash(bucket).checked_add(width));
    }
    next.map_or(Ok(()), |hash| Err(Flaw::Gap(hash)))
}
