//! How large a filter must be: `bloom_parameters`, `bloom_capacity`, `bloom_expected_fpr`, and the
//! lookup table with `bloom_best_practices` and `bloom_sizing_table`.

use crate::arguments::{self, FilterArguments, at_fpr};
use crate::error::invalid_parameter;
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::value::row::{ResultColumn, row, rows};
use pg_bloom_core::layout::{MAX_HASHES, PARQUET_HASHES, Shape};
use pg_bloom_core::sizing::{rate, table};
use pg_bloom_core::{Header, Kind, Layout, filter, sizing};
use pgrx::pg_sys::Datum;

fn layout(call: &Call, i: usize) -> Result<Layout> {
    arguments::layout(&call.word(i).unwrap_or_default())
}

/// `bloom_best_practices(max_fpr, layout)`.
fn best_practices(call: &Call) -> Outcome {
    let found = table::best_practice(layout(call, 1)?, call.f64(0).unwrap_or(f64::NAN))?;
    Ok(Some(row(call, &columns(found.bits, found.num_hashes, found.fpr))))
}

fn columns(bits: u32, hashes: u32, fpr: f64) -> [ResultColumn; 3] {
    [
        ResultColumn::I32(bits as i32),
        ResultColumn::I32(hashes as i32),
        ResultColumn::F64(fpr),
    ]
}

/// Implements `bloom_sizing_table(layout)`: returns the rows (bits for each element, hashes, false
/// positive rate) of the table by which filters are sized. Fails with 22023 for an unknown layout.
fn sizing_table(call: &Call) -> Outcome {
    let cells = |row: table::SizingRow| {
        row.cells()
            .map(move |cell| columns(row.bits, cell.num_hashes, cell.fpr).into())
    };
    rows(call, table::rows(layout(call, 0)?).flat_map(cells))
}

/// Implements `bloom_parameters(capacity, fpr, layout)`: returns one row with the size of a filter,
/// in bits, hashes and bytes, and the false positive rate that it has at its capacity. NULL for a
/// NULL capacity, since the size then depends on the elements that are added. Fails with 22023 for
/// invalid arguments.
fn parameters(call: &Call) -> Outcome {
    let request = FilterArguments::of_call(call, 0).request()?;
    let Some(capacity) = request.capacity else {
        return Ok(None);
    };
    let size = sizing::size_for_capacity(request.layout, capacity, request.fpr)?;
    let columns = [
        ResultColumn::I64((size.blocks * size.layout.block_bits()) as i64),
        ResultColumn::I32(size.num_hashes as i32),
        ResultColumn::I64(Header::with_size(size, Kind::NONE).dense_bytes() as i64),
        ResultColumn::F64(rate::expected(size.shape(), capacity as f64)),
    ];
    Ok(Some(row(call, &columns)))
}

/// Implements `bloom_capacity(bytes, fpr, layout)`: returns the largest capacity whose filter takes
/// at most this number of bytes; NULL for NULL. Fails with 22023 for invalid arguments.
fn capacity(call: &Call) -> Outcome {
    let Some(bytes) = call.i64(0) else {
        return Ok(None);
    };
    // In place of a capacity, argument 0 has bytes.
    let arguments = FilterArguments { capacity: None, ..FilterArguments::of_call(call, 0) };
    let request = arguments.request()?;
    let bytes = u64::try_from(bytes).map_err(|_| {
        invalid_parameter(format!("a bloom filter cannot have {bytes} bytes"))
            .hint("Give a positive size.")
    })?;
    Ok(Some(Datum::from(filter::capacity_for_bytes(request.layout, bytes, request.fpr)? as i64)))
}

/// Implements `bloom_expected_fpr(elements, num_bits, num_hashes, layout)`: returns the false
/// positive rate of a filter of this size with this number of distinct elements; NULL if one of the
/// numbers is. Bits that are no whole block are left out. Fails with 22023 for numbers that no
/// filter of the layout can have.
fn expected_fpr(call: &Call) -> Outcome {
    let (Some(elements), Some(bits), Some(hashes)) = (call.i64(0), call.i64(1), call.i32(2)) else {
        return Ok(None);
    };
    let layout = layout(call, 3)?;
    let has_fixed_number = layout == Layout::Parquet;
    // The number of hashes of a Parquet filter is fixed by the format.
    let possible = if has_fixed_number { PARQUET_HASHES..=PARQUET_HASHES } else { 1..=MAX_HASHES };
    let hashes = u32::try_from(hashes)
        .ok()
        .filter(|hashes| possible.contains(hashes))
        .ok_or_else(|| {
            let possible = if has_fixed_number {
                PARQUET_HASHES.to_string()
            } else {
                format!("from 1 to {MAX_HASHES}")
            };
            invalid_parameter(format!(
                "number of hashes in layout \"{}\" must be {possible}, not {hashes}",
                layout.name()
            ))
            .hint("bloom_parameters(capacity, fpr, layout) says how many are best.")
        })?;
    if elements < 0 {
        return Err(invalid_parameter(format!(
            "number of elements must not be negative, but is {elements}"
        ))
        .hint("Give the number of distinct elements."));
    }
    let blocks = u64::try_from(bits).unwrap_or(0) / layout.block_bits();
    if blocks == 0 {
        return Err(invalid_parameter(format!(
            "number of bits must be at least {}, not {bits}",
            layout.block_bits()
        ))
        .hint(format!("A block of layout \"{}\" has that many.", layout.name())));
    }
    Ok(Some(Datum::from(
        rate::expected(Shape { layout, num_hashes: hashes, blocks }, elements as f64).to_bits(),
    )))
}

pg_functions! {
    bloom_best_practices => best_practices;
    bloom_sizing_table => sizing_table;
    bloom_parameters => parameters;
    bloom_parameters_at_fpr => |call| at_fpr(call, 1, parameters);
    bloom_capacity => capacity;
    bloom_capacity_at_fpr => |call| at_fpr(call, 1, capacity);
    bloom_expected_fpr => expected_fpr;
}
