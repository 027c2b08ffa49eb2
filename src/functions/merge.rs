//! `bloom_union` and `|`, `bloom_intersection` and `&`, `bloom_fold`, `bloom_resize`.

use crate::error::WithFunctionName;
use crate::filter_type::bloom;
use crate::pg::call::{Call, Error, Outcome};
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::error::InvalidParameter;
use pg_bloom_core::filter::{estimate, merge, resize};
use pg_bloom_core::{Problem, View, sizing};

/// Implements `bloom_union(filter, filter)` and `filter | filter`: returns the filter of the
/// elements of both; NULL if one is. An overfull result raises a warning, or an error as
/// `pg_bloom.overfill` says. Fails with 22023 or 42804 for filters that can't be merged, and with
/// 54000 if the result would be too large.
fn union(call: &Call) -> Outcome {
    let (Some(a), Some(b)) = (bloom(call, 0)?, bloom(call, 1)?) else {
        return Ok(None);
    };
    let merged =
        merge::union(&a, &b, settings::max_filter_bytes()).with_function_name("bloom_union")?;
    overfull::finish(call, overfull::MERGED, merged)
}

/// Implements `bloom_intersection(filter, filter)` and `filter & filter`: returns a filter of the
/// elements that both filters have; NULL if one is. Fails with 22023 or 42804 for filters that
/// can't be merged.
fn intersection(call: &Call) -> Outcome {
    let (Some(a), Some(b)) = (bloom(call, 0)?, bloom(call, 1)?) else {
        return Ok(None);
    };
    let result: PgBuffer = merge::intersection(&a, &b).with_function_name("bloom_intersection")?;
    Ok(Some(result.into_datum()))
}

/// Implements `bloom_fold(filter, fpr)`: returns the filter in the fewest bits with which its
/// present false positive rate is at most `fpr`, found by halving; the filter as it is if its rate
/// is higher already. NULL if an argument is. Fails with 22023 for a rate that the layout can't
/// keep.
fn fold(call: &Call) -> Outcome {
    let (Some(view), Some(fpr)) = (bloom(call, 0)?, call.f64(1)) else {
        return Ok(None);
    };
    let result: PgBuffer = resize::fold(&view, fpr)?;
    Ok(Some(result.into_datum()))
}

/// Implements `bloom_resize(filter, capacity)`: returns a filter of the same elements as if built
/// for another capacity. With a NULL capacity, a sparse filter, a list of hashes, is sized for its
/// number of elements. NULL for a NULL filter.
///
/// Fails with 22023 for a capacity whose size the filter can't be resized to; the hint has one that
/// is possible.
fn resize(call: &Call) -> Outcome {
    let Some(view) = bloom(call, 0)? else {
        return Ok(None);
    };
    let capacity = call.i64(1).map(sizing::check_capacity).transpose()?;
    let resized = resize::resize(&view, capacity, settings::max_filter_bytes());
    let resized = resized.map_err(|error| match capacity {
        Some(_) => error.into(),
        None => with_capacity_hint(error, &view),
    })?;
    overfull::finish(call, overfull::BUILT, resized)
}

/// Returns the error of resizing a filter without a given capacity, with a better hint: if only its
/// bits are stored, which don't tell how many elements it has, the hint names the possible capacity
/// that is nearest to the estimated number of elements.
#[cold]
fn with_capacity_hint(error: pg_bloom_core::Error, view: &View<'_>) -> Error {
    let is_without_capacity =
        matches!(error.problem(), Problem::InvalidParameter(InvalidParameter::ResizeNeedsCapacity));
    let described = Error::from(error);
    if !is_without_capacity {
        return described;
    }
    // Tries the estimated number of elements, to learn which capacity is possible.
    let estimated = (estimate::cardinality(view).ceil() as u64).max(1);
    let resized = resize::resize::<PgBuffer>(view, Some(estimated), settings::max_filter_bytes());
    let possible = match resized.as_ref().err().map(pg_bloom_core::Error::problem) {
        None => Some(estimated),
        Some(&Problem::InvalidParameter(InvalidParameter::ResizeDoesNotDivide {
            possible,
            ..
        })) => possible,
        Some(_) => None,
    };
    match possible {
        Some(capacity) => described.hint(format!(
            "It has about {estimated} elements: use capacity {capacity} for a size that holds them."
        )),
        None => described,
    }
}

pg_functions! {
    bloom_union => union;
    bloom_intersection => intersection;
    bloom_fold => fold;
    bloom_resize => resize;
}
