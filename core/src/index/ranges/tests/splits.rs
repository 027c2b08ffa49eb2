//! Pages that are split among ranges.

use super::{append, check, element, empty, options};
use crate::index::chain::IndexDirectory;
use crate::index::page::RowId;
use crate::index::ranges::memory::{Failure, MemoryRanges};
use crate::index::ranges::{Directory, Level, Options, PageContent, Split, Survey};
use proptest::prelude::*;

#[test]
fn each_row_is_in_the_lines_of_its_range() {
    let part = |first_page, end_page| Split { first_page, end_page, ..Split::of_all_pages(3, 50) };
    let all = [
        Split::of_all_pages(1, 128),
        Split::of_all_pages(7, 20),
        part(1, Split::NO_PAGE),
        part(8, 20),
        part(0, 30),
    ];
    for split in all.map(Some).into_iter().chain([None]) {
        let options = Options { split, ..options(8192, 0.1, 1) };
        for (page, line) in (0..40).flat_map(|page| (1..=291).map(move |line| (page, line))) {
            let range = options.range_of(RowId { page, line });
            assert!(options.pages_of(range).contains(&page.into()));
            let lines = split.and_then(|split| split.lines_of(range));
            assert!(lines.is_none_or(|mut lines| lines.any(|of| of == line)));
            assert!(u64::from(range) < options.ranges_of(page + 1));
        }
    }
}

#[test]
fn pages_are_split_where_they_stand_for_much_text() {
    let of =
        |lines, text_bytes, pages| Split::by_text(8192.0, PageContent { lines, text_bytes }, pages);
    assert_eq!(of(100.0, 16_000.0, 10), None);
    assert_eq!(of(100.0, 100.0 * 8192.0, 10), Some(Split::of_all_pages(1, 100)));
    assert_eq!(of(160.0, 160.0 * 20_000.0, 10), Some(Split::of_all_pages(2, 80)));
    assert_eq!(of(20.0, 20.0 * 4096.0, 10), Some(Split::of_all_pages(2, 10)));
    assert_eq!(of(1.0, 1e9, 10), None);
    assert_eq!(of(2000.0, 40_000.0, 10), None);
    assert_eq!(of(100.0, 1e9, u32::MAX), None);
    for (lines, bytes) in [(3.4, 1e6), (11.0, 50_000.0), (140.0, 3e6), (291.0, 1e9)] {
        let Split { lines_per_range: of_range, ranges_per_page: ranges, .. } =
            of(lines, bytes, 1000).expect("much text");
        assert!(f64::from(of_range) * f64::from(ranges) >= lines);
        assert!(f64::from(of_range) * f64::from(ranges - 1) < lines, "no range is empty");
    }
}

/// Options of an index on texts whose pages are split.
fn split_options(bytes: usize) -> Options {
    Options {
        split: Some(Split::of_all_pages(1, 40)),
        pages_per_range: 1,
        is_flat: true,
        ..options(bytes, 0.33, 40)
    }
}

/// Documents of very different lengths, as ranges.
fn documents(count: u64) -> Vec<Vec<u64>> {
    let elements = |document: u64| match element(document) % 50 {
        0 => 20_000,
        1..10 => 0,
        other => other * 40,
    };
    (0..count)
        .map(|document| (0..elements(document)).map(|i| element(document << 32 | i)).collect())
        .collect()
}

/// How many of these ranges are found for elements that none has, in the mean.
fn mean_found(index: &mut MemoryRanges, ranges: u32) -> f64 {
    let found: usize = (0..100)
        .map(|i| index.search(element(1 << 60 | i)).unwrap().len())
        .sum();
    found as f64 / 100.0 / f64::from(ranges)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is built and what is added later is found, whatever the slots have.
    #[test]
    fn documents_are_found(
        bytes in prop_oneof![Just(1024usize), Just(8192)],
        sizes in prop::collection::vec(prop_oneof![Just(0u64), 0u64..60, 500u64..3000], 0..150),
        later in prop::collection::vec((0u32..200, any::<u64>()), 0..60),
    ) {
        let of = |(range, &size): (u64, &u64)| (0..size).map(|i| element(range << 32 | i)).collect::<Vec<u64>>();
        let mut ranges: Vec<Vec<u64>> = (0..).zip(&sizes).map(of).collect();
        let mut index = MemoryRanges::build(split_options(bytes), 0, &ranges).unwrap();
        ranges.resize(200, Vec::new());
        for &(range, hash) in &later {
            index.insert(range, hash).unwrap();
            ranges[range as usize].push(hash);
        }
        check(&index);
        for (range, hashes) in (0..).zip(&ranges) {
            for &hash in hashes.iter().take(50) {
                prop_assert!(index.search(hash).unwrap().contains(&range));
            }
        }
    }
}

/// A slot for each document takes twice the bytes, or all columns of long ones are full.
#[test]
fn long_documents_have_more_columns() {
    let documents = documents(1000);
    let elements: usize = documents.iter().map(Vec::len).sum();
    let mut index = MemoryRanges::build(split_options(8192), 0, &documents).unwrap();
    let survey = Survey::read(&index.directory, &mut index.memory).unwrap();
    let bits = survey.bits as f64 / elements as f64;
    assert!(bits < 3.6, "{bits} bits for each element");
    assert!(
        (survey.keys / elements as f64 - 1.0).abs() < 0.02,
        "{} of {elements} elements",
        survey.keys
    );
    assert_eq!(
        survey.ranges as usize,
        documents.iter().filter(|document| !document.is_empty()).count()
    );
    let found = mean_found(&mut index, 1000);
    assert!(
        (found - survey.fpr * survey.ranges as f64 / 1000.0).abs() < 0.01,
        "{found} for {}",
        survey.fpr
    );
    assert!(found < 0.33, "{found}");
    // What is appended has equally many for each, and is as sharp where documents are alike.
    let mut index = empty(split_options(8192));
    append(
        &mut index,
        0,
        (0..600).map(|document| (0..900).map(|i| element(document << 32 | i)).collect()),
    );
    let found = mean_found(&mut index, 600);
    assert!((0.2..0.4).contains(&found), "{found}");
}

/// The last row of each block says which columns slots have; what can't be that is an error.
#[test]
fn damaged_columns_are_reported() {
    let index = MemoryRanges::build(split_options(8192), 0, documents(100)).unwrap();
    let tile = index.directory.tile(Level::Zero, 0).unwrap();
    let last_row = 24 + 509 * 16;
    for wrong in [1u128, 2, u128::MAX, 0b110 << 64] {
        let mut damaged = index.clone();
        for page in tile.pages() {
            damaged.memory.pages[page as usize][last_row..][..16]
                .copy_from_slice(&wrong.to_le_bytes());
        }
        let problem = "its slots cannot have the columns that it says";
        let is_reported = |failure: Failure| matches!(failure, Failure::Damage(damage) if damage.problem == problem);
        assert!(is_reported(damaged.search(element(1)).unwrap_err()));
        assert!(is_reported(damaged.insert(3, element(1)).unwrap_err()));
        assert!(is_reported(Survey::read(&damaged.directory, &mut damaged.memory).unwrap_err()));
    }
}

/// An index whose pages aren't split has no such columns, and one that was made before goes on to
/// be read.
#[test]
fn only_split_pages_have_more_columns() {
    let read = |options: Options, shape_of: Options| {
        let mut index = MemoryRanges::build(shape_of, 0, documents(100)).unwrap();
        index.directory.options = options;
        index.memory.pages[0] = index.directory.metapage().into();
        Directory::read(&mut index.memory, options.size)
    };
    let (split, whole) = (split_options(8192), Options { split: None, ..split_options(8192) });
    assert!(read(split, whole).is_ok());
    let refused = format!("{:?}", read(whole, split).unwrap_err());
    assert!(refused.contains("more columns of a slot is 1"), "{refused}");
}

/// Only pages without a tile are divided in another way.
#[test]
fn the_first_page_that_is_split_begins_a_tile() {
    let whole = Options { split: None, ..split_options(8192) };
    let mut index = MemoryRanges::build(whole, 0, documents(300)).unwrap();
    let (tile, size) =
        (index.directory.tile(Level::Zero, 1).unwrap().first_slot, index.directory.options.size);
    let mut read = |first_page| {
        index.directory.options.split = Some(Split { first_page, ..Split::of_all_pages(1, 40) });
        index.memory.pages[0] = index.directory.metapage().into();
        Directory::read(&mut index.memory, size)
    };
    for first_page in [1, tile - 1, tile + 1] {
        let refused = format!("{:?}", read(first_page).unwrap_err());
        assert!(refused.contains("first page that is split"), "{refused}");
    }
    assert!(read(tile).is_ok() && read(1 << 20).is_ok());
}

/// Short texts may be followed by documents, long after the index was made.
#[test]
fn pages_of_documents_after_short_texts_are_split() {
    let documents: Vec<Vec<u64>> = (0..2000)
        .map(|n| (0..900).map(|i| element(n << 32 | i)).collect())
        .collect();
    let short: Vec<Vec<u64>> = (0..300u64)
        .map(|n| (0..50).map(|i| element(n << 48 | i)).collect())
        .collect();
    let options = Options { split: None, table_pages: 300, ..split_options(8192) };
    let mut index = MemoryRanges::build(options, 0, &short).unwrap();
    index.directory.options.may_split = true;
    let built = index.directory.end_slot(Level::Zero);
    let row = |n: u32| RowId { page: 300 + n / 40, line: (n % 40) as u16 + 1 };
    for (n, hashes) in (0..).zip(&documents) {
        let tile = index
            .directory
            .tile_of(Level::Zero, index.directory.options.range_of(row(n)));
        if tile.is_none() && index.directory.may_split_new_pages() {
            index.directory.split_new_pages(Split::of_all_pages(1, 40));
        }
        let range = index.directory.options.range_of(row(n));
        hashes.iter().for_each(|&hash| _ = index.insert(range, hash).unwrap());
    }
    check(&index);
    let split = index.directory.options.split.expect("pages of documents are split");
    assert_eq!(u64::from(split.first_page), built);
    for (page, hashes) in (0..).zip(&short) {
        assert!(
            index
                .search(hashes[7])
                .unwrap()
                .contains(&index.directory.options.range_of(RowId { page, line: 9 }))
        );
    }
    for (n, hashes) in (0..).zip(&documents) {
        assert!(
            index
                .search(hashes[7])
                .unwrap()
                .contains(&index.directory.options.range_of(row(n)))
        );
    }
    let of_documents = 2000 - (split.first_page - 300) * 40;
    let found = (0..100).map(|i| index.search(element(1 << 60 | i)).unwrap());
    let among = found
        .map(|ranges| ranges.iter().filter(|&&range| split.is_split(range)).count())
        .sum::<usize>();
    let share = among as f64 / 100.0 / f64::from(of_documents);
    assert!((0.2..0.45).contains(&share), "{share} of {of_documents} documents");
}

/// How the pages of an index on an empty table are divided is decided when page 0 is full.
#[test]
fn an_index_on_an_empty_table_decides_after_its_first_page() {
    let documents: Vec<Vec<u64>> = (0..2000)
        .map(|n| (0..900).map(|i| element(n << 32 | i)).collect())
        .collect();
    for split in [None, Some(Split::of_all_pages(1, 40))] {
        let mut index = empty(Options { split: None, may_split: true, ..split_options(8192) });
        for (row, hashes) in (0..)
            .map(|n| RowId { page: n / 40, line: (n % 40) as u16 + 1 })
            .zip(&documents)
        {
            if let Some(split) =
                split.filter(|_| index.directory.may_split_new_pages() && row.page > 0)
            {
                index.directory.split_new_pages(split);
            }
            let range = index.directory.options.range_of(row);
            assert!(index.directory.options.pages_of(range).contains(&row.page.into()));
            hashes.iter().for_each(|&hash| _ = index.insert(range, hash).unwrap());
        }
        check(&index);
        let (ranges, page_0) =
            (split.map_or(50, |_| 1 + 49 * 40), index.directory.tile_of(Level::Zero, 0).unwrap());
        assert_eq!(
            (page_0.shape.slots(), index.directory.tile(Level::Zero, 1).unwrap().first_slot),
            (1, 1)
        );
        for (n, hashes) in (0..).zip(&documents) {
            let row = RowId { page: n / 40, line: (n % 40) as u16 + 1 };
            assert!(
                index
                    .search(hashes[7])
                    .unwrap()
                    .contains(&index.directory.options.range_of(row))
            );
        }
        let found = mean_found(&mut index, ranges);
        assert!((0.2..0.4).contains(&found), "{found} of {ranges}");
        let survey = Survey::read(&index.directory, &mut index.memory).unwrap();
        // The last tile has slots that are not used yet.
        let bits_per_element = survey.bits as f64 / survey.keys;
        assert!(bits_per_element < 4.0, "{bits_per_element}");
    }
}

/// Pages whose rows became too wide to be split are whole from some page on, and an index on them
/// stays small.
#[test]
fn pages_with_few_wide_rows_are_whole_again() {
    let documents: Vec<Vec<u64>> = (0..2000)
        .map(|n| (0..900).map(|i| element(n << 32 | i)).collect())
        .collect();
    let options = Options { table_pages: 25, ..split_options(8192) };
    let mut index = MemoryRanges::build(options, 0, &documents[..1000]).unwrap();
    let built = index.directory.chain.allocated;
    // Three a page from here on.
    let row = |n: u32| RowId { page: 25 + (n - 1000) / 3, line: (n % 3) as u16 + 1 };
    for (n, hashes) in (1000..).zip(&documents[1000..]) {
        let range = index.directory.options.range_of(row(n));
        if index.directory.tile_of(Level::Zero, range).is_none()
            && index.directory.options.split.unwrap().is_open()
            && index.directory.used_share(&mut index.memory).unwrap() < 0.25
        {
            index.directory.make_new_pages_whole();
        }
        let range = index.directory.options.range_of(row(n));
        assert_eq!(
            index.directory.options.pages_of(range),
            row(n).page.into()..u64::from(row(n).page) + 1
        );
        hashes.iter().for_each(|&hash| _ = index.insert(range, hash).unwrap());
    }
    check(&index);
    let whole_from = index.directory.options.split.unwrap().end_page;
    assert!((26..32).contains(&whole_from), "whole from {whole_from}");
    let grown = index.directory.chain.allocated;
    assert!(grown < built * 4, "{built} pages became {grown}");
    for (n, hashes) in (1000..).zip(&documents[1000..]) {
        let range = index.directory.options.range_of(row(n));
        assert!(index.search(hashes[7]).unwrap().contains(&range));
        assert_eq!(
            index
                .directory
                .options
                .split
                .and_then(|split| split.lines_of(range))
                .is_none(),
            row(n).page >= whole_from
        );
    }
    for (range, hashes) in (0..).zip(&documents[..1000]) {
        assert!(index.search(hashes[899]).unwrap().contains(&range));
    }
}
