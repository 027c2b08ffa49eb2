//! `bloom_index_check`: whether the index would find every row of its table.
//!
//! The rows are those that everybody sees who begins now. Each is looked for as a question would, in the two pages that
//! its bits are in.

use super::column::Index;
use super::opened::Named;
use super::page::{missed, unhashed};
use super::rows;
use crate::pg::call::{Call, Element};
use crate::pg::error::{Outcome, Result, raise};
use crate::pg::snapshot::Latest;
use crate::pg::table::scan_for_check;
use pg_bloom_core::range::{Directory, Pages};
use pgrx::pg_sys::Datum;

/// `bloom_index_check(index regclass) → bigint`
fn check(call: &Call) -> Outcome {
    let named = Named::argument(call)?.valid()?;
    if rows::is_over_filters(named.index()) {
        return Ok(Some(Datum::from(rows::check(&named)?)));
    }
    // Rows that the snapshot sees got their bits and tiles before it was taken.
    let snapshot = Latest::take();
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let mut rows = 0i64;
    scan_for_check(named.table(), named.index(), &snapshot, |row| {
        // One that is NULL is never looked for.
        let Some(datum) = row.value else { return };
        match has(&index, &directory, row.page, Element { datum }) {
            Ok(true) => rows += 1,
            Ok(false) => raise(missed(named.index(), named.table(), row)),
            Err(error) => raise(error),
        }
    });
    Ok(Some(Datum::from(rows)))
}

/// Whether a row on this page of the table would be found.
fn has(index: &Index, directory: &Directory, table_page: u32, element: Element) -> Result<bool> {
    let hash = index.column().hasher().hash(element).ok_or_else(unhashed)?;
    let range = table_page / directory.options.pages_per_range;
    let Some(places) = directory.places(range, hash) else { return Ok(false) };
    for mark in places.in_lock_order() {
        let is_set = index.pages().with(mark.page(), |page| mark.is_set(page));
        let is_set = is_set.and_then(|found| Ok(found?)).map_err(|failure| failure.of(index.relation()))?;
        if !is_set {
            return Ok(false);
        }
    }
    Ok(true)
}

pg_functions! {
    bloom_index_check => check;
}
