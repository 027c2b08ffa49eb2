//! What is shown of a panic: its message to the user, where it happened to the server's log.
//!
//! Errors travel through Rust as panics, PostgreSQL's own included. pgrx's hook adds a backtrace of
//! each to the error's DETAIL where `RUST_BACKTRACE` asks for one: users would see frames and paths
//! of this library. So it is replaced.

use super::Call;
use super::error::{Error, Outcome, Result, SqlState, raise};
use super::guard::note_panic;
use super::interrupt::check_for_interrupts;
use crate::pg::{catalog, sql};
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};

/// Takes the place of the hook that pgrx installs when PostgreSQL loads the library.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the hook that is to stay"
)]
pub fn install_hook() {
    std::panic::set_hook(Box::new(log));
}

/// Writes a panic that is no error on its way to the server's log, with a backtrace where the
/// environment asks for one.
fn log(panic: &PanicHookInfo<'_>) {
    note_panic();
    let payload = panic.payload();
    if payload.is::<CaughtError>()
        || payload.is::<ErrorReportWithLevel>()
        || payload.is::<ErrorReport>()
    {
        return;
    }
    let backtrace = Backtrace::capture();
    let mut stderr = std::io::stderr().lock();
    // Where the log can't be written there is nobody to tell.
    writeln!(stderr, "pg_bloom: {panic}").ok();
    if backtrace.status() == BacktraceStatus::Captured {
        writeln!(stderr, "{backtrace}").ok();
    }
}

/// `pg_bloom_panic()`, which the extension's script does not declare: tests do, to see what a panic
/// shows.
fn panic(_: &Call) -> Outcome {
    panic!("this is a test")
}

/// `pg_bloom_catch(integer)`, likewise: code that has no `unsafe`, and goes on after an error. With
/// 0 the error is one of PostgreSQL's, with 1 one of the extension's, with 2 a panic, with 3 a
/// panic that no hook sees.
#[allow(clippy::disallowed_methods, reason = "what becomes of it is tried")]
fn catch(call: &Call) -> Outcome {
    let fails = || match call.i32(0) {
        Some(0) => drop(catalog::argument_type(Oid::INVALID, 0)),
        Some(1) => raise(Error::new(SqlState::ERRCODE_INTERNAL_ERROR, "this is a test")),
        Some(2) => drop(sql::connected(|| -> Result<()> { panic!("this is a test") })),
        _ => drop(sql::connected(|| -> Result<()> { resume_unwind(Box::new("this is a test")) })),
    };
    catch_unwind(AssertUnwindSafe(fails)).expect_err("it fails");
    Ok(None)
}

/// `pg_bloom_end()`, likewise: the session is ended while what the call site remembers is being
/// sorted.
fn end(call: &Call) -> Outcome {
    const END: &[u8] = b"SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())";
    let texts: &mut Vec<String> =
        call.remembered(|| Ok((10..20).rev().map(|i| i.to_string()).collect()))?;
    let mut compared = 0;
    texts.sort_by(|a, b| {
        compared += 1;
        // One text is in two places now.
        if compared == 3 {
            sql::execute(&[END], &[], sql::Sees::Now, |_| Ok(()))
                .unwrap_or_else(|error| raise(error));
            check_for_interrupts();
        }
        a.cmp(b)
    });
    Ok(None)
}

pg_functions! {
    pg_bloom_panic => panic;
    pg_bloom_catch => catch;
    pg_bloom_end => end;
}
