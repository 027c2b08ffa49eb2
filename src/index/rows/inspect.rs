//! `bloom_index_info` of an index over filters. Its filters have rates of their own, so what is said of rates is NULL.

use super::super::opened::Named;
use super::super::page::Failure;
use super::column::Index;
use crate::pg::error::Result;
use crate::pg::row::Column;
use pg_bloom_core::index::filters::{Holds, State};
use pg_bloom_core::index::page::Pages;

/// The columns of the row.
///
/// # Errors
/// XX002 for damage.
pub fn columns(named: &Named) -> Result<Vec<Column>> {
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let (mut filters, mut slots, mut always) = (0, 0, 0);
    for (number, group) in directory.groups() {
        for page in directory.row_pages(number) {
            let mut used = 0;
            let count = |_, state, _| used += i64::from(state == State::Used);
            let read = index.pages().with(page.page, |bytes| page.rows(bytes, count));
            read.and_then(|read| read.map_err(Failure::from)).map_err(|failure| failure.of(named.index()))?;
            filters += used;
            slots += i64::from(page.slots);
            always += if group.holds == Holds::Nothing { used } else { 0 };
        }
    }
    let pages = 1.0 + f64::from(directory.all_tiles()) + directory.all_row_pages() as f64;
    Ok(vec![
        Column::I64(named.index().pages().into()),
        Column::I64(named.table().pages().into()),
        Column::Null,
        Column::Null,
        Column::I32(1),
        Column::I64(directory.chain.rows_built.cast_signed()),
        Column::Null,
        Column::Null,
        Column::Null,
        Column::Null,
        Column::Null,
        Column::F64(pages),
        Column::I64(filters),
        Column::I64(slots),
        Column::I64(always),
    ])
}
