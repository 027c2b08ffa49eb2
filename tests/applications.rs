//! The programs of docs/applications.md run, with real drivers, and print what the page says.
//!
//! The Python blocks of a section are one program. Each is run in a database of its own that has
//! the page's tables, and then all in one after another, as a reader would.

mod common;

#[path = "applications/client.rs"]
mod client;

use common::page::{Example, examples, rewritten, trimmed, writes};
use common::{Server, column, output, python, run};
use postgres::Client;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

const PAGE: &str = "docs/applications.md";
/// Printed between the outputs of blocks.
const MARK: &str = "-- the end of a block --";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(root().join(PAGE)).expect("the page can be read")
}

/// A new database with the tables of the page's first block.
fn database(name: &str) -> Client {
    run(&mut server().connect("postgres"), &format!("DROP DATABASE IF EXISTS {name}"));
    let mut client = server().database(name);
    let text = page();
    let lines: Vec<&str> = text.lines().collect();
    run(&mut client, &examples(PAGE, &lines, "sql")[0].code);
    client
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("timezone = 'UTC'"))
}

/// What each block of one program prints.
fn outputs(server: &Server, blocks: &[&Example]) -> Vec<String> {
    let program: String = blocks
        .iter()
        .map(|block| format!("{}\nprint({MARK:?}, flush=True)\n", block.code))
        .collect();
    let mut command = python::client(server);
    command.args(["-W", "error", "-c", &program]).stdin(Stdio::null());
    let printed = String::from_utf8(output(&mut command)).expect("the output is UTF-8");
    let mut outputs: Vec<String> = printed.split(&format!("{MARK}\n")).map(trimmed).collect();
    assert_eq!(outputs.pop().as_deref(), Some(""), "{printed}");
    outputs
}

#[test]
fn python_programs_print_what_the_page_says() {
    let text = page();
    let lines: Vec<&str> = text.lines().collect();
    let blocks = examples(PAGE, &lines, "python");
    let section =
        |block: &Example| lines[..block.line].iter().rposition(|line| line.starts_with("## "));
    let programs: Vec<&[Example]> = blocks.chunk_by(|a, b| section(a) == section(b)).collect();
    assert!(
        programs.len() >= 3 && blocks.len() >= 6,
        "{} programs of {} blocks",
        programs.len(),
        blocks.len()
    );
    let mut printed = Vec::new();
    for program in &programs {
        drop(database("app"));
        printed.extend(outputs(server(), &program.iter().collect::<Vec<_>>()));
    }
    assert_eq!(printed.len(), blocks.len());
    drop(database("app"));
    let in_turn: Vec<String> = programs
        .iter()
        .flat_map(|program| outputs(server(), &program.iter().collect::<Vec<_>>()))
        .collect();
    assert_eq!(in_turn, printed);
    if writes() {
        std::fs::write(root().join(PAGE), rewritten(&lines, &blocks, &printed))
            .expect("the page can be written");
    }
    for (block, printed) in blocks.iter().zip(printed) {
        let expected = block.output.clone().map(|range| trimmed(&lines[range].join("\n")));
        assert_eq!(printed, expected.unwrap_or_default(), "{PAGE}:{}", block.line);
    }
}

#[test]
fn the_page_has_the_tested_rust() {
    let text = page();
    let lines: Vec<&str> = text.lines().collect();
    let blocks: Vec<String> = examples(PAGE, &lines, "rust")
        .into_iter()
        .map(|block| block.code)
        .collect();
    let tested: Vec<&str> = include_str!("applications/client.rs")
        .lines()
        .skip_while(|l| l.is_empty() || l.starts_with("//!"))
        .collect();
    assert_eq!(blocks.join("\n\n"), tested.join("\n"));
}

#[test]
fn the_rust_of_the_page_works() {
    let mut client = database("rust");
    let seen = |client: &mut Client, items: &[i64]| {
        client::who_has_seen(client, items).expect("filters are asked")
    };
    assert_eq!(seen(&mut client, &[1001, 3050]), [1, 3]);
    let filter = client::filter(&mut client, 3).expect("a filter is read");
    let more = filter.add_all([77]).expect("an item is added");
    assert_eq!(client::store(&mut client, 5, &more).expect("a filter is stored"), 1);
    assert_eq!(seen(&mut client, &[3050]), [3, 5]);
    assert_eq!(seen(&mut client, &[77]), [5]);
    let same = "SELECT user_id FROM seen_by WHERE items = (SELECT bloom_add(items, 77::bigint) FROM seen_by WHERE user_id = 3)";
    assert_eq!(column::<i32>(&mut client, same), [5]);
    assert!(client::filter(&mut client, 8).is_err());
}
