#![no_main]
#![doc = "Fuzz target `range`: see `pg_bloom_fuzz::range`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::index_keys::run(data));
