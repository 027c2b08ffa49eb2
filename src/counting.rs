//! `counting_bloom`: filters from which elements can be removed. `counting_bloom_empty`, `…_add` and `||`, `…_remove`,
//! `…_union` and `+`, what they say about themselves, and the cast to `bloom`.
//!
//! Input, output and comparison are in [`crate::datatype`], `@>` and `<@` in [`crate::membership`]: they differ from
//! those of `bloom` in the parser alone.

use crate::arguments::{Arguments, at_fpr, counting_header, empty_counting};
use crate::element::{ElementType, hash_to_add};
use crate::error::During;
use crate::filter_type::{CountingBloom, argument};
use crate::overfull;
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::value::array::elements;
use crate::pg::value::row::{ResultColumn, row};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::counting;
use pg_bloom_core::kind::Kind;
use pg_bloom_core::{Header, filter, memory};
use pgrx::pg_sys::Datum;

/// Warns about an overfull filter, or fails, and makes it the result.
fn finish(call: &Call, filter: PgBuffer) -> Outcome {
    overfull::finish::<CountingBloom>(call, overfull::COUNTING, filter)
}

/// `counting_bloom_empty()`, `counting_bloom_empty(capacity, fpr)`.
fn empty(call: &Call) -> Outcome {
    if call.nargs() == 0 {
        return empty_counting().map(Some);
    }
    Ok(Some(counting::empty::<PgBuffer>(&counting_header(&Arguments::of(call, 0))?).into_datum()))
}

/// `counting_bloom_add(filter, element)`, `filter || element`.
fn add(call: &Call) -> Outcome {
    let Some(counting) = argument::<CountingBloom>(call, 0)? else { return Ok(None) };
    let element_type = ElementType::remembered(call, 1)?;
    let Some(element) = call.element(1) else { return Ok(call.datum(0)) };
    let key = element_type.key(&counting.header, "counting_bloom_add")?;
    // SAFETY: the type is that of the argument.
    let hash = unsafe { hash_to_add(&key, element)? };
    finish(call, counting.add(key.kind, &[hash]).during("counting_bloom_add")?)
}

/// `counting_bloom_remove(filter, element)`.
fn remove(call: &Call) -> Outcome {
    let Some(counting) = argument::<CountingBloom>(call, 0)? else { return Ok(None) };
    let element_type = ElementType::remembered(call, 1)?;
    let Some(element) = call.element(1) else { return Ok(call.datum(0)) };
    let hasher = element_type.key(&counting.header, "counting_bloom_remove")?.hasher;
    // SAFETY: the type is that of the argument.
    let hash = unsafe { hasher.hash(element) };
    let removed: Option<PgBuffer> = hash.and_then(|hash| counting.remove(&[hash]));
    Ok(removed.map(PgBuffer::into_datum).or_else(|| call.datum(0)))
}

/// The hashes of the elements of argument 1, an array, in their order and with repetitions, and their kind.
fn array_hashes<'a>(call: &'a Call, header: &Header<'a>, function: &str) -> Result<(Kind<'a>, Vec<u64>)> {
    let (element, oid) = ElementType::remembered_of_array(call, 1)?;
    let key = element.key(header, function)?;
    // SAFETY: the type is that of the array's elements.
    let hashes = elements(call, 1, *oid).into_iter().map(|element| unsafe { hash_to_add(&key, element) });
    Ok((key.kind, memory::try_collect(hashes)?))
}

/// `counting_bloom_add_all(filter, elements)`.
fn add_all(call: &Call) -> Outcome {
    let Some(counting) = argument::<CountingBloom>(call, 0)? else { return Ok(None) };
    let (kind, hashes) = array_hashes(call, &counting.header, "counting_bloom_add_all")?;
    if hashes.is_empty() {
        return Ok(call.datum(0));
    }
    finish(call, counting.add(kind, &hashes).during("counting_bloom_add_all")?)
}

/// `counting_bloom_remove_all(filter, elements)`.
fn remove_all(call: &Call) -> Outcome {
    let Some(counting) = argument::<CountingBloom>(call, 0)? else { return Ok(None) };
    let (_, hashes) = array_hashes(call, &counting.header, "counting_bloom_remove_all")?;
    let removed: Option<PgBuffer> = counting.remove(&hashes);
    Ok(removed.map(PgBuffer::into_datum).or_else(|| call.datum(0)))
}

/// `counting_bloom_union(filter, filter)`, `filter + filter`.
fn union(call: &Call) -> Outcome {
    let (Some(a), Some(b)) = (argument::<CountingBloom>(call, 0)?, argument::<CountingBloom>(call, 1)?) else {
        return Ok(None);
    };
    finish(call, counting::sum(&a, &b).during("counting_bloom_union")?)
}

/// `counting_bloom_to_bloom(filter)`: the cast to `bloom`.
fn to_bloom(call: &Call) -> Outcome {
    let Some(counting) = argument::<CountingBloom>(call, 0)? else { return Ok(None) };
    Ok(Some(counting.to_bloom::<PgBuffer>().into_datum()))
}

/// `counting_bloom_cardinality(filter)`.
fn cardinality(call: &Call) -> Outcome {
    let Some(counting) = argument::<CountingBloom>(call, 0)? else { return Ok(None) };
    Ok(Some(Datum::from(counting.cardinality().to_bits())))
}

/// `counting_bloom_info(filter)`.
fn info(call: &Call) -> Outcome {
    let Some(counting) = argument::<CountingBloom>(call, 0)? else { return Ok(None) };
    let (h, found) = (&counting.header, counting.info());
    let set = found.tally.set as f64;
    let columns = [
        ResultColumn::I32(i32::from(filter::VERSION)),
        if h.kind.is_none() { ResultColumn::Null } else { ResultColumn::Text(h.kind.to_string()) },
        h.capacity.elements().map_or(ResultColumn::Null, |capacity| ResultColumn::I64(capacity as i64)),
        ResultColumn::F64(h.fpr),
        ResultColumn::I64(found.num_counters as i64),
        ResultColumn::I32(h.num_hashes as i32),
        ResultColumn::I64(found.tally.set as i64),
        ResultColumn::I64(found.tally.saturated as i64),
        ResultColumn::F64(if found.num_counters == 0 { 0.0 } else { set / found.num_counters as f64 }),
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
    counting_bloom_add => add;
    counting_bloom_add_all => add_all;
    counting_bloom_remove => remove;
    counting_bloom_remove_all => remove_all;
    counting_bloom_union => union;
    counting_bloom_to_bloom => to_bloom;
    counting_bloom_cardinality => cardinality;
    counting_bloom_info => info;
}
