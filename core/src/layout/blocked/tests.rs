use super::*;
use crate::hash::reduce;
use crate::simd::{self, Blocks};

#[test]
fn faster_ways_do_what_the_portable_one_does() {
    let elements: Vec<u64> = (0..3_000).map(|i| word(7, i)).collect();
    let (added, others) = elements.split_at(1_000);
    for (num_hashes, count) in [(1, 1), (2, 40), (6, 97), (7, 64), (8, 256), (14, 300), (33, 1_000), (64, 2_000)] {
        let blocks = Blocks { count, num_hashes };
        let block_of = |hash: u64| reduce(hash, count) as usize;
        let mut fast = vec![0; count as usize * BLOCK_BYTES];
        let mut portable = fast.clone();
        if !simd::insert_all(&mut fast, blocks, added) {
            return;
        }
        added.iter().for_each(|&hash| insert(&mut portable.as_chunks_mut().0[block_of(hash)], num_hashes, hash));
        assert_eq!(fast, portable, "{num_hashes} {count}");
        let mut answers = Vec::new();
        assert!(simd::contains_each(&fast, blocks, &elements, &mut |found| answers.push(found)));
        let portable = portable.as_chunks().0;
        let expected: Vec<bool> =
            elements.iter().map(|&hash| contains(&portable[block_of(hash)], num_hashes, hash)).collect();
        assert_eq!(answers, expected, "{num_hashes} {count}");
        assert!(answers[..added.len()].iter().all(|&found| found));
        assert!(num_hashes > 1 || count == 1 || answers[others.len()..].contains(&false));
    }
}
