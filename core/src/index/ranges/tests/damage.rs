//! Pages that were damaged: refused with the reason, or harmless.

use super::*;
use crate::hash::word;
use crate::index::chain::sign;
use proptest::prelude::*;

/// An index whose directory has several pages: ranges whose sizes change all the time.
fn with_many_runs() -> MemoryRanges {
    let (built, all) = (150 * 128, 180 * 128);
    let elements = |range| if range / 128 % 2 == 0 { 3 } else { 60 };
    let mut index =
        MemoryRanges::build(options(1024, 0.01, 10), 1000, uneven(0..built, elements)).unwrap();
    append(&mut index, built as u32, uneven(built..all, elements));
    index
}

/// Uses what was accepted.
fn use_it(index: &mut MemoryRanges) {
    let _ = Expectation::for_directory(&index.directory);
    for i in 0..20 {
        let hash = element(i * 1000);
        let _ = search(&index.directory, &mut index.memory, hash, |_| ());
        let range = word(i, 7) as u32 >> (i % 30);
        if let Some(places) = index.directory.marks(range, hash) {
            assert!(places.len() <= Level::ALL.len());
            for mark in &places {
                assert!(mark.page() < index.directory.chain.allocated);
                if let Some(page) = index.memory.pages.get(mark.page() as usize) {
                    let _ = memory::set(mark, &mut page.clone());
                }
            }
        }
    }
    let next = index.directory.end_slot(Level::Zero).min(1 << 31) as u32;
    let _ = index
        .directory
        .grow(next, |level| index.directory.keys_in_last_tile(&mut index.memory, level));
}

#[test]
fn many_runs_fill_directory_pages() {
    let mut index = with_many_runs();
    assert!(index.directory.chain.pages.len() >= 2, "{} runs", index.runs());
    check(&index);
    for range in (0..180 * 128u64).step_by(11) {
        assert!(
            index
                .search(element(range * 100 + 2))
                .unwrap()
                .contains(&(range as u32))
        );
    }
    use_it(&mut index);
}

fn problem(index: &MemoryRanges) -> String {
    match MemoryRanges::open(index.memory.clone(), index.directory.options.size) {
        Err(Failure::Damage(damage)) => {
            assert!(!damage.problem.is_empty());
            damage.problem
        }
        other => panic!("accepted: {:?}", other.map(|index| index.runs())),
    }
}

/// The pages that say where tiles are.
fn directory_pages(index: &MemoryRanges) -> Vec<u32> {
    [META_PAGE]
        .into_iter()
        .chain(index.directory.chain.pages.iter().copied())
        .collect()
}

/// In an index of three levels whose directory has several pages, without which no bit can be
/// trusted.
#[test]
fn each_flipped_bit_of_the_directory_is_refused() {
    let mut index = with_many_runs();
    assert!(index.directory.tile_count(Level::Two) > 0 && index.directory.chain.pages.len() >= 2);
    for at in directory_pages(&index) {
        for bit in 24 * 8..1024 * 8 {
            index.memory.pages[at as usize][bit / 8] ^= 1 << (bit % 8);
            let read = Directory::read(&mut index.memory, index.directory.options.size);
            assert!(matches!(read, Err(Failure::Damage(_))), "bit {bit} of page {at}");
            index.memory.pages[at as usize][bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// A page of a tile says which one it is of.
#[test]
fn each_flipped_bit_of_the_end_of_a_page_is_refused() {
    let index = with_many_runs();
    for tile in Level::ALL.map(|level| index.directory.tile(level, 0).unwrap()) {
        let probe = (0..)
            .map(|i| tile.probe(element(i)))
            .find(|probe| probe.page == tile.first_page)
            .unwrap();
        let mark = probe.mark(0);
        let page = &index.memory.pages[tile.first_page as usize];
        assert!(probe.slots(Some(page)).is_ok() && changes(&[&mark], page).is_ok());
        for bit in 0..64 {
            let mut page = page.clone();
            page[1016 + bit / 8] ^= 1 << (bit % 8);
            assert!(
                probe.slots(Some(&page)).is_err() && changes(&[&mark], &page).is_err(),
                "bit {bit}"
            );
        }
    }
}

/// Even with a right checksum, no number makes the index larger than its tiles, or lets two of them
/// share a page.
#[test]
fn each_number_of_the_directory_agrees_with_the_others() {
    let mut index = with_many_runs();
    let (size, allocated) = (index.directory.options.size, index.directory.chain.allocated);
    let mut accepted = 0;
    for at in directory_pages(&index) {
        let sound = index.memory.pages[at as usize].clone();
        for word in (24..1016).step_by(4) {
            let old = u32::from_le_bytes(sound[word..word + 4].try_into().unwrap());
            let near = [
                0,
                u32::MAX,
                old.wrapping_add(1),
                old.wrapping_sub(1),
                old << 1,
                old >> 1,
            ];
            for new in (0..32)
                .map(|bit| old ^ 1 << bit)
                .chain(near)
                .filter(|new| *new != old)
            {
                let page = &mut index.memory.pages[at as usize];
                page.copy_from_slice(&sound);
                page[word..word + 4].copy_from_slice(&new.to_le_bytes());
                sign(page, size);
                if let Ok(read) = Directory::read(&mut index.memory, size) {
                    accepted += 1;
                    assert_eq!(
                        read.chain.allocated, allocated,
                        "{new} instead of {old} at {word} of page {at}"
                    );
                    let runs = Level::ALL.into_iter().flat_map(|level| &read.runs[level]);
                    let of_tiles: u64 =
                        runs.map(|run| run.end_page() - u64::from(run.first.first_page)).sum();
                    assert_eq!(1 + read.chain.pages.len() as u64 + of_tiles, allocated.into());
                }
            }
        }
        index.memory.pages[at as usize] = sound;
    }
    assert!(accepted > 0, "options may have other values");
}

/// Each field, changed to what it can't be.
#[test]
fn each_field_is_checked() {
    let sound = MemoryRanges::build(options(8192, 0.01, 10), 0, ranges(700, 3)).unwrap();
    let record_bytes = sound.memory.pages[0][52];
    // Where a field is in the metapage, what it is changed to, and the error.
    let changes: &[(usize, &[u8], &str)] = &[
        (24, b"a", "magic number is 2020173409"),
        (28, &[2], "hash function is 2"),
        (29, &[1, 2, 3], "reserved byte is 1"),
        (30, &[2, 1], "reserved byte is 2"),
        (40, &[0; 4], "number of pages is 0"),
        (40, &[0xFF; 4], "number of pages is 4294967295"),
        // One bit, which would be 16 GB.
        (42, &[0x20], "number of pages is 2097160, but must be 8"),
        // Fewer pages than its runs have.
        (40, &[2, 0, 0, 0], "number of pages is 2, but must be 8"),
        (44, &[8], "number of directory pages is 8"),
        (44, &[1], "newest directory page is 0"),
        (48, &[1], "newest directory page is 1"),
        (52, &[0xFF; 4], "bytes of records is 4294967295, but may be 8088 at most"),
        (52, &[record_bytes + 1], "bytes of records is 61"),
        (63, &[0x80], "rows is 9223372036854777908"),
        (64, &f64::NAN.to_le_bytes(), "false positive rate is 9221120237041090560"),
        (64, &0.6f64.to_le_bytes(), "false positive rate is 4603579539098121011"),
        (64, &(-0.0f64).to_le_bytes(), "false positive rate is 9223372036854775808"),
        (72, &[0; 2], "pages per range is 0"),
        (72, &1025u16.to_le_bytes(), "pages per range is 1025"),
        (74, &[1], "ranges per page is 1, but must be 0"),
        (75, &[1], "lines per range is 1, but must be 0"),
        (76, &3277u32.to_le_bytes(), "keys per range is 3277, but may be 3276 at most"),
        (80, &[6, 0, 0, 0], "run 2 of tiles: first slot is 0, but must be 6"),
        (80, &[0xFF; 4], "tiles above a level without covered tiles is 1, but must be 0"),
        (84, &[0; 4], "tile without a slot above is 0"),
        (84, &[1, 0, 0, 0], "first covered tile is 1"),
        (92, &[2], "levels is 2"),
        // This one has two.
        (92, &[1], "first page that is whole again is 0, but must be 4294967295"),
        (93, &[1], "pages that may be split is 1, but may be 0 at most"),
        // The first run is six tiles of level 0, 128 wide.
        (96, &[3], "run 0 of tiles: level is 3"),
        (97, &[100], "run 0 of tiles: number of columns is 100"),
        (98, &[0], "run 0 of tiles: number of hashes is 0"),
        (98, &[61], "run 0 of tiles: number of hashes is 61"),
        (99, &[9], "run 0 of tiles: more columns of a slot is 9"),
        (100, &[0; 4], "run 0 of tiles: pages of a tile is 0"),
        (100, &[0xFF; 4], "run 0 of tiles: pages of a tile is 4294967295, but may be 489 at most"),
        (100, &[9], "run 1 of tiles: first page is 6, but must be 46"),
        (104, &[0; 4], "run 0 of tiles: number of tiles is 0"),
        (
            104,
            &[0xFF; 4],
            "run 0 of tiles: slots of a level is 549755813760, but may be 4294967296 at most",
        ),
        (108, &[8], "run 0 of tiles: first slot is 8, but must be 0"),
        (112, &[0], "run 0 of tiles: first page is 0, but must be 1"),
        (112, &[0, 0, 1], "run 0 of tiles: first page is 65536, but must be 1"),
        (8000, &[1], "unused byte is 1"),
        (8184, &[1], "its number is 1, but must be 0"),
        (8188, &[9], "its version is 9, which is unknown"),
        (8189, &[3], "it is of kind 3, but must be 1 (Meta)"),
        (8190, &[0], "it is not a page of a bloom_filter index (its id is FB00)"),
    ];
    for &(offset, bytes, expected) in changes {
        let mut index = sound.clone();
        let metapage = &mut index.memory.pages[0];
        metapage[offset..offset + bytes.len()].copy_from_slice(bytes);
        sign(metapage, index.directory.options.size);
        assert_eq!(problem(&index), expected, "{bytes:?} at {offset}");
    }

    let mut unsigned = sound.clone();
    unsigned.memory.pages[0][32] ^= 1;
    assert!(problem(&unsigned).starts_with("its checksum is "));
    let mut without_metapage = sound.clone();
    without_metapage.memory.pages.clear();
    assert_eq!(problem(&without_metapage), "it is empty");
    without_metapage.memory.pages.push(vec![0; 8192]);
    assert_eq!(problem(&without_metapage), "it is empty");
    without_metapage.memory.pages[0] = vec![0; 100];
    assert_eq!(problem(&without_metapage), "it has 100 bytes instead of 8192");
}

/// A run with more pages than its slots can need is refused, even if all other numbers agree.
#[test]
fn more_pages_than_tiles_can_need_are_refused() {
    // A page has 2,048 rows at most, however many the table has.
    for (of_table, rows, too_many) in [
        (700, 0, 2_000_000),
        (8, 0, 2_000_000),
        (0, 0, 2_000_000),
        (700, 1 << 40, 20_000),
    ] {
        let mut index =
            MemoryRanges::build(options(8192, 0.01, 3000), rows, ranges(of_table, 300)).unwrap();
        if of_table == 0 {
            index.insert(0, element(0)).unwrap();
        }
        let forged = |pages: u32| {
            let mut index = index.clone();
            // The first run is the only one that is left.
            let page = &mut index.memory.pages[0];
            page[40..44].copy_from_slice(&(1 + pages).to_le_bytes());
            page[52..56].copy_from_slice(&20u32.to_le_bytes());
            page[80..84].copy_from_slice(&[0xFF; 4]);
            page[100..104].copy_from_slice(&pages.to_le_bytes());
            page[104..108].copy_from_slice(&1u32.to_le_bytes());
            page[116..8184].fill(0);
            sign(page, index.directory.options.size);
            index
        };
        assert!(MemoryRanges::open(forged(1).memory, index.directory.options.size).is_ok());
        let problem = problem(&forged(too_many));
        assert!(
            problem.starts_with(&format!(
                "run 0 of tiles: pages of a tile is {too_many}, but may be "
            )),
            "{problem}"
        );
    }
}

/// What a tile is made for may be far more than a table can have: an estimate, where all bits are
/// set.
#[test]
fn a_tile_after_a_full_one_is_not_taken_for_damage() {
    for (bytes, is_flat) in [(1024, false), (8192, false), (8192, true)] {
        let mut index = empty(Options { is_flat, ..options(bytes, 0.0001, 1) });
        let size = index.directory.options.size;
        for _ in 0..3 {
            for level in Level::ALL {
                let Some(last) = index.directory.tile_count(level).checked_sub(1) else {
                    continue;
                };
                let tile = index.directory.tile(level, last).unwrap();
                for at in tile.pages() {
                    let page = index.memory.writable(at, size);
                    page[size.payload()].fill(0xFF);
                    tile.special().write(page);
                }
            }
            let range = index.directory.end_slot(Level::Zero) as u32;
            index.insert(range, element(1)).unwrap();
            assert_eq!(
                MemoryRanges::open(index.memory.clone(), size).unwrap().directory,
                index.directory
            );
        }
    }
}

/// Only the first 512 ranges may be without level 1, and level 1 has no unnecessary tile: this
/// bounds the pages of a lookup.
#[test]
fn more_tiles_to_probe_than_possible_are_refused() {
    let mut index = MemoryRanges::build(options(8192, 0.01, 10), 0, ranges(512, 3)).unwrap();
    let tiles = |index: &mut MemoryRanges, run: usize, tiles: u32| {
        let at = 96 + run * 20 + 8;
        let page = &mut index.memory.pages[0];
        page[at..at + 4].copy_from_slice(&tiles.to_le_bytes());
        let pages = u32::from_le_bytes(page[at - 4..at].try_into().unwrap());
        let first = u32::from_le_bytes(page[at + 8..at + 12].try_into().unwrap());
        page[40..44].copy_from_slice(&(first + tiles * pages).to_le_bytes());
        sign(page, index.directory.options.size);
    };
    tiles(&mut index, 0, 5);
    assert_eq!(problem(&index), "slots without a level above is 640, but may be 512 at most");
    let mut index = MemoryRanges::build(options(8192, 0.01, 10), 0, ranges(640, 3)).unwrap();
    tiles(&mut index, 1, 17);
    assert_eq!(problem(&index), "slots above the tiles of a level is 136, but may be 132 at most");
}

#[test]
fn tiles_without_a_slot_above_are_noticed() {
    let mut index = MemoryRanges::build(options(8192, 0.01, 10), 0, ranges(1154, 3)).unwrap();
    let runs = index.runs();
    // The last run is a tile of level 1.
    let last = index.directory.runs[Level::One].last().unwrap().first.first_page;
    let page = &mut index.memory.pages[0];
    page[40..44].copy_from_slice(&last.to_le_bytes());
    page[52..56].copy_from_slice(&(20 * (runs as u32 - 1)).to_le_bytes());
    page[96 + (runs - 1) * 20..][..20].fill(0);
    sign(page, index.directory.options.size);
    assert_eq!(problem(&index), "tile without a slot above is 0");
}

#[test]
fn pages_in_the_wrong_place_are_noticed() {
    let mut index = MemoryRanges::build(options(8192, 0.01, 10), 0, ranges(700, 30)).unwrap();
    let [a, b] = [0, 1].map(|ordinal| index.directory.tile(Level::Zero, ordinal).unwrap());
    index.memory.pages.swap(a.first_page as usize, b.first_page as usize);
    let probe = (0..)
        .map(|i| a.probe(element(i)))
        .find(|probe| probe.page == a.first_page)
        .unwrap();
    let damage = probe
        .slots(Some(&index.memory.pages[probe.page as usize]))
        .unwrap_err();
    assert_eq!(damage, Damage::new(1, "its number is 128, but must be 0"));
    let mut page = vec![0; 8192];
    page[100] = 1;
    let foreign = "it is not a page of a bloom_filter index (its id is 0000)";
    assert_eq!(probe.slots(Some(&page)).unwrap_err().problem, foreign);
    assert_eq!(
        probe.slots(Some(&page[1..])).unwrap_err().problem,
        "it has 8191 bytes instead of 8192"
    );
    assert!(Survey::read(&index.directory, &mut index.memory).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the directory says, reading ends, and what is accepted can be used.
    #[test]
    fn damage_is_refused_or_harmless(
        many in any::<bool>(),
        changes in prop::collection::vec((any::<u32>(), any::<u32>(), 0usize..6, any::<u32>()), 1..4),
    ) {
        thread_local! {
            static SOUND: [MemoryRanges; 2] =
                [with_many_runs(), MemoryRanges::build(options(1024, 0.01, 10), 0, ranges(700, 3)).unwrap()];
        }
        let mut index = SOUND.with(|sound| sound[usize::from(!many)].clone());
        let pages = directory_pages(&index);
        for (page, at, how, value) in changes {
            let page = &mut index.memory.pages[pages[page as usize % pages.len()] as usize];
            let at = 24 + at as usize % 1000;
            let word = at / 4 * 4;
            let old = u32::from_le_bytes(page[word..word + 4].try_into().unwrap());
            let new = match how {
                0 => 0,
                1 => old.wrapping_add(1),
                2 => old.wrapping_sub(1),
                3 => value >> (value % 32),
                4 => u32::MAX,
                _ => old ^ 1 << (value % 32),
            };
            page[word..word + 4].copy_from_slice(&new.to_le_bytes());
            sign(page, index.directory.options.size);
        }
        match MemoryRanges::open(index.memory, index.directory.options.size) {
            Ok(mut index) => {
                index.memory.pages.truncate(1 << 16);
                use_it(&mut index);
            }
            Err(Failure::Damage(damage)) => prop_assert!(!damage.problem.is_empty()),
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }
}
