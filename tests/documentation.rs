//! The documentation is true: psql runs every SQL block of it, and prints what the document says.
//!
//! A document's blocks run in order, in one session of psql and in a database of its own. A block
//! in a `text` fence that follows an `sql` block with nothing but blank lines between is what psql
//! prints for it, errors and warnings included. An `sql` block without one must run without any.
//!
//! With `DOCUMENTATION=write` in the environment the outputs are written into the documents
//! instead, and the test fails where that changed one, so that somebody reads the difference.

mod common;

use common::page::{Example, examples, rewritten, trimmed, writes};
use common::{Server, column, feed, output, run, value};
use postgres::Client;
use std::io::{Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// This needs more than one server, and has a test of its own.
const ELSEWHERE: [&str; 1] = ["distributed.md"];
/// These teach by examples: having none would mean that this test doesn't see them.
const WITH_EXAMPLES: [&str; 4] = [
    "README.md",
    "docs/reference.md",
    "docs/cookbook.md",
    "docs/faq.md",
];
/// What psql says when something went wrong, or may have.
const COMPLAINTS: [&str; 6] = [
    "ERROR:",
    "FATAL:",
    "PANIC:",
    "WARNING:",
    "invalid command",
    "psql:",
];
/// Written between the outputs of blocks.
const MARK: &str = "-- the end of a block --";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documents whose SQL is run, as paths relative to the repository.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .expect("docs can be read")
        .map(|entry| entry.expect("docs can be read").file_name())
        .filter(|name| Path::new(name).extension().is_some_and(|e| e == "md"))
        .filter(|name| !ELSEWHERE.iter().any(|e| name == e))
        .map(|name| Path::new("docs").join(name))
        .collect();
    found.push("README.md".into());
    found.sort();
    found
}

/// Whether the last statement of a block has an end.
fn complete(sql: &str) -> bool {
    let last = sql.lines().last().unwrap_or_default();
    last.split(" --").next().unwrap_or_default().trim_end().ends_with(';') || last.starts_with('\\')
}

/// What psql prints for each of the examples.
fn outputs(server: &Server, database: &str, examples: &[Example]) -> Vec<String> {
    let mut script = String::new();
    for example in examples {
        script += &format!("{}\n\\echo {MARK}\n", example.code);
    }
    let (mut reader, writer) = pipe().expect("a pipe can be made");
    let mut psql = server.program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--dbname", database])
        .env("PGCLIENTENCODING", "UTF8")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        // One pipe for both: errors belong where they happened.
        .stdout(writer.try_clone().expect("a pipe can be shared"))
        .stderr(writer);
    let mut child = psql.spawn().expect("psql runs");
    // It holds the writing ends of the pipe.
    drop(psql);
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let writing = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let mut printed = String::new();
    reader.read_to_string(&mut printed).expect("psql prints UTF-8");
    writing
        .join()
        .expect("the writer ends")
        .expect("psql reads all of the script");
    let status = child.wait().expect("psql ends");
    assert!(status.success(), "psql failed: {printed}");
    let mut outputs: Vec<String> = printed.split(&format!("{MARK}\n")).map(trimmed).collect();
    let rest = outputs.pop().unwrap_or_default();
    assert_eq!(
        (outputs.len(), rest.as_str()),
        (examples.len(), ""),
        "{database}: a block has no end in {printed}"
    );
    outputs
}

/// The name of the database that a document's blocks run in.
fn database_of(document: &Path) -> String {
    document
        .display()
        .to_string()
        .to_lowercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// What is wrong with a document, in words.
fn check(server: &Server, document: &Path) -> Vec<String> {
    let name = document.display().to_string();
    let text = std::fs::read_to_string(root().join(document)).expect("a document can be read");
    let lines: Vec<&str> = text.lines().collect();
    let examples = examples(&name, &lines, "sql");
    if WITH_EXAMPLES.contains(&name.as_str()) {
        let compared = examples.iter().filter(|e| e.output.is_some()).count();
        assert!(
            compared >= 5,
            "{name} has {} SQL blocks and {compared} outputs: that can't be",
            examples.len()
        );
    }
    if examples.is_empty() {
        return Vec::new();
    }
    if let Some(example) = examples.iter().find(|e| !complete(&e.code)) {
        panic!("{name}:{}: the last statement has no end", example.line);
    }
    let database = database_of(document);
    let mut client = server.empty_database(&database, "");
    if !text.contains("\nCREATE EXTENSION pg_bloom;") {
        run(&mut client, "CREATE EXTENSION pg_bloom");
    }
    let outputs = outputs(server, &database, &examples);
    if writes() {
        let new = rewritten(&lines, &examples, &outputs);
        std::fs::write(root().join(document), &new).expect("a document can be written");
        let unchanged = trimmed(&new) == trimmed(&text);
        return if unchanged {
            Vec::new()
        } else {
            vec![format!("{name}: new outputs were written")]
        };
    }
    let mut wrong = Vec::new();
    for (example, output) in examples.iter().zip(&outputs) {
        let place = format!("{name}:{}", example.line);
        match &example.output {
            Some(range) => {
                let expected = trimmed(&lines[range.clone()].join("\n"));
                if expected != *output {
                    wrong.push(format!(
                        "{place}: psql printed\n{output}\nwhere the document has\n{expected}\n"
                    ));
                }
            }
            None => wrong.extend(
                output
                    .lines()
                    .filter(|line| COMPLAINTS.iter().any(|c| line.starts_with(c)))
                    .map(|line| format!("{place}: {line}")),
            ),
        }
    }
    wrong
}

#[test]
fn every_sql_block_does_what_the_documents_say() {
    let documents = documents();
    for expected in WITH_EXAMPLES {
        assert!(documents.iter().any(|d| d == Path::new(expected)), "{expected} is missing");
    }
    let server = Server::start("timezone = 'UTC'");
    let wrong: Vec<String> = documents
        .iter()
        .flat_map(|document| check(&server, document))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for document in WITH_EXAMPLES {
        restore_loses_nothing(&server, Path::new(document));
    }
}

/// The tables of a database, with their numbers of rows.
fn row_counts(client: &mut Client) -> Vec<(String, i64)> {
    let tables = "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'm')
                  AND relnamespace = 'public'::regnamespace ORDER BY 1";
    let tables: Vec<String> = column(client, tables);
    tables
        .into_iter()
        .map(|table| (table.clone(), value(client, &format!("SELECT count(*) FROM {table}"))))
        .collect()
}

/// A restore has an empty `search_path`: what a document teaches must not depend on it.
fn restore_loses_nothing(server: &Server, document: &Path) {
    let database = database_of(document);
    let restored = format!("{database}_restored");
    let mut after = server.empty_database(&restored, "TEMPLATE template0");
    let dump = output(server.program("pg_dump").arg(&database));
    feed(
        server
            .program("psql")
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &restored]),
        &dump,
    );
    let before = row_counts(&mut server.connect(&database));
    assert!(
        before.len() > 2 && before.iter().all(|(_, rows)| *rows > 0),
        "{database} has {before:?}"
    );
    assert_eq!(row_counts(&mut after), before, "{database}");
}

#[test]
fn a_wrong_output_and_an_unexpected_error_are_seen() {
    let lines: Vec<&str> =
        "```sql\nSELECT 1 AS x;\n```\n\n```text\n x\n---\n 2\n(1 row)\n```\n\nProse.\n\n\
        ```sql\nSELECT 1/0;\n```\n\nMore prose.\n\n```text\na figure\n```"
            .lines()
            .collect();
    let examples = examples("test", &lines, "sql");
    let compared: Vec<(usize, bool)> =
        examples.iter().map(|e| (e.line, e.output.is_some())).collect();
    assert_eq!(compared, [(2, true), (15, false)]);
    let server = Server::start("");
    assert!(examples.iter().all(|e| complete(&e.code)));
    let outputs = outputs(&server, "postgres", &examples);
    assert_eq!(outputs, [" x\n---\n 1\n(1 row)", "ERROR:  division by zero"]);
    let new = rewritten(&lines, &examples, &outputs);
    assert_eq!(new, lines.join("\n").replace(" 2\n", " 1\n") + "\n");
}
