#![no_main]
#![doc = "Fuzz target `counting`: see `pg_bloom_fuzz::counting`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::counting::run(data));
