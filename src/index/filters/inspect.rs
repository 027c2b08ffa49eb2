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
    for page in directory.all_row_pages() {
        let mut used = 0;
        index.each_slot(page, |_, state, _| used += i64::from(state == State::Used))?;
        filters += used;
        slots += i64::from(page.slots);
        let is_always = directory.group(page.group).is_some_and(|group| group.holds == Holds::Nothing);
        always += if is_always { used } else { 0 };
    }
    Ok(Info {
        table_pages: named.table().pages().into(),
        levels: 1,
        rows_built: directory.chain.rows_built,
        pages_per_lookup: directory.pages_per_lookup() as f64,
        filters: Some(filters),
        slots: Some(slots),
        always_probed: Some(always),
        ..Info::default()
    })
}
