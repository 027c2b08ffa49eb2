//! `bloom_index_info` and `bloom_index_check`.

use super::dispatch;
use super::kind::Info;
use super::named_index::NamedIndex;
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::value::row::{Column, row};
use pgrx::pg_sys::Datum;

/// `bloom_index_info(index regclass) → record`
fn info(call: &Call) -> Outcome {
    let named = NamedIndex::argument(call)?;
    let info = (dispatch::of(named.index()).info)(&named)?;
    Ok(Some(row(call, &columns(&named, &info))))
}

/// `bloom_index_check(index regclass) → bigint`
fn check(call: &Call) -> Outcome {
    let named = NamedIndex::argument(call)?;
    Ok(Some(Datum::from((dispatch::of(named.index()).check)(&named)?)))
}

fn columns(named: &NamedIndex, info: &Info) -> [Column; 18] {
    let count = |number: Option<u64>| number.map_or(Column::Null, |number| Column::I64(number.cast_signed()));
    let integer = |number: Option<i64>| number.map_or(Column::Null, Column::I64);
    let real = |number: Option<f64>| number.map_or(Column::Null, Column::F64);
    [
        Column::I64(named.index().pages().into()),
        Column::I64(info.table_pages.cast_signed()),
        info.pages_per_range.map_or(Column::Null, |pages| Column::I32(pages.cast_signed())),
        count(info.ranges),
        Column::I32(info.levels),
        Column::I64(info.rows_built.cast_signed()),
        real(info.elements),
        real(info.bits_per_element),
        real(info.target_fpr),
        real(info.current_fpr),
        count(info.overfull_ranges),
        Column::F64(info.pages_per_lookup),
        integer(info.filters),
        integer(info.slots),
        integer(info.always_probed),
        real(info.keys_per_row),
        real(info.keys_per_range),
        info.ranges_per_page.map_or(Column::Null, |ranges| Column::I32(ranges.into())),
    ]
}

pg_functions! {
    bloom_index_info => info;
    bloom_index_check => check;
}
