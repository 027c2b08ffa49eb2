//! Texts of several kinds and scripts, from files of Debian's packages: `scripts/setup texts`
//! installs them.

use crate::keys::lines::Random;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Texts of one kind.
pub struct Corpus {
    /// Name of their table.
    pub name: &'static str,
    /// What the page calls them.
    pub title: &'static str,
    /// Whether they are in a script of many characters: patterns are shorter.
    pub is_wide: bool,
    /// In any order.
    pub texts: Vec<String>,
}

/// All kinds.
pub fn all(random: &mut Random) -> Vec<Corpus> {
    let [russian, chinese, japanese] = ["ru", "zh_CN", "ja"].map(manuals);
    let corpus = |name, title, is_wide, texts| Corpus { name, title, is_wide, texts };
    let mut all = vec![
        corpus("paths", "paths of files", false, paths()),
        corpus("addresses", "IP addresses", false, (0..400_000).map(|_| address(random)).collect()),
        corpus("russian", "Russian sentences", false, sentences(&russian, &[". "], 20..300)),
        corpus("chinese", "Chinese sentences", true, sentences(&chinese, &["。", "\n"], 12..200)),
        corpus("japanese", "Japanese sentences", true, sentences(&japanese, &["。"], 15..300)),
        corpus("documents", "documents", false, documents()),
        corpus("russian_manuals", "Russian manuals", false, russian),
        corpus("chinese_manuals", "Chinese manuals", true, chinese),
        corpus("japanese_manuals", "Japanese manuals", true, japanese),
    ];
    for Corpus { texts, title, .. } in &mut all {
        assert!(texts.len() > 500, "there are {} {title}: run scripts/setup texts", texts.len());
        random.shuffle(texts);
    }
    all
}

/// The files below a directory whose names have one of these ends, in order.
fn files(directory: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            files(&path, ends, found);
        } else if ends.iter().any(|end| path.to_string_lossy().ends_with(end)) {
            found.push(path);
        }
    }
}

/// A text that PostgreSQL takes.
fn as_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "")
}

/// The manual pages of a language, without their comments.
fn manuals(language: &str) -> Vec<String> {
    let mut found = Vec::new();
    files(&Path::new("/usr/share/man").join(language), &[".gz"], &mut found);
    let unpacked = found.iter().map(|path| {
        let output = Command::new("zcat").arg(path).output().expect("zcat can be run");
        let text = as_text(&output.stdout);
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("'\\\"") && !line.starts_with(".\\\""));
        lines.collect::<Vec<_>>().join("\n")
    });
    unpacked
        .filter(|text| text.len() > 500 && !text.starts_with(".so"))
        .collect()
}

/// What is between these ends and has so many characters.
fn sentences(texts: &[String], ends: &[&str], lengths: std::ops::Range<usize>) -> Vec<String> {
    let mut parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for end in ends {
        parts = parts.into_iter().flat_map(|part| part.split(end)).collect();
    }
    let trimmed = parts.into_iter().map(str::trim);
    trimmed
        .filter(|part| lengths.contains(&part.chars().count()))
        .map(String::from)
        .collect()
}

fn documents() -> Vec<String> {
    let mut found = Vec::new();
    files(Path::new("/usr/share/doc/postgresql-doc-15/html"), &[".html"], &mut found);
    files(Path::new("/usr/include"), &[".h"], &mut found);
    let read = found
        .iter()
        .filter_map(|path| Some(as_text(&std::fs::read(path).ok()?)));
    read.filter(|text| text.len() > 3000).take(6000).collect()
}

fn paths() -> Vec<String> {
    let mut found = Vec::new();
    files(Path::new("/var/lib/dpkg/info"), &[".list"], &mut found);
    let lists = found.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    lists
        .flat_map(|list| {
            list.lines()
                .filter(|line| line.len() > 8)
                .map(String::from)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// An address of IP version 4 or 6.
fn address(random: &mut Random) -> String {
    let mut parts = |count, below| (0..count).map(|_| random.below(below)).collect::<Vec<_>>();
    if parts(1, 10)[0] < 6 {
        parts(4, 256)
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(".")
    } else {
        parts(8, 1 << 16)
            .iter()
            .map(|part| format!("{part:x}"))
            .collect::<Vec<_>>()
            .join(":")
    }
}
