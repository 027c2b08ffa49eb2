//! Bitmap scans: the rows whose filters may have a key.

use super::column::{Index, check_rows};
use crate::element::{ElementType, ProbeKey, with_value};
use crate::error::unsupported;
use crate::pg::call::Result;
use crate::pg::catalog;
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::{Opened, Relation};
use pg_bloom_core::index::filters::{FilterCondition, FilterGroup, FoundRow, Sought, search};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory;
use pgrx::pg_sys;

/// Errors: 0A000 also for a collation that does not compare bytes.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn bitmap(relation: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = Index::of(relation)?;
    // What a condition looks for: at least one of these.
    let alternatives = |key: &Key| -> Result<Vec<ProbeKey>> {
        let (asked, elements) = (key.asked_type, key.sought());
        if asked == index.kind().key {
            // SAFETY: the elements are of that type, which is of variable length.
            let parse = |element| unsafe { with_value(element, ProbeKey::parse) };
            return memory::try_collect(elements.into_iter().map(parse));
        }
        if asked != pg_sys::TEXTOID {
            let message = format!(
                "an index over filters can't be asked for type {}",
                catalog::display_name(asked)
            );
            return Err(unsupported(message, "Use the operator class bloom_ops."));
        }
        let element_type = ElementType::of_key(index.relation.handler(), asked, key.collation)?;
        // SAFETY: what is looked for is of the type that the key says.
        Ok(memory::collect(
            elements
                .into_iter()
                .map(|element| unsafe { element_type.probe_key(Some(element)) }),
        ))
    };
    // A nested loop asks again and again.
    // SAFETY: what is returned is in Rust's memory.
    let sought = unsafe { in_scratch(|| memory::try_collect(keys.iter().map(alternatives)))? };
    // PostgreSQL evaluates what `@=>` stands for on all rows that are found: see `cost`.
    let is_own = keys.iter().any(|key| key.asked_type != index.kind().key);
    let directory = index.directory()?;
    // The row on the highest page, and one that no page has.
    let (mut highest, mut wrong): (Option<RowId>, Option<RowId>) = (None, None);
    let mut add = |FoundRow { row, must_recheck }| {
        highest = highest.max(Some(row));
        if !rows.add(row, must_recheck && is_own) {
            wrong = Some(row);
        }
    };
    index.checked(search(
        &directory,
        &mut index.pages(),
        |group| conditions(&sought, group),
        &mut add,
    ))?;
    let Some(highest) = highest else {
        return Ok(());
    };
    // Others may have made the table longer, but no row was found before it was there.
    let table = Opened::table_of(relation);
    check_rows(relation, table.relation(), [wrong.unwrap_or(highest)].into_iter())
}

fn conditions(keys: &[Vec<ProbeKey>], group: &FilterGroup) -> Vec<FilterCondition> {
    let asked = |key: &ProbeKey| match key.hash_of_kind(group.kind()) {
        Some(hash) if !group.kind().is_none() => hash.map(Sought::Hash),
        _ => Some(Sought::OtherKind),
    };
    memory::collect(
        keys.iter()
            .map(|alternatives| memory::collect(alternatives.iter().filter_map(asked))),
    )
}
