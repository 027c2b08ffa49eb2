//! `bloom_index_info` of an index over ranges; and `bloom_index_check`: whether it would find every
//! row of its table by each of its keys. First the pages of all tiles are looked at: by a damaged
//! header PostgreSQL would lose their bits later. The rows are those that everybody sees who begins
//! now. Each key is looked up as a query would do it, in the pages that its bits are in, and an
//! element by the heap filter on its own page as well.

use super::columns::Index;
use super::insert::RecentKeys;
use super::rows::HashFilter;
use crate::index::kind::IndexInfo;
use crate::index::live_rows::each_live_row;
use crate::index::named_index::NamedIndex;
use crate::index::page::missed;
use crate::pg::call::error::Result;
use crate::pg::method::table::Latest;
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::index::ranges::{Directory, Expectation, Level, Survey};

/// Returns what `bloom_index_info` says of an index over ranges. Fails with XX002 if it is damaged.
pub fn info(named: &NamedIndex) -> Result<IndexInfo> {
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let survey = index.checked(Survey::read(&directory, &mut index.pages()))?;
    let options = directory.options;
    let expected = Expectation::for_directory(&directory);

    // The last range may be shorter in the table than in the index.
    let last_slot = directory.end_slot(Level::Zero).checked_sub(1);
    let pages_of_ranges =
        last_slot.map_or(0, |slot| options.pages_of(u32::try_from(slot).unwrap_or(u32::MAX)).end);
    let has_tiles = |&level: &Level| directory.tile_count(level) > 0;
    let levels = Level::ALL.into_iter().filter(has_tiles).count().max(1);
    let has_ranges = survey.ranges > 0;
    Ok(IndexInfo {
        pages: named.index().pages().into(),
        table_pages: pages_of_ranges.min(named.table().pages().into()),
        pages_per_range: Some(options.pages_per_range),
        ranges: Some(survey.ranges),
        levels: levels as u32,
        rows_built: directory.chain.rows_built,
        elements: Some(survey.keys),
        bits_per_element: Some(survey.bits as f64 / survey.keys.max(1.0)),
        target_fpr: Some(expected.fpr),
        current_fpr: Some(survey.fpr),
        overfull_ranges: Some(survey.overfull),
        pages_per_lookup: expected.index_pages,
        keys_per_row: Some(directory.keys_per_row.max(1).into()),
        keys_per_range: has_ranges.then(|| survey.keys / survey.ranges as f64),
        ranges_per_page: options.split.map(|split| split.ranges_per_page.into()),
        ..IndexInfo::default()
    })
}

/// Checks the index against its table, and returns how many rows it has. Fails with XX002 if a page
/// is damaged, or if the index would not find a row.
pub fn check(named: &NamedIndex) -> Result<i64> {
    // Rows that the snapshot sees got their bits and tiles before it was taken.
    let snapshot = Latest::take(named.table());
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    for level in Level::ALL {
        for tile in directory
            .tiles_from(level, 0)
            .take_while(|tile| index.pages().has(tile.first_page))
        {
            index.pages().check_each(tile.pages(), tile.special())?;
        }
    }
    let filter = HashFilter::new(&index, named.table());
    // What the heap filter finds on the page that the scan is on: it has the rows of a page one
    // after the other.
    let (mut page, mut on_page) = (None, Vec::new());
    // Most parts are those of the rows before.
    let (found, mut count) = (RecentKeys::default(), 0);
    each_live_row(named.table(), named.index(), &snapshot, |row, value| {
        // One that is NULL is never looked for.
        let Some(value) = value else { return Ok(()) };
        let range = directory.options.range_of(row);
        let mut result = Ok(true);
        // SAFETY: the value is that of the index's column.
        unsafe {
            index.kind().each_key(value, |hash| {
                let key = (index.number(), range, hash);
                if matches!(result, Ok(true)) && !found.has(&key) {
                    result = has(&index, &directory, row, hash);
                    found.add(key);
                }
                if let (Ok(is_found), Some(filter)) = (&mut result, &filter) {
                    if page != Some(row.page) {
                        (page, on_page) = (Some(row.page), filter.rows_of(row.page));
                    }
                    *is_found &= on_page.iter().any(|&(line, own)| {
                        line.is_none_or(|line| line == row.line)
                            && own.is_none_or(|own| own == hash)
                    });
                }
            })?;
        }
        if !result? {
            return Err(missed(named.index(), named.table(), row));
        }
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Whether a row with this hash would be looked for where it is. XX002 for damage.
fn has(index: &Index, directory: &Directory, row: RowId, hash: u64) -> Result<bool> {
    let Some(places) = directory.marks(directory.options.range_of(row), hash) else {
        return Ok(false);
    };
    for mark in &places {
        if !index.read(mark.page(), |page| mark.is_set(page))? {
            return Ok(false);
        }
    }
    Ok(true)
}
