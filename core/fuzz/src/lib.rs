//! Functions that try hostile input, which libFuzzer calls and `cargo test` replays.
//!
//! ```text
//! input ──forge──▶ values that the parser accepts ──▶ every operation, compared with ──▶ oracle: bits, numbers
//! ```
//!
//! Bytes that aren't a filter are repaired into one ([`forge`]), so that nearly every mutation
//! reaches the operations. Each target panics if a promise is broken.

pub mod counting;
pub mod forge;
pub mod index_filters;
pub mod index_keys;
pub mod operations;
pub mod oracle;
pub mod pages;
pub mod parquet;
pub mod parse;
pub mod patterns;
pub mod sets;
pub mod sizing;
pub mod state;
pub mod thrift;

/// Runs one input.
pub type Target = fn(&[u8]);

/// Every target with its name, which is that of its archive in `corpus/`.
pub const TARGETS: [(&str, Target); 10] = [
    ("parse", parse::run),
    ("operations", operations::run),
    ("state", state::run),
    ("sizing", sizing::run),
    ("parquet", parquet::run),
    ("counting", counting::run),
    ("index_keys", index_keys::run),
    ("index_filters", index_filters::run),
    ("patterns", patterns::run),
    ("sets", sets::run),
];
