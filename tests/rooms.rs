//! The rooms of the code and the arrows between them are those of ARCHITECTURE.md: files use each
//! other in no circle, rooms use only those below them, the picture shows them, and maps name every
//! module.

#[path = "rooms/picture.rs"]
mod picture;
#[path = "rooms/types.rs"]
mod types;
#[path = "rooms/words.rs"]
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use words::words_of;

/// The path of a module in its crate; the root's is empty.
type Module = Vec<String>;

/// A crate's files by their modules, and the modules that each names. Tests are left out.
struct Crate {
    files: BTreeMap<Module, PathBuf>,
    arrows: BTreeMap<Module, BTreeSet<Module>>,
}

/// Both crates by their directories.
static CRATES: LazyLock<BTreeMap<&str, Crate>> =
    LazyLock::new(|| ["src", "core/src"].map(|of| (of, Crate::read(of))).into());

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the Rust files below a directory.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

impl Crate {
    fn read(directory: &str) -> Crate {
        let directory = root().join(directory);
        let mut files = BTreeMap::new();
        for path in rust_files(&directory) {
            let relative = path.strip_prefix(&directory).expect("files are below it");
            let relative = relative.with_extension("");
            let parts = relative.iter().map(|part| part.to_string_lossy().into_owned());
            let mut module: Module = parts.collect();
            module.pop_if(|last| last == "mod" || last == "lib");
            if !module.iter().any(|name| name == "tests") {
                files.insert(module, path);
            }
        }
        let arrows = files.keys().map(|module| (module.clone(), used_by(&files, module)));
        Crate { arrows: arrows.collect(), files }
    }
}

/// Returns the other modules that a module's file names.
fn used_by(files: &BTreeMap<Module, PathBuf>, module: &Module) -> BTreeSet<Module> {
    let words = words_of(&files[module]);
    let mut used = BTreeSet::new();
    // For each open bracket, the module that it is in, and what paths in it continue: in
    // `start::{…}`, they continue `start`.
    let mut brackets = vec![(module.clone(), Module::new())];
    let mut path = Module::new();
    for (at, word) in words.iter().enumerate() {
        let before = |count: usize| at.checked_sub(count).map_or("", |at| words[at].as_str());
        let (inside, start) = brackets.last().expect("brackets come in pairs").clone();
        let continues = before(1) == ":" && before(2) == ":";
        match word.as_str() {
            ":" => continue,
            "{" if continues => {
                brackets.push((inside, std::mem::take(&mut path)));
                continue;
            }
            _ if continues => {
                path.push(word.clone());
                continue;
            }
            _ => used.extend(file_of(files, &inside, &std::mem::take(&mut path))),
        }
        match word.as_str() {
            "{" if before(2) == "mod" => {
                brackets.push(([inside, vec![before(1).to_owned()]].concat(), Module::new()));
            }
            "(" | "[" | "{" => brackets.push((inside, Module::new())),
            ")" | "]" | "}" => drop(brackets.pop()),
            // The new name of what is imported.
            _ if !start.is_empty() && (word == "as" || before(1) == "as") => {}
            _ if word.starts_with(|first: char| first.is_alphabetic() || first == '_') => {
                path = [start, vec![word.clone()]].concat();
            }
            _ => {}
        }
    }
    used.remove(module);
    used
}

/// Returns the module of the file that a path leads to, if the path has several names, and the file
/// is of this crate.
fn file_of(files: &BTreeMap<Module, PathBuf>, from: &Module, path: &[String]) -> Option<Module> {
    let [first, _, ..] = path else { return None };
    let is_relative = ["self", "super"].contains(&first.as_str())
        || files.contains_key(&[&from[..], &path[..1]].concat());
    if first != "crate" && !is_relative {
        return None;
    }
    let mut at = if is_relative { from.clone() } else { Module::new() };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            name => at.push(name.to_owned()),
        }
    }
    // The last names may be of items.
    while !files.contains_key(&at) {
        at.pop()?;
    }
    Some(at)
}

/// Returns the modules that use themselves by way of others, or use one that does.
fn in_circles(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<&Module> {
    let mut left: BTreeSet<&Module> = arrows.keys().collect();
    loop {
        // Whatever uses nothing that is left is in no circle.
        let uses_any = |module: &&Module| arrows[*module].iter().any(|used| left.contains(used));
        let fewer: BTreeSet<&Module> = left.iter().copied().filter(uses_any).collect();
        if fewer.len() == left.len() {
            return left;
        }
        left = fewer;
    }
}

#[test]
fn files_use_each_other_in_no_circle() {
    for (directory, code) in &*CRATES {
        let arrows: usize = code.arrows.values().map(BTreeSet::len).sum();
        assert!(arrows > code.files.len(), "{directory}: too few arrows");
        assert_eq!(in_circles(&code.arrows), BTreeSet::new(), "circles in {directory}");
    }
}

/// Rooms from the bottom up. Those between two signs don't use each other.
const ROOMS: [(&str, &str); 2] = [
    (
        "core/src",
        "interrupt < memory < canonical < hash < simd < layout < kind error < sizing < element \
         < filter < counting parquet set conditions < index",
    ),
    (
        "src",
        "pg < error settings heap key_condition other_extensions < element \
         < filter_type arguments < overfull read_ahead \
         < probe aggregate planner index set < functions find",
    ),
];

#[test]
fn rooms_use_only_those_below_them() {
    for (directory, rooms) in ROOMS {
        let level = |module: &Module| {
            let Some(room) = module.first() else {
                return usize::MAX;
            };
            let level = rooms
                .split('<')
                .position(|row| row.split(' ').any(|name| name == room));
            level.unwrap_or_else(|| panic!("{directory}: {room} is not in ROOMS"))
        };
        for (module, used) in &CRATES[directory].arrows {
            for other in used {
                assert!(
                    module.first() == other.first() || level(module) > level(other),
                    "{directory}: {module:?} uses {other:?}"
                );
            }
        }
    }
}

/// Returns the names in backticks in the first column of a page's tables of modules.
fn names_in_map(page: &str) -> impl Iterator<Item = &str> {
    let tables = page.split("//! | module |").skip(1);
    let rows = tables.flat_map(|table| {
        let rest = table.lines().skip(1);
        rest.map_while(|line| line.strip_prefix("//! |"))
    });
    let cells = rows.filter_map(|row| row.split('|').next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(|name| name.trim_start_matches("mod@"))
}

#[test]
fn maps_name_every_module_and_no_other() {
    for path in CRATES.values().flat_map(|code| code.files.values()) {
        let text = fs::read_to_string(path).expect("a file can be read");
        let is_of_page = |line: &&str| line.starts_with("//!");
        let page: String = text.split_inclusive('\n').take_while(is_of_page).collect();
        let words = words_of(path);
        let declared = words.windows(3).filter(|three| three[0] == "mod" && three[2] == ";");
        let mut modules: BTreeSet<&str> = declared.map(|three| three[1].as_str()).collect();
        modules.remove("tests");
        for name in &modules {
            let is_named = page.contains(&format!("`{name}`"));
            assert!(is_named, "{}: the map lacks {name}", path.display());
        }
        for name in names_in_map(&page) {
            assert!(modules.contains(name), "{}: there is no {name}", path.display());
        }
    }
}
