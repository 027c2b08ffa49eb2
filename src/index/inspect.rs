//! `bloom_index_info` and `bloom_index_check`.

use super::dispatch;
use super::kind::Info;
use super::named_index::NamedIndex;
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::value::row::{ResultColumn, row};
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

fn columns(named: &NamedIndex, info: &Info) -> [ResultColumn; 18] {
    let count =
        |number: Option<u64>| number.map_or(ResultColumn::Null, |number| ResultColumn::I64(number.cast_signed()));
    let integer = |number: Option<i64>| number.map_or(ResultColumn::Null, ResultColumn::I64);
    let real = |number: Option<f64>| number.map_or(ResultColumn::Null, ResultColumn::F64);
    [
        ResultColumn::I64(named.index().pages().into()),
        ResultColumn::I64(info.table_pages.cast_signed()),
        info.pages_per_range.map_or(ResultColumn::Null, |pages| ResultColumn::I32(pages.cast_signed())),
        count(info.ranges),
        ResultColumn::I32(info.levels),
        ResultColumn::I64(info.rows_built.cast_signed()),
        real(info.elements),
        real(info.bits_per_element),
        real(info.target_fpr),
        real(info.current_fpr),
        count(info.overfull_ranges),
        ResultColumn::F64(info.pages_per_lookup),
        integer(info.filters),
        integer(info.slots),
        integer(info.always_probed),
        real(info.keys_per_row),
        real(info.keys_per_range),
        info.ranges_per_page.map_or(ResultColumn::Null, |ranges| ResultColumn::I32(ranges.into())),
    ]
}

pg_functions! {
    bloom_index_info => info;
    bloom_index_check => check;
}
