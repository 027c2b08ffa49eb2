//! `bloom_union` and `|`, `bloom_intersection` and `&`, `bloom_fold`, `bloom_resize`.

use crate::error::During;
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::filter::{merge, resize};
use pg_bloom_core::sizing;

/// `bloom_union(filter, filter)`, `filter | filter`.
fn union(call: &Call) -> Outcome {
    let (Some(a), Some(b)) = (bloom(call, 0)?, bloom(call, 1)?) else {
        return Ok(None);
    };
    let merged = merge::union(&a, &b, settings::max_filter_bytes()).during("bloom_union")?;
    overfull::finish(call, overfull::MERGED, merged)
}

/// `bloom_intersection(filter, filter)`, `filter & filter`.
fn intersection(call: &Call) -> Outcome {
    let (Some(a), Some(b)) = (bloom(call, 0)?, bloom(call, 1)?) else {
        return Ok(None);
    };
    let result: PgBuffer = merge::intersection(&a, &b).during("bloom_intersection")?;
    Ok(Some(result.into_datum()))
}

/// `bloom_fold(filter, fpr)`.
fn fold(call: &Call) -> Outcome {
    let (Some(view), Some(fpr)) = (bloom(call, 0)?, call.f64(1)) else {
        return Ok(None);
    };
    let result: PgBuffer = resize::fold(&view, fpr)?;
    Ok(Some(result.into_datum()))
}

/// `bloom_resize(filter, capacity)`.
fn resize(call: &Call) -> Outcome {
    let Some(view) = bloom(call, 0)? else {
        return Ok(None);
    };
    let capacity = call.i64(1).map(sizing::check_capacity).transpose()?;
    let resized = resize::resize(&view, capacity, settings::max_filter_bytes())?;
    overfull::finish(call, overfull::BUILT, resized)
}

pg_functions! {
    bloom_union => union;
    bloom_intersection => intersection;
    bloom_fold => fold;
    bloom_resize => resize;
}
