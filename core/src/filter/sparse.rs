//! Sparse filters: the ascending list of their elements' 64-bit hashes, eight little-endian bytes
//! each.

use crate::interrupt;
use crate::memory::List;
use std::iter;

/// Lists of at least this many hashes are sorted in pieces, between which sorting can be cancelled.
/// Sorting so many takes a few milliseconds.
const LONG: usize = 1 << 18;

/// Returns the hash that is stored in these bytes.
#[inline(always)]
pub fn hash_in(entry: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*entry)
}

/// Returns the hashes of a stored list, in its order.
pub fn hashes_in(list: &[[u8; 8]]) -> impl ExactSizeIterator<Item = u64> + '_ {
    list.iter().map(hash_in)
}

/// Returns whether each hash of a stored list is greater than the one before. Checks for
/// interrupts.
pub fn is_ascending(list: &[[u8; 8]]) -> bool {
    interrupt::cancellable(list.array_windows())
        .all(|[first, second]| hash_in(first) < hash_in(second))
}

/// Returns whether a stored list, which must be ascending, has this hash.
pub fn contains(list: &[[u8; 8]], hash: u64) -> bool {
    list.binary_search_by_key(&hash, hash_in).is_ok()
}

/// Sorts hashes, and drops repeated ones: moves one of each group of equal hashes to the front, in
/// ascending order. Returns how many these are; the hashes after them are garbage, and the caller
/// should drop them.
///
/// The first `num_sorted` hashes must already be distinct and ascending, so that only the others
/// need sorting; 0 if nothing is known of their order. Checks for interrupts if the list is long,
/// so a user can cancel it.
pub fn sort_distinct(hashes: &mut [u64], num_sorted: usize) -> usize {
    if num_sorted == hashes.len() {
        return num_sorted;
    }
    if hashes.len() >= LONG {
        sort_by_bits(hashes, u64::BITS);
    } else {
        hashes[num_sorted..].sort_unstable();
        // Unless all new hashes come after the sorted ones, they must be merged with them.
        let overlaps = num_sorted > 0 && hashes[num_sorted - 1] >= hashes[num_sorted];
        if overlaps {
            merge_sorted(hashes, num_sorted);
        }
    }
    move_distinct_to_front(hashes)
}

/// Sorts a list that consists of two sorted lists: its first `first_len` hashes, and the others.
///
/// The second list is copied, so that its places are free. Then places are filled from the end of
/// the whole list towards its start: the last hashes that are left in the first list and in the
/// copy are compared, and the greater one moves to the last free place. There are always as many
/// free places as hashes left in the copy, right behind those left in the first list. So no hash of
/// the first list is overwritten before it has moved.
fn merge_sorted(hashes: &mut [u64], first_len: usize) {
    let Some(mut second) = List::try_with_capacity(hashes.len() - first_len) else {
        // Without memory for the copy, sorting in place is slower, but works.
        hashes.sort_unstable();
        return;
    };
    second.extend_from_slice(&hashes[first_len..]);

    let mut left_in_first = first_len;
    let mut end_of_free = hashes.len();
    while let Some(&last_of_second) = second.last() {
        end_of_free -= 1;
        if left_in_first > 0 && hashes[left_in_first - 1] > last_of_second {
            left_in_first -= 1;
            hashes[end_of_free] = hashes[left_in_first];
        } else {
            hashes[end_of_free] = last_of_second;
            second.pop();
        }
    }
}

/// Sorts hashes that differ only in their lowest `bits` bits. Long lists are divided by one bit
/// after the other, from the highest down, until the pieces are short. Can be cancelled between the
/// pieces.
fn sort_by_bits(hashes: &mut [u64], bits: u32) {
    if hashes.len() < LONG || bits == 0 {
        hashes.sort_unstable();
        interrupt::check();
        return;
    }
    let highest_bit = bits - 1;
    let (clear, set) = partition_by_bit(hashes, highest_bit);
    sort_by_bits(clear, bits - 1);
    sort_by_bits(set, bits - 1);
}

/// Moves the hashes in which a bit is clear before those in which it is set, and returns both.
///
/// This is Lomuto's partition without branches: those would be mispredicted for every other hash.
fn partition_by_bit(hashes: &mut [u64], bit: u32) -> (&mut [u64], &mut [u64]) {
    let mut num_clear = 0;
    for i in 0..hashes.len() {
        let hash = hashes[i];
        hashes.swap(i, num_clear);
        let is_clear = hash >> bit & 1 == 0;
        num_clear += usize::from(is_clear);
    }
    interrupt::check();
    hashes.split_at_mut(num_clear)
}

/// Drops repeated hashes of a sorted list: moves one of each group of equal hashes to the front, in
/// ascending order. Returns how many these are; the hashes after them are garbage.
///
/// Checks for interrupts, so a user can cancel it.
fn move_distinct_to_front(hashes: &mut [u64]) -> usize {
    if hashes.is_empty() {
        return 0;
    }
    let mut distinct = 1;
    for i in interrupt::cancellable(1..hashes.len()) {
        if hashes[i] != hashes[distinct - 1] {
            hashes[distinct] = hashes[i];
            distinct += 1;
        }
    }
    distinct
}

/// Returns the hashes that are in at least one of two stored lists, which must be ascending: each
/// hash once, and in ascending order. Checks for interrupts.
pub fn union<'a>(a: &'a [[u8; 8]], b: &'a [[u8; 8]]) -> impl Iterator<Item = u64> + 'a {
    let mut rest_of_a = hashes_in(a).peekable();
    let mut rest_of_b = hashes_in(b).peekable();
    let hashes = iter::from_fn(move || {
        let (Some(next_of_a), Some(next_of_b)) = (rest_of_a.peek(), rest_of_b.peek()) else {
            // One list has ended: the rest of the other one follows.
            return rest_of_a.next().or_else(|| rest_of_b.next());
        };
        let least = *next_of_a.min(next_of_b);
        // A hash that is in both lists is taken from both.
        rest_of_a.next_if_eq(&least);
        rest_of_b.next_if_eq(&least);
        Some(least)
    });
    interrupt::cancellable(hashes)
}

#[cfg(test)]
mod tests;
