//! `counting_bloom`: filters from which elements can be removed. `counting_bloom_empty`, `…_add`
//! and `||`, `…_remove`, `…_union` and `+`, what they say about themselves, and the cast to
//! `bloom`.

use crate::arguments::{Arguments, at_fpr, counting_header, empty_counting};
use crate::element::{Given, hashes_of};
use crate::error::During;
use crate::filter_type::counting_bloom;
use crate::overfull;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::row::{ResultColumn, row};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::counting;
use pg_bloom_core::filter;
use pgrx::pg_sys::Datum;

/// `counting_bloom_empty()`, `counting_bloom_empty(capacity, fpr)`.
fn empty(call: &Call) -> Outcome {
    if call.nargs() == 0 {
        return empty_counting().map(Some);
    }
    Ok(Some(counting::empty::<PgBuffer>(&counting_header(&Arguments::of(call, 0))?).into_datum()))
}

/// The filter that argument 0 is, with what argument 1 is, which this SQL function adds.
fn add(call: &Call, function: &str, given: Given) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    let (kind, hashes) = hashes_of(call, 1, given, &counting.header, function)?;
    if hashes.is_empty() {
        return Ok(call.datum(0));
    }
    overfull::finish(call, overfull::COUNTING, counting.add(kind, &hashes).during(function)?)
}

/// The filter that argument 0 is, without what argument 1 is, which this SQL function removes.
fn remove(call: &Call, function: &str, given: Given) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    let (_, hashes) = hashes_of(call, 1, given, &counting.header, function)?;
    let removed: Option<PgBuffer> = counting.remove(&hashes);
    Ok(removed.map(PgBuffer::into_datum).or_else(|| call.datum(0)))
}

/// `counting_bloom_union(filter, filter)`, `filter + filter`.
fn union(call: &Call) -> Outcome {
    let (Some(a), Some(b)) = (counting_bloom(call, 0)?, counting_bloom(call, 1)?) else {
        return Ok(None);
    };
    let sum = counting::sum(&a, &b).during("counting_bloom_union")?;
    overfull::finish(call, overfull::COUNTING, sum)
}

/// `counting_bloom_to_bloom(filter)`: the cast to `bloom`.
fn to_bloom(call: &Call) -> Outcome {
    Ok(counting_bloom(call, 0)?.map(|counting| counting.to_bloom::<PgBuffer>().into_datum()))
}

fn cardinality(call: &Call) -> Outcome {
    Ok(counting_bloom(call, 0)?.map(|counting| Datum::from(counting.cardinality().to_bits())))
}

fn info(call: &Call) -> Outcome {
    let Some(counting) = counting_bloom(call, 0)? else {
        return Ok(None);
    };
    let (h, found) = (&counting.header, counting.info());
    let set = found.tally.set as f64;
    let columns = [
        ResultColumn::I32(i32::from(filter::VERSION)),
        if h.kind.is_none() {
            ResultColumn::Null
        } else {
            ResultColumn::Text(h.kind.to_string())
        },
        h.capacity
            .elements()
            .map_or(ResultColumn::Null, |capacity| ResultColumn::I64(capacity as i64)),
        ResultColumn::F64(h.fpr),
        ResultColumn::I64(found.num_counters as i64),
        ResultColumn::I32(h.num_hashes as i32),
        ResultColumn::I64(found.tally.set as i64),
        ResultColumn::I64(found.tally.saturated as i64),
        ResultColumn::F64(if found.num_counters == 0 {
            0.0
        } else {
            set / found.num_counters as f64
        }),
        ResultColumn::F64(found.cardinality),
        found.copies.map_or(ResultColumn::Null, ResultColumn::F64),
        ResultColumn::F64(found.current_fpr),
        ResultColumn::I64(counting::stored_bytes(h) as i64),
    ];
    Ok(Some(row(call, &columns)))
}

pg_functions! {
    counting_bloom_empty => empty;
    counting_bloom_empty_at_fpr => |call| at_fpr(call, 1, empty);
    counting_bloom_add => |call| add(call, "counting_bloom_add", Given::Element);
    counting_bloom_add_all => |call| add(call, "counting_bloom_add_all", Given::Array);
    counting_bloom_remove => |call| remove(call, "counting_bloom_remove", Given::Element);
    counting_bloom_remove_all => |call| remove(call, "counting_bloom_remove_all", Given::Array);
    counting_bloom_union => union;
    counting_bloom_to_bloom => to_bloom;
    counting_bloom_cardinality => cardinality;
    counting_bloom_info => info;
}
