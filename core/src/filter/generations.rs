//! Sets that grow, and sets that forget: a sequence of generations, the newest of which takes what is new, while all
//! are probed.
//!
//! ```text
//! grows     level      0        1        2     …     11        three times the capacity of the last, the same rate:
//!           capacity   40,000   120,000  360,000     7.1e9     a twelfth of the promise; 10.6e9 elements in all
//!
//! forgets   slices   |──1──|──2──|──3──|──4──|──5──|──6──|──7──|──8──|     each for a seventh of the capacity, at an
//!                    ◀── the oldest is over when all of it is ──────▶     eighth of the promise
//! ```
//!
//! An element that was never added is found if any generation has it, so their rates add up: twelve of a twelfth. Equal
//! shares cost 16.1 bits per element at 1 %, where one filter takes 10, whatever number there will be. The next
//! generation being three times the last, the newest has a third to all of what its space is for once its filters are
//! no lists of hashes any more; that is when a set that grew is largest, compared with one of the right capacity: 3.3
//! times (a model of bytes, headers, half-free pages and the index included). Growing by two would make that 2.6 and
//! take 18 generations; by four, 3.7 and 10. When a generation is full it is 1.6.
//!
//! A set that forgets probes at most eight full slices: elements of the last seven are remembered, and of the eighth
//! some. A slice also ends when it is full, however little time has passed, or when a batch comes that it has no room
//! for, which gets one of three or nine times the size if it needs that. So there may be more of them, up to 24. They
//! have the elements of eight full ones together, and rates fall faster than elements do: the sum of the rates is at
//! most that of eight full ones, however the elements are distributed.
//!
//! A set that does both has slices whose capacity follows what came: the next has the level above after one that was
//! full, and the level below after one that wasn't full to a ninth. In a window of eight slices there are at most eight
//! that ended by time, with a step down at most each, so eleven and eight steps up: 27 full ones.

use crate::error::Result;
use crate::filter::header::Header;
use crate::filter::shards::{one_of, shard_capacity, shards};
use crate::kind::{Kind, Tag};

/// Slices of the time for which a set remembers.
pub const SLICES: u32 = 7;
/// The capacity of the first level of sets without a capacity.
const FIRST: u64 = 40_000;
/// How many times as many elements each level takes as the one below.
const GROWTH: u64 = 3;
/// Levels: enough for ten billion elements.
const LEVELS: u32 = 12;

/// What the generations of a set are made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    capacities: Vec<u64>,
    fpr: f64,
    most_full: u32,
    /// Whether the capacity of a generation follows what came, rather than being the first of the capacities, unless a
    /// batch needs a larger one.
    follows: bool,
}

/// How a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It had as many elements as it was made for.
    Full,
    /// Its time was over.
    Over,
    /// Its time was over, and it had less than a ninth of the elements that it was made for.
    Idle,
}

impl Plan {
    /// The plan of a set with this false positive rate: that grows, unless it has a capacity, and forgets or not. A set
    /// that does neither has no generations.
    pub fn new(capacity: Option<u64>, fpr: f64, forgets: bool) -> Option<Plan> {
        let grown = || (0..LEVELS).map(|level| FIRST * GROWTH.pow(level)).collect();
        let (capacities, most_full) = match (capacity, forgets) {
            (Some(_), false) => return None,
            (None, false) => (grown(), LEVELS),
            (Some(capacity), true) => (slices_of(capacity, fpr / f64::from(SLICES + 1)), SLICES + 1),
            (None, true) => (grown(), LEVELS - 1 + 2 * (SLICES + 1)),
        };
        Some(Plan { capacities, fpr: fpr / f64::from(most_full), most_full, follows: capacity.is_none() })
    }

    /// The false positive rate of each generation, at its capacity.
    pub fn fpr(&self) -> f64 {
        self.fpr
    }

    /// How many generations may be full at once, so that their rates add up to no more than the promise.
    pub fn most_full(&self) -> u32 {
        self.most_full
    }

    /// Whether the capacity of a generation follows what came.
    pub fn follows(&self) -> bool {
        self.follows
    }

    /// How many generations there may be at once of a set that forgets and has a capacity.
    pub fn most_slices(&self) -> usize {
        3 * self.most_full as usize
    }

    /// The capacities that a generation may have, ascending.
    pub fn capacities(&self) -> &[u64] {
        &self.capacities
    }

    /// The level of the first generation that takes so many elements, or the last.
    pub fn level_for(&self, elements: u64) -> usize {
        self.capacities.iter().position(|&capacity| capacity >= elements).unwrap_or(self.capacities.len() - 1)
    }

    /// The level of the generation after one of this level.
    pub fn next(&self, level: usize, end: End) -> usize {
        match end {
            _ if !self.follows => 0,
            End::Full => (level + 1).min(self.capacities.len() - 1),
            End::Over => level,
            End::Idle => level.saturating_sub(1),
        }
    }

    /// Whether a filter is as those of a generation with so many shards.
    pub fn has(&self, header: &Header<'_>, shards: u32) -> bool {
        let of_one = |&capacity| Some(shard_capacity(capacity, shards.into()));
        header.fpr == self.fpr && self.capacities.iter().map(of_one).any(|own| own == header.capacity.elements())
    }

    /// The number of shards and the filters of a generation of this level. No two levels have the same number, so that
    /// it says which one it is.
    ///
    /// # Errors
    /// As of [`shards()`].
    pub fn shards<'a>(&self, level: usize, kind: Kind<'a>) -> Result<(u32, Header<'a>)> {
        let capacity = self.capacities[level];
        let (count, header) = shards(capacity, self.fpr, kind)?;
        let more = match level.checked_sub(1) {
            Some(below) => count.max(self.shards(below, kind)?.0 + 1),
            None => count,
        };
        Ok((more, one_of(header, header.blocks * u64::from(count), capacity, more.into())))
    }
}

/// The capacities of slices: a seventh, and for large batches three and nine times as much, as far as that is possible.
fn slices_of(capacity: u64, fpr: f64) -> Vec<u64> {
    let slice = capacity.div_ceil(u64::from(SLICES));
    let is_possible = |capacity: &u64| shards(*capacity, fpr, Kind::of(Tag::Text)).is_ok();
    let larger = [GROWTH, GROWTH * GROWTH].into_iter().map(|times| slice.saturating_mul(times)).take_while(is_possible);
    std::iter::once(slice).chain(larger).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::sizing::rate;

    /// The rate of a generation with so many elements.
    fn rate_of(plan: &Plan, level: usize, elements: f64) -> f64 {
        let (shards, header) = plan.shards(level, Kind::of(Tag::Text)).expect("possible");
        rate::expected(Layout::Blocked, header.num_hashes, u64::from(shards) * header.blocks, elements)
    }

    /// Bytes on disk of a table of filters: rows with these columns before the filter, in pages that are half free, and
    /// the index. Filters have their elements as hashes until that takes as much as their bits.
    fn bytes(shards: u32, header: &Header<'_>, elements: u64, columns: f64) -> f64 {
        let each = elements as f64 / f64::from(shards);
        let filter = 44.0 + (8.0 * each).min(header.payload_bytes() as f64);
        f64::from(shards) * (2.0 * (28.0 + columns + 4.0 + filter) + 24.0) + 16384.0
    }

    /// How many times as many bytes a set that grew takes as one of the right capacity, and its generations.
    fn grown(elements: u64) -> (f64, usize) {
        let plan = Plan::new(None, 0.01, false).expect("grows");
        let (mut left, mut all, mut generations) = (elements, 0.0, 0);
        for (level, &capacity) in plan.capacities().iter().enumerate() {
            let (shards, header) = plan.shards(level, Kind::of(Tag::Text)).expect("possible");
            all += bytes(shards, &header, left.min(capacity), 24.0);
            generations += 1;
            left = left.saturating_sub(capacity);
            if left == 0 {
                break;
            }
        }
        assert_eq!(left, 0, "too many elements");
        let (shards, header) = shards(elements, 0.01, Kind::of(Tag::Text)).expect("possible");
        (all / bytes(shards, &header, elements, 4.0), generations)
    }

    #[test]
    fn ten_billion_elements_take_a_dozen_generations_at_the_promised_rate() {
        let plan = Plan::new(None, 0.01, false).expect("grows");
        assert!(plan.capacities().iter().sum::<u64>() >= 10_000_000_000);
        assert!(plan.capacities().len() <= 12);
        let all: f64 = (0..plan.capacities().len()).map(|i| rate_of(&plan, i, plan.capacities()[i] as f64)).sum();
        assert!(all <= 0.01, "{all}");
        assert_eq!(grown(10_000_000_000).1, 12);
    }

    #[test]
    fn space_of_a_set_that_grew() {
        let mut most = 0.0f64;
        let mut logarithms = Vec::new();
        for step in 0..400 {
            let elements = (1e5 * 1e5f64.powf(f64::from(step) / 399.0)) as u64;
            let (ratio, _) = grown(elements);
            most = most.max(ratio);
            logarithms.push(ratio.ln());
        }
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        println!("at most {most:.2}, on average {mean:.2}, full {:.2}", grown(40_000 * (3u64.pow(9) - 1) / 2).0);
        assert!(most < 3.5 && mean < 2.5, "{most}, {mean}");
    }

    #[test]
    fn a_set_that_forgets_takes_at_most_sixteen_bits_per_element() {
        let plan = Plan::new(Some(10_000_000), 0.01, true).expect("forgets");
        let (shards, header) = plan.shards(0, Kind::of(Tag::Text)).expect("possible");
        let bits = header.payload_bytes() as f64 * 8.0 * f64::from(shards) / plan.capacities()[0] as f64;
        assert!(bits <= 16.0, "{bits}");
        assert!(rate_of(&plan, 0, plan.capacities()[0] as f64) * 8.0 <= 0.01);
    }

    /// However eight slices' worth of elements is distributed over fifteen.
    #[test]
    fn slices_that_are_not_full_have_less_than_their_share_of_the_rate() {
        let plan = Plan::new(Some(7_000_000), 0.01, true).expect("forgets");
        for full in 0..=8 {
            let rest = (8.0 - f64::from(full)) * 1e6 / 7.0;
            let all = f64::from(full) * rate_of(&plan, 0, 1e6) + 7.0 * rate_of(&plan, 0, rest.min(1e6));
            assert!(all <= 0.01, "{full}: {all}");
        }
    }

    #[test]
    fn levels_follow_what_came() {
        let both = Plan::new(None, 0.01, true).expect("does both");
        assert_eq!((both.level_for(0), both.level_for(40_001), both.level_for(u64::MAX)), (0, 1, 11));
        assert_eq!((both.next(3, End::Full), both.next(11, End::Full)), (4, 11));
        assert_eq!((both.next(3, End::Over), both.next(3, End::Idle), both.next(0, End::Idle)), (3, 2, 0));
        assert_eq!(both.most_full(), 27);
        assert_eq!(Plan::new(Some(10), 0.01, false), None);
        for capacity in [1, 7_000, 1_000_000, u64::MAX] {
            let Some(plan) = Plan::new(Some(capacity), 0.01, true) else { panic!("forgets") };
            let shards: Vec<u32> = (0..plan.capacities().len())
                .filter_map(|level| Some(plan.shards(level, Kind::of(Tag::Text)).ok()?.0))
                .collect();
            assert!(shards.is_sorted_by(|a, b| a < b), "{shards:?}");
            assert_eq!(plan.next(2, End::Full), 0);
        }
        let (shards, header) = both.shards(2, Kind::of(Tag::Text)).expect("possible");
        assert!(both.has(&header, shards) && !both.has(&header, shards + 100));
    }
}
