//! Asks a filter that psql exported, for each line of standard input:
//!
//! ```sh
//! psql -AtXc "SELECT bloom_agg(url) FROM visited" >visited.bloom
//! cargo run --example ask visited.bloom <urls
//! ```

use pg_bloom_core::Filter;
use std::error::Error;
use std::io::stdin;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give the file with the filter")?;
    let filter = Filter::from_hex(std::fs::read_to_string(file)?.trim())?;
    eprintln!("about {:.0} elements of kind {}", filter.cardinality(), filter.header().kind);
    for line in stdin().lines() {
        let line = line?;
        let answer = if filter.contains(&line.as_str().into())? {
            "may be in it"
        } else {
            "is not in it"
        };
        println!("{line}: {answer}");
    }
    Ok(())
}
