//! What no compiler and no lint refuses, and only some files may have. Files are read as words, so
//! that code in macros counts, and comments and texts don't.
//!
//! `pgrx/` has what the library may use of pgrx, and `clippy.toml` what it may not use of Rust.

use super::{root, rust_files};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Words, and the files that may have them: those whose paths start so.
#[rustfmt::skip]
const HOMES: &[(&[&str], &[&str])] = &[
    // If a fatal error ends the process, nothing that is borrowed may be dropped: `session_locals!`
    // drops nothing. While those of the core are borrowed, nobody is asked whether to stop.
    (&["thread_local"], &["src/pg/", "core/src/sizing/", "core/src/filter/overfull.rs", "core/src/index/ranges/tests/"]),
    // A future may borrow of itself, and outlives the memory of its call if the process is ended.
    (&["async"], &[]),
    // Code that is not read here, or that a build for debugging doesn't have.
    (&["include", "global_asm"], &[]),
    (&["debug_assertions"], &["src/pg/call/mod.rs"]),
    // Lints that a file must not allow.
    (&["unsafe_code"], &["core/src/lib.rs"]),
    (&["ffi_unwind_calls"], &["src/lib.rs", "src/pg/call/guard.rs"]),
    // `List` is a `Vec` inside. Programs that use the core, and what only tests use, have a `Vec`.
    (&["disallowed_methods", "disallowed_types", "disallowed_macros"], &["src/pg/", "src/lib.rs", "core/src/lib.rs", "core/src/memory.rs", "core/src/element.rs", "core/src/filter/owned.rs", "core/src/filter/merging/mod.rs", "core/src/index/filters/mod.rs", "core/src/index/page/mod.rs", "core/src/index/ranges/mod.rs", "core/src/set/mod.rs"]),
    // Of pgrx, what safe code can break memory by.
    (&["PgMemoryContexts"], &["src/pg/memory/mod.rs"]),
    (&["ereport"], &["src/pg/memory/reserve.rs"]),
    (&["guc"], &["src/settings.rs"]),
    (&["CaughtError", "ErrorReport", "ErrorReportWithLevel"], &["src/pg/call/panics.rs"]),
    (&["register_pg_guard_panic_hook"], &[]),
];

/// Returns names, signs, literals and brackets, one after the other.
fn words(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            found.push(token.to_string());
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        found.push(open.to_owned());
        found.extend(words(group.stream()));
        found.push(close.to_owned());
    }
    found
}

pub fn words_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a file can be read");
    words(text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

#[test]
fn words_are_where_they_may_be() {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for path in ["src", "core/src"].iter().flat_map(|of| rust_files(&root().join(of))) {
        let file = path
            .strip_prefix(root())
            .expect("a file of the library")
            .to_string_lossy();
        let words: BTreeSet<String> = words_of(&path).into_iter().collect();
        for (homeless, homes) in HOMES {
            for word in homeless.iter().filter(|word| words.contains(**word)) {
                let is_home = homes.iter().any(|home| file.starts_with(home));
                assert!(is_home, "{file} has {word}: look at it first");
                used.extend(homes.iter().filter(|home| file.starts_with(**home)));
            }
        }
    }
    let mut homes = HOMES.iter().flat_map(|(_, homes)| *homes);
    assert_eq!(homes.find(|home| !used.contains(*home)), None, "a home that no file needs");
}

/// What has pgrx's guard jumps over the frames of its caller: nobody but PostgreSQL may call it.
#[test]
fn guarded_functions_are_unsafe_and_external() {
    let mut guards = 0;
    for path in rust_files(&root().join("src")) {
        let words = words_of(&path);
        for at in (0..words.len()).filter(|at| words[*at] == "pg_guard") {
            let function = words[at..].iter().position(|word| word == "fn").expect("a function");
            let declared = words[at..at + function].join(" ");
            let is_unsafe = declared.contains("unsafe extern \"");
            assert!(is_unsafe, "{}: {declared}", path.display());
            guards += 1;
        }
    }
    assert!(guards > 15, "{guards} guards were found");
}
