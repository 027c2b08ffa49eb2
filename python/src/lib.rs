//! The extension module `pg_bloom._core`: filters of `pg_bloom_core` as a class of Python.
//!
//! | module | what it is for |
//! |---|---|
//! | `element` | one value of Python as an element |
//! | `elements` | many of them: lists, other iterables, and the two below |
//! | `numpy` | arrays and scalars of numpy |
//! | `columns` | Series of pandas and polars, arrays of pyarrow |
//! | `error` | errors of the core as exceptions |

mod columns;
mod element;
mod elements;
mod error;
mod numpy;

use elements::for_each_element;
use error::{exception, guarded, without_lock};
use pg_bloom_core::memory::List;
use pg_bloom_core::{Builder, DEFAULT_FPR, Layout, Overfull, Request};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};

pyo3::create_exception!(
    pg_bloom,
    OverfullWarning,
    PyUserWarning,
    "A filter has a higher false positive rate than promised."
);

/// What a filter is, apart from its elements: what `bloom_header` returns.
#[pyclass(frozen, get_all, eq, module = "pg_bloom")]
#[derive(PartialEq)]
struct Header {
    layout: &'static str,
    key_kind: String,
    representation: &'static str,
    capacity: Option<u64>,
    target_fpr: f64,
    num_bits: u64,
    num_hashes: u32,
    bytes: usize,
}

#[pymethods]
impl Header {
    fn __repr__(&self) -> String {
        let Header {
            layout,
            key_kind,
            representation,
            capacity,
            target_fpr,
            num_bits,
            num_hashes,
            bytes,
        } = self;
        let capacity = number_or_none(*capacity);
        format!(
            "Header(layout='{layout}', key_kind='{key_kind}', representation='{representation}', capacity={capacity}, \
             target_fpr={target_fpr}, num_bits={num_bits}, num_hashes={num_hashes}, bytes={bytes})"
        )
    }
}

/// A Bloom filter, as the type bloom of PostgreSQL has it, from its bytes or from its text, \x and
/// hexadecimal digits. It never changes.
#[pyclass(frozen, eq, module = "pg_bloom")]
#[derive(PartialEq)]
struct Filter(pg_bloom_core::Filter);

impl Filter {
    /// Returns the filter that `make` returns, after a warning if it is overfull.
    ///
    /// # Errors
    /// Fails as `make` does, with MemoryError, and with the warning where the program makes an
    /// exception of warnings.
    fn made(
        py: Python<'_>,
        make: impl FnOnce() -> pg_bloom_core::Result<pg_bloom_core::Filter> + Send,
    ) -> PyResult<Filter> {
        let filter = without_lock(py, make)?;
        // To count bits takes time: other threads may run.
        if let Some(overfull) = without_lock(py, || Ok(filter.overfull()))? {
            warn(py, &overfull)?;
        }
        Ok(Filter(filter))
    }

    /// Adds elements to a builder, and returns its filter, after a warning if the filter is
    /// overfull. Missing values are skipped.
    ///
    /// # Errors
    /// Fails for a value that can't be an element of this filter, with ValueError for a filter that
    /// is too large, with MemoryError, and with the warning if the program makes exceptions of
    /// warnings.
    fn filled(
        py: Python<'_>,
        mut builder: Builder,
        elements: &Bound<'_, PyAny>,
    ) -> PyResult<Filter> {
        guarded(|| {
            for_each_element(elements, |element| match element {
                Some(element) => builder.add(element).map_err(exception),
                None => Ok(()),
            })
        })?;
        Filter::made(py, || builder.finish())
    }
}

/// Warns that a filter has more elements than its capacity, so that its false positive rate is
/// higher than promised.
///
/// # Errors
/// Fails with the warning if the program makes exceptions of warnings.
fn warn(py: Python<'_>, overfull: &Overfull) -> PyResult<()> {
    let message = format!(
        "bloom filter holds about {} elements, but its capacity is {}: its false positive rate is {:.2e}, not {}",
        overfull.cardinality.round(),
        overfull.capacity,
        overfull.current_fpr,
        overfull.fpr
    );
    PyErr::warn(py, &py.get_type::<OverfullWarning>(), &CString::new(message)?, 1)
}

#[pymethods]
impl Filter {
    #[new]
    fn new(bytes: &Bound<'_, PyAny>) -> PyResult<Filter> {
        let py = bytes.py();
        if let Ok(text) = bytes.cast::<PyString>() {
            let text = element::utf8(text)?;
            return without_lock(py, || pg_bloom_core::Filter::from_hex(text).map(Filter));
        }
        let bytes = element::bytes(bytes).map_err(|_| {
            PyTypeError::new_err(format!(
                "a filter is read from its bytes, or from their text, not from a value of type {}",
                bytes.get_type()
            ))
        })?;
        let stored = bytes.as_bytes();
        without_lock(py, || pg_bloom_core::Filter::parse(List::copy_of(stored).into()).map(Filter))
    }

    /// Returns the filter of these elements, with the bytes that SQL's bloom_agg makes.
    #[staticmethod]
    #[pyo3(signature = (elements, capacity=None, fpr=None, layout=None))]
    fn build(
        py: Python<'_>,
        elements: &Bound<'_, PyAny>,
        capacity: Option<i64>,
        fpr: Option<f64>,
        layout: Option<&str>,
    ) -> PyResult<Filter> {
        let layout_name = layout.unwrap_or("blocked");
        let layout = Layout::from_name(layout_name).ok_or_else(|| {
            PyValueError::new_err(format!(
                "unknown layout \"{layout_name}\": there are \"blocked\", \"classic\" and \"parquet\""
            ))
        })?;
        let request = Request {
            capacity: checked_capacity(capacity)?,
            fpr: fpr.unwrap_or(DEFAULT_FPR),
            layout,
        };
        let builder = without_lock(py, || Builder::new(&request))?;
        Filter::filled(py, builder, elements)
    }

    fn __contains__(&self, element: &Bound<'_, PyAny>) -> PyResult<bool> {
        guarded(|| match element::element(element)? {
            Some(element) => self.0.contains(&element).map_err(exception),
            None => Ok(false),
        })
    }

    /// Returns for each of many elements whether it may be in the filter, as a list of bool; for an
    /// array of numpy as an array of numpy.
    fn contains_many<'py>(&self, elements: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = elements.py();
        let answers = guarded(|| {
            let mut prober = self.0.prober();
            for_each_element(elements, |element| prober.push(element).map_err(exception))?;
            Ok(prober.finish())
        })?;
        if numpy::is_array(elements)? {
            return numpy::array_of_bools(py, &answers);
        }
        Ok(PyList::new(py, answers)?.into_any())
    }

    /// Returns a filter with these elements added.
    fn add_all(&self, py: Python<'_>, elements: &Bound<'_, PyAny>) -> PyResult<Filter> {
        let builder = without_lock(py, || Ok(Builder::from(&self.0)))?;
        Filter::filled(py, builder, elements)
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Filter>) -> PyResult<Filter> {
        let other = other.get();
        Filter::made(py, || self.0.union(&other.0))
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, Filter>) -> PyResult<Filter> {
        let other = other.get();
        without_lock(py, || self.0.intersection(&other.0).map(Filter))
    }

    /// Returns the filter as if it had been built for another capacity; without one, a sparse
    /// filter is sized for the number of its elements.
    #[pyo3(signature = (capacity=None))]
    fn resize(&self, py: Python<'_>, capacity: Option<i64>) -> PyResult<Filter> {
        let capacity = checked_capacity(capacity)?;
        Filter::made(py, || self.0.resize(capacity))
    }

    /// The filter's layout, key kind, sizes and parameters.
    #[getter]
    fn header(&self) -> Header {
        let header = self.0.header();
        Header {
            layout: header.layout.name(),
            key_kind: header.kind.to_string(),
            representation: if self.0.is_list() { "sparse" } else { "dense" },
            capacity: header.capacity.elements(),
            target_fpr: header.fpr,
            num_bits: header.blocks * header.layout.block_bits(),
            num_hashes: header.num_hashes,
            bytes: self.0.as_bytes().len(),
        }
    }

    /// The estimated number of distinct elements.
    #[getter]
    fn cardinality(&self, py: Python<'_>) -> PyResult<f64> {
        without_lock(py, || Ok(self.0.cardinality()))
    }

    /// The false positive rate that the filter has now, by the bits that are set.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
        without_lock(py, || Ok(self.0.current_fpr()))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let stored = self.0.as_bytes();
        PyBytes::new_with(py, stored.len(), |bytes| {
            bytes.copy_from_slice(stored);
            Ok(())
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.as_bytes().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let Header { layout, key_kind, capacity, target_fpr, bytes, .. } = self.header();
        let capacity = number_or_none(capacity);
        format!(
            "<Filter of {key_kind}, capacity {capacity}, fpr {target_fpr}, layout {layout}, {bytes} bytes>"
        )
    }

    /// Pickled as the stored bytes.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Filter>().into_any(), (self.__bytes__(py)?,)))
    }
}

/// Returns a capacity as the core takes it.
///
/// # Errors
/// Fails with ValueError for one that no filter can have.
fn checked_capacity(capacity: Option<i64>) -> PyResult<Option<u64>> {
    capacity
        .map(pg_bloom_core::sizing::check_capacity)
        .transpose()
        .map_err(exception)
}

/// Returns a number, or None, as Python writes it.
fn number_or_none(number: Option<u64>) -> String {
    number.map_or("None".to_owned(), |number| number.to_string())
}

/// Returns the value of Python's own types that equals a value as an element, for adapters: drivers
/// don't know the scalars of numpy. None for a missing value.
#[pyfunction]
fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| element::plain(value))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::install();
    module.add_class::<Filter>()?;
    module.add_class::<Header>()?;
    module.add_function(wrap_pyfunction!(plain, module)?)?;
    module.add("OverfullWarning", module.py().get_type::<OverfullWarning>())
}
