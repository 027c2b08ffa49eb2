use super::*;

#[test]
fn xxh64_is_the_published_one() {
    // Vectors of the xxHash specification and its sanity test.
    assert_eq!(hash(b""), 0xEF46_DB37_51D8_E999);
    assert_eq!(hash(b"abc"), 0x44BC_2CF5_AD77_0999);
}

#[test]
fn long_hashes_are_the_same() {
    let bytes: Vec<u8> = (0..3_000_001u32).map(|i| (i * 7) as u8).collect();
    for len in [0, 1, 1 << 20, (1 << 20) + 1, bytes.len()] {
        assert_eq!(hash_long(&bytes[..len]), hash(&bytes[..len]));
        let pieces = HashSink::hash(|stream| {
            bytes[..len].chunks(4_099).for_each(|piece| stream.write(piece))
        });
        assert_eq!(pieces, hash(&bytes[..len]));
    }
}

#[test]
fn words_are_frozen() {
    // SplitMix64 seeded with 0 and with 1234567: published test vectors of that generator.
    assert_eq!(word(0, 0), 0xE220_A839_7B1D_CDAF);
    assert_eq!(word(0, 1), 0x6E78_9E6A_A1B9_65F4);
    assert_eq!(word(1_234_567, 0), 6_457_827_717_110_365_317);
    assert_eq!(word(1_234_567, 1), 3_203_168_211_198_807_973);
}

#[test]
fn reduce_nests() {
    let mut x = 1u64;
    for i in 0..10_000 {
        x = word(x, i);
        for (n, q) in [(1u64, 7u64), (78, 2), (97, 13), (1 << 40, 3)] {
            assert_eq!(reduce(x, n * q) / q, reduce(x, n));
        }
    }
}

#[test]
fn reduce_is_the_same_without_a_product_of_128_bits() {
    let numbers = [
        0,
        1,
        2,
        3,
        78,
        512,
        (1 << 31) - 1,
        1 << 31,
        u64::from(u32::MAX),
    ];
    let extremes = numbers.into_iter().flat_map(|x| [x, !x, x << 32, !(x << 32)]);
    let random = (0..10_000).map(|i| word(7, i));
    for (x, i) in extremes.chain(random).zip(0..) {
        for n in numbers.into_iter().chain([word(i, 0) >> 32, word(i, 1) >> 50]) {
            assert_eq!(reduce_to_u32(x, n), reduce(x, n), "{x} of {n}");
        }
    }
}

#[test]
fn shards_are_even_and_free_of_the_block() {
    let mut counts = [0u32; 64];
    for i in 0..64_000u64 {
        let h = hash(&i.to_le_bytes());
        if h >> 60 == 3 {
            counts[shard(h, 64) as usize] += 1;
        }
    }
    assert!(counts.iter().all(|&c| (30..110).contains(&c)), "{counts:?}");
}
