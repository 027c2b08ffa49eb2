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

/// The kinds are divided among two tests, which run at once.
#[test]
fn answers_are_those_of_the_server() {
    passes("answers.py", &[ELEMENTS, "0", "2"]);
}

#[test]
fn answers_of_the_other_kinds_are_those_of_the_server() {
    passes("answers.py", &[ELEMENTS, "1", "2"]);
}

#[test]
fn values_are_elements_or_refused() {
    passes("values.py", &[]);
}

#[test]
fn columns_have_the_answers_of_lists() {
    passes("columns.py", &[]);
}

#[test]
fn bytes_threads_and_signals_from_outside_do_no_harm() {
    passes(
        "robust.py",
        &[
            "core/fuzz/corpus/parse.tar.gz",
            "core/fuzz/corpus/operations.tar.gz",
        ],
    );
}

#[test]
fn drivers_send_and_read_filters() {
    passes("drivers.py", &[]);
}

#[test]
fn sqlalchemy_sends_elements_and_reads_filters() {
    passes("with_sqlalchemy.py", &[]);
}

#[test]
fn alembic_leaves_nothing_to_migrate() {
    passes("with_alembic.py", &[]);
}

#[test]
fn a_django_project_works_with_psycopg() {
    passes("with_django.py", &["psycopg", "client"]);
}

#[test]
fn a_django_project_works_with_parameters_bound_by_the_server() {
    passes("with_django.py", &["psycopg", "server"]);
}

#[test]
fn a_django_project_works_with_psycopg2() {
    passes("with_django.py", &["psycopg2", "client"]);
}

/// `DOCUMENTATION=write` writes the file.
#[test]
fn golden_vectors_are_those_of_the_server() {
    passes("vectors.py", if page::writes() { &["--write"] } else { &[] });
}
