use super::*;
use crate::error::{Class, InvalidBinary, Problem};
use crate::filter::view::tests::{assert_refused, damage};
use crate::hash::hash;
use crate::kind::Tag;
use crate::sizing::FilterSize;
use proptest::prelude::*;

fn text(elements: &[&str]) -> Vec<u64> {
    elements.iter().map(|element| hash(element.as_bytes())).collect()
}

/// The header of a filter of one block.
fn one_block() -> Header<'static> {
    Header::with_size(
        FilterSize {
            layout: Layout::Blocked,
            num_hashes: 3,
            blocks: 1,
            capacity: 40,
            fpr: 0.1,
        },
        Kind::NONE,
    )
}

fn added(value: &[u8], kind: Kind<'_>, hashes: &[u64]) -> Vec<u8> {
    Counting::parse(value).unwrap().add(kind, hashes).unwrap()
}

/// Frozen: a stored counting filter of version 1 has these bytes forever.
#[test]
fn stored_bytes_are_frozen() {
    let value =
        added(&empty::<Vec<u8>>(&one_block()), Kind::unnamed(Tag::Text), &text(&["a", "b", "b"]));
    let (header, payload) = value.split_at(44);
    let hex: String = header.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(
        hex,
        concat!(
            "0101020203010000", // version 1, blocked, text, counters, 3 hashes, hash 1, no name
            "0100000000000000", // 1 block
            "0100000000000000", // always the same
            "2800000000000000", // capacity 40
            "9a9999999999b93f00000000", // rate 0.1, reserved
        )
    );
    // By hand from word(hash, 0), which docs/format.md has: 37E2CAD4E004F963 for "a",
    // 434D6D9806CD0FB6 for "b".
    let found: Vec<(usize, u8)> = (0..512)
        .map(|i| (i, payload[i / 2] >> (4 * (i % 2)) & 15))
        .filter(|c| c.1 > 0)
        .collect();
    assert_eq!(found, [(1, 1), (124, 1), (135, 2), (355, 1), (435, 2), (438, 2)]);
    // In bytes: counters 1, 124, 135, 355, 435 and 438. Odd ones are the high halves of bytes.
    let bytes: Vec<(usize, u8)> = payload
        .iter()
        .copied()
        .enumerate()
        .filter(|&(_, byte)| byte > 0)
        .collect();
    assert_eq!(
        bytes,
        [
            (0, 0x10),
            (62, 0x01),
            (67, 0x20),
            (177, 0x10),
            (217, 0x20),
            (219, 0x02)
        ]
    );
}

#[test]
fn the_two_types_refuse_each_other() {
    let counting = added(&empty::<Vec<u8>>(&one_block()), Kind::unnamed(Tag::Text), &text(&["a"]));
    let dense: Vec<u8> = Counting::parse(&counting).unwrap().to_bloom();
    let sparse: Vec<u8> = one_block().sparse(0);
    let error = View::parse(&counting).unwrap_err();
    assert_eq!(
        error,
        InvalidBinary::Counters { representation: Representation::Counters as u8 }.into()
    );
    for bloom in [dense, sparse] {
        assert!(View::parse(&bloom).is_ok());
        let error = Counting::parse(&bloom).unwrap_err();
        assert!(
            matches!(error.problem(), Problem::InvalidBinary(InvalidBinary::NoCounters { .. })),
            "{error:?}"
        );
    }
    assert!(crate::filter::slices::FilterStart::parse(&counting, counting.len()).is_err());
}

#[test]
fn a_filter_of_no_size_is_the_identity_and_takes_no_elements() {
    let nothing: Vec<u8> = empty(&unsized_header(0.01).unwrap());
    assert_eq!(nothing.len(), 44);
    let nothing = Counting::parse(&nothing).unwrap();
    let value = added(&empty::<Vec<u8>>(&one_block()), Kind::unnamed(Tag::Text), &text(&["a"]));
    let filter = Counting::parse(&value).unwrap();
    assert_eq!(sum::<Vec<u8>>(&nothing, &filter).unwrap(), value);
    assert_eq!(sum::<Vec<u8>>(&filter, &nothing).unwrap(), value);
    assert!(!nothing.contains(hash(b"a")) && nothing.remove::<Vec<u8>>(&[hash(b"a")]).is_none());
    assert_eq!(
        nothing
            .add::<Vec<u8>>(Kind::unnamed(Tag::Text), &[1])
            .unwrap_err()
            .class(),
        Class::InvalidParameter
    );
    assert_eq!(View::parse(&nothing.to_bloom::<Vec<u8>>()).unwrap().header, nothing.header);
    let info = nothing.info();
    assert_eq!(
        (info.num_counters, info.cardinality, info.copies, info.current_fpr),
        (0, 0.0, Some(0.0), 0.0)
    );
}

#[test]
fn slices_answer_as_the_whole_does() {
    let header = Header { blocks: 50, base_blocks: 50, ..one_block() };
    let hashes: Vec<u64> = (0..2_000).map(|i| crate::hash::word(5, i)).collect();
    for kind in [Kind::unnamed(Tag::Text), Kind::other("pg_catalog.inet")] {
        let value = added(&empty::<Vec<u8>>(&header), kind, &hashes[..1_000]);
        let start = parse_start(&value[..crate::filter::slices::START_BYTES], value.len()).unwrap();
        let filter = Counting::parse(&value).unwrap();
        for &hash in &hashes {
            let read = |from: usize, length: usize| Ok::<_, Error>(&value[from..from + length]);
            assert_eq!(contains_in_slices(&start, hash, read).unwrap(), filter.contains(hash));
            assert_eq!(count_in_slices(&start, hash, read).unwrap(), filter.count(hash));
        }
        assert!(contains_in_slices(&start, 1, |_, _| Ok::<_, Error>([0u8; 3])).is_err());
        assert!(
            parse_start(&value[..crate::filter::slices::START_BYTES], value.len() - 1).is_err()
        );
    }
}

/// The count of an element is at least the number of its copies, and exact where no other element
/// shares all of its counters. At 15 it ends.
#[test]
fn copies_are_counted() {
    let header = sized_header(1000, 0.01, u64::MAX).unwrap();
    let element = |i: u64| hash(&i.to_le_bytes());
    let copies = |i: u64| i % 20;
    let added_copies: Vec<u64> = (0..1000)
        .flat_map(|i| std::iter::repeat_n(element(i), copies(i) as usize))
        .collect();
    let value = added(&empty::<Vec<u8>>(&header), Kind::unnamed(Tag::Text), &added_copies);
    let filter = Counting::parse(&value).unwrap();
    let (mut exact, mut absent_counted) = (0, 0);
    for i in 0..1000 {
        let count = u64::from(filter.count(element(i)));
        assert!(count >= copies(i).min(15), "{count} of {}", copies(i));
        exact += u64::from(count == copies(i).min(15));
        absent_counted += u64::from(filter.count(element(i + 1000)) > 0);
        assert_eq!(filter.count(element(i + 1000)) > 0, filter.contains(element(i + 1000)));
    }
    assert!(exact > 980 && absent_counted < 20, "{exact} exact, {absent_counted} of 1000 absent");
    // Removed again, up to 14 copies are gone.
    let removed: Vec<u8> = filter.remove(&[element(3); 2]).unwrap();
    let count = Counting::parse(&removed).unwrap().count(element(3));
    assert_eq!(count, filter.count(element(3)) - 2);
    let nothing: Vec<u8> = empty(&header);
    assert_eq!(Counting::parse(&nothing).unwrap().count(element(1)), 0);
    let no_size: Vec<u8> = empty(&unsized_header(0.01).unwrap());
    assert_eq!(Counting::parse(&no_size).unwrap().count(element(1)), 0);
    let read = |_, _| Ok::<[u8; 0], Error>([]);
    assert_eq!(count_in_slices(&unsized_header(0.01).unwrap(), 1, read).unwrap(), 0);
    assert!(count_in_slices(&header, 1, read).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    for capacity in [None, Some(0), Some(-1), Some(i64::MIN)] {
        assert_eq!(check_capacity(capacity).unwrap_err().class(), Class::InvalidParameter);
    }
    assert_eq!(sized_header(1000, 2.0, u64::MAX).unwrap_err().class(), Class::InvalidParameter);
    // Four times the bits: 20 blocks of 256 bytes.
    let header = sized_header(1000, 0.01, 44 + 20 * 256).unwrap();
    assert_eq!((stored_bytes(&header), header.blocks), (44 + 20 * 256, 20));
    assert_eq!(sized_header(1000, 0.01, 43 + 20 * 256).unwrap_err().class(), Class::TooLarge);
    assert_eq!(
        sized_header(1 << 40, 0.01, crate::sizing::MAX_STORED_BYTES)
            .unwrap_err()
            .class(),
        Class::TooLarge
    );
    let (small, large) = (one_block(), Header { blocks: 2, base_blocks: 2, ..one_block() });
    let error = summed_header(&small, &large).unwrap_err();
    assert!(
        matches!(
            error.problem(),
            Problem::InvalidParameter(InvalidParameter::Mismatch { why: Mismatch::Counters, .. })
        ),
        "{error:?}"
    );
    assert_eq!(error.class(), Class::InvalidParameter);
    let (text, integer) = (Kind::unnamed(Tag::Text), Kind::unnamed(Tag::Integer));
    let kinds = summed_header(&Header { kind: text, ..small }, &Header { kind: integer, ..small });
    assert_eq!(kinds.unwrap_err().class(), Class::KindMismatch);
    let value = added(&empty::<Vec<u8>>(&small), text, &[1]);
    let wrong_kind = Counting::parse(&value).unwrap().add::<Vec<u8>>(integer, &[1]);
    assert_eq!(wrong_kind.unwrap_err().class(), Class::KindMismatch);
}

#[test]
fn each_field_is_checked() {
    let value = added(&empty::<Vec<u8>>(&one_block()), Kind::unnamed(Tag::Text), &text(&["a"]));
    let changes = [
        (0, &[2u8][..], "version"),
        (1, &[2], "layout"),
        (1, &[3], "no elements of kind"),
        (2, &[0], "without a key kind"),
        (2, &[22], "key kind"),
        (3, &[0], "not a counting bloom filter"),
        (3, &[1], "not a counting bloom filter"),
        (3, &[3], "representation"),
        (4, &[0], "hashes"),
        (5, &[0], "hash function"),
        (8, &[2], "base blocks"),
        (8, &[0; 8], "no blocks"),
        (16, &[0; 8], "multiple"),
        (24, &[0; 8], "capacity"),
        (32, &[0; 8], "false positive rate"),
        (40, &[1], "reserved"),
        (44, &[0; 256], "all counters are 0"),
    ];
    assert_refused(&value, |bytes| Counting::parse(bytes).map(drop), &changes);
    for other in [
        &value[..43],
        &value[..44],
        &value[..value.len() - 1],
        &[&value[..], &[0]].concat(),
    ] {
        assert_eq!(Counting::parse(other).unwrap_err().class(), Class::InvalidBinary);
    }
    let two_sizes = Header { blocks: 2, base_blocks: 1, ..one_block() };
    assert!(Counting::parse(&zeroed::<Vec<u8>>(&two_sizes)).is_err());
}

/// Values of every sort.
static SAMPLES: std::sync::LazyLock<Vec<Vec<u8>>> = std::sync::LazyLock::new(|| {
    let sized = empty::<Vec<u8>>(&one_block());
    vec![
        empty(&unsized_header(0.01).unwrap()),
        added(&sized, Kind::unnamed(Tag::Text), &text(&["a", "a", "b"])),
        added(&sized, Kind::other("pg_catalog.inet"), &text(&["c"])),
        sized,
    ]
});

#[test]
fn what_is_written_is_read() {
    for value in SAMPLES.iter() {
        let filter = Counting::parse(value).unwrap();
        assert_eq!(&filter.copy::<Vec<u8>>(&filter.header), value);
        assert_eq!(stored_bytes(&filter.header), value.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Damaged values are refused, or read as values that print and read the same and do no harm.
    #[test]
    fn mutated_values_are_refused_or_canonical(
        which in 0usize..4,
        damage in damage(),
    ) {
        let value = damage.of(&SAMPLES[which]);
        if let Ok(filter) = Counting::parse(&value) {
            prop_assert_eq!(&filter.copy::<Vec<u8>>(&filter.header), &value);
            prop_assert!(View::parse(&filter.to_bloom::<Vec<u8>>()).is_ok());
            let twice: Vec<u8> = sum(&filter, &filter).unwrap();
            prop_assert!(Counting::parse(&twice).is_ok());
            let removed: Option<Vec<u8>> = filter.remove(&text(&["a", "b", "c"]));
            prop_assert!(removed.is_none_or(|value| Counting::parse(&value).is_ok()));
            prop_assert!(filter.info().cardinality >= 0.0);
        }
    }
}
