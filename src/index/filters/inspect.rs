//! `bloom_index_info` of an index over filters. Its filters have rates of their own, so what is said of rates is NULL.

use super::column::Index;
use crate::index::kind::Info;
use crate::index::named_index::NamedIndex;
use crate::pg::call::error::Result;
use pg_bloom_core::index::filters::{Holds, State};

/// # Errors
/// XX002 for damage.
pub fn info(named: &NamedIndex) -> Result<Info> {
    let index = Index::of(named.index())?;
    let directory = index.directory()?;
    let (mut filters, mut slots, mut always) = (0, 0, 0);
    for (number, group) in directory.groups() {
        for page in directory.row_pages(number) {
            let mut used = 0;
            index.each_slot(page, |_, state, _| used += i64::from(state == State::Used))?;
            filters += used;
            slots += i64::from(page.slots);
            always += if group.holds == Holds::Nothing { used } else { 0 };
        }
    }
    let pages = 1.0 + f64::from(directory.all_tiles()) + directory.all_row_pages() as f64;
    Ok(Info {
        table_pages: named.table().pages().into(),
        levels: 1,
        rows_built: directory.chain.rows_built,
        pages_per_lookup: pages,
        filters: Some(filters),
        slots: Some(slots),
        always_probed: Some(always),
        ..Info::default()
    })
}
