//! The rooms of the code and the arrows between them are those of ARCHITECTURE.md: files use each
//! other in no circle, rooms use only those below them, the picture shows them, and maps name every
//! module.

#[path = "rooms/picture.rs"]
mod picture;
#[path = "rooms/types.rs"]
mod types;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use syn::visit::{self, Visit};

/// The path of a module in its crate; the root's is empty.
type Module = Vec<String>;

/// A crate's files by their modules, and the modules that each names.
struct Crate {
    files: BTreeMap<Module, PathBuf>,
    arrows: BTreeMap<Module, BTreeSet<Module>>,
}

/// Both crates by their directories.
static CRATES: LazyLock<BTreeMap<&str, Crate>> =
    LazyLock::new(|| ["src", "core/src"].map(|of| (of, Crate::new(of))).into());

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
    let entries =
        fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    for entry in entries {
        let path = entry.expect("a directory can be read").path();
        // What cargo built is beside a manifest.
        let is_built = path.ends_with("target") && directory.join("Cargo.toml").exists();
        if path.is_dir() && !is_built {
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
            let relative = path
                .strip_prefix(&directory)
                .expect("files are below their directory");
            if is_test(relative) {
                continue;
            }
            let mut module: Module = relative
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if module.last().is_some_and(|name| name == "mod" || name == "lib") {
                module.pop();
            }
            files.insert(module, path);
        }
        assert!(files.contains_key(&Vec::new()), "a crate has a root");
        let arrows = files
            .keys()
            .map(|module| (module.clone(), used_by(&files, module)))
            .collect();
        Crate { files, arrows }
    }
}

/// The modules that a module's file names.
fn used_by(files: &BTreeMap<Module, PathBuf>, module: &Module) -> BTreeSet<Module> {
    let text = fs::read_to_string(&files[module]).expect("a file can be read");
    let file =
        syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", files[module].display()));
    let mut names = Names { files, module: module.clone(), used: BTreeSet::new() };
    names.visit_file(&file);
    names.used.remove(module);
    names.used
}

impl Names<'_> {
    /// Notes the file that a path leads to, if that is of this crate.
    fn note(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            child
                if self
                    .files
                    .contains_key(&[&self.module[..], &[child.to_owned()]].concat()) =>
            {
                self.module.clone()
            }
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
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.note_tree(tree, before))
            }
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
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
            self.note(
                &path
                    .segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect::<Vec<_>>(),
            );
        }
        visit::visit_path(self, path);
    }
}

/// The first circle that starts at a module, if there is one.
fn circle(
    arrows: &BTreeMap<Module, BTreeSet<Module>>,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
) -> bool {
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
        let code = &CRATES[directory];
        let arrows: usize = code.arrows.values().map(BTreeSet::len).sum();
        assert!(arrows > code.files.len(), "{directory}: too few arrows");
        let mut done = BTreeSet::new();
        for module in code.files.keys() {
            let mut way = vec![module.clone()];
            if !done.contains(module) && circle(&code.arrows, &mut way, &mut done) {
                let names: Vec<String> = way
                    .iter()
                    .map(|module| format!("crate::{}", module.join("::")))
                    .collect();
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
            &["simd"],
            &["layout"],
            &["kind", "error"],
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
            &[
                "error",
                "settings",
                "heap",
                "key_condition",
                "other_extensions",
            ],
            &["element"],
            &["filter_type", "arguments"],
            &["overfull", "read_ahead"],
            &["probe", "aggregate", "planner", "index", "set"],
            &["functions", "find"],
            &[""],
        ],
    ),
];

#[test]
fn rooms_use_only_those_below_them() {
    for (directory, rooms) in ROOMS {
        let code = &CRATES[directory];
        let room = |module: &Module| module.first().cloned().unwrap_or_default();
        let level = |name: &str| {
            rooms
                .iter()
                .position(|row| row.contains(&name))
                .unwrap_or_else(|| panic!("{directory}: {name} is in no row of ROOMS"))
        };
        for (module, used) in &code.arrows {
            for other in used {
                let (from, to) = (room(module), room(other));
                assert!(
                    from == to || level(&from) > level(&to),
                    "{directory}: {module:?} uses {other:?}"
                );
            }
        }
    }
}

/// The names in backticks in the first column of a page's tables of modules.
fn names_in_map(page: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_of_modules = false;
    for line in page.lines() {
        let Some(row) = line.strip_prefix("//! |") else {
            is_of_modules = false;
            continue;
        };
        let first_cell = row.split('|').next().unwrap_or_default();
        is_of_modules |= first_cell.trim() == "module";
        if is_of_modules {
            let quoted = first_cell.split('`').skip(1).step_by(2);
            names.extend(quoted.map(|name| name.trim_start_matches("mod@")));
        }
    }
    names
}

#[test]
fn maps_name_every_module_and_no_other() {
    for directory in ["src", "core/src"] {
        let code = &CRATES[directory];
        for (module, path) in &code.files {
            if !path.ends_with("mod.rs") && !module.is_empty() {
                continue;
            }
            let text = fs::read_to_string(path).expect("a file can be read");
            let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let mut modules = BTreeSet::new();
            for item in &file.items {
                if let syn::Item::Mod(item) = item
                    && item.content.is_none()
                    && !is_for_tests(&item.attrs)
                {
                    modules.insert(item.ident.to_string());
                }
            }

            let page: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
            let page = page.join("\n");
            for name in &modules {
                let name = format!("`{name}`");
                assert!(page.contains(&name), "{}: the map lacks {name}", path.display());
            }
            for name in names_in_map(&page) {
                assert!(modules.contains(name), "{}: there is no {name}", path.display());
            }
        }
    }
}

/// The trees of some tokens and of all groups in them, each list of them by itself.
fn lists_of(tokens: TokenStream, lists: &mut Vec<Vec<TokenTree>>) {
    let list: Vec<TokenTree> = tokens.into_iter().collect();
    for tree in &list {
        if let TokenTree::Group(group) = tree {
            lists_of(group.stream(), lists);
        }
    }
    lists.push(list);
}

/// The text of a name, or of a sign.
fn shown(tree: Option<&TokenTree>) -> String {
    tree.map_or_else(String::new, |tree| tree.to_string().trim_start_matches("r#").into())
}

/// Names and signs of these tokens, and of the groups in them.
fn words(tokens: TokenStream) -> Vec<String> {
    let mut lists = Vec::new();
    lists_of(tokens, &mut lists);
    lists.iter().rev().flatten().map(|tree| shown(Some(tree))).collect()
}

/// What comes after each attribute with pgrx's guard: what it is, without other attributes and
/// `pub`.
fn what_jumps(list: &[TokenTree]) -> Vec<String> {
    let attribute = |at: usize| match (&*shown(list.get(at)), list.get(at + 1)) {
        ("#", Some(TokenTree::Group(group))) => Some(group.stream()),
        _ => None,
    };
    let has_guard = |at: &usize| {
        attribute(*at).is_some_and(|inside| words(inside).contains(&"pg_guard".into()))
    };
    let after = |mut at: usize| {
        while attribute(at).is_some() || shown(list.get(at)) == "pub" {
            let is_scoped = matches!(list.get(at + 1), Some(TokenTree::Group(_)));
            at += if is_scoped { 2 } else { 1 };
        }
        format!("{} {}", shown(list.get(at)), shown(list.get(at + 1)))
    };
    (0..list.len()).filter(has_guard).map(after).collect()
}

/// What has pgrx's guard jumps over the frames of its caller, so nobody but PostgreSQL may call it.
#[test]
fn what_jumps_is_unsafe() {
    let jumping = |code: &str| {
        let mut lists = Vec::new();
        lists_of(code.parse().expect("a file has tokens"), &mut lists);
        lists.iter().flat_map(|list| what_jumps(list)).collect::<Vec<_>>()
    };
    let safe = "#[pgrx::pg_guard] #[doc = \"unsafe extern\"] pub(crate) extern \"C-unwind\" fn f(/* unsafe extern */) {}";
    assert_eq!(jumping(safe), ["extern \"C-unwind\""]);
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let mut found = 0;
    for path in files {
        let text = fs::read_to_string(&path).expect("a file can be read");
        let own = jumping(&text);
        found += own.len();
        assert!(own.iter().all(|is| is == "unsafe extern"), "{}: {own:?}", path.display());
    }
    assert!(found > 3, "{found} functions were found");
}

/// What these tokens have after `path::`, each name by itself or in braces. What isn't a name is
/// shown as it stands.
fn names_after(list: &[TokenTree], path: &str) -> Vec<String> {
    let mut names = Vec::new();
    for at in (0..list.len()).filter(|&at| shown(list.get(at)) == path) {
        let is_path = [1, 2].iter().all(|i| shown(list.get(at + i)) == ":");
        match list.get(at + 3).filter(|_| is_path) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                // Of `a::b`, `a`: what comes after it is in the list of the group.
                let inside = inside
                    .split(|tree| shown(Some(tree)) == ",")
                    .map(|name| shown(name.first()));
                // After the last comma there is nothing.
                names.extend(inside.filter(|name| !name.is_empty()));
            }
            // PostgreSQL's functions are imported as a module.
            None if path == "pg_sys" && [";", ",", ""].contains(&&*shown(list.get(at + 1))) => {}
            other => names.push(shown(other)),
        }
    }
    names
}

/// Whether an attribute allows what is refused, or hides code from the lint, or a macro is given
/// one that does.
fn is_hidden(list: &[TokenTree]) -> bool {
    let hides = |at: usize| {
        let is_method = at > 0 && shown(list.get(at - 1)) == ".";
        let Some(TokenTree::Group(group)) = list.get(at + 1).filter(|_| !is_method) else {
            return false;
        };
        let inside = words(group.stream());
        let has = |names: &[&str]| inside.iter().any(|word| names.contains(&&**word));
        // What a macro is given could be anything.
        let allows = has(&["all", "style", "warnings", "$"])
            || inside.iter().any(|word| word.starts_with("disallowed"));
        match &*shown(list.get(at)) {
            // One that a macro is given whole is read there.
            "#" => {
                inside.starts_with(&["$".into()])
                    && inside.len() != 2
                    && inside.get(3..) != Some(&["meta".into()])
            }
            "allow" | "expect" => allows,
            "cfg" => has(&["clippy", "debug_assertions"]),
            "cfg_attr" => {
                allows && has(&["allow", "expect", "$"]) || has(&["clippy", "debug_assertions"])
            }
            _ => false,
        }
    };
    (0..list.len()).any(hides)
}

/// What pgrx's safe functions promise is less than what those of `src/pg` do. The library uses
/// these.
#[rustfmt::skip]
const OF_PGRX: [&str; 15] = [
    "PgLogLevel", "PgSqlErrorCode", "check_for_interrupts", "direct_function_call_as_datum",
    "pg_guard", "pg_module_magic", "pg_sys", "set_varsize_4b", "vardata_any", "varsize_any", "varsize_any_exhdr",
    "vartag_1b_e", "varatt_is_1b", "varatt_is_1b_e", "varatt_is_4b_u",
];
/// What only one file uses.
#[rustfmt::skip]
const OF_PGRX_IN: [(&str, &str); 3] = [
    ("PgMemoryContexts", "src/pg/memory/mod.rs"), ("ereport", "src/pg/memory/reserve.rs"), ("guc", "src/settings.rs"),
];
/// What isn't PostgreSQL's in `pg_sys`. Its macros for messages are safe, though what PostgreSQL
/// raises while it sends one, as for a character that the client's encoding lacks, jumps over the
/// frames of their caller.
#[rustfmt::skip]
const NOT_OF_PG_SYS: [&str; 25] = [
    "*", "AsPgCStr", "FATAL", "PANIC", "PgNode", "PgTryBuilder", "cmp", "debug1", "debug2", "debug3", "debug4", "debug5",
    "elog", "ereport", "ereport_domain", "error", "ffi", "info", "log", "notice", "panic", "pg_try", "submodules",
    "thread_check", "warning",
];
/// What has no other name.
const NOT_RENAMED: [&str; 4] = ["pgrx", "pg_sys", "pg_guard", "self"];

/// Words by which code is hidden from these tests and from the lint, and safe code that is none: a
/// future may borrow of itself, and outlives the memory of its call if PostgreSQL ends the process.
const REFUSED: [&str; 3] = ["async", "global_asm", "include !"];

/// What is refused of some tokens of a file.
fn refused(list: &[TokenTree], file: &str) -> Vec<String> {
    let is_of_border = file.starts_with("src/pg/");
    let may_make_macros = is_of_border || file.starts_with("core/src/");
    let texts: Vec<String> = list.iter().map(|tree| shown(Some(tree))).collect();
    let mut refused = Vec::new();
    for at in 0..texts.len() {
        let two = texts[at..]
            .iter()
            .take(2)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ");
        let is_macro = texts[at] == "macro_rules" && !may_make_macros;
        // `session_locals!` makes them. While those of the core are borrowed, nobody is asked
        // whether to stop.
        let may_be_dropped = is_of_border
            || [
                "core/src/sizing/mod.rs",
                "core/src/sizing/rate.rs",
                "core/src/filter/overfull.rs",
            ]
            .contains(&file)
            || file.contains("/tests/");
        let is_dropped = texts[at] == "thread_local" && !may_be_dropped;
        if is_macro || is_dropped || REFUSED.contains(&&*texts[at]) || REFUSED.contains(&&*two) {
            refused.push(two.clone());
        }
        // Other files than those that are read.
        let file = texts
            .get(at + 2)
            .filter(|file| two == "path =" && (file.contains('"') || *file == "concat"));
        refused.extend(
            file.filter(|file| file.contains("..") || !file.ends_with(".rs\""))
                .cloned(),
        );
    }
    refused
}

/// What of a file's code is to be looked at first, and how many names it has of pgrx.
fn looked_at_first(code: &str, file: &str) -> (Vec<String>, usize) {
    // The library's own page refuses what these allow.
    let may_allow =
        file.starts_with("src/pg/") || ["src/lib.rs", "core/src/lib.rs"].contains(&file);
    let is_home_of_panics = file == "src/pg/call/panics.rs";
    let (mut lists, mut problems, mut found) = (Vec::new(), Vec::new(), 0);
    lists_of(code.parse().expect("a file has tokens"), &mut lists);
    for list in &lists {
        let of_pgrx = names_after(list, "pgrx");
        found += of_pgrx.len();
        let is_known = |used: &str| OF_PGRX.contains(&used) || OF_PGRX_IN.contains(&(used, file));
        problems.extend(
            of_pgrx
                .iter()
                .filter(|used| !is_known(used))
                .map(|used| format!("pgrx::{used}")),
        );
        let of_pg_sys = names_after(list, "pg_sys");
        let is_other =
            |used: &&String| !is_home_of_panics && NOT_OF_PG_SYS.contains(&used.as_str());
        problems.extend(
            of_pg_sys
                .iter()
                .filter(is_other)
                .map(|used| format!("pg_sys::{used}")),
        );
        problems.extend(list.windows(2).filter_map(|two| {
            let (from, to) = (shown(two.first()), shown(two.last()));
            let has_pgrx = !file.starts_with("core/src/");
            let is_renamed = has_pgrx && to == "as" && NOT_RENAMED.contains(&&*from)
                || from == "extern" && to == "crate";
            is_renamed.then(|| format!("{from} {to}"))
        }));
        problems.extend(refused(list, file));
        if !may_allow && is_hidden(list) {
            problems.push(format!(
                "#[{}]",
                list.iter().map(|tree| shown(Some(tree))).collect::<String>()
            ));
        }
    }
    (problems, found)
}

#[test]
fn little_is_used_of_pgrx() {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    rust_files(&root().join("core/src"), &mut files);
    let mut found = 0;
    for path in files {
        let text = fs::read_to_string(&path).expect("a file can be read");
        let file = path
            .strip_prefix(root())
            .expect("a file of the library")
            .to_string_lossy()
            .into_owned();
        let (problems, names) = looked_at_first(&text, &file);
        assert!(problems.is_empty(), "{file}: to be looked at first: {problems:?}");
        found += names;
    }
    assert!(found > 50, "{found} names were found");
}

/// Forms that rustfmt and clippy let pass.
#[test]
fn what_is_used_of_pgrx_cannot_be_hidden() {
    for hidden in [
        "use pgrx::{ pg_sys::{self}, spi::Spi };",
        "use pgrx::pg_sys::{ errcodes::{self}, pg_try::PgTryBuilder };",
        "macro_rules! spi { ($p:ident) => { $p::Spi::connect(|_| ()) } } spi!(pgrx);",
        "fn f() { g(\"//\", pgrx::Spi::connect(|_| ())) }",
        "use pgrx as other;",
        "use r#pgrx::Spi;",
        "use ::pgrx::*;",
        "use pgrx::{Spi as pg_guard};",
        "extern crate pgrx;",
        "fn f() { pg_sys::thread_check::active_thread::clear() }",
        "#[allow(clippy::style)] fn f() {}",
        "macro_rules! quiet { ($lint:ident $i:item) => { #[allow(clippy::$lint)] $i } }",
        "#![allow(clippy::disallowed_methods)]",
        "#[expect(warnings)] fn f() {}",
        "#[cfg_attr(all(), allow(clippy::all))] fn f() {}",
        "#[cfg(not(clippy))] fn f() {}",
        "#[cfg(not(debug_assertions))] fn f() {}",
        "spi!(pgrx, Spi);",
        "macro_rules! spi { ($p:ident, $s:ident) => { $p::$s::connect(|_| ()) } }",
        "quiet! { of allow(clippy::disallowed_methods) fn f() {} }",
        "thread_local! { static X: u8 = 0; }",
        "include!(\"hidden.inc\");",
        "#[path = \"hidden.inc\"] mod hidden;",
        "#[path = \"../hidden.rs\"] mod hidden;",
        "std::arch::global_asm!(\"nop\");",
        "fn f() { drop(async { 0 }) }",
        "fn f() { pg_sys::notice!(\"x\") }",
        "use pgrx::pg_sys::warning;",
        "fn f() { pgrx::ereport!(NOTICE, PgSqlErrorCode::ERRCODE_WARNING, \"x\") }",
    ] {
        assert!(
            !looked_at_first(hidden, "src/functions/sizing.rs").0.is_empty(),
            "passes: {hidden}"
        );
    }
    for plain in [
        "use pgrx::pg_sys;",
        "use pgrx::pg_sys::{self, Oid};",
        "use pgrx::{PgLogLevel, pg_sys, pg_sys::Datum,};",
        "#[allow(clippy::too_many_arguments, reason = \"PostgreSQL's own signature\")] fn f() {}",
        "#[cfg(feature = \"before_pg16\")] fn f() { x.all(); }",
        "fn f() { x.expect(all); include_str!(\"x.md\") }",
    ] {
        assert_eq!(looked_at_first(plain, "src/functions/sizing.rs").0, [""; 0], "{plain}");
    }
    for hidden in ["#[$a($c::$l)]", "#[cfg_attr(all(), $a($c::$l))]"] {
        let code = format!(
            "macro_rules! quiet {{ ($a:ident $c:ident $l:ident) => {{ {hidden} fn f() {{}} }} }}"
        );
        assert!(!looked_at_first(&code, "core/src/hash.rs").0.is_empty(), "passes: {hidden}");
    }
}
