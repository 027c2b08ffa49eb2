//! Whatever a page says, reading it ends with an answer or an error.

use super::*;
use crate::index::chain::{IndexDirectory, sign};
use crate::index::page::{Damage, PageNumber};
use proptest::prelude::*;

fn sample(bytes: usize) -> MemoryFilters {
    let size = PageSize::new(bytes).unwrap();
    let all: Vec<Vec<u8>> = (0..60)
        .map(|i| {
            let layout = Layout::ALL[i as usize % 3];
            let tag = if layout == Layout::Parquet { Tag::ParquetByteArray } else { Tag::Text };
            filter(layout, tag, Some(40 << (i % 4)), 0..i * 8)
        })
        .collect();
    let rows = all
        .iter()
        .zip(1..)
        .map(|(bytes, page)| (RowId { page, line: 1 }, View::parse(bytes).unwrap()));
    let mut index = MemoryFilters::build(size, 2_000, rows).unwrap();
    index
        .insert(RowId { page: 99, line: 1 }, &View::parse(&all[59]).unwrap())
        .unwrap();
    index
}

fn use_it(memory: Memory, size: PageSize) -> Result<(), Failure> {
    let mut index = MemoryFilters::open(memory, size)?;
    check_addresses(&index);
    for i in 0..3 {
        index.search(|group| vec![vec![sought(group, Tag::Text, i)]])?;
    }
    index.remove(|row| row.page % 2 == 0)?;
    let bytes = filter(Layout::Blocked, Tag::Text, Some(80), 0..80);
    index.insert(RowId { page: 5, line: 5 }, &View::parse(&bytes).unwrap())?;
    Ok(())
}

/// What an accepted directory promises.
fn check_addresses(index: &MemoryFilters) {
    for (number, _) in index.directory.groups() {
        for tile in index.directory.tiles(number) {
            let pages = tile.pages();
            assert!(
                pages.is_empty() || pages.start > 0 && pages.end <= index.directory.chain.allocated
            );
            assert!(tile.width > 0);
        }
    }
}

/// The pages that say where tiles are.
fn directory_pages(index: &MemoryFilters) -> Vec<u32> {
    [0].into_iter()
        .chain(index.directory.chain.pages.iter().copied())
        .collect()
}

/// Of which each decides what is written where.
#[test]
fn each_flipped_bit_of_the_directory_is_refused() {
    let index = sample(1024);
    assert!(!index.directory.chain.pages.is_empty());
    for at in directory_pages(&index) {
        for bit in 24 * 8..1024 * 8 {
            let mut memory = index.memory.clone();
            memory.pages[at as usize][bit / 8] ^= 1 << (bit % 8);
            let read = Directory::read(&mut memory, index.directory.size);
            assert!(matches!(read, Err(Failure::Damage(_))), "bit {bit} of page {at}");
        }
    }
}

/// A page of a tile and a row page say what they are.
#[test]
fn each_flipped_bit_of_the_end_of_a_page_is_refused() {
    let index = sample(1024);
    let tile = *index
        .directory
        .groups()
        .flat_map(|(number, _)| index.directory.tiles(number))
        .next()
        .unwrap();
    let row_page = *index
        .directory
        .row_pages(tile.group)
        .iter()
        .find(|page| page.number == tile.row_page)
        .unwrap();
    for bit in 0..64 {
        let flipped = |page: PageNumber| {
            let mut page = index.memory.pages[page as usize].clone();
            page[1016 + bit / 8] ^= 1 << (bit % 8);
            page
        };
        let (rows, blocks) = (flipped(row_page.number), flipped(tile.first_page));
        assert!(
            row_page.first_free(Some(&rows)).is_err()
                && row_page.rows(Some(&rows), 0..row_page.slots, |_, _, _| ()).is_err()
        );
        assert!(
            tile.special()
                .bytes_if_written(Some(&blocks), index.directory.size, tile.first_page)
                .is_err()
        );
    }
}

/// Even with a right checksum, no number makes the index larger than its tiles, or lets two of them
/// share a page.
#[test]
fn each_number_of_the_directory_agrees_with_the_others() {
    let index = sample(1024);
    for at in directory_pages(&index) {
        for half in (24..1016).step_by(2) {
            let old = u16::from_le_bytes(
                index.memory.pages[at as usize][half..half + 2].try_into().unwrap(),
            );
            let near = [
                0,
                u16::MAX,
                old.wrapping_add(1),
                old.wrapping_sub(1),
                old << 1,
                old >> 1,
            ];
            for new in (0..16)
                .map(|bit| old ^ 1 << bit)
                .chain(near)
                .filter(|new| *new != old)
            {
                let mut memory = index.memory.clone();
                memory.pages[at as usize][half..half + 2].copy_from_slice(&new.to_le_bytes());
                sign(&mut memory.pages[at as usize], index.directory.size);
                if let Ok(read) = MemoryFilters::open(memory, index.directory.size) {
                    assert_eq!(read.directory.chain.allocated, index.directory.chain.allocated);
                    check(&read);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Of any page, or of those of the directory alone.
    #[test]
    fn damage_is_found_or_harmless(
        bytes in prop_oneof![Just(1024usize), Just(8192)],
        is_directory: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u8..), 1..4),
    ) {
        let mut index = sample(bytes);
        let directory = [0, *index.directory.chain.pages.last().unwrap() as usize];
        for (page, at, value) in changes {
            let (page, at) = if is_directory {
                (directory[page.index(2)], 24 + at.index(60))
            } else {
                (page.index(index.memory.pages.len()), at.index(bytes))
            };
            index.memory.pages[page][at] ^= value;
            if is_directory {
                sign(&mut index.memory.pages[page], index.directory.size);
            }
        }
        let size = index.directory.size;
        match use_it(index.memory, size) {
            Ok(()) => {}
            Err(Failure::Damage(damage)) => prop_assert!(!damage.problem.is_empty()),
            Err(Failure::Error(other)) => prop_assert_eq!(other.class(), crate::Class::TooLarge),
        }
    }
}

/// Records are in directory pages only.
#[test]
fn records_in_the_metapage_are_damage() {
    let mut index = sample(8192);
    index.memory.pages[0][52] = 24;
    sign(&mut index.memory.pages[0], index.directory.size);
    let Err(Failure::Damage(damage)) = MemoryFilters::open(index.memory, index.directory.size)
    else {
        panic!("accepted")
    };
    assert_eq!(damage, Damage::new(0, "bytes of records is 24"));
}

#[test]
fn a_page_that_is_another_is_an_error() {
    let index = sample(8192);
    let tile = *index
        .directory
        .groups()
        .flat_map(|(number, _)| index.directory.tiles(number))
        .next()
        .unwrap();
    for (page, by) in [
        (tile.row_page, tile.first_page),
        (tile.first_page, tile.row_page),
    ] {
        let mut other = index.clone();
        other.memory.pages[page as usize] = index.memory.pages[by as usize].clone();
        let found = other.search(|group| vec![vec![sought(group, Tag::Text, 0)]]);
        let is_wrong_kind = |damage: &Damage| damage.problem.starts_with("it is of kind ");
        let all = other.remove(|_| false);
        let failed = [found.map(drop), all.map(drop)].into_iter().filter_map(Result::err);
        let damages: Vec<Failure> = failed.collect();
        assert!(!damages.is_empty());
        assert!(
            damages
                .iter()
                .all(|f| matches!(f, Failure::Damage(damage) if is_wrong_kind(damage))),
            "{damages:?}"
        );
    }
}
