#![no_main]
#![doc = "Fuzz target `sizing`: see `pg_bloom_fuzz::sizing`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::sizing::run(data));
