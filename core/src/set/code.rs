//! The stored form of a row: rows.md describes it.
//!
//! ```text
//! version, form | first slice | low bits | high bits | slices | zeros | count | checksum
//!  1       1      8, if it keeps                                        2       4        bytes, a multiple of 8 in all
//! ```
//!
//! PostgreSQL logs what is between the first and the last byte of a row that an UPDATE changes. So
//! what stays the same is first, and the length changes only once in a few insertions.

use super::tree::{self, Form};
use crate::filter::Buffer;
use crate::{hash, memory};

const VERSION: u8 = 1;
/// Bytes before the hashes: version and form.
const HEAD: usize = 2;
/// Bytes of the first slice.
const FIRST: usize = 8;
/// Bytes of the count and of the checksum.
const TAIL: usize = 6;
/// Bits of a slice, which is stored as the distance from the first.
const SLICE_BITS: u32 = 4;
/// The largest such distance.
pub const MOST_SLICES: i64 = (1 << SLICE_BITS) - 1;
/// The most hashes of a row.
pub const MOST_HASHES: usize = u16::MAX as usize;

/// A hash of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its first B bits.
    pub hash: u64,
    /// The slice of time in which it was added or renewed; 0 in a set that doesn't forget.
    pub slice: i64,
}

/// The hashes of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The bucket.
    pub bucket: u64,
    /// The slice from which the others are counted in the stored form.
    pub first: i64,
    /// The hashes, ascending.
    pub entries: Vec<Entry>,
}

/// Where the parts of a row are, for a number of hashes of some width.
pub(super) struct RowShape {
    /// Bits of each hash that its bucket doesn't say.
    width: u32,
    /// Low bits of each hash, stored as they are.
    low: u32,
    /// Bits of each slice.
    slice: u32,
    /// The bit at which the high parts begin: rows.md says what they are.
    high: usize,
    /// The bit at which the slices begin.
    slices: usize,
    /// The bit behind them.
    end: usize,
    /// Bytes before the low bits.
    head: usize,
    /// Bytes of the row.
    pub bytes: usize,
}

impl RowShape {
    /// `None` if there can't be so many different hashes.
    pub fn new(form: Form, bucket: u64, count: usize) -> Option<RowShape> {
        let width = form.bits.checked_sub(tree::depth(bucket))?;
        let (slice, head) = if form.keeps { (SLICE_BITS, HEAD + FIRST) } else { (0, HEAD) };
        let logarithm = count.next_power_of_two().ilog2();
        let low = width.checked_sub(logarithm).filter(|_| count <= MOST_HASHES)?;
        let high = count * low as usize;
        let slices = high + if count == 0 { 0 } else { count + (1 << logarithm) };
        let end = slices + count * slice as usize;
        let bytes = (head + end.div_ceil(8) + TAIL).next_multiple_of(8);
        Some(RowShape { width, low, slice, high, slices, end, head, bytes })
    }
}

fn form_code(form: Form) -> u8 {
    form.bits as u8 | if form.keeps { 0x80 } else { 0 }
}

/// Distinguishes bytes that were damaged, or that belong to another bucket.
fn checksum(bytes: &[u8], bucket: u64) -> [u8; 4] {
    (hash::hash_with_seed(bytes, bucket) as u32).to_le_bytes()
}

/// Bits in bytes, the least significant first, and zeros after them: 16 bytes begin with any bit.
struct BitString(Vec<u8>);

impl BitString {
    fn zeroed(bytes: usize) -> BitString {
        BitString(memory::zeroed(bytes + size_of::<u128>()))
    }

    #[inline]
    fn get(&self, at: usize, len: u32) -> u64 {
        let bytes = self.0[at / 8..].first_chunk().expect("zeros after the bits");
        (u128::from_le_bytes(*bytes) >> (at % 8)) as u64 & ((1 << len) - 1)
    }

    #[inline]
    fn set(&mut self, at: usize, value: u64) {
        let bytes = self.0[at / 8..].first_chunk_mut().expect("zeros after the bits");
        *bytes = (u128::from_le_bytes(*bytes) | u128::from(value) << (at % 8)).to_le_bytes();
    }

    /// The positions of the ones from `from` to before `end`.
    fn ones(&self, from: usize, end: usize) -> impl Iterator<Item = usize> {
        let word = |at: usize| {
            u64::from_le_bytes(*self.0[at * 8..].first_chunk().expect("zeros after the bits"))
        };
        let mut at = from / 64;
        let mut rest = word(at) & (u64::MAX << (from % 64));
        std::iter::from_fn(move || {
            while rest == 0 {
                at += 1;
                if at * 64 >= end {
                    return None;
                }
                rest = word(at);
            }
            let one = at * 64 + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            (one < end).then_some(one)
        })
    }
}

impl Row {
    /// Reads the row of a bucket. Errors: what is not as [`Row::write`] writes it, in the words of
    /// the error.
    pub fn parse(form: Form, bucket: i64, bytes: &[u8]) -> Result<Row, String> {
        let is_bucket = |bucket: &u64| *bucket > 0 && tree::depth(*bucket) <= form.bits;
        let known = u64::try_from(bucket).ok().filter(is_bucket);
        let bucket = known.ok_or_else(|| format!("there can be no bucket {bucket}"))?;
        let length = || format!("it cannot have {} bytes", bytes.len());
        let ([version, code, ..], Some((data, sum))) = (bytes, bytes.split_last_chunk()) else {
            return Err(length());
        };
        if *version != VERSION {
            return Err(format!("its version is {version}"));
        }
        if *code != form_code(form) {
            let forgets = if code & 0x80 == 0 { "does not forget" } else { "forgets" };
            return Err(format!(
                "it is of a set with {} bits of each hash that {forgets}",
                code & 0x7f
            ));
        }
        if checksum(data, bucket) != *sum {
            return Err("its checksum does not fit its bytes and its bucket".into());
        }
        let (data, count) = data.split_last_chunk().ok_or_else(length)?;
        let count = u16::from_le_bytes(*count).into();
        let shape = RowShape::new(form, bucket, count).filter(|shape| shape.bytes == bytes.len());
        let shape = shape.ok_or_else(length)?;
        let (head, data) = data.split_at(shape.head);
        let first = head[HEAD..]
            .first_chunk()
            .map_or(0, |first| i64::from_le_bytes(*first));
        let mut bits = BitString::zeroed(data.len());
        bits.0[..data.len()].copy_from_slice(data);
        if bits.ones(shape.end, data.len() * 8).next().is_some() {
            return Err("it has bits behind its last hash".into());
        }
        let entries = entries(&shape, count, form.prefix(tree::first_hash(bucket)), first, &bits);
        Ok(Row {
            bucket,
            first,
            entries: entries.ok_or("its hashes are out of order")?,
        })
    }

    /// The stored form.
    ///
    /// # Panics
    /// If it has more hashes than fit, or slices too far apart.
    pub fn write<B: Buffer>(&self, form: Form) -> B {
        let shape = RowShape::new(form, self.bucket, self.entries.len())
            .expect("a row that fits its bucket");
        let length = shape.end.div_ceil(8);
        let mut bits = BitString::zeroed(length);
        for (i, entry) in self.entries.iter().enumerate() {
            let hash = entry.hash & ((1 << shape.width) - 1);
            bits.set(i * shape.low as usize, hash & ((1 << shape.low) - 1));
            bits.set(shape.high + i + (hash >> shape.low) as usize, 1);
            if form.keeps {
                let slice = u64::try_from(entry.slice - self.first)
                    .ok()
                    .filter(|&slice| slice <= MOST_SLICES as u64);
                bits.set(
                    shape.slices + i * shape.slice as usize,
                    slice.expect("a slice near the first"),
                );
            }
        }
        let mut buffer = B::zeroed(shape.bytes);
        let (data, sum) = buffer
            .bytes_mut()
            .split_last_chunk_mut()
            .expect("more bytes than a checksum");
        data[..HEAD].copy_from_slice(&[VERSION, form_code(form)]);
        if form.keeps {
            data[HEAD..shape.head].copy_from_slice(&self.first.to_le_bytes());
        }
        let end = data.len() - 2;
        data[shape.head..][..length].copy_from_slice(&bits.0[..length]);
        data[end..].copy_from_slice(&(self.entries.len() as u16).to_le_bytes());
        *sum = checksum(data, self.bucket);
        buffer
    }
}

/// The hashes of a row, all of which begin with `start`; `None` if they are not in order, or not in
/// the bucket.
fn entries(
    shape: &RowShape,
    count: usize,
    start: u64,
    first: i64,
    bits: &BitString,
) -> Option<Vec<Entry>> {
    first.checked_add(MOST_SLICES)?;
    let mut entries = memory::with_capacity(count);
    let mut least = 0;
    for (i, one) in bits.ones(shape.high, shape.slices).take(count + 1).enumerate() {
        let hash = ((one - shape.high - i) as u64) << shape.low
            | bits.get(i * shape.low as usize, shape.low);
        if i == count || hash < least || hash >> shape.width != 0 {
            return None;
        }
        least = hash + 1;
        let slice = first + bits.get(shape.slices + i * shape.slice as usize, shape.slice) as i64;
        entries.push(Entry { hash: start | hash, slice });
    }
    (entries.len() == count).then_some(entries)
}
