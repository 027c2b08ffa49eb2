//! What EXPLAIN (ANALYZE) shows of scans of an index: docs/index.md describes each number.
//!
//! For people one line without zeros:
//!
//! ```text
//! ->  Bitmap Index Scan on spans_trace_id_idx (actual rows=1.00 loops=1)
//!       Index Cond: (trace_id = '4bf92f3577b34da6'::text)
//!       Index Searches: 1
//!       Bloom Filter: ranges=1 ranges_read=1 index_pages=4 table_pages=8 rows_hashed=520 rows_given=1
//! ```
//!
//! For programs a group `Bloom Filter` that has all numbers.

use crate::key_condition::KEY_OF_ELEMENT;
use crate::pg::method::explain::{self, ExecutedScan, ExplainOutput};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::Oid;
use std::ffi::CStr;

/// Lets EXPLAIN show what scans did. Panics the second time.
pub fn define() {
    explain::define(show);
}

/// A number that EXPLAIN shows.
struct Figure {
    /// For programs.
    label: &'static CStr,
    /// In the line for people.
    name: &'static str,
    count: u64,
}

/// Writes into the output of EXPLAIN (ANALYZE) what the scans of a node did: a line for people, or
/// a group with all numbers for programs.
fn show(scan: &ExecutedScan, output: &mut ExplainOutput) {
    // Only operator classes over filters have a function that makes the key of an element.
    let is_over_filters = scan.index.support_function(KEY_OF_ELEMENT) != Oid::INVALID;
    let figures = if is_over_filters { figures_of_filters(scan) } else { figures_of_ranges(scan) };
    if output.is_text() {
        show_line(scan, &figures, output);
    } else {
        output.group(c"Bloom Filter", |output| {
            for figure in &figures {
                output.count(figure.label, figure.count);
            }
            show_searches(scan, output);
        });
    }
}

/// Returns the numbers that EXPLAIN shows of scans of an index over ranges, which are some
/// neighbouring pages of the table each. docs/index.md describes each number.
fn figures_of_ranges(scan: &ExecutedScan) -> List<Figure> {
    let counts = &scan.counts;
    let figure = |label, name, count| Figure { label, name, count };
    List::from([
        figure(c"Ranges", "ranges", counts.ranges),
        figure(c"Ranges Read", "ranges_read", counts.ranges_read),
        figure(c"Ranges Read for Nothing", "for_nothing", counts.ranges_read_for_nothing),
        figure(c"Index Pages", "index_pages", counts.index_pages),
        figure(c"Table Pages", "table_pages", counts.table_pages),
        figure(c"Rows Hashed", "rows_hashed", counts.rows_hashed),
        figure(c"Rows Given", "rows_given", counts.rows_given),
        figure(c"Pages Given", "pages_given", counts.pages_given),
    ])
}

/// Returns what is shown of an index over a column of filters, which has no ranges and reads no
/// rows.
fn figures_of_filters(scan: &ExecutedScan) -> List<Figure> {
    let counts = &scan.counts;
    List::from([
        Figure {
            label: c"Index Pages",
            name: "index_pages",
            count: counts.index_pages,
        },
        Figure {
            label: c"Rows Given",
            name: "rows_given",
            count: counts.rows_given,
        },
    ])
}

/// Writes what EXPLAIN shows people of a scan: one line with all numbers that aren't 0. That no
/// range (neighbouring pages of the table) may have a row is worth knowing, so a scan that was
/// executed says "ranges=0", unless none of its searches could tell anything about any row.
fn show_line(scan: &ExecutedScan, figures: &[Figure], output: &mut ExplainOutput) {
    let counts = &scan.counts;
    let has_restricted = counts.searches > counts.unrestricted_searches;
    let shown: List<String> = figures
        .iter()
        .filter(|figure| figure.count > 0 || figure.name == "ranges" && has_restricted)
        .map(|figure| format!("{}={}", figure.name, figure.count))
        .collect();
    if counts.searches > 0 {
        output.text(c"Bloom Filter", &shown.join(" "));
    }
    show_searches(scan, output);
}

/// Writes how many searches were not restricted, or not counted.
fn show_searches(scan: &ExecutedScan, output: &mut ExplainOutput) {
    let searches = [
        (c"Unrestricted Searches", scan.counts.unrestricted_searches),
        (c"Worker Searches Not Counted", scan.searches_of_workers),
    ];
    for (label, count) in searches {
        if count > 0 || !output.is_text() {
            output.count(label, count);
        }
    }
}
