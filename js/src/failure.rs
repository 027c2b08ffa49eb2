//! Errors as the caller gets them, and what happens without memory.

use pg_bloom_core::{Class, Error, memory};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The class of a failure. The numbers are what functions return.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum FailureClass {
    /// A value that can't be an element of the filter.
    Type = -1,
    /// A parameter, or a value, that is out of its range.
    Range = -2,
    /// Bytes that are not a filter.
    Format = -3,
}

/// Why a call failed.
pub struct Failure {
    pub class: FailureClass,
    pub message: String,
}

/// The result of a call.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// Returns the failure for a value that can't be an element.
    #[cold]
    pub fn kind(message: impl Into<String>) -> Failure {
        Failure { class: FailureClass::Type, message: message.into() }
    }

    /// Returns the failure for a parameter or a value out of its range.
    #[cold]
    pub fn range(message: impl Into<String>) -> Failure {
        Failure { class: FailureClass::Range, message: message.into() }
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Failure {
        let class = match error.class() {
            Class::KindMismatch => FailureClass::Type,
            Class::InvalidParameter | Class::TooLarge => FailureClass::Range,
            Class::InvalidBinary => FailureClass::Format,
        };
        Failure { class, message: error.to_string() }
    }
}

/// The bytes that could not be allocated; 0 if memory never ran out.
static MISSING_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Makes the core abort, which is a trap of WebAssembly, if memory runs out, and remember how many
/// bytes were missing for [`missing_bytes`].
pub fn install() {
    memory::set_hook(|bytes| {
        MISSING_BYTES.store(bytes.max(1), Ordering::Relaxed);
        std::process::abort()
    });
}

/// Returns how many bytes could not be allocated, if that was the reason for a trap; else 0.
pub fn missing_bytes() -> usize {
    MISSING_BYTES.load(Ordering::Relaxed)
}
