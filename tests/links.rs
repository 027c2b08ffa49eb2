//! Links between the documents lead somewhere.

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
