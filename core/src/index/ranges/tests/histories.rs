//! No history of building, appending and reopening loses an element.

use super::*;
use crate::conditions::Condition;
use crate::conditions::alternatives::Alternatives;
use crate::hash::word;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What each range was given.
type Oracle = BTreeMap<u32, BTreeSet<u64>>;

fn assert_all_found(index: &mut MemoryRanges, oracle: &Oracle) {
    let mut has: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for (&range, hashes) in oracle {
        hashes
            .iter()
            .for_each(|&hash| _ = has.entry(hash).or_default().insert(range));
    }
    for (hash, ranges) in has {
        let found = index.search(hash).unwrap();
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        assert!(
            ranges.iter().all(|range| found.contains(range)),
            "{hash:x} is in {ranges:?}, found in {found:?}"
        );
    }
}

/// Every range with which a condition on three of its elements, or those of others, holds is found.
fn assert_conditions_hold(index: &mut MemoryRanges, oracle: &Oracle) {
    let all: BTreeSet<u64> = oracle.values().flatten().copied().collect();
    let all: Vec<u64> = all.into_iter().collect();
    for i in 0..all.len().min(40) {
        let [a, b, c] = [1, 2, 3].map(|j| all[word(i as u64, j) as usize % all.len()]);
        let has = Condition::Has;
        let condition = Condition::all([has(a), Condition::any([has(b), has(c)])]);
        let mut found = Vec::new();
        search_condition(&index.directory, &mut index.memory, &condition, |range| {
            found.push(range)
        })
        .unwrap();
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        for (range, hashes) in oracle {
            if hashes.contains(&a) && (hashes.contains(&b) || hashes.contains(&c)) {
                assert!(found.contains(range), "{range} has them, found {found:?}");
            }
        }
        let expected =
            estimate_ranges(&index.directory, &mut index.memory, &condition, u32::MAX).unwrap();
        assert!((expected - found.len() as f64).abs() < 0.01, "{expected} ranges, found {found:?}");
    }
}

/// Every range is found with each of the alternatives that hold for it, and none that the whole
/// condition excludes.
fn assert_alternatives_hold(index: &mut MemoryRanges, oracle: &Oracle) {
    let all: BTreeSet<u64> = oracle.values().flatten().copied().collect();
    let all: Vec<u64> = all.into_iter().collect();
    for i in 0..all.len().min(10) as u64 {
        let one = |j| Condition::Has(all[word(i, j) as usize % all.len()]);
        let any = Condition::any(
            (0..10).map(|j| if j < 5 { one(j) } else { Condition::all([one(j), one(j + 5)]) }),
        );
        let condition = if i % 2 == 0 {
            any
        } else {
            Condition::all([Condition::any([one(20), one(21)]), any])
        };
        let mut as_a_whole = Vec::new();
        search_condition(&index.directory, &mut index.memory, &condition, |range| {
            as_a_whole.push(range)
        })
        .unwrap();
        let alternatives = Alternatives::of_condition(condition);
        let mut found = BTreeMap::new();
        let add = |range, numbers: &[u32]| {
            assert!(found.insert(range, numbers.to_vec()).is_none(), "{range} again")
        };
        search_alternatives(&index.directory, &mut index.memory, &alternatives, add).unwrap();
        for (range, numbers) in &found {
            assert!(
                as_a_whole.contains(range)
                    && !numbers.is_empty()
                    && numbers.is_sorted_by(|a, b| a < b)
            );
        }
        for (range, hashes) in oracle {
            let has = |hash| hashes.contains(&hash);
            for (number, one) in (0..).zip(&alternatives.choices) {
                if one.holds(&has) && alternatives.required.holds(&has) {
                    assert!(
                        found.get(range).is_some_and(|numbers| numbers.contains(&number)),
                        "{range} has {number}"
                    );
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Adds elements to ranges from the last one on.
    Append { skip: u32, ranges: u32, elements: u64 },
    /// Adds elements to a range there is.
    Return { to: u32, elements: u64 },
    /// Reads the index from its pages, of which the last may be missing where they have no bits.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (prop_oneof![9 => Just(1u32), 1 => 1u32..700], 1u32..60, 0u64..12)
            .prop_map(|(skip, ranges, elements)| Step::Append { skip, ranges, elements }),
        2 => (any::<u32>(), 1u64..50).prop_map(|(to, elements)| Step::Return { to, elements }),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost(
        built in prop_oneof![Just(0usize), 1usize..12, 100usize..700],
        most in 0u64..20,
        hold in prop_oneof![Just(0usize), 1usize..3000],
        bytes in prop_oneof![Just(1024usize), Just(2048), Just(8192)],
        fpr in -7.0..-0.3f64,
        is_flat: bool,
        universe in prop_oneof![Just(u64::MAX), 1u64..200],
        steps in prop::collection::vec(step(), 0..12),
    ) {
        let fpr = 10f64.powf(fpr).clamp(MIN_FPR, MAX_FPR_MANY_KEYS);
        let mut oracle = Oracle::new();
        let mut next = 0u64;
        let mut fresh = || {
            next += 1;
            element(word(next, 0) % universe)
        };
        let lists: Vec<Vec<u64>> = (0..built).map(|i| {
            (0..word(i as u64, 1) % (most + 1)).map(|_| fresh()).collect()
        }).collect();
        for (list, range) in lists.iter().zip(0..) {
            oracle.insert(range, list.iter().copied().collect());
        }
        let mut index = MemoryRanges::build(Options { is_flat, ..options(bytes, fpr, 5) }, hold, &lists).unwrap();
        check(&index);
        prop_assert!(index.directory.end_slot(Level::Zero) >= built as u64);
        let mut end = built as u32;
        for step in steps {
            match step {
                Step::Append { skip, ranges, elements } => {
                    let first = end + skip - 1;
                    end = first + ranges;
                    for range in first..end {
                        for _ in 0..elements {
                            let hash = fresh();
                            index.insert(range, hash).unwrap();
                            oracle.entry(range).or_default().insert(hash);
                        }
                    }
                }
                Step::Return { to, elements } if end > 0 => {
                    for _ in 0..elements {
                        let hash = fresh();
                        index.insert(to % end, hash).unwrap();
                        prop_assert_eq!(index.insert(to % end, hash).unwrap(), (0, 0), "it was there already");
                        oracle.entry(to % end).or_default().insert(hash);
                    }
                }
                Step::Return { .. } => {}
                Step::Reopen => {
                    check(&index);
                    index = MemoryRanges::open(index.memory.shortest(), index.directory.options.size).unwrap();
                }
            }
        }
        check(&index);
        prop_assert!(!is_flat || index.directory.tile_count(Level::One) == 0);
        assert_all_found(&mut index, &oracle);
        assert_conditions_hold(&mut index, &oracle);
            assert_alternatives_hold(&mut index, &oracle);
    }

    /// The bits are those of pages.md, however they were set.
    #[test]
    fn bits_are_where_the_format_says(
        width in 0usize..5, pages in 1u32..9, num_hashes in 1u8..=60, level in 0usize..3,
        bytes in prop_oneof![Just(1024usize), Just(8192), Just(32768)],
        elements in prop::collection::vec((any::<u64>(), 0u8..8), 1..20),
    ) {
        let size = PageSize::new(bytes).unwrap();
        let shape = TileShape { size, ..shape(Level::ALL[level], Width::ALL[width], num_hashes, pages) };
        let tile = TileAddress { shape, ordinal: 0, first_slot: 77, first_page: 3 };
        let mut disk = vec![vec![0u8; bytes]; pages as usize];
        let mut expected = vec![false; pages as usize * (bytes - 32) * 8];
        for &(hash, slot) in &elements {
            let slot = slot * (shape.slots() / 8) as u8;
            let mark = tile.probe(hash).mark(slot);
            let page = &mut disk[mark.page() as usize - 3];
            let own = changes(&[&mark], page).unwrap();
            prop_assert!(own.is_sorted_by(|a, b| a.offset < b.offset));
            prop_assert!(own.iter().all(|change| page[usize::from(change.offset)] != change.value));
            memory::set(&mark, page).unwrap();
            prop_assert_eq!(page.last_chunk().unwrap(), &[77, 0, 0, 0, 3, [3, 4, 7][level], 0x1F, 0xFB]);
            prop_assert!(mark.is_set(Some(page)).unwrap() && changes(&[&mark], page).unwrap().is_empty());
            // By the formulas alone.
            let (w, bits) = (u64::from(shape.slots()), (bytes as u64 - 32) / 16);
            let first = 16 * level as u32;
            let blocks = u128::from(pages) * 128 / u128::from(w);
            let block = ((u128::from(word(hash, first)) * blocks) >> 64) as u64;
            for i in 0..u32::from(num_hashes) {
                let sixteen = word(hash, first + 1 + i / 4) >> (16 * (i % 4)) & 0xFFFF;
                let position = (sixteen * bits) >> 16;
                expected[((block * bits + position) * w + u64::from(slot)) as usize] = true;
            }
        }
        let found: Vec<bool> = disk.iter()
            .flat_map(|page| page[24..bytes - 8].iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1)))
            .collect();
        prop_assert!(found == expected);
    }
}

/// The bits that a build sets are those that adding the same elements sets.
#[test]
fn building_is_adding() {
    for (count, per_range, hold) in [
        (70, 40, 0),
        (700, 30, 0),
        (700, 30, 1 << 20),
        (3000, 9, 10_000),
        (81_920, 2, 0),
        (81_920, 2, 1 << 20),
    ] {
        let built =
            MemoryRanges::build(options(8192, FPR, 100), hold, ranges(count, per_range)).unwrap();
        let mut added = built.clone();
        added.memory.pages[1..].iter_mut().for_each(|page| page.fill(0));
        append(&mut added, 0, ranges(count, per_range));
        for tile in Level::ALL
            .into_iter()
            .flat_map(|level| built.directory.tiles_from(level, 0))
        {
            for page in tile.pages() {
                let [a, b] = [&built, &added].map(|index| {
                    tile.payload(index.memory.pages.get(page as usize).map(Vec::as_slice), page)
                        .unwrap()
                });
                let zeros = vec![0; tile.shape.size.payload_bytes()];
                assert!(a.unwrap_or(&zeros) == b.unwrap_or(&zeros), "page {page}");
            }
        }
        assert_eq!(built.directory, added.directory);
    }
}

/// Three levels, built, then appended to: nothing is missed, whatever is kept in memory, and where
/// ranges get fuller or all have the same elements.
#[test]
fn three_levels_hide_nothing() {
    let (count, more) = (70_000u32, 20_000u32);
    let shared =
        |range: u32| (0..4).map(move |i| element(1 << 40 | u64::from(range / 30_000 * 2 + i)));
    let own = |range: u32, many: bool| {
        let own = if many && range > 40_000 { 12 } else { 1 };
        (0..own).map(move |i| element(u64::from(range) * 100 + i))
    };
    for (hold, many) in [(0, false), (0, true), (1 << 22, true)] {
        let lists =
            (0..count).map(|range| own(range, many).chain(shared(range)).collect::<Vec<_>>());
        let mut index = MemoryRanges::build(options(1024, 0.001, 5), hold, lists).unwrap();
        assert!(
            index.directory.tile_count(Level::Two) > 0
                && index.directory.tiles_without_slot_above(Level::One) == 0
        );
        for range in count..count + more {
            own(range, many)
                .chain(shared(range))
                .for_each(|hash| _ = index.insert(range, hash).unwrap());
        }
        check(&index);
        for range in (0..count + more).step_by(97) {
            for hash in own(range, many) {
                assert!(index.search(hash).unwrap().contains(&range), "range {range}");
            }
        }
        let found = index.search(shared(0).next().unwrap()).unwrap();
        assert!((0..30_000).all(|range| found.binary_search(&range).is_ok()));
    }
}

/// A table may get more ranges while it is read than it had pages for when the build began.
#[test]
fn more_ranges_than_expected() {
    for (expected, count) in [
        (512, 513),
        (512, 640),
        (10, 700),
        (0, 66_000),
        (40_000, 66_000),
        (65_536, 65_537),
    ] {
        let options = Options { table_pages: expected * 8, ..options(1024, 0.001, 5) };
        let mut index = empty(options);
        let mut build = Build::new(options, 1 << 16);
        for range in 0..count {
            build.add_range(&mut index.memory, &[element(range)]).unwrap();
        }
        index.directory = build.finish(&mut index.memory, count).unwrap();
        index.memory.pages[0] = index.directory.metapage().into();
        check(&index);
        for range in (0..count).step_by(7).chain([count - 1]) {
            assert!(
                index.search(element(range)).unwrap().contains(&(range as u32)),
                "{range} of {count}"
            );
        }
    }
}

/// Slots of level 2 are made for elements that are all different. If they are not, they are folded.
#[test]
fn repeated_elements_are_folded() {
    let shared = 9000;
    let list = |range: u64| {
        let many = if range < 1024 { shared } else { 3 };
        (0..many)
            .chain([(1 << 40) + range / 9000])
            .map(element)
            .collect::<Vec<_>>()
    };
    let options = options(1024, 0.001, 5);
    let mut index = MemoryRanges::build(options, 0, (0..70_000).map(list)).unwrap();
    check(&index);
    // The first slot is for 1,024 ranges, of which each eighth was taken to have other elements.
    let target = SlotTarget::for_rate(options.size, rate_of_level(0.001, Level::Two, Level::Two));
    let shape = TileShape {
        size: options.size,
        ..shape(Level::Two, Width::MIN, target.num_hashes, 0)
    };
    let needed = sized_for(shape, target, &[shared as f64]).pages;
    let first = index.directory.tile(Level::Two, 0).unwrap().shape;
    let needed = u64::from(needed) * u64::from(Width::MIN.blocks_per_page());
    assert!(
        (needed..needed * 5 / 2).contains(&first.blocks()),
        "{} blocks where {needed} are needed",
        first.blocks()
    );
    for i in [0, 17, shared - 1] {
        let found = index.search(element(i)).unwrap();
        let last = if i < 3 { 70_000 } else { 1024 };
        assert!((0..last).all(|range| found.binary_search(&range).is_ok()), "{i}");
    }
    for key in 0..7 {
        let found = index.search(element(1 << 40 | key)).unwrap();
        assert!(
            (key as u32 * 9000..(key as u32 + 1) * 9000)
                .all(|range| found.binary_search(&range).is_ok()),
            "{key}"
        );
    }
}

/// The same for one that grew from nothing.
#[test]
fn three_levels_grow() {
    let mut index = empty(options(1024, 0.001, 5));
    let ranges = || (0..150_000u32).filter(|range| range % 13 == 0);
    add_one_each(&mut index, ranges());
    check(&index);
    let widths = |level| {
        index
            .directory
            .tiles_from(level, 0)
            .map(|tile| tile.shape.slots())
            .collect::<Vec<_>>()
    };
    let one = [
        vec![8, 8, 8, 8, 16, 16, 32, 32],
        vec![16; 8],
        vec![32; 8],
        vec![64; 8],
        vec![128; 2],
    ]
    .concat();
    assert_eq!((widths(Level::Two), widths(Level::One)), (vec![8, 8, 8, 8], one));
    assert_eq!(index.directory.tiles_without_slot_above(Level::One), 8);
    for range in ranges() {
        assert!(index.search(element(range.into())).unwrap().contains(&range), "range {range}");
    }
}

/// A directory that was read before tiles were added finds all that was added before it was read.
#[test]
fn an_old_directory_stays_true() {
    let mut index = empty(options(1024, 0.001, 10));
    let mut old = Vec::new();
    for range in 0..2000 {
        index.insert(range, element(range.into())).unwrap();
        if range % 300 == 7 {
            old.push((range, index.directory.clone()));
        }
    }
    for (read, directory) in old {
        assert_eq!(
            directory.chain.is_current(&index.memory.pages[0]),
            directory == index.directory
        );
        for range in 0..=read {
            let mut found = Vec::new();
            search(&directory, &mut index.memory, element(range.into()), |range| found.push(range))
                .unwrap();
            assert!(found.contains(&range));
        }
    }
}

/// Frozen: stored pages depend on it. The worked example of pages.md.
#[test]
fn the_worked_example() {
    let shape = shape(Level::Zero, Width::holding(32), 9, 4);
    let tile = TileAddress { shape, ordinal: 0, first_slot: 8, first_page: 10 };
    let mark = tile.probe(hash(b"a")).mark((21 - tile.first_slot) as u8);
    let mut page = vec![0; 8192];
    memory::set(&mark, &mut page).unwrap();
    let bytes: Vec<(usize, u8)> = page[..8184]
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, byte)| *byte != 0)
        .collect();
    let offsets = [6245, 6673, 6933, 7133, 7241, 7489, 7957, 8029, 8041];
    assert_eq!((mark.page(), bytes), (10, offsets.map(|offset| (offset, 0x20)).to_vec()));
    assert_eq!(page[8184..], [8, 0, 0, 0, 3, 3, 0x1F, 0xFB]);
}
