//! Counting set bits.

/// The number of set bits.
pub fn count_ones(bits: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has the feature.
        return unsafe { count_ones_by_instruction(bits) };
    }
    count_ones_portably(bits)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn count_ones_by_instruction(bits: &[u8]) -> u64 {
    count_ones_portably(bits)
}

/// What the compiler makes of this depends on the features of the function that it is part of.
#[inline(always)]
fn count_ones_portably(bits: &[u8]) -> u64 {
    let (words, rest) = bits.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|w| u64::from(u64::from_ne_bytes(*w).count_ones())).sum();
    in_words + rest.iter().map(|b| u64::from(b.count_ones())).sum::<u64>()
}

/// How many bits of a block of the `blocked` layout can be set: 0 to 512.
pub const COUNTS: usize = 513;

/// Counts blocks of the `blocked` layout by the number of their bits that are set.
pub fn tally_blocks(bits: &[u8], with_ones: &mut [u64; COUNTS]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has the feature.
        return unsafe { tally_blocks_by_instruction(bits, with_ones) };
    }
    tally_blocks_portably(bits, with_ones);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn tally_blocks_by_instruction(bits: &[u8], with_ones: &mut [u64; COUNTS]) {
    tally_blocks_portably(bits, with_ones);
}

/// As [`count_ones_portably`].
#[inline(always)]
fn tally_blocks_portably(bits: &[u8], with_ones: &mut [u64; COUNTS]) {
    for block in bits.as_chunks::<64>().0 {
        with_ones[count_ones_portably(block) as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn blocks_are_tallied() {
        let mut bits = vec![0; 5 * 64];
        bits[64..128].fill(255);
        bits[128..].iter_mut().enumerate().for_each(|(i, byte)| *byte = word(5, i as u32) as u8);
        let mut expected = [0; COUNTS];
        for block in bits.chunks(64) {
            expected[block.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()] += 1;
        }
        let (mut fast, mut portable) = ([0; COUNTS], [0; COUNTS]);
        tally_blocks(&bits, &mut fast);
        tally_blocks_portably(&bits, &mut portable);
        assert_eq!((fast, portable), (expected, expected));
        assert_eq!((fast[0], fast[512]), (1, 1));
    }
}
