//! Errors as PostgreSQL reports them, and the way to report them.

use crate::pg::value::encoding::message;
use pgrx::PgLogLevel;
pub use pgrx::PgSqlErrorCode as SqlState;
use pgrx::pg_sys::panic::ErrorReport;

/// An error: one pointer, so that results are returned in registers.
#[derive(Debug)]
pub struct Error(Box<Report>);

/// The parts of an error that PostgreSQL shows separately.
#[derive(Debug)]
struct Report {
    sqlstate: SqlState,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

/// A result whose error is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What a SQL function gives: a datum, NULL, or an error.
pub type Outcome = Result<Option<pgrx::pg_sys::Datum>>;

impl Error {
    /// An error with a message only.
    #[cold]
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(Report { sqlstate, message: message.into(), detail: None, hint: None }))
    }

    /// The same error with a detail line.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }

    /// The same error with a hint line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error with another SQLSTATE.
    #[must_use]
    pub fn with_sqlstate(mut self, sqlstate: SqlState) -> Error {
        self.0.sqlstate = sqlstate;
        self
    }

    fn report(self, level: PgLogLevel) {
        let Report { sqlstate, message: primary, detail, hint } = *self.0;
        let mut report = ErrorReport::new(sqlstate, message(primary), "pg_bloom");
        if let Some(detail) = detail {
            report = report.set_detail(message(detail));
        }
        if let Some(hint) = hint {
            report = report.set_hint(message(hint));
        }
        report.report(level);
    }
}

/// Raises an error.
pub fn raise(error: Error) -> ! {
    error.report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Reports a warning; its SQLSTATE is 01000.
pub fn warn(warning: Error) {
    warning.with_sqlstate(SqlState::ERRCODE_WARNING).report(PgLogLevel::WARNING);
}

/// Tells the user what a check found.
pub fn info(finding: Error) {
    finding.report(PgLogLevel::INFO);
}

/// Raises the error for a request of so many bytes that can't be met, 53200.
pub fn out_of_memory(bytes: usize) -> ! {
    raise(
        Error::new(SqlState::ERRCODE_OUT_OF_MEMORY, "out of memory")
            .detail(format!("Failed on request of size {bytes}.")),
    )
}
