//! Functions that only tests call, in builds for debugging. The extension's script doesn't declare
//! them; tests do.

use super::Call;
use super::error::{Error, Outcome, Result, SqlState, raise};
use super::interrupt::check_for_interrupts;
use crate::pg::{catalog, sql};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Oid;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How many comparisons a sort has made when [`end_session`] ends the session: one text is in two
/// places then.
const COMPARISONS_BEFORE_END: u32 = 3;

/// Implements `pg_bloom_panic()`: panics, to see what that shows.
fn panic(_: &Call) -> Outcome {
    panic!("this is a test")
}

/// Implements `pg_bloom_catch(integer)`: safe code that catches an error and goes on.
///
/// The argument says which error: 0 for one of PostgreSQL's, 1 for one of the extension's, 2 for a
/// panic, 3 for a panic that runs no hook.
#[allow(clippy::disallowed_methods, reason = "the test is about what these do")]
fn catch(call: &Call) -> Outcome {
    let fail = || match call.i32(0) {
        Some(0) => drop(catalog::argument_type(Oid::INVALID, 0)),
        Some(1) => raise(Error::new(SqlState::ERRCODE_INTERNAL_ERROR, "this is a test")),
        Some(2) => drop(sql::connected(|| -> Result<()> { panic!("this is a test") })),
        _ => drop(sql::connected(|| -> Result<()> { resume_unwind(Box::new("this is a test")) })),
    };
    catch_unwind(AssertUnwindSafe(fail)).expect_err("it fails");
    Ok(None)
}

/// Implements `pg_bloom_end()`: ends the session while something that the call site remembers is
/// being sorted.
fn end_session(call: &Call) -> Outcome {
    const TERMINATE: &[u8] = b"SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())";
    let texts: &mut List<String> =
        call.remembered(|| Ok((10..20).rev().map(|number| number.to_string()).collect()))?;
    let mut comparisons = 0;
    texts.sort_by(|a, b| {
        comparisons += 1;
        if comparisons == COMPARISONS_BEFORE_END {
            sql::execute(&[TERMINATE], &[], sql::Sees::Now, |_| Ok(()))
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
    pg_bloom_end => end_session;
}
