//! Errors of the core, and a lack of memory, as exceptions.

use pg_bloom_core::{Class, Error, interrupt, memory};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The panic of the core where memory for this number of bytes is not to be had.
struct OutOfMemory(usize);

/// Returns the exception for an error of the core: TypeError for elements of another kind, else
/// ValueError.
#[cold]
pub fn exception(error: Error) -> PyErr {
    match error.class() {
        Class::KindMismatch => PyTypeError::new_err(error.to_string()),
        Class::InvalidBinary | Class::InvalidParameter | Class::TooLarge => {
            PyValueError::new_err(error.to_string())
        }
    }
}

/// Makes the core unwind when memory is missing, and when a handler of a signal has raised an
/// exception. [`guarded`] turns both panics into exceptions.
pub fn install() {
    memory::set_hook(|bytes| resume_unwind(Box::new(OutOfMemory(bytes))));
    interrupt::set_hook(|| {
        if let Err(raised) = Python::attach(|py| py.check_signals()) {
            resume_unwind(Box::new(raised));
        }
    });
}

/// Calls `call_core`, which uses the core, and returns its result. The core panics if memory is
/// missing, or if a signal's handler raises an exception: both panics are caught here, and become
/// exceptions of Python. PyO3 deals with other panics.
///
/// # Errors
/// Fails with MemoryError, with the exception of a signal's handler, and if `call_core` does.
pub fn guarded<T>(call_core: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let panic = match catch_unwind(AssertUnwindSafe(call_core)) {
        Ok(result) => return result,
        Err(panic) => panic,
    };
    let panic = match panic.downcast::<OutOfMemory>() {
        Ok(missing) => {
            return Err(PyMemoryError::new_err(format!("no memory for {} bytes", missing.0)));
        }
        Err(panic) => panic,
    };
    match panic.downcast::<PyErr>() {
        Ok(raised) => Err(*raised),
        Err(panic) => resume_unwind(panic),
    }
}

/// Calls `call_core` and returns its result. Other threads of Python can run in the meantime, since
/// this doesn't hold the interpreter's lock.
///
/// # Errors
/// Fails with TypeError or ValueError for an error of the core, with MemoryError, and with the
/// exception that a signal's handler raises.
pub fn without_lock<T: Send>(
    py: Python<'_>,
    call_core: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(|| guarded(|| call_core().map_err(exception)))
}
