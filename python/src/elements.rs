//! Many values of Python as elements: a list or another iterable, an array of numpy, a Series of
//! pandas or polars, an array of pyarrow.

use crate::columns;
use crate::element::element;
use crate::numpy;
use pg_bloom_core::Element;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString};

/// Elements that are read before other threads and handlers of signals get a turn.
pub const ELEMENTS_BETWEEN_PAUSES: usize = 1 << 14;

/// Calls `add` with the element that each of many values stands for, in order; with `None` for a
/// missing value. `values` is a list or another iterable, an array of numpy or pyarrow, or a Series
/// of pandas or polars.
///
/// # Errors
/// Fails as [`element`] does for a value, and if `add` does; with TypeError for one str or bytes
/// and for a value that isn't iterable; and with the exception that a signal's handler raises.
pub fn for_each_element(
    values: &Bound<'_, PyAny>,
    mut add: impl FnMut(Option<&Element<'_>>) -> PyResult<()>,
) -> PyResult<()> {
    refuse_one_value(values)?;
    if numpy::is_array(values)? && numpy::for_each_fast(values, &mut add)? {
        return Ok(());
    }

    let values = columns::as_list(values)?;
    // A list is read in place. It may shrink meanwhile: its iterator then ends.
    if let Ok(list) = values.cast::<PyList>() {
        for (i, value) in list.iter().enumerate() {
            pause(values.py(), i)?;
            add(element(&value)?.as_ref())?;
        }
        return Ok(());
    }
    for (i, value) in values.try_iter()?.enumerate() {
        pause(values.py(), i)?;
        add(element(&value?)?.as_ref())?;
    }
    Ok(())
}

/// Checks that the caller hasn't given one str or bytes as many elements: Python would take its
/// characters or numbers for the elements, which is hardly ever meant. Fails with TypeError if so.
fn refuse_one_value(values: &Bound<'_, PyAny>) -> PyResult<()> {
    if values.is_instance_of::<PyString>()
        || values.is_instance_of::<PyBytes>()
        || values.is_instance_of::<PyByteArray>()
        || values.is_instance_of::<PyMemoryView>()
    {
        return Err(PyTypeError::new_err(format!(
            "elements must be given as a list or another iterable, not as one {}",
            values.get_type().name()?
        )));
    }
    Ok(())
}

/// Lets other threads and handlers of signals run if `elements_done` is the last of
/// [`ELEMENTS_BETWEEN_PAUSES`] elements; otherwise does nothing.
///
/// # Errors
/// Fails with the exception that a handler raises.
#[inline]
pub fn pause(py: Python<'_>, elements_done: usize) -> PyResult<()> {
    if elements_done % ELEMENTS_BETWEEN_PAUSES == ELEMENTS_BETWEEN_PAUSES - 1 {
        py.detach(|| ());
        return py.check_signals();
    }
    Ok(())
}
