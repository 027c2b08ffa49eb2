//! Functions of the extension.
//!
//! They are plain safe Rust, `fn(&Call) -> Outcome`; the macro `pg_functions!` gives each the symbol and calling
//! convention that `CREATE FUNCTION … LANGUAGE C` looks for. What makes the safe methods of [`crate::pg::call::Call`]
//! sound is that PostgreSQL calls a C function with the arguments that `sql/pg_bloom.sql` declares: whoever may create
//! C functions may do anything already.

use super::Call;
use super::error::Outcome;
use super::guard::enter;
use pgrx::pg_sys::{Datum, FunctionCallInfo};

/// Runs a function of the extension.
///
/// # Safety
/// `fcinfo` must be what PostgreSQL passed, as [`Call::new`] wants it.
#[inline(always)]
pub unsafe fn run(fcinfo: FunctionCallInfo, function: impl FnOnce(&Call) -> Outcome) -> Datum {
    enter(|| {
        // SAFETY: promised by the caller.
        let call = unsafe { Call::new(fcinfo) };
        let result = function(&call);
        call.finish(result)
    })
}

/// Defines the C symbols of functions: `pg_functions! { name => function; }`, with a `fn(&Call) -> Outcome` or a
/// closure like that.
///
/// `name => function, first unsafe quick;` tries `quick` first, a `fn(&Call) -> Option<Datum>`, for calls that are so
/// many and so short that the guard against panics would take a good part of their time. It runs without that, so it
/// must not panic, nor call PostgreSQL, which may raise an error: this is what `unsafe` promises. With `None` it leaves
/// a call to `function`.
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
                pg_functions!(@symbol $name => $function $(, $quick)?);

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
    (@symbol $name:ident => $function:expr) => {
        #[unsafe(no_mangle)]
        #[pgrx::pg_guard]
        pub unsafe extern "C-unwind" fn $name(fcinfo: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
            // SAFETY: PostgreSQL passes the information about this call.
            unsafe { $crate::pg::call::functions::run(fcinfo, $function) }
        }
    };
    (@symbol $name:ident => $function:expr, $quick:path) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(fcinfo: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
            #[pgrx::pg_guard]
            unsafe extern "C-unwind" fn guarded(fcinfo: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                // SAFETY: as below.
                unsafe { $crate::pg::call::functions::run(fcinfo, $function) }
            }
            // SAFETY: PostgreSQL passes the information about this call.
            let call = unsafe { $crate::pg::call::Call::new(fcinfo) };
            match $quick(&call) {
                Some(datum) => call.finish(Ok(Some(datum))),
                // SAFETY: the same call.
                None => unsafe { guarded(fcinfo) },
            }
        }
    };
}
