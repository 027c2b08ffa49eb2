//! The picture of ARCHITECTURE.md: which rooms use which, by the imports.
//!
//! Arrows that follow from others are left out. `ROOMS=write cargo test --test rooms` redraws it.

use super::{CRATES, ROOMS, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const PAGE: &str = "ARCHITECTURE.md";

/// For each room of a crate those that it uses.
fn uses(directory: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, used) in &CRATES[directory].arrows {
        let Some(room) = module.first() else { continue };
        let others = used
            .iter()
            .filter_map(|other| other.first())
            .filter(|other| *other != room)
            .cloned();
        uses.entry(room.clone()).or_default().extend(others);
    }
    uses
}

/// All rooms that a room uses, those that it uses by way of others included.
fn reached(uses: &BTreeMap<String, BTreeSet<String>>, room: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&String> = uses[room].iter().collect();
    while let Some(other) = waiting.pop() {
        if found.insert(other.clone()) {
            waiting.extend(&uses[other]);
        }
    }
    found
}

/// The picture of a crate, in Mermaid's language: rooms from the top down.
fn picture(directory: &str, rooms: &str) -> String {
    let uses = uses(directory);
    let mut lines = vec!["flowchart TD".to_owned()];
    for room in rooms.rsplit('<').flat_map(str::split_whitespace) {
        let used = &uses[room];
        let further: BTreeSet<String> =
            used.iter().flat_map(|other| reached(&uses, other)).collect();
        let direct: Vec<&str> = used.difference(&further).map(String::as_str).collect();
        let arrow = if direct.is_empty() {
            String::new()
        } else {
            format!(" --> {}", direct.join(" & "))
        };
        lines.push(format!("    {room}{arrow}"));
    }
    lines.join("\n")
}

#[test]
fn the_picture_shows_the_imports() {
    let path = root().join(PAGE);
    let text = fs::read_to_string(&path).expect("the page can be read");
    let mut drawn = text.clone();
    for (directory, rooms) in ROOMS {
        let start = format!("What uses what in `{directory}/`:\n\n```mermaid\n");
        let (before, rest) = drawn
            .split_once(&start)
            .unwrap_or_else(|| panic!("{PAGE} has no picture of {directory}"));
        let (_, after) = rest.split_once("\n```\n").expect("a block has an end");
        drawn = format!("{before}{start}{}\n```\n{after}", picture(directory, rooms));
    }
    if std::env::var("ROOMS").is_ok_and(|value| value == "write") {
        fs::write(path, drawn).expect("the page can be written");
    } else {
        assert!(
            drawn == text,
            "ROOMS=write cargo test --test rooms redraws the pictures of {PAGE}"
        );
    }
}

/// The files that the page names are there.
#[test]
fn the_page_leads_to_files() {
    let text = fs::read_to_string(root().join(PAGE)).expect("the page can be read");
    let is_path = |word: &&str| {
        ["src/", "core/", "tests/", "sql/", "scripts/"]
            .iter()
            .any(|start| word.starts_with(start))
    };
    let paths: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 30, "{} paths were found", paths.len());
    for path in paths {
        assert!(root().join(path).exists(), "{PAGE} names {path}, which is not there");
    }
}
