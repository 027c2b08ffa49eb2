//! The rooms of the code and the arrows between them are those of ARCHITECTURE.md: files use each other in no circle,
//! rooms use only those below them, the picture shows them, maps name every module, and comments fit their lines.
//! clippy.toml says how long functions may be.

#[path = "rooms/picture.rs"]
mod picture;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// The path of a module in its crate; the root's is empty.
type Module = Vec<String>;

/// The files of a crate by their modules.
struct Crate {
    files: BTreeMap<Module, PathBuf>,
}

/// What a file names of its own crate.
struct Names<'a> {
    files: &'a BTreeMap<Module, PathBuf>,
    /// The module that is being read: that of the file, or one within it.
    module: Module,
    used: BTreeSet<Module>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files below a directory.
fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    for entry in entries {
        let path = entry.expect("a directory can be read").path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn is_test(relative: &Path) -> bool {
    relative.file_stem().is_some_and(|stem| stem == "tests")
        || relative.components().any(|part| part.as_os_str() == "tests")
}

impl Crate {
    fn new(directory: &str) -> Crate {
        let directory = root().join(directory);
        let mut found = Vec::new();
        rust_files(&directory, &mut found);
        let mut files = BTreeMap::new();
        for path in found {
            let relative = path.strip_prefix(&directory).expect("files are below their directory");
            if is_test(relative) {
                continue;
            }
            let mut module: Module =
                relative.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|name| name == "mod" || name == "lib") {
                module.pop();
            }
            files.insert(module, path);
        }
        assert!(files.contains_key(&Vec::new()), "a crate has a root");
        Crate { files }
    }

    /// The modules that a module's file names.
    fn used_by(&self, module: &Module) -> BTreeSet<Module> {
        let text = fs::read_to_string(&self.files[module]).expect("a file can be read");
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", self.files[module].display()));
        let mut names = Names { files: &self.files, module: module.clone(), used: BTreeSet::new() };
        names.visit_file(&file);
        names.used.remove(module);
        names.used
    }

    fn arrows(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        self.files.keys().map(|module| (module, self.used_by(module))).collect()
    }
}

impl Names<'_> {
    /// Notes the file that a path leads to, if that is of this crate.
    fn note(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            child if self.files.contains_key(&[&self.module[..], &[child.to_owned()]].concat()) => self.module.clone(),
            _ => return,
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                name => at.push(name.to_owned()),
            }
        }
        // The last names may be of items.
        while !self.files.contains_key(&at) {
            at.pop();
        }
        self.used.insert(at);
    }

    fn note_tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.note_tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => self.note(&with(&name.ident)),
            syn::UseTree::Rename(rename) => self.note(&with(&rename.ident)),
            syn::UseTree::Glob(_) => self.note(before),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(tree, before)),
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
    })
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_for_tests(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.note_tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.note(&path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>());
        }
        visit::visit_path(self, path);
    }
}

/// The first circle that starts at a module, if there is one.
fn circle(arrows: &BTreeMap<&Module, BTreeSet<Module>>, way: &mut Vec<Module>, done: &mut BTreeSet<Module>) -> bool {
    let here = way.last().expect("a way has a start").clone();
    for next in &arrows[&here] {
        if let Some(start) = way.iter().position(|module| module == next) {
            way.drain(..start);
            way.push(next.clone());
            return true;
        }
        if !done.contains(next) {
            way.push(next.clone());
            if circle(arrows, way, done) {
                return true;
            }
            way.pop();
        }
    }
    done.insert(here);
    false
}

#[test]
fn files_use_each_other_in_no_circle() {
    for directory in ["src", "core/src"] {
        let code = Crate::new(directory);
        let arrows = code.arrows();
        assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > code.files.len(), "{directory}: too few arrows");
        let mut done = BTreeSet::new();
        for module in code.files.keys() {
            let mut way = vec![module.clone()];
            if !done.contains(module) && circle(&arrows, &mut way, &mut done) {
                let names: Vec<String> = way.iter().map(|module| format!("crate::{}", module.join("::"))).collect();
                panic!("a circle in {directory}: {}", names.join(" -> "));
            }
        }
    }
}

/// Rooms from the bottom up. Those in one line don't use each other.
const ROOMS: [(&str, &[&[&str]]); 2] = [
    (
        "core/src",
        &[
            &["interrupt"],
            &["memory"],
            &["canonical"],
            &["hash"],
            &["kind"],
            &["simd"],
            &["layout"],
            &["error"],
            &["sizing"],
            &["element"],
            &["filter"],
            &["counting", "parquet", "set", "conditions"],
            &["index"],
            &[""],
        ],
    ),
    (
        "src",
        &[
            &["pg"],
            &["error", "settings", "heap", "key_condition"],
            &["element"],
            &["filter_type", "arguments"],
            &["overfull"],
            &["probe", "aggregate", "planner", "index", "set"],
            &["datatype", "build", "membership", "key", "merge", "inspect", "sizing", "parquet", "counting", "find"],
            &["read_ahead"],
            &[""],
        ],
    ),
];

#[test]
fn rooms_use_only_those_below_them() {
    for (directory, rooms) in ROOMS {
        let code = Crate::new(directory);
        let room = |module: &Module| module.first().cloned().unwrap_or_default();
        let level = |name: &str| {
            rooms
                .iter()
                .position(|row| row.contains(&name))
                .unwrap_or_else(|| panic!("{directory}: {name} is in no row of ROOMS"))
        };
        for (module, used) in code.arrows() {
            for other in used {
                let (from, to) = (room(module), room(&other));
                assert!(from == to || level(&from) > level(&to), "{directory}: {module:?} uses {other:?}");
            }
        }
    }
}

#[test]
fn maps_name_every_module() {
    for directory in ["src", "core/src"] {
        let code = Crate::new(directory);
        for (module, path) in &code.files {
            let text = fs::read_to_string(path).expect("a file can be read");
            let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let map: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
            let is_facade = path.ends_with("mod.rs") || module.is_empty();
            for item in file.items.iter().filter(|_| is_facade) {
                if let syn::Item::Mod(item) = item
                    && item.content.is_none()
                    && !is_for_tests(&item.attrs)
                {
                    let name = format!("`{}`", item.ident);
                    assert!(map.contains(&name), "{}: the map lacks {name}", path.display());
                }
            }
        }
    }
}

#[test]
fn comments_are_short() {
    const COLUMNS: usize = 120;
    let mut files = Vec::new();
    for directory in ["src", "core", "benches", "tests", "python"] {
        rust_files(&root().join(directory), &mut files);
    }
    assert!(files.len() > 300, "{} files were found", files.len());
    for path in files {
        let text = fs::read_to_string(&path).expect("a file can be read");
        let is_long = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > COLUMNS;
        let long = text.lines().position(is_long);
        assert!(long.is_none(), "{}:{}: a comment of over {COLUMNS} columns", path.display(), long.unwrap_or(0) + 1);
    }
}

/// What has pgrx's guard jumps over the frames of its caller, so nobody but PostgreSQL may call it.
#[test]
fn what_jumps_is_unsafe() {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let mut found = 0;
    for path in files {
        let text = fs::read_to_string(&path).expect("a file can be read");
        let mut lines = text.lines().map(str::trim_start);
        while let Some(line) = lines.next() {
            if line.starts_with("#[") && line.contains("pg_guard") {
                let function =
                    lines.find(|line| !line.starts_with("#[") && !line.starts_with("//")).unwrap_or_default();
                assert!(function.contains("unsafe extern"), "{}: {function}", path.display());
                found += 1;
            }
        }
    }
    assert!(found > 3, "{found} functions were found");
}

/// The names that a text has after `path::`, each by itself or in braces.
fn names_after<'t>(text: &'t str, path: &str) -> impl Iterator<Item = &'t str> {
    let is_of_name = |c: char| c.is_alphanumeric() || "_$".contains(c);
    text.match_indices(path).flat_map(move |(at, _)| {
        let rest = &text[at + path.len()..];
        let group = rest.strip_prefix('{').map(|group| group.split('}').next().unwrap_or_default());
        let names = group.unwrap_or_else(|| rest.split(|c| !is_of_name(c)).next().unwrap_or_default());
        // Of `a::b` in braces, `a`.
        let names = names.split(',').filter_map(|name| name.split("::").next()).map(str::trim);
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        // A glob is refused like a name that isn't known.
        if names.is_empty() { vec!["*"] } else { names }
    })
}

/// pgrx's safe functions promise less than those of `src/pg`. The library uses these, and a lint refuses some of them.
#[test]
fn little_is_used_of_pgrx() {
    const OF_PGRX: [&str; 17] = [
        "PgLogLevel",
        "PgMemoryContexts",
        "PgSqlErrorCode",
        "check_for_interrupts",
        "direct_function_call_as_datum",
        "ereport",
        "pg_guard",
        "pg_module_magic",
        "pg_sys",
        "set_varsize_4b",
        "vardata_any",
        "varsize_any",
        "varsize_any_exhdr",
        "vartag_1b_e",
        "varatt_is_1b",
        "varatt_is_1b_e",
        "varatt_is_4b_u",
    ];
    // What isn't PostgreSQL's there.
    const NOT_OF_PG_SYS: [&str; 9] =
        ["*", "AsPgCStr", "PgNode", "PgTryBuilder", "cmp", "elog", "panic", "pg_try", "submodules"];
    const RENAMED: [&str; 5] = ["pgrx as ", "pg_sys as ", "pg_guard as ", "self as ", "extern crate"];
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let mut found = 0;
    for path in files {
        let text = fs::read_to_string(&path).expect("a file can be read");
        let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
        let code = code.join("\n");
        let name = path.strip_prefix(root()).expect("a file of src").to_string_lossy().into_owned();
        for used in names_after(&code, "pgrx::") {
            let is_known = OF_PGRX.contains(&used) || used == "guc" && name == "src/settings.rs";
            assert!(is_known, "{name} uses pgrx::{used}, which is to be looked at first");
            found += 1;
        }
        assert!(
            !RENAMED.iter().any(|name| code.contains(name)),
            "{name} has another name for pgrx, or for a part of it"
        );
        let is_home_of_panics = name == "src/pg/call/panics.rs";
        for used in names_after(&code, "pg_sys::").filter(|_| !is_home_of_panics) {
            assert!(!NOT_OF_PG_SYS.contains(&used), "{name} uses pg_sys::{used}, which is to be looked at first");
        }
        // The library's own page refuses them.
        let may_allow = name.starts_with("src/pg/") || ["src/lib.rs", "src/aggregate/spill.rs"].contains(&&*name);
        assert!(may_allow || !code.contains("clippy::disallowed"), "{name} allows what is refused");
    }
    assert!(found > 50, "{found} names were found");
}
