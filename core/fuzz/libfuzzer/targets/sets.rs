#![no_main]
#![doc = "Fuzz target `sets`: see `pg_bloom_fuzz::sets`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::sets::run(data));
