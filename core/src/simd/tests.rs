use super::*;
use crate::hash::word;

#[test]
fn bits_are_counted_as_one_by_one() {
    let bytes: Vec<u8> = (0..1_003).map(|i| word(3, i) as u8).collect();
    // Words of eight bytes, and bytes that are left over.
    for length in [0, 1, 7, 8, 9, 64, 1_003] {
        let expected: u32 = bytes[..length].iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(count_ones(&bytes[..length]), u64::from(expected));
    }
}
