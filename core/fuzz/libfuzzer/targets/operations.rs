#![no_main]
#![doc = "Fuzz target `operations`: see `pg_bloom_fuzz::operations`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::operations::run(data));
