use super::*;
use crate::hash::word;

#[test]
fn bits_are_counted() {
    let bits: Vec<u8> = (0..1_003).map(|i| word(3, i) as u8).collect();
    for length in [0, 1, 7, 8, 9, 64, 1_003] {
        let expected: u32 = bits[..length].iter().map(|b| b.count_ones()).sum();
        assert_eq!(count_ones(&bits[..length]), u64::from(expected));
    }
}
