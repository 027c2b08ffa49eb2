//! Sizes, and where the bytes are.

use super::*;

/// An index of so many filters of so many elements each, built and added row by row.
fn both(count: u32, elements: u64) -> [(MemoryFilters, u64); 2] {
    let bytes = filter(Layout::Blocked, Tag::Text, Some(elements), 0..elements);
    let view = View::parse(&bytes).unwrap();
    let rows = (0..count).map(|i| RowId { page: i / 100, line: (i % 100) as u16 + 1 });
    let built =
        MemoryFilters::build(PageSize::DEFAULT, 8 << 20, rows.clone().map(|row| (row, view)))
            .unwrap();
    let mut added = MemoryFilters::build(PageSize::DEFAULT, 0, []).unwrap();
    rows.for_each(|row| added.insert(row, &view).unwrap());
    let stored = u64::from(count) * bytes.len() as u64;
    [(built, stored), (added, stored)]
}

/// The index is hardly larger than the filters, however many there are.
#[test]
fn size_is_that_of_the_filters() {
    for (count, elements, most_built, most_added) in [
        (10, 10_000, 1.4, 1.7),
        (100, 10_000, 1.35, 1.45),
        (1000, 10_000, 1.08, 1.2),
        (700, 100_000, 1.08, 1.25),
    ] {
        let [(built, stored), (added, _)] = both(count, elements);
        let factor = |index: &MemoryFilters| {
            f64::from(index.directory.chain.allocated) * 8192.0 / stored as f64
        };
        assert!(factor(&built) <= most_built, "{count} of {elements} built: {}", factor(&built));
        assert!(factor(&added) <= most_added, "{count} of {elements} added: {}", factor(&added));
    }
}

/// A lookup reads a page of each tile, and row pages.
#[test]
fn a_lookup_reads_a_page_per_tile() {
    for (mut index, _) in both(1000, 2_000) {
        let before = index.memory.reads;
        let found = index.search(|group| vec![vec![sought(group, Tag::Text, 1)]]).unwrap();
        assert_eq!(found.len(), 1000);
        // The metapage was read before.
        let expected = index.directory.pages_per_lookup() - 1;
        assert_eq!(index.memory.reads - before, expected);
        assert!(expected < 60, "{expected} pages");
    }
}

/// A list takes as much as its hashes need, whatever its capacity.
#[test]
fn lists_are_as_small_as_they_are() {
    let bytes = filter(Layout::Blocked, Tag::Text, Some(10_000_000), 0..10);
    let view = View::parse(&bytes).unwrap();
    let rows = (0..1000).map(|page| (RowId { page, line: 1 }, view));
    let index = MemoryFilters::build(PageSize::DEFAULT, 1 << 20, rows).unwrap();
    assert!(index.directory.chain.allocated < 12, "{} pages", index.directory.chain.allocated);
}

/// All of these and any of those.
#[test]
fn conditions_are_all_of_any() {
    let rows: BTreeMap<RowId, Vec<u8>> = (0..400u32)
        .map(|i| {
            let own = (0..9).filter(move |bit| i >> bit & 1 == 1).chain(1_000..1_900);
            (RowId { page: i, line: 3 }, filter(Layout::Blocked, Tag::Text, Some(1_000), own))
        })
        .collect();
    let views = rows.iter().map(|(row, bytes)| (*row, View::parse(bytes).unwrap()));
    let mut index = MemoryFilters::build(PageSize::DEFAULT, 0, views).unwrap();
    let any = |list: &[u64]| list.iter().map(|&i| Sought::Hash(element(i))).collect::<Vec<_>>();
    for conditions in [
        vec![any(&[0, 1]), any(&[2])],
        vec![any(&[3]), any(&[4]), any(&[5, 6, 7])],
        vec![any(&[])],
    ] {
        let found = index.search(|_| conditions.clone()).unwrap();
        let expected = rows.iter().filter(|(_, bytes)| {
            let view = View::parse(bytes).unwrap();
            let has =
                |sought: &Sought| matches!(sought, Sought::Hash(hash) if contains(&view, *hash));
            conditions.iter().all(|condition| condition.iter().any(has))
        });
        assert!(expected.map(|(row, _)| row).eq(found.keys()));
        assert!(found.values().all(|again| !again));
    }
}

/// Frozen: stored pages depend on it. The worked example of pages.md.
#[test]
fn the_worked_example() {
    let bytes = filter(Layout::Blocked, Tag::Text, Some(100), (0..1).map(|_| 0));
    let mut dense = View::parse(&bytes).unwrap().header;
    dense.num_hashes = 6;
    let mut value: Vec<u8> = dense.dense();
    let shape = dense.shape();
    let prefix = dense.prefix_bytes();
    shape.insert_all(&mut value[prefix..], &[hash(b"a")]);
    let view = View::parse(&value).unwrap();
    let mut index = MemoryFilters::build(PageSize::DEFAULT, 0, []).unwrap();
    index.insert(RowId { page: 7, line: 2 }, &view).unwrap();
    let tile = index.directory.tiles(0)[0];
    assert_eq!(
        (tile.row_page, tile.first_page, &index.directory.chain.pages[..]),
        (1, 2, &[3][..])
    );
    assert_eq!(index.memory.pages[1][24], SlotState::Used as u8);
    assert_eq!(index.memory.pages[1][24 + 1165..][..6], [7, 0, 0, 0, 2, 0]);
    assert_eq!(index.memory.pages[2][24..][..value.len() - prefix], value[prefix..]);
    assert_eq!(index.memory.pages[1][8184..], [0, 0, 0, 0, 3, 6, 0x1F, 0xFB]);
    assert_eq!(index.memory.pages[2][8184..], [0, 0, 0, 0, 3, 5, 0x1F, 0xFB]);
}
