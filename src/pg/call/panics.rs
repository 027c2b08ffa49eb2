//! What a panic shows: its message to the user, and where it happened to the server's log.
//!
//! Errors travel through Rust as panics, PostgreSQL's own included. pgrx's hook adds a backtrace of
//! each to the error's DETAIL if `RUST_BACKTRACE` asks for one. Users would then see stack frames and
//! paths of this library, so the hook is replaced.

use super::guard::note_panic;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::panic::PanicHookInfo;

/// Replaces the hook that pgrx installs when PostgreSQL loads the library.
#[allow(clippy::disallowed_methods, reason = "this is the hook that stays")]
pub fn install_hook() {
    std::panic::set_hook(Box::new(log_panic));
}

/// Writes a panic to the server's log, with a backtrace if the environment asks for one. Errors on
/// their way through Rust aren't written: they are reported where they end.
fn log_panic(panic: &PanicHookInfo<'_>) {
    note_panic();
    if is_error_of_postgres(panic.payload()) {
        return;
    }
    let backtrace = Backtrace::capture();
    let mut stderr = std::io::stderr().lock();
    // If the log can't be written, there is nobody to report that to.
    writeln!(stderr, "pg_bloom: {panic}").ok();
    if backtrace.status() == BacktraceStatus::Captured {
        writeln!(stderr, "{backtrace}").ok();
    }
}

/// Returns whether the payload of a panic is an error of PostgreSQL's, as pgrx passes it on.
fn is_error_of_postgres(payload: &(dyn Any + Send)) -> bool {
    payload.is::<CaughtError>()
        || payload.is::<ErrorReportWithLevel>()
        || payload.is::<ErrorReport>()
}
