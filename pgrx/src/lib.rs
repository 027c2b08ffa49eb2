//! What the extension uses of pgrx. It depends on this crate by the name `pgrx`, so that a name
//! that isn't here doesn't compile there.
//!
//! pgrx's safe functions promise less than those of the extension's room `pg`: its connections and
//! callbacks change memory under a call. Before a name is added here, somebody has looked at what
//! safe code can do with it. `tests/rooms/words.rs` says which names only one file may use.

pub use ::pgrx::{
    PgLogLevel, PgMemoryContexts, PgSqlErrorCode, check_for_interrupts,
    direct_function_call_as_datum, ereport, guc, pg_guard, pg_module_magic, set_varsize_4b,
    varatt_is_1b, varatt_is_1b_e, varatt_is_4b_u, vardata_any, varsize_any, varsize_any_exhdr,
    vartag_1b_e,
};
/// What `pg_module_magic` writes into the extension names these.
#[doc(hidden)]
pub use ::pgrx::{pg_magic_func_support, pgrx_sql_entity_graph};

/// PostgreSQL's own functions, which are unsafe, and its types.
///
/// Without what pgrx has beside them: names that are imported one by one take precedence over those
/// of `*`, and these imports are private. The macros for messages are safe, though what PostgreSQL
/// raises while it sends one, as for a character that the client's encoding lacks, jumps over the
/// frames of their caller.
pub mod pg_sys {
    pub use ::pgrx::pg_sys::*;

    #[allow(
        hidden_glob_reexports,
        unused_imports,
        reason = "these names of `*` are to be hidden"
    )]
    use super::hidden::{
        item as AsPgCStr, item as PgNode, item as PgTryBuilder, item as cmp, item as elog,
        item as ffi, item as pg_try, item as thread_check, message as FATAL, message as PANIC,
        message as debug1, message as debug2, message as debug3, message as debug4,
        message as debug5, message as ereport, message as ereport_domain, message as error,
        message as info, message as log, message as notice, message as warning,
    };

    /// How errors pass through Rust: what `pg_guard` calls, and the payloads of panics.
    pub mod panic {
        pub use ::pgrx::pg_sys::panic::{
            CaughtError, ErrorReport, ErrorReportWithLevel, pgrx_extern_c_guard,
            register_pg_guard_panic_hook,
        };
    }

    /// The path by which `pg_guard` names what it calls.
    #[doc(hidden)]
    pub mod submodules {
        pub use super::panic;
    }
}

/// What the names that `pg_sys` hides stand for.
mod hidden {
    pub mod item {}

    #[allow(unused_macros, reason = "it is never called")]
    macro_rules! message {
        () => {};
    }
    pub(crate) use message;
}
