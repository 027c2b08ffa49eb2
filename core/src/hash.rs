//! The 64-bit hash of the canonical bytes of an element, and as many further bits as a layout
//! needs.
//!
//! The hash of an element is XXH64 with seed 0 over its canonical bytes
//! ([`crate::canonical::scalar`]). It is frozen: stored filters depend on it, so it depends on
//! these bytes only.
//!
//! A layout needs more random bits than one hash has. Using the same bits again raises the rate:
//! double hashing over the 512 positions of a block gave 2.2e-3 instead of 1e-3. So word `j` is the
//! hash plus `j + 1` golden-ratio steps, put through the finaliser of SplitMix64 (Steele, Lea,
//! Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), that is, the stream of
//! SplitMix64 seeded with the hash.

use crate::canonical::Sink;
use crate::interrupt::{Meter, STRIDE_BYTES};
use xxhash_rust::xxh64::{Xxh64, xxh64};

/// The number that stands for this way of hashing in stored filters.
pub const HASH_ID: u8 = 1;

/// The seed of the hash of an element.
const ELEMENT_SEED: u64 = 0;
/// The seed of the hash that chooses the shard of an element.
const SHARD_SEED: u64 = 1;
/// 2^64 divided by the golden ratio, as an odd number: the step of SplitMix64.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the hash of an element, given its canonical bytes: XXH64 with seed 0.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    xxh64(bytes, ELEMENT_SEED)
}

/// Returns the hash of bytes that are not an element: XXH64 with another seed than 0.
#[inline]
pub fn hash_with_seed(bytes: &[u8], seed: u64) -> u64 {
    xxh64(bytes, seed)
}

/// Returns the hash of an element, as [`hash`] does. Can be cancelled, so the canonical bytes may be
/// many.
pub fn hash_long(bytes: &[u8]) -> u64 {
    if bytes.len() <= STRIDE_BYTES {
        hash(bytes)
    } else {
        HashSink::hash(|sink| sink.write(bytes))
    }
}

/// Hashes bytes that are written piece by piece. It can be cancelled in between.
pub struct HashSink {
    state: Xxh64,
    meter: Meter,
}

impl HashSink {
    /// Returns the hash of an element whose canonical bytes `write` writes. It is that of [`hash`]
    /// for the same bytes.
    pub fn hash(write: impl FnOnce(&mut HashSink)) -> u64 {
        HashSink::hash_with_seed(ELEMENT_SEED, write)
    }

    /// Returns the hash of the bytes that `write` writes. It is that of [`hash_with_seed`] for the
    /// same bytes.
    pub fn hash_with_seed(seed: u64, write: impl FnOnce(&mut HashSink)) -> u64 {
        let mut sink = HashSink { state: Xxh64::new(seed), meter: Meter::default() };
        write(&mut sink);
        sink.state.digest()
    }
}

impl Sink for HashSink {
    fn write(&mut self, bytes: &[u8]) {
        for stride in bytes.chunks(STRIDE_BYTES) {
            self.state.update(stride);
            self.meter.add_bytes(stride.len());
        }
    }
}

/// Returns the number, below `shards`, of the shard that an element belongs to, given its hash.
///
/// The shard is chosen by a hash of the hash. If its bits were used themselves, the elements of a
/// shard would agree in them, and a filter of that shard would set only some of its bits.
pub fn shard(hash: u64, shards: u32) -> u32 {
    let random = hash_with_seed(&hash.to_le_bytes(), SHARD_SEED);
    reduce(random, u64::from(shards)) as u32
}

/// Returns word `j` of a hash: 64 further bits, which look random and independent of those of other
/// words.
#[inline(always)]
pub fn word(hash: u64, j: u32) -> u64 {
    let steps = u64::from(j) + 1;
    mix(hash.wrapping_add(steps.wrapping_mul(GOLDEN_RATIO)))
}

/// Mixes the bits of a number, so that numbers that differ in one bit differ in half of their bits
/// afterwards: the finaliser of SplitMix64, whose constants these are.
#[inline(always)]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Maps a uniform 64-bit number to a uniform one from 0 to `n - 1` by multiply-shift: the high half
/// of the product `x · n` (Lemire: Fast Random Integer Generation in an Interval, 2019).
///
/// The result keeps the order of `x`: what becomes `i` for `n` becomes one of `q·i` to `q·i + q - 1`
/// for `q·n`. This is what allows a filter to be spread to `q` times as many blocks, and folded
/// back.
#[inline(always)]
pub fn reduce(x: u64, n: u64) -> u64 {
    // WebAssembly has no product of 128 bits, and calls a function in its place.
    if cfg!(target_arch = "wasm32") && n <= u64::from(u32::MAX) {
        return reduce_to_u32(x, n);
    }
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

/// Returns the same as [`reduce`], for `n` below 2^32, by products of 64 bits.
///
/// With `x = 2^32 · high + low`, the quotient `x · n / 2^64` is `(high · n + low · n / 2^32) / 2^32`.
/// The sum in brackets is below 2^64, and to drop the fraction of `low · n / 2^32` doesn't change
/// what is left of it after the last division.
#[inline(always)]
fn reduce_to_u32(x: u64, n: u64) -> u64 {
    let high = x >> 32;
    let low = x & u64::from(u32::MAX);
    (high * n + ((low * n) >> 32)) >> 32
}

#[cfg(test)]
mod tests;
