//! Every function of the extension with every sort of odd argument: a result or a clean error,
//! never a crash.

mod odd;

use crate::common::samples::TYPES;
use crate::common::{Random, refused, rows, run, sqlstate, times, value};
use crate::server;
use postgres::Client;
use std::collections::BTreeSet;

/// What a function may answer to odd arguments: a value, or one of these errors. 22004 is for a
/// NULL rate, 22P02 and 22P03 are for malformed filters, 0A000 is for types that can't be elements
/// and for functions that only the executor may call; 42602, 42704, 42809, 42P01 and 42P07 are for
/// names, types and tables of sets, 42703 and 42883 for columns and for keys that they aren't
/// compared with.
const ANSWERS: [&str; 16] = [
    "00000", "0A000", "22004", "22008", "22023", "22P02", "22P03", "42602", "42703", "42704",
    "42804", "42809", "42883", "42P01", "42P07", "54000",
];

/// What the newest releases of PostgreSQL answer to a NULL of type internal.
const NO_CAST: &str = "42846";

/// Calls of each function with odd arguments, if there are as many combinations.
const MOST: usize = 200;

/// A session in a new database with the function `answer(statement)`, which gives the SQLSTATE of a
/// statement.
fn session(name: &str) -> Client {
    let mut client = server().database(name);
    run(&mut client, TYPES);
    run(
        &mut client,
        "CREATE FUNCTION answer(statement text) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN EXECUTE statement; RETURN '00000'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
         SELECT bloom_set_create('texts', 'text', 1000), bloom_set_create('numbers', 'integer', 1000000, 1e-9),
            bloom_set_create('moods', 'mood', 5), bloom_set_create('grows', 'text'),
            bloom_set_create('recent', 'text', 1000, keep => '1 second', renew => true);
         CREATE TABLE listed (a integer, b text) PARTITION BY RANGE (a);
         CREATE TABLE listed_1 PARTITION OF listed FOR VALUES FROM (0) TO (10);
         CREATE TABLE listed_2 PARTITION OF listed DEFAULT;
         INSERT INTO listed SELECT g, g FROM generate_series(1, 20) g;
         CREATE INDEX ON listed USING bloom_filter (a);
         CREATE INDEX ON listed USING bloom_filter (b);
         SET statement_timeout = '20min'; SET pg_bloom.overfill = ignore; SET pg_bloom.max_filter_size = '300MB'",
    );
    client
}

/// A function, aggregate or operator of the extension.
struct Function {
    name: String,
    arguments: Vec<String>,
    /// What pg_proc calls it, `f` or `a`; `o` for an operator.
    sort: String,
    internal: bool,
}

fn functions(client: &mut Client) -> Vec<Function> {
    let sql = "SELECT proname::text, proargtypes::regtype[]::text[], prokind::text,
                      prorettype = 'internal'::regtype OR 'internal'::regtype = ANY (proargtypes::regtype[])
               FROM pg_proc JOIN pg_depend ON objid = pg_proc.oid AND classid = 'pg_proc'::regclass
               WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_bloom')
               UNION ALL
               SELECT oprname::text, ARRAY[oprleft, oprright]::regtype[]::text[], 'o', false
               FROM pg_operator JOIN pg_depend ON objid = pg_operator.oid AND classid = 'pg_operator'::regclass
               WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_bloom')
               ORDER BY 1, 2";
    rows(client, sql)
        .iter()
        .map(|row| Function {
            name: row.get(0),
            arguments: row.get(1),
            sort: row.get(2),
            internal: row.get(3),
        })
        .collect()
}

impl Function {
    /// A statement that calls it.
    fn call(&self, arguments: &[&str]) -> String {
        let call = format!("{}({})", self.name, arguments.join(", "));
        match self.sort.as_str() {
            "o" => format!("SELECT (({}) {} ({})) IS NULL", arguments[0], self.name, arguments[1]),
            "a" => format!("SELECT ({call}) IS NULL FROM generate_series(1, 3)"),
            _ if self.name == "bloom_sizing_table" => format!("SELECT count(*) FROM {call}"),
            _ => format!("SELECT ({call}) IS NULL"),
        }
    }

    /// Odd values of an argument of this type. A set for two billion elements is possible but takes
    /// long.
    fn values(&self, sql_type: &str) -> Vec<&'static str> {
        let is_slow = |value: &str| self.name == "bloom_set_create" && value == "2147483648";
        let is_row = sql_type == "anyelement" && self.name.starts_with("bloom_find");
        odd::values(if is_row { "row" } else { sql_type })
            .iter()
            .copied()
            .filter(|value| !is_slow(value))
            .collect()
    }

    /// Calls with odd arguments: all of them, or `most` at random.
    fn calls(&self, random: &mut Random, most: usize) -> Vec<String> {
        let choices: Vec<Vec<_>> =
            self.arguments.iter().map(|sql_type| self.values(sql_type)).collect();
        let all: usize = choices.iter().map(|values| values.len()).product();
        (0..all.min(most))
            .map(|number| {
                let mut number = if all <= most { number } else { random.below(all) };
                let arguments: Vec<&str> = choices
                    .iter()
                    .map(|values| {
                        let value = values[number % values.len()];
                        number /= values.len();
                        value
                    })
                    .collect();
                self.call(&arguments)
            })
            .collect()
    }
}

/// Runs the calls that `make` gives of every function, and asserts that each gave one of these
/// answers. Returns those that were given, and how many calls there were.
fn call_everything(
    client: &mut Client,
    allowed: &[&str],
    mut make: impl FnMut(&Function) -> Vec<String>,
) -> (BTreeSet<String>, usize) {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let (mut given, mut wrong, mut number) = (BTreeSet::new(), Vec::new(), 0);
    for function in functions(client) {
        let calls = make(&function);
        number += calls.len();
        let sql = "SELECT answer(statement) FROM unnest($1::text[]) WITH ORDINALITY AS t (statement, n) ORDER BY n";
        let answers = client
            .query(sql, &[&calls])
            .unwrap_or_else(|e| panic!("{}: {e:?}", function.name));
        for (answer, call) in answers.iter().map(|row| row.get::<_, String>(0)).zip(calls) {
            if answer == NO_CAST && call.contains("NULL::internal") {
                continue;
            }
            if !allowed.contains(&answer.as_str()) {
                wrong.push(format!("{answer} for {call}"));
            }
            given.insert(answer);
        }
    }
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(value::<i32>(client, "SELECT pg_backend_pid()"), pid);
    println!("{number} calls");
    (given, number)
}

#[test]
fn odd_arguments_give_a_value_or_a_clean_error() {
    let mut client = session("odd");
    let mut random = Random(2);
    let (given, number) =
        call_everything(&mut client, &ANSWERS, |function| function.calls(&mut random, times(MOST)));
    // Rare answers are those to rare arguments, which are at random.
    assert!(given.len() >= ANSWERS.len() - 4, "{given:?}");
    assert!(number >= 5_000, "only {number} calls");
}

/// Arguments of any type whatever: beside the other answers, there is no such function or more than
/// one, or it is one of PostgreSQL's own, which has its own errors.
#[test]
fn arguments_of_other_types_give_a_value_or_a_clean_error() {
    const OF_POSTGRESQL: [&str; 11] = [
        "22000", "22003", "22007", "22026", "2202E", "42601", "42725", "42804", "42809", "42883",
        "42P18",
    ];
    const TYPES_OF_ARGUMENTS: [&str; 9] = [
        "bloom",
        "bigint",
        "integer",
        "double precision",
        "text",
        "\"char\"",
        "bytea",
        "anyelement",
        "anyarray",
    ];
    let untyped = ["NULL", "'x'", "'\\x'", "'{}'", "'1'", "DEFAULT", "*"];
    let mut client = session("mistyped");
    let mut random = Random(4);
    let allowed = [&ANSWERS[..], &OF_POSTGRESQL[..]].concat();
    let (given, number) = call_everything(&mut client, &allowed, |function| {
        (0..100)
            .map(|_| {
                let arguments: Vec<&str> = (0..function.arguments.len())
                    .map(|_| match random.below(12) {
                        0 => *random.pick(&untyped),
                        _ => {
                            let sql_type = *random.pick::<&str>(&TYPES_OF_ARGUMENTS);
                            *random.pick(&function.values(sql_type))
                        }
                    })
                    .collect();
                function.call(&arguments)
            })
            .collect()
    });
    assert!(given.contains("00000") && given.contains("42883"), "{given:?}");
    assert!(number >= 8000, "only {number} calls");
}

#[test]
fn odd_arguments_under_odd_settings_give_a_value_or_a_clean_error() {
    let mut client = session("settings");
    for settings in [
        "SET pg_bloom.max_filter_size = '1kB'; SET pg_bloom.overfill = error",
        "SET pg_bloom.default_fpr = 0.5; SET pg_bloom.overfill = warn",
        "SET pg_bloom.default_fpr = 1e-9; SET work_mem = '64kB'",
    ] {
        run(
            &mut client,
            "RESET ALL; SET client_min_messages = error; SET statement_timeout = '20min'",
        );
        run(&mut client, settings);
        let mut random = Random(2);
        let (given, _) =
            call_everything(&mut client, &ANSWERS, |function| function.calls(&mut random, 30));
        assert!(given.contains("00000") && given.contains("22023"), "{given:?}");
    }
}

#[test]
fn functions_of_aggregates_refuse_to_be_called_by_hand() {
    let mut client = session("internals");
    // The handler of the access method is no function of an aggregate: its argument means nothing.
    let is_one = |f: &Function| f.internal && f.name != "bloom_filter_handler";
    let internals: Vec<Function> = functions(&mut client).into_iter().filter(is_one).collect();
    assert_eq!(internals.len(), 40);
    let mut calls: Vec<String> =
        internals.iter().flat_map(|f| f.calls(&mut Random(3), 40)).collect();
    calls.extend(
        [
            "bloom_agg_final(bloom_agg_transition(NULL::internal, 1))",
            "bloom_agg_serialise(bloom_agg_transition(NULL::internal, 'x'::text, 100))",
            "bloom_agg_combine(bloom_agg_deserialise('\\x', NULL::internal), NULL::internal)",
            "bloom_agg_final(NULL::internal)",
            "bloom_union_agg_combine(bloom_union_agg_transition(NULL::internal, bloom_empty()), NULL::internal)",
            "bloom_merge_agg_serialise(bloom_merge_agg_deserialise('\\x', NULL::internal))",
            "bloom_intersection_agg_final(bloom_merge_agg_deserialise(bloom_empty()::bytea, NULL::internal))",
            "bloom_recv(NULL::internal)",
            "counting_bloom_agg_final(counting_bloom_agg_transition(NULL::internal, 1, 10))",
            "counting_bloom_agg_serialise(counting_bloom_agg_transition(NULL::internal, 'x'::text, 100, 0.1))",
            "counting_bloom_agg_combine(counting_bloom_agg_deserialise('\\x', NULL::internal), NULL::internal)",
            "counting_bloom_union_agg_transition(NULL::internal, counting_bloom_empty())",
        ]
        .map(|call| format!("SELECT {call} IS NULL")),
    );
    for call in calls {
        // PostgreSQL lets nobody write a value of type internal, the newest not even a NULL; the
        // functions would refuse it themselves with 55000.
        let state = sqlstate(&mut client, &call);
        assert!(["0A000", "55000", NO_CAST].contains(&state.as_str()), "{state} for {call}");
    }
    for misuse in [
        "CREATE AGGREGATE odd (bloom) (SFUNC = bloom_union, STYPE = bloom, FINALFUNC = bloom_agg_final)",
        "CREATE AGGREGATE odd (bloom) (SFUNC = bloom_union, STYPE = bloom, FINALFUNC = counting_bloom_agg_final)",
        "CREATE AGGREGATE odd (integer) (SFUNC = bloom_agg_transition, STYPE = bytea)",
        "CREATE AGGREGATE odd (integer) (SFUNC = bloom_agg_transition, STYPE = internal, FINALFUNC = bloom_send)",
        "CREATE FUNCTION odd(integer) RETURNS internal LANGUAGE sql AS 'SELECT bloom_agg_transition(NULL, $1)'",
    ] {
        let state = sqlstate(&mut client, misuse);
        assert!(["42883", "42P13", "42804"].contains(&state.as_str()), "{state} for {misuse}");
    }
}

#[test]
fn settings_refuse_what_they_cannot_be() {
    let mut client = session("refused");
    for setting in [
        "default_fpr = 0",
        "default_fpr = 1",
        "default_fpr = -1",
        "default_fpr = 'NaN'",
        "default_fpr = 'Infinity'",
        "default_fpr = 1e-300",
        "max_filter_size = 0",
        "max_filter_size = -1",
        "max_filter_size = '512MB'",
        "overfill = maybe",
    ] {
        refused(&mut client, "22023", &format!("SET pg_bloom.{setting}"));
    }
    for setting in [
        "default_fpr = 1e-9",
        "max_filter_size = '511MB'",
        "max_filter_size = 1",
        "overfill = error",
    ] {
        run(&mut client, &format!("SET pg_bloom.{setting}"));
    }
    run(&mut client, "CREATE ROLE nobody_special; SET ROLE nobody_special");
    refused(&mut client, "42501", "SET pg_bloom.max_filter_size = '1MB'");
    run(&mut client, "SET pg_bloom.default_fpr = 0.5; RESET ROLE; DROP ROLE nobody_special");
}
