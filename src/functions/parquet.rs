//! Exchange with Parquet files: `bloom_to_parquet`, `bloom_from_parquet`.

use crate::element::parquet_tag;
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::varlena::PgBuffer;
use crate::settings;
use pg_bloom_core::parquet;
use pgrx::pg_sys::Datum;

/// `bloom_to_parquet(filter)`: header and bits as a Parquet file has them.
fn to_parquet(call: &Call) -> Outcome {
    let Some(view) = bloom(call, 0)? else {
        return Ok(None);
    };
    let bytes: PgBuffer = parquet::export(&view, settings::max_filter_bytes())?;
    Ok(Some(bytes.into_datum()))
}

/// `bloom_from_parquet(bytes, element_type, more_follows)`: the filter that header and bits of a
/// Parquet file are.
fn from_parquet(call: &Call) -> Outcome {
    let (Some(bytes), Some(element_type)) = (call.value(0), call.oid(1)) else {
        return Ok(None);
    };
    let tag = parquet_tag(element_type)?;
    let more_follows = call.datum(2).is_some_and(|datum| datum != Datum::from(false));
    let bytes = if more_follows { parquet::without_rest(bytes.bytes())? } else { bytes.bytes() };
    let filter: PgBuffer = parquet::import(bytes, tag, settings::max_filter_bytes())?;
    Ok(Some(filter.into_datum()))
}

pg_functions! {
    bloom_to_parquet => to_parquet;
    bloom_from_parquet => from_parquet;
}
