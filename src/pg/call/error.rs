//! Errors as PostgreSQL reports them, and the way to report them.

use super::guard::{guard, raw};
use crate::pg::value::encoding;
use pgrx::PgLogLevel;
pub use pgrx::PgSqlErrorCode as SqlState;
use pgrx::pg_sys;
use std::ffi::CString;
use std::ptr::null_mut;

/// An error: one pointer, so that results are returned in registers.
#[derive(Debug)]
#[must_use]
pub struct Error(Box<Report>);

#[derive(Debug)]
struct Report {
    sqlstate: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

pub type Result<T> = std::result::Result<T, Error>;

/// What a SQL function gives: a datum, NULL, or an error.
pub type Outcome = Result<Option<pg_sys::Datum>>;

impl Error {
    #[cold]
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(Report { sqlstate, message: message.into(), detail: None, hint: None }))
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    pub fn with_sqlstate(mut self, sqlstate: SqlState) -> Error {
        self.0.sqlstate = sqlstate;
        self
    }

    /// Reports it, in the encoding of the database. An error unwinds from here.
    fn report(self, level: PgLogLevel) {
        let Report { sqlstate, message, detail, hint } = *self.0;
        let texts = [Some(message), detail, hint].map(|text| text.map(encoding::message));
        let pointer = |text: &Option<CString>| {
            text.as_ref().map_or(null_mut(), |text| text.as_ptr().cast_mut())
        };
        let [message, detail, hint] = texts.each_ref().map(pointer);
        let (elevel, sqlerrcode) = (level as i32, sqlstate as i32);
        let mut report = pg_sys::ErrorData {
            elevel,
            sqlerrcode,
            message,
            detail,
            hint,
            ..Default::default()
        };
        let report = &raw mut report;
        // SAFETY: PostgreSQL copies the texts. What they are in is owned here, and not by the
        // closure.
        unsafe { guard(|| raw::ThrowErrorData(report)) };
    }
}

pub fn raise(error: Error) -> ! {
    error.report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Reports a warning; its SQLSTATE is 01000.
pub fn warn(warning: Error) {
    warning
        .with_sqlstate(SqlState::ERRCODE_WARNING)
        .report(PgLogLevel::WARNING);
}

/// Reports a notice, with its own SQLSTATE.
pub fn notice(notice: Error) {
    notice.report(PgLogLevel::NOTICE);
}

/// Reports a message that only those see who ask for it, by `client_min_messages` or
/// `log_min_messages`.
pub fn debug(message: &str) {
    Error::new(SqlState::ERRCODE_SUCCESSFUL_COMPLETION, message).report(PgLogLevel::DEBUG1);
}

pub fn info(finding: Error) {
    finding.report(PgLogLevel::INFO);
}

/// Raises the error for a request of so many bytes that can't be met, 53200.
pub fn out_of_memory(bytes: usize) -> ! {
    let detail = format!("Failed on request of size {bytes}.");
    raise(Error::new(SqlState::ERRCODE_OUT_OF_MEMORY, "out of memory").detail(detail))
}
