#![no_main]
#![doc = "Fuzz target `state`: see `pg_bloom_fuzz::state`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::state::run(data));
