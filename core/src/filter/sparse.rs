//! Sparse filters: the ascending list of their elements' 64-bit hashes, eight little-endian bytes each.

use crate::{interrupt, memory};

/// The hash in one entry.
#[inline(always)]
pub fn value(entry: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*entry)
}

/// The hashes of a list.
pub fn values(list: &[[u8; 8]]) -> impl ExactSizeIterator<Item = u64> + '_ {
    list.iter().map(value)
}

/// Whether the hashes ascend strictly.
pub fn is_ascending(list: &[[u8; 8]]) -> bool {
    interrupt::each(list.windows(2)).all(|pair| value(&pair[0]) < value(&pair[1]))
}

/// Whether a hash is in the list.
pub fn contains(list: &[[u8; 8]], hash: u64) -> bool {
    list.binary_search_by_key(&hash, value).is_ok()
}

/// Lists of at least this many hashes are sorted piece by piece.
const LONG: usize = 1 << 18;

/// Sorts hashes, of which the first `sorted` ascend strictly, and drops repetitions. Returns how many are left.
pub fn sort_distinct(hashes: &mut [u64], sorted: usize) -> usize {
    if sorted == hashes.len() {
        return sorted;
    }
    if hashes.len() >= LONG {
        sort_long(hashes, u64::BITS);
    } else {
        hashes[sorted..].sort_unstable();
        if sorted > 0 && hashes[sorted - 1] >= hashes[sorted] {
            merge_runs(hashes, sorted);
        }
    }
    dedup(hashes)
}

/// Merges two ascending runs, of which the first has `sorted` hashes. The second is copied, and they are merged from
/// their ends. Without memory for the copy the list is sorted in place.
fn merge_runs(hashes: &mut [u64], sorted: usize) {
    let mut new = Vec::new();
    if new.try_reserve_exact(hashes.len() - sorted).is_err() {
        hashes.sort_unstable();
        return;
    }
    new.extend_from_slice(&hashes[sorted..]);
    let (mut old, mut end) = (sorted, hashes.len());
    while let Some(&last) = new.last() {
        end -= 1;
        if old > 0 && hashes[old - 1] > last {
            old -= 1;
            hashes[end] = hashes[old];
        } else {
            hashes[end] = last;
            new.pop();
        }
    }
}

/// Sorts a long list, given a bit above which all its hashes agree: first the hashes without that bit, then those with
/// it, down to short pieces. It can be cancelled between the pieces.
fn sort_long(hashes: &mut [u64], bit: u32) {
    if hashes.len() < LONG || bit == 0 {
        hashes.sort_unstable();
        interrupt::check();
        return;
    }
    let (without, with) = split(hashes, bit - 1);
    sort_long(without, bit - 1);
    sort_long(with, bit - 1);
}

/// Orders hashes by their first `bits` bits only, which is faster than sorting.
pub fn group(hashes: &mut [u64], bits: u32) {
    fn group_by(hashes: &mut [u64], bit: u32, bits: u32) {
        if bits > 0 && hashes.len() > 1 {
            let (without, with) = split(hashes, bit - 1);
            group_by(without, bit - 1, bits - 1);
            group_by(with, bit - 1, bits - 1);
        }
    }
    group_by(hashes, u64::BITS, bits);
}

/// Moves hashes without a bit before those with it, by Lomuto's partition without branches.
fn split(hashes: &mut [u64], bit: u32) -> (&mut [u64], &mut [u64]) {
    let mut without = 0;
    for i in 0..hashes.len() {
        let hash = hashes[i];
        hashes.swap(i, without);
        without += usize::from(hash >> bit & 1 == 0);
    }
    interrupt::check();
    hashes.split_at_mut(without)
}

/// Whether fewer than one hash in eight is a repetition, judged by a sample of about 256 hashes, those that end in
/// enough zero bits. All copies of a hash are in the sample or none is, unless it is full. A sample that is too small
/// doesn't count.
pub fn has_few_repetitions(hashes: &[u64]) -> bool {
    let mask = (hashes.len() as u64 / 256).next_power_of_two() - 1;
    let mut sample = memory::collect(hashes.iter().copied().filter(|hash| hash & mask == 0).take(1024));
    sample.sort_unstable();
    let distinct = dedup(&mut sample);
    sample.len() >= 64 && distinct * 8 >= sample.len() * 7
}

/// Drops repeated neighbours. Returns how many hashes are left at the front.
fn dedup(hashes: &mut [u64]) -> usize {
    let mut kept = usize::from(!hashes.is_empty());
    for i in interrupt::each(1..hashes.len()) {
        if hashes[i] != hashes[kept - 1] {
            hashes[kept] = hashes[i];
            kept += 1;
        }
    }
    kept
}

/// The union of two ascending lists.
pub fn union<'a>(a: &'a [[u8; 8]], b: &'a [[u8; 8]]) -> impl Iterator<Item = u64> + 'a {
    let (mut a, mut b) = (values(a).peekable(), values(b).peekable());
    interrupt::each(std::iter::from_fn(move || {
        let (Some(x), Some(y)) = (a.peek(), b.peek()) else { return a.next().or_else(|| b.next()) };
        let least = *x.min(y);
        a.next_if_eq(&least);
        b.next_if_eq(&least);
        Some(least)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn entries(set: &BTreeSet<u64>) -> Vec<[u8; 8]> {
        set.iter().map(|h| h.to_le_bytes()).collect()
    }

    /// Hashes from ranges of very different density.
    fn hash() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), 0u64..50, (u64::MAX - 50)..=u64::MAX, 1u64 << 40..(1 << 40) + 100]
    }

    #[test]
    fn repetitions_are_noticed() {
        let hashes: Vec<u64> = (0..20_000).map(|i| crate::hash::word(1, i)).collect();
        assert!(has_few_repetitions(&hashes));
        assert!(!has_few_repetitions(&hashes[..50]));
        assert!(!has_few_repetitions(&[&hashes[..], &hashes[..]].concat()));
    }

    #[test]
    fn groups_ascend() {
        let mut list: Vec<u64> = (0..5_000).map(|i| crate::hash::word(i, 0)).chain([0, 0, u64::MAX]).collect();
        let mut all = list.clone();
        group(&mut list, 6);
        assert!(list.is_sorted_by_key(|hash| hash >> 58));
        list.sort();
        all.sort();
        assert_eq!(list, all);
    }

    #[test]
    fn long_lists_are_sorted_as_short_ones_are() {
        let hashes = |n: u32| (0..n).map(|i| crate::hash::word(u64::from(i % 400_000), 0));
        for (mut list, sorted) in [
            (hashes(500_000).collect::<Vec<u64>>(), 0),
            ((0..300_000).chain(hashes(300_000)).collect(), 300_000),
            (vec![u64::MAX; LONG], 0),
            ((0..LONG as u64).rev().collect(), 0),
        ] {
            let expected: BTreeSet<u64> = list.iter().copied().collect();
            let kept = sort_distinct(&mut list, sorted);
            assert!(list[..kept].iter().eq(&expected));
        }
    }

    proptest! {
        #[test]
        fn lists_behave_like_sets(a in prop::collection::vec(hash(), 0..200), b in prop::collection::vec(hash(), 0..200)) {
            let (set_a, set_b): (BTreeSet<u64>, BTreeSet<u64>) = (a.iter().copied().collect(), b.iter().copied().collect());
            let (list_a, list_b) = (entries(&set_a), entries(&set_b));
            prop_assert!(is_ascending(&list_a));
            for at in 1..list_a.len() {
                let mut other = list_a.clone();
                other.swap(at - 1, at);
                prop_assert!(!is_ascending(&other));
                other[at] = other[at - 1];
                prop_assert!(!is_ascending(&other));
            }
            for h in a.iter().chain(&b) {
                prop_assert_eq!(contains(&list_a, *h), set_a.contains(h));
                prop_assert_eq!(contains(&list_a, h.wrapping_add(1)), set_a.contains(&h.wrapping_add(1)));
            }
            prop_assert!(union(&list_a, &list_b).eq(set_a.union(&set_b).copied()));

            let mut all: Vec<u64> = set_a.iter().copied().collect();
            let sorted = all.len();
            all.extend(&b);
            let kept = sort_distinct(&mut all, sorted);
            prop_assert!(all[..kept].iter().eq(set_a.union(&set_b)));
        }
    }
}
