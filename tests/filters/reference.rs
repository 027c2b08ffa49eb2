//! docs/reference.md has every object of the extension, as it is in the catalogs, and none that
//! isn't there.
//!
//! Signatures are code spans with an arrow: `bloom_add(filter bloom, element) → bloom`,
//! `bloom || element → bloom`. In them `element` stands for two overloads: anyelement and text.

use crate::common::{column, rows, run};
use crate::server;
use postgres::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The documents whose names of objects must be there.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "docs/cookbook.md",
    "docs/distributed.md",
    "docs/faq.md",
    "docs/reference.md",
    "docs/sets.md",
];

/// Names that Parquet gives: where a filter is in a file.
const PARQUET_FIELDS: [&str; 2] = ["bloom_filter_length", "bloom_filter_offset"];

/// What the extension consists of.
const MEMBERS: &str = "
    CREATE TEMP VIEW members AS
    SELECT classid, objid FROM pg_depend
    WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
        AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_bloom');
    CREATE FUNCTION pg_temp.shown(type regtype, name text) RETURNS text LANGUAGE sql AS $$
        SELECT CASE WHEN name = 'element' AND type IN ('anyelement', 'text') THEN 'element'
                    ELSE concat_ws(' ', nullif(name, ''), type) END
    $$;
    CREATE FUNCTION pg_temp.operand(type regtype) RETURNS text LANGUAGE sql AS $$
        SELECT CASE WHEN type IN ('anyelement', 'text') THEN 'element' ELSE type::text END
    $$";

/// Functions and aggregates: name(arguments) → result. A default is shown without its cast.
const FUNCTIONS: &str = "
    SELECT format('%s(%s) → %s', proname, (
        SELECT string_agg(
            pg_temp.shown(a, proargnames[i])
                || coalesce(' DEFAULT ' || regexp_replace(pg_get_function_arg_default(p.oid, i::int), '::.*', ''), ''),
            ', ' ORDER BY i)
        FROM unnest(proargtypes) WITH ORDINALITY AS t (a, i)
    ), pg_get_function_result(p.oid))
    FROM pg_proc p JOIN members ON classid = 'pg_proc'::regclass AND objid = p.oid";

/// Operators: left operator right → result. An operand that can be any element has no name, so its
/// type tells.
const OPERATORS: &str = "
    SELECT format('%s %s %s → %s', pg_temp.operand(oprleft), oprname, pg_temp.operand(oprright), oprresult::regtype)
    FROM pg_operator o JOIN members ON classid = 'pg_operator'::regclass AND objid = o.oid";

/// Everything else.
const OTHERS: &str = "
    SELECT CASE classid
        WHEN 'pg_type'::regclass THEN (SELECT 'type ' || typname FROM pg_type t WHERE t.oid = objid)
        WHEN 'pg_cast'::regclass THEN (
            SELECT format('CAST (%s AS %s)', castsource::regtype, casttarget::regtype) FROM pg_cast c WHERE c.oid = objid)
        WHEN 'pg_opclass'::regclass THEN (
            SELECT format('%s USING %s', opcname, amname) FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod
            WHERE o.oid = objid)
        WHEN 'pg_opfamily'::regclass THEN (
            SELECT format('%s USING %s', opfname, amname) FROM pg_opfamily o JOIN pg_am a ON a.oid = opfmethod
            WHERE o.oid = objid)
        WHEN 'pg_am'::regclass THEN (SELECT 'access method ' || amname FROM pg_am a WHERE a.oid = objid)
        ELSE 'unknown: ' || pg_describe_object(classid, objid, 0) END
    FROM members WHERE classid NOT IN ('pg_proc'::regclass, 'pg_operator'::regclass)
        -- From PostgreSQL 18 on array types are members too.
        AND NOT EXISTS (SELECT FROM pg_type t WHERE classid = 'pg_type'::regclass AND t.oid = objid AND t.typelem <> 0)
    UNION SELECT name FROM pg_settings WHERE category = 'Customized Options' AND name NOT LIKE 'plpgsql.%'";

/// Columns of functions that return rows: the function, and the column as a row of a table begins.
const COLUMNS: &str = "
    SELECT proname, format('| `%s` | `%s` |', proargnames[i], proallargtypes[i]::regtype)
    FROM pg_proc p JOIN members ON classid = 'pg_proc'::regclass AND objid = p.oid, generate_subscripts(proargmodes, 1) i
    WHERE proargmodes[i] IN ('o', 't') ORDER BY p.oid, i";

fn client(name: &str) -> Client {
    let mut client = server().database(name);
    // Settings are there once the library is loaded.
    run(&mut client, "LOAD 'pg_bloom'");
    run(&mut client, MEMBERS);
    client
}

fn read(document: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{document}: {e}"))
}

/// Code spans outside fenced blocks. In tables a bar is written with a backslash.
fn code_spans(text: &str) -> BTreeSet<String> {
    let outside = text.split("\n```").step_by(2);
    let lines = outside.flat_map(str::lines);
    lines
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .map(|span| span.replace("\\|", "|"))
        .collect()
}

#[test]
fn the_reference_has_every_object_and_no_other() {
    let mut client = client("reference_reference");
    let mut signatures: BTreeMap<String, usize> = BTreeMap::new();
    for sql in [FUNCTIONS, OPERATORS] {
        column::<String>(&mut client, sql)
            .into_iter()
            .for_each(|s| *signatures.entry(s).or_default() += 1);
    }
    assert!(signatures.len() > 60, "that can't be all: {signatures:#?}");
    for (signature, overloads) in &signatures {
        // An argument may be named so, too.
        let signature_without = signature.replace("element regtype", "");
        let words = signature_without.split(|c: char| !c.is_alphanumeric() && c != '_');
        let expected = if words.into_iter().any(|word| word == "element") { 2 } else { 1 };
        assert_eq!(*overloads, expected, "{signature}");
    }
    let documented = code_spans(&read("docs/reference.md"));
    let shown: BTreeSet<&String> = documented.iter().filter(|span| span.contains(" → ")).collect();
    let actual: BTreeSet<&String> = signatures.keys().collect();
    let missing: Vec<_> = actual.difference(&shown).collect();
    let unknown: Vec<_> = shown.difference(&actual).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing: {missing:#?}\nnot there: {unknown:#?}"
    );
    let others: Vec<String> = column(&mut client, OTHERS);
    assert!(others.len() >= 8, "that can't be all: {others:?}");
    let missing: Vec<_> = others.iter().filter(|o| !documented.contains(*o)).collect();
    assert!(missing.is_empty(), "missing: {missing:#?}");
}

#[test]
fn the_reference_has_every_column() {
    let mut client = client("reference_columns");
    let reference = read("docs/reference.md");
    let columns = rows(&mut client, COLUMNS);
    assert!(columns.len() > 20, "that can't be all");
    let mut missing = Vec::new();
    for row in columns {
        let (function, cell): (String, String) = (row.get(0), row.get(1));
        let heading = format!("\n### {function}\n");
        let section = reference
            .split_once(&heading)
            .map_or("", |(_, rest)| rest.split("\n##").next().unwrap_or(rest));
        if !section.contains(&cell) {
            missing.push(format!("{function}: {cell}"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Operators that the comment of their operator class doesn't name. It has SQL's own names for two,
/// and nothing about `@=>`, which users don't write.
const WITHOUT_COMMENT: &str = "
    SELECT opcname || ': ' || name
    FROM pg_opclass AS c
    JOIN members ON classid = 'pg_opclass'::regclass AND objid = c.oid
    JOIN pg_am AS a ON a.oid = opcmethod AND amname = 'bloom_filter'
    JOIN pg_amop ON amopfamily = opcfamily AND amoplefttype = opcintype
    JOIN pg_operator AS o ON o.oid = amopopr,
    LATERAL (SELECT CASE oprname WHEN '~~' THEN 'LIKE' WHEN '~~*' THEN 'ILIKE' ELSE oprname END) AS shown (name)
    WHERE oprname <> '@=>'
        AND name <> ALL (string_to_array(replace(obj_description(c.oid, 'pg_opclass'), ',', ''), ' '))";

#[test]
fn comments_name_the_operators_of_their_classes() {
    let mut client = client("reference_comments");
    assert_eq!(column::<String>(&mut client, WITHOUT_COMMENT), Vec::<String>::new());
}

/// Words that look like names of ours, anywhere in a document.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.ends_with(".sql"))
        .filter(|word| {
            word.starts_with("bloom_")
                || word.starts_with("counting_bloom_")
                || word.starts_with("pg_bloom.")
        })
        .collect()
}

#[test]
fn documents_name_only_what_is_there() {
    let mut client = client("reference_names");
    let known: BTreeSet<String> = column::<String>(
        &mut client,
        "SELECT proname::text FROM pg_proc JOIN members ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid
         UNION SELECT opcname FROM pg_opclass JOIN members ON classid = 'pg_opclass'::regclass AND objid = pg_opclass.oid
         UNION SELECT typname FROM pg_type JOIN members ON classid = 'pg_type'::regclass AND objid = pg_type.oid
         UNION SELECT amname FROM pg_am JOIN members ON classid = 'pg_am'::regclass AND objid = pg_am.oid
         UNION SELECT name FROM pg_settings",
    )
    .into_iter()
    .collect();
    for document in DOCUMENTS {
        let text = read(document);
        let names = names(&text);
        assert!(names.len() > 3, "{document} names only {names:?}");
        let unknown: Vec<_> = names
            .iter()
            .filter(|name| !known.contains(**name) && !PARQUET_FIELDS.contains(name))
            .collect();
        assert!(unknown.is_empty(), "{document} names what isn't there: {unknown:?}");
    }
}
