//! Errors as PostgreSQL reports them, and the way to report them.

use super::guard::{guard, raw};
use crate::pg::value::encoding;
use pgrx::PgLogLevel;
pub use pgrx::PgSqlErrorCode as SqlState;
use pgrx::pg_sys;
use std::ffi::{CString, c_char};
use std::ptr::null_mut;

/// An error: one pointer, so that results are returned in registers.
#[derive(Debug)]
#[must_use]
pub struct Error(Box<Report>);

/// The fields of an error that PostgreSQL shows.
#[derive(Debug)]
struct Report {
    sqlstate: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

/// A result whose error is reported by PostgreSQL.
pub type Result<T> = std::result::Result<T, Error>;

/// What a SQL function gives: a datum, NULL, or an error.
pub type Outcome = Result<Option<pg_sys::Datum>>;

impl Error {
    /// Returns an error with a code and a message.
    #[cold]
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(Report { sqlstate, message: message.into(), detail: None, hint: None }))
    }

    /// Adds a DETAIL.
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a HINT, which says what the user can do.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Replaces the code.
    pub fn with_sqlstate(mut self, sqlstate: SqlState) -> Error {
        self.0.sqlstate = sqlstate;
        self
    }

    /// Sends the message to the client and to the server's log, in the encoding of the database. At
    /// level ERROR it doesn't return: it unwinds to PostgreSQL's error handler.
    fn report(self, level: PgLogLevel) {
        let Report { sqlstate, message, detail, hint } = *self.0;
        let message = encoding::message(message);
        let detail = detail.map(encoding::message);
        let hint = hint.map(encoding::message);

        let mut data = pg_sys::ErrorData {
            elevel: level as i32,
            sqlerrcode: sqlstate as i32,
            message: message.as_ptr().cast_mut(),
            detail: pointer_or_null(&detail),
            hint: pointer_or_null(&hint),
            ..Default::default()
        };
        let data = &raw mut data;
        // SAFETY: PostgreSQL copies the texts, which exist until the end of this function. An error
        // jumps out of the closure without dropping anything, and the closure owns nothing.
        unsafe { guard(|| raw::ThrowErrorData(data)) };
    }
}

fn pointer_or_null(text: &Option<CString>) -> *mut c_char {
    match text {
        Some(text) => text.as_ptr().cast_mut(),
        None => null_mut(),
    }
}

/// Raises an error: it unwinds to PostgreSQL.
pub fn raise(error: Error) -> ! {
    error.report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Reports a warning to the client. Its SQLSTATE becomes 01000.
pub fn warn(warning: Error) {
    warning
        .with_sqlstate(SqlState::ERRCODE_WARNING)
        .report(PgLogLevel::WARNING);
}

/// Reports a notice to the client, with its own SQLSTATE.
pub fn notice(notice: Error) {
    notice.report(PgLogLevel::NOTICE);
}

/// Reports a message that only those see who ask for it, by `client_min_messages` or
/// `log_min_messages`.
pub fn debug(message: &str) {
    Error::new(SqlState::ERRCODE_SUCCESSFUL_COMPLETION, message).report(PgLogLevel::DEBUG1);
}

/// Reports something to the client that it has asked for, at level INFO.
pub fn info(finding: Error) {
    finding.report(PgLogLevel::INFO);
}

/// Raises 53200 for a request of `bytes` bytes that can't be met.
pub fn out_of_memory(bytes: usize) -> ! {
    let detail = format!("Failed on request of size {bytes}.");
    raise(Error::new(SqlState::ERRCODE_OUT_OF_MEMORY, "out of memory").detail(detail))
}
