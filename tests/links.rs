//! Links between the documents lead somewhere, and the files that text names are there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documents, as paths relative to the repository.
fn documents() -> Vec<PathBuf> {
    let in_folder = |folder: &str| {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder can be read");
        let names = entries.map(|entry| entry.expect("the folder can be read").file_name());
        names.map(|name| Path::new(folder).join(name)).collect::<Vec<_>>()
    };
    let mut found = [in_folder(""), in_folder("docs")].concat();
    found.retain(|path| path.extension().is_some_and(|e| e == "md"));
    found.sort();
    found
}

/// A document without its fenced blocks.
fn prose(document: &Path) -> String {
    let text = std::fs::read_to_string(root().join(document)).expect("a document can be read");
    format!("\n{text}")
        .split("\n```")
        .step_by(2)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Text without what stands between backquotes, except for the quotes themselves.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(document: &Path) -> Vec<String> {
    let text = prose(document);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let named = text
        .split("<a id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .chain(named.map(str::to_owned))
        .collect()
}

/// The targets of a document's links, except for those of other sites.
fn links(document: &Path) -> Vec<String> {
    let text = without_code(&prose(document));
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .map(str::to_owned)
        .collect()
}

/// `docs/a.md`, `../b.md` → `b.md`.
fn resolve(document: &Path, target: &str) -> PathBuf {
    let mut path = document.parent().expect("a document has a folder").to_owned();
    for part in Path::new(target).components() {
        match part {
            std::path::Component::ParentDir => {
                assert!(path.pop(), "{target} leaves the repository")
            }
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_link_leads_somewhere() {
    let documents = documents();
    let known: HashMap<&PathBuf, Vec<String>> = documents.iter().map(|d| (d, anchors(d))).collect();
    let mut checked = 0;
    let mut broken = Vec::new();
    for document in &documents {
        for link in links(document) {
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { document.clone() } else { resolve(document, file) };
            let has_fragment = fragment.is_empty()
                || known.get(&target).is_some_and(|a| a.iter().any(|x| x == fragment));
            if !root().join(&target).exists() || !has_fragment {
                broken.push(format!("{}: {link}", document.display()));
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} links were seen");
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The texts outside the documents' links whose paths of files are checked.
const TEXTS_WITH_PATHS: [&str; 2] = ["CONTRIBUTING.md", "sql/pg_bloom.sql"];

/// A folder that is there only if it has a file.
const MADE_WHEN_NEEDED: &str = "core/fuzz/regressions/operations/";

/// The files that a text names by their paths from the repository's root. A path with a wildcard or
/// braces names several, and one with a version is of a release to come; these are left out.
fn named_files(text: &str) -> Vec<&str> {
    let is_separator = |c: char| c.is_whitespace() || "`'\"()[],;:".contains(c);
    let words = text.split(is_separator).map(|word| word.trim_end_matches('.'));
    let is_path = |word: &&str| {
        let folders = ["src/", "core/", "tests/", "docs/", "sql/", "scripts/"];
        folders.iter().any(|folder| word.starts_with(folder))
            && !word.contains(['*', '{', '}', '…', '%'])
            && !word.contains("--")
    };
    words.filter(is_path).collect()
}

#[test]
fn every_file_that_is_named_is_there() {
    for text in TEXTS_WITH_PATHS {
        let content = std::fs::read_to_string(root().join(text)).expect("a text can be read");
        let named = named_files(&content);
        assert!(named.len() >= 3, "{text} names only {named:?}");
        for file in named {
            let is_there = root().join(file).exists() || file == MADE_WHEN_NEEDED;
            assert!(is_there, "{text} names {file}, which is not there");
        }
    }
}
