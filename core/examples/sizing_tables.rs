//! Prints `src/sizing/table/data.rs`: every cell computed from the formulas of `rate`.
//!
//! ```sh
//! cargo run --release -p pg_bloom_core --example sizing_tables > core/src/sizing/table/data.rs
//! ```

use pg_bloom_core::layout::{Layout, PARQUET_HASHES};
use pg_bloom_core::sizing;
use pg_bloom_core::sizing::rate;

const FIRST_BITS: u32 = 2;

fn main() {
    println!("//! Printed by `examples/sizing_tables.rs`; see the module above.\n");
    println!("use super::stored_rate::{{StoredRate, stored}};\n");
    println!("/// Bits per element of the first row of each table.");
    println!("pub const FIRST_BITS: u32 = {FIRST_BITS};");
    for layout in Layout::ALL {
        let (per_line, what) = match layout {
            Layout::Parquet => (8, "eight of them in a line; the one column is for eight hashes"),
            _ => (1, "one column per hash"),
        };
        println!("\n/// `{}`: one row per bit, {what}.", layout.name());
        println!("pub const {}: &[&[StoredRate]] = &[", layout.name().to_uppercase());
        let mut rows = Vec::new();
        for bits in FIRST_BITS.. {
            let cells = row(layout, bits);
            let text: Vec<String> = cells.iter().map(|&r| three_digits(r)).collect();
            rows.push(format!("&stored([{}]),", text.join(", ")));
            if cells.iter().any(|&r| r <= sizing::least_fpr(layout) * 0.995) {
                break;
            }
        }
        rows.chunks(per_line)
            .for_each(|rows| println!("    {}", rows.join(" ")));
        println!("];");
    }
}

/// The cells of a row: up to two hashes beyond the best.
fn row(layout: Layout, bits: u32) -> Vec<f64> {
    let rate = |hashes| rate::at_load(layout, hashes, layout.block_bits() as f64 / f64::from(bits));
    if layout == Layout::Parquet {
        return vec![rate(PARQUET_HASHES)];
    }
    let mut cells = vec![rate(1)];
    let mut beyond = 0;
    while beyond < 2 {
        let next = rate(cells.len() as u32 + 1);
        if next > *cells.last().expect("one cell is there") {
            beyond += 1;
        }
        cells.push(next);
    }
    cells
}

fn three_digits(rate: f64) -> String {
    let rounded: f64 = format!("{rate:.2e}").parse().expect("a float prints as a float");
    if rounded < 1e-4 { format!("{rounded:e}") } else { format!("{rounded}") }
}
