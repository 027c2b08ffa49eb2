//! The figures of docs/sizing.md, drawn from filters that are built and asked here, by the core
//! crate.
//!
//! `make figures` writes all of them to docs/figures; `make figures FIGURES="rate bits"` picks
//! some. All but `speed` come out the same on every machine.

mod bits;
mod rate;
mod size;
mod speed;

use pg_bloom_benches::plot::Picture;
use std::fs;

const DIRECTORY: &str = "docs/figures";

/// A figure: its name, which is that of its file, and what draws it.
type Figure = (&'static str, fn() -> Picture);

const FIGURES: [Figure; 4] = [
    ("rate", rate::figure),
    ("bits", bits::figure),
    ("size", size::figure),
    ("speed", speed::figure),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !FIGURES.iter().any(|(known, _)| known == name))
    {
        let known: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        panic!("there is no figure {unknown}, only {}", known.join(", "));
    }
    fs::create_dir_all(DIRECTORY).expect("docs/figures can be made");
    for (name, figure) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            let path = format!("{DIRECTORY}/{name}.svg");
            fs::write(&path, figure().svg())
                .unwrap_or_else(|error| panic!("{path} cannot be written: {error}"));
            println!("{path}");
        }
    }
}
