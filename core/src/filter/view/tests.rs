use super::*;
use crate::error::Class;
use crate::filter::build;
use crate::filter::header::HEADER_BYTES;
use crate::hash::hash;
use crate::kind::Kind;
use crate::kind::Tag;
use crate::layout::Layout;
use crate::sizing::FilterSize;
use proptest::prelude::*;

fn header(kind: Kind<'_>) -> Header<'_> {
    Header::with_size(crate::sizing::size_for_capacity(Layout::Blocked, 1000, 0.01).unwrap(), kind)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Frozen: a stored filter of version 1 has these bytes forever.
#[test]
fn stored_bytes_are_frozen() {
    let mut hashes = [hash(b"a"), hash(b"b")];
    hashes.sort_unstable();
    let size = FilterSize {
        layout: Layout::Blocked,
        num_hashes: 6,
        blocks: 39,
        capacity: 1000,
        fpr: 0.01,
    };
    let header = Header::with_size(size, Kind::unnamed(Tag::Text));
    let sparse: Vec<u8> = build::from_hashes(&header, &hashes, u64::MAX).unwrap();
    assert_eq!(
        hex(&sparse),
        concat!(
            "0101020006010000", // version 1, blocked, text, sparse, 6 hashes, hash 1, no name
            "2700000000000000", // 39 blocks
            "2700000000000000", // never merged with fewer
            "e803000000000000", // capacity 1000
            "7b14ae47e17a843f00000000", // rate 0.01, reserved
            "9b9ff31aa12a45785b6e8ca9f1c44ed2",
        )
    );
}

/// States that no aggregate writes, and that would lose elements when the build is sized.
#[test]
fn states_that_cannot_be_folded_are_refused() {
    let state = build::largest_header(
        &Header {
            kind: Kind::unnamed(Tag::Text),
            ..Header::without_size(Layout::Blocked, 0.01)
        },
        600,
    );
    let state = state.unwrap();
    let parse = |header: Header<'_>| {
        View::parse_partial(&header.dense::<Vec<u8>>()).map(|state| state.header.blocks)
    };
    assert_eq!(parse(state), Ok(state.blocks));
    let three = Header { blocks: state.blocks * 3, ..state };
    for wrong in [
        three,
        Header { num_hashes: state.num_hashes + 1, ..state },
        Header { fpr: 1e-300, ..state },
    ] {
        assert_eq!(parse(wrong).unwrap_err().class(), Class::InvalidBinary, "{wrong:?}");
    }
    let nothing: Vec<u8> = Header {
        kind: Kind::unnamed(Tag::Text),
        ..Header::without_size(Layout::Blocked, 0.01)
    }
    .sparse(0);
    assert_eq!(View::parse_partial(&nothing).unwrap_err().class(), Class::InvalidBinary);
}

#[test]
fn a_named_kind_is_padded() {
    let value: Vec<u8> = header(Kind::other("pg_catalog.inet")).sparse(0);
    assert_eq!(value.len(), HEADER_BYTES + 16);
    assert_eq!(&value[44..], b"pg_catalog.inet\0");
    assert_eq!(View::parse(&value).unwrap().header.kind.name, "pg_catalog.inet");
}

/// Values of every layout, representation and sort of kind.
static SAMPLES: std::sync::LazyLock<Vec<Vec<u8>>> = std::sync::LazyLock::new(|| {
    let mut values: Vec<Vec<u8>> = vec![Header::without_size(Layout::Blocked, 0.01).sparse(0)];
    for layout in Layout::ALL {
        for (elements, kind) in [
            (0, Kind::NONE),
            (5, Kind::unnamed(Tag::Numeric)),
            (200, Kind::other("public.mood[]")),
        ] {
            let header = Header::with_size(
                crate::sizing::size_for_capacity(layout, 100, 0.01).unwrap(),
                kind,
            );
            let mut hashes: Vec<u64> = (0..elements).map(|i: u64| hash(&i.to_le_bytes())).collect();
            hashes.sort_unstable();
            values.push(build::from_hashes(&header, &hashes, u64::MAX).unwrap());
        }
    }
    values
});

#[test]
fn what_is_written_is_read_and_every_cut_and_every_longer_value_is_refused() {
    for value in SAMPLES.iter() {
        let view = View::parse(value).unwrap();
        assert_eq!(&view.to_buffer::<Vec<u8>>(), value);
        assert_eq!(view.stored_bytes(), value.len());
        for end in 0..value.len() {
            // A sparse filter cut between two hashes is one of fewer elements.
            let whole_hashes = matches!(view.body, Body::Sparse(_))
                && end >= view.header.prefix_bytes()
                && (value.len() - end).is_multiple_of(8);
            assert_eq!(
                View::parse(&value[..end]).is_ok(),
                whole_hashes,
                "{end} of {}",
                value.len()
            );
        }
        let mut longer = value.clone();
        longer.push(0);
        assert_eq!(View::parse(&longer).unwrap_err().class(), Class::InvalidBinary);
    }
}

/// Asserts that a value with other bytes at an offset is refused, for each of these changes, and
/// what the error says.
pub(crate) fn assert_refused(
    value: &[u8],
    parse: fn(&[u8]) -> Result<()>,
    changes: &[(usize, &[u8], &str)],
) {
    for &(offset, bytes, what) in changes {
        let mut damaged = value.to_vec();
        damaged[offset..offset + bytes.len()].copy_from_slice(bytes);
        let error = parse(&damaged).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(what), "{offset}: {text}");
        assert_eq!(error.class(), Class::InvalidBinary);
    }
}

#[test]
fn each_field_is_checked() {
    let hashes = [1u64, 2, 3];
    let sparse: Vec<u8> =
        build::from_hashes(&header(Kind::unnamed(Tag::Text)), &hashes, u64::MAX).unwrap();
    let changes = [
        (0, &[2u8][..], "version"),
        (1, &[0], "layout"),
        (1, &[9], "layout"),
        (2, &[22], "key kind"),
        (2, &[32], "no elements of kind"),
        (2, &[0], "no key kind"),
        (3, &[2], "not a bloom filter"),
        (3, &[1], "bytes of bits"),
        (4, &[0], "hashes"),
        (4, &[65], "hashes"),
        (5, &[0], "hash function"),
        (6, &[1, 0], "name"),
        (8, &[0; 8], "no blocks"),
        (8, &[0xFF; 8], "too many"),
        (16, &[0; 8], "multiple"),
        (16, &[38], "multiple"),
        (24, &[0; 8], "capacity"),
        (24, &[0xFF; 8], "capacity"),
        (32, &[0; 8], "false positive rate"),
        (32, &[0, 0, 0, 0, 0, 0, 0xF8, 0x7F], "false positive rate"),
        (40, &[1], "reserved"),
        (44, &[9], "ascending"),
    ];
    assert_refused(&sparse, |bytes| View::parse(bytes).map(drop), &changes);
}

#[test]
fn bits_after_the_last_are_refused() {
    let h = Header {
        blocks: 100,
        base_blocks: 100,
        layout: Layout::Classic,
        ..header(Kind::unnamed(Tag::Text))
    };
    let mut value: Vec<u8> = h.dense();
    *value.last_mut().unwrap() = 0x0F;
    assert!(View::parse(&value).is_ok());
    *value.last_mut().unwrap() = 0x10;
    assert!(View::parse(&value).is_err());
}

#[test]
fn only_a_state_may_hold_hashes_without_a_size() {
    let h = Header {
        kind: Kind::unnamed(Tag::Text),
        ..Header::without_size(Layout::Blocked, 0.01)
    };
    let mut value: Vec<u8> = h.sparse(1);
    value[44] = 7;
    assert!(View::parse(&value).is_err());
    assert!(View::parse_partial(&value).is_ok());
    assert!(View::parse(&value[..44]).is_err(), "an empty filter of no size has no kind");
}

/// Some bytes of a value that are others, in the header alone or anywhere.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    changes: Vec<(prop::sample::Index, u8)>,
    header_only: bool,
}

impl Damage {
    /// The damaged value.
    pub(crate) fn of(&self, value: &[u8]) -> Vec<u8> {
        let mut value = value.to_vec();
        let end = if self.header_only { 60.min(value.len()) } else { value.len() };
        for (index, byte) in &self.changes {
            value[index.index(end)] = *byte;
        }
        value
    }
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    (changes, any::<bool>()).prop_map(|(changes, header_only)| Damage { changes, header_only })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Damaged values are refused or read as values that print and read the same.
    #[test]
    fn mutated_values_are_refused_or_canonical(
        which in 0usize..10,
        damage in damage(),
    ) {
        let value = damage.of(&SAMPLES[which]);
        if let Ok(view) = View::parse(&value) {
            prop_assert_eq!(view.to_buffer::<Vec<u8>>(), value.clone());
            prop_assert!(View::parse_partial(&value).is_ok());
        }
    }
}
