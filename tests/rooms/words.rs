//! What no compiler and no lint refuses, and only some files may have. Files are read as words, so
//! that neither conditions nor macros nor comments hide anything.
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
    // A macro outside could be given words of which it makes what is refused here.
    (&["macro_rules"], &["src/pg/", "core/src/"]),
    // If a fatal error ends the process, nothing that is borrowed may be dropped: `session_locals!`
    // drops nothing. While those of the core are borrowed, nobody is asked whether to stop.
    (&["thread_local"], &["src/pg/", "core/src/sizing/", "core/src/filter/overfull.rs", "core/src/index/ranges/tests/"]),
    // A future may borrow of itself, and outlives the memory of its call if the process is ended.
    (&["async", "global_asm"], &[]),
    // Files that aren't read here.
    (&["include !"], &[]),
    // Code that clippy, or a build for debugging, doesn't see.
    (&["clippy )", "clippy ,", "warnings"], &[]),
    (&["debug_assertions"], &["src/pg/call/mod.rs"]),
    (&["unsafe_code"], &["core/src/lib.rs"]),
    (&["ffi_unwind_calls"], &["src/lib.rs", "src/pg/call/guard.rs"]),
    // Of pgrx, what safe code can break memory by.
    (&["PgMemoryContexts"], &["src/pg/memory/mod.rs"]),
    (&["ereport"], &["src/pg/memory/reserve.rs"]),
    (&["guc"], &["src/settings.rs"]),
    (&["CaughtError", "ErrorReport", "ErrorReportWithLevel"], &["src/pg/call/panics.rs"]),
    (&["register_pg_guard_panic_hook"], &[]),
];

/// Lints of clippy's that any file may allow. Where `src/pg` allows others, it says why.
const ALLOWED_LINTS: [&str; 3] = [
    "field_reassign_with_default",
    "mut_from_ref",
    "too_many_arguments",
];
const MAY_ALLOW_LINTS: [&str; 3] = ["src/pg/", "src/lib.rs", "core/src/lib.rs"];

/// Returns names, signs, literals and brackets, one after the other.
fn words(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            found.push(token.to_string().trim_start_matches("r#").to_owned());
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

/// Returns what a file has though it may not, and which words of [`HOMES`] it has.
fn look(words: &[String], file: &str) -> (Vec<String>, BTreeSet<&'static str>) {
    let is_in = |homes: &[&str]| homes.iter().any(|home| file.starts_with(home));
    let (mut problems, mut found) = (Vec::new(), BTreeSet::new());
    for at in 0..words.len() {
        let word = |count: usize| words.get(at + count).map_or("", String::as_str);
        let starts = |phrase: &str| {
            let mut own = phrase.split(' ').enumerate();
            own.all(|(count, expected)| word(count) == expected)
        };
        let text = |from: usize, to: usize| words[from..to.min(words.len())].join(" ");
        for (phrases, homes) in HOMES {
            for phrase in phrases.iter().filter(|phrase| starts(phrase)) {
                found.insert(*phrase);
                problems.extend((!is_in(homes)).then(|| phrase.to_string()));
            }
        }
        // Tests of the core have their files in `tests`.
        let names_file = starts("path =") && (word(2).starts_with('"') || word(2) == "concat");
        let is_of_tests = word(2).starts_with("\"tests/") && word(2).ends_with(".rs\"");
        let is_other_file = names_file && (!is_of_tests || word(2).contains(".."));
        let allows_lint = starts("clippy : :") && !ALLOWED_LINTS.contains(&word(3));
        if is_other_file || allows_lint && !is_in(&MAY_ALLOW_LINTS) {
            problems.push(text(at, at + 4));
        }
        // A macro that is given an attribute, or a lint, in parts could allow what nobody sees.
        let is_method = at > 0 && words[at - 1] == ".";
        let allows = ["allow (", "expect (", "cfg_attr ("].into_iter().any(starts) && !is_method;
        let mut until_end = words[at..].iter().take_while(|word| !["]", "}"].contains(&&***word));
        let is_whole = word(4) == "]" || word(4) == ":" && word(5) == "meta";
        let allows_parts = allows && until_end.any(|word| word == "$");
        if (allows_parts || starts("# [ $") && !is_whole) && !is_in(&MAY_ALLOW_LINTS) {
            problems.push(text(at, at + 8));
        }
        // What has pgrx's guard jumps over the frames of its caller: nobody but PostgreSQL may
        // call it. With another name, or among other attributes, the guard would not be found.
        if word(0) == "pg_guard" {
            let is_alone = text(at.saturating_sub(5), at + 2) == "# [ pgrx : : pg_guard ]";
            let function = words[at..].iter().position(|word| word == "fn").unwrap_or(0);
            let declared = text((at + function).saturating_sub(3), at + function);
            if !is_alone || !declared.starts_with("unsafe extern \"") {
                problems.push(format!("pg_guard … {declared}"));
            }
        }
    }
    (problems, found)
}

#[test]
fn words_are_where_they_may_be() {
    let (mut problems, mut used, mut guards) = (Vec::new(), BTreeSet::new(), 0);
    for path in ["src", "core/src"].iter().flat_map(|of| rust_files(&root().join(of))) {
        let file = path
            .strip_prefix(root())
            .expect("a file of the library")
            .to_string_lossy();
        let words = words_of(&path);
        let (own, found) = look(&words, &file);
        problems.extend(own.iter().map(|problem| format!("{file}: {problem}")));
        used.extend(found);
        guards += words.iter().filter(|word| *word == "pg_guard").count();
    }
    assert!(problems.is_empty(), "to be looked at first: {problems:#?}");
    assert!(guards > 15, "{guards} guards were found");
    let have_homes = HOMES.iter().filter(|(_, homes)| !homes.is_empty());
    let unused = have_homes
        .flat_map(|(words, _)| *words)
        .find(|words| !used.contains(**words));
    assert_eq!(unused, None, "no file has it any more");
}

/// Forms that rustfmt and clippy let pass.
#[test]
fn words_cannot_be_hidden() {
    let problems =
        |code: &str| look(&words(code.parse().expect(code)), "src/functions/sizing.rs").0;
    for hidden in [
        "macro_rules! spi { ($p:ident) => { $p::Spi::connect(|_| ()) } }",
        "thread_local! { static X: u8 = 0; }",
        "use std::thread_local as quiet;",
        "std::arch::global_asm!(\"nop\");",
        "fn f() { drop(async { 0 }) }",
        "include!(\"hidden.inc\");",
        "#[path = \"hidden.inc\"] mod hidden;",
        "#[path = \"tests/../../hidden.rs\"] mod hidden;",
        "#[cfg_attr(all(), path = concat!(\"a\", \".rs\"))] mod hidden;",
        "#[allow(clippy::style)] fn f() {}",
        "#[expect(warnings)] fn f() {}",
        "#![allow(clippy::disallowed_methods)]",
        "#[cfg_attr(all(), allow(clippy::all))] fn f() {}",
        "quiet! { of allow(clippy::disallowed_methods) fn f() {} }",
        "#[cfg(not(clippy))] fn f() {}",
        "#[cfg(any(clippy, test))] fn f() {}",
        "#[cfg(not(debug_assertions))] fn f() {}",
        "fn f() { pgrx::ereport!(NOTICE, PgSqlErrorCode::ERRCODE_WARNING, \"x\") }",
        "use pgrx::{pg_sys::{panic::{ErrorReport as E}}};",
        "use pgrx::{pg_guard as quiet};",
        "#[pgrx::pg_guard] #[doc = \"unsafe extern\"] pub(crate) extern \"C-unwind\" fn f(/* unsafe extern */) {}",
        "#[pgrx::pg_guard] extern \"C-unwind\" { fn f(); }",
        "#[pgrx::pg_guard] #[unsafe(no_mangle)] extern \"C-unwind\" fn f() {}",
        "#[cfg_attr(all(), pgrx::pg_guard)] unsafe extern \"C-unwind\" fn f() {}",
    ] {
        assert!(!problems(hidden).is_empty(), "passes: {hidden}");
    }
    for hidden in [
        "#[$a($c::$l)]",
        "#[cfg_attr(all(), $a($c::$l))]",
        "#[allow(clippy::$l)]",
    ] {
        let macros = format!("macro_rules! quiet {{ ($($t:tt)*) => {{ {hidden} fn f() {{}} }} }}");
        let words = words(macros.parse().expect("a macro"));
        assert_ne!(look(&words, "core/src/hash.rs").0, [""; 0], "passes: {hidden}");
    }
    for plain in [
        "use pgrx::{PgLogLevel, pg_sys as server, pg_sys::Datum,};",
        "#[allow(clippy::too_many_arguments, reason = \"PostgreSQL's own signature\")] fn f() {}",
        "#[cfg(feature = \"before_pg16\")] fn f() { include_str!(\"x.md\"); path = other; }",
        "#[pgrx::pg_guard] pub unsafe extern \"C-unwind\" fn f(then: fn()) {}",
        "/// thread_local! async\nfn f() { \"include!\" }",
    ] {
        assert_eq!(problems(plain), [""; 0], "{plain}");
    }
}
