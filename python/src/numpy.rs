//! Arrays and scalars of numpy. Nothing here needs numpy to be installed: its objects are told by
//! their types' names.

use crate::element::bytes;
use crate::elements::{ELEMENTS_BETWEEN_PAUSES, pause};
use pg_bloom_core::Element;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyInt, PyList, PySlice};

/// Bytes of each character of a text in an array of numpy, which are UTF-32.
const BYTES_OF_CHARACTER: usize = 4;

/// Returns whether values are an array of numpy.
///
/// # Errors
/// Fails with the exception that reading the type's name raises.
pub fn is_array(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = values.get_type();
    Ok(class.name()? == "ndarray" && class.module()? == "numpy")
}

/// Returns the kind of the members of an array or a scalar, as numpy names it: `i` for integers,
/// `f` for floats, `M` for dates and timestamps, `m` for durations.
pub fn kind_of(values: &Bound<'_, PyAny>) -> PyResult<String> {
    values.getattr("dtype")?.getattr("kind")?.extract()
}

/// Returns whether an array or a scalar of numpy has dates, timestamps or durations.
pub fn has_times(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(matches!(kind_of(values)?.as_str(), "M" | "m"))
}

/// Returns a new array of numpy, of type bool, with these answers.
pub fn array_of_bools<'py>(py: Python<'py>, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new_with(py, answers.len(), |bytes| {
        for (byte, answer) in bytes.iter_mut().zip(answers) {
            *byte = u8::from(*answer);
        }
        Ok(())
    })?;
    let array = py.import("numpy")?.call_method1("frombuffer", (bytes, "?"))?;
    // An array over bytes can't be changed; a copy can.
    array.call_method0("copy")
}

/// Converts a scalar of numpy to Python's own value, such as an int for `numpy.int16(7)`, and None
/// for `NaT`, a missing time. Returns Rust's `None` for a value that isn't a scalar of numpy, and
/// for a scalar that has no equal in Python, such as a longdouble.
///
/// # Errors
/// Fails with ValueError for nanoseconds and for dates that Python doesn't have, and with TypeError
/// for durations of months and years.
pub fn python_scalar<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.get_type().module()? != "numpy" || is_array(value)? || !value.hasattr("dtype")? {
        return Ok(None);
    }
    let size: usize = value.getattr("itemsize")?.extract()?;
    match kind_of(value)?.as_str() {
        "M" | "m" if value.str()? == "NaT" => Ok(Some(value.py().None().into_bound(value.py()))),
        "M" | "m" => {
            let array_of_one = value.call_method1("reshape", (1,))?;
            python_times(&array_of_one)?.get_item(0).map(Some)
        }
        "b" | "i" | "u" | "f" if size <= 8 => value.call_method0("item").map(Some),
        _ => Ok(None),
    }
}

/// Calls `add` with each element of an array of numpy that has integers or texts, and returns true.
/// The array is read as bytes, which is quicker than making a value of Python of each element.
/// Returns false, and calls nothing, for arrays of other types.
///
/// # Errors
/// Fails if `add` does, with ValueError for an array of several dimensions and for a text that has
/// surrogates, and with the exception that a signal's handler raises.
pub fn for_each_fast(
    array: &Bound<'_, PyAny>,
    add: &mut impl FnMut(Option<&Element<'_>>) -> PyResult<()>,
) -> PyResult<bool> {
    if array.getattr("ndim")?.extract::<usize>()? != 1 {
        return Err(PyValueError::new_err("an array of elements must have one dimension"));
    }
    let size: usize = array.getattr("dtype")?.getattr("itemsize")?.extract()?;
    match kind_of(array)?.as_str() {
        "i" => for_each_integer(array, add)?,
        // An integer of 64 bits without a sign may be too large for an element.
        "u" if size < 8 => for_each_integer(array, add)?,
        "U" if size > 0 => for_each_text(array, size, add)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Calls `add` with each element of an array of integers of up to 64 bits.
///
/// # Errors
/// Fails as `add` does, and with the exception that a handler of a signal raises.
fn for_each_integer(
    array: &Bound<'_, PyAny>,
    add: &mut impl FnMut(Option<&Element<'_>>) -> PyResult<()>,
) -> PyResult<()> {
    for_each_chunk(array, "<i8", |bytes| {
        for integer in bytes.as_chunks::<8>().0 {
            add(Some(&i64::from_le_bytes(*integer).into()))?;
        }
        Ok(())
    })
}

/// Calls `add` with each element of an array of texts of numpy. Each text takes `size` bytes, in
/// UTF-32, and is filled up with zeros.
///
/// # Errors
/// Fails if `add` does, with ValueError for a text that has surrogates, and with the exception that
/// a signal's handler raises.
fn for_each_text(
    array: &Bound<'_, PyAny>,
    size: usize,
    add: &mut impl FnMut(Option<&Element<'_>>) -> PyResult<()>,
) -> PyResult<()> {
    let dtype = format!("<U{}", size / BYTES_OF_CHARACTER);
    let mut text = String::new();
    for_each_chunk(array, &dtype, |bytes| {
        for characters in bytes.chunks_exact(size) {
            decode_utf32(characters, &mut text)?;
            add(Some(&text.as_str().into()))?;
        }
        Ok(())
    })
}

/// Converts an array of numpy to its type `dtype`, some members at a time, and calls `read` with
/// the bytes of these. Between them, other threads and handlers of signals can run.
///
/// # Errors
/// Fails if `read` does, and with the exception that a signal's handler raises.
fn for_each_chunk(
    array: &Bound<'_, PyAny>,
    dtype: &str,
    mut read: impl FnMut(&[u8]) -> PyResult<()>,
) -> PyResult<()> {
    let py = array.py();
    for start in (0..array.len()?).step_by(ELEMENTS_BETWEEN_PAUSES) {
        let end = start + ELEMENTS_BETWEEN_PAUSES;
        pause(py, end - 1)?;
        let chunk = array.get_item(PySlice::new(py, start as isize, end as isize, 1))?;
        let chunk_bytes = chunk.call_method1("astype", (dtype,))?.call_method0("tobytes")?;
        read(bytes(&chunk_bytes)?.as_bytes())?;
    }
    Ok(())
}

/// Decodes a text that is given in UTF-32, little-endian, into `text`, in place of its contents.
/// Zeros at the end aren't part of the text: numpy fills up texts with them.
///
/// # Errors
/// Fails with ValueError for surrogates.
fn decode_utf32(bytes: &[u8], text: &mut String) -> PyResult<()> {
    let padded_characters = bytes.as_chunks::<BYTES_OF_CHARACTER>().0;
    let last = padded_characters.iter().rposition(|character| *character != [0; 4]);
    let characters = match last {
        Some(last) => &padded_characters[..=last],
        None => &[],
    };

    text.clear();
    let all_bits = characters
        .iter()
        .fold(0, |bits, character| bits | u32::from_le_bytes(*character));
    if all_bits < 0x80 {
        // ASCII, as most texts are, is copied byte by byte.
        let mut ascii = std::mem::take(text).into_bytes();
        ascii.extend(characters.iter().map(|character| character[0]));
        *text = String::from_utf8(ascii).expect("ASCII is UTF-8");
        return Ok(());
    }
    for character in characters {
        let character = char::from_u32(u32::from_le_bytes(*character))
            .ok_or_else(|| PyValueError::new_err("str is not Unicode: it has surrogates"))?;
        text.push(character);
    }
    Ok(())
}

/// Converts an array of dates, timestamps or durations of numpy to a list of Python's values, with
/// None for `NaT`, a missing one. Times whose unit is a day or longer become dates.
///
/// # Errors
/// Fails with ValueError for nanoseconds that aren't whole microseconds and for dates that Python
/// doesn't have, and with TypeError for durations of months and years.
pub fn python_times<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let numpy = py.import("numpy")?;
    let dtype = array.getattr("dtype")?;
    let (unit, _): (String, usize) = numpy.call_method1("datetime_data", (&dtype,))?.extract()?;
    let has_dates = kind_of(array)? == "M";
    let python_dtype = match (has_dates, unit.as_str()) {
        (true, "D" | "W" | "M" | "Y") => "<M8[D]",
        (true, _) => "<M8[us]",
        (false, "M" | "Y" | "generic") => {
            return Err(PyTypeError::new_err(format!("a timedelta64[{unit}] has no fixed length")));
        }
        (false, _) => "<m8[us]",
    };
    let out_of_range = || {
        PyValueError::new_err(format!(
            "{dtype} has values out of range, or with less than microseconds"
        ))
    };
    // Newer versions of numpy raise this error themselves.
    let with_same_message = |error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(py) { out_of_range() } else { error }
    };

    // If a conversion there and back gives an equal array, nothing was lost.
    let converted = array
        .call_method1("astype", (python_dtype,))
        .map_err(with_same_message)?;
    let back = converted
        .call_method1("astype", (&dtype,))
        .map_err(with_same_message)?;
    let nat_is_itself = [("equal_nan", true)].into_py_dict(py)?;
    let is_same: bool = numpy
        .call_method("array_equal", (array, back), Some(&nat_is_itself))?
        .extract()?;
    if !is_same {
        return Err(out_of_range());
    }

    // Python has no date for the years before 1 and after 9999: numpy gives a number.
    let list = converted.call_method0("tolist")?;
    for time in list.cast::<PyList>()? {
        if time.is_instance_of::<PyInt>() {
            return Err(out_of_range());
        }
    }
    Ok(list)
}
