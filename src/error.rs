//! SQL's words for what can go wrong.

use crate::pg::error::{Error, SqlState};
use pg_bloom_core::Code;

impl From<pg_bloom_core::Error> for Error {
    fn from(error: pg_bloom_core::Error) -> Error {
        let sqlstate = match error.code {
            Code::InvalidParameter => SqlState::ERRCODE_INVALID_PARAMETER_VALUE,
            Code::TooLarge => SqlState::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Code::InvalidBinary => SqlState::ERRCODE_INVALID_BINARY_REPRESENTATION,
            Code::KindMismatch => SqlState::ERRCODE_DATATYPE_MISMATCH,
        };
        let parts = error.into_parts();
        let mut error = Error::new(sqlstate, parts.message);
        if let Some(detail) = parts.detail {
            error = error.detail(detail);
        }
        if let Some(hint) = parts.hint {
            error = error.hint(hint);
        }
        error
    }
}

/// A refusal of an element's type, 0A000.
pub fn unsupported(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message).hint(hint)
}

/// An invalid parameter, 22023.
pub fn invalid_parameter(message: impl Into<String>) -> Error {
    Error::new(SqlState::ERRCODE_INVALID_PARAMETER_VALUE, message)
}
