//! Columns of tables: Series of pandas and polars, arrays of pyarrow.
//!
//! Their own conversions to lists of Python drop the nanoseconds of most types of time, without an
//! error. An element would then be another one than the server has, which rounds. So the columns
//! are searched for nanoseconds first.

use crate::element::has_nanoseconds;
use crate::numpy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const NANOSECONDS_OF_MICROSECOND: i64 = 1000;

/// Converts values to a list of Python if their type has a quick way to make one, as a Series of
/// pandas or polars or an array of numpy or pyarrow has. Other values are returned as they are. A
/// missing value is None in the list, except in a Series of float of pandas, where it is NaN.
///
/// # Errors
/// Fails with ValueError for several dimensions and for times with parts of microseconds, and with
/// the exception that the conversion raises.
pub fn as_list<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if numpy::is_array(values)? && numpy::has_times(values)? {
        return numpy::python_times(values);
    }
    refuse_dimensions(values)?;
    if values.hasattr("notna")? && !has_floats_of_numpy(values)? {
        return list_of_pandas(values);
    }
    let module: String = values.get_type().getattr("__module__")?.extract()?;
    if module.starts_with("polars") {
        refuse_nanoseconds_of_polars(values)?;
    } else if module.starts_with("pyarrow") {
        refuse_nanoseconds_of_pyarrow(values)?;
    }
    for conversion in ["tolist", "to_list", "to_pylist"] {
        if values.hasattr(conversion)? {
            return values.call_method0(conversion);
        }
    }
    Ok(values.clone())
}

/// Checks that values have one dimension. Fails with ValueError for more, as a DataFrame has.
fn refuse_dimensions(values: &Bound<'_, PyAny>) -> PyResult<()> {
    // The attribute may be anything, where it isn't a number of dimensions.
    let dimensions: Option<usize> =
        values.getattr("ndim").ok().and_then(|ndim| ndim.extract().ok());
    if dimensions.is_some_and(|dimensions| dimensions != 1) {
        return Err(PyValueError::new_err(
            "elements in an array or a Series must have one dimension",
        ));
    }
    Ok(())
}

/// Returns whether a Series has floats of numpy's types, in which a missing value is NaN.
fn has_floats_of_numpy(values: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module: String = values.getattr("dtype")?.get_type().getattr("__module__")?.extract()?;
    Ok(module.starts_with("numpy") && numpy::kind_of(values)? == "f")
}

/// Converts a Series, an Index or an array of pandas to a list of Python's values, with None for
/// missing ones. Fails with ValueError for nanoseconds in a column of one of pyarrow's types, and
/// with the exceptions that pandas raises.
fn list_of_pandas<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let series = py.import("pandas")?.call_method1("Series", (values,))?;
    // A Series of one of pyarrow's types holds an array of pyarrow.
    if series.getattr("dtype")?.hasattr("pyarrow_dtype")? {
        refuse_nanoseconds_of_pyarrow(&series.getattr("array")?.call_method0("__arrow_array__")?)?;
    }
    let is_there = series.call_method0("notna")?;
    if is_there.call_method0("all")?.is_truthy()? {
        return series.call_method0("tolist");
    }
    series
        .call_method1("astype", ("object",))?
        .call_method1("where", (is_there, py.None()))?
        .call_method0("tolist")
}

/// Checks that a Series of polars has no times with parts of microseconds, also in its lists. Fails
/// with ValueError if it has: polars would cut these off.
fn refuse_nanoseconds_of_polars(series: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut series = series.clone();
    if !series.hasattr("dtype")? {
        return Ok(());
    }
    // The types of lists and arrays have an inner type.
    while series.getattr("dtype")?.hasattr("inner")? {
        series = series.call_method0("explode")?;
    }
    let dtype = series.getattr("dtype")?;
    let is_in_nanoseconds = match dtype.getattr_opt("time_unit")? {
        Some(unit) => unit.eq("ns")?,
        // The type Time has no unit: it is always in nanoseconds.
        None => dtype.str()? == "Time",
    };
    if !is_in_nanoseconds {
        return Ok(());
    }

    let numbers = series.call_method0("to_physical")?;
    let nanoseconds_left = numbers.rem(NANOSECONDS_OF_MICROSECOND)?;
    let has_rest = nanoseconds_left.call_method1("__ne__", (0,))?.call_method0("any")?;
    if has_rest.is_truthy()? {
        return Err(has_nanoseconds("this Series"));
    }
    Ok(())
}

/// Checks that an array of pyarrow has no times with parts of microseconds, also in its lists.
/// Fails with ValueError if it has: pyarrow's own conversion would cut these off.
fn refuse_nanoseconds_of_pyarrow(array: &Bound<'_, PyAny>) -> PyResult<()> {
    // A ChunkedArray is a list of arrays.
    if let Some(chunks) = array.getattr_opt("chunks")? {
        for chunk in chunks.try_iter()? {
            refuse_nanoseconds_of_pyarrow(&chunk?)?;
        }
        return Ok(());
    }
    let Some(dtype) = array.getattr_opt("type")? else {
        return Ok(());
    };
    if dtype.hasattr("value_type")? {
        return refuse_nanoseconds_of_pyarrow(&inner_array(array)?);
    }
    let Some(unit) = dtype.getattr_opt("unit")? else {
        return Ok(());
    };
    if !unit.eq("ns")? {
        return Ok(());
    }

    // `timestamp[ns, tz=UTC]`, for instance, is made by the function `timestamp`. A cast to
    // microseconds fails if it would lose something.
    let name = dtype.str()?.to_string();
    let function = name.split('[').next().expect("a split has a first part");
    let in_microseconds = array.py().import("pyarrow")?.call_method1(function, ("us",))?;
    match array.call_method1("cast", (in_microseconds,)) {
        Err(error) if error.is_instance_of::<PyValueError>(array.py()) => {
            Err(has_nanoseconds("this array"))
        }
        converted => converted.map(|_| ()),
    }
}

/// Returns the array of the values that an array of pyarrow is made of: the members of all lists,
/// for an array of lists; the distinct values, for one that is encoded by a dictionary; and one
/// value for each run, for one that is encoded by runs.
fn inner_array<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if array.hasattr("flatten")? {
        return array.call_method0("flatten");
    }
    match array.getattr_opt("dictionary")? {
        Some(dictionary) => Ok(dictionary),
        None => array.getattr("values"),
    }
}
