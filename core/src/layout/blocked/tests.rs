use super::*;
use crate::hash::word;
use crate::layout::Layout;
use crate::simd;

#[test]
fn faster_ways_do_what_the_portable_one_does() {
    let elements: Vec<u64> = (0..3_000).map(|i| word(7, i)).collect();
    let (added, others) = elements.split_at(1_000);
    for (num_hashes, blocks) in [(1, 1), (2, 40), (6, 97), (7, 64), (8, 256), (14, 300), (33, 1_000), (64, 2_000)] {
        let shape = Shape { layout: Layout::Blocked, num_hashes, blocks };
        let mut fast = vec![0; blocks as usize * 64];
        let mut portable = fast.clone();
        if !simd::insert_all(&mut fast, blocks_of(shape), added) {
            return;
        }
        added.iter().for_each(|&hash| Blocked::insert(&mut portable, shape, hash));
        assert_eq!(fast, portable, "{shape:?}");
        let mut answers = Vec::new();
        assert!(simd::contains_each(&fast, blocks_of(shape), &elements, &mut |found| answers.push(found)));
        let expected: Vec<bool> = elements.iter().map(|&hash| Blocked::contains(&portable, shape, hash)).collect();
        assert_eq!(answers, expected, "{shape:?}");
        assert!(answers[..added.len()].iter().all(|&found| found));
        assert!(num_hashes > 1 || blocks == 1 || answers[others.len()..].contains(&false));
    }
}
