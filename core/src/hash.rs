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

/// Identifies this scheme in the stored form.
pub const HASH_ID: u8 = 1;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of an element's canonical bytes: XXH64, seed 0.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

/// The hash of bytes that are not an element: XXH64 with a seed of their own.
#[inline]
pub fn hash_with_seed(bytes: &[u8], seed: u64) -> u64 {
    xxh64(bytes, seed)
}

/// The same hash as of an element, in strides that can be cancelled.
pub fn hash_long(bytes: &[u8]) -> u64 {
    if bytes.len() <= STRIDE_BYTES {
        hash(bytes)
    } else {
        HashSink::hash(|stream| stream.write(bytes))
    }
}

/// The same hash of bytes that are written piece by piece, which can be cancelled in between.
pub struct HashSink {
    state: Xxh64,
    meter: Meter,
}

impl HashSink {
    /// The hash of what `write` writes.
    pub fn hash(write: impl FnOnce(&mut HashSink)) -> u64 {
        HashSink::hash_with_seed(0, write)
    }

    /// The same, as by [`hash_with_seed`].
    pub fn hash_with_seed(seed: u64, write: impl FnOnce(&mut HashSink)) -> u64 {
        let mut stream = HashSink { state: Xxh64::new(seed), meter: Meter::default() };
        write(&mut stream);
        stream.state.digest()
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

/// The shard of an element among `shards`. XXH64 with seed 1 over its hash, as eight little-endian
/// bytes, chooses it: the hash itself has no bits left to choose with.
pub fn shard(hash: u64, shards: u32) -> u32 {
    reduce(hash_with_seed(&hash.to_le_bytes(), 1), u64::from(shards)) as u32
}

#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The `j`-th word derived from a hash.
#[inline(always)]
pub fn word(hash: u64, j: u32) -> u64 {
    mix(hash.wrapping_add((u64::from(j) + 1).wrapping_mul(GOLDEN)))
}

/// Maps a uniform 64-bit number to `0..n` by multiply-shift: the high half of `x · n`.
///
/// It keeps order, so that position `i` of `n` becomes one of `q·i … q·i + q - 1` of `q·n`: which
/// is what spreading and folding need (Lemire: Fast Random Integer Generation in an Interval,
/// 2019).
#[inline(always)]
pub fn reduce(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests;
