//! What a filter is, and how large one must be, as JSON.

use crate::failure::{Failure, Outcome};
use pg_bloom_core::filter::{VERSION, estimate};
use pg_bloom_core::layout::{MAX_HASHES, PARQUET_HASHES, Shape};
use pg_bloom_core::sizing::{self, rate, table};
use pg_bloom_core::{Filter, Header, Kind, Layout};
use std::fmt::Write;

/// Returns the parameters of a filter as a JSON object, those that SQL's `bloom_header` returns.
pub fn header(filter: &Filter) -> String {
    format!("{{{}}}", header_fields(filter))
}

/// Returns the parameters of a filter as the fields of a JSON object, without its braces: layout,
/// kind of elements, capacity, size and so on.
fn header_fields(filter: &Filter) -> String {
    let Header { layout, kind, fpr, num_hashes, blocks, capacity, .. } = filter.header();
    let layout_name = layout.name();
    let kind = if kind.is_none() { "null".to_owned() } else { string(&kind.to_string()) };
    let representation = if filter.is_list() { "sparse" } else { "dense" };
    let capacity = capacity.elements().map_or("null".to_owned(), |n| n.to_string());
    let num_bits = blocks * layout.block_bits();
    let bytes = filter.as_bytes().len();
    format!(
        "\"formatVersion\":{VERSION},\"layout\":\"{layout_name}\",\"keyKind\":{kind},\
         \"representation\":\"{representation}\",\"capacity\":{capacity},\"targetFpr\":{fpr},\
         \"numBits\":{num_bits},\"numHashes\":{num_hashes},\"bytes\":{bytes}"
    )
}

/// Returns the parameters of a filter and how full it is, as a JSON object with what SQL's
/// `bloom_info` returns. The estimated number of elements is null if it is infinite, as all bits
/// are set.
pub fn info(filter: &Filter) -> String {
    let header = header_fields(filter);
    let measured = estimate::info(&filter.view());
    let cardinality = if measured.cardinality.is_finite() {
        format!("{}", measured.cardinality)
    } else {
        "null".to_owned()
    };
    format!(
        "{{{header},\"bitsSet\":{},\"fillRatio\":{},\"cardinality\":{cardinality},\
         \"currentFpr\":{},\"saturated\":{}}}",
        measured.bits_set, measured.fill_ratio, measured.current_fpr, measured.saturated
    )
}

/// Returns the size of a filter for this capacity and false positive rate, as a JSON object with
/// what SQL's `bloom_parameters` returns.
///
/// Fails if filters of the layout can't keep the rate, or if the filter would have 2^63 bits or
/// more.
pub fn parameters(layout: Layout, capacity: u64, fpr: f64) -> Outcome<String> {
    let size = sizing::size_for_capacity(layout, capacity, fpr)?;
    let num_bits = size.blocks * layout.block_bits();
    let bytes = Header::with_size(size, Kind::NONE).dense_bytes();
    let rate_at_capacity = rate::expected(size.shape(), capacity as f64);
    let num_hashes = size.num_hashes;
    Ok(format!(
        "{{\"numBits\":{num_bits},\"numHashes\":{num_hashes},\"bytes\":{bytes},\"fpr\":{rate_at_capacity}}}"
    ))
}

/// Returns what `bloom_best_practices` returns.
///
/// Fails if the layout can't keep the rate.
pub fn best_practices(layout: Layout, max_fpr: f64) -> Outcome<String> {
    let table::BestPractice { bits, num_hashes, fpr } = table::best_practice(layout, max_fpr)?;
    Ok(format!("{{\"bitsPerElement\":{bits},\"numHashes\":{num_hashes},\"fpr\":{fpr}}}"))
}

/// Returns the false positive rate of a filter of this size with this number of distinct elements,
/// as a JSON number. Bits that are no whole block are left out.
///
/// Fails if filters of the layout can't have this number of hashes, or if the bits are less than a
/// block.
pub fn expected_fpr(
    layout: Layout,
    num_hashes: u32,
    num_bits: u64,
    elements: u64,
) -> Outcome<String> {
    let name = layout.name();
    let possible = match layout {
        Layout::Parquet => PARQUET_HASHES..=PARQUET_HASHES,
        Layout::Blocked | Layout::Classic => 1..=MAX_HASHES,
    };
    if !possible.contains(&num_hashes) {
        return Err(Failure::range(format!(
            "a filter of layout \"{name}\" cannot have {num_hashes} hashes"
        )));
    }
    let blocks = num_bits / layout.block_bits();
    if blocks == 0 {
        return Err(Failure::range(format!(
            "a filter of layout \"{name}\" cannot have {num_bits} bits"
        )));
    }
    let rate = rate::expected(Shape { layout, num_hashes, blocks }, elements as f64);
    Ok(format!("{rate}"))
}

/// Returns a text as a JSON string, with its quotes and escapes.
fn string(text: &str) -> String {
    let mut json = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\0'..='\x1f' => {
                let _: std::fmt::Result = write!(json, "\\u{:04x}", u32::from(character));
            }
            _ => json.push(character),
        }
    }
    json.push('"');
    json
}
