//! The benchmarks of pg_bloom: one table of medians, ratios and the bars that they have to meet.
//!
//! `make bench` starts a server for it; `make bench ROWS=1000000` scales it down, and `make bench ONLY=sets` prints the
//! rows about sets and writes nothing. Each row measures two things in turn,
//! so that both see the same weather of a shared machine. The table goes to standard output and to
//! `docs/benchmarks.md`.

mod core;
mod server;

use pg_bloom_benches::{machine, median};
use std::fmt::Write;

/// Measurements of each thing.
const ROUNDS: usize = 7;

/// A row of the table.
struct Row {
    work: String,
    against: String,
    ours: String,
    theirs: String,
    ratio: f64,
    bar: f64,
}

impl Row {
    /// A row from the times of both, in seconds, as they were measured in turn.
    fn timed(
        work: impl Into<String>,
        against: impl Into<String>,
        ours: &mut [f64],
        theirs: &mut [f64],
        bar: f64,
    ) -> Row {
        let (a, b) = (median(ours), median(theirs));
        Row { work: work.into(), against: against.into(), ours: show(a), theirs: show(b), ratio: a / b, bar }
    }
}

/// A time with three digits.
fn show(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = (2 - value.log10().floor() as i32).clamp(0, 2) as usize;
    format!("{value:.digits$} {unit}")
}

fn table(rows: &[Row]) -> String {
    let mut text =
        String::from("| work | against | ours | theirs | ratio | bar | |\n|---|---|---:|---:|---:|---:|---|\n");
    for row in rows {
        let met = if row.ratio <= row.bar { "met" } else { "**missed**" };
        let Row { work, against, ours, theirs, ratio, bar } = row;
        writeln!(text, "| {work} | {against} | {ours} | {theirs} | {ratio:.2} | {bar:.2} | {met} |")
            .expect("text can be written to");
    }
    text
}

fn main() {
    let number = std::env::var("ROWS").unwrap_or_else(|_| "10000000".into());
    let rows: usize = number.parse().unwrap_or_else(|_| panic!("ROWS must be a number, not {number}"));
    let mut server = server::Server::connect(rows);
    if std::env::var("ONLY").is_ok_and(|only| only == "sets") {
        println!("{}", table(&server.measure_sets()));
        return;
    }
    let mut page = format!(
        "# Benchmarks\n\n\
         Written by `make bench` ({rows} rows{}). Medians of {ROUNDS} measurements of two things in turn; timings on a shared\n\
         machine vary, ratios less so. A bar is what the ratio may be at most. This\nrun: {}, PostgreSQL {}.\n",
        if rows == 10_000_000 { "" } else { "; the bars are for 10000000" },
        machine::describe(),
        server.version()
    );
    let mut all = server.measure();
    println!("{}", table(&all));
    writeln!(page, "\n## In the server\n\n{}", table(&all)).expect("text can be written to");
    let core = core::measure(rows);
    println!("{}", table(&core));
    writeln!(page, "## The core crate\n\n{}", table(&core)).expect("text can be written to");
    std::fs::create_dir_all("docs").expect("docs can be made");
    std::fs::write("docs/benchmarks.md", page.trim_end().to_owned() + "\n").expect("docs/benchmarks.md can be written");
    all.extend(core);
    let missed = all.iter().filter(|row| row.ratio > row.bar).count();
    println!("{missed} of {} bars missed", all.len());
}
