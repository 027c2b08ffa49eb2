//! `pg_bloom`: Bloom filters as a PostgreSQL data type.
//!
//! Everything about filters is in the crate `pg_bloom_core`; this one is the glue: it turns datums into element bytes
//! and stored bytes into datums. The SQL objects are declared by hand in `sql/pg_bloom.sql`; each C function there has
//! the name of a function here, in the file that says what it is about:
//!
//! | file | SQL objects |
//! |---|---|
//! | `datatype` | the types `bloom` and `counting_bloom`: input, output, casts, comparison |
//! | `build` | `bloom_empty`, `bloom_from_array`, `bloom_add`, `bloom_add_all`, `bloom_shard` |
//! | `membership` | `bloom_contains` and its operators, `…_any`, `…_all`, `bloom_query` |
//! | `key` | `bloom_key`, `bloom_contains_key`: what an index over filters is asked for |
//! | `merge` | `bloom_union`, `bloom_intersection`, `bloom_fold`, `bloom_resize` |
//! | `inspect` | `bloom_info`, `bloom_header`, cardinalities, rates |
//! | `counting` | `counting_bloom_…`: filters from which elements can be removed |
//! | `sizing` | `bloom_parameters`, `bloom_capacity`, the lookup table |
//! | `set` | `bloom_set_…`: sets that change, tables of sorted hashes |
//! | `parquet` | `bloom_to_parquet`, `bloom_from_parquet` |
//! | `aggregate` | `bloom_agg`, `bloom_union_agg`, `bloom_intersection_agg`, `counting_bloom_agg` |
//! | `planner` | selectivity and cost |
//! | `index` | the access method `bloom_filter`, `bloom_index_info`, `bloom_index_check` |
//! | `find` | `bloom_find`, `bloom_find_all`: a key in hundreds of partitions |
//! | `settings` | `pg_bloom.default_fpr` and the other settings |
//! | `read_ahead` | none: Bloom Scan, by which the planner evaluates `filter @> element` for many rows at once |
//!
//! They rest on `probe`, `overfull`, `arguments`, `key_condition`, `filter_type`, `element`, `error`, `heap` and `pg`:
//! ARCHITECTURE.md says what each of these rooms knows, and which uses which.

#![deny(clippy::disallowed_methods, clippy::too_many_lines)]
#![deny(ffi_unwind_calls)]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(panic = "unwind"))]
compile_error!("a panic must become a PostgreSQL error: build with panic = \"unwind\"");

#[macro_use]
mod pg;

mod aggregate;
mod arguments;
mod build;
mod counting;
mod datatype;
mod element;
mod error;
mod filter_type;
mod find;
mod heap;
mod index;
mod inspect;
mod key;
mod key_condition;
mod membership;
mod merge;
mod overfull;
mod parquet;
mod planner;
mod probe;
mod read_ahead;
mod set;
mod settings;
mod sizing;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
///
/// # Safety
/// Nobody else may call it.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn _PG_init() {
    pg::call::panics::install_hook();
    pg_bloom_core::interrupt::install(pg::call::interrupt::check_for_interrupts);
    pg_bloom_core::memory::install(pg::call::error::out_of_memory);
    // With the reserve of memory before anything is defined, which can be done only once in a session.
    // SAFETY: PostgreSQL calls this.
    unsafe { pg::call::guard::Entry::new() }.run(|| {
        settings::define();
        index::define();
        read_ahead::define();
        pg::storage::buffer::watch_subtransactions();
    });
}
