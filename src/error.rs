//! From the core's errors to PostgreSQL's reports.

use crate::datum::catalog::message;
use pg_bloom_core::{Code, Error};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// What can go wrong in a function of this extension.
#[derive(Debug)]
pub enum Failure {
    /// The core refused.
    Core(Error),
    /// 22P02: text that is no filter.
    MalformedText(Error),
    /// 0A000: a type or collation that can't be an element.
    Unsupported(Error),
    /// 22004: a NULL where a value is needed.
    Null(Error),
    /// 42P18: the parser could not tell a type.
    Indeterminate(Error),
    /// 42P22: the collations of a string's parts disagree.
    IndeterminateCollation(Error),
    /// 42704: a type that is gone, in a plan that was made before.
    UndefinedType(Error),
    /// 55000: a function called in a way that only the executor may.
    Misuse(Error),
    /// 58030: a temporary file that doesn't give back what was written.
    File(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Core(error)
    }
}

/// A refusal of an element's type, 0A000.
pub fn unsupported(message: impl Into<String>, hint: impl Into<String>) -> Failure {
    Failure::Unsupported(Error::new(Code::InvalidParameter, message).hint(hint))
}

/// A parameter that can't be, 22023.
pub fn invalid_parameter(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidParameter, message)
}

fn sqlstate(code: Code) -> PgSqlErrorCode {
    match code {
        Code::InvalidParameter => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        Code::TooLarge => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        Code::InvalidBinary => PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
        Code::KindMismatch => PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
    }
}

/// Raises a failure as a PostgreSQL error.
pub fn raise(failure: Failure) -> ! {
    let (code, error) = match failure {
        Failure::Core(error) => (sqlstate(error.code), error),
        Failure::MalformedText(error) => (PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, error),
        Failure::Unsupported(error) => (PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, error),
        Failure::Null(error) => (PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, error),
        Failure::Indeterminate(error) => (PgSqlErrorCode::ERRCODE_INDETERMINATE_DATATYPE, error),
        Failure::UndefinedType(error) => (PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT, error),
        Failure::IndeterminateCollation(error) => (PgSqlErrorCode::ERRCODE_INDETERMINATE_COLLATION, error),
        Failure::Misuse(error) => (PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, error),
        Failure::File(error) => (PgSqlErrorCode::ERRCODE_IO_ERROR, error),
    };
    report(code, error, PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Raises the error for a request of so many bytes that can't be met, 53200.
pub fn out_of_memory(bytes: usize) -> ! {
    let error = invalid_parameter("out of memory").detail(format!("Failed on request of size {bytes}."));
    report(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, error, PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

fn report(code: PgSqlErrorCode, error: Error, level: PgLogLevel) {
    let error = error.into_parts();
    let mut report = ErrorReport::new(code, message(error.message), "pg_bloom");
    if let Some(detail) = error.detail {
        report = report.set_detail(message(detail));
    }
    if let Some(hint) = error.hint {
        report = report.set_hint(message(hint));
    }
    report.report(level);
}

/// Raises a warning.
pub fn warn(warning: Error) {
    report(PgSqlErrorCode::ERRCODE_WARNING, warning, PgLogLevel::WARNING);
}
