//! The filter that a call asks for by its arguments `capacity`, `fpr` and `layout`, in three steps:
//!
//! ```text
//! FilterArguments    as given: None for NULL, nothing checked
//!   ──▶ Request      checked, with defaults; without a capacity, its elements will decide the size
//!   ──▶ Header       the size of the filter: blocks and hashes, as filters store them
//! ```
//!
//! Example: `bloom_agg(url, 1000)` has a capacity of 1,000 and neither a rate nor a layout. Its
//! request has the rate 0.01, the default, and the layout `blocked`.

use crate::error::invalid_parameter;
use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::filter::build::Request;
use pg_bloom_core::{Header, Layout, counting, sizing};
use pgrx::pg_sys::Datum;

/// The arguments `capacity`, `fpr` and `layout` of a call, as given: `None` for NULL, and for an
/// argument that the SQL function doesn't have.
#[derive(Default, PartialEq)]
pub struct FilterArguments {
    pub capacity: Option<i64>,
    pub fpr: Option<f64>,
    pub layout: Option<String>,
}

impl FilterArguments {
    /// Reads three arguments of the call, from number `first` on.
    pub fn of_call(call: &Call, first: usize) -> FilterArguments {
        FilterArguments {
            capacity: call.i64(first),
            fpr: call.f64(first + 1),
            layout: call.word(first + 2),
        }
    }

    /// Returns what the arguments ask for, with the defaults. Fails with 22023 if the capacity, the
    /// rate or the layout is invalid.
    pub fn request(&self) -> Result<Request> {
        let capacity = self.capacity.map(sizing::check_capacity).transpose()?;
        let fpr = self.fpr.unwrap_or_else(|| settings::DEFAULT_FPR.get());
        let layout = self.layout.as_deref().map_or(Ok(Layout::Blocked), layout)?;
        sizing::check_fpr(layout, fpr)?;
        Ok(Request { capacity, fpr, layout })
    }
}

/// Calls a function that takes the rate as argument `i`, so that its result depends on no setting.
/// Fails with 22004 if that argument is NULL.
pub fn at_fpr(call: &Call, i: usize, function: impl FnOnce(&Call) -> Outcome) -> Outcome {
    if call.f64(i).is_none() {
        return Err(Error::new(
            SqlState::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "false positive rate must not be null",
        )
        .hint("Leave it out for pg_bloom.default_fpr."));
    }
    function(call)
}

/// Returns the layout with a name. Fails with 22023 if none has it.
pub fn layout(name: &str) -> Result<Layout> {
    Layout::from_name(name).ok_or_else(|| {
        invalid_parameter(format!("unknown bloom filter layout \"{name}\""))
            .hint("The layouts are \"blocked\", \"classic\" and \"parquet\".")
    })
}

/// Returns the `bloom` without elements and without a size: the result of an aggregate over no
/// rows. Fails with 22023 if the default rate is invalid.
pub fn empty_bloom() -> Result<Datum> {
    let header = FilterArguments::default().request()?.header(u64::MAX)?;
    Ok(header.sparse::<PgBuffer>(0).into_datum())
}

/// Returns the header of the `counting_bloom` that the arguments ask for, with the defaults.
///
/// Fails with 22023 if the capacity is missing, or if it or the rate is invalid, and with 54000 if
/// the filter would be too large.
pub fn counting_header(arguments: &FilterArguments) -> Result<Header<'static>> {
    let capacity = counting::check_capacity(arguments.capacity)?;
    let fpr = arguments.request()?.fpr;
    Ok(counting::sized_header(capacity, fpr, settings::max_filter_bytes())?)
}

/// Returns the `counting_bloom` without elements and without a size: the result of an aggregate
/// over no rows. Fails with 22023 if the default rate is invalid.
pub fn empty_counting() -> Result<Datum> {
    let header = counting::unsized_header(settings::DEFAULT_FPR.get())?;
    Ok(counting::empty::<PgBuffer>(&header).into_datum())
}
