#![no_main]
#![doc = "Fuzz target `patterns`: see `pg_bloom_fuzz::patterns`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::patterns::run(data));
