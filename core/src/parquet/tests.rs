use super::*;
use crate::error::{Class, Problem, TooLarge};
use crate::filter::build::{Request, tests::built};
use crate::filter::merge;
use crate::layout::Shape;

mod headers;

/// One block of bits, the two bytes of its number, and what comes after that.
const HEADER_OF_A_BLOCK: [u8; 15] = [
    0x15, 0x40, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0x1C, 0x1C, 0, 0, 0,
];

/// The filter of Parquet's own words (BloomFilter.md), one bit after the other.
fn naive(blocks: u64, elements: &[Vec<u8>]) -> Vec<u8> {
    const SALT: [u64; 8] = [
        0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947,
        0x5c6bfb31,
    ];
    let mut bits = vec![0u8; blocks as usize * 32];
    for element in elements {
        let x = xxhash_rust::xxh64::xxh64(element, 0);
        let block = ((x >> 32) * blocks) >> 32;
        for (word, salt) in SALT.into_iter().enumerate() {
            let bit = (((x & 0xffff_ffff) * salt) & 0xffff_ffff) >> 27;
            let position = block as usize * 256 + word * 32 + bit as usize;
            bits[position / 8] |= 1 << (position % 8);
        }
    }
    bits
}

fn in_a_file(bits: &[u8]) -> List<u8> {
    let mut bytes = encode_header(bits.len() as i32);
    bytes.extend(bits);
    bytes
}

/// A filter of ours that holds these elements.
fn ours(tag: Tag, capacity: u64, elements: &[Vec<u8>]) -> Vec<u8> {
    let hashes: Vec<u64> = elements.iter().map(|bytes| hash(bytes)).collect();
    built(Request { capacity: Some(capacity), fpr: 0.01, layout: Layout::Parquet }, tag, &hashes)
}

fn integers(range: std::ops::Range<i32>) -> Vec<Vec<u8>> {
    range.map(|i| i.to_le_bytes().to_vec()).collect()
}

fn imported(bytes: &[u8], tag: Tag) -> Vec<u8> {
    import(bytes, tag, u64::MAX).expect("a filter")
}

fn exported(value: &[u8]) -> Vec<u8> {
    export(&View::parse(value).expect("a stored filter"), u64::MAX).expect("a filter to write")
}

fn refused(bytes: &[u8]) -> String {
    let error = decode(bytes).expect_err("no filter");
    let Problem::InvalidBinary(InvalidBinary::Parquet(what)) = error.problem() else {
        panic!("{error:?}")
    };
    what.clone()
}

#[test]
fn the_header_is_frozen() {
    assert_eq!(encode_header(32), HEADER_OF_A_BLOCK);
    assert_eq!(encode_header(1024)[..4], [0x15, 0x80, 0x10, 0x1C]);
    assert_eq!(encode_header(1 << 20)[..5], [0x15, 0x80, 0x80, 0x80, 0x01]);
    assert_eq!(encode_header(i32::MAX - 31)[..6], [0x15, 0xC0, 0xFF, 0xFF, 0xFF, 0x0F]);
    for bits in [32, 64, 96, 8192, 1 << 20] {
        let bytes = in_a_file(&vec![1; bits]);
        assert_eq!(decode(&bytes).unwrap(), vec![1; bits]);
        assert_eq!(bytes.len() - bits, encode_header(bits as i32).len());
    }
}

#[test]
fn ours_are_those_of_the_formats_own_words() {
    for (capacity, held) in [
        (1, 1),
        (10, 3),
        (100, 100),
        (100, 5),
        (5_000, 5_000),
        (100_000, 2_000),
    ] {
        let elements = integers(0..held);
        let value = ours(Tag::ParquetInt32, capacity, &elements);
        let blocks = View::parse(&value).unwrap().header.blocks;
        assert_eq!(exported(&value), in_a_file(&naive(blocks, &elements)));
    }
}

#[test]
fn what_was_imported_is_exported_as_it_was() {
    for blocks in [1, 2, 3, 7, 64, 100, 4096] {
        for held in [0, 1, 20, 3_000] {
            let file = in_a_file(&naive(blocks, &integers(0..held)));
            for tag in [
                Tag::ParquetInt32,
                Tag::ParquetByteArray,
                Tag::ParquetFixed16,
                Tag::ParquetDate,
            ] {
                let value = imported(&file, tag);
                let view = View::parse(&value).expect("the parser takes it");
                assert_eq!((view.header.blocks, view.header.base_blocks), (blocks, blocks));
                assert_eq!(view.header.kind, Kind::unnamed(tag));
                assert_eq!(exported(&value), file);
            }
            let value = imported(&file, Tag::ParquetInt32);
            let view = View::parse(&value).unwrap();
            assert!(integers(0..held).iter().all(|element| contains(&view, hash(element))));
        }
    }
}

#[test]
fn capacity_is_that_of_the_size_and_what_is_in_it() {
    for blocks in (0..=15).map(|e| 1u64 << e).chain([3, 5, 100, 1000]) {
        let empty = imported(&in_a_file(&naive(blocks, &[])), Tag::ParquetInt32);
        let Header { layout, num_hashes, blocks, capacity, fpr, .. } =
            View::parse(&empty).unwrap().header;
        let size = sizing::FilterSize {
            layout,
            num_hashes,
            blocks,
            capacity: capacity.elements().unwrap(),
            fpr,
        };
        assert_eq!(size.fpr, 0.01);
        let rate = |n: u64| {
            crate::sizing::rate::expected(
                Shape { layout: Layout::Parquet, num_hashes: 8, blocks },
                n as f64,
            )
        };
        let slack = if blocks < 64 { 1 } else { size.capacity / 50 };
        assert!(rate(size.capacity) <= 0.01 && rate(size.capacity + slack) > 0.01, "{size:?}");
        // Ours of that capacity has the same size, where the size is one that ours have.
        if blocks.is_power_of_two() || blocks <= 64 {
            assert_eq!(
                sizing::size_for_capacity(Layout::Parquet, size.capacity, size.fpr).unwrap(),
                size
            );
        }
        for factor in [0.5, 1.0, 2.0, 5.0, 1000.0] {
            let held = ((size.capacity as f64 * factor) as i32).min(400_000);
            let value = imported(&in_a_file(&naive(blocks, &integers(0..held))), Tag::ParquetInt32);
            let view = View::parse(&value).unwrap();
            let now = estimate::current_fpr(&view);
            assert_eq!(view.header.fpr, now.clamp(0.01, 0.5));
            assert!(
                now > 0.6 || crate::filter::overfull::overfull(&view).is_none(),
                "{blocks} blocks, {held} held"
            );
        }
    }
}

#[test]
fn they_merge_with_ours() {
    let theirs = imported(&in_a_file(&naive(256, &integers(0..2_000))), Tag::ParquetInt32);
    let theirs = View::parse(&theirs).unwrap();
    let own = theirs.header.capacity.elements().unwrap();
    for capacity in [own, own * 4] {
        let own = ours(Tag::ParquetInt32, capacity, &integers(2_000..6_000));
        let own = View::parse(&own).unwrap();
        let union: Vec<u8> = merge::union(&theirs, &own, u64::MAX).expect("sizes that fit");
        let union = View::parse(&union).unwrap();
        assert!(
            integers(0..6_000)
                .iter()
                .all(|element| contains(&union, hash(element)))
        );
    }
}

#[test]
fn a_sparse_filter_is_written_dense_and_one_of_no_size_empty() {
    let value = ours(Tag::ParquetInt64, 1_000, &integers(0..5));
    assert!(matches!(View::parse(&value).unwrap().body, Body::Sparse(_)));
    let error = export::<Vec<u8>>(&View::parse(&value).unwrap(), 500).expect_err("too large");
    assert_eq!(error.class(), Class::TooLarge);
    for layout in Layout::ALL {
        let header = Header::without_size(layout, 0.01);
        let empty: Vec<u8> = header.sparse(0);
        assert_eq!(exported(&empty), in_a_file(&[0; 32]));
    }
}

#[test]
fn other_layouts_and_kinds_are_refused() {
    for (layout, tag) in [
        (Layout::Blocked, Tag::Integer),
        (Layout::Classic, Tag::Text),
        (Layout::Parquet, Tag::Numeric),
        (Layout::Parquet, Tag::Boolean),
    ] {
        let value = built(Request { capacity: Some(10), fpr: 0.1, layout }, tag, &[5, 6]);
        let error =
            export::<Vec<u8>>(&View::parse(&value).unwrap(), u64::MAX).expect_err("no such filter");
        assert_eq!(error.class(), Class::InvalidParameter);
    }
    for tag in [
        Tag::None,
        Tag::Integer,
        Tag::Numeric,
        Tag::Boolean,
        Tag::Other,
    ] {
        let error =
            import::<Vec<u8>>(&in_a_file(&[0; 32]), tag, u64::MAX).expect_err("no such kind");
        assert_eq!(error.class(), Class::InvalidParameter);
    }
}

/// Floats of both widths as their writers hash them, and as we do.
fn float_bytes(tag: Tag, value: f64) -> (Vec<u8>, Vec<u8>) {
    match tag {
        Tag::ParquetFloat => {
            ((value as f32).to_le_bytes().to_vec(), scalar::float32(value as f32).to_vec())
        }
        _ => (value.to_le_bytes().to_vec(), scalar::float(value).to_vec()),
    }
}

#[test]
fn equal_floats_are_found_whoever_wrote_and_whoever_reads() {
    let odd_nan = f64::from_bits(0xFFF8_0000_1234_0000);
    let values = [
        0.0,
        -0.0,
        1.5,
        -1e30,
        f64::INFINITY,
        f64::NAN,
        -f64::NAN,
        odd_nan,
    ];
    for tag in [Tag::ParquetFloat, Tag::ParquetDouble] {
        for (i, &held) in values.iter().enumerate() {
            let (raw, canonical) = float_bytes(tag, held);
            // Theirs, of many blocks so that nothing else is found by chance, probed as we probe.
            let file = in_a_file(&naive(4096, std::slice::from_ref(&raw)));
            let value = imported(&file, tag);
            let view = View::parse(&value).unwrap();
            for &probed in &values {
                let found = contains(&view, hash(&float_bytes(tag, probed).1));
                assert_eq!(
                    found,
                    probed == held || probed.is_nan(),
                    "{tag:?} {held} probed for {probed}"
                );
            }
            // Nothing more is added to what was completed once.
            let once = exported(&value);
            assert!(exported(&imported(&once, tag)) == once);
            // Ours, probed as they probe.
            let own = exported(&ours(tag, 100_000, &[canonical]));
            let bits = decode(&own).unwrap();
            for &probed in &values[..i.min(6) + 1] {
                let (raw, _) = float_bytes(tag, probed);
                let mask = naive((bits.len() / 32) as u64, &[raw]);
                let found = bits.iter().zip(&mask).all(|(bits, mask)| bits & mask == *mask);
                assert_eq!(
                    found,
                    probed == held || (probed.is_nan() && held.is_nan()),
                    "{tag:?} {held}, {probed}"
                );
            }
            let once = exported(&imported(&own, tag));
            assert!(exported(&imported(&once, tag)) == once);
        }
        // Nothing was added where nothing is.
        let empty = in_a_file(&[0; 64]);
        assert_eq!(exported(&imported(&empty, tag)), empty);
    }
}

/// A buffer that nobody may make.
struct None_;

impl Buffer for None_ {
    fn zeroed(_: usize) -> Self {
        panic!("memory was taken before the limit was checked")
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut []
    }
}

#[test]
fn limits_are_checked_before_memory_is_taken() {
    let file = in_a_file(&vec![0; 1 << 20]);
    let error = import::<None_>(&file, Tag::ParquetInt32, 1 << 20)
        .err()
        .expect("too large");
    assert_eq!(
        error,
        TooLarge::ParquetBytes { bytes: 1_048_620, limit: 1 << 20, payload: 1 << 20 }.into()
    );
    assert!(import::<Vec<u8>>(&file, Tag::ParquetInt32, 1_048_620).is_ok());
    let huge = ours(Tag::ParquetInt32, 100_000_000, &integers(0..3));
    assert!(export::<None_>(&View::parse(&huge).unwrap(), 1 << 20).is_err());
}

#[test]
fn the_hash_of_each_physical_type_is_frozen() {
    let bytes = |value: &[u8]| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (given, plain, expected) in [
        (42i32.to_le_bytes().to_vec(), "2a000000", 0xD756_D7B6_2FC5_0BF1),
        ((-1i32).to_le_bytes().to_vec(), "ffffffff", 0x7F78_E4BD_A3AD_DF93),
        (scalar::integer(42).to_vec(), "2a00000000000000", 0xB556_806F_B6D1_4353),
        (scalar::integer(-1).to_vec(), "ffffffffffffffff", 0x85D1_36AD_B773_C6C9),
        (scalar::float32(1.5).to_vec(), "0000c03f", 0x4F2D_8259_5C48_3A0D),
        (scalar::float32(-0.0).to_vec(), "00000000", 0x3AEF_A6FD_5CF2_DEB4),
        (scalar::float32(-f32::NAN).to_vec(), "0000c07f", 0xD651_66E4_6DF1_863E),
        (scalar::float(1.5).to_vec(), "000000000000f83f", 0x49F7_B96B_6B5C_CAF9),
        (scalar::float(-0.0).to_vec(), "0000000000000000", 0x34C9_6ACD_CADB_1BBB),
        (scalar::float(-f64::NAN).to_vec(), "000000000000f87f", 0xE9AD_B09F_EE12_2AAC),
        (b"".to_vec(), "", 0xEF46_DB37_51D8_E999),
        (b"abc".to_vec(), "616263", 0x44BC_2CF5_AD77_0999),
        (
            0x0011_2233_4455_6677_8899_AABB_CCDD_EEFFu128.to_be_bytes().to_vec(),
            "00112233445566778899aabbccddeeff",
            0x13C6_635F_7150_0F92,
        ),
        (scalar::date(0).to_vec(), "cd2a0000", 0x446B_CAD5_939A_0307),
        (scalar::timestamp(0).to_vec(), "00e0373b015d0300", 0x0541_B255_68DB_5DA7),
    ] {
        assert_eq!((bytes(&given), hash(&given)), (plain.to_owned(), expected));
    }
    // -0 and the other NaN, which only the way in and out knows.
    for (tag, zero, nan) in [
        (Tag::ParquetFloat, 0x822E_5121_1BF0_8373, 0x1686_3A5B_F2C5_1562),
        (Tag::ParquetDouble, 0x3F42_5EAC_F015_44E0, 0xF07C_4090_2EE6_7377),
    ] {
        let floats = FloatHashes::for_tag(tag).expect("a type of floats");
        assert_eq!((floats.negative_zero, floats.negative_nan), (zero, nan));
    }
}
