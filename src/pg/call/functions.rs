//! Functions of the extension.
//!
//! They are plain safe Rust, `fn(&Call) -> Outcome`; the macro `pg_functions!` gives each the
//! symbol and calling convention that `CREATE FUNCTION … LANGUAGE C` looks for. Whoever may create
//! C functions may do anything already.

use super::Call;
use super::error::Outcome;
use super::guard::Entry;
use pgrx::pg_sys::{Datum, FunctionCallInfo};

/// Calls a function of the extension for PostgreSQL: gives it the arguments of the call, and
/// returns its result or raises its error.
///
/// # Safety
/// `fcinfo` must be the argument with which PostgreSQL called the caller of this, as [`Call::new`]
/// requires. The caller must have nothing to drop.
#[inline(always)]
pub unsafe fn run(fcinfo: FunctionCallInfo, function: impl FnOnce(&Call) -> Outcome) -> Datum {
    // SAFETY: the caller promises the argument of PostgreSQL's call, and has nothing to drop.
    let (entry, call) = unsafe { (Entry::new(), Call::new(fcinfo)) };
    entry.run(|| {
        let result = function(&call);
        call.finish(result)
    })
}

/// Returns whether a C symbol may have this name: one with `bloom_` in it, so that it doesn't
/// replace another library's symbol.
pub const fn is_own_name(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let Some((start, _)) = rest.split_first_chunk() {
        if matches!(start, b"bloom_") {
            return true;
        }
        (_, rest) = rest.split_at(1);
    }
    false
}

/// Defines C symbols of functions: `pg_functions! { name => function; }`, with a
/// `fn(&Call) -> Outcome` or a closure.
///
/// `name => function, first unsafe quick;` tries `quick` first, a `fn(&Call) -> Option<Datum>`, for
/// calls that are so many and so short that the guard against panics would take a good part of
/// their time. It runs without that, so as `unsafe` promises it doesn't panic, nor call PostgreSQL,
/// which may raise an error. `None` leaves it to `function`.
macro_rules! pg_functions {
    ($($name:ident => $function:expr $(, first unsafe $quick:path)?;)*) => {
        /// The C symbols of this file's functions.
        #[allow(
            missing_docs,
            clippy::missing_safety_doc,
            reason = "each is documented where it is implemented and in sql/pg_bloom.sql; PostgreSQL calls it"
        )]
        pub mod symbols {
            use super::*;
            $(
                #[unsafe(no_mangle)]
                pub unsafe extern "C-unwind" fn $name(fcinfo: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                    // What is unsafe in the expression is refused here.
                    #[inline(always)]
                    fn safe_function(call: &$crate::pg::call::Call) -> $crate::pg::call::error::Outcome {
                        let function: fn(&$crate::pg::call::Call) -> $crate::pg::call::error::Outcome = $function;
                        function(call)
                    }
                    #[pgrx::pg_guard]
                    unsafe extern "C-unwind" fn guarded(fcinfo: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                        // SAFETY: as below.
                        unsafe { $crate::pg::call::functions::run(fcinfo, safe_function) }
                    }
                    $(
                        // SAFETY: PostgreSQL passes the information about this call.
                        let call = unsafe { $crate::pg::call::Call::new(fcinfo) };
                        if let Some(datum) = $quick(&call) {
                            return call.finish(Ok(Some(datum)));
                        }
                    )?
                    // SAFETY: PostgreSQL passes the information about this call, which nobody else
                    // uses any more.
                    unsafe { guarded(fcinfo) }
                }

                const _: () = assert!($crate::pg::call::functions::is_own_name(stringify!($name)));

                // Tells PostgreSQL that the function follows calling convention 1.
                const _: () = {
                    #[unsafe(export_name = concat!("pg_finfo_", stringify!($name)))]
                    extern "C" fn finfo() -> &'static pgrx::pg_sys::Pg_finfo_record {
                        &pgrx::pg_sys::Pg_finfo_record { api_version: 1 }
                    }
                };
            )*
        }
    };
}
