//! Indexes in memory against a set of hashes for each range.

mod announcements;
mod damage;
mod growth;
mod histories;
mod rates;
mod splits;

use super::memory::{Failure, MemoryRanges};
use super::*;
use crate::hash::hash;
use std::collections::BTreeSet;

/// A usual rate.
const FPR: f64 = 0.00002;

/// Default options, except what a test is about.
fn options(bytes: usize, fpr: f64, keys_per_range: u32) -> Options {
    let size = PageSize::new(bytes).unwrap();
    Options {
        fpr: Some(fpr),
        ..Options::for_empty_table(size, 8, keys_per_range)
    }
}

/// The shape of a tile whose slots have a column each, in pages of the usual size.
fn shape(level: Level, width: Width, num_hashes: u8, pages: u32) -> TileShape {
    TileShape {
        level,
        width,
        columns_per_slot: 1,
        num_hashes,
        pages,
        size: PageSize::DEFAULT,
    }
}

/// An element that no other number is.
fn element(i: u64) -> u64 {
    hash(&i.to_le_bytes())
}

/// Ranges of so many elements each, all different.
fn ranges(ranges: u64, elements: u64) -> impl Iterator<Item = Vec<u64>> {
    (0..ranges).map(move |range| (range * elements..(range + 1) * elements).map(element).collect())
}

/// Ranges with so many elements each, all different.
fn uneven(
    ranges: std::ops::Range<u64>,
    elements: fn(u64) -> u64,
) -> impl Iterator<Item = Vec<u64>> {
    ranges.map(move |range| (range * 100..range * 100 + elements(range)).map(element).collect())
}

/// Adds the elements of ranges, of which this is the first.
fn append(index: &mut MemoryRanges, first: u32, ranges: impl Iterator<Item = Vec<u64>>) {
    for (range, hashes) in (first..).zip(ranges) {
        hashes
            .into_iter()
            .for_each(|hash| _ = index.insert(range, hash).unwrap());
    }
}

/// Adds to each range the element of its number.
fn add_one_each(index: &mut MemoryRanges, mut ranges: impl Iterator<Item = u32>) {
    ranges
        .try_for_each(|range| index.insert(range, element(range.into())).map(drop))
        .unwrap();
}

/// An index without ranges.
fn empty(options: Options) -> MemoryRanges {
    MemoryRanges::build(options, 0, std::iter::empty::<Vec<u64>>()).unwrap()
}

/// What must hold of every index: it reads as it was written, all tiles have their pages to
/// themselves, and tiles of level 0 from the first covered one on have their slots.
fn check(index: &MemoryRanges) {
    let size = index.directory.options.size;
    let read = MemoryRanges::open(index.memory.clone(), size).unwrap();
    assert_eq!(read.directory, index.directory);
    let mut taken: BTreeSet<u32> = [META_PAGE].into();
    taken.extend(&index.directory.chain.pages);
    assert_eq!(taken.len(), 1 + index.directory.chain.pages.len());
    for level in Level::ALL {
        let mut next = index
            .directory
            .tiles_from(level, 0)
            .next()
            .map_or(0, |first| u64::from(first.first_slot));
        for (tile, ordinal) in index.directory.tiles_from(level, 0).zip(0..) {
            assert_eq!((tile.ordinal, u64::from(tile.first_slot)), (ordinal, next));
            next += u64::from(tile.shape.slots());
            for slot in [tile.first_slot, (next - 1) as u32] {
                assert_eq!(index.directory.tile_of(level, slot), Some(tile));
            }
            assert_eq!(index.directory.tile(level, ordinal), Some(tile));
            for page in tile.pages() {
                assert!(taken.insert(page), "page {page} has two owners");
                let bytes = index.memory.pages.get(page as usize).map(Vec::as_slice);
                tile.payload(bytes, page).unwrap();
            }
        }
        assert_eq!(index.directory.end_slot(level), next);
    }
    assert_eq!(taken.len() as u32, index.directory.chain.allocated);
    for level in [Level::Zero, Level::One] {
        for tile in index
            .directory
            .tiles_from(level, index.directory.tiles_without_slot_above(level))
        {
            assert!(
                index
                    .directory
                    .tile_of(Level::ALL[level as usize + 1], tile.ordinal)
                    .is_some()
            );
        }
    }
}
