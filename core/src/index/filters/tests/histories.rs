//! After any history of building, adding, removing and reopening, lookups are right.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const UNIVERSE: u64 = 40;

/// What a filter is made of.
#[derive(Clone, Debug)]
struct Recipe {
    layout: Layout,
    tag: Tag,
    capacity: Option<u64>,
    /// Elements below `UNIVERSE`, and how many others.
    few: BTreeSet<u64>,
    others: u64,
}

impl Recipe {
    fn bytes(&self, salt: u64) -> Vec<u8> {
        let others = (0..self.others).map(|i| UNIVERSE + word(salt, i as u32) % (1 << 40));
        filter(self.layout, self.tag, self.capacity, self.few.iter().copied().chain(others))
    }
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let kinds = prop_oneof![
        6 => Just((Layout::Blocked, Tag::Text)),
        2 => Just((Layout::Blocked, Tag::Integer)),
        1 => Just((Layout::Classic, Tag::Text)),
        2 => Just((Layout::Parquet, Tag::ParquetByteArray)),
        1 => Just((Layout::Parquet, Tag::Numeric)),
    ];
    let capacity = prop_oneof![1 => Just(None), 3 => Just(Some(50u64)), 3 => Just(Some(700)), 1 => Just(Some(3_000))];
    let others = prop_oneof![Just(0u64), Just(60), Just(900)];
    (kinds, capacity, prop::collection::btree_set(0..UNIVERSE, 0..6), others).prop_map(
        |((layout, tag), capacity, few, others)| Recipe { layout, tag, capacity, few, others },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Add(Recipe, usize),
    /// Rows that fail in between, after so many of their steps.
    Fail(Recipe, usize),
    /// Removes about every so-manieth row.
    Remove(u64),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (recipe(), 1usize..20).prop_map(|(recipe, count)| Step::Add(recipe, count)),
        1 => (recipe(), 0usize..9).prop_map(|(recipe, steps)| Step::Fail(recipe, steps)),
        2 => (1u64..5).prop_map(Step::Remove),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_index_finds_what_a_scan_does(
        recipes in prop::collection::vec(recipe(), 1..5),
        built in prop_oneof![Just(0usize), 1usize..10, 100usize..400],
        hold in prop_oneof![Just(0usize), Just(10_000), Just(usize::MAX)],
        bytes in prop_oneof![Just(1024usize), Just(8192)],
        steps in prop::collection::vec(step(), 0..14),
    ) {
        let size = PageSize::new(bytes).unwrap();
        let mut next = 0;
        let mut fresh = || {
            next += 1;
            RowId { page: next / 7, line: (next % 7) as u16 + 1 }
        };
        let mut rows = BTreeMap::new();
        for i in 0..built {
            rows.insert(fresh(), recipes[i % recipes.len()].bytes(i as u64));
        }
        let views = rows.iter().map(|(row, bytes)| (*row, View::parse(bytes).unwrap()));
        let mut index = MemoryFilters::build(size, hold, views).unwrap();
        check(&index);
        let mut failed = BTreeSet::new();
        for (i, step) in (1000..).zip(steps) {
            match step {
                Step::Add(recipe, count) => for j in 0..count {
                    let (row, bytes) = (fresh(), recipe.bytes(i * 100 + j as u64));
                    index.insert(row, &View::parse(&bytes).unwrap()).unwrap();
                    rows.insert(row, bytes);
                },
                Step::Fail(recipe, steps) => {
                    let (row, bytes) = (fresh(), recipe.bytes(i));
                    if let Some(mut insertion) = index.begin(row, &View::parse(&bytes).unwrap()).unwrap() {
                        for _ in 0..steps {
                            index.step(&mut insertion);
                        }
                    }
                    failed.insert(row);
                }
                Step::Remove(every) => {
                    let is_dead = |row: RowId| failed.contains(&row) || u64::from(row.page) % every == 0;
                    let (_, left) = index.remove(is_dead).unwrap();
                    rows.retain(|row, _| !is_dead(*row));
                    failed.clear();
                    prop_assert!(left <= rows.len());
                }
                Step::Reopen => {
                    check(&index);
                    index = MemoryFilters::open(index.memory.shortest(), size).unwrap();
                }
            }
        }
        check(&index);
        for i in 0..UNIVERSE {
            for tag in [Tag::Text, Tag::ParquetByteArray, Tag::Integer] {
                assert_same(&mut index, &rows, tag, i);
            }
        }
    }
}

/// Between any two steps of an insertion, other rows are found, and the new one only when all is
/// written.
#[test]
fn a_row_is_found_when_all_is_written() {
    let all: Vec<Vec<u8>> = (0..9)
        .map(|i| filter(Layout::Blocked, Tag::Text, Some(900), i..i + 900))
        .collect();
    let mut index = MemoryFilters::build(PageSize::DEFAULT, 0, []).unwrap();
    let mut rows = BTreeMap::new();
    for (bytes, page) in all.iter().zip(1..) {
        let row = RowId { page, line: 1 };
        let mut insertion = index.begin(row, &View::parse(bytes).unwrap()).unwrap().unwrap();
        loop {
            let found = index
                .search(|group| vec![vec![sought(group, Tag::Text, 100)]])
                .unwrap();
            assert!(!found.contains_key(&row));
            assert_same(&mut index, &rows, Tag::Text, 5);
            if !index.step(&mut insertion) {
                break;
            }
        }
        index.publish(&insertion);
        rows.insert(row, bytes.clone());
        assert_same(&mut index, &rows, Tag::Text, 100);
    }
}

/// Freed slots are used again: an index whose rows come and go doesn't grow.
#[test]
fn slots_are_used_again() {
    let bytes: Vec<Vec<u8>> = (0..60)
        .map(|i| filter(Layout::Blocked, Tag::Text, Some(500), i..i + 500))
        .collect();
    let mut index = MemoryFilters::build(PageSize::DEFAULT, 0, []).unwrap();
    let mut allocated = 0;
    for round in 0..30u32 {
        for (bytes, line) in bytes.iter().zip(1..) {
            index
                .insert(RowId { page: round, line }, &View::parse(bytes).unwrap())
                .unwrap();
        }
        if round == 1 {
            allocated = index.directory.chain.allocated;
        }
        let (removed, left) = index.remove(|row| row.page < round).unwrap();
        assert_eq!((removed, left), (if round == 0 { 0 } else { 60 }, 60));
    }
    assert_eq!(index.directory.chain.allocated, allocated);
}

/// A directory that was read before tiles were added finds all that was added before it was read.
#[test]
fn an_old_directory_stays_true() {
    let mut index = MemoryFilters::build(PageSize::new(1024).unwrap(), 0, []).unwrap();
    let (mut rows, mut old) = (BTreeMap::new(), Vec::new());
    for i in 0..300u32 {
        let row = RowId { page: i, line: 1 };
        let bytes = filter(
            Layout::Blocked,
            Tag::Text,
            Some(200 << (i % 3)),
            u64::from(i)..u64::from(i) + 300,
        );
        index.insert(row, &View::parse(&bytes).unwrap()).unwrap();
        rows.insert(row, bytes);
        if i % 37 == 0 {
            old.push((rows.clone(), index.directory.clone()));
        }
    }
    for (rows, directory) in old {
        assert_eq!(
            directory.chain.is_current(&index.memory.pages[0]),
            directory == index.directory
        );
        let mut index = MemoryFilters { memory: index.memory.clone(), directory };
        (0..300)
            .step_by(17)
            .for_each(|i| assert_same(&mut index, &rows, Tag::Text, i));
    }
}
