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
}
