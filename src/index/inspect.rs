//! `bloom_index_info`: what an index is made for, and what it holds.

use super::column::Index;
use super::opened::Named;
use super::rows;
use crate::pg::call::Call;
use crate::pg::error::Outcome;
use crate::pg::row::{Column, row};
use pg_bloom_core::index::keys::Level;

/// `bloom_index_info(index regclass) → record`
fn info(call: &Call) -> Outcome {
    let named = Named::argument(call)?.valid()?;
    if rows::is_over_filters(named.index()) {
        return Ok(Some(row(call, &rows::columns(&named)?)));
    }
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let survey = directory.survey(&mut index.pages()).map_err(|failure| failure.of(named.index()))?;
    let options = directory.options;
    let room = directory.end_slot(Level::Zero) * u64::from(options.pages_per_range);
    let covered = room.min(u64::from(named.table().pages()));
    let levels = if directory.tiles(Level::One) > 0 { 2 } else { 1 };
    Ok(Some(row(
        call,
        &[
            Column::I64(i64::from(named.index().pages())),
            Column::I64(covered.cast_signed()),
            Column::I32(options.pages_per_range.cast_signed()),
            Column::I64(survey.ranges.cast_signed()),
            Column::I32(levels),
            Column::I64(directory.chain.rows_built.cast_signed()),
            Column::F64(survey.elements),
            Column::F64(survey.bits_per_element()),
            Column::F64(options.fpr),
            Column::F64(survey.fpr),
            Column::I64(survey.overfull.cast_signed()),
            Column::F64(directory.expectation().pages),
            Column::Null,
            Column::Null,
            Column::Null,
        ],
    )))
}

pg_functions! {
    bloom_index_info => info;
}
