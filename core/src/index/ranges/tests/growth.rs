//! How many tiles there are, how large and where, and what lookups cost.

use super::*;

/// Widths of a level's tiles.
fn widths(index: &MemoryRanges, level: Level) -> Vec<u32> {
    index
        .directory
        .tiles_from(level, 0)
        .map(|tile| tile.shape.slots())
        .collect()
}

#[test]
fn appended_tiles_grow_wider() {
    let mut index = empty(options(8192, FPR, 10));
    add_one_each(&mut index, 0..392);
    assert_eq!(widths(&index, Level::Zero), [8, 32, 32, 64, 128, 128]);
    assert_eq!(
        (index.directory.tiles_without_slot_above(Level::Zero), widths(&index, Level::One)),
        (6, vec![])
    );
    add_one_each(&mut index, 392..40_000);
    assert!(widths(&index, Level::Zero)[6..].iter().all(|&width| width == 128));
    assert_eq!(index.directory.tiles_without_slot_above(Level::Zero), 6);
    assert_eq!(
        widths(&index, Level::One),
        [
            8, 8, 8, 8, 16, 16, 32, 32, 16, 16, 16, 16, 16, 16, 16, 16, 32, 32
        ]
    );
    check(&index);
}

#[test]
fn built_tiles_fit_what_there_is() {
    let built = |count| MemoryRanges::build(options(8192, FPR, 10), 0, ranges(count, 2)).unwrap();
    for (count, zero, one) in [
        (0, vec![], vec![]),
        (1, vec![8], vec![]),
        (50, vec![64], vec![]),
        (70, vec![64, 8], vec![]),
        (120, vec![128], vec![]),
        (512, vec![128; 4], vec![]),
        (513, vec![128, 128, 128, 128, 8], vec![8]),
        (1154, [vec![128; 9], vec![8]].concat(), vec![8, 8]),
        (11_538, [vec![128; 90], vec![32]].concat(), vec![64, 32]),
        (16_400, [vec![128; 128], vec![16]].concat(), vec![128, 8]),
    ] {
        let index = built(count);
        assert_eq!(widths(&index, Level::Zero), zero, "{count} ranges");
        assert_eq!(widths(&index, Level::One), one, "{count} ranges");
        check(&index);
    }
    // A built index grows like any other.
    let mut index = built(513);
    add_one_each(&mut index, 513..1800);
    assert_eq!(
        widths(&index, Level::Zero)[4..],
        [8, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128]
    );
    assert_eq!(widths(&index, Level::One), [8, 8]);
}

/// A row in a range far behind the last costs one step for each tile of level 1.
#[test]
fn ranges_may_be_skipped() {
    let mut index = empty(options(8192, FPR, 10));
    index.insert(1_000_000, element(1)).unwrap();
    assert!(index.search(element(1)).unwrap().contains(&1_000_000));
    index.insert(999_000, element(2)).unwrap();
    assert!(index.search(element(2)).unwrap().contains(&999_000));
    assert!(index.runs() < 404 && index.directory.chain.pages.is_empty());
    // The last range that a heap can have.
    let error = empty(options(8192, FPR, 10_000_000))
        .insert(u32::MAX - 1, 1)
        .unwrap_err();
    assert!(matches!(error, Failure::Error(error) if error.class() == crate::Class::TooLarge));
}

#[test]
fn sizes_are_the_least_that_keep_the_rate() {
    let size = PageSize::DEFAULT;
    for target in [1.0, 0.575, 0.425].map(|share| SlotTarget::for_rate(size, FPR.powf(share))) {
        for width in Width::ALL {
            for loads in [
                vec![1.0],
                vec![520.0],
                vec![400.0, 500.0, 600.0],
                vec![5000.0; 8],
                vec![10.0, 10.0, 3000.0],
            ] {
                let shape = shape(Level::Zero, width, target.num_hashes, 0);
                let pages = sized_for(shape, target, &loads).pages;
                let rate = |pages| mean_rate(TileShape { pages, ..shape }, &loads);
                assert!(rate(pages) <= target.fpr, "{pages} pages for {loads:?}");
                assert!(pages == 1 || rate(pages - 1) > target.fpr, "{pages} pages for {loads:?}");
            }
        }
    }
    // Empty ranges need what there is anyway.
    let shape = shape(Level::Zero, Width::MAX, 1, 0);
    assert_eq!(sized_for(shape, SlotTarget::for_rate(size, FPR), &[]).pages, 1);
}

#[test]
fn a_wrong_guess_is_corrected_at_once() {
    let pages = |guess| {
        let mut index = empty(options(8192, FPR, guess));
        append(&mut index, 0, ranges(700, 300));
        let tiles = Level::ALL
            .into_iter()
            .flat_map(|level| index.directory.tiles_from(level, 0));
        tiles.map(|tile| tile.shape.pages).collect::<Vec<_>>()
    };
    let right = pages(300);
    for guess in [1, 30, 3000, 100_000] {
        let found = pages(guess);
        assert_eq!(found.len(), right.len());
        for (found, right) in found.iter().zip(&right).skip(1) {
            assert!(
                found.abs_diff(*right) * 12 <= *right + 12,
                "{found} pages instead of {right}, guessing {guess}"
            );
        }
    }
}

/// Keys that come again in all ranges don't make level 1 large forever, and rows that get narrower
/// are noticed.
#[test]
fn sizes_follow_the_data() {
    let mut index = empty(options(8192, FPR, 100));
    for range in 0..2600u32 {
        (0..100).for_each(|i| {
            _ = index
                .insert(range, element(i + 50 * u64::from(range / 1300)))
                .unwrap()
        });
    }
    let above: Vec<u32> = index
        .directory
        .tiles_from(Level::One, 0)
        .map(|tile| tile.shape.pages)
        .collect();
    assert!(above.len() == 3 && above[1..].iter().all(|&pages| pages <= 1), "{above:?}");
    for range in 2600..3600u32 {
        (0..1000)
            .for_each(|i| _ = index.insert(range, element(i * 10_000 + u64::from(range))).unwrap());
    }
    let survey = Survey::read(&index.directory, &mut index.memory).unwrap();
    assert!(survey.overfull > 0 && survey.overfull <= 256, "{survey:?}");
}

/// A build whose last range has just begun, or has hardly any rows, is made for full ones.
#[test]
fn a_build_leaves_room_in_its_last_tile() {
    for first in [3, 400, 5 * 400 + 7, 600 * 400 + 1] {
        let mut rows: Vec<u64> = (0..first).map(element).collect();
        let lists: Vec<Vec<u64>> = rows.chunks(400).map(<[u64]>::to_vec).collect();
        let mut index = MemoryRanges::build(options(8192, FPR, 400), 0, lists).unwrap();
        for i in first..first + 300_000 {
            rows.push(element(i));
            index.insert((i / 400) as u32, element(i)).unwrap();
        }
        let survey = Survey::read(&index.directory, &mut index.memory).unwrap();
        assert!(survey.overfull == 0 && survey.fpr < FPR, "{first}: {survey:?}");
        assert!((survey.keys / (first + 300_000) as f64 - 1.0).abs() < 0.01, "{survey:?}");
    }
}

/// Level 1 is settled by the first tiles when no hashes are kept, and settled again where rows
/// change.
#[test]
fn a_build_notices_that_rows_change() {
    let lists = uneven(0..50 * 128, |range| if range < 20 * 128 { 3 } else { 60 });
    let mut index = MemoryRanges::build(options(8192, FPR, 10), 0, lists).unwrap();
    check(&index);
    assert_eq!(widths(&index, Level::One), [16, 8, 32]);
    for range in 0..50 * 128 {
        assert!(
            index
                .search(element(range * 100 + range % 3))
                .unwrap()
                .contains(&(range as u32))
        );
    }
    let tiles: Vec<TileAddress> = index.directory.tiles_from(Level::One, 0).collect();
    let fills = tiles
        .iter()
        .map(|tile| Fill::read(&mut index.memory, tile, u32::MAX).unwrap());
    let above = rate_of_level(FPR, Level::One, Level::One);
    let overfull: usize = fills
        .map(|fill| {
            fill.slot_columns
                .slots()
                .filter(|slot| fill.rate(slot) > above * 2.5)
                .count()
        })
        .sum();
    assert!(overfull <= 4, "{overfull}");
}

/// Absent keys read the index pages that were expected.
fn pages_read(index: &mut MemoryRanges) -> f64 {
    let lookups = 20_000;
    index.memory.reads = 0;
    for i in 0..lookups {
        index.search(element(1 << 50 | i)).unwrap();
    }
    // The metapage, which the driver keeps.
    let read = 1.0 + index.memory.reads as f64 / lookups as f64;
    let expected = Expectation::for_directory(&index.directory).index_pages;
    // Tiles have whole pages, so that small ones keep better rates than they must.
    assert!((0.85..1.03).contains(&(read / expected)), "{read} where {expected} were expected");
    read
}

fn bytes_per_row(index: &MemoryRanges, rows: u64) -> f64 {
    f64::from(index.directory.chain.allocated) * 8192.0 / rows as f64
}

/// What the documentation says of indexes that grew with their tables: 65 rows per page, 8 pages
/// per range.
#[test]
fn figures_of_appended_indexes() {
    let mut index = empty(options(8192, FPR, 520));
    let mut sizes = Vec::new();
    for rows in (1_000_000..=6_000_000u64).step_by(10_000) {
        let last = (rows.div_ceil(520) - 1) as u32;
        // No element is needed: a tile after an empty one is made for what was guessed.
        while index.directory.tile_of(Level::Zero, last).is_none() {
            let loads = |level| index.directory.keys_in_last_tile(&mut index.memory, level);
            index.directory = index.directory.grow(last, loads).unwrap().directory;
        }
        sizes.push(bytes_per_row(&index, rows));
    }
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    let most = sizes.iter().copied().fold(0.0, f64::max);
    assert!(
        (mean * 10.0).round() == 34.0 && (most * 10.0).round() == 38.0,
        "{mean} in the mean, {most} at most"
    );
    let read = Expectation::for_directory(&index.directory).index_pages;
    assert!((14.0..16.0).contains(&read), "{read} pages for an absent key at 6,000,000 rows");
}

/// The figures of the module's documentation, 65 rows per page and 8 pages per range.
#[test]
fn figures_of_six_hundred_thousand_rows() {
    let options = options(8192, FPR, 520);
    let mut built = MemoryRanges::build(options, 1 << 20, ranges(1154, 520)).unwrap();
    assert!(pages_read(&mut built) < 3.2 && bytes_per_row(&built, 600_000) < 4.1);
    let mut appended = empty(options);
    append(&mut appended, 0, ranges(1154, 520));
    assert!(pages_read(&mut appended) < 8.2 && bytes_per_row(&appended, 600_000) < 3.7);
    // A key that is present: its own range, 127 others at the rate of level 0, and all of them at
    // that of both.
    for index in [&mut built, &mut appended] {
        let found: usize = (0..600_000)
            .step_by(31)
            .map(|i| index.search(element(i)).unwrap().len())
            .sum();
        let beside = found as f64 / (600_000f64 / 31.0).ceil() - 1.0;
        assert!(
            beside < 127.0 * rate_of_level(FPR, Level::Zero, Level::One) + 1154.0 * FPR,
            "{beside}"
        );
    }
}

#[test]
fn a_hundred_thousand_ranges() {
    let (count, per_range) = (100_000, 16);
    let options = options(8192, FPR, 16);
    let mut built = MemoryRanges::build(options, 1 << 18, ranges(count, per_range)).unwrap();
    let mut appended = empty(options);
    append(&mut appended, 0, ranges(count, per_range));
    for index in [&mut built, &mut appended] {
        check(index);
        let read = pages_read(index);
        assert!(read < 33.0, "{read}");
        for i in (0..count * per_range).step_by(97) {
            assert!(index.search(element(i)).unwrap().contains(&((i / per_range) as u32)));
        }
        let survey = Survey::read(&index.directory, &mut index.memory).unwrap();
        assert_eq!((survey.ranges, survey.overfull), (count, 0));
        assert!(survey.fpr < FPR, "{survey:?}");
    }
    let runs = (built.runs(), appended.runs());
    assert!(runs.0 < 220 && runs.1 < 80, "{runs:?}");
}
