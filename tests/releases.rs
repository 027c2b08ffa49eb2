//! A released version can be upgraded to this one, and its scripts stay as they were released.
//!
//! `tests/released/` has the installation script of every release, and `SHA256SUMS` what
//! `sha256sum` says of these and of the upgrade scripts in `sql/` that were released with them: see
//! "Releasing" in CONTRIBUTING.md. CHANGELOG.md says which releases there are, so an empty list is
//! noticed. Versions made up here show that the tests would fail.

mod common;

use common::objects::{objects, same};
use common::{Server, output, run, value};
use postgres::Client;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PREFIX: &str = "pg_bloom--";

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The names of the SQL scripts in a directory of the repository, without prefix and suffix.
fn scripts(root: &Path, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(root.join(directory)).expect("the directory can be read");
    let names = entries.map(|entry| {
        entry
            .expect("the directory can be read")
            .file_name()
            .into_string()
            .expect("ASCII")
    });
    let mut scripts: Vec<String> = names
        .filter_map(|name| Some(name.strip_prefix(PREFIX)?.strip_suffix(".sql")?.to_owned()))
        .collect();
    scripts.sort();
    scripts
}

/// The version in the control file.
fn version(root: &Path) -> String {
    let control =
        fs::read_to_string(root.join("pg_bloom.control")).expect("the control file can be read");
    let line = control
        .lines()
        .find(|line| line.starts_with("default_version"))
        .expect("there is a version");
    line.split('\'').nth(1).expect("the version is quoted").to_owned()
}

/// What is wrong with the released scripts of a repository.
fn complaints(root: &Path) -> Vec<String> {
    let sums =
        fs::read_to_string(root.join("tests/released/SHA256SUMS")).expect("the sums can be read");
    let listed: Vec<(&str, &str)> = sums.lines().filter_map(|line| line.split_once("  ")).collect();
    let mut complaints = Vec::new();
    for (sum, path) in &listed {
        let now = if root.join(path).is_file() {
            String::from_utf8(output(Command::new("sha256sum").arg(path).current_dir(root)))
                .expect("ASCII")
        } else {
            String::new()
        };
        if now.split_whitespace().next() != Some(sum) {
            complaints.push(format!("{path} is not what was released"));
        }
    }
    let released = scripts(root, "tests/released");
    let of_releases = released
        .iter()
        .map(|version| format!("tests/released/{PREFIX}{version}.sql"));
    let upgrades = scripts(root, "sql").into_iter().filter(|name| {
        name.split_once("--")
            .is_some_and(|(_, to)| released.iter().any(|version| version == to))
    });
    for path in of_releases.chain(upgrades.map(|name| format!("sql/{PREFIX}{name}.sql"))) {
        if !listed.iter().any(|(_, known)| **known == path) {
            complaints.push(format!("{path} was released but has no sum"));
        }
    }
    let changes = fs::read_to_string(root.join("CHANGELOG.md")).expect("the changes can be read");
    for heading in changes.lines().filter_map(|line| line.strip_prefix("## ")) {
        let (version, date) = heading.split_once(' ').expect("a heading has a version and a date");
        if date != "(unreleased)" && !released.iter().any(|known| known == version) {
            complaints.push(format!("version {version} was released, but its script is not kept"));
        }
    }
    let current = version(root);
    if released.contains(&current) {
        let read = |path: &str| fs::read(root.join(path)).expect("the script can be read");
        if read("sql/pg_bloom.sql") != read(&format!("tests/released/{PREFIX}{current}.sql")) {
            complaints.push(format!(
                "sql/pg_bloom.sql is no longer version {current}, which was released"
            ));
        }
    }
    complaints
}

#[test]
fn released_scripts_are_never_edited() {
    assert_eq!(complaints(&repository()), Vec::<String>::new());
}

#[test]
fn edited_scripts_would_be_noticed() {
    let root = std::env::temp_dir().join(format!("pg_bloom_released.{}", std::process::id()));
    fs::create_dir_all(root.join("tests/released")).expect("a directory can be made");
    fs::create_dir_all(root.join("sql")).expect("a directory can be made");
    let write =
        |path: &str, text: &str| fs::write(root.join(path), text).expect("a file can be written");
    let (installation, upgrade) =
        ("tests/released/pg_bloom--0.2.sql", "sql/pg_bloom--0.1--0.2.sql");
    write("pg_bloom.control", "default_version = '0.2'\n");
    write("CHANGELOG.md", "## 0.2 (2026-01-02)\n\n- Changed\n");
    write("sql/pg_bloom.sql", "SELECT 2;");
    write(installation, "SELECT 2;");
    write(upgrade, "SELECT 1;");
    write("tests/released/SHA256SUMS", "");
    assert_eq!(complaints(&root).len(), 2, "without sums");
    let sums = output(
        Command::new("sha256sum")
            .args([installation, upgrade])
            .current_dir(&root),
    );
    fs::write(root.join("tests/released/SHA256SUMS"), sums).expect("a file can be written");
    assert_eq!(complaints(&root), Vec::<String>::new());
    for path in [installation, upgrade, "sql/pg_bloom.sql"] {
        let text = fs::read_to_string(root.join(path)).expect("a file can be read");
        write(path, "SELECT 3;");
        assert!(!complaints(&root).is_empty(), "{path}");
        write(path, &text);
    }
    fs::remove_file(root.join(upgrade)).expect("a file can be deleted");
    assert_eq!(complaints(&root), [format!("{upgrade} is not what was released")]);
    fs::remove_file(root.join(installation)).expect("a file can be deleted");
    write("tests/released/SHA256SUMS", "");
    assert_eq!(complaints(&root), ["version 0.2 was released, but its script is not kept"]);
    fs::remove_dir_all(root).expect("the directory can be deleted");
}

/// Where the server finds extensions.
fn extensions(client: &mut Client) -> PathBuf {
    let sharedir: String = value(client, "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'");
    PathBuf::from(sharedir).join("extension")
}

/// Objects of the extension after its upgrade from an older version, with a table of that time
/// still working.
fn upgraded(server: &Server, database: &str, from: &str) -> Vec<String> {
    let mut client = server.empty_database(database, "");
    run(&mut client, &format!("CREATE EXTENSION pg_bloom VERSION '{from}'"));
    run(
        &mut client,
        "CREATE TABLE kept AS SELECT bloom_agg(i) AS f FROM generate_series(1, 1000) AS i;
         CREATE INDEX ON kept (f);
         CREATE VIEW found AS SELECT count(*) FROM kept, generate_series(1, 1000) AS i WHERE f @> i",
    );
    run(&mut client, "ALTER EXTENSION pg_bloom UPDATE");
    assert_eq!(value::<i64>(&mut client, "SELECT count FROM found"), 1000);
    let now: String =
        value(&mut client, "SELECT extversion FROM pg_extension WHERE extname = 'pg_bloom'");
    assert_eq!(now, version(&repository()));
    objects(&mut client)
}

#[test]
fn upgrades_end_with_the_objects_of_a_new_installation() {
    let root = repository();
    let server = Server::start("");
    let fresh = objects(&mut server.database("fresh"));
    let directory = extensions(&mut server.connect("fresh"));
    for (n, released) in scripts(&root, "tests/released").iter().enumerate() {
        if *released == version(&root) {
            continue;
        }
        let script = format!("{PREFIX}{released}.sql");
        fs::copy(root.join("tests/released").join(&script), directory.join(&script))
            .expect("the script can be copied");
        same(&fresh, &upgraded(&server, &format!("from_{n}"), released), released);
    }
}

/// A version without one of the functions of this one, and what adds that: a wrong script is
/// distinguished from a right one.
#[test]
fn wrong_upgrades_would_be_noticed() {
    let server = Server::start("");
    let fresh = objects(&mut server.database("fresh"));
    let directory = extensions(&mut server.connect("fresh"));
    let script =
        fs::read_to_string(repository().join("sql/pg_bloom.sql")).expect("the script can be read");
    let start = script
        .find("CREATE FUNCTION bloom_jaccard(")
        .expect("there is such a function");
    let end = start + script[start..].find("-- ----").expect("a section follows");
    let (before, added, after) = (&script[..start], &script[start..end], &script[end..]);
    let write = |version: &str, text: &str| {
        fs::write(directory.join(format!("{PREFIX}{version}.sql")), text)
            .expect("the script can be written");
    };
    let current = version(&repository());
    let versions = [
        ("0.0.9", added.to_owned(), true),
        ("0.0.8", added.split("COMMENT").next().expect("a text has a start").to_owned(), false),
        ("0.0.7", added.replace("COST 200", "COST 201"), false),
        (
            "0.0.6",
            format!(
                "{added} CREATE FUNCTION bloom_odd(bloom) RETURNS bloom LANGUAGE sql AS 'SELECT $1';"
            ),
            false,
        ),
        (
            "0.0.5",
            format!("{added} ALTER OPERATOR =(bloom, bloom) SET (RESTRICT = neqsel);"),
            false,
        ),
    ];
    for (old, upgrade, right) in versions {
        write(old, &format!("{before}{after}"));
        write(&format!("{old}--{current}"), &upgrade);
        let found = upgraded(&server, &format!("from_{}", old.replace('.', "_")), old);
        if right {
            same(&fresh, &found, old);
        }
        assert_eq!(fresh == found, right, "{old}");
    }
}

#[test]
fn the_library_has_no_functions_for_tests() {
    let server = Server::start_with("", &[("PROFILE", "release")]);
    let error = server
        .database("released")
        .batch_execute(
            "CREATE FUNCTION panics() RETURNS void LANGUAGE c AS 'pg_bloom', 'pg_bloom_panic'",
        )
        .expect_err("there is no such function");
    let state = error.code().expect("the server reports it").code();
    assert_eq!(state, "42883", "{error:?}");
}
