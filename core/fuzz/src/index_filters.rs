//! Indexes over filters by any history and with any damage: a lookup finds what the filters have,
//! and what the check accepts can be used.

use super::forge::{Input, repair};
use super::{oracle, pages};
use pg_bloom_core::filter::build::contains;
use pg_bloom_core::index::filters::memory::{Failure, Memory, MemoryFilters};
use pg_bloom_core::index::filters::{FilterGroup, Holds, Sought};
use pg_bloom_core::index::page::{PageSize, RowId};
use pg_bloom_core::{Kind, Layout, View};
use std::collections::BTreeMap;

/// The smallest pages: they fill up soonest.
const BYTES: usize = 1024;
/// The most row pages and tiles of a group that are used: a file may say that it has millions.
const MOST: u64 = 1000;

/// Stored filters by their rows.
type Rows = BTreeMap<RowId, Vec<u8>>;

fn size() -> PageSize {
    PageSize::new(BYTES).expect("a possible size")
}

/// An input is filters, a history and damage; then bytes of a metapage and of directory pages.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let filters: Vec<Vec<u8>> =
        (0..=input.byte() % 6).map(|_| repair(input.part(), false)).collect();
    let (history, damage) = (input.part(), input.part());
    let mut index = live(&filters, history);
    damaged(&mut index, damage);
    forged(input.0);
}

/// Builds, adds and removes as the bytes say. Every lookup must find what the filters say.
fn live(filters: &[Vec<u8>], history: &[u8]) -> MemoryFilters {
    let mut input = Input(history);
    let mut given = Rows::new();
    let mut next = 0u32;
    let mut fresh = || {
        next += 1;
        RowId { page: next / 5, line: (next % 5) as u16 + 1 }
    };
    for i in 0..input.byte() {
        given.insert(fresh(), filters[usize::from(i) % filters.len()].clone());
    }
    let hold = usize::from(input.half());
    let views = given.iter().map(|(row, filter)| (*row, view(filter)));
    let mut index = MemoryFilters::build(size(), hold, views).expect("possible filters");
    let mut failed = Vec::new();
    while !input.0.is_empty() {
        let (step, which) = (input.byte(), usize::from(input.byte()));
        let filter = &filters[which % filters.len()];
        match step % 8 {
            0..5 => {
                let row = fresh();
                index
                    .insert(row, &view(filter))
                    .expect("an index that was not damaged");
                given.insert(row, filter.clone());
            }
            5 => {
                // One that fails in between.
                let row = fresh();
                if let Some(mut insertion) = index.begin(row, &view(filter)).expect("a sound index")
                {
                    (0..step / 8).for_each(|_| _ = index.step(&mut insertion));
                }
                failed.push(row);
            }
            6 => {
                let is_dead =
                    |row: RowId| failed.contains(&row) || row.page as usize % 7 == which % 7;
                index.remove(is_dead).expect("a sound index");
                given.retain(|row, _| !is_dead(*row));
                failed.clear();
            }
            _ => index = reopened(index),
        }
    }
    index = reopened(index);
    filters
        .iter()
        .for_each(|filter| look_up(&mut index, &given, &view(filter)));
    index
}

fn view(filter: &[u8]) -> View<'_> {
    View::parse(filter).expect("a filter")
}

fn reopened(index: MemoryFilters) -> MemoryFilters {
    let read = MemoryFilters::open(index.memory, size()).expect("it reads what it wrote");
    assert_eq!(read.directory, index.directory);
    read
}

/// What a lookup of an element of a kind wants from a group.
fn sought(group: &FilterGroup, kind: Kind<'_>, hash: u64) -> Sought {
    if group.holds == Holds::Nothing || group.kind() == kind {
        Sought::Hash(hash)
    } else {
        Sought::OtherKind
    }
}

/// Looks up elements of the kind of a filter, some of which it has.
fn look_up(index: &mut MemoryFilters, given: &Rows, like: &View<'_>) {
    let kind = like.header.kind;
    for i in 0..24u64 {
        let hash = match like.body {
            pg_bloom_core::filter::Body::Sparse(hashes) if i < 12 && !hashes.is_empty() => {
                u64::from_le_bytes(hashes[i as usize % hashes.len()])
            }
            _ => oracle::positions(Layout::Blocked, 1, u64::MAX >> 9, i << 59 | i)[0] << 7 | i,
        };
        let found = index
            .search(|group| vec![vec![sought(group, kind, hash)]])
            .expect("a sound index");
        for (row, filter) in given {
            let filter = view(filter);
            let has = !filter.header.kind.is_none()
                && (filter.header.kind != kind || contains(&filter, hash));
            match found.get(row) {
                None => assert!(!has, "{hash:x} of {row:?} is missed"),
                Some(again) => assert!(has || *again, "{hash:x} is not in {row:?}"),
            }
        }
    }
}

/// Changes bytes of its directory, or of any page, and uses what is left.
fn damaged(index: &mut MemoryFilters, damage: &[u8]) {
    let mut memory = std::mem::take(&mut index.memory);
    pages::damage(&mut memory, &index.directory.chain.pages, BYTES, damage);
    open_and_use(memory);
}

/// Makes pages of the bytes, with what they must say in any case.
fn forged(bytes: &[u8]) {
    let memory = pages::forge(bytes, BYTES, |page| {
        page[24..32].copy_from_slice(b"bfrw\x01\0\0\0");
        page[52..56].fill(0);
    });
    open_and_use(memory);
}

fn open_and_use(memory: Memory) {
    match MemoryFilters::open(memory, size()) {
        Ok(index) => use_it(index),
        Err(Failure::Damage(damage)) => assert!(!damage.problem.is_empty()),
        Err(other) => panic!("{other:?}"),
    }
}

/// What an accepted directory promises, and everything that can be done with it.
fn use_it(mut index: MemoryFilters) {
    let directory = index.directory.clone();
    let mut slots = 0;
    for (number, _) in directory.groups() {
        for tile in directory.tiles(number) {
            let pages = tile.pages();
            assert!(pages.is_empty() || pages.start >= 1 && pages.end <= directory.chain.allocated);
            assert!(tile.width >= 1);
        }
        for page in directory.row_pages(number) {
            assert!(
                directory.slot(page, page.slots - 1).is_some()
                    && directory.slot(page, page.slots).is_none()
            );
        }
        slots += directory.slots(number);
    }
    if slots <= MOST {
        let any = |hash| vec![vec![Sought::Hash(hash), Sought::Hash(!hash)]];
        for i in 0..8u64 {
            // What is left may be damaged, which is an error.
            let _ = index.search(|_| any(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        }
        let _ = index.search(|_| vec![vec![Sought::OtherKind]]);
        let _ = index.remove(|row| row.page % 2 == 0);
    }
    let groups: Vec<FilterGroup> =
        directory.groups().map(|(_, group)| group.clone()).take(4).collect();
    for group in groups.into_iter().chain([FilterGroup::without_bits()]) {
        if let Ok(growth) = directory.grow(&group) {
            let number = growth.directory.group_number(&group).expect("it was added");
            assert!(growth.directory.slots(number) > directory.slots(number));
        }
    }
}
