//! Bitmap scans: the rows whose filters may have a key.

use super::column::{FiltersIndex, check_rows, refuse_class};
use crate::element::{ElementType, HashForKind, ProbeKey, with_value};
use crate::error::unsupported;
use crate::key_condition::STRATEGY_CONTAINS;
use crate::pg::call::Result;
use crate::pg::catalog;
use crate::pg::memory::in_scratch;
use crate::pg::method::scan::{Key, RowBatch};
use crate::pg::storage::relation::{Opened, Relation};
use pg_bloom_core::Kind;
use pg_bloom_core::index::filters::{FilterCondition, FilterGroup, FoundRow, Sought, search};
use pg_bloom_core::index::page::RowId;
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Oid};

/// Adds to a bitmap the rows of the table whose filters match all scan keys, by the copies of the
/// filters' bits that the index has. A *scan key* is a comparison of the query with the column of
/// filters, such as `filter @> 'x'`, or `@> ANY` of some elements.
///
/// PostgreSQL *rechecks* a row that is added with a mark: it evaluates the scan keys on the row's
/// own filter. The rows are marked of which the index has no exact copy of the filter. But if all
/// scan keys are of the operator `@=>`, no row is marked: the planner has put `@=>` in the place of
/// the query's `@>`, and PostgreSQL evaluates that `@>` on all rows in any case.
///
/// Fails with 0A000 if the keys' type can't be asked for, or if their collation doesn't compare
/// bytes, and with XX002 or XX001 if the index or the table is damaged: the index must not name a
/// row that the table can't have.
///
/// # Safety
/// The keys must be those of a scan of the index.
pub unsafe fn bitmap(relation: Relation, keys: &[Key], rows: &mut RowBatch) -> Result<()> {
    let index = FiltersIndex::open(relation)?;
    let bloom_key_type = index.column().bloom_key_type;
    // A nested loop scans again and again, so what is parsed for one scan must not stay.
    // SAFETY: the keys are those of a scan. What is returned is in Rust's memory.
    let conditions = unsafe {
        in_scratch(|| {
            let parsed = keys.iter().map(|key| alternatives(relation, bloom_key_type, key));
            parsed.collect::<Result<List<_>>>()
        })?
    };
    // The right side of `@=>` is of type `bloom_key`, that of `@>` is a text.
    let some_key_is_rechecked = keys.iter().any(|key| key.asked_type != bloom_key_type);

    let directory = index.directory()?;
    let mut last_row: Option<RowId> = None;
    let mut row_without_place: Option<RowId> = None;
    let mut add = |FoundRow { row, must_recheck }| {
        last_row = last_row.max(Some(row));
        let is_added = rows.add(row, must_recheck && some_key_is_rechecked);
        if !is_added {
            // No page of a table has a line with this number.
            row_without_place = Some(row);
        }
    };
    let in_group = |group: &FilterGroup| sought_in_group(&conditions, group);
    index.checked(search(&directory, &mut index.pages(), in_group, &mut add))?;
    rows.counts.index_pages += index.pages_read();

    // Only damage lets an index name a row that its table can't have. If the table has the page of
    // the last row, it has those of all others, so one row is checked. The table may be longer than
    // it was when the search began, but it had each row that was found.
    let Some(last_row) = last_row else {
        return Ok(());
    };
    let row_to_check = row_without_place.unwrap_or(last_row);
    let table = Opened::table_of(relation);
    check_rows(relation, table.relation(), [row_to_check].into_iter())
}

/// Returns the elements that one scan key looks for: a filter must have at least one of them. A
/// *scan key* is a comparison of the query with the column of filters. Its values are texts, or of
/// the extension's type `bloom_key`, whose identifier is `bloom_key_type`.
///
/// Fails with 0A000 if the key has values of another type or another operator, or if its collation
/// doesn't compare bytes, and with 22P03 for a damaged value of type `bloom_key`.
///
/// # Safety
/// The key must be one of a scan of the index.
unsafe fn alternatives(
    relation: Relation,
    bloom_key_type: Oid,
    key: &Key,
) -> Result<List<ProbeKey>> {
    // A superuser can add another operator to the family after the index was opened.
    if key.strategy != STRATEGY_CONTAINS {
        return Err(refuse_class(relation));
    }
    let elements = key.sought().into_iter();
    if key.asked_type == bloom_key_type {
        // SAFETY: the elements are of that type, which is of variable length.
        let parse = |element| unsafe { with_value(element, ProbeKey::parse) };
        return elements.map(parse).collect();
    }
    if key.asked_type != pg_sys::TEXTOID {
        let asked = catalog::display_name(key.asked_type);
        let message = format!("an index over filters can't be asked for type {asked}");
        return Err(unsupported(message, "Use the operator class bloom_ops."));
    }
    let element_type = ElementType::of_key(relation.handler(), key.asked_type, key.collation)?;
    // SAFETY: what is looked for is of the type that the key says.
    let probe_key = |element| unsafe { element_type.probe_key(Some(element)) };
    Ok(elements.map(probe_key).collect())
}

/// Returns what each condition of a scan looks for in the filters of a group: filters that have
/// elements of one type, their *key kind*, and one size. A condition is a list of probe keys,
/// elements in the form of the type `bloom_key`, of which a filter must have at least one.
///
/// Each probe key becomes what [`sought_for_key`] returns for it. Keys for which that is `None` are
/// left out, so that a condition of which no key is left finds no filter of the group.
fn sought_in_group(conditions: &[List<ProbeKey>], group: &FilterGroup) -> List<FilterCondition> {
    let kind = group.kind();
    let sought_for_condition =
        |keys: &List<ProbeKey>| keys.iter().filter_map(|key| sought_for_key(key, kind)).collect();
    conditions.iter().map(sought_for_condition).collect()
}

/// Returns what to look for in filters of one key kind, the type of their elements, to find those
/// that have the element of a probe key: the element's hash for this kind. `None` if no such filter
/// can have it: 2^40 isn't in a filter of 32-bit integers.
///
/// For an element of another type, returns [`Sought::OtherKind`], by which all rows of these
/// filters are found: PostgreSQL then evaluates the condition, which raises the error for it.
/// Filters without elements have no kind, so they are found, too.
fn sought_for_key(key: &ProbeKey, kind: Kind<'_>) -> Option<Sought> {
    if kind.is_none() {
        return Some(Sought::OtherKind);
    }
    match key.hash_for_kind(kind) {
        HashForKind::Hash(hash) => Some(Sought::Hash(hash)),
        HashForKind::Absent => None,
        HashForKind::OtherKind => Some(Sought::OtherKind),
    }
}
