//! The stored form of a row: its records and the checks of them. `rows.md` describes its bytes.
//!
//! ```text
//! RowHead │ RowStart, if the set forgets │ low bits, higher parts, time slices │ zeros │ RowTail
//! ```
//!
//! PostgreSQL logs what is between the first and the last byte of a row that an UPDATE changes. So
//! what stays the same is first, and what each insertion changes is last.

use super::elias_fano::{BitLayout, BitString, MOST_LATER_TIME_SLICES};
use super::form::SetForm;
use super::tree;
use crate::hash;
use crate::memory::{Buffer, List};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the stored form.
const VERSION: u8 = 1;
/// Added to the number of bits in the second byte of a row whose set forgets.
const FORGETS: u8 = 0x80;

/// An element as its row has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowEntry {
    /// The first B bits of its hash.
    pub hash: u64,
    /// The time slice in which it was added or renewed; 0 in a set that doesn't forget.
    pub time_slice: i64,
}

/// The elements of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number of the leaf.
    pub bucket: u64,
    /// The time slice from which those of the entries are counted in the stored form. None of them
    /// is earlier.
    pub first_time_slice: i64,
    /// The elements, their hashes ascending. All of them begin with the bits of the bucket.
    pub entries: List<RowEntry>,
}

/// The start of every row.
#[derive(Serialize, Deserialize)]
struct RowHead {
    version: u8,
    form: u8,
}

/// What follows the head in a set that forgets.
#[derive(Serialize, Deserialize)]
struct RowStart {
    first_time_slice: i64,
}

/// The end of every row.
#[derive(Serialize, Deserialize)]
struct RowTail {
    count: u16,
    checksum: u32,
}

const HEAD_BYTES: usize = size_of::<u8>() + size_of::<u8>();
const START_BYTES: usize = size_of::<i64>();
const TAIL_BYTES: usize = size_of::<u16>() + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = size_of::<u32>();

/// Returns how many bytes of a row come before its bits.
fn head_bytes(form: SetForm) -> usize {
    if form.forgets { HEAD_BYTES + START_BYTES } else { HEAD_BYTES }
}

/// Returns how many bytes the stored row of a bucket has if it has `count` hashes. `None` if there
/// can't be so many: a bucket has a limited number of different hashes, and so has a row.
pub(super) fn stored_bytes(form: SetForm, bucket: u64, count: usize) -> Option<usize> {
    BitLayout::for_hashes(form, bucket, count).map(|layout| bytes_with(form, &layout))
}

/// Returns how many bytes a row has whose hashes have this layout.
fn bytes_with(form: SetForm, layout: &BitLayout) -> usize {
    let bytes = head_bytes(form) + layout.end.div_ceil(8) + TAIL_BYTES;
    // A multiple of 8 changes only once in a few insertions. If the length changes, PostgreSQL logs
    // all bytes after it, too.
    bytes.next_multiple_of(8)
}

impl Row {
    /// Reads a row of a set from its stored bytes:
    ///
    /// ```text
    /// head │ first time slice, if the set forgets │ bits of the hashes, then zeros │ count, checksum
    /// ```
    ///
    /// `form` is that of the set, and `bucket` is the
    /// number by which the table has the row: it says with which bits all of its hashes begin.
    ///
    /// Fails unless the bytes are those that [`Row::write`] writes for such a row. The error is a
    /// clause about the row, such as "its version is 7".
    pub fn parse(form: SetForm, bucket: i64, bytes: &[u8]) -> Result<Row, String> {
        let bucket = check_bucket(bucket, form)?;
        check_length(bytes.len(), bytes.len() >= HEAD_BYTES + TAIL_BYTES)?;

        let head: RowHead = read_fixed(&bytes[..HEAD_BYTES]);
        head.check_version()?;
        head.check_form(form)?;

        let (before_tail, tail) = bytes.split_at(bytes.len() - TAIL_BYTES);
        let tail: RowTail = read_fixed(tail);
        tail.check_checksum(&bytes[..bytes.len() - CHECKSUM_BYTES], bucket)?;

        // The number of hashes says how many bytes the row must have.
        let count = usize::from(tail.count);
        let layout = BitLayout::for_hashes(form, bucket, count)
            .filter(|layout| bytes_with(form, layout) == bytes.len())
            .ok_or_else(|| wrong_length(bytes.len()))?;

        let first_time_slice = if form.forgets {
            let start: RowStart = read_fixed(&bytes[HEAD_BYTES..][..START_BYTES]);
            start.check_first_time_slice()?;
            start.first_time_slice
        } else {
            0
        };

        let bytes_of_bits = &before_tail[head_bytes(form)..];
        let bits = BitString::copy_of(bytes_of_bits);
        check_padding(&bits, &layout, bytes_of_bits.len())?;
        let origin = EntryOrigin {
            first_hash: form.prefix(tree::first_hash(bucket)),
            first_time_slice,
        };
        let entries = decode_entries(&bits, &layout, count, origin)?;
        Ok(Row { bucket, first_time_slice, entries })
    }

    /// Returns the row of a set as it is stored: a head, the bits of its hashes, and a tail with a
    /// checksum. `form` is the form of the set: how many bits of each hash it keeps, and whether it
    /// forgets.
    ///
    /// Panics if the row has more hashes than fit, or if the time slice in which an entry was added
    /// is too far from the first one. [`Row::split`] and [`Row::rebase`] make sure of both.
    pub fn write<B: Buffer>(&self, form: SetForm) -> B {
        let count = self.entries.len();
        let layout =
            BitLayout::for_hashes(form, self.bucket, count).expect("a row that fits its bucket");
        let length = bytes_with(form, &layout);
        let mut buffer = B::zeroed(length);
        let bytes = buffer.bytes_mut();

        let head = RowHead { version: VERSION, form: form_code(form) };
        write_fixed(&mut bytes[..HEAD_BYTES], &head);
        if form.forgets {
            let start = RowStart { first_time_slice: self.first_time_slice };
            write_fixed(&mut bytes[HEAD_BYTES..][..START_BYTES], &start);
        }

        let bits = self.encode_entries(form, &layout);
        let bytes_of_bits = layout.end.div_ceil(8);
        bytes[head_bytes(form)..][..bytes_of_bits].copy_from_slice(bits.bytes(bytes_of_bits));

        // Fits: with more than MOST_HASHES there would be no layout.
        let count = count as u16;
        // The checksum covers the count, so the tail is written first without the checksum.
        write_fixed(&mut bytes[length - TAIL_BYTES..], &RowTail { count, checksum: 0 });
        let checksum = checksum(&bytes[..length - CHECKSUM_BYTES], self.bucket);
        write_fixed(&mut bytes[length - TAIL_BYTES..], &RowTail { count, checksum });
        buffer
    }

    /// Returns the bits by which the entries of the row are stored: the hashes in Elias-Fano code,
    /// which takes few bits for numbers in ascending order, and then, if the set forgets, the time
    /// slices in which the elements were added. `layout` says where they are.
    ///
    /// The bits with which all hashes of the row begin are left out. Of the others, the lowest bits
    /// of each hash are stored as they are. The rest, its *high part*, is a number that is stored
    /// as the place of a single one-bit among zeros: the place is the sum of the high part and the
    /// index of the hash, so that no two hashes have the same place.
    fn encode_entries(&self, form: SetForm, layout: &BitLayout) -> BitString {
        let mut bits = BitString::zeroed(layout.end.div_ceil(8));
        for (index, entry) in self.entries.iter().enumerate() {
            let stored_hash = entry.hash & ((1 << layout.width) - 1);
            let low_part = stored_hash & ((1 << layout.low_bits) - 1);
            let high_part = (stored_hash >> layout.low_bits) as usize;
            bits.set(layout.low_start(index), low_part);
            bits.set(layout.high_start + index + high_part, 1);

            if form.forgets {
                let later_slices = entry.time_slice - self.first_time_slice;
                assert!(
                    (0..=MOST_LATER_TIME_SLICES).contains(&later_slices),
                    "a time slice near the first one"
                );
                bits.set(layout.time_slice_start(index), later_slices as u64);
            }
        }
        bits
    }
}

/// What the hashes and the time slices of a row are counted from in its bits.
struct EntryOrigin {
    /// The least hash that the row can have: the bits with which all of its hashes begin, and then
    /// zeros.
    first_hash: u64,
    first_time_slice: i64,
}

/// Returns the entries of a row, by the bits that [`Row::encode_entries`] makes of them: hashes in
/// Elias-Fano code, and time slices. `count` is the number of entries.
///
/// In that code each hash has a one-bit among zeros. The place of the bit is the sum of the index
/// of the hash and of its *high part*, so the high part is the difference. The other bits of the
/// hash, its low part, are stored as they are. The bits with which all hashes of the row begin
/// aren't stored: `origin` has them, and the time slice from which the stored ones are counted.
///
/// Fails unless there are `count` different hashes, ascending, that a row of this bucket may have.
fn decode_entries(
    bits: &BitString,
    layout: &BitLayout,
    count: usize,
    origin: EntryOrigin,
) -> Result<List<RowEntry>, String> {
    let mut entries = List::with_capacity(count);
    // As hashes ascend, each is at least one more than the one before.
    let mut least_hash = 0;
    for bit_of_hash in bits.ones(layout.high_start, layout.time_slices_start) {
        let index = entries.len();
        if index == count {
            return Err(hashes_out_of_order());
        }

        let high_part = (bit_of_hash - layout.high_start - index) as u64;
        let low_part = bits.get(layout.low_start(index), layout.low_bits);
        let stored_hash = high_part << layout.low_bits | low_part;
        let is_too_wide = stored_hash >> layout.width != 0;
        if stored_hash < least_hash || is_too_wide {
            return Err(hashes_out_of_order());
        }
        least_hash = stored_hash + 1;

        // 0 in a set that doesn't forget, which stores no bits of time slices.
        let later_slices = bits.get(layout.time_slice_start(index), layout.time_slice_bits);
        entries.push(RowEntry {
            hash: origin.first_hash | stored_hash,
            time_slice: origin.first_time_slice + later_slices as i64,
        });
    }
    if entries.len() == count { Ok(entries) } else { Err(hashes_out_of_order()) }
}

impl RowHead {
    fn check_version(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!("its version is {}", self.version));
        }
        Ok(())
    }

    /// Checks that the row is one of a set of this form.
    fn check_form(&self, form: SetForm) -> Result<(), String> {
        if self.form != form_code(form) {
            let bits = self.form & !FORGETS;
            let forgets = if self.form & FORGETS == 0 { "does not forget" } else { "forgets" };
            return Err(format!("it is of a set with {bits} bits of each hash that {forgets}"));
        }
        Ok(())
    }
}

impl RowStart {
    /// Checks that the latest time slice that an entry may have is a number.
    fn check_first_time_slice(&self) -> Result<(), String> {
        if self.first_time_slice > i64::MAX - MOST_LATER_TIME_SLICES {
            return Err(format!("its first time slice is {}", self.first_time_slice));
        }
        Ok(())
    }
}

impl RowTail {
    /// Checks that `covered`, all bytes of the row before the checksum, belong to this bucket and
    /// weren't damaged.
    fn check_checksum(&self, covered: &[u8], bucket: u64) -> Result<(), String> {
        if self.checksum != checksum(covered, bucket) {
            return Err("its checksum does not fit its bytes and its bucket".into());
        }
        Ok(())
    }
}

/// Returns the bucket if a row of a set of this form can have it. Fails if not.
fn check_bucket(bucket: i64, form: SetForm) -> Result<u64, String> {
    match u64::try_from(bucket) {
        Ok(possible) if possible > 0 && tree::depth(possible) <= form.bits => Ok(possible),
        _ => Err(format!("there can be no bucket {bucket}")),
    }
}

fn check_length(length: usize, is_valid: bool) -> Result<(), String> {
    if is_valid { Ok(()) } else { Err(wrong_length(length)) }
}

/// Checks that the bits of a row behind those of its hashes are zero. `bytes` is the number of
/// bytes that all these bits have.
fn check_padding(bits: &BitString, layout: &BitLayout, bytes: usize) -> Result<(), String> {
    if bits.ones(layout.end, bytes * 8).next().is_some() {
        return Err("it has bits behind its last hash".into());
    }
    Ok(())
}

#[cold]
fn wrong_length(length: usize) -> String {
    format!("it cannot have {length} bytes")
}

#[cold]
fn hashes_out_of_order() -> String {
    "its hashes are out of order".into()
}

/// Returns the second byte of the rows of a set.
fn form_code(form: SetForm) -> u8 {
    // At most 60 bits, below the other part of the code.
    let bits = form.bits as u8;
    if form.forgets { bits | FORGETS } else { bits }
}

/// Returns the checksum of the bytes of a row. Those that were damaged, or belong to another
/// bucket, have another one.
fn checksum(bytes: &[u8], bucket: u64) -> u32 {
    hash::hash_with_seed(bytes, bucket) as u32
}

/// Reads a record, little-endian and without padding, from as many bytes as it has.
fn read_fixed<T: DeserializeOwned>(bytes: &[u8]) -> T {
    bincode::deserialize(bytes).expect("a record of fixed width has all its bytes")
}

/// Writes a record, little-endian and without padding, to as many bytes as it has.
fn write_fixed<T: Serialize>(bytes: &mut [u8], record: &T) {
    bincode::serialize_into(bytes, record).expect("a record of fixed width fits its bytes");
}
