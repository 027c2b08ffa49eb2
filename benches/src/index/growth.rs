//! The indexes by the number of rows: a figure of all five, and a table of ours far beyond.

use super::{Bench, Index, limited};
use crate::Row;
use pg_bloom_benches::machine;
use pg_bloom_benches::plot::{Axis, INK, Panel, Picture, Side};
use plotters::style::RGBColor;
use std::fmt::Write;

/// Where the figure goes.
const FIGURE: &str = "docs/figures/index.svg";
/// Shares of the rows that are measured: one of so many.
const SHARES: [usize; 4] = [1000, 100, 10, 1];
/// What the panels show: bytes per row, and times in seconds.
const PANELS: [&str; 3] = ["size", "a present key", "an absent key"];

impl Index {
    /// Its colour in figures: Okabe and Ito's, some darkened.
    const fn colour(self) -> RGBColor {
        match self {
            Index::Ours => RGBColor(0, 114, 178),
            Index::Btree => RGBColor(200, 85, 0),
            Index::Hash => RGBColor(0, 135, 100),
            Index::Contrib => RGBColor(163, 63, 122),
            Index::Brin => RGBColor(99, 108, 118),
        }
    }

    /// Its name in figures.
    const fn short(self) -> &'static str {
        match self {
            Index::Ours => "bloom_filter",
            Index::Btree => "B-tree",
            Index::Hash => "hash",
            Index::Contrib => "contrib/bloom",
            Index::Brin => "BRIN",
        }
    }
}

/// What was measured of an index: rows, and for each of [`PANELS`] bytes or seconds.
type Curve = Vec<(f64, [f64; 3])>;

/// Measures all indexes on tables of up to so many rows, and draws the figure. Returns a table of
/// it.
pub fn by_rows(rows: usize) -> String {
    let mut curves: Vec<(Index, Curve)> = Index::ALL.map(|index| (index, Vec::new())).to_vec();
    for share in SHARES {
        let rows = rows / share;
        let mut bench = Bench::new(rows);
        bench.builds_in_turn();
        bench.ask_each();
        for (index, curve) in &mut curves {
            let Some(facts) = bench.facts.get(index) else {
                continue;
            };
            curve.push((rows as f64, [facts.bytes as f64, facts.present, facts.absent]));
        }
        bench.database.drop();
    }
    let text = table(&curves, rows);
    std::fs::create_dir_all("docs/figures").expect("docs/figures can be made");
    std::fs::write(FIGURE, figure(&curves, rows as f64).svg()).expect("the figure can be written");
    text
}

/// A line for each index, with its size and times for each number of rows.
fn table(curves: &[(Index, Curve)], rows: usize) -> String {
    let mut text = String::from("MB / present key µs / absent key µs:\n\n| index |");
    SHARES.iter().for_each(|share| {
        write!(text, " {} rows |", rows / share).expect("text can be written to")
    });
    text += "\n|---|---:|---:|---:|---:|\n";
    for (index, curve) in curves {
        write!(text, "| {} |", index.title()).expect("text can be written to");
        for (_, [bytes, present, absent]) in curve {
            write!(text, " {:.2} / {:.1} / {:.1} |", bytes / 1e6, present * 1e6, absent * 1e6)
                .expect("text can be written to");
        }
        text += "\n";
    }
    text
}

fn figure(curves: &[(Index, Curve)], rows: f64) -> Picture {
    let first = rows / SHARES[0] as f64;
    let ticks = (0..4).map(|i| first * 10f64.powi(i)).map(|rows| (rows, count(rows)));
    let x = Axis::log("rows", first..rows, ticks);
    let bytes = |exponent: i32| (10f64.powi(exponent), format!("{} MB", 10f64.powi(exponent - 6)));
    let seconds = |exponent: i32| {
        let time = 10f64.powi(exponent);
        (
            time,
            if exponent < -3 {
                format!("{:.0} µs", time * 1e6)
            } else {
                format!("{:.0} ms", time * 1e3)
            },
        )
    };
    let size = Axis::log("size of the index", 2e4..3e9, (5..=9).map(bytes));
    let time = Axis::log("time of a lookup", 3e-6..1e-1, (-5..=-2).map(seconds));
    Picture::draw("Five indexes for =", &machine::describe(), 430, 3, |areas| {
        for (i, (area, work)) in areas.iter().zip(PANELS).enumerate() {
            let y = [size.clone(), time.clone(), time.unlabelled()][i].clone();
            let mut panel = Panel::new(area, work, INK, x.clone(), y);
            for (j, (index, curve)) in curves.iter().enumerate() {
                let points: Vec<(f64, f64)> =
                    curve.iter().map(|(rows, values)| (*rows, values[i])).collect();
                panel.line(&points, index.colour(), 2.0);
                panel.dots(&points, index.colour(), 3.0);
                if i == 0 {
                    let key = (first * 1.3, 3e9 * 10f64.powf(-0.3 - 0.33 * j as f64));
                    panel.dots(&[key], index.colour(), 3.5);
                    panel.label(key, Side::Right, index.short(), index.colour());
                }
            }
        }
    })
}

/// A number of rows in a word.
fn count(rows: f64) -> String {
    match rows {
        rows if rows < 1e3 => format!("{rows}"),
        rows if rows < 1e6 => format!("{}k", rows / 1e3),
        rows => format!("{}M", rows / 1e6),
    }
}

/// Ours on a table of so many rows, with the default options: what a lookup reads.
pub fn of_many(rows: usize) -> (String, Vec<Row>) {
    let mut bench = Bench::new(rows);
    bench.indexes = vec![Index::Ours];
    let table: i64 = bench.bytes("t");
    let build = bench
        .database
        .time("CREATE INDEX t_ours ON t USING bloom_filter (key)");
    // Scans of large tables don't leave them in shared buffers, as those of the 6 million rows do.
    bench
        .database
        .run("CREATE EXTENSION pg_prewarm; SELECT pg_prewarm('t'), pg_prewarm('t_ours')");
    bench.ask_each();
    let (bytes, index_pages) = (bench.bytes("t_ours"), bench.index_pages("t"));
    let facts = bench.facts(Index::Ours);
    let (present, absent) = (facts.present * 1e6, facts.absent * 1e6);
    let (all_present, all_absent) = (facts.present_pages, facts.absent_pages);
    let text = format!(
        "The table has {:.1} GB, the index has the default options.\n\n| MB | build s | present key µs | absent key µs | \
         pages, present | pages, absent | index pages, absent |\n|---:|---:|---:|---:|---:|---:|---:|\n| {:.0} | {build:.0} | \
         {present:.0} | {absent:.0} | {all_present:.1} | {all_absent:.1} | {index_pages:.1} |\n",
        table as f64 / 1e9,
        bytes as f64 / 1e6
    );
    let heap_pages = all_absent - index_pages;
    let limits = vec![
        limited("index pages read for an absent key", index_pages, 12.0, "pages"),
        limited("heap pages read unnecessarily for an absent key", heap_pages, 1.0, "pages"),
        limited("bytes of the index for each row", bytes as f64 / rows as f64, 4.2, "bytes"),
        limited("time of a present key", present, 60.0, "µs"),
    ];
    bench.database.drop();
    (text, limits)
}
