//! Calls of PostgreSQL's function pointers.
//!
//! An error of PostgreSQL is a long jump: over Rust's frames it would skip their destructors, and leak what they own.
//! Under the guard it becomes a panic, which unwinds them, and which the function that PostgreSQL called turns into the
//! error again. The compiler refuses every other call (`deny(ffi_unwind_calls)`); the functions of
//! [`pgrx::pg_sys`] have the guard inside.

/// Calls a function pointer of PostgreSQL under the guard. The caller promises, as for any call of a pointer, that the
/// arguments are what the function expects.
///
/// `guarded!({ … })` runs a block under one guard, for calls that are so many and so short that a guard for each would
/// take a good part of their time. The block must own nothing, since the jump goes over it, and must not panic: so it
/// uses no function of [`pgrx::pg_sys`], which turn errors into panics.
macro_rules! guarded {
    ({ $($body:tt)* }) => {{
        #[allow(ffi_unwind_calls, reason = "under the guard, which catches the jump")]
        pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| { $($body)* })
    }};
    ($function:ident($($argument:expr),* $(,)?)) => {{
        #[allow(ffi_unwind_calls, reason = "under the guard, which catches the jump")]
        pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| $function($($argument),*))
    }};
}
