//! Filters of Parquet files, in and out: what is read is what docs/format.md says, and no element
//! is lost.

use super::forge::{HEADER, Input, damaged, repair, repeat};
use super::{oracle, thrift};
use pg_bloom_core::filter::{build, merge};
use pg_bloom_core::kind::Tag;
use pg_bloom_core::parquet::{decode, export, import, without_rest};
use pg_bloom_core::{Body, Class, Error, Kind, Layout, View, sizing};

/// The largest filter that is made: an oracle can have its bits.
const LIMIT: u64 = HEADER as u64 + oracle::MOST_BITS / 8;
/// Bytes of a block.
const BLOCK: usize = 32;
/// The kinds that a file's elements can have, those of floats first.
const TAGS: [Tag; 9] = [
    Tag::ParquetFloat,
    Tag::ParquetDouble,
    Tag::ParquetInt32,
    Tag::ParquetInt64,
    Tag::ParquetByteArray,
    Tag::ParquetFixed16,
    Tag::ParquetDate,
    Tag::ParquetTimestamp,
    Tag::ParquetTimestamptz,
];

/// An input is a file's filter, as it is; it says how to write one, and that is damaged; and it is
/// a stored filter.
pub fn run(data: &[u8]) {
    let probes: Vec<u64> = data.rchunks(8).take(4).map(|chunk| Input(chunk).number()).collect();
    read(data, &probes);
    let (header, bits, allowed) = forged(data);
    let file = [&header[..], &bits].concat();
    assert!(!allowed || decode(&file) == Ok(&bits), "for what the format allows: {file:x?}");
    let followed = [&file, data].concat();
    assert!(
        !allowed || without_rest(&followed) == Ok(&file),
        "of what the format allows: {file:x?}"
    );
    read(&file, &probes);
    read(&damaged(&file, data, header.len()), &probes);
    let mut value = data.to_vec();
    // Other layouts are refused, so they are rare.
    if let Some(layout) = value.get_mut(1).filter(|layout| !(1..=2).contains(*layout)) {
        *layout = Layout::Parquet as u8;
    }
    write(&repair(&value, false), &probes);
}

/// The header and the bits of a file's filter as the input says, and whether a reader must take it.
fn forged(data: &[u8]) -> (Vec<u8>, Vec<u8>, bool) {
    let mut input = Input(data);
    let bytes = match usize::from(input.byte()) {
        size @ ..240 => (1 + size % 8) * BLOCK,
        size @ ..253 => (50 + size % 16 * 2) * BLOCK,
        // No blocks.
        size => (size - 253) * BLOCK / 2,
    };
    let mut script = Input(input.part());
    let (header, allowed) = thrift::Writer::header(&mut script, bytes);
    let mut bits = input.take(bytes).to_vec();
    repeat(&mut bits, 0, bytes);
    (header, bits, allowed && bytes > 0 && bytes.is_multiple_of(BLOCK))
}

/// Hashes of zero, of the other zero, of the NaN that stands for all, and of the same with its
/// sign: docs/format.md has them.
fn floats(tag: Tag) -> Option<[u64; 4]> {
    match tag {
        Tag::ParquetFloat => Some([
            0x3AEF_A6FD_5CF2_DEB4,
            0x822E_5121_1BF0_8373,
            0xD651_66E4_6DF1_863E,
            0x1686_3A5B_F2C5_1562,
        ]),
        Tag::ParquetDouble => Some([
            0x34C9_6ACD_CADB_1BBB,
            0x3F42_5EAC_F015_44E0,
            0xE9AD_B09F_EE12_2AAC,
            0xF07C_4090_2EE6_7377,
        ]),
        _ => None,
    }
}

fn positions(bits: &[u8], hash: u64) -> impl Iterator<Item = (usize, u8)> {
    let blocks = (bits.len() / BLOCK) as u64;
    oracle::positions(Layout::Parquet, 8, blocks, hash)
        .into_iter()
        .map(|p| ((p / 8) as usize, 1 << (p % 8)))
}

fn has(bits: &[u8], hash: u64) -> bool {
    positions(bits, hash).all(|(byte, bit)| bits[byte] & bit > 0)
}

/// The bits with those of the elements whose condition is true.
fn with(bits: &[u8], elements: [(bool, u64); 2]) -> Vec<u8> {
    let mut all = bits.to_vec();
    for (_, hash) in elements.into_iter().filter(|element| element.0) {
        positions(bits, hash).for_each(|(byte, bit)| all[byte] |= bit);
    }
    all
}

/// The bits that a filter with these has on the way in.
fn coming(bits: &[u8], tag: Tag) -> Vec<u8> {
    let Some([zero, other_zero, nan, _]) = floats(tag) else {
        return bits.to_vec();
    };
    with(
        bits,
        [
            (has(bits, other_zero), zero),
            (bits.iter().any(|&byte| byte > 0), nan),
        ],
    )
}

/// The bits that a filter with these has on the way out.
fn going(bits: &[u8], tag: Tag) -> Vec<u8> {
    let Some([zero, other_zero, nan, other_nan]) = floats(tag) else {
        return bits.to_vec();
    };
    with(bits, [(has(bits, zero), other_zero), (has(bits, nan), other_nan)])
}

/// An error of this class.
fn refusal(error: &Error, class: Class) {
    assert_eq!(error.class(), class, "{error:?}");
}

/// Reads a file's filter for each kind.
fn read(file: &[u8], probes: &[u64]) {
    let expected = thrift::bits_of(file);
    match decode(file) {
        Ok(bits) => assert_eq!(Some(bits), expected, "{file:x?}"),
        Err(error) => {
            refusal(&error, Class::InvalidBinary);
            assert_eq!(expected, None, "{error:?} for {file:x?}");
        }
    }
    let Some(bits) = expected else {
        for tag in TAGS {
            refusal(
                &import::<Vec<u8>>(file, tag, LIMIT).expect_err("no filter"),
                Class::InvalidBinary,
            );
        }
        return;
    };
    // One way in for all kinds but floats: the elements' kind is their only difference.
    let turn = 2 + file.len() % 7;
    for tag in [TAGS[0], TAGS[1], TAGS[turn]] {
        come(file, bits, tag, probes);
    }
    let refused = [
        Tag::None,
        Tag::Integer,
        Tag::Float,
        Tag::Numeric,
        Tag::Other,
    ][file.len() % 5];
    refusal(
        &import::<Vec<u8>>(file, refused, LIMIT).expect_err("no kind of Parquet"),
        Class::InvalidParameter,
    );
}

/// Imports a filter that is whole, exports what comes of it, and imports that.
fn come(file: &[u8], bits: &[u8], tag: Tag, probes: &[u64]) {
    let size = (HEADER + bits.len()) as u64;
    let short = import::<Vec<u8>>(file, tag, size - 1).expect_err("too large");
    refusal(&short, Class::TooLarge);
    let value = import::<Vec<u8>>(file, tag, size).expect("a filter that fits");
    let view = accepted(&value, tag, bits.len());
    let stored = payload(&view);
    assert_eq!(stored, coming(bits, tag), "{tag:?}");
    promises(&view);
    let answers = probes
        .iter()
        .all(|&hash| build::contains(&view, hash) == has(stored, hash));
    assert!(answers, "{probes:x?}");

    let out: Vec<u8> = export(&view, size).expect("a filter of a file");
    let bits_out = going(stored, tag);
    assert_eq!(out, [thrift::plain(bits.len()), bits_out.clone()].concat());
    let again = import::<Vec<u8>>(&out, tag, size).expect("what was exported");
    assert_eq!(payload(&accepted(&again, tag, bits.len())), coming(&bits_out, tag), "{tag:?}");
    if floats(tag).is_none() {
        assert_eq!(bits_out, bits, "{tag:?} changed");
        assert_eq!(again, value, "{tag:?} changed");
    }
}

/// The view of an imported filter: canonical, dense, of so many bytes of bits.
fn accepted(value: &[u8], tag: Tag, bytes: usize) -> View<'_> {
    let view = View::parse(value).unwrap_or_else(|e| panic!("what was imported is refused: {e:?}"));
    assert_eq!(view.to_buffer::<Vec<u8>>(), value);
    let (h, blocks) = (view.header, (bytes / BLOCK) as u64);
    assert_eq!(
        (h.layout, h.num_hashes, h.blocks, h.base_blocks),
        (Layout::Parquet, 8, blocks, blocks)
    );
    assert_eq!(h.kind, Kind::unnamed(tag));
    view
}

fn payload<'a>(view: &View<'a>) -> &'a [u8] {
    match view.body {
        Body::Dense(bits) => bits,
        Body::Sparse(_) => panic!("it is sparse"),
    }
}

/// The rate of an imported filter is the one that it has, within bounds, and its capacity is what
/// its size has at that.
fn promises(view: &View<'_>) {
    let h = &view.header;
    let bits = oracle::bits_of(view).expect("few bits");
    let now = oracle::rate(h, &bits).clamp(0.01, 0.5);
    assert!((h.fpr - now).abs() <= 1e-9 * now, "{} not {now}", h.fpr);
    let blocks = |capacity| {
        sizing::size_for_capacity(Layout::Parquet, capacity, h.fpr)
            .expect("a rate that can be kept")
            .blocks
    };
    let capacity = h.capacity.elements().expect("a filter with a size");
    assert!(blocks(capacity) <= h.blocks && blocks(capacity + 1) > h.blocks, "{h:?}");
}

/// Exports a stored filter, and imports what comes of it.
fn write(value: &[u8], probes: &[u64]) {
    let view = View::parse(value).expect("a repaired value is a filter");
    let h = &view.header;
    let file: Vec<u8> = match export(&view, LIMIT) {
        Ok(file) => file,
        Err(error) => {
            let fits = h.dense_bytes() <= LIMIT || matches!(view.body, Body::Dense(_));
            let possible = h.is_unsized()
                || h.layout == Layout::Parquet && (h.kind.is_none() || h.kind.tag.is_parquet());
            assert!(!(possible && fits), "{error:?} for {h:?}");
            return refusal(
                &error,
                if possible { Class::TooLarge } else { Class::InvalidParameter },
            );
        }
    };
    let tag = h.kind.tag;
    let own = match (view.body, h.is_unsized()) {
        (_, true) => vec![0; BLOCK],
        (Body::Dense(bits), _) => bits.to_vec(),
        (Body::Sparse(_), _) => {
            let bits = oracle::bits_of(&view).expect("few bits");
            let byte =
                |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
            bits.chunks(8).map(byte).collect()
        }
    };
    // Probes of a sparse filter compare hashes, so it has no other elements.
    let completions = floats(tag).map(|[zero, other_zero, nan, other_nan]| {
        with(
            &own,
            [
                (build::contains(&view, zero), other_zero),
                (build::contains(&view, nan), other_nan),
            ],
        )
    });
    assert_eq!(file, [thrift::plain(own.len()), completions.unwrap_or(own)].concat());

    let tag = if tag == Tag::None { Tag::ParquetInt64 } else { tag };
    let back = import::<Vec<u8>>(&file, tag, LIMIT).expect("what was exported");
    let bits = decode(&file).expect("what was exported");
    let back = accepted(&back, tag, bits.len());
    assert_eq!(payload(&back), coming(bits, tag));
    let own = match view.body {
        Body::Sparse(entries) => entries
            .iter()
            .step_by(entries.len() / 8 + 1)
            .map(|e| u64::from_le_bytes(*e))
            .collect(),
        Body::Dense(_) => Vec::new(),
    };
    let kept = |&hash: &u64| !build::contains(&view, hash) || build::contains(&back, hash);
    assert!(probes.iter().chain(&own).all(kept), "a false negative");
    if !h.is_unsized() {
        let union: Vec<u8> = merge::union(&view, &back, LIMIT).expect("the same size");
        assert_eq!(
            payload(&View::parse(&union).expect("a union")),
            payload(&back),
            "it lacks what was exported"
        );
    }
}
