//! Making filters one at a time: `bloom_empty`, `bloom_from_array`, `bloom_add`, `bloom_add_all`; spreading elements over
//! several with `bloom_shard`.

use crate::datum::{Call, PgBuffer, elements};
use crate::element::{ElementType, hash_to_add, hashes};
use crate::error::{Failure, invalid_parameter};
use crate::overfull::{ADDED, BUILT};
use crate::settings;
use pg_bloom_core::filter::build::{self, Request};
use pg_bloom_core::{Buffer, Header, Layout, View, hash, sizing};
use pgrx::pg_sys::Datum;

type Outcome = Result<Option<Datum>, Failure>;

/// The arguments `capacity`, `fpr` and `layout` of a call, as given.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    capacity: Option<i64>,
    fpr: Option<f64>,
    layout: Option<String>,
}

impl Arguments {
    /// The arguments from number `first` on; those that the function doesn't have are NULL.
    pub fn of(call: &Call, first: usize) -> Arguments {
        Arguments { capacity: call.i64(first), fpr: call.f64(first + 1), layout: call.word(first + 2) }
    }

    /// The capacity.
    pub fn capacity(&self) -> Option<i64> {
        self.capacity
    }

    /// The same without a capacity.
    pub fn without_capacity(self) -> Arguments {
        Arguments { capacity: None, ..self }
    }

    /// Whether a call has these arguments.
    pub fn are_those_of(&self, call: &Call, first: usize) -> bool {
        self.capacity == call.i64(first)
            && self.fpr.map(f64::to_bits) == call.f64(first + 1).map(f64::to_bits)
            && match (&self.layout, call.value(first + 2)) {
                (None, None) => true,
                (Some(layout), Some(given)) => layout.as_bytes() == given.bytes(),
                _ => false,
            }
    }
}

/// Calls a function whose result no setting decides, because a rate is given: as argument `i`.
///
/// # Errors
/// 22004 for a NULL rate, and those of the function.
pub fn at_fpr(call: &Call, i: usize, function: impl FnOnce(&Call) -> Outcome) -> Outcome {
    if call.f64(i).is_none() {
        return Err(Failure::Null(
            invalid_parameter("false positive rate must not be null").hint("Leave it out for pg_bloom.default_fpr."),
        ));
    }
    function(call)
}

/// What the arguments ask for, with the defaults.
///
/// # Errors
/// 22023 for a capacity, rate or layout that can't be.
pub fn request(arguments: &Arguments) -> Result<Request, Failure> {
    let capacity = arguments.capacity.map(sizing::check_capacity).transpose()?;
    let fpr = arguments.fpr.unwrap_or_else(settings::default_fpr);
    let layout = arguments.layout.as_deref().map_or(Ok(Layout::Blocked), Layout::parse)?;
    sizing::check_fpr(layout, fpr)?;
    Ok(Request { capacity, fpr, layout })
}

/// The filter without elements and without a size: what aggregates give for no rows.
///
/// # Errors
/// 22023 if the default rate can't be.
pub fn nothing() -> Result<Datum, Failure> {
    let header = Request { capacity: None, fpr: settings::default_fpr(), layout: Layout::Blocked }.header(u64::MAX)?;
    Ok(build::empty::<PgBuffer>(&header).into_datum())
}

/// Warns about an overfull filter, or fails, and makes it the result.
///
/// # Errors
/// 22023 when `pg_bloom.overfill` is `error`.
pub fn finish(call: &Call, advice: &str, filter: PgBuffer) -> Outcome {
    crate::overfull::check(call, advice, &View::parse_trusted(filter.bytes())?)?;
    Ok(Some(filter.into_datum()))
}

/// `bloom_empty()`, `bloom_empty(capacity, fpr, layout)`.
fn empty(call: &Call) -> Outcome {
    let header = request(&Arguments::of(call, 0))?.header(settings::max_filter_bytes())?;
    Ok(Some(build::empty::<PgBuffer>(&header).into_datum()))
}

/// `bloom_empty(capacity, fpr, layout)` with a rate.
fn empty_at_fpr(call: &Call) -> Outcome {
    at_fpr(call, 1, empty)
}

/// `bloom_from_array(elements, capacity, fpr, layout)`.
fn from_array(call: &Call) -> Outcome {
    let header = request(&Arguments::of(call, 1))?.header(settings::max_filter_bytes())?;
    let (element, oid) = ElementType::remembered_of_array(call, 0)?;
    if call.value(0).is_none() {
        return Ok(None);
    }
    let key = element.key(&header, "bloom_from_array")?;
    let hashes = hashes(&elements(call, 0, *oid), &key)?;
    let header = if hashes.is_empty() { header } else { Header { kind: key.kind, ..header } };
    let filter: PgBuffer = build::from_hashes(&header, &hashes, settings::max_filter_bytes())?;
    // Without a capacity it has the size that it needs.
    if header.is_to_be_sized() { Ok(Some(filter.into_datum())) } else { finish(call, BUILT, filter) }
}

/// `bloom_from_array(elements, capacity, fpr, layout)` with a rate.
fn from_array_at_fpr(call: &Call) -> Outcome {
    at_fpr(call, 2, from_array)
}

/// `bloom_add(filter, element)`, `filter || element`.
fn add(call: &Call) -> Outcome {
    let Some(filter) = call.value(0) else { return Ok(None) };
    let type_of_element = ElementType::remembered(call, 1)?;
    let Some(element) = call.element(1) else { return Ok(Some(filter.into_datum())) };
    let view = View::parse_trusted(filter.bytes())?;
    let key = type_of_element.key(&view.header, "bloom_add")?;
    let hash = hash_to_add(&key, element)?;
    if build::contains(&view, hash) {
        return Ok(Some(filter.into_datum()));
    }
    finish(call, ADDED, build::add(&view, key.kind, &[hash], "bloom_add", settings::max_filter_bytes())?)
}

/// `bloom_add_all(filter, elements)`.
fn add_all(call: &Call) -> Outcome {
    let Some(filter) = call.value(0) else { return Ok(None) };
    let (element, oid) = ElementType::remembered_of_array(call, 1)?;
    let view = View::parse_trusted(filter.bytes())?;
    let key = element.key(&view.header, "bloom_add_all")?;
    let hashes = hashes(&elements(call, 1, *oid), &key)?;
    if hashes.iter().all(|&hash| build::contains(&view, hash)) {
        return Ok(Some(filter.into_datum()));
    }
    finish(call, ADDED, build::add(&view, key.kind, &hashes, "bloom_add_all", settings::max_filter_bytes())?)
}

/// `bloom_shard(element, shards)`.
fn shard(call: &Call) -> Outcome {
    let element_type = ElementType::remembered(call, 0)?;
    let (Some(element), Some(shards)) = (call.element(0), call.i32(1)) else { return Ok(None) };
    let shards = u32::try_from(shards).ok().filter(|&n| n > 0).ok_or_else(|| {
        invalid_parameter(format!("number of shards must be at least 1, not {shards}"))
            .hint("Give the number of filters that the elements are spread over.")
    })?;
    let hash = element_type.reading(Layout::Blocked).hash(element);
    Ok(hash.map(|hash| Datum::from(hash::shard(hash, shards) as i32)))
}

pg_functions! {
    bloom_shard => shard;
    bloom_empty => empty;
    bloom_empty_at_fpr => empty_at_fpr;
    bloom_from_array => from_array;
    bloom_from_array_at_fpr => from_array_at_fpr;
    bloom_add => add;
    bloom_add_all => add_all;
}
