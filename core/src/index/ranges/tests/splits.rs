//! Pages that are split among ranges.

use super::options;
use crate::index::page::RowId;
use crate::index::ranges::{Options, Split};

#[test]
fn each_row_is_in_the_lines_of_its_range() {
    for split in [None, Some(Split { lines: 1, ranges: 128 }), Some(Split { lines: 7, ranges: 20 })] {
        let options = Options { split, ..options(8192, 0.1, 1) };
        for (page, line) in (0..40).flat_map(|page| (1..=291).map(move |line| (page, line))) {
            let range = options.range_of(RowId { page, line });
            assert!(options.pages_of(range).contains(&page.into()));
            assert!(options.lines_of(range).is_none_or(|mut lines| lines.any(|of| of == line)));
            assert!(u64::from(range) < options.ranges_of(u64::from(page) + 1));
        }
    }
}

#[test]
fn pages_are_split_where_they_stand_for_much_text() {
    let of = |lines, bytes, pages| Split::of(8192.0, lines, bytes, pages);
    assert_eq!(of(100.0, 16_000.0, 10), None);
    assert_eq!(of(100.0, 100.0 * 8192.0, 10), Some(Split { lines: 1, ranges: 100 }));
    assert_eq!(of(160.0, 160.0 * 20_000.0, 10), Some(Split { lines: 2, ranges: 80 }));
    assert_eq!(of(20.0, 20.0 * 4096.0, 10), Some(Split { lines: 2, ranges: 10 }));
    assert_eq!(of(1.0, 1e9, 10), None);
    assert_eq!(of(2000.0, 40_000.0, 10), None);
    assert_eq!(of(100.0, 1e9, u32::MAX), None);
    for (lines, bytes) in [(3.4, 1e6), (11.0, 50_000.0), (140.0, 3e6), (291.0, 1e9)] {
        let Split { lines: of_range, ranges } = of(lines, bytes, 1000).expect("much text");
        assert!(f64::from(of_range) * f64::from(ranges) >= lines);
        assert!(f64::from(of_range) * f64::from(ranges - 1) < lines, "no range is empty");
    }
}
