//! Indexes by any history and with any damage: no element is lost, and what the check accepts can
//! be used.

use super::forge::Input;
use super::{oracle, pages};
use pg_bloom_core::Layout;
use pg_bloom_core::index::ranges::memory::{Failure, Memory, MemoryRanges, set};
use pg_bloom_core::index::ranges::{
    Expectation, IndexDirectory, Level, Options, PageSize, Split, search,
};
use std::collections::{BTreeMap, BTreeSet};

/// The smallest pages: they fill up soonest.
const BYTES: usize = 1024;
/// The most tiles that are used: a file may say that it has millions.
const MOST_TILES: usize = 1000;

fn size() -> PageSize {
    PageSize::new(BYTES).expect("a possible size")
}

/// An input is options, a history and damage; then bytes of a metapage and of directory pages.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (history, damage) = (input.part(), input.part());
    let mut index = live(history);
    damaged(&mut index, damage);
    forged(input.0);
}

/// Builds and appends as the bytes say. Every element must be found in its range.
fn live(history: &[u8]) -> MemoryRanges {
    let mut input = Input(history);
    let shape = input.byte();
    let (fpr, is_flat) = ([1e-7, 0.00002, 0.01, 0.1][usize::from(shape % 4)], shape & 4 != 0);
    let fpr = (shape & 8 == 0).then_some(fpr);
    let guess = u32::from(input.byte());
    let (is_split, may_split) = (is_flat && shape & 16 != 0, is_flat && shape & 32 != 0);
    let mut options = Options { fpr, is_flat, ..Options::for_empty_table(size(), 8, guess) };
    if is_split || may_split {
        (options.pages_per_range, options.keys_per_range) = (1, guess % 50);
        options.split = is_split.then(|| Split::of_all_pages(1, 8));
    }
    let (built, each) = (u32::from(input.half() % 800), u64::from(input.byte() % 12));
    let hold = usize::from(input.half());
    let element = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut given: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for range in 0..built {
        let count = if each == 0 { 0 } else { u64::from(range) % each };
        given.insert(range, (0..count).map(|i| element(u64::from(range) + i * 7)).collect());
    }
    let lists = given
        .values()
        .map(|hashes| hashes.iter().copied().collect::<Vec<u64>>());
    let mut index = MemoryRanges::build(options, hold, lists).expect("possible options");
    index.directory.options.may_split = may_split;
    index.memory.pages[0] = index.directory.metapage().into();
    let mut range = built;
    while !input.0.is_empty() && range < 40_000 {
        let (step, hash) = (input.byte(), element(input.half().into()));
        range = match step % 8 {
            0..3 => range,
            3..6 => range + 1,
            6 => range + u32::from(step) * 64,
            _ => range / 2,
        };
        if index.directory.tile_of(Level::Zero, range).is_none() {
            match step % 3 {
                0 if index.directory.may_split_new_pages() => {
                    index.directory.split_new_pages(Split::of_all_pages(2, 6))
                }
                1 if index.directory.options.split.is_some_and(|split| split.is_open()) => {
                    index.directory.make_new_pages_whole()
                }
                _ => {}
            }
        }
        index.insert(range, hash).expect("an index that was not damaged");
        given.entry(range).or_default().insert(hash);
        for mark in index.directory.marks(range, hash).expect("it was just added") {
            assert!(
                mark.is_set(index.memory.pages.get(mark.page() as usize).map(Vec::as_slice))
                    .expect("its page")
            );
        }
    }
    index = reopened(index);
    for (range, hashes) in &given {
        for &hash in hashes.iter().take(3) {
            assert!(
                index.search(hash).expect("sound pages").contains(range),
                "{hash:x} of range {range}"
            );
        }
    }
    index
}

fn reopened(index: MemoryRanges) -> MemoryRanges {
    let read = MemoryRanges::open(index.memory, size()).expect("it reads what it wrote");
    assert_eq!(read.directory, index.directory);
    read
}

/// Changes bytes of its directory, or of any page, and uses what is left.
fn damaged(index: &mut MemoryRanges, damage: &[u8]) {
    let mut memory = std::mem::take(&mut index.memory);
    pages::damage(&mut memory, &index.directory.chain.pages, BYTES, damage);
    open_and_use(memory);
}

/// Makes pages of the bytes, with what they must say in any case.
fn forged(bytes: &[u8]) {
    let memory = pages::forge(bytes, BYTES, |page| {
        page[24..32].copy_from_slice(b"bfix\x01\0\0\0");
        page[64..72].copy_from_slice(&0.01f64.to_le_bytes());
    });
    open_and_use(memory);
}

fn open_and_use(memory: Memory) {
    match MemoryRanges::open(memory, size()) {
        Ok(mut index) => use_it(&mut index),
        Err(Failure::Damage(damage)) => assert!(!damage.problem.is_empty()),
        Err(other) => panic!("{other:?}"),
    }
}

/// What an accepted directory promises, and everything that can be done with it.
fn use_it(index: &mut MemoryRanges) {
    let directory = index.directory.clone();
    assert!(Expectation::for_directory(&directory).index_pages >= 1.0);
    for level in Level::ALL {
        let mut end = 0;
        for tile in directory.tiles_from(level, 0).take(MOST_TILES) {
            let pages = tile.pages();
            assert!(
                pages.start >= 1
                    && pages.start < pages.end
                    && pages.end <= directory.chain.allocated
            );
            assert!(end == 0 || tile.first_slot == end, "slots without a gap");
            assert_eq!(directory.tile_of(level, tile.first_slot), Some(tile));
            assert_eq!(directory.tile(level, tile.ordinal), Some(tile));
            end = tile.first_slot.wrapping_add(tile.shape.slots());
        }
    }
    let few = (directory.always_probed() as usize) < MOST_TILES;
    for i in 0..8u64 {
        // Positions by core/src/index/pages.md, from another page's words: any hash will do.
        let hash = oracle::positions(Layout::Blocked, 1, u64::MAX >> 9, i << 60 | i)[0];
        if few {
            let _ = search(&directory, &mut index.memory, hash, |range| {
                assert!(directory.tile_of(Level::Zero, range).is_some());
            });
        }
        let range = (hash >> 32) as u32 >> (i * 4);
        let Some(places) = directory.marks(range, hash) else {
            assert!(u64::from(range) >= directory.end_slot(Level::Zero));
            continue;
        };
        assert!(places.len() <= Level::ALL.len());
        for mark in &places {
            if let Some(page) = index.memory.pages.get_mut(mark.page() as usize)
                && set(mark, page).is_ok()
            {
                assert_eq!(mark.is_set(Some(page)), Ok(true));
            }
        }
    }
    let next = directory.end_slot(Level::Zero).min(u32::MAX.into()) as u32;
    if let Ok(growth) =
        directory.grow(next, |level| directory.keys_in_last_tile(&mut index.memory, level))
    {
        assert!(growth.directory.tile_of(Level::Zero, next).is_some());
    }
}
