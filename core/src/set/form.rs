//! What all rows of a set have in common: how many bits they keep of each hash, and whether they
//! forget.

/// Into how many time slices the time is cut for which a set remembers its elements.
pub const TIME_SLICES: i64 = 8;
/// The capacity of a set for which none is given.
pub const DEFAULT_CAPACITY: u64 = 10_000_000_000;

/// The fewest bits that a set keeps of each hash. Fewer would save nothing: rows have headers.
const FEWEST_BITS: u32 = 16;
/// The most bits that a set keeps of each hash. A bucket has at most one bit more, and PostgreSQL
/// stores it in a signed number of 64 bits.
const MOST_BITS: u32 = 60;

/// The form of the rows of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetForm {
    /// How many bits the set keeps of each hash (B). They are its first bits.
    pub bits: u32,
    /// Whether the set forgets. Each hash then has the time slice in which it was added.
    pub forgets: bool,
}

impl SetForm {
    /// Returns the fewest bits of each hash with which a set of `capacity` elements has a false
    /// positive rate of at most `fpr`; `None` if 60 bits don't suffice.
    ///
    /// An element that isn't in the set is taken for one that is if it has the same first B bits.
    /// So the rate is the share of all 2^B prefixes that the set has.
    ///
    /// Example: ten billion elements at a rate of 0.01 need 10^12 prefixes. 2^40 is the next power
    /// of two.
    pub fn fewest_bits(capacity: u64, fpr: f64) -> Option<u32> {
        (FEWEST_BITS..=MOST_BITS).find(|&bits| capacity as f64 <= fpr * power_of_two(bits))
    }

    /// Returns the first bits of a hash, those that the set keeps, as a number.
    pub fn prefix(self, hash: u64) -> u64 {
        hash >> (64 - self.bits)
    }

    /// Returns the false positive rate of a set with this number of different prefixes.
    pub fn rate(self, elements: f64) -> f64 {
        elements / power_of_two(self.bits)
    }

    /// Returns whether a set remembers at the time `now` what was added at the time `time_slice`,
    /// both as numbers of time slices. What was added later than now is remembered.
    pub fn remembers(self, time_slice: i64, now: i64) -> bool {
        !self.forgets || time_slice >= now.saturating_sub(TIME_SLICES)
    }
}

/// Returns 2^exponent, for exponents below 64.
pub(super) fn power_of_two(exponent: u32) -> f64 {
    (1u64 << exponent) as f64
}
