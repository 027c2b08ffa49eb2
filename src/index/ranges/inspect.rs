//! `bloom_index_info` of an index over ranges.

use super::columns::Index;
use crate::index::kind::Info;
use crate::index::named_index::NamedIndex;
use crate::pg::call::error::Result;
use pg_bloom_core::index::ranges::Level;

/// # Errors
/// XX002 for damage.
pub fn info(named: &NamedIndex) -> Result<Info> {
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let survey = directory.survey(&mut index.pages()).map_err(|failure| failure.of(named.index()))?;
    let options = directory.options;
    let expected = directory.expectation();
    let room = match directory.end_slot(Level::Zero) {
        0 => 0,
        slots => options.pages_of(u32::try_from(slots - 1).unwrap_or(u32::MAX)).end,
    };
    Ok(Info {
        table_pages: room.min(u64::from(named.table().pages())),
        pages_per_range: Some(options.pages_per_range),
        ranges_per_page: options.split.map(|split| split.ranges),
        ranges: Some(survey.ranges),
        levels: Level::ALL.into_iter().filter(|&level| directory.tiles(level) > 0).count().max(1) as i32,
        rows_built: directory.chain.rows_built,
        elements: Some(survey.elements),
        bits_per_element: Some(survey.bits_per_element()),
        target_fpr: Some(expected.fpr),
        current_fpr: Some(survey.fpr),
        overfull_ranges: Some(survey.overfull),
        pages_per_lookup: expected.pages,
        keys_per_row: Some(f64::from(directory.keys_per_row.max(1))),
        keys_per_range: (survey.ranges > 0).then(|| survey.elements / survey.ranges as f64),
        ..Info::default()
    })
}
