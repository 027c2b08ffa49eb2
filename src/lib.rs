//! `pg_bloom`: Bloom filters as a PostgreSQL data type.
//!
//! Each C function that `sql/pg_bloom.sql` declares has the name of a function here, in the room
//! that says so in its first comment: `functions`, `aggregate`, `set`, `find`, `planner` or
//! `index`. `settings` has the settings. ARCHITECTURE.md says what these rooms know, and what is
//! below them: `probe`, `read_ahead`, `overfull`, `arguments`, `key_condition`, `filter_type`,
//! `element`, `error`, `heap`, `other_extensions` and `pg`.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]
#![deny(ffi_unwind_calls)]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(panic = "unwind"))]
compile_error!("a panic must become a PostgreSQL error: build with panic = \"unwind\"");

#[macro_use]
mod pg;

mod aggregate;
mod arguments;
mod element;
mod error;
mod filter_type;
mod find;
mod functions;
mod heap;
mod index;
mod key_condition;
mod other_extensions;
mod overfull;
mod planner;
mod probe;
mod read_ahead;
mod set;
mod settings;

pgrx::pg_module_magic!(name, version);

/// Prepares the library, when PostgreSQL loads it: has errors and panics reported, defines the
/// settings and the options of indexes, and registers the hooks that scans and EXPLAIN need.
///
/// # Safety
/// Nobody else may call it.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn _PG_init() {
    pg::call::panics::install_hook();
    pg_bloom_core::interrupt::set_hook(pg::call::interrupt::check_for_interrupts);
    pg_bloom_core::memory::set_hook(pg::call::error::out_of_memory);
    // With the reserve of memory before anything is defined, which can be done only once in a
    // session. SAFETY: PostgreSQL calls this.
    unsafe { pg::call::guard::Entry::new() }.run(|| {
        settings::define();
        index::define();
        read_ahead::define();
        pg::storage::buffer::watch_subtransactions();
    });
}
