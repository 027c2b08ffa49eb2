//! Sparse filters: the ascending list of their elements' 64-bit hashes, eight little-endian bytes
//! each.

use crate::interrupt;

/// The hash in one entry.
#[inline(always)]
pub fn value(entry: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*entry)
}

pub fn values(list: &[[u8; 8]]) -> impl ExactSizeIterator<Item = u64> + '_ {
    list.iter().map(value)
}

/// Whether the hashes ascend strictly.
pub fn is_ascending(list: &[[u8; 8]]) -> bool {
    interrupt::cancellable(list.windows(2)).all(|pair| value(&pair[0]) < value(&pair[1]))
}

pub fn contains(list: &[[u8; 8]], hash: u64) -> bool {
    list.binary_search_by_key(&hash, value).is_ok()
}

/// Lists of at least this many hashes are sorted piece by piece.
const LONG: usize = 1 << 18;

/// Sorts hashes, of which the first `sorted` ascend strictly, and drops repetitions. Returns how
/// many are left.
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

/// Merges two ascending runs, of which the first has `sorted` hashes. The second is copied, and
/// they are merged from their ends. Without memory for the copy the list is sorted in place.
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

/// Sorts a long list, given a bit above which all its hashes agree: first the hashes without that
/// bit, then those with it, down to short pieces. It can be cancelled between the pieces.
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

/// Drops repeated neighbours. Returns how many hashes are left at the front.
fn dedup(hashes: &mut [u64]) -> usize {
    let mut kept = usize::from(!hashes.is_empty());
    for i in interrupt::cancellable(1..hashes.len()) {
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
    interrupt::cancellable(std::iter::from_fn(move || {
        let (Some(x), Some(y)) = (a.peek(), b.peek()) else {
            return a.next().or_else(|| b.next());
        };
        let least = *x.min(y);
        a.next_if_eq(&least);
        b.next_if_eq(&least);
        Some(least)
    }))
}

#[cfg(test)]
mod tests;
