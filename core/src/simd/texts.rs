//! The hashes of eight short texts at once.
//!
//! XXH64 is a chain of multiplications, each of which waits for the one before: a text of 45 bytes takes 7 ns. Eight
//! texts side by side, one in each lane of 64 bits, take as long as four: 3.9 ns each, with copying them together
//! (AMD EPYC).
//!
//! ```text
//! texts, 64 bytes each              their words, transposed            XXH64 of all lanes
//! | a0 | a1 | … | a7 |              | a0 | b0 | … | h0 |               stripe of 32 bytes   texts of 32 and more
//! | b0 | b1 | … | b7 |     ──▶      | a1 | b1 | … | h1 |     ──▶       8 bytes, thrice      where there are as many
//!   …                                 …                                4 bytes              left
//! | h0 | h1 | … | h7 |              | a7 | b7 | … | h7 |               a byte, thrice
//! ```
//!
//! A step that only some lanes need is done for all, and kept where it was needed.

/// Texts that are hashed together.
const LANES: usize = 8;
/// Bytes of the longest text that can be among them.
const LONGEST: usize = 64;

/// Up to eight texts of at most 64 bytes whose hashes are wanted. There are none on a CPU that can't do this.
#[derive(Debug)]
pub struct Texts {
    bytes: [[u8; LONGEST]; LANES],
    lengths: [u64; LANES],
    count: usize,
}

impl Texts {
    /// The most texts.
    pub const ROOM: usize = LANES;

    /// Whether this CPU has a faster way than to hash one text after the other.
    #[inline(always)]
    pub fn are_faster() -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
        }
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// No texts yet; `None` if that would not be faster.
    pub fn new() -> Option<Texts> {
        Texts::are_faster().then_some(Texts { bytes: [[0; LONGEST]; LANES], lengths: [0; LANES], count: 0 })
    }

    /// How many more there is room for.
    #[inline(always)]
    pub fn room(&self) -> usize {
        LANES - self.count
    }

    /// Adds a text, unless it is too long or there is no room. Says whether it did.
    #[inline(always)]
    pub fn push(&mut self, text: &[u8]) -> bool {
        let fits = text.len() <= LONGEST && self.count < LANES;
        #[cfg(target_arch = "x86_64")]
        if fits {
            // SAFETY: there are texts only where the CPU has the features.
            unsafe { avx512::copy(text, &mut self.bytes[self.count]) };
            self.lengths[self.count] = text.len() as u64;
            self.count += 1;
        }
        fits
    }

    /// The hashes of all texts, [`crate::hash::hash`] of each, in their order. There are none afterwards.
    #[inline]
    pub fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        let count = std::mem::take(&mut self.count);
        let mut hashes = [0; LANES];
        #[cfg(target_arch = "x86_64")]
        if count > 0 {
            // SAFETY: as in `push`.
            unsafe { avx512::hash_all(&self.bytes, &self.lengths, &mut hashes) };
        }
        hashes.into_iter().take(count)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{LANES, LONGEST};
    use std::arch::x86_64::*;

    // The primes of XXH64.
    const PRIME_1: i64 = 0x9E37_79B1_85EB_CA87_u64 as i64;
    const PRIME_2: i64 = 0xC2B2_AE3D_27D4_EB4F_u64 as i64;
    const PRIME_3: i64 = 0x1656_67B1_9E37_79F9;
    const PRIME_4: i64 = 0x85EB_CA77_C2B2_AE63_u64 as i64;
    const PRIME_5: i64 = 0x27D4_EB2F_1656_67C5;

    /// Copies a text of at most 64 bytes, with zeros behind it.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    pub fn copy(text: &[u8], to: &mut [u8; LONGEST]) {
        let bytes = u64::MAX.checked_shr((LONGEST - text.len()) as u32).unwrap_or(0);
        // SAFETY: bytes that are not in the mask are not read; all 64 are written.
        unsafe {
            let text = _mm512_maskz_loadu_epi8(bytes, text.as_ptr().cast());
            _mm512_storeu_si512(to.as_mut_ptr().cast(), text);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    fn all(x: i64) -> __m512i {
        _mm512_set1_epi64(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    fn times(a: __m512i, b: i64) -> __m512i {
        _mm512_mullo_epi64(a, all(b))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    fn round(accumulator: __m512i, input: __m512i) -> __m512i {
        times(_mm512_rol_epi64::<31>(_mm512_add_epi64(accumulator, times(input, PRIME_2))), PRIME_1)
    }

    /// From eight words of each text to the texts' first words, their second ones and so on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    fn transposed(rows: [__m512i; LANES]) -> [__m512i; LANES] {
        const EVEN: i32 = 0b10_00_10_00;
        const ODD: i32 = 0b11_01_11_01;
        let mut words = [_mm512_setzero_si512(); LANES];
        for odd in 0..2 {
            // Pairs of words of two texts each: in four registers those of all texts.
            let pairs: [__m512i; 4] = std::array::from_fn(|i| match odd {
                0 => _mm512_unpacklo_epi64(rows[2 * i], rows[2 * i + 1]),
                _ => _mm512_unpackhi_epi64(rows[2 * i], rows[2 * i + 1]),
            });
            let first = _mm512_shuffle_i64x2::<EVEN>(pairs[0], pairs[1]);
            let second = _mm512_shuffle_i64x2::<EVEN>(pairs[2], pairs[3]);
            words[odd] = _mm512_shuffle_i64x2::<EVEN>(first, second);
            words[4 + odd] = _mm512_shuffle_i64x2::<ODD>(first, second);
            let first = _mm512_shuffle_i64x2::<ODD>(pairs[0], pairs[1]);
            let second = _mm512_shuffle_i64x2::<ODD>(pairs[2], pairs[3]);
            words[2 + odd] = _mm512_shuffle_i64x2::<EVEN>(first, second);
            words[6 + odd] = _mm512_shuffle_i64x2::<ODD>(first, second);
        }
        words
    }

    /// XXH64 with seed 0 of so many bytes of each text.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    pub fn hash_all(texts: &[[u8; LONGEST]; LANES], lengths: &[u64; LANES], hashes: &mut [u64; LANES]) {
        // SAFETY: each text has 64 bytes, and there are eight lengths and eight hashes.
        let (rows, lengths) = unsafe {
            let rows = std::array::from_fn(|i| _mm512_loadu_si512(texts[i].as_ptr().cast()));
            (rows, _mm512_loadu_si512(lengths.as_ptr().cast()))
        };
        let words = transposed(rows);
        let (begun, rest) = stripes(&words, lengths);
        let mixed = avalanche(remainder(_mm512_add_epi64(begun, lengths), &rest, lengths));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().cast(), mixed) };
    }

    /// What comes of the stripes of 32 bytes, of which there are up to two, and the words after them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    fn stripes(words: &[__m512i; LANES], lengths: __m512i) -> (__m512i, [__m512i; 4]) {
        let (mut begun, mut rest) = (all(PRIME_5), [words[0], words[1], words[2], words[3]]);
        let with_one = _mm512_cmpge_epu64_mask(lengths, all(32));
        if with_one == 0 {
            return (begun, rest);
        }
        let with_two = _mm512_cmpge_epu64_mask(lengths, all(64));
        let seeds = [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, PRIME_1.wrapping_neg()];
        let accumulators: [__m512i; 4] = std::array::from_fn(|i| {
            let after_one = round(all(seeds[i]), words[i]);
            if with_two == 0 {
                return after_one;
            }
            _mm512_mask_mov_epi64(after_one, with_two, round(after_one, words[4 + i]))
        });
        let mut merged = _mm512_add_epi64(
            _mm512_add_epi64(_mm512_rol_epi64::<1>(accumulators[0]), _mm512_rol_epi64::<7>(accumulators[1])),
            _mm512_add_epi64(_mm512_rol_epi64::<12>(accumulators[2]), _mm512_rol_epi64::<18>(accumulators[3])),
        );
        for accumulator in accumulators {
            merged = _mm512_xor_si512(merged, round(_mm512_setzero_si512(), accumulator));
            merged = _mm512_add_epi64(times(merged, PRIME_1), all(PRIME_4));
        }
        begun = _mm512_mask_mov_epi64(begun, with_one, merged);
        for (rest, &after) in rest.iter_mut().zip(&words[4..]) {
            *rest = _mm512_mask_mov_epi64(*rest, with_one, after);
        }
        (begun, rest)
    }

    /// The bytes after the stripes, fewer than 32.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    fn remainder(mut hash: __m512i, rest: &[__m512i; 4], lengths: __m512i) -> __m512i {
        let left = _mm512_and_si512(lengths, all(31));
        let mut tail = rest[0];
        for i in 0..3 {
            let with_word = _mm512_cmpge_epu64_mask(left, all(8 * (i as i64 + 1)));
            if with_word == 0 {
                break;
            }
            let next = _mm512_xor_si512(hash, round(_mm512_setzero_si512(), rest[i]));
            let next = _mm512_add_epi64(times(_mm512_rol_epi64::<27>(next), PRIME_1), all(PRIME_4));
            hash = _mm512_mask_mov_epi64(hash, with_word, next);
            tail = _mm512_mask_mov_epi64(tail, with_word, rest[i + 1]);
        }
        let with_four = _mm512_test_epi64_mask(left, all(4));
        if with_four != 0 {
            let next = _mm512_xor_si512(hash, times(_mm512_and_si512(tail, all(0xFFFF_FFFF)), PRIME_1));
            let next = _mm512_add_epi64(times(_mm512_rol_epi64::<23>(next), PRIME_2), all(PRIME_3));
            hash = _mm512_mask_mov_epi64(hash, with_four, next);
            tail = _mm512_mask_srli_epi64::<32>(tail, with_four, tail);
        }
        let left = _mm512_and_si512(left, all(3));
        for i in 0..3 {
            let with_byte = _mm512_cmpgt_epu64_mask(left, all(i));
            if with_byte == 0 {
                break;
            }
            let next = _mm512_xor_si512(hash, times(_mm512_and_si512(tail, all(0xFF)), PRIME_5));
            let next = times(_mm512_rol_epi64::<11>(next), PRIME_1);
            hash = _mm512_mask_mov_epi64(hash, with_byte, next);
            tail = _mm512_srli_epi64::<8>(tail);
        }
        hash
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    fn avalanche(hash: __m512i) -> __m512i {
        let hash = times(_mm512_xor_si512(hash, _mm512_srli_epi64::<33>(hash)), PRIME_2);
        let hash = times(_mm512_xor_si512(hash, _mm512_srli_epi64::<29>(hash)), PRIME_3);
        _mm512_xor_si512(hash, _mm512_srli_epi64::<32>(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{hash, word};

    /// Texts of every length beside every other, with any bytes.
    #[test]
    fn hashes_of_many_are_those_of_each() {
        let Some(mut texts) = Texts::new() else { return };
        let bytes: Vec<u8> = (0..4096).map(|i| word(11, i) as u8).collect();
        for round in 0..40_000_u32 {
            let count = if round % 4 == 0 { word(2, round) as usize % (LANES + 1) } else { LANES };
            let given: Vec<&[u8]> = (0..count as u32)
                .map(|i| {
                    let random = word(u64::from(round), i);
                    let length =
                        if round % 3 == 0 { 45 - (random >> 32) as usize % 3 } else { (random >> 32) as usize % 65 };
                    &bytes[random as usize % 4000..][..length]
                })
                .collect();
            assert!(given.iter().all(|text| texts.push(text)));
            assert_eq!(texts.room(), LANES - count);
            let hashes: Vec<u64> = texts.take().collect();
            assert_eq!(hashes, given.iter().map(|text| hash(text)).collect::<Vec<_>>(), "{given:?}");
            assert_eq!(texts.room(), LANES);
        }
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let Some(mut texts) = Texts::new() else { return };
        assert!(!texts.push(&[1; LONGEST + 1]));
        (0..LANES).for_each(|i| assert!(texts.push(&[i as u8; LONGEST])));
        assert!(!texts.push(b""));
        assert_eq!(texts.take().count(), LANES);
        assert!(texts.push(b"x"));
        assert_eq!(texts.take().count(), 1);
    }
}
