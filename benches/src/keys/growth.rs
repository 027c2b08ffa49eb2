//! Sizes by the number of rows, and a figure of them.

use super::{Bench, OTHERS, TEXT};
use pg_bloom_benches::machine;
use pg_bloom_benches::plot::{Axis, GREY, INK, Panel, Picture, Side};
use plotters::style::RGBColor;
use std::fmt::Write;

/// Where the figure goes.
const FIGURE: &str = "docs/figures/parts.svg";
/// Shares of the rows that are measured: one of so many.
const SHARES: [usize; 3] = [100, 10, 1];
/// What is compared, with its colour: Okabe and Ito's.
const CURVES: [(&str, RGBColor); 3] = [
    ("bloom_filter", RGBColor(0, 114, 178)),
    ("GIN", RGBColor(200, 85, 0)),
    ("the table", GREY),
];

/// Rows, and bytes of our index, of GIN, and of the table.
type Sizes = Vec<(f64, [f64; 3])>;

/// Measures tables of up to so many lines, and draws the figure. Returns a table of it.
pub fn by_rows(lines: usize) -> String {
    let classes = [&TEXT, &OTHERS[0], &OTHERS[1]];
    let mut all: [Sizes; 3] = Default::default();
    for share in SHARES {
        let mut bench = Bench::new(lines / share);
        for (class, sizes) in classes.iter().zip(&mut all) {
            bench.make(class);
            bench.build_both(class);
            let bytes =
                [&class.ours(), &class.gin(), class.name].map(|name| bench.bytes(name) as f64);
            sizes.push(((bench.lines.len() / class.share) as f64, bytes));
        }
        bench.database.drop();
    }
    let mut text =
        String::from("| | rows | MB | GIN, MB | the table, MB |\n|---|---:|---:|---:|---:|\n");
    for (class, sizes) in classes.iter().zip(&all) {
        for (rows, bytes) in sizes {
            let [ours, gin, table] = bytes.map(|bytes| bytes / 1e6);
            writeln!(text, "| {} | {rows} | {ours:.2} | {gin:.2} | {table:.2} |", class.title)
                .expect("text can be written to");
        }
    }
    let titles = ["log lines", "tsvector of log lines", "bigint[] of five ids"];
    std::fs::create_dir_all("docs/figures").expect("docs/figures can be made");
    std::fs::write(FIGURE, figure(titles, &all).svg()).expect("the figure can be written");
    text
}

fn figure(titles: [&str; 3], all: &[Sizes; 3]) -> Picture {
    let most = all.iter().flatten().map(|(rows, _)| *rows).fold(1.0, f64::max);
    let ticks =
        [(1e4, "10k"), (1e5, "100k"), (1e6, "1M")].map(|(rows, name)| (rows, name.to_owned()));
    let x = Axis::log("rows", 4e3..most * 1.3, ticks);
    let bytes = (4..=8)
        .map(|exponent| 10f64.powi(exponent))
        .map(|bytes| (bytes, format!("{} MB", bytes / 1e6)));
    let size = Axis::log("size", 1e4..5e8, bytes);
    Picture::draw(
        "The index over what is in values, and GIN",
        &machine::describe(),
        430,
        3,
        |areas| {
            for (i, (area, sizes)) in areas.iter().zip(all).enumerate() {
                let y = if i == 0 { size.clone() } else { size.unlabelled() };
                let mut panel = Panel::new(area, titles[i], INK, x.clone(), y);
                for (j, (name, colour)) in CURVES.into_iter().enumerate() {
                    let points: Vec<(f64, f64)> =
                        sizes.iter().map(|(rows, bytes)| (*rows, bytes[j])).collect();
                    panel.line(&points, colour, 2.0);
                    panel.dots(&points, colour, 3.0);
                    if i == 0 {
                        let key = (6e3, 3e8 * 10f64.powf(-0.3 * j as f64));
                        panel.dots(&[key], colour, 3.5);
                        panel.label(key, Side::Right, name, colour);
                    }
                }
            }
        },
    )
}
