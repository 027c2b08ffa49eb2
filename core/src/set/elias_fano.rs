//! Where the bits of a row's hashes are: ascending numbers in Elias-Fano code, and the time slices
//! after them.
//!
//! # Example
//!
//! The row of bucket 11 in `row`'s example has the hashes 0001 and 1110, of w = 4 bits each. There
//! are n = 2 of them, and L = ⌈log2 n⌉ = 1. So the lower 3 bits of each are stored as they are: 001
//! and 110. The higher parts are 0 and 1. They ascend, and are stored in n + 2^L = 4 bits: a one
//! for each hash, and as many zeros before it as its higher part says. The one of hash i is at bit
//! i + its higher part: 0 + 0 and 1 + 1.
//!
//! ```text
//! bit      0 1 2   3 4 5   6 7 8 9
//!          1 0 0   0 1 1   1 0 1 0        the least significant bit of a number comes first
//!          low 0   low 1   high parts
//! ```
//!
//! A list of n numbers takes n · (w − L) + n + 2^L bits, about two more for each than the logarithm
//! of the distance between neighbours.

use super::form::SetForm;
use super::tree;
use crate::memory::List;

/// Bits of a time slice, which is stored as the distance from the row's first one.
const TIME_SLICE_BITS: u32 = 4;
/// The largest such distance.
pub(super) const MOST_LATER_TIME_SLICES: i64 = (1 << TIME_SLICE_BITS) - 1;
/// The most hashes of a row: their number is stored in 16 bits.
pub(super) const MOST_HASHES: usize = u16::MAX as usize;

/// Where the bits of a row's hashes and time slices are, for some number of hashes.
pub(super) struct BitLayout {
    /// How many bits of each hash are stored: those that the bucket doesn't say.
    pub(super) width: u32,
    /// How many of these, the lowest, are stored as they are.
    pub(super) low_bits: u32,
    /// How many bits each time slice has; 0 in a set that doesn't forget.
    pub(super) time_slice_bits: u32,
    /// The bit at which the higher parts begin. The low bits begin at 0.
    pub(super) high_start: usize,
    /// The bit at which the time slices begin.
    pub(super) time_slices_start: usize,
    /// The first bit after all of them.
    pub(super) end: usize,
}

impl BitLayout {
    /// Returns where the hashes of a stored row are in its bits, and the times at which its
    /// elements were added, if the row has `count` hashes:
    ///
    /// ```text
    /// low bits of each hash │ high parts of all hashes │ a time slice for each hash, in a set that forgets
    /// ```
    ///
    /// All hashes of a row begin with the same bits. These aren't stored, as they follow from the
    /// row's number, its *bucket*.
    ///
    /// The other bits are stored in Elias-Fano code. The highest L bits of each hash are its *high
    /// part*, where L is the logarithm of the number of hashes to base 2, rounded up. All high
    /// parts together take one bit for each hash, and one for each of the 2^L possible high parts.
    /// The lower bits of each hash are stored as they are.
    ///
    /// Example: 8-bit hashes, three of them, in a bucket whose hashes begin with the same 2 bits.
    /// Six bits of each hash are left. L is 2, so 4 low bits of each are stored as they are, 12
    /// together, and the high parts take 3 + 4 bits.
    ///
    /// Returns `None` if a row can't have so many hashes: more than [`MOST_HASHES`], or more than
    /// there are different ones in the bucket.
    pub(super) fn for_hashes(form: SetForm, bucket: u64, count: usize) -> Option<BitLayout> {
        let width = form.bits.checked_sub(tree::depth(bucket))?;
        let bits_of_high_part = count.next_power_of_two().ilog2();
        let low_bits = width.checked_sub(bits_of_high_part)?;
        if count > MOST_HASHES {
            return None;
        }

        let time_slice_bits = if form.forgets { TIME_SLICE_BITS } else { 0 };
        let high_start = count * low_bits as usize;
        let high_bits = if count == 0 { 0 } else { count + (1 << bits_of_high_part) };
        let time_slices_start = high_start + high_bits;
        let end = time_slices_start + count * time_slice_bits as usize;
        Some(BitLayout {
            width,
            low_bits,
            time_slice_bits,
            high_start,
            time_slices_start,
            end,
        })
    }

    /// Returns the bit at which the low bits of the hash with this index begin.
    pub(super) fn low_start(&self, index: usize) -> usize {
        index * self.low_bits as usize
    }

    /// Returns the bit at which the time slice of the hash with this index begins.
    pub(super) fn time_slice_start(&self, index: usize) -> usize {
        self.time_slices_start + index * self.time_slice_bits as usize
    }
}

/// Bits in bytes, the least significant bit of each byte first.
///
/// Zeros follow them, so that 16 bytes can be read from the byte that has any of the bits.
pub(super) struct BitString(List<u8>);

impl BitString {
    /// Returns as many bits as `bytes` bytes have, all of them zero.
    pub(super) fn zeroed(bytes: usize) -> BitString {
        BitString(List::zeroed(bytes + size_of::<u128>()))
    }

    /// Returns the bits of these bytes.
    pub(super) fn copy_of(bytes: &[u8]) -> BitString {
        let mut bits = BitString::zeroed(bytes.len());
        bits.0[..bytes.len()].copy_from_slice(bytes);
        bits
    }

    /// Returns the first bytes.
    pub(super) fn bytes(&self, count: usize) -> &[u8] {
        &self.0[..count]
    }

    /// Returns the number that `count` bits from `start` on stand for. `count` must be below 64.
    #[inline]
    pub(super) fn get(&self, start: usize, count: u32) -> u64 {
        let bytes = self.0[start / 8..].first_chunk().expect("zeros after the bits");
        let from_start = u128::from_le_bytes(*bytes) >> (start % 8);
        from_start as u64 & ((1 << count) - 1)
    }

    /// Sets bits from `start` on, which were zero, to those of a number.
    #[inline]
    pub(super) fn set(&mut self, start: usize, number: u64) {
        let bytes = self.0[start / 8..].first_chunk_mut().expect("zeros after the bits");
        let changed = u128::from_le_bytes(*bytes) | u128::from(number) << (start % 8);
        *bytes = changed.to_le_bytes();
    }

    /// Returns the positions of the bits that are one, from bit `start` to before bit `end`, in
    /// ascending order.
    pub(super) fn ones(&self, start: usize, end: usize) -> Ones<'_> {
        let word_index = start / 64;
        let mut ones = Ones { bits: self, end, word_index, word: 0 };
        ones.word = ones.word_at(word_index) & (u64::MAX << (start % 64));
        ones
    }
}

/// The positions of the ones in a part of a [`BitString`], ascending.
pub(super) struct Ones<'a> {
    bits: &'a BitString,
    /// The bit before which the part ends.
    end: usize,
    /// Which 64 bits are looked at.
    word_index: usize,
    /// These bits, without the ones that were returned.
    word: u64,
}

impl Ones<'_> {
    fn word_at(&self, index: usize) -> u64 {
        let bytes = self.bits.0[index * 8..].first_chunk().expect("zeros after the bits");
        u64::from_le_bytes(*bytes)
    }
}

impl Iterator for Ones<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            self.word_index += 1;
            if self.word_index * 64 >= self.end {
                return None;
            }
            self.word = self.word_at(self.word_index);
        }
        let position = self.word_index * 64 + self.word.trailing_zeros() as usize;
        // This clears the lowest one.
        self.word &= self.word - 1;
        (position < self.end).then_some(position)
    }
}
