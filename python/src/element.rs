//! One value of Python as an element.
//!
//! | in Python | key kind |
//! |---|---|
//! | bool | boolean |
//! | int, and what has `__index__` | integer |
//! | str | text |
//! | bytes, bytearray, memoryview | bytea |
//! | float | float |
//! | decimal.Decimal | numeric |
//! | uuid.UUID | uuid |
//! | datetime.datetime without, with a zone | timestamp, timestamptz |
//! | datetime.date | date |
//! | datetime.time without, with a zone | time, timetz |
//! | datetime.timedelta | interval |
//! | list | array; of lists: of several dimensions |
//!
//! A scalar of numpy is what Python has for it. What pandas has for a missing value is None.

use crate::error::exception;
use crate::numpy;
use pg_bloom_core::memory::List;
use pg_bloom_core::{Array, Element, Numeric};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyType,
};
use std::ffi::{c_char, c_int};

/// The number that `date.toordinal` gives for 2000-01-01, from which PostgreSQL counts days.
const ORDINAL_OF_2000: i32 = 730_120;
const MICROSECONDS_OF_SECOND: i64 = 1_000_000;
const SECONDS_OF_DAY: i64 = 86_400;
const MICROSECONDS_OF_DAY: i64 = SECONDS_OF_DAY * MICROSECONDS_OF_SECOND;
/// PostgreSQL's zones are less than 16 hours from UTC.
const END_OF_OFFSETS: i64 = 16 * 3600;
/// The most dimensions of an array in PostgreSQL.
const MOST_DIMENSIONS: usize = 6;

unsafe extern "C" {
    // In the stable interface since 3.10; CPython 3.9 exports it as well.
    fn PyUnicode_AsUTF8AndSize(
        unicode: *mut ffi::PyObject,
        size: *mut ffi::Py_ssize_t,
    ) -> *const c_char;
    // In the stable interface of all versions: `c_int` becomes not 0 where the number doesn't fit.
    fn PyLong_AsLongLongAndOverflow(value: *mut ffi::PyObject, overflow: *mut c_int) -> i64;
}

/// The types of Python's standard library that its interface in C doesn't have, and the days from
/// which PostgreSQL counts time.
struct Library {
    datetime: Py<PyType>,
    date: Py<PyType>,
    time: Py<PyType>,
    timedelta: Py<PyType>,
    uuid: Py<PyType>,
    decimal: Py<PyType>,
    /// 2000-01-01 as a datetime without a zone.
    epoch: Py<PyAny>,
    /// 2000-01-01 as a datetime in UTC.
    epoch_in_utc: Py<PyAny>,
}

impl Library {
    /// Returns the types, which the first call imports.
    fn get(py: Python<'_>) -> PyResult<&'static Library> {
        static LIBRARY: PyOnceLock<Library> = PyOnceLock::new();
        LIBRARY.get_or_try_init(py, || {
            let module = py.import("datetime")?;
            let import = |name: &str| -> PyResult<Py<PyType>> {
                Ok(module.getattr(name)?.cast_into()?.unbind())
            };
            let datetime = import("datetime")?;
            let utc = module.getattr("timezone")?.getattr("utc")?;
            let epoch = datetime.bind(py).call1((2000, 1, 1))?;
            let epoch_in_utc = datetime.bind(py).call1((2000, 1, 1, 0, 0, 0, 0, utc))?;
            Ok(Library {
                datetime,
                date: import("date")?,
                time: import("time")?,
                timedelta: import("timedelta")?,
                uuid: py.import("uuid")?.getattr("UUID")?.cast_into()?.unbind(),
                decimal: py.import("decimal")?.getattr("Decimal")?.cast_into()?.unbind(),
                epoch: epoch.unbind(),
                epoch_in_utc: epoch_in_utc.unbind(),
            })
        })
    }
}

/// Returns the element of a filter that a value of Python stands for, such as a text for a str;
/// `None` for Python's None and for missing values of numpy and pandas.
///
/// # Errors
/// Fails with TypeError for a value of a type that has no elements, with OverflowError for a number
/// or a date that PostgreSQL's type cannot hold, and with ValueError for a str that isn't Unicode,
/// a time that has nanoseconds or a zone without a fixed offset, and a list that isn't an array.
#[inline]
pub fn element<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<Element<'a>>> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(Some(utf8(text)?.into()));
    }
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(Some(integer(value)?.into()));
    }
    if value.is_none() {
        return Ok(None);
    }
    rarer_element(value)
}

/// Returns the element that a value of Python stands for, if the value is neither a str nor an int
/// nor None, for which [`element`] returns early since they are the most frequent. `None` for a
/// missing value of numpy or pandas. Fails with TypeError for a value that can't be an element, and
/// otherwise as [`element`] does.
fn rarer_element<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<Element<'a>>> {
    if let Some(element) = builtin(value)? {
        return Ok(Some(element));
    }
    let class = value.get_type();
    if class.name()? == "NaTType" || class.name()? == "NAType" {
        return Ok(None);
    }
    if let Some(element) = of_library(value)? {
        return Ok(Some(element));
    }
    if let Some(value) = numpy::python_scalar(value)? {
        return Ok(element(&value)?.map(Element::into_owned));
    }
    if value.hasattr("__index__")? && !numpy::is_array(value)? {
        return Ok(Some(integer(&value.call_method0("__index__")?)?.into()));
    }
    Err(PyTypeError::new_err(format!(
        "a value of type {} cannot be an element of a bloom filter",
        class.name()?
    )))
}

/// Returns the element that a value stands for if it is of one of Python's built-in types (str,
/// bool, float, bytes, bytearray, memoryview, list), or of a type derived from one; `None` for
/// other types. Fails for a list that isn't an array, or whose members can't be elements, and with
/// ValueError for a str that isn't Unicode.
fn builtin<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<Element<'a>>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(utf8(text)?.into()));
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Some(value.is_true().into()));
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(Some(value.value().into()));
    }
    if let Ok(value) = value.cast::<PyBytes>() {
        return Ok(Some(value.as_bytes().into()));
    }
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        return Ok(Some(bytes(value)?.as_bytes().to_vec().into()));
    }
    if let Ok(list) = value.cast::<PyList>() {
        return array(list).map(Some);
    }
    Ok(None)
}

/// Returns the element that a value stands for if it is of a type of Python's standard library:
/// datetime, date, time, timedelta, UUID or Decimal; `None` for other types. Fails with
/// OverflowError for a date, time or number that PostgreSQL's type can't hold, and with ValueError
/// for a time that has nanoseconds or a zone without a fixed offset.
fn of_library<'a>(value: &Bound<'_, PyAny>) -> PyResult<Option<Element<'a>>> {
    let py = value.py();
    let library = Library::get(py)?;
    let is = |class: &Py<PyType>| value.is_instance(class.bind(py));
    // A datetime is an instance of date, too, so it comes first.
    let element = if is(&library.datetime)? {
        timestamp(value, library)?
    } else if is(&library.date)? {
        date(value)?
    } else if is(&library.uuid)? {
        Element::Uuid(value.getattr("bytes")?.extract()?)
    } else if is(&library.decimal)? {
        numeric(value)?.into()
    } else if is(&library.time)? {
        time(value)?
    } else if is(&library.timedelta)? {
        let span = Span::of_timedelta(value)?;
        Element::Interval { months: 0, days: span.days, microseconds: span.microseconds }
    } else {
        return Ok(None);
    };
    Ok(Some(element))
}

/// Returns the value of Python's own types that stands for the same element as a value: 7 for
/// `numpy.int16(7)`. Drivers of PostgreSQL accept it as a parameter. A list is returned as it is,
/// and None for a missing value.
///
/// # Errors
/// Fails with TypeError, OverflowError or ValueError for a value that can't be an element.
pub fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if value.is_instance_of::<PyList>() {
        return Ok(value.clone());
    }
    let Some(element) = element(value)? else {
        return Ok(py.None().into_bound(py));
    };
    match element {
        // The value may be of a derived type, such as an enumeration's or numpy's, of which some
        // drivers send another text.
        Element::Text(text) => Ok(PyString::new(py, &text).into_any()),
        Element::Bytea(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        Element::Integer(integer) => Ok(integer.into_pyobject(py)?.into_any()),
        Element::Float(float) => Ok(PyFloat::new(py, float).into_any()),
        Element::Boolean(boolean) => Ok(PyBool::new(py, boolean).to_owned().into_any()),
        _ => plain_of_library(value),
    }
}

/// Returns the value of the types of [`Library`] that equals a value as an element, such as a
/// datetime for a Timestamp of pandas. A value of these types itself is returned as it is.
fn plain_of_library<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(plain) = numpy::python_scalar(value)? {
        return Ok(plain);
    }
    for conversion_of_pandas in ["to_pydatetime", "to_pytimedelta"] {
        if value.hasattr(conversion_of_pandas)? {
            return value.call_method0(conversion_of_pandas);
        }
    }
    Ok(value.clone())
}

/// Returns the text of a str in UTF-8. Python keeps these bytes as long as the str, so nothing is
/// copied to Rust.
///
/// # Errors
/// Fails with UnicodeEncodeError for a str that has surrogates.
#[inline]
pub fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    let mut size = 0;
    // SAFETY: the argument is a str. Its bytes are UTF-8, never change, and live as long as the
    // str, which is borrowed for the result.
    unsafe {
        let bytes = PyUnicode_AsUTF8AndSize(text.as_ptr(), &mut size);
        if bytes.is_null() {
            return Err(PyErr::fetch(text.py()));
        }
        Ok(std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes.cast(), size as usize)))
    }
}

/// Returns the bytes of an object with the buffer interface.
///
/// # Errors
/// Fails with TypeError for other objects.
pub fn bytes<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    Ok(PyMemoryView::from(value)?.call_method0("tobytes")?.cast_into()?)
}

/// Returns the number that an int, or a value of a type derived from int, has, as 64 bits.
///
/// # Errors
/// Fails with OverflowError for a larger number, and with TypeError for a value that is no number.
#[inline]
fn integer(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let mut overflow = 0;
    // SAFETY: the function takes any object. If it fails, it returns -1 and sets an exception.
    let integer = unsafe { PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
    if overflow != 0 {
        return Err(PyOverflowError::new_err(
            "int is out of range for kind integer, which has 64 bits",
        ));
    }
    // -1 may be the number itself: only an exception tells a failure.
    if integer == -1
        && let Some(error) = PyErr::take(value.py())
    {
        return Err(error);
    }
    Ok(integer)
}

/// Returns the number that a Decimal is. All its NaNs, signalling or not, with or without a sign,
/// are one element.
///
/// # Errors
/// Fails with OverflowError for a number that PostgreSQL's type numeric doesn't have.
fn numeric(decimal: &Bound<'_, PyAny>) -> PyResult<Numeric> {
    let python_text = decimal.str()?;
    let text = utf8(&python_text)?;
    // Python writes `sNaN`, `-NaN` and `NaN123`.
    let is_nan = text.contains('N');
    let number = Numeric::parse(if is_nan { "NaN" } else { text });
    number.ok_or_else(|| PyOverflowError::new_err("Decimal is out of range for kind numeric"))
}

/// Returns the element that a list is, an array. Lists in the list are further dimensions of the
/// array.
///
/// # Errors
/// Fails with TypeError for members of different kinds, and with ValueError for lists of different
/// lengths.
fn array<'a>(list: &Bound<'_, PyList>) -> PyResult<Element<'a>> {
    let mut lengths = List::new();
    let mut members = List::new();
    flatten(list, 0, &mut lengths, &mut members)?;
    Ok(Array::new(lengths.into(), members.into()).map_err(exception)?.into())
}

/// Appends the members of a list, and of the lists in it, to `members`, and the length of the first
/// list of each depth to `lengths`: for `[[1, 2], [3, 4]]`, the members 1 to 4 and the lengths 2,
/// 2. `depth` says in how many other lists this one is, 0 for the outermost.
///
/// # Errors
/// Fails with ValueError for lists of one depth with different lengths, for lists beside other
/// members, and for more than six dimensions, and as [`element`] does for a member.
fn flatten(
    list: &Bound<'_, PyList>,
    depth: usize,
    lengths: &mut List<i32>,
    members: &mut List<Option<Element<'_>>>,
) -> PyResult<()> {
    let not_an_array =
        || PyValueError::new_err("lists in a list must have one length and depth, as an array has");
    let length = i32::try_from(list.len())?;
    match lengths.get(depth) {
        Some(&first_length) if first_length != length => return Err(not_an_array()),
        Some(_) => {}
        // Members were seen before that were no lists.
        None if !members.is_empty() || depth == MOST_DIMENSIONS => return Err(not_an_array()),
        None => lengths.push(length),
    }
    for member in list.iter() {
        if let Ok(inner) = member.cast::<PyList>() {
            flatten(inner, depth + 1, lengths, members)?;
        } else if lengths.len() > depth + 1 {
            // A list was seen before at this depth, beside which no other member may stand.
            return Err(not_an_array());
        } else {
            members.push(element(&member)?.map(Element::into_owned));
        }
    }
    Ok(())
}

/// Returns the element that a date is.
///
/// # Errors
/// Fails with OverflowError for a date that is out of range.
fn date<'a>(date: &Bound<'_, PyAny>) -> PyResult<Element<'a>> {
    let ordinal: i32 = date.call_method0("toordinal")?.extract()?;
    let days = ordinal.checked_sub(ORDINAL_OF_2000);
    Ok(Element::Date(days.ok_or_else(|| PyOverflowError::new_err("date is out of range"))?))
}

/// Returns the element that a datetime stands for: a timestamptz if it has a zone, else a
/// timestamp. Both count microseconds from 2000-01-01.
///
/// # Errors
/// Fails with ValueError for nanoseconds, and for a zone whose offset isn't known or isn't whole
/// seconds, and with OverflowError for a time that is out of range.
fn timestamp<'a>(datetime: &Bound<'_, PyAny>, library: &Library) -> PyResult<Element<'a>> {
    let has_zone = offset_from_utc(datetime)?.is_some();
    let epoch = if has_zone { &library.epoch_in_utc } else { &library.epoch };
    let since_epoch = Span::of_timedelta(&datetime.sub(epoch)?)?;
    let microseconds = i64::from(since_epoch.days)
        .checked_mul(MICROSECONDS_OF_DAY)
        .and_then(|whole_days| whole_days.checked_add(since_epoch.microseconds))
        .ok_or_else(|| PyOverflowError::new_err("datetime is out of range"))?;
    Ok(if has_zone {
        Element::Timestamptz(microseconds)
    } else {
        Element::Timestamp(microseconds)
    })
}

/// Returns the element that a time of day stands for: a timetz if it has a zone, else a time. Both
/// count microseconds from midnight.
///
/// # Errors
/// Fails with ValueError for a zone whose offset isn't known, isn't whole seconds, or is 16 hours
/// or more.
fn time<'a>(time: &Bound<'_, PyAny>) -> PyResult<Element<'a>> {
    let field = |name: &str| -> PyResult<i64> { Ok(time.getattr(name)?.extract::<i32>()?.into()) };
    let minutes = field("hour")? * 60 + field("minute")?;
    let seconds = minutes * 60 + field("second")?;
    let microseconds = seconds * MICROSECONDS_OF_SECOND + field("microsecond")?;
    Ok(match offset_from_utc(time)? {
        None => Element::Time(microseconds),
        // PostgreSQL counts the zone westward.
        Some(offset) if offset.abs() < END_OF_OFFSETS => {
            Element::Timetz { microseconds, zone: i32::try_from(-offset)? }
        }
        Some(_) => {
            return Err(PyValueError::new_err(
                "the zone of a time must be less than 16 hours from UTC",
            ));
        }
    })
}

/// Returns the offset of a datetime's or time's zone from UTC, in seconds, positive to the east;
/// `None` for a value without a zone.
///
/// # Errors
/// Fails with ValueError for a zone whose offset isn't known, as that of a time often depends on
/// the date, or isn't whole seconds.
fn offset_from_utc(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if value.getattr("tzinfo")?.is_none() {
        return Ok(None);
    }
    let offset = value.call_method0("utcoffset")?;
    if offset.is_none() {
        return Err(PyValueError::new_err(
            "the offset of this time's zone depends on the date: give a time with a fixed offset, or a datetime",
        ));
    }
    let offset = Span::of_timedelta(&offset)?;
    if offset.microseconds % MICROSECONDS_OF_SECOND != 0 {
        return Err(PyValueError::new_err("the offset of a zone must be whole seconds"));
    }
    let seconds = offset.microseconds / MICROSECONDS_OF_SECOND;
    Ok(Some(i64::from(offset.days) * SECONDS_OF_DAY + seconds))
}

/// A span of time, as a timedelta has it.
struct Span {
    days: i32,
    /// Less than a day, and not negative.
    microseconds: i64,
}

impl Span {
    /// Reads a timedelta of Python or pandas.
    ///
    /// # Errors
    /// Fails with ValueError for a timedelta of pandas that has nanoseconds.
    fn of_timedelta(timedelta: &Bound<'_, PyAny>) -> PyResult<Span> {
        let field = |name: &str| timedelta.getattr(name)?.extract::<i32>();
        if let Some(nanoseconds) = timedelta.getattr_opt("nanoseconds")?
            && nanoseconds.is_truthy()?
        {
            return Err(has_nanoseconds("this time"));
        }
        let seconds = i64::from(field("seconds")?);
        let microseconds = seconds * MICROSECONDS_OF_SECOND + i64::from(field("microseconds")?);
        Ok(Span { days: field("days")?, microseconds })
    }
}

/// Returns the ValueError for a time with nanoseconds, named by `what`. The server would round it
/// to microseconds, and Python would cut the rest off, which makes another element.
#[cold]
pub fn has_nanoseconds(what: &str) -> PyErr {
    PyValueError::new_err(format!(
        "elements have microseconds, and {what} has nanoseconds: round it first"
    ))
}
