#![no_main]
#![doc = "Fuzz target `rows`: see `pg_bloom_fuzz::rows`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::index_filters::run(data));
