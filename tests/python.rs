//! The Python package of python/, which `scripts/wheel` builds and installs into target/python,
//! does what the server does. These tests are written in Python as well, in tests/python/.

mod common;

use common::{Server, output, page, python};
use std::path::Path;

/// Elements of each key kind that are asked, every fifth of half a million.
const ELEMENTS: &str = "100000";

/// Runs a program of tests/python/ in a database with the extension.
fn passes(program: &str, arguments: &[&str]) {
    let server = Server::start("timezone = 'UTC'");
    drop(server.database("app"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = python::client(&server);
    command
        .current_dir(root)
        .args(["-W", "error"])
        .arg(root.join("tests/python").join(program))
        .args(arguments);
    output(command.env("PGDATABASE", "app"));
}

/// The kinds are divided among so many tests, which run at once.
#[test]
fn answers_are_those_of_the_server() {
    passes("answers.py", &[ELEMENTS, "0", "2"]);
}

#[test]
fn answers_of_the_other_kinds_are_those_of_the_server() {
    passes("answers.py", &[ELEMENTS, "1", "2"]);
}

#[test]
fn values_and_bytes_from_outside_are_refused_by_exceptions() {
    passes(
        "values.py",
        &[
            "core/fuzz/corpus/parse.tar.gz",
            "core/fuzz/corpus/operations.tar.gz",
        ],
    );
}

#[test]
fn adapters_send_elements_and_read_filters() {
    passes("adapters.py", &[]);
}

#[test]
fn nothing_is_left_to_migrate() {
    passes("mappers.py", &[]);
}

/// `DOCUMENTATION=write` writes the file.
#[test]
fn golden_vectors_are_those_of_the_server() {
    passes("vectors.py", if page::writes() { &["--write"] } else { &[] });
}
