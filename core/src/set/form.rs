//! What the rows of one set share.

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
    /// The form of a set whose rate is at most `fpr` with `capacity` elements; `None` if that needs too many bits.
    pub fn new(capacity: u64, fpr: f64, keeps: bool) -> Option<Form> {
        let is_enough = |bits: &u32| capacity as f64 <= fpr * exp2(*bits);
        (FEWEST_BITS..=MOST_BITS).find(is_enough).map(|bits| Form { bits, keeps })
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
