//! Installing the extension changes no statement without a filter in it: whatever the parser makes
//! of an operator, an error included, it makes of it with the extension as well.

use crate::common::{column, run, sqlstate};
use crate::server;
use postgres::Client;
use std::collections::BTreeSet;

/// Types of each sort that PostgreSQL doesn't have by itself.
const MORE_TYPES: &str = "
    CREATE TYPE mood AS ENUM ('good', 'bad');
    CREATE TYPE pair AS (a integer, b text);
    CREATE TYPE textrange AS RANGE (SUBTYPE = text);
    CREATE DOMAIN label AS text;
    CREATE DOMAIN labels AS text[];
    CREATE DOMAIN document AS jsonb;";

/// Extensions with operators of the same names. Where one isn't there it is left out.
const EXTENSIONS: [&str; 5] = ["citext", "hstore", "ltree", "cube", "seg"];

/// Operands without a type: two literals, a NULL.
const UNTYPED: [&str; 3] = ["'x'", "'{}'", "NULL"];

/// A database with more types, and contrib's extensions if these are asked for.
fn prepare(name: &str, contrib: bool) -> Client {
    let mut client = server().empty_database(name, "");
    run(&mut client, MORE_TYPES);
    run(&mut client, MEANING);
    if contrib {
        for extension in EXTENSIONS {
            // 0A000 and 58P01: it isn't installed.
            let state = sqlstate(&mut client, &format!("CREATE EXTENSION {extension}"));
            assert!(
                ["00000", "0A000", "58P01"].contains(&state.as_str()),
                "{state} for {extension}"
            );
        }
    }
    client
}

/// Gives what the parser makes of an expression: the types of its parameters and of its result, or
/// an SQLSTATE. What is prepared outlives an error.
const MEANING: &str = "
    CREATE FUNCTION meaning(expression text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        result text;
        parameters regtype[];
    BEGIN
        DEALLOCATE ALL;
        EXECUTE 'PREPARE it AS SELECT pg_typeof(' || expression || ')::text';
        SELECT parameter_types INTO parameters FROM pg_prepared_statements WHERE name = 'it';
        EXECUTE 'EXECUTE it' || coalesce('(' || repeat('NULL, ', cardinality(parameters) - 1) || 'NULL)', '') INTO result;
        RETURN format('%s → %s', parameters, result);
    EXCEPTION WHEN OTHERS THEN
        RETURN SQLSTATE;
    END $$;";

/// The types of the operands of the operators of this name, and one of each other sort.
fn types(client: &mut Client, operator: &str) -> Vec<String> {
    let sql = format!(
        "SELECT DISTINCT format_type(t, NULL) FROM (
             SELECT unnest(ARRAY[oprleft, oprright]) AS t FROM pg_operator WHERE oprname = '{operator}'
             UNION SELECT unnest(ARRAY[
                 'integer', 'bigint', 'text', 'varchar', 'char', 'name', 'jsonb', 'json', 'bytea', 'point', 'integer[]', 'text[]',
                 'varchar[]', 'jsonb[]', 'int4range', 'numrange', 'record', 'mood', 'mood[]', 'pair', 'textrange', 'label', 'labels',
                 'document', '\"char\"', 'bpchar', 'numeric', 'uuid', 'date', 'oid', 'regclass', 'void'
             ]::regtype[]::oid[])
             UNION SELECT oid FROM pg_type WHERE typname = 'int4multirange'
         ) AS s JOIN pg_type ON pg_type.oid = t WHERE typtype <> 'p' OR typname IN ('record', 'void') ORDER BY 1"
    );
    column(client, &sql)
}

/// What the parser makes of each of these expressions.
fn meaning_of_each(client: &mut Client, expressions: &[String]) -> Vec<String> {
    let sql = "SELECT meaning(expression) FROM unnest($1::text[]) WITH ORDINALITY AS t (expression, n) ORDER BY n";
    client
        .query(sql, &[&expressions])
        .expect("meaning() takes any expression")
        .iter()
        .map(|row| row.get(0))
        .collect()
}

/// Compares what the parser makes of all statements with these operators in two databases. Where
/// these types aren't all types, an operand is of one of them, or neither has a type. Returns what
/// came out.
fn compare(
    before: &mut Client,
    after: &mut Client,
    operators: &BTreeSet<String>,
    among: Option<&BTreeSet<String>>,
) -> BTreeSet<String> {
    let (mut different, mut statements, mut meanings) = (Vec::new(), 0, BTreeSet::new());
    // A statement with an operator that nobody else has is one about filters.
    let known: BTreeSet<String> = column::<String>(before, OPERATORS).into_iter().collect();
    assert_eq!(operators.difference(&known).map(String::as_str).collect::<Vec<_>>(), ["@=>"]);
    for operator in operators.intersection(&known) {
        let mut operands: Vec<String> = UNTYPED.map(str::to_owned).to_vec();
        operands.extend(types(before, operator).into_iter().map(|t| format!("NULL::{t}")));
        let forms = |i: usize| std::iter::once(format!("${i}")).chain(operands.iter().cloned());
        let sides = |left: String| {
            forms(if left == "$1" { 2 } else { 1 }).map(move |right| (left.clone(), right))
        };
        let is_asked = |(left, right): &(String, String)| {
            let types = [left, right].map(|operand| operand.strip_prefix("NULL::"));
            types == [None, None]
                || among.is_none_or(|among| types.iter().flatten().any(|&t| among.contains(t)))
        };
        let expressions: Vec<String> = forms(1)
            .flat_map(sides)
            .filter(is_asked)
            .map(|(left, right)| format!("{left} {operator} {right}"))
            .collect();
        let [expected, found] =
            [&mut *before, &mut *after].map(|client| meaning_of_each(client, &expressions));
        for ((sql, expected), found) in expressions.iter().zip(expected).zip(found) {
            if expected != found {
                different.push(format!("{sql}: {expected} became {found}"));
            }
            meanings.insert(expected);
            statements += 1;
        }
    }
    println!("{statements} statements, {} meanings, {} differ", meanings.len(), different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    meanings
}

const OPERATORS: &str = "SELECT DISTINCT oprname::text FROM pg_operator WHERE oprkind = 'b'";

/// The names of the extension's operators.
fn own_operators(client: &mut Client) -> BTreeSet<String> {
    let sql = format!(
        "{OPERATORS} AND oid IN (SELECT objid FROM pg_depend JOIN pg_extension AS e ON refobjid = e.oid
             WHERE classid = 'pg_operator'::regclass AND extname = 'pg_bloom')"
    );
    let own: BTreeSet<String> = column(client, &sql).into_iter().collect();
    assert!(own.len() >= 10, "that can't be all: {own:?}");
    own
}

#[test]
fn operators_of_postgresql_mean_what_they_meant() {
    let (mut before, mut after) = (prepare("before", false), prepare("after", false));
    run(&mut after, "CREATE EXTENSION pg_bloom");
    let own = own_operators(&mut after);
    let meanings = compare(&mut before, &mut after, &own, None);
    assert!(["42725", "42883"].iter().all(|state| meanings.contains(*state)), "{meanings:?}");
    // Others could only change if the extension had made an operator of their name.
    let [before, after] = [&mut before, &mut after]
        .map(|client| column(client, OPERATORS).into_iter().collect::<BTreeSet<String>>());
    assert_eq!(after.difference(&before).map(String::as_str).collect::<Vec<_>>(), ["@=>"]);
    assert!(before.is_subset(&after));
}

#[test]
fn operators_of_contrib_mean_what_they_meant() {
    let (mut before, mut after) = (prepare("contrib_before", true), prepare("contrib_after", true));
    run(&mut after, "CREATE EXTENSION pg_bloom");
    let own = own_operators(&mut after);
    let sql = "SELECT format_type(t.oid, NULL) FROM pg_type AS t JOIN pg_depend ON objid = t.oid AND deptype = 'e'
        WHERE classid = 'pg_type'::regclass";
    let of_contrib: BTreeSet<String> = column::<String>(&mut before, sql).into_iter().collect();
    compare(&mut before, &mut after, &own, Some(&of_contrib));
}
