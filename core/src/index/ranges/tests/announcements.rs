//! Lookups announce pages that they read, and find what they find without.

use super::*;
use crate::conditions::Condition;
use crate::conditions::alternatives::Alternatives;
use crate::index::page::memory::Memory;
use crate::index::page::{PageNumber, Pages};

/// Pages that take a number of announcements at a time, and count them.
struct AnnouncedPages {
    memory: Memory,
    most_announced: usize,
    /// Those that were not read yet.
    announced: Vec<PageNumber>,
    announcements: usize,
    /// Pages that were read, and had been announced.
    kept: usize,
    reads: usize,
}

impl AnnouncedPages {
    fn new(index: &MemoryRanges, most_announced: usize) -> AnnouncedPages {
        AnnouncedPages {
            memory: index.memory.clone(),
            most_announced,
            announced: Vec::new(),
            announcements: 0,
            kept: 0,
            reads: 0,
        }
    }
}

impl Pages for AnnouncedPages {
    type Error = Failure;

    fn with_page<R>(
        &mut self,
        page: PageNumber,
        f: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, Failure> {
        self.reads += 1;
        let before = self.announced.len();
        self.announced.retain(|&announced| announced != page);
        self.kept += before - self.announced.len();
        self.memory.with_page(page, f)
    }

    fn can_announce(&mut self) -> bool {
        self.announced.len() < self.most_announced
    }

    fn announce(&mut self, page: PageNumber) {
        assert!(self.can_announce());
        self.announcements += 1;
        self.announced.push(page);
    }
}

fn found_without(index: &MemoryRanges, condition: &Condition) -> Vec<u32> {
    let mut found = Vec::new();
    let mut memory = index.memory.clone();
    search_condition(&index.directory, &mut memory, condition, |range| found.push(range)).unwrap();
    found
}

#[test]
fn a_lookup_announces_all_pages_but_those_that_it_reads_at_once() {
    let mut index = empty(options(8192, FPR, 10));
    add_one_each(&mut index, 0..40_000);
    let [uncovered, level_one] = [Level::Zero, Level::One]
        .map(|level| index.directory.tiles_without_slot_above(level) as usize);
    assert!(index.directory.tile_count(Level::Two) > 0);
    for most_announced in [1, 2, 16, 1000] {
        for hash in [element(17), element(39_999), element(50_000)] {
            let mut pages = AnnouncedPages::new(&index, most_announced);
            let mut found = Vec::new();
            search(&index.directory, &mut pages, hash, |range| found.push(range)).unwrap();
            assert_eq!(found, found_without(&index, &Condition::Has(hash)));
            assert_eq!(pages.announced, []);
            // The first page of each level is read at once. If one page may be announced, it is the
            // next: the one after it is not announced until that was read.
            let first_pages = Level::ALL.len();
            let least = (pages.reads - first_pages) / if most_announced == 1 { 2 } else { 1 };
            assert!(pages.announcements >= least, "{} of {}", pages.announcements, pages.reads);
            assert!(pages.reads >= uncovered + level_one);
        }
    }
}

#[test]
fn a_lookup_of_one_page_announces_nothing() {
    let index = MemoryRanges::build(options(8192, FPR, 10), 0, ranges(60, 2)).unwrap();
    let mut pages = AnnouncedPages::new(&index, 16);
    search(&index.directory, &mut pages, element(5), |_| {}).unwrap();
    assert_eq!((pages.reads, pages.announcements), (1, 0));
}

#[test]
fn all_keys_of_a_condition_are_announced_where_the_first_is_found() {
    let index = MemoryRanges::build(options(8192, FPR, 2000), 0, ranges(200, 2000)).unwrap();
    let keys = |range: u64| (0..8).map(move |i| Condition::Has(element(range * 2000 + 100 * i)));
    let condition = Condition::all(keys(77));
    let mut pages = AnnouncedPages::new(&index, 16);
    let mut found = Vec::new();
    search_condition(&index.directory, &mut pages, &condition, |range| found.push(range)).unwrap();
    assert_eq!(found, [77]);
    assert!(pages.kept >= 7, "{} of {}", pages.kept, pages.reads);

    // A condition of several kinds of alternatives finds the same as without announcements.
    let conditions = [
        Condition::any(keys(3).chain(keys(150))),
        Condition::all([Condition::any(keys(3)), Condition::any(keys(3).skip(4))]),
        Condition::all(keys(3).chain(keys(4))),
    ];
    for condition in conditions {
        let expected = found_without(&index, &condition);
        let mut pages = AnnouncedPages::new(&index, 3);
        let mut found = Vec::new();
        search_condition(&index.directory, &mut pages, &condition, |range| found.push(range))
            .unwrap();
        assert_eq!(found, expected);

        let mut pages = AnnouncedPages::new(&index, 3);
        let alternatives = Alternatives::of_condition(condition);
        let mut found = Vec::new();
        search_alternatives(&index.directory, &mut pages, &alternatives, |range, _| {
            found.push(range)
        })
        .unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_first_pages_of_a_later_lookup_can_be_announced() {
    let mut index = empty(options(8192, FPR, 10));
    add_one_each(&mut index, 0..392);
    let mut pages = AnnouncedPages::new(&index, 16);
    announce_search(&index.directory, &mut pages, element(5));
    assert_eq!(pages.announcements, 6);
    search(&index.directory, &mut pages, element(5), |_| {}).unwrap();
    assert_eq!((pages.announced.len(), pages.kept >= 6), (0, true));
}
