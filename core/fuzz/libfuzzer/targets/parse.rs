#![no_main]
#![doc = "Fuzz target `parse`: see `pg_bloom_fuzz::parse`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::parse::run(data));
