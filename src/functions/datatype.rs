//! The type `bloom`: text and binary input and output, the casts to and from `bytea`, comparison.
//!
//! Text is `\x` and the hexadecimal digits of the stored bytes, as `bytea` prints them. Every way
//! in goes through the one parser, [`FilterType::check`]. The type `counting_bloom` differs in that
//! alone: its other functions are these.

use crate::filter_type::FilterType::{self, Bloom, CountingBloom};
use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::value::encoding;
use crate::pg::value::varlena::{PgBuffer, hex_string};
use pg_bloom_core::memory::from_hex;
use pg_bloom_core::{MAX_STORED_BYTES, hash, interrupt};
use pgrx::pg_sys::Datum;
use std::cmp::Ordering;

/// Implements the input functions of `bloom` and `counting_bloom`: parses a filter from text, `\x`
/// and the hexadecimal digits of the stored bytes. Fails with 22P02 for any other text, and for
/// bytes that aren't a filter of this type.
fn input(call: &Call, filter_type: FilterType) -> Outcome {
    const INVALID: SqlState = SqlState::ERRCODE_INVALID_TEXT_REPRESENTATION;
    let text = call.cstring(0).to_bytes();
    // The digits are two for each byte, and `\x` is two characters. A longer text can be no filter,
    // and is refused before memory is allocated for its bytes.
    let may_fit = text.len() as u64 <= 2 * (MAX_STORED_BYTES + 1);
    let filter: Option<PgBuffer> = if may_fit { from_hex(text) } else { None };
    let filter = filter.ok_or_else(|| {
        let message = format!(
            "invalid input syntax for type {}: \"{}\"",
            filter_type.name().to_string_lossy(),
            shown(text)
        );
        Error::new(INVALID, message)
            .hint("A bloom filter is written as \\x and an even number of hexadecimal digits.")
    })?;
    filter_type
        .check(filter.bytes())
        .map_err(|error| Error::from(error).with_sqlstate(INVALID))?;
    Ok(Some(filter.into_datum()))
}

/// Returns the first 40 characters of a text, for a message, with `...` if there are more.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let start = encoding::start_of(text);
    match start.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &start[..end]),
        None => start,
    }
}

/// Implements the casts from `bytea`: returns the filter whose stored bytes argument 0 has; NULL
/// for NULL. Fails with 22P03 for bytes that aren't a filter of this type.
fn from_bytea(call: &Call, filter_type: FilterType) -> Outcome {
    call.value(0)
        .map_or(Ok(None), |bytes| validated(bytes.bytes(), filter_type))
}

/// Implements the binary input functions: checks the bytes of a message, which are the stored bytes
/// of a filter, and returns them as a filter. Fails with 22P03 for bytes that aren't a filter of
/// this type.
fn receive(call: &Call, filter_type: FilterType) -> Outcome {
    // SAFETY: PostgreSQL calls it with the buffer of a message.
    validated(unsafe { call.message(0) }, filter_type)
}

/// Checks that bytes are the stored bytes of a filter of this type, and returns a copy of them as a
/// filter. Fails with 22P03 if they aren't.
fn validated(bytes: &[u8], filter_type: FilterType) -> Outcome {
    filter_type.check(bytes)?;
    Ok(Some(PgBuffer::copy_of(bytes).into_datum()))
}

/// `bloom_send(bloom)`, and `bytea(bloom)`: the cast to `bytea`. Both are the stored bytes.
fn to_bytea(call: &Call) -> Outcome {
    Ok(call
        .value(0)
        .map(|filter| PgBuffer::copy_of(filter.bytes()).into_datum()))
}

/// Compares the filters in arguments 0 and 1 by their stored bytes, as `memcmp` does, and then by
/// their lengths; they are equal if and only if they are the same filter. `None` if one is NULL.
fn compare(call: &Call) -> Result<Option<Ordering>> {
    let (Some(a), Some(b)) = (call.value(0), call.value(1)) else {
        return Ok(None);
    };
    let (a, b) = (a.bytes(), b.bytes());
    // A filter may have hundreds of megabytes: between two strides, the call can be cancelled.
    let strides = a
        .chunks(interrupt::STRIDE_BYTES)
        .zip(b.chunks(interrupt::STRIDE_BYTES))
        .inspect(|_| interrupt::check());
    let differs = strides.map(|(a, b)| a.cmp(b)).find(|ordering| ordering.is_ne());
    Ok(Some(differs.unwrap_or_else(|| a.len().cmp(&b.len()))))
}

/// Implements the comparison operators: returns whether `holds` is true of the order of the filters
/// in arguments 0 and 1; NULL if one is.
fn compared(call: &Call, holds: fn(Ordering) -> bool) -> Outcome {
    Ok(compare(call)?.map(|ordering| Datum::from(holds(ordering))))
}

/// Implements `bloom_hash_extended(bloom, bigint)`: returns a hash of 64 bits of a filter, with a
/// seed, for hash joins and grouping. NULL if an argument is.
fn hash_64(call: &Call) -> Outcome {
    let (Some(filter), Some(seed)) = (call.value(0), call.i64(1)) else {
        return Ok(None);
    };
    // PostgreSQL requires that with seed 0 the low 32 bits are the result of `bloom_hash`.
    let hash = hash::hash_long(filter.bytes());
    let seeded = if seed == 0 {
        hash
    } else {
        hash::hash(&[hash, seed as u64].map(u64::to_le_bytes).concat())
    };
    Ok(Some(Datum::from(seeded as i64)))
}

pg_functions! {
    bloom_in => |call| input(call, Bloom);
    counting_bloom_in => |call| input(call, CountingBloom);
    bloom_out => |call| Ok(call.value(0).map(|filter| hex_string(&filter)));
    bloom_recv => |call| receive(call, Bloom);
    counting_bloom_recv => |call| receive(call, CountingBloom);
    bloom_send => to_bytea;
    bloom_from_bytea => |call| from_bytea(call, Bloom);
    counting_bloom_from_bytea => |call| from_bytea(call, CountingBloom);
    bloom_to_bytea => to_bytea;
    bloom_cmp => |call| Ok(compare(call)?.map(|ordering| Datum::from(ordering as i32)));
    bloom_eq => |call| compared(call, Ordering::is_eq);
    bloom_ne => |call| compared(call, Ordering::is_ne);
    bloom_lt => |call| compared(call, Ordering::is_lt);
    bloom_le => |call| compared(call, Ordering::is_le);
    bloom_gt => |call| compared(call, Ordering::is_gt);
    bloom_ge => |call| compared(call, Ordering::is_ge);
    bloom_hash => |call| Ok(call.value(0).map(|filter| Datum::from(hash::hash_long(filter.bytes()) as i32)));
    bloom_hash_extended => hash_64;
}
