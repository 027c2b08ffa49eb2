//! The extension module `pg_bloom._core`: filters of `pg_bloom_core` as a class of Python.

mod error;
mod value;

use error::{guarded, outside, refuse};
use pg_bloom_core::{Builder, DEFAULT_FPR, Layout, Request};
use pyo3::exceptions::{PyUserWarning, PyValueError};
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
        let capacity = capacity.map_or("None".into(), |capacity| capacity.to_string());
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
    /// A filter that was built, or merged, with a warning if it is overfull.
    fn checked(
        py: Python<'_>,
        work: impl FnOnce() -> pg_bloom_core::Result<pg_bloom_core::Filter> + Send,
    ) -> PyResult<Filter> {
        let (overfull, filter) = outside(py, || work().map(|filter| (filter.overfull(), filter)))?;
        if let Some(over) = overfull {
            let (has, capacity) = (over.cardinality.round(), over.capacity);
            let message = format!(
                "bloom filter holds about {has} elements, but its capacity is {capacity}: its false positive rate is \
                 {:.2e}, not {}",
                over.current_fpr, over.fpr
            );
            PyErr::warn(py, &py.get_type::<OverfullWarning>(), &CString::new(message)?, 1)?;
        }
        Ok(Filter(filter))
    }

    fn fill(py: Python<'_>, mut builder: Builder, elements: &Bound<'_, PyAny>) -> PyResult<Filter> {
        guarded(|| {
            value::each(elements, |element| {
                element.map_or(Ok(()), |element| builder.add(element)).map_err(refuse)
            })
        })?;
        Filter::checked(py, || builder.finish())
    }
}

#[pymethods]
impl Filter {
    #[new]
    fn new(bytes: &Bound<'_, PyAny>) -> PyResult<Filter> {
        let py = bytes.py();
        if let Ok(text) = bytes.cast::<PyString>() {
            let text = value::utf8(text)?;
            return outside(py, || pg_bloom_core::Filter::from_hex(text).map(Filter));
        }
        let bytes = value::bytes(bytes)?;
        let stored = bytes.as_bytes();
        outside(py, || {
            pg_bloom_core::Filter::parse(pg_bloom_core::memory::copy(stored)).map(Filter)
        })
    }

    /// The filter of these elements, the same bytes as SQL's bloom_agg makes.
    #[staticmethod]
    #[pyo3(signature = (elements, capacity=None, fpr=None, layout=None))]
    fn build(
        py: Python<'_>,
        elements: &Bound<'_, PyAny>,
        capacity: Option<i64>,
        fpr: Option<f64>,
        layout: Option<&str>,
    ) -> PyResult<Filter> {
        let capacity = capacity
            .map(pg_bloom_core::sizing::check_capacity)
            .transpose()
            .map_err(refuse)?;
        let layout = layout.unwrap_or("blocked");
        let layout = Layout::from_name(layout).ok_or_else(|| {
            PyValueError::new_err(format!(
                "unknown layout \"{layout}\": there are \"blocked\", \"classic\" and \"parquet\""
            ))
        })?;
        let request = Request { capacity, fpr: fpr.unwrap_or(DEFAULT_FPR), layout };
        let builder = outside(py, || Builder::new(&request))?;
        Filter::fill(py, builder, elements)
    }

    fn __contains__(&self, element: &Bound<'_, PyAny>) -> PyResult<bool> {
        guarded(|| {
            value::element(element)?
                .map_or(Ok(false), |element| self.0.contains(&element))
                .map_err(refuse)
        })
    }

    /// Whether each of many elements may be in the filter, as a list of bool; for an array of numpy
    /// as such an array.
    fn contains_many<'py>(&self, elements: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = elements.py();
        let answers = guarded(|| {
            let mut prober = self.0.prober();
            value::each(elements, |element| prober.push(element).map_err(refuse))?;
            Ok(prober.finish())
        })?;
        if value::is_of_numpy(elements)? {
            let bytes = PyBytes::new_with(py, answers.len(), |bytes| {
                bytes
                    .iter_mut()
                    .zip(&answers)
                    .for_each(|(byte, &answer)| *byte = u8::from(answer));
                Ok(())
            })?;
            let array = py.import("numpy")?.call_method1("frombuffer", (bytes, "?"))?;
            return array.call_method0("copy");
        }
        Ok(PyList::new(py, answers)?.into_any())
    }

    /// The filter with more elements.
    fn add_all(&self, py: Python<'_>, elements: &Bound<'_, PyAny>) -> PyResult<Filter> {
        let builder = outside(py, || Ok(Builder::from(&self.0)))?;
        Filter::fill(py, builder, elements)
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Filter>) -> PyResult<Filter> {
        let other = other.get();
        Filter::checked(py, || self.0.union(&other.0))
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, Filter>) -> PyResult<Filter> {
        let other = other.get();
        outside(py, || self.0.intersection(&other.0).map(Filter))
    }

    /// The filter as if built for another capacity; a sparse one can be sized for what it has.
    #[pyo3(signature = (capacity=None))]
    fn resize(&self, py: Python<'_>, capacity: Option<i64>) -> PyResult<Filter> {
        let capacity = capacity
            .map(pg_bloom_core::sizing::check_capacity)
            .transpose()
            .map_err(refuse)?;
        Filter::checked(py, || self.0.resize(capacity))
    }

    /// What the filter is, apart from its elements.
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

    /// Estimated distinct elements.
    #[getter]
    fn cardinality(&self, py: Python<'_>) -> PyResult<f64> {
        outside(py, || Ok(self.0.cardinality()))
    }

    /// The false positive rate that it has now.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
        outside(py, || Ok(self.0.current_fpr()))
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
        let capacity = capacity.map_or("None".into(), |capacity| capacity.to_string());
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

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::install();
    module.add_class::<Filter>()?;
    module.add_class::<Header>()?;
    module.add("OverfullWarning", module.py().get_type::<OverfullWarning>())
}
