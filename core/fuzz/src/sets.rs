//! Rows of sets by any history, against a map; and bytes that should be a row.

use super::forge::{Input, damaged};
use pg_bloom_core::hash;
use pg_bloom_core::set::memory::MemorySet;
use pg_bloom_core::set::{Row, SetForm, tree};
use std::collections::BTreeMap;

/// An input is a form, a bucket and bytes of a row, then a history.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (bits, shape) = (16 + u32::from(input.byte()) % 45, input.byte());
    let form = SetForm { bits, forgets: shape & 1 == 1 };
    let bucket = input.number();
    let row = input.part();
    parsed(form, bucket as i64, row);
    parsed(form, bucket as i64, &sealed(form, bucket, row));
    live(form, shape, input);
}

/// The bytes with the version, the form and the checksum that a row must have.
fn sealed(form: SetForm, bucket: u64, row: &[u8]) -> Vec<u8> {
    let mut row = row.to_vec();
    row.resize(row.len().next_multiple_of(8).max(8), 0);
    row[0] = 1;
    row[1] = form.bits as u8 | if form.forgets { 0x80 } else { 0 };
    let end = row.len() - 4;
    let sum = hash::hash_with_seed(&row[..end], bucket) as u32;
    row[end..].copy_from_slice(&sum.to_le_bytes());
    row
}

/// What is accepted is what would be written, and can be used.
fn parsed(form: SetForm, bucket: i64, bytes: &[u8]) {
    let Ok(row) = Row::parse(form, bucket, bytes) else {
        return;
    };
    assert_eq!(row.write::<Vec<u8>>(form), bytes);
    assert!(row.entries.windows(2).all(|pair| pair[0].hash < pair[1].hash));
    for entry in &row.entries {
        assert!(tree::covers(row.bucket, entry.hash << (64 - form.bits)));
        assert_eq!(row.time_slice_of(entry.hash), Some(entry.time_slice));
    }
    let (first, count) = (row.first_time_slice, row.entries.len());
    let mut later = row.clone();
    assert_eq!(later.forget(form, first.saturating_add(100)), if form.forgets { count } else { 0 });
    let parts = row.split(form, 64);
    assert_eq!(parts.iter().map(|part| part.entries.len()).sum::<usize>(), count);
    for part in parts {
        assert_eq!(Row::parse(form, part.bucket as i64, &part.write::<Vec<u8>>(form)), Ok(part));
    }
}

fn live(form: SetForm, shape: u8, mut input: Input<'_>) {
    let mut set = MemorySet::new(form, 32 + 8 * usize::from(shape >> 4), u32::from(shape >> 1 & 3));
    let mut model: BTreeMap<u64, i64> = BTreeMap::new();
    let element = |number: u16| hash::hash(&number.to_le_bytes()) >> (shape & 32);
    let mut now = i64::from(input.byte()) - 128;
    while !input.0.is_empty() {
        match input.byte() % 5 {
            0 | 1 => {
                let hashes: Vec<u64> = (0..input.byte()).map(|_| element(input.half())).collect();
                set.put(&hashes, now);
                model.extend(hashes.iter().map(|&hash| (form.prefix(hash), now)));
            }
            2 => {
                let hash = element(input.half());
                set.remove(hash);
                model.remove(&form.prefix(hash));
            }
            3 => now += i64::from(input.byte()) - 100,
            _ => {
                let row = set.leaf(element(input.half()));
                let bytes = damaged(&row.write::<Vec<u8>>(form), input.0, 16);
                parsed(form, row.bucket as i64, &bytes);
            }
        }
        if form.forgets {
            model.retain(|_, slice| *slice >= now - 8);
            model.values_mut().for_each(|slice| *slice = (*slice).min(now + 7));
        }
        // Everything that a set may have dropped is dropped: a clock that goes back brings nothing
        // back.
        set.expire(now);
        assert_eq!(tree::check_leaves(&mut set.rows.keys().copied().collect::<Vec<u64>>()), Ok(()));
        let held = set
            .rows
            .iter()
            .map(|(&bucket, bytes)| Row::parse(form, bucket as i64, bytes).expect("a row"));
        let held: BTreeMap<u64, i64> = held
            .flat_map(|row| row.entries)
            .map(|entry| (entry.hash, entry.time_slice))
            .collect();
        assert!(held.keys().eq(model.keys()));
        assert!(!form.forgets || held == model);
    }
}
