//! Indexes in memory against the filters themselves.

mod damage;
mod histories;
mod shapes;

use super::memory::{Failure, Memory, MemoryFilters};
use super::*;
use crate::filter::View;
use crate::filter::build::{Request, contains, tests::built};
use crate::hash::{hash, word};
use crate::index::page::{PageSize, RowId};
use crate::kind::Tag;
use crate::layout::Layout;
use std::collections::BTreeMap;

/// An element that no other number is.
fn element(i: u64) -> u64 {
    hash(&i.to_le_bytes())
}

/// The filter of some of a small universe of elements, so that lookups find some.
fn filter(
    layout: Layout,
    tag: Tag,
    capacity: Option<u64>,
    elements: impl Iterator<Item = u64>,
) -> Vec<u8> {
    let hashes: Vec<u64> = elements.map(element).collect();
    let tag = if capacity.is_none() && hashes.is_empty() { Tag::None } else { tag };
    built(Request { capacity, fpr: 0.01, layout }, tag, &hashes)
}

/// What a lookup of an element of this kind wants.
fn sought(group: &FilterGroup, tag: Tag, i: u64) -> Sought {
    let is_any = group.holds == Holds::Nothing;
    if is_any || group.kind().tag == tag {
        Sought::Hash(element(i))
    } else {
        Sought::OtherKind
    }
}

/// Rows that a sequential scan finds: those whose filter may have the element, and those of another
/// kind, which raise an error.
fn naive(rows: &BTreeMap<RowId, Vec<u8>>, tag: Tag, i: u64) -> Vec<RowId> {
    let may = |bytes: &[u8]| {
        let view = View::parse(bytes).expect("a filter");
        !view.header.kind.is_none() && (view.header.kind.tag != tag || contains(&view, element(i)))
    };
    rows.iter()
        .filter(|(_, bytes)| may(bytes))
        .map(|(row, _)| *row)
        .collect()
}

/// Asserts that the index finds the rows that a scan finds, and others only if they must be
/// rechecked.
fn assert_same(index: &mut MemoryFilters, rows: &BTreeMap<RowId, Vec<u8>>, tag: Tag, i: u64) {
    let found = index
        .search(|group| vec![vec![sought(group, tag, i)]])
        .expect("sound pages");
    let expected = naive(rows, tag, i);
    for row in &expected {
        assert!(found.contains_key(row), "{row:?} is missed");
    }
    for (row, again) in found {
        // Those of rows that are gone are invisible, and need no place here.
        let is_gone = !rows.contains_key(&row);
        assert!(again || is_gone || expected.contains(&row), "{row:?} is found without a recheck");
    }
}

/// What must hold of every index: it reads as it was written, each page belongs to one, and each
/// slot has its tile.
fn check(index: &MemoryFilters) {
    let size = index.directory.size;
    let read = MemoryFilters::open(index.memory.clone(), size).unwrap();
    assert_eq!(read.directory, index.directory);
    let mut taken = vec![0];
    taken.extend(&index.directory.chain.pages);
    for (number, _) in index.directory.groups() {
        for tile in index.directory.tiles(number) {
            taken.extend(tile.pages());
        }
        for page in index.directory.row_pages(number) {
            taken.push(page.number);
            for slot in 0..=page.slots {
                let has =
                    |tile: &&Tile| tile.row_page == page.number && tile.slots().contains(&slot);
                let tile = index.directory.tiles(number).iter().find(has);
                assert_eq!(index.directory.slot(page, slot).map(|slot| slot.tile), tile.copied());
            }
        }
    }
    taken.sort_unstable();
    assert!(
        taken.iter().copied().eq(0..index.directory.chain.allocated),
        "every page has one owner"
    );
}
