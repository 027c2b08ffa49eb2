//! The benchmarks of pg_bloom: one table of medians, ratios and the bars that they have to meet.
//!
//! `make bench` starts a server for it; `make bench ROWS=1000000` scales it down,
//! `make bench ONLY=index` measures one part of the page and keeps the others, and what was
//! measured on other kinds of CPU.
//!
//! Each row measures two things in turn, so that both see the same weather of a shared machine. The
//! tables go to standard output and to `docs/benchmarks.md`.

mod core;
mod database;
mod filters;
mod find;
mod index;
mod keys;
mod memory;
mod page;
mod redis_bloom;
mod server;
mod sets;
mod texts;

use pg_bloom_benches::{machine, median};
use std::fmt::Write;

/// Where the tables go.
const PAGE: &str = "docs/benchmarks.md";
/// Measurements of each thing.
const ROUNDS: usize = 7;

/// A row of the table.
struct Row {
    work: String,
    against: String,
    ours: String,
    theirs: String,
    ratio: f64,
    /// What the ratio may be at most; infinite for what is only compared.
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
        Row {
            work: work.into(),
            against: against.into(),
            ours: show(a),
            theirs: show(b),
            ratio: a / b,
            bar,
        }
    }
}

/// A row whose bar is a figure of its own.
fn against_figure(
    work: impl Into<String>,
    ours: f64,
    bar: f64,
    show: impl Fn(f64) -> String,
) -> Row {
    let theirs = show(bar);
    Row {
        work: work.into(),
        against: "the bar".into(),
        ours: show(ours),
        theirs,
        ratio: ours / bar,
        bar: 1.0,
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

/// A ratio with at least two decimals, and two digits that count.
fn digits(ratio: f64) -> String {
    let decimals = (1 - ratio.abs().log10().floor() as i32).clamp(2, 6) as usize;
    format!("{ratio:.decimals$}")
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| work | against | ours | theirs | ratio | bar |\n|---|---|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let Row { work, against, ours, theirs, ratio, bar } = row;
        let bar = match bar.is_finite() {
            true if ratio <= bar => format!(" {}", digits(*bar)),
            true => format!(" **{}**", digits(*bar)),
            false => String::new(),
        };
        writeln!(text, "| {work} | {against} | {ours} | {theirs} | {} |{bar} |", digits(*ratio))
            .expect("text can be written to");
    }
    text
}

/// A part of the page: what `ONLY` calls it, its title, and what it measures.
type Part = (&'static str, &'static str, fn(usize) -> (String, Vec<Row>));

/// The part that needs control groups and the right to make them.
const MEMORY: &str = "memory";

const PARTS: [Part; 13] = [
    ("server", "In the server", |rows| {
        let mut server = server::Server::new(rows);
        let version = server.database.version();
        let measured = server.measure();
        (format!("{rows} rows, PostgreSQL {version}, {}.\n", machine::describe()), measured)
    }),
    ("sets", "Sets that change", |rows| {
        let mut bench = sets::Bench::new(rows);
        let version = bench.database.version();
        let (comparison, measured) = bench.measure();
        let machine = machine::describe();
        (
            format!("A set for {rows} elements, PostgreSQL {version}, {machine}. {comparison}\n"),
            measured,
        )
    }),
    ("core", "The core crate", |rows| {
        (format!("{}.\n\n{}", machine::describe(), core::table(rows)), Vec::new())
    }),
    ("index", "The index", |rows| {
        // Six million rows of 120 bytes fit into the cache where ten million URLs do.
        let rows = rows / 10 * 6;
        let mut bench = index::Bench::new(rows);
        let version = bench.database.version();
        let (comparison, measured) = bench.measure();
        (
            format!("{rows} rows, PostgreSQL {version}, {}.\n\n{comparison}", machine::describe()),
            measured,
        )
    }),
    ("growth", "The index by rows", |rows| {
        let machine = machine::describe();
        (format!("{machine}.\n\n{}", index::growth::by_rows(rows)), Vec::new())
    }),
    ("many", "The index of many rows", |rows| {
        let rows = rows * 10;
        let (text, measured) = index::growth::of_many(rows);
        (format!("{rows} rows, {}. {text}", machine::describe()), measured)
    }),
    ("filters", "The index over a column of filters", |rows| {
        let mut bench = filters::Bench::new(rows);
        let version = bench.database.version();
        let measured = bench.measure();
        (format!("PostgreSQL {version}, {}.\n", machine::describe()), measured)
    }),
    ("find", "A key in hundreds of partitions", |_| {
        let mut bench = find::Bench::new();
        let version = bench.database.version();
        let (measured, text) = (bench.measure(), bench.by_partitions());
        (format!("PostgreSQL {version}, {}. {text}", machine::describe()), measured)
    }),
    ("keys", "The index over what is in values", |rows| {
        let rows = rows / 10;
        let mut bench = keys::Bench::new(rows);
        let version = bench.database.version();
        let (lines, measured) = bench.measure();
        (
            format!("{rows} log lines, PostgreSQL {version}, {}. {lines}\n", machine::describe()),
            measured,
        )
    }),
    ("text", "The index over texts of several scripts", |_| {
        (format!("{}.\n\n{}", machine::describe(), texts::by_kind()), Vec::new())
    }),
    ("alternations", "Regular expressions of several words", |_| {
        let (text, measured) = texts::alternations();
        (format!("{}. {text}\n", machine::describe()), measured)
    }),
    ("parts", "The index over what is in values by rows", |rows| {
        let machine = machine::describe();
        (format!("{machine}.\n\n{}", keys::growth::by_rows(rows / 10)), Vec::new())
    }),
    (MEMORY, "Larger than memory", memory::measure),
];

fn main() {
    let number = std::env::var("ROWS").unwrap_or_else(|_| "10000000".into());
    let rows: usize = number
        .parse()
        .unwrap_or_else(|_| panic!("ROWS must be a number, not {number}"));
    // The others take long, and are for a figure and a table that change little.
    let wanted =
        std::env::var("ONLY").unwrap_or_else(|_| "server sets core index filters find keys".into());
    let mut page = page::Page::parse(&std::fs::read_to_string(PAGE).unwrap_or_default());
    for (name, title, measure) in PARTS {
        if !wanted.split_whitespace().any(|part| part == name) {
            continue;
        }
        if name == MEMORY
            && let Err(reason) = memory::can_be_measured()
        {
            println!("{title}: left out, since {reason}");
            continue;
        }
        let (run, measured) = measure(rows);
        let missed = measured.iter().filter(|row| row.ratio > row.bar).count();
        let table = if measured.is_empty() { String::new() } else { table(&measured) };
        let bars = measured.iter().filter(|row| row.bar.is_finite()).count();
        println!("{run}\n{table}\n{missed} of {bars} bars missed\n");
        // How pages are read from disk depends on the version, too.
        let place = match name {
            MEMORY => format!("{}, PostgreSQL {}", machine::cpu(), database::major_version()),
            _ => machine::cpu(),
        };
        page.put(title, &place, &format!("{run}\n{table}"));
    }
    let text = format!(
        "# Benchmarks\n\nWritten by `make bench`; `ONLY=index` measures that part. The last run on each kind of CPU is kept.\n\
         `growth`, `many`, `parts`, `text`, `alternations` and `memory` are measured only when they are named.\n\
         Medians of {ROUNDS} measurements of two things in turn: timings on a shared machine vary, ratios less so. The bar\n\
         is what the ratio may be at most; one that was missed is bold.\n{}",
        page.text(&PARTS.map(|(_, title, _)| title))
    );
    std::fs::create_dir_all("docs").expect("docs can be made");
    std::fs::write(PAGE, text).expect("docs/benchmarks.md can be written");
}
