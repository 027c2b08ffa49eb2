//! Errors of the core, and a lack of memory, as exceptions.

use pg_bloom_core::{Class, Error, interrupt, memory};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// There is no memory for so many bytes.
struct Exhausted(usize);

/// An error of the core: TypeError for elements of another kind, else ValueError.
#[cold]
pub fn refuse(error: Error) -> PyErr {
    match error.class() {
        Class::KindMismatch => PyTypeError::new_err(error.to_string()),
        Class::InvalidBinary | Class::InvalidParameter | Class::TooLarge => {
            PyValueError::new_err(error.to_string())
        }
    }
}

/// Lets the core fail for lack of memory and be interrupted, by exceptions in place of the end of
/// the process.
pub fn install() {
    memory::set_hook(|bytes| resume_unwind(Box::new(Exhausted(bytes))));
    interrupt::set_hook(|| {
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            resume_unwind(Box::new(error));
        }
    });
}

/// Calls the core. Any other panic goes on, and PyO3 makes an exception of it.
///
/// # Errors
/// MemoryError; what a handler of a signal raised; those of `work`.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let panic = match panic.downcast::<Exhausted>() {
            Ok(exhausted) => {
                return Err(PyMemoryError::new_err(format!("no memory for {} bytes", exhausted.0)));
            }
            Err(panic) => panic,
        };
        match panic.downcast::<PyErr>() {
            Ok(error) => Err(*error),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Calls the core while other threads run.
///
/// # Errors
/// As [`guarded`], and those of the core.
pub fn outside<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(|| guarded(|| work().map_err(refuse)))
}
