//! `pg_bloom`: Bloom filters as a PostgreSQL data type.
//!
//! Everything about filters is in the crate `pg_bloom_core`; this one is the glue: it turns datums into element bytes and
//! stored bytes into datums. The SQL objects are declared by hand in `sql/pg_bloom.sql`; each C function there has the
//! name of a function here, in the file that says what it is about:
//!
//! | file | SQL objects |
//! |---|---|
//! | [`datatype`] | the type `bloom`: input, output, casts, comparison |
//! | [`element`] | which values may be elements, and how they are hashed |
//! | [`aggregate`] | `bloom_agg`, `bloom_union_agg`, `bloom_intersection_agg` |
//! | [`build`] | `bloom_empty`, `bloom_from_array`, `bloom_add`, `bloom_add_all` |
//! | [`membership`] | `bloom_contains` and its operators, `…_any`, `…_all`, `bloom_query` |
//! | [`merge`] | `bloom_union`, `bloom_intersection`, `bloom_fold`, `bloom_resize` |
//! | [`inspect`] | `bloom_info`, `bloom_header`, cardinalities, rates |
//! | [`counting`] | `counting_bloom`: filters from which elements can be removed |
//! | [`sizing`] | `bloom_parameters`, `bloom_capacity`, the lookup table |
//! | [`parquet`] | `bloom_to_parquet`, `bloom_from_parquet` |
//! | [`overfull`] | warnings about filters that hold too much |
//! | [`settings`] | `pg_bloom.default_fpr` and the other settings |
//!
//! All unsafe code about datums is in [`datum`].

#![deny(unsafe_op_in_unsafe_fn)]
#![deny(missing_docs)]

#[cfg(not(panic = "unwind"))]
compile_error!("a panic must become a PostgreSQL error: build with panic = \"unwind\"");

#[macro_use]
pub mod datum;

mod allocator;

pub mod aggregate;
pub mod build;
pub mod counting;
pub mod datatype;
pub mod element;
pub mod error;
pub mod inspect;
pub mod membership;
pub mod merge;
pub mod overfull;
pub mod panics;
pub mod parquet;
pub mod planner;
pub mod settings;
pub mod sizing;
pub mod support;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    panics::install_hook();
    settings::define();
    pg_bloom_core::interrupt::install(datum::check_for_interrupts);
    pg_bloom_core::memory::install(error::out_of_memory);
}
