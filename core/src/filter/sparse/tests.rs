use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn entries(set: &BTreeSet<u64>) -> Vec<[u8; 8]> {
    set.iter().map(|h| h.to_le_bytes()).collect()
}

/// Hashes from ranges of very different density.
fn hash() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..50,
        (u64::MAX - 50)..=u64::MAX,
        1u64 << 40..(1 << 40) + 100
    ]
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
