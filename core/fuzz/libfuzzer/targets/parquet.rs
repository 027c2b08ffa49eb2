#![no_main]
#![doc = "Fuzz target `parquet`: see `pg_bloom_fuzz::parquet`."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pg_bloom_fuzz::parquet::run(data));
