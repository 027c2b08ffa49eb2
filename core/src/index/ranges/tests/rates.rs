//! Measured rates against the exact formula.

use super::*;

/// Asserts that as many lookups were answered wrongly as a rate lets expect, within six standard
/// deviations and `slack` for one set of elements being like the mean of all.
fn assert_rate(found: u64, lookups: f64, rate: f64, slack: f64, what: &str) {
    let (expected, found) = (lookups * rate, found as f64);
    let bound = 6.0 * expected.sqrt() + slack * expected;
    assert!(
        (found - expected).abs() <= bound,
        "{what}: {found} where {expected:.1} ± {bound:.1} were expected"
    );
}

/// Probes every tile of a level for absent keys. Returns the wrong slots, and what the formula
/// says.
fn wrong_slots(index: &MemoryRanges, level: Level, loads: &[f64], lookups: u64) -> (u64, f64) {
    let mut wrong = 0;
    let mut expected = 0.0;
    for tile in index.directory.tiles_from(level, 0) {
        for i in 0..lookups {
            let probe = tile.probe(element(1 << 50 | i));
            wrong += probe
                .slots(Some(&index.memory.pages[probe.page as usize]))
                .unwrap()
                .count_ones() as u64;
        }
        let first = tile.first_slot as usize;
        let own =
            &loads[first.min(loads.len())..loads.len().min(first + tile.shape.slots() as usize)];
        expected += mean_rate(tile.shape, own) * own.len() as f64;
    }
    (wrong, expected)
}

#[test]
fn levels_and_both_together() {
    let lookups = 40_000;
    for (count, per_range, fpr) in [
        (1400, 120, FPR),
        (1400, 120, 0.01),
        (900, 60, 1e-4),
        (256, 200, FPR),
    ] {
        // Ranges that differ by up to a third.
        let loads: Vec<u64> = (0..count).map(|i| per_range - i * 37 % (per_range / 3)).collect();
        let mut next = 0;
        let lists: Vec<Vec<u64>> = loads
            .iter()
            .map(|&load| {
                next += load;
                (next - load..next).map(element).collect()
            })
            .collect();
        let mut index = MemoryRanges::build(options(8192, fpr, 100), 1 << 20, &lists).unwrap();
        let zero: Vec<f64> = loads.iter().map(|&load| load as f64).collect();
        let one: Vec<f64> = zero.chunks(128).map(|tile| tile.iter().sum()).collect();
        let (wrong, expected) = wrong_slots(&index, Level::Zero, &zero, lookups);
        assert_rate(wrong, lookups as f64, expected, 0.05, "level 0");
        let covered = index.directory.tiles_without_slot_above(Level::Zero) == 0;
        if covered {
            let (wrong, expected) = wrong_slots(&index, Level::One, &one, lookups);
            assert_rate(wrong, lookups as f64, expected, 0.05, "level 1");
        }
        // Both together: independent.
        let mut product = 0.0;
        for tile in index.directory.tiles_from(Level::Zero, 0) {
            let first = tile.first_slot as usize;
            let own = &zero[first..zero.len().min(first + tile.shape.slots() as usize)];
            let upper = index.directory.tile_of(Level::One, tile.ordinal).filter(|_| covered);
            let asked = upper.map_or(1.0, |upper| upper.shape.rate(one[tile.ordinal as usize]));
            product += mean_rate(tile.shape, own) * own.len() as f64 * asked;
        }
        assert!(product / count as f64 <= fpr, "{product}");
        let more = lookups * 10;
        let found: usize = (0..more)
            .map(|i| index.search(element(1 << 50 | i)).unwrap().len())
            .sum();
        assert_rate(found as u64, more as f64, product, 0.1, "both");
        let survey = Survey::read(&index.directory, &mut index.memory).unwrap();
        assert!(
            (survey.fpr * count as f64 / product - 1.0).abs() < 0.15,
            "{survey:?} for {product}"
        );
        assert!((survey.keys / next as f64 - 1.0).abs() < 0.01, "{survey:?} for {next}");
        assert_eq!((survey.ranges, survey.overfull), (count, 0));
    }
}

/// Rates of all sizes of pages and all promises.
#[test]
fn promises_are_kept() {
    for bytes in [1024, 4096, 8192, 32768] {
        for fpr in [MAX_FPR_MANY_KEYS, MAX_FPR_ONE_KEY, 0.01, 1e-4, FPR, MIN_FPR] {
            let size = PageSize::new(bytes).unwrap();
            let shares = |top| Level::ALL.map(|level| rate_of_level(fpr, level, top));
            for [a, b, c] in Level::ALL.map(shares) {
                assert!((a * b * c / fpr - 1.0).abs() < 1e-12);
            }
            let levels = Level::ALL
                .into_iter()
                .flat_map(|top| shares(top).into_iter().filter(|&rate| rate < 1.0));
            for target in levels.map(|rate| SlotTarget::for_rate(size, rate)) {
                assert!((1..=MAX_HASHES).contains(&usize::from(target.num_hashes)), "{target:?}");
                let load = f64::from(size.block_bits()) / target.bits_per_key;
                let rate = crate::sizing::rate::at_load_in_blocks(
                    size.block_bits(),
                    target.num_hashes.into(),
                    load,
                );
                assert!(
                    rate <= target.fpr * (1.0 + 1e-6) && rate > target.fpr * 0.999,
                    "{target:?}: {rate}"
                );
            }
        }
    }
    // What windows of text have by default.
    let SlotTarget { num_hashes, bits_per_key: bits, .. } =
        SlotTarget::for_rate(PageSize::DEFAULT, 0.33);
    assert!(num_hashes == 1 && (2.49..2.51).contains(&bits), "{num_hashes} hashes, {bits} bits");
}

/// Positions in a block are uniform, and those of the levels have nothing to do with each other.
#[test]
fn positions_are_uniform() {
    let shape = |level| shape(level, Width::MIN, 8, 1);
    let tile = |level| TileAddress {
        shape: shape(level),
        ordinal: 0,
        first_slot: 0,
        first_page: 0,
    };
    let elements = 60_000u64;
    let mut counts = Level::ALL.map(|_| vec![0u32; 8160]);
    let mut common = [0; 2];
    for i in 0..elements {
        let [zero, one, two] = Level::ALL.map(|level| {
            let changes = changes(&[&tile(level).probe(element(i)).mark(0)], &[0; 8192]).unwrap();
            changes
                .iter()
                .map(|change| usize::from(change.offset) - 24)
                .collect::<BTreeSet<_>>()
        });
        common[0] += zero.intersection(&one).count();
        common[1] += two.intersection(&one).count();
        for (offsets, counts) in [zero, one, two].iter().zip(&mut counts) {
            offsets.iter().for_each(|&offset| counts[offset] += 1);
        }
    }
    // Sixteen blocks of 510 positions, eight throws each: chi-squared with 8,159 degrees of
    // freedom.
    for counts in counts {
        let total: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        let mean = total / 8160.0;
        let chi: f64 = counts
            .iter()
            .map(|&count| (f64::from(count) - mean).powi(2) / mean)
            .sum();
        assert!((chi - 8159.0).abs() < 6.0 * (2.0f64 * 8159.0).sqrt(), "{chi}");
    }
    // An element has the same block on two levels once in 16, and then 8 · 8 pairs of 510 meet.
    for common in common {
        assert_rate(
            common as u64,
            elements as f64,
            64.0 / 510.0 / 16.0,
            0.03,
            "positions in common",
        );
    }
}

/// At the greatest rate no range of a build is overfull, and one that gets many more elements is.
#[test]
fn overfull_ranges_are_noticed_at_the_greatest_rate() {
    let mut index =
        MemoryRanges::build(options(8192, MAX_FPR_ONE_KEY, 10), 0, ranges(700, 30)).unwrap();
    let survey = Survey::read(&index.directory, &mut index.memory).unwrap();
    assert_eq!((survey.ranges, survey.overfull), (700, 0));
    (0..3000).for_each(|i| _ = index.insert(5, element(1_000_000 + i)).unwrap());
    assert_eq!(Survey::read(&index.directory, &mut index.memory).unwrap().overfull, 1);
}
