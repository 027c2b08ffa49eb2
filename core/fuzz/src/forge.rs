//! From arbitrary bytes to bytes that are a filter, following docs/format.md and not the code that
//! writes filters.

use pg_bloom_core::{Layout, MAX_STORED_BYTES, sizing};
use std::collections::BTreeSet;

/// Where the payload starts if there is no name.
pub const HEADER: usize = 44;
/// The most bytes of bits that are made: enough for several blocks of each layout.
const MOST_BITS: u64 = 1024;
/// The most blocks of counters that are made.
const MOST_COUNTER_BLOCKS: u64 = 3;
/// The last code of a key kind, apart from the kinds that only `parquet` has.
pub const LAST_GENERAL_KIND: u8 = 21;

/// Returns the codes of the kinds that filters of a layout can have. Committed inputs choose a kind
/// by its place in the list: the order is frozen, also that 11 is in the list of `parquet` twice.
fn kinds(layout: Layout) -> Vec<u8> {
    match layout {
        Layout::Blocked | Layout::Classic => (0..=LAST_GENERAL_KIND).collect(),
        Layout::Parquet => [0, 5, 10, 11]
            .into_iter()
            .chain(32..=40)
            .chain(11..=LAST_GENERAL_KIND)
            .collect(),
    }
}

/// Whether filters of a kind have a name in their header: "other" and the kinds of types that are
/// made of others.
pub fn has_name(kind: u8) -> bool {
    matches!(kind, 11 | 18..=21)
}

/// Reads an input from the front. Missing bytes are zero.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// As many of the next `len` bytes as there are.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next two bytes.
    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next eight bytes.
    pub fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Bytes with their length before them.
    pub fn part(&mut self) -> &'a [u8] {
        let len = self.half();
        self.take(usize::from(len))
    }
}

/// The value with one to three changes that the end of the input chooses; some of them in its first
/// `header` bytes.
pub fn damaged(value: &[u8], data: &[u8], header: usize) -> Vec<u8> {
    let mut value = value.to_vec();
    let mut choices = Input(&data[data.len().saturating_sub(30)..]);
    for _ in 0..=choices.byte() % 3 {
        let at = usize::try_from(choices.number() % (value.len() as u64 + 1)).expect("a length");
        match choices.byte() % 5 {
            0 => value.truncate(at),
            1 => value.insert(at, choices.byte()),
            2 => value
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|b| *b ^= 1 << (choices.byte() % 8)),
            3 => value
                .iter_mut()
                .skip(at % header)
                .take(1)
                .for_each(|b| *b = choices.byte()),
            _ => value.extend_from_within(at..),
        }
    }
    value
}

/// The value with one field of its header changed, or with an empty payload, as `choice` and
/// `number` say.
pub fn with_field(value: &[u8], choice: u8, number: u64) -> Vec<u8> {
    const FIELDS: [(usize, usize); 12] = [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 1),
        (5, 1),
        (6, 2),
        (8, 8),
        (16, 8),
        (24, 8),
        (32, 8),
        (40, 4),
    ];
    let mut value = value.to_vec();
    let Some(&(at, width)) = FIELDS.get(usize::from(choice % 16)) else {
        value[HEADER..].fill(0);
        return value;
    };
    let mut old = [0; 8];
    old[..width].copy_from_slice(&value[at..at + width]);
    let old = u64::from_le_bytes(old);
    let new = match choice / 16 % 4 {
        0 => 0,
        1 => old.wrapping_add(1),
        2 => old.wrapping_sub(1),
        _ => number,
    };
    value[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
    value
}

/// Puts a number into the header.
fn put(value: &mut [u8], at: usize, number: u64) {
    value[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn number(value: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(value[at..at + 8].try_into().expect("eight bytes"))
}

/// Changes as little as it can to make `bytes` a filter or, if `state` is true, the state of an
/// unsized aggregate.
pub fn repair(bytes: &[u8], state: bool) -> Vec<u8> {
    let mut value = bytes.to_vec();
    value.resize(value.len().max(HEADER), 0);
    let layout = repair_small_fields(&mut value);
    let payload = repair_name(&mut value);
    if number(&value, 8) == 0 {
        value[4] = 0;
        value[8..32].fill(0);
        value[3] = 0;
        if !state {
            // A filter of no size has no elements and no kind.
            value[2] = 0;
            value[6..8].fill(0);
            value.truncate(HEADER);
            return value;
        }
    } else {
        repair_shape(&mut value, layout, payload, state);
    }
    if value[3] == 1 {
        repair_bits(&mut value, layout, payload)
    } else {
        repair_hashes(&mut value, layout, payload)
    }
    value
}

/// Version, layout, kind, representation, hashes, hash id, rate, reserved.
fn repair_small_fields(value: &mut [u8]) -> Layout {
    value[0] = 1;
    value[1] = 1 + value[1].wrapping_sub(1) % 3;
    let layout = Layout::from_code(value[1]).expect("one of three");
    let kinds = kinds(layout);
    if !kinds.contains(&value[2]) {
        value[2] = kinds[usize::from(value[2]) % kinds.len()];
    }
    value[3] &= 1;
    value[4] = if layout == Layout::Parquet { 8 } else { 1 + value[4].wrapping_sub(1) % 64 };
    value[5] = 1;
    let fpr = f64::from_bits(number(value, 32));
    if !sizing::is_possible_fpr(layout, fpr) {
        put(value, 32, 0.01f64.to_bits());
    }
    value[40..44].fill(0);
    layout
}

/// The name, if the kind has one. Returns where the payload starts.
fn repair_name(value: &mut Vec<u8>) -> usize {
    if !has_name(value[2]) {
        value[6..8].fill(0);
        return HEADER;
    }
    let len = 1 + usize::from(u16::from_le_bytes([value[6], value[7]]).wrapping_sub(1) % 512);
    let end = HEADER + len.next_multiple_of(8);
    value.resize(value.len().max(end), b'n');
    value[6..8].copy_from_slice(&(len as u16).to_le_bytes());
    let name = &mut value[HEADER..HEADER + len];
    if std::str::from_utf8(name).is_err() || name.contains(&0) {
        name.iter_mut().for_each(|b| *b = b' ' + *b % 95);
    }
    value[HEADER + len..end].fill(0);
    end
}

/// Blocks, base blocks and capacity of a filter that has a size.
fn repair_shape(value: &mut [u8], layout: Layout, payload: usize, state: bool) {
    let most = if value[3] == 1 { MOST_BITS } else { MAX_STORED_BYTES - payload as u64 };
    let most = (most * 8 / layout.block_bits()).min(sizing::max_blocks(layout));
    let mut blocks = 1 + number(value, 8).wrapping_sub(1) % most;
    let mut capacity = number(value, 24) & i64::MAX as u64;
    if capacity == 0 && !(state && value[3] == 1) {
        capacity = 1;
    }
    if capacity == 0 {
        // A build that is to be sized: it will be folded, to the hashes of its rate.
        blocks = 1 << blocks.ilog2();
        let fpr = f64::from_bits(number(value, 32));
        value[4] = sizing::density(layout, fpr).expect("the rate was checked").num_hashes as u8;
    }
    let base = number(value, 16);
    put(value, 8, blocks);
    put(value, 16, if base > 0 && blocks.is_multiple_of(base) { base } else { blocks });
    put(value, 24, capacity);
}

/// Makes the bytes from `from` on this long. If they are too short they are repeated, so that few
/// are zero.
pub fn repeat(value: &mut Vec<u8>, from: usize, bytes: usize) {
    let given = value.len() - from;
    value.resize(from + bytes, 0);
    if given > 0 {
        for i in from + given..value.len() {
            value[i] = value[i - given].rotate_left((i & 1) as u32);
        }
    }
}

/// A dense payload: as many bytes as there must be, none set after the last bit nor without a kind.
fn repair_bits(value: &mut Vec<u8>, layout: Layout, payload: usize) {
    let bits = number(value, 8) * layout.block_bits();
    repeat(value, payload, bits.div_ceil(8) as usize);
    if value[2] == 0 {
        value[payload..].fill(0);
    }
    if !bits.is_multiple_of(8) {
        *value.last_mut().expect("a bit has a byte") &= (1 << (bits % 8)) - 1;
    }
}

/// A sparse payload: hashes in ascending order, no more than the bits would take, none without a
/// kind.
fn repair_hashes(value: &mut Vec<u8>, layout: Layout, payload: usize) {
    let blocks = number(value, 8);
    let most = if blocks == 0 {
        u64::MAX
    } else {
        (blocks * layout.block_bits()).div_ceil(8) / 8
    };
    let words = value[payload..].as_chunks::<8>().0;
    let hashes: BTreeSet<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let kept = if value[2] == 0 {
        0
    } else {
        hashes.len().min(usize::try_from(most).unwrap_or(usize::MAX))
    };
    value.truncate(payload);
    if blocks == 0 && kept == 0 {
        // A state of no size without elements has no kind.
        value[2] = 0;
        value[6..8].fill(0);
        value.truncate(HEADER);
    }
    value.extend(hashes.iter().take(kept).flat_map(|hash| hash.to_le_bytes()));
}

/// `bytes` as a filter that may be merged with `like`: of its layout, hashes and kind, and a
/// multiple or a part of its size.
pub fn repair_like(bytes: &[u8], like: &[u8], ratio: u8) -> Vec<u8> {
    let mut value = bytes.to_vec();
    let name = usize::from(u16::from_le_bytes([like[6], like[7]])).next_multiple_of(8);
    value.resize(value.len().max(HEADER + name), 0);
    // Byte 3, whether it is sparse, stays its own.
    value[1] = like[1];
    value[4] = like[4];
    // Now and then it has no element yet.
    value[2] = if ratio & 0x80 == 0 { like[2] } else { 0 };
    if value[2] == 11 {
        value[6..8].copy_from_slice(&like[6..8]);
        value[HEADER..HEADER + name].copy_from_slice(&like[HEADER..HEADER + name]);
    }
    let (blocks, base) = (number(like, 8), number(like, 16).max(1));
    let blocks = match ratio & 7 {
        0..3 => blocks,
        3 => blocks.saturating_mul(2),
        4 => blocks.saturating_mul(3),
        5 => base,
        6 => {
            if blocks.is_multiple_of(2) {
                blocks / 2
            } else {
                blocks.saturating_mul(8)
            }
        }
        _ => number(&value, 8),
    };
    put(&mut value, 8, blocks);
    repair(&value, false)
}

/// Changes as little as it can to make `bytes` a counting filter of few blocks: docs/format.md,
/// section 11. With `like`, one that may be added to that filter, unless `ratio` says otherwise.
pub fn repair_counting(bytes: &[u8], like: Option<(&[u8], u8)>) -> Vec<u8> {
    let mut value = bytes.to_vec();
    value.resize(value.len().max(HEADER), 0);
    if let Some((like, ratio)) = like {
        let name = usize::from(u16::from_le_bytes([like[6], like[7]])).next_multiple_of(8);
        value.resize(value.len().max(HEADER + name), 0);
        let fields = [(2, 1), (4, 1), (6, 2), (8, 8), (HEADER, name)];
        for (i, (at, length)) in fields.into_iter().enumerate() {
            // Each of kind, hashes, name and blocks is another one now and then.
            if ratio < 128 || ratio >> i & 1 == 0 {
                value[at..at + length].copy_from_slice(&like[at..at + length]);
            }
        }
    }
    value[1] = Layout::Blocked as u8;
    repair_small_fields(&mut value);
    value[3] = 2;
    let blocks = number(&value, 8) % (MOST_COUNTER_BLOCKS + 1);
    put(&mut value, 8, blocks);
    put(&mut value, 16, blocks);
    let capacity = (number(&value, 24) & i64::MAX as u64).max(1);
    put(&mut value, 24, capacity);
    let payload = repair_name(&mut value);
    repeat(&mut value, payload, blocks as usize * 256);
    if value[2] == 0 {
        value[payload..].fill(0);
    } else if value[payload..].iter().all(|&byte| byte == 0) {
        // A filter without elements has no kind, and so no name.
        value[2] = 0;
        value[6..8].fill(0);
        value.drain(HEADER..payload);
    }
    if blocks == 0 {
        value[4] = 0;
        put(&mut value, 24, 0);
    }
    value
}
