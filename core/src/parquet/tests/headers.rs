//! Headers: in any order, with unknown fields, damaged, hostile.

use super::*;
use crate::parquet::thrift::MAX_DEPTH;
use proptest::prelude::*;

/// A Thrift value of some type, written: the code of its type and its bytes.
fn thrift_value() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let leaf = prop_oneof![
        Just((1, vec![])),
        Just((2, vec![])),
        any::<u8>().prop_map(|byte| (3, vec![byte])),
        (4u8..=6, any::<u64>()).prop_map(|(code, number)| (code, varint(number))),
        any::<[u8; 8]>().prop_map(|bytes| (7, bytes.to_vec())),
        proptest::collection::vec(any::<u8>(), 0..200)
            .prop_map(|bytes| (8, [varint(bytes.len() as u64), bytes].concat())),
        any::<[u8; 16]>().prop_map(|bytes| (13, bytes.to_vec())),
    ];
    leaf.prop_recursive(5, 60, 20, |inner| {
        prop_oneof![
            (9u8..=10, inner.clone(), 0usize..20)
                .prop_map(|(code, item, count)| (code, list(&item, count))),
            (inner.clone(), inner.clone(), 0usize..5)
                .prop_map(|(key, value, count)| (11, map(&key, &value, count))),
            proptest::collection::vec((1i16..300, inner), 0..6)
                .prop_map(|fields| (12, structure(&fields))),
        ]
    })
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A value outside a field: there a boolean has a byte of its own.
fn item((code, bytes): &(u8, Vec<u8>)) -> Vec<u8> {
    if *code <= 2 { vec![*code] } else { bytes.clone() }
}

fn list(value: &(u8, Vec<u8>), count: usize) -> Vec<u8> {
    let start = if count < 15 {
        vec![(count as u8) << 4 | value.0]
    } else {
        [vec![0xF0 | value.0], varint(count as u64)].concat()
    };
    [start, item(value).repeat(count)].concat()
}

fn map(key: &(u8, Vec<u8>), value: &(u8, Vec<u8>), count: usize) -> Vec<u8> {
    let types = if count == 0 { vec![] } else { vec![key.0 << 4 | value.0] };
    [
        varint(count as u64),
        types,
        [item(key), item(value)].concat().repeat(count),
    ]
    .concat()
}

/// Fields with their numbers, in whatever order: a number that is not one to fifteen more than the
/// last is written in full.
fn structure(fields: &[(i16, (u8, Vec<u8>))]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for (id, (code, value)) in fields {
        match id - last {
            delta @ 1..=15 => bytes.push((delta as u8) << 4 | code),
            _ => {
                bytes.push(*code);
                bytes.extend(varint((*id << 1 ^ *id >> 15) as u16 as u64));
            }
        }
        bytes.extend(value);
        last = *id;
    }
    bytes.push(0);
    bytes
}

proptest! {
    #[test]
    fn fields_in_any_order_and_unknown_ones_are_read(
        order in Just(vec![1i16, 2, 3, 4]).prop_shuffle(),
        unknown in proptest::collection::vec((0usize..=4, 5i16..200, thrift_value()), 0..6),
        inside in thrift_value(),
        bits in proptest::collection::vec(any::<[u8; 32]>(), 1..5),
    ) {
        let bits = bits.concat();
        let mut fields: Vec<(i16, (u8, Vec<u8>))> = order.into_iter().map(|id| {
            let nothing = structure(&[(1, (12, structure(&[])))]);
            let something = structure(&[(1, (12, structure(&[(7, inside.clone())])))]);
            match id {
                1 => (id, (5, varint(2 * bits.len() as u64))),
                2 => (id, (12, something)),
                _ => (id, (12, nothing)),
            }
        }).collect();
        for (place, id, value) in unknown {
            fields.insert(place, (id, value));
        }
        let file = [structure(&fields), bits.clone()].concat();
        prop_assert_eq!(decode(&file), Ok(&bits[..]));
    }

    #[test]
    fn random_bytes_are_a_filter_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        start in 0usize..=15,
    ) {
        let start = start.min(bytes.len());
        bytes[..start].copy_from_slice(&HEADER_OF_A_BLOCK[..start]);
        if let Ok(bits) = decode(&bytes) {
            prop_assert!(!bits.is_empty() && bits.len() % 32 == 0);
            let value = imported(&bytes, Tag::ParquetDouble);
            prop_assert!(View::parse(&value).is_ok());
        }
    }

    #[test]
    fn damaged_filters_are_a_filter_or_refused(place in 0usize..47, byte in any::<u8>(), cut in 0usize..48) {
        let mut bytes = in_a_file(&naive(1, &integers(0..3)));
        bytes[place] = byte;
        let whole = decode(&bytes).is_ok();
        prop_assert!(place < 15 || whole);
        bytes.truncate(cut);
        prop_assert!(cut == 47 || decode(&bytes).is_err() || place < 15);
    }
}

#[test]
fn whatever_is_cut_off_or_too_long_is_refused() {
    let file = in_a_file(&naive(3, &integers(0..50)));
    for length in 0..file.len() {
        assert!(decode(&file[..length]).is_err(), "{length} bytes");
    }
    assert!(refused(&[&file[..], &[0]].concat()).contains("96 bytes of bits follow, but 97 do"));
    assert!(refused(&[]).contains("cut off after 0 bytes"));
}

#[test]
fn each_field_is_needed_and_has_its_type() {
    let union = |member: i16| (12, structure(&[(member, (12, vec![0]))]));
    let good = [
        (1, (5, varint(64))),
        (2, union(1)),
        (3, union(1)),
        (4, union(1)),
    ];
    let file = |fields: &[(i16, (u8, Vec<u8>))]| [structure(fields), vec![0; 32]].concat();
    assert!(decode(&file(&good)).is_ok());
    for (i, name) in ["numBytes", "algorithm", "hash", "compression"]
        .into_iter()
        .enumerate()
    {
        let mut fields = good.to_vec();
        fields.remove(i);
        assert!(refused(&file(&fields)).contains(&format!("{name} is missing")));
        fields.insert(i, (i as i16 + 1, (8, varint(0))));
        assert!(refused(&file(&fields)).contains(&format!("{name} has type 8")));
        if i > 0 {
            fields[i].1 = union(2);
            assert!(refused(&file(&fields)).contains(&format!("{name} 2 is unknown; only")));
            fields[i].1 = (12, structure(&[]));
            assert!(refused(&file(&fields)).contains(&format!("{name} has no value")));
            fields[i].1 = (12, structure(&[(1, (12, vec![0])), (2, (12, vec![0]))]));
            assert!(refused(&file(&fields)).contains(&format!("{name} has several values")));
        }
    }
    // Thrift's readers take the last of several.
    assert!(decode(&file(&[&[(1, (5, varint(4)))], &good[..]].concat())).is_ok());
    for bits in [0i64, -32, 1, 31, 33, 1 << 31, i64::MIN] {
        let mut fields = good.to_vec();
        fields[0].1.1 = varint((bits << 1 ^ bits >> 63) as u64);
        let detail = refused(&file(&fields));
        assert!(
            detail.contains("are no blocks of 32") || detail.contains("is no 32-bit number"),
            "{detail}"
        );
    }
}

#[test]
fn hostile_headers_are_refused_in_little_time_and_memory() {
    // A list in a list in a list …
    for (wire, depth, deep) in [
        (0x19u8, MAX_DEPTH + 1, true),
        (0x19, MAX_DEPTH - 1, false),
        (0x1C, 100_000, true),
    ] {
        let bytes = [vec![0xF9], vec![wire; depth as usize], vec![0; 100]].concat();
        assert_eq!(refused(&bytes).contains("deep"), deep, "{wire:x} {depth}");
    }
    // Lists, maps and bytes that say they are long.
    for start in [[0xF9, 0xF3], [0xF9, 0xFC], [0xFB, 0xFF], [0xF8, 0xFF]] {
        let bytes = [&start[..], &[0xFF; 4], &[0x7F], &[0x33; 50]].concat();
        assert!(refused(&bytes).contains("cut off"), "{start:x?}");
    }
    assert!(refused(&[&[0x15][..], &[0xFF; 11]].concat()).contains("more than 64 bits"));
    assert!(refused(&[0x03, 0xFF, 0xFF, 0xFF, 0x7F]).contains("is no number of a field"));
    assert!(refused(&[0x5E, 0]).contains("type 14 is unknown"));
    // A header without an end.
    assert!(refused(&[0xF3, 7].repeat(40_000)).contains("no number of a field"));
    let fields: Vec<u8> = (0..100_000).flat_map(|_| [0x03, 0x0A, 7]).collect();
    assert!(refused(&fields).contains("more than 65536 bytes"));
}
