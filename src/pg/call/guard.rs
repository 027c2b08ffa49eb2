//! Calls of PostgreSQL's function pointers.
//!
//! An error of PostgreSQL is a long jump: over Rust's frames it would skip their destructors, and leak what they own.
//! Under the guard it becomes a panic, which unwinds them, and which the function that PostgreSQL called turns into the
//! error again. The compiler refuses every other call (`deny(ffi_unwind_calls)`); the functions of
//! [`pgrx::pg_sys`] have the guard inside.

/// Calls a function pointer of PostgreSQL under the guard. The caller promises, as for any call of a pointer, that the
/// arguments are what the function expects.
macro_rules! guarded {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        #[allow(ffi_unwind_calls, reason = "under the guard, which catches the jump")]
        pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| $function($($argument),*))
    }};
}
