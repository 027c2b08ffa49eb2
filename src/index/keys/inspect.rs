//! `bloom_index_info` of an index over keys.

use super::column::Index;
use crate::index::kind::Info;
use crate::index::opened::Named;
use crate::pg::call::error::Result;
use pg_bloom_core::index::keys::Level;

/// What it is made for, and what it holds.
///
/// # Errors
/// XX002 for damage.
pub fn info(named: &Named) -> Result<Info> {
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let survey = directory.survey(&mut index.pages()).map_err(|failure| failure.of(named.index()))?;
    let options = directory.options;
    let room = directory.end_slot(Level::Zero) * u64::from(options.pages_per_range);
    Ok(Info {
        table_pages: room.min(u64::from(named.table().pages())),
        pages_per_range: Some(options.pages_per_range),
        ranges: Some(survey.ranges),
        levels: if directory.tiles(Level::One) > 0 { 2 } else { 1 },
        rows_built: directory.chain.rows_built,
        elements: Some(survey.elements),
        bits_per_element: Some(survey.bits_per_element()),
        target_fpr: Some(options.fpr),
        current_fpr: Some(survey.fpr),
        overfull_ranges: Some(survey.overfull),
        pages_per_lookup: directory.expectation().pages,
        ..Info::default()
    })
}
