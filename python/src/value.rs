//! Values of Python as elements.
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

use crate::error::refuse;
use pg_bloom_core::{Array, Element, Numeric};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    IntoPyDict, PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PySlice,
    PyString, PyType,
};
use std::ffi::{c_char, c_int};

/// Days from the first of January of year 1, which is day 1, to that of 2000.
const DAYS_TO_2000: i32 = 730_120;
const MICROSECONDS_OF_DAY: i64 = 86_400_000_000;
/// Elements that are read until other threads may run.
const CHUNK: usize = 1 << 14;
/// The most dimensions of an array of PostgreSQL.
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

/// The types that Python's interface in C doesn't have, and days from which time is counted.
struct Imported {
    datetime: Py<PyType>,
    date: Py<PyType>,
    time: Py<PyType>,
    timedelta: Py<PyType>,
    uuid: Py<PyType>,
    decimal: Py<PyType>,
    /// 2000-01-01, without a zone and in UTC.
    epochs: [Py<PyAny>; 2],
}

impl Imported {
    fn get(py: Python<'_>) -> PyResult<&'static Imported> {
        static IMPORTED: PyOnceLock<Imported> = PyOnceLock::new();
        IMPORTED.get_or_try_init(py, || {
            let module = py.import("datetime")?;
            let import = |name: &str| -> PyResult<Py<PyType>> {
                Ok(module.getattr(name)?.cast_into()?.unbind())
            };
            let datetime = import("datetime")?;
            let utc = module.getattr("timezone")?.getattr("utc")?;
            let naive = datetime.bind(py).call1((2000, 1, 1))?;
            let aware = datetime.bind(py).call1((2000, 1, 1, 0, 0, 0, 0, utc))?;
            Ok(Imported {
                datetime,
                date: import("date")?,
                time: import("time")?,
                timedelta: import("timedelta")?,
                uuid: py.import("uuid")?.getattr("UUID")?.cast_into()?.unbind(),
                decimal: py.import("decimal")?.getattr("Decimal")?.cast_into()?.unbind(),
                epochs: [naive.unbind(), aware.unbind()],
            })
        })
    }
}

/// The element that a value is; `None` for Python's None.
///
/// # Errors
/// TypeError for a value of a type that is no element; OverflowError for a number that no filter
/// has; ValueError for a str that isn't Unicode, and for a list that isn't an array.
#[inline]
pub fn element<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<Element<'a>>> {
    Ok(Some(if let Ok(text) = value.cast_exact::<PyString>() {
        utf8(text)?.into()
    } else if value.is_exact_instance_of::<PyInt>() {
        integer(value)?.into()
    } else if value.is_none() {
        return Ok(None);
    } else {
        return other(value);
    }))
}

/// The text of a str, which keeps it.
#[inline]
pub fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    let mut size = 0;
    // SAFETY: a str; the bytes are the str's own for as long as it lives, are UTF-8, and never
    // change.
    unsafe {
        let bytes = PyUnicode_AsUTF8AndSize(text.as_ptr(), &mut size);
        if bytes.is_null() {
            return Err(PyErr::fetch(text.py()));
        }
        Ok(std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes.cast(), size as usize)))
    }
}

#[inline]
fn integer(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let mut overflow = 0;
    // SAFETY: takes any object, and sets an error if it returns -1 without overflow.
    let integer = unsafe { PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
    if overflow != 0 {
        return Err(PyOverflowError::new_err(
            "int is out of range for kind integer, which has 64 bits",
        ));
    }
    let error = if integer == -1 { PyErr::take(value.py()) } else { None };
    error.map_or(Ok(integer), Err)
}

fn other<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<Element<'a>>> {
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
    let class = value.get_type();
    if class.name()? == "NaTType" || class.name()? == "NAType" {
        return Ok(None);
    }
    if let Some(element) = imported(value)? {
        return Ok(Some(element));
    }
    if let Some(value) = scalar_of_numpy(value)? {
        return Ok(element(&value)?.map(Element::into_owned));
    }
    if value.hasattr("__index__")? && !is_of_numpy(value)? {
        return Ok(Some(integer(&value.call_method0("__index__")?)?.into()));
    }
    Err(PyTypeError::new_err(format!(
        "a value of type {} cannot be an element of a bloom filter",
        class.name()?
    )))
}

/// The element that a value of a type of Python's library is.
fn imported<'a>(value: &Bound<'_, PyAny>) -> PyResult<Option<Element<'a>>> {
    let py = value.py();
    let known = Imported::get(py)?;
    let is = |of: &Py<PyType>| value.is_instance(of.bind(py));
    Ok(Some(if is(&known.datetime)? {
        moment(value, known)?
    } else if is(&known.date)? {
        let days = value
            .call_method0("toordinal")?
            .extract::<i32>()?
            .checked_sub(DAYS_TO_2000);
        Element::Date(days.ok_or_else(|| PyOverflowError::new_err("date is out of range"))?)
    } else if is(&known.uuid)? {
        Element::Uuid(value.getattr("bytes")?.extract()?)
    } else if is(&known.decimal)? {
        let text = value.str()?;
        let text = utf8(&text)?;
        // Signalling NaNs, and those with a sign and digits, are NaN.
        let number = Numeric::parse(if text.contains('N') { "NaN" } else { text });
        number
            .ok_or_else(|| PyOverflowError::new_err("Decimal is out of range for kind numeric"))?
            .into()
    } else if is(&known.time)? {
        time(value)?
    } else if is(&known.timedelta)? {
        let (days, microseconds) = days_and_microseconds(value)?;
        Element::Interval { months: 0, days, microseconds }
    } else {
        return Ok(None);
    }))
}

/// The bytes of an object that has some.
///
/// # Errors
/// TypeError for others.
pub fn bytes<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    Ok(PyMemoryView::from(value)?.call_method0("tobytes")?.cast_into()?)
}

/// Of a timedelta.
///
/// # Errors
/// ValueError for one of pandas with nanoseconds.
fn days_and_microseconds(value: &Bound<'_, PyAny>) -> PyResult<(i32, i64)> {
    let part = |name: &str| value.getattr(name)?.extract::<i32>();
    if let Some(nanoseconds) = value.getattr_opt("nanoseconds")?
        && nanoseconds.is_truthy()?
    {
        return Err(PyValueError::new_err(
            "elements have microseconds, and this time has nanoseconds",
        ));
    }
    Ok((part("days")?, i64::from(part("seconds")?) * 1_000_000 + i64::from(part("microseconds")?)))
}

/// The offset of a datetime or time from UTC, in seconds; `None` without a zone.
///
/// # Errors
/// ValueError for a zone whose offset isn't known, or has less than seconds.
fn offset(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if value.getattr("tzinfo")?.is_none() {
        return Ok(None);
    }
    let offset = value.call_method0("utcoffset")?;
    if offset.is_none() {
        return Err(PyValueError::new_err(
            "the offset of this time's zone depends on the date: give a time with a fixed offset, or a datetime",
        ));
    }
    let (days, microseconds) = days_and_microseconds(&offset)?;
    if microseconds % 1_000_000 != 0 {
        return Err(PyValueError::new_err("the offset of a zone must be whole seconds"));
    }
    Ok(Some(i64::from(days) * 86_400 + microseconds / 1_000_000))
}

/// A datetime.
fn moment<'a>(value: &Bound<'_, PyAny>, known: &Imported) -> PyResult<Element<'a>> {
    let has_zone = offset(value)?.is_some();
    let (days, microseconds) =
        days_and_microseconds(&value.sub(&known.epochs[usize::from(has_zone)])?)?;
    let since = i64::from(days)
        .checked_mul(MICROSECONDS_OF_DAY)
        .and_then(|since| since.checked_add(microseconds));
    let since = since.ok_or_else(|| PyOverflowError::new_err("datetime is out of range"))?;
    Ok(if has_zone { Element::Timestamptz(since) } else { Element::Timestamp(since) })
}

fn time<'a>(value: &Bound<'_, PyAny>) -> PyResult<Element<'a>> {
    let part = |name: &str| Ok::<_, PyErr>(i64::from(value.getattr(name)?.extract::<i32>()?));
    let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
    let since = seconds * 1_000_000 + part("microsecond")?;
    Ok(match offset(value)? {
        None => Element::Time(since),
        Some(offset) => Element::Timetz { microseconds: since, zone: i32::try_from(-offset)? },
    })
}

fn array<'a>(list: &Bound<'_, PyList>) -> PyResult<Element<'a>> {
    let (mut lengths, mut members) = (Vec::new(), Vec::new());
    flatten(list, 0, &mut lengths, &mut members)?;
    Ok(Array::new(lengths, members).map_err(refuse)?.into())
}

/// Appends the members of a list, which is `depth` deep in others. Lists of one depth have one
/// length.
fn flatten(
    list: &Bound<'_, PyList>,
    depth: usize,
    lengths: &mut Vec<i32>,
    members: &mut Vec<Option<Element<'_>>>,
) -> PyResult<()> {
    let ragged =
        || PyValueError::new_err("lists in a list must have one length and depth, as an array has");
    let length = i32::try_from(list.len())?;
    match lengths.get(depth) {
        Some(&known) if known != length => return Err(ragged()),
        Some(_) => {}
        // Members were seen before that were no lists.
        None if !members.is_empty() || depth == MOST_DIMENSIONS => return Err(ragged()),
        None => lengths.push(length),
    }
    for member in list.iter() {
        if let Ok(inner) = member.cast::<PyList>() {
            flatten(inner, depth + 1, lengths, members)?;
        } else if lengths.len() > depth + 1 {
            return Err(ragged());
        } else {
            members.push(element(&member)?.map(Element::into_owned));
        }
    }
    Ok(())
}

/// Calls `work` with the element that each of many values is, in order. A list is read in place; an
/// array of numpy, a Series of pandas or polars and the like as a list.
///
/// # Errors
/// Those of [`element`] and of `work`; TypeError for what isn't iterable.
pub fn each(
    values: &Bound<'_, PyAny>,
    mut work: impl FnMut(Option<&Element<'_>>) -> PyResult<()>,
) -> PyResult<()> {
    if values.is_instance_of::<PyString>() || values.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(
            "elements must be given as a list or another iterable, not as one str or bytes",
        ));
    }
    if is_of_numpy(values)? && each_of_numpy(values, &mut work)? {
        return Ok(());
    }
    let values = listed(values)?;
    if let Ok(list) = values.cast::<PyList>() {
        return list.iter().enumerate().try_for_each(|(i, value)| {
            pause(values.py(), i)?;
            work(element(&value)?.as_ref())
        });
    }
    for (i, value) in values.try_iter()?.enumerate() {
        pause(values.py(), i)?;
        work(element(&value?)?.as_ref())?;
    }
    Ok(())
}

/// Lets other threads run now and then, and handlers of signals.
#[inline]
fn pause(py: Python<'_>, done: usize) -> PyResult<()> {
    if done % CHUNK == CHUNK - 1 {
        py.detach(|| ());
        return py.check_signals();
    }
    Ok(())
}

/// Does the same for an array of numpy whose integers or texts can be read as bytes. Returns false
/// for another one.
fn each_of_numpy(
    values: &Bound<'_, PyAny>,
    work: &mut impl FnMut(Option<&Element<'_>>) -> PyResult<()>,
) -> PyResult<bool> {
    let dtype = values.getattr("dtype")?;
    if values.getattr("ndim")?.extract::<usize>()? != 1 {
        return Err(PyValueError::new_err("an array of elements must have one dimension"));
    }
    let (kind, width): (char, usize) =
        (dtype.getattr("kind")?.extract()?, dtype.getattr("itemsize")?.extract()?);
    let (as_type, width) = match kind {
        'i' | 'u' if width < 8 || kind == 'i' => ("<i8".to_owned(), 8),
        'U' if width > 0 => (format!("<U{}", width / 4), width),
        _ => return Ok(false),
    };
    let mut text = String::new();
    for start in (0..values.len()?).step_by(CHUNK) {
        pause(values.py(), start + CHUNK - 1)?;
        let chunk = values.get_item(PySlice::new(
            values.py(),
            start as isize,
            (start + CHUNK) as isize,
            1,
        ))?;
        let chunk = chunk.call_method1("astype", (&as_type,))?.call_method0("tobytes")?;
        for item in bytes(&chunk)?.as_bytes().chunks_exact(width) {
            if kind == 'U' {
                decode(item, &mut text)?;
                work(Some(&text.as_str().into()))?;
            } else {
                work(
                    item.first_chunk()
                        .map(|item| i64::from_le_bytes(*item).into())
                        .as_ref(),
                )?;
            }
        }
    }
    Ok(true)
}

/// Decodes a text in UTF-32, little-endian, that ends before the zeros at its end.
fn decode(item: &[u8], text: &mut String) -> PyResult<()> {
    text.clear();
    let characters = item.as_chunks::<4>().0;
    let length = characters
        .iter()
        .rposition(|character| *character != [0; 4])
        .map_or(0, |last| last + 1);
    let characters = &characters[..length];
    if characters
        .iter()
        .fold(0, |bits, character| bits | u32::from_le_bytes(*character))
        < 0x80
    {
        let mut ascii = std::mem::take(text).into_bytes();
        ascii.extend(characters.iter().map(|character| character[0]));
        *text = String::from_utf8(ascii).expect("ASCII is UTF-8");
        return Ok(());
    }
    for character in characters {
        let character = char::from_u32(u32::from_le_bytes(*character));
        text.push(
            character
                .ok_or_else(|| PyValueError::new_err("str is not Unicode: it has surrogates"))?,
        );
    }
    Ok(())
}

/// Whether values are an array of numpy, whose answers are one as well.
///
/// # Errors
/// What looking at its type raises.
pub fn is_of_numpy(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = values.get_type();
    Ok(class.name()? == "ndarray" && class.module()? == "numpy")
}

/// A scalar of numpy as Python's value, if that is one.
fn scalar_of_numpy<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.get_type().module()? != "numpy" || is_of_numpy(value)? || !value.hasattr("dtype")? {
        return Ok(None);
    }
    let size: usize = value.getattr("itemsize")?.extract()?;
    match kind_of(value)?.as_str() {
        "M" | "m" if value.str()? == "NaT" => Ok(Some(value.py().None().into_bound(value.py()))),
        "M" | "m" => times(&value.call_method1("reshape", (1,))?)?.get_item(0).map(Some),
        "b" | "i" | "u" | "f" if size <= 8 => value.call_method0("item").map(Some),
        _ => Ok(None),
    }
}

/// What isn't a list but can be made one quickly, as a list. What pandas has for a missing value is
/// None there, except in a Series of float, where it is NaN.
fn listed<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_of_numpy(values)? && ["M", "m"].contains(&kind_of(values)?.as_str()) {
        return times(values);
    }
    if values
        .getattr("ndim")
        .ok()
        .and_then(|ndim| ndim.extract().ok())
        .is_some_and(|ndim: usize| ndim != 1)
    {
        return Err(PyValueError::new_err(
            "elements in an array or a Series must have one dimension",
        ));
    }
    if values.hasattr("notna")? && !is_float_of_numpy(values)? {
        let values = values.py().import("pandas")?.call_method1("Series", (values,))?;
        let there = values.call_method0("notna")?;
        if there.call_method0("all")?.is_truthy()? {
            return values.call_method0("tolist");
        }
        let values = values
            .call_method1("astype", ("object",))?
            .call_method1("where", (there, values.py().None()))?;
        return values.call_method0("tolist");
    }
    refuse_nanoseconds_of_polars(values)?;
    for method in ["tolist", "to_list"] {
        if values.hasattr(method)? {
            return values.call_method0(method);
        }
    }
    Ok(values.clone())
}

/// A list of a Series of polars has microseconds.
///
/// # Errors
/// ValueError for less.
fn refuse_nanoseconds_of_polars<'py>(values: &Bound<'py, PyAny>) -> PyResult<()> {
    let Some(dtype) = values.getattr_opt("dtype")? else {
        return Ok(());
    };
    if !dtype
        .getattr_opt("time_unit")?
        .is_some_and(|unit| unit.eq("ns").unwrap_or(false))
    {
        return Ok(());
    }
    let cast = |values: &Bound<'py, PyAny>, unit: &str| {
        values.getattr("dt")?.call_method1("cast_time_unit", (unit,))
    };
    if values
        .call_method1("equals", (cast(&cast(values, "us")?, "ns")?,))?
        .is_truthy()?
    {
        return Ok(());
    }
    Err(PyValueError::new_err("elements have microseconds, and these times have nanoseconds"))
}

/// Whether a Series has floats as numpy has them: there, a missing value is NaN.
fn is_float_of_numpy(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module: String = values.getattr("dtype")?.get_type().getattr("__module__")?.extract()?;
    Ok(module.starts_with("numpy") && kind_of(values)? == "f")
}

/// The kind of an array's type, as numpy names it.
fn kind_of(values: &Bound<'_, PyAny>) -> PyResult<String> {
    values.getattr("dtype")?.getattr("kind")?.extract()
}

/// An array of numpy of dates, timestamps or durations, as a list of what Python has for them. Days
/// and longer are dates.
fn times<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let numpy = py.import("numpy")?;
    let dtype = values.getattr("dtype")?;
    let (unit, _): (String, usize) = numpy.call_method1("datetime_data", (&dtype,))?.extract()?;
    let is_date = kind_of(values)? == "M";
    let as_type = match (is_date, unit.as_str()) {
        (true, "D" | "W" | "M" | "Y") => "<M8[D]",
        (true, _) => "<M8[us]",
        (false, "M" | "Y" | "generic") => {
            return Err(PyTypeError::new_err(format!("a timedelta64[{unit}] has no fixed length")));
        }
        (false, _) => "<m8[us]",
    };
    let refused = || {
        PyValueError::new_err(format!(
            "{dtype} has values out of range, or with less than microseconds"
        ))
    };
    // Newer numpy raises this error itself.
    let overflow =
        |error: PyErr| if error.is_instance_of::<PyOverflowError>(py) { refused() } else { error };
    let converted = values.call_method1("astype", (as_type,)).map_err(overflow)?;
    let back = converted.call_method1("astype", (&dtype,)).map_err(overflow)?;
    let arguments = [("equal_nan", true)].into_py_dict(py)?;
    let is_same: bool = numpy
        .call_method("array_equal", (values, back), Some(&arguments))?
        .extract()?;
    let list = converted.call_method0("tolist")?;
    // What Python has no date for is a number there.
    if !is_same
        || list
            .cast::<PyList>()?
            .iter()
            .any(|value| value.is_instance_of::<PyInt>())
    {
        return Err(refused());
    }
    Ok(list)
}
