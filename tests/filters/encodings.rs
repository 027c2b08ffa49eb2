//! A filter that is moved to a database with another encoding finds the same characters, or says
//! that it can't.

use crate::common::{LAYOUTS, run, sqlstate, state_of, value};
use crate::server;
use postgres::Client;

/// Types that share the key kind text. `letter` is an enum of the elements.
const TEXT_TYPES: [&str; 6] = [
    "text",
    "varchar",
    "varchar(40)",
    "char(40)",
    "name",
    "letter",
];

fn database(name: &str, encoding: &str, elements: &[&str]) -> Client {
    let mut client = server()
        .empty_database(name, &format!("ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"));
    let labels: Vec<String> = elements.iter().map(|element| format!("'{element}'")).collect();
    run(
        &mut client,
        &format!(
            "CREATE EXTENSION pg_bloom;
             CREATE TYPE letter AS ENUM ({});
             CREATE TYPE words AS RANGE (subtype = text);
             CREATE TYPE pair AS (a integer, b text);
             CREATE TYPE numbers AS (a integer, b numeric);",
            labels.join(", ")
        ),
    );
    assert_eq!(value::<String>(&mut client, "SHOW server_encoding"), encoding);
    client
}

/// The value of an expression of type `bloom`, as bytes.
fn bytes(client: &mut Client, filter: &str) -> Vec<u8> {
    value(client, &format!("SELECT ({filter})::bytea"))
}

/// The result of an expression about `f`, a filter given as bytes: a value, or the SQLSTATE of the
/// error.
fn ask(client: &mut Client, filter: &[u8], expression: &str) -> Result<bool, String> {
    let sql = format!("SELECT {expression} FROM (SELECT $1::bytea::bloom AS f) AS moved");
    client
        .query_one(&sql, &[&filter])
        .map(|row| row.get(0))
        .map_err(|e| state_of(&e))
}

/// Filters of an array of elements as a type of text: of each layout, sparse and dense, built in
/// different ways.
fn filters(elements: &[&str], sql_type: &str) -> Vec<String> {
    let array = format!("ARRAY['{}']::{sql_type}[]", elements.join("', '"));
    let sizes = ["1000000, 0.01", "1, 1e-5", "NULL, 0.01"];
    let mut filters: Vec<String> = LAYOUTS
        .iter()
        .flat_map(|layout| {
            sizes.map(|size| format!("bloom_from_array({array}, {size}, '{layout}')"))
        })
        .collect();
    filters.push(format!("bloom_add_all(bloom_empty(1000), {array})"));
    filters.push(format!("SELECT bloom_agg(x, 1000) FROM unnest({array}) AS x"));
    filters.push(format!("SELECT bloom_agg(x) FROM unnest({array}) AS x"));
    let each: Vec<String> = elements
        .iter()
        .map(|element| format!("'{element}'::{sql_type}"))
        .collect();
    filters.push(format!("bloom_empty(1000) || {}", each.join(" || ")));
    filters
}

#[test]
fn text_is_the_same_element_in_every_encoding() {
    let everywhere = [
        ("LATIN1", vec!["é", "ß", "ASCII", "Ünïcödé ÿ", "b"]),
        ("WIN1251", vec!["ж", "Ы", "ASCII", "щётка", "b"]),
        ("EUC_JP", vec!["あ", "漢字", "ASCII", "カナ", "b"]),
        ("WIN1252", vec!["€", "é", "ASCII", "œuvre", "b"]),
    ];
    for (encoding, elements) in everywhere {
        let name = encoding.to_lowercase();
        let databases = [encoding, "UTF8", "SQL_ASCII"]
            .map(|e| database(&format!("text_{name}_{}", e.to_lowercase()), e, &elements));
        check_text(databases, &elements);
    }
}

/// Asserts that filters built in each database are the same, and answer the same, in each.
fn check_text(mut databases: [Client; 3], elements: &[&str]) {
    for sql_type in TEXT_TYPES {
        for filter in filters(elements, sql_type) {
            let built: Vec<Vec<u8>> =
                databases.iter_mut().map(|client| bytes(client, &filter)).collect();
            assert!(built[0] == built[1] && built[1] == built[2], "{filter}");
            for client in &mut databases {
                for element in elements {
                    let found = ask(client, &built[0], &format!("f @> '{element}'::{sql_type}"));
                    assert_eq!(found, Ok(true), "{element}::{sql_type} in {filter}");
                }
            }
        }
        let exact =
            format!("bloom_from_array(ARRAY['{}']::{sql_type}[], 1000000)", elements.join("', '"));
        let exact = bytes(&mut databases[0], &exact);
        for client in &mut databases {
            let absent =
                ask(client, &exact, "f @> 'Ascii'::text OR f @> 'c'::text OR f @> ''::text");
            assert_eq!(absent, Ok(false), "{sql_type}");
        }
    }
}

#[test]
fn text_types_find_each_other_across_encodings() {
    let elements = ["é", "ß", "plain"];
    let mut latin1 = database("types_latin1", "LATIN1", &elements);
    let mut utf8 = database("types_utf8", "UTF8", &elements);
    for added in TEXT_TYPES {
        let filter = format!("bloom_from_array(ARRAY['é', 'ß', 'plain']::{added}[], 1000000)");
        let (from_latin1, from_utf8) = (bytes(&mut latin1, &filter), bytes(&mut utf8, &filter));
        for asked in TEXT_TYPES {
            let all = format!(
                "bloom_contains_all(f, ARRAY['ß', 'plain', 'é']::{asked}[]) AND NOT f @> 'e'::text"
            );
            assert_eq!(
                ask(&mut utf8, &from_latin1, &all),
                Ok(true),
                "{added} in LATIN1, {asked} in UTF8"
            );
            assert_eq!(
                ask(&mut latin1, &from_utf8, &all),
                Ok(true),
                "{added} in UTF8, {asked} in LATIN1"
            );
        }
    }
}

#[test]
fn single_chars_are_the_same_element_in_every_encoding() {
    let mut databases = ["LATIN1", "UTF8", "SQL_ASCII", "WIN1251"]
        .map(|encoding| database(&format!("chars_{}", encoding.to_lowercase()), encoding, &["b"]));
    let chars = |from: i32, step: i32| {
        format!("ARRAY(SELECT i::\"char\" FROM generate_series({from}, 127, {step}) AS i)")
    };
    let all = &format!("bloom_from_array({}, 1000000)", chars(-128, 1));
    let odd = &format!("bloom_from_array({}, 1000000)", chars(-127, 2));
    for built_by in 0..databases.len() {
        let (all, odd) =
            (bytes(&mut databases[built_by], all), bytes(&mut databases[built_by], odd));
        for client in &mut databases {
            let found = format!("cardinality(bloom_present(f, {}))", chars(-128, 1));
            assert_eq!(ask(client, &all, &format!("{found} = 256")), Ok(true));
            assert_eq!(ask(client, &odd, &format!("{found} = 128")), Ok(true));
            assert_eq!(
                ask(client, &odd, "f @> 'a'::text AND f @> 'c'::name AND NOT f @> 'b'::letter"),
                Ok(true)
            );
        }
    }
}

/// Values that are made of others, with text or names in them, each with another.
const WITH_TEXT: [[&str; 2]; 9] = [
    ["'{\"a\": \"é\"}'::jsonb", "'{\"a\": \"e\"}'::jsonb"],
    [
        "'{\"é\": 1, \"bb\": 2, \"z\": [\"ß\"]}'::jsonb",
        "'{\"é\": 2, \"bb\": 1, \"z\": [\"ß\"]}'::jsonb",
    ],
    ["'{\"a\": 1}'::jsonb", "'{\"é\": 1}'::jsonb"],
    ["ARRAY['é']::text[]", "ARRAY['Ã©']::text[]"],
    [
        "ARRAY['plain', NULL, 'ß']::varchar[]",
        "ARRAY['plain', 'ß', NULL]::varchar[]",
    ],
    ["ARRAY['é']::char(9)[]", "ARRAY[' é']::char(9)[]"],
    ["words('a', 'é')", "words('a', 'ß')"],
    ["ROW(1, 'é')::pair", "ROW(2, 'é')::pair"],
    [
        "ARRAY[ROW(1, 'plain')::pair]",
        "ARRAY[ROW(1, 'plain'), NULL]::pair[]",
    ],
];

#[test]
fn types_with_text_in_them_move_to_every_encoding() {
    let mut clients = ["LATIN1", "UTF8", "WIN1252", "SQL_ASCII"]
        .map(|encoding| database(&format!("parts_{}", encoding.to_lowercase()), encoding, &["b"]));
    for [element, other] in WITH_TEXT {
        for layout in LAYOUTS {
            let own = format!("bloom_empty(1000, 0.01, '{layout}') || {element}");
            let built = clients.each_mut().map(|client| bytes(client, &own));
            assert!(built.iter().all(|filter| *filter == built[0]), "{own}");
            for client in &mut clients {
                assert_eq!(ask(client, &built[0], &format!("f @> {element}")), Ok(true), "{own}");
                assert_eq!(ask(client, &built[0], &format!("f @> {other}")), Ok(false), "{other}");
            }
        }
    }
}

#[test]
fn types_without_text_in_them_move_to_every_encoding() {
    let mut latin1 = database("plain_latin1", "LATIN1", &["b"]);
    let mut utf8 = database("plain_utf8", "UTF8", &["b"]);
    let others = [
        "inet '10.0.0.1'",
        "macaddr '08:00:2b:01:02:03'",
        "interval '1 day'",
        "time '12:00'",
        "ARRAY[1, 2, NULL]",
        "ARRAY[1.50, 2]::numeric[]",
        "ARRAY[inet '10.0.0.1']",
        "int4range(1, 5)",
        "daterange('2020-01-01', '2020-02-01')",
        "ARRAY[decode('e9', 'hex')]",
        "decode('e9', 'hex')",
        "uuid '00112233-4455-6677-8899-aabbccddeeff'",
        "timestamptz '2020-01-01 00:00+00'",
        "ROW(1, 2.50)::numbers",
    ];
    for element in others {
        for layout in LAYOUTS {
            let own = format!("bloom_empty(1000, 0.01, '{layout}') || {element}");
            let [from_latin1, from_utf8] =
                [&mut latin1, &mut utf8].map(|client| bytes(client, &own));
            assert_eq!(from_latin1, from_utf8, "{own}");
            assert_eq!(ask(&mut utf8, &from_latin1, &format!("f @> {element}")), Ok(true), "{own}");
            assert_eq!(ask(&mut latin1, &from_utf8, &format!("f @> {element}")), Ok(true), "{own}");
        }
    }
}

/// A letter of Thai has three bytes in UTF-8 and one in WIN874, where a name may have 63 of them.
#[test]
fn names_of_kinds_are_never_too_long() {
    let mut client = database("thai", "WIN874", &["b"]);
    let name = |letter: &str| letter.repeat(63);
    let (schema, row, range) = (name("ก"), name("ข"), name("ค"));
    let table = |last: &str| {
        let columns: Vec<String> = ["ง", "จ", "ฉ", "ช", "ซ", "ฌ", "ญ", "ฎ", "ฏ", "ฐ", "ฑ", "ฒ"]
            .map(|c| format!("{} numeric", name(c)))
            .into();
        format!("CREATE TABLE {schema}.{row} ({}, {} {last})", columns.join(", "), name("ณ"))
    };
    run(
        &mut client,
        &format!(
            "CREATE SCHEMA {schema}; {}; CREATE TYPE {schema}.{range} AS RANGE (subtype = integer);
             INSERT INTO {schema}.{row} SELECT i, i, i, i, i, i, i, i, i, i, i, i, i FROM generate_series(1, 9) AS i",
            table("integer")
        ),
    );
    let found = format!(
        "SELECT bool_and(f @> t AND arrays @> ARRAY[t] AND counts @> t AND NOT exact @> t)
             AND max(octet_length(convert_to((bloom_info(f)).key_kind, 'UTF8'))) BETWEEN 510 AND 512
         FROM {schema}.{row} AS t, (SELECT bloom_agg(t, 9) AS f, bloom_agg(ARRAY[t]) AS arrays, counting_bloom_agg(t, 9) AS counts,
             bloom_agg(t) FILTER (WHERE false) AS exact FROM {schema}.{row} AS t) AS filters"
    );
    assert!(value::<bool>(&mut client, &found));
    let range = format!("{schema}.{range}(1, 2)");
    assert!(value::<bool>(
        &mut client,
        &format!(
            "SELECT bloom_empty() || {range} @> {range} AND bloom_empty() || ARRAY[{range}] @> ARRAY[{range}]"
        )
    ));
    run(
        &mut client,
        &format!("CREATE TABLE kept AS SELECT bloom_agg(t) AS f FROM {schema}.{row} AS t"),
    );
    run(
        &mut client,
        &format!(
            "DROP TABLE {schema}.{row}; {}; INSERT INTO {schema}.{row} DEFAULT VALUES",
            table("text")
        ),
    );
    let asked = sqlstate(&mut client, &format!("SELECT f @> t FROM kept, {schema}.{row} AS t"));
    assert_eq!(asked, "42804");
}

/// So may a name of a column.
#[test]
fn columns_with_names_outside_utf8_are_told_apart() {
    let mut client = database("ascii_columns", "SQL_ASCII", &["b"]);
    run(&mut client, "SET client_encoding = 'SQL_ASCII'");
    // The client of these tests knows no other letters than those of UTF-8.
    let named = |sql: &str| {
        format!(
            "DO $$ BEGIN EXECUTE replace(replace('{sql}', '@1', convert_from('\\xe9', 'SQL_ASCII')), '@2',
                 convert_from('\\xe8', 'SQL_ASCII')); END $$"
        )
    };
    run(
        &mut client,
        &named(
            "CREATE TYPE t@1 AS (c@1 integer, d integer); CREATE TYPE t@2 AS RANGE (subtype = integer)",
        ),
    );
    run(
        &mut client,
        &named(
            "CREATE TABLE kept AS SELECT bloom_empty() || ROW(1, 2)::t@1 AS f, bloom_empty() || t@2(1, 2) AS g",
        ),
    );
    run(
        &mut client,
        &named(
            "CREATE VIEW asked AS SELECT f @> ROW(1, 2)::t@1 AND g @> t@2(1, 2) AS found FROM kept",
        ),
    );
    assert!(value::<bool>(&mut client, "SELECT found FROM asked"));
    let kinds = "SELECT (bloom_info(f)).key_kind || ' ' || (bloom_info(g)).key_kind FROM kept";
    let shown: String = value(&mut client, kinds);
    assert_eq!(
        shown,
        "public.\"t\\xe9\"(\"c\\xe9\" integer, d integer) public.\"t\\xe8\" of integer"
    );
    run(&mut client, &named("ALTER TYPE t@1 RENAME ATTRIBUTE c@1 TO c@2"));
    assert_eq!(sqlstate(&mut client, "SELECT found FROM asked"), "42804");
}

/// A type whose name is not ASCII: two elements of it, and their kind.
struct Odd {
    element: &'static str,
    other: &'static str,
    kind: &'static str,
}

const ODD_RANGE: Odd = Odd {
    element: "\"Größen\"(1, 2)",
    other: "\"Größen\"(2, 3)",
    kind: "public.\"Größen\" of integer",
};
const ODD_ROW: Odd = Odd {
    element: "ROW(1, 2)::\"Zähler\"",
    other: "ROW(2, 1)::\"Zähler\"",
    kind: "public.\"Zähler\"(a integer, b integer)",
};

/// Databases in LATIN1 and UTF8 with types whose names are not ASCII, and these types.
fn with_odd_names(prefix: &str) -> ([Client; 2], Vec<Odd>) {
    let clients = ["LATIN1", "UTF8"].map(|encoding| {
        let mut client =
            database(&format!("{prefix}_{}", encoding.to_lowercase()), encoding, &["b"]);
        run(
            &mut client,
            "CREATE TYPE \"Größen\" AS RANGE (subtype = integer);
             CREATE TYPE \"Zähler\" AS (a integer, b integer)",
        );
        client
    });
    (clients, vec![ODD_RANGE, ODD_ROW])
}

/// A filter of an element.
fn of(client: &mut Client, element: &str) -> Vec<u8> {
    bytes(client, &format!("bloom_empty(1000) || {element}"))
}

#[test]
fn kinds_with_names_that_are_not_ascii_move_to_every_encoding() {
    let (mut clients, types) = with_odd_names("kinds");
    for Odd { element, other, .. } in types {
        let [from_latin1, from_utf8] = clients.each_mut().map(|client| of(client, element));
        assert_eq!(from_latin1, from_utf8);
        for client in &mut clients {
            assert_eq!(
                ask(client, &from_latin1, &format!("f @> {element} AND NOT f @> {other}")),
                Ok(true)
            );
        }
    }
}

/// The message of the error that a query about `f` gives.
fn message(client: &mut Client, filter: &[u8], expression: &str) -> String {
    let sql = format!("SELECT {expression} FROM (SELECT $1::bytea::bloom AS f) AS moved");
    let error = client.query_one(&sql, &[&filter]).expect_err(expression);
    error.as_db_error().map_or(String::new(), |e| e.message().into())
}

#[test]
fn names_of_kinds_are_shown_in_the_encoding_of_the_database() {
    let (mut clients, types) = with_odd_names("names");
    for client in &mut clients {
        for Odd { element, kind, .. } in &types {
            let filter = of(client, element);
            assert_eq!(
                ask(client, &filter, &format!("(bloom_info(f)).key_kind = '{kind}'")),
                Ok(true)
            );
            let message = message(client, &filter, "f @> 1");
            assert!(
                message.contains(&format!("kind {kind} and an element of kind integer")),
                "{message}"
            );
        }
    }
}

#[test]
fn errors_are_shown_in_the_encoding_of_the_database() {
    let (mut clients, types) = with_odd_names("errors");
    for client in &mut clients {
        run(client, "CREATE TYPE \"Größe\" AS (a json)");
        for Odd { element, .. } in &types {
            let filter = of(client, element);
            let of_type = message(client, &filter, "f @> ARRAY[ROW('1')]::\"Größe\"[]");
            assert!(of_type.contains("\"Größe\"[]"), "{of_type}");
            let of_layout = message(client, &filter, "bloom_empty(1, 0.1, 'größer')");
            assert!(of_layout.contains("größer"), "{of_layout}");
            let of_text = message(client, &filter, "'größer'::text::bloom");
            assert!(of_text.contains("größer"), "{of_text}");
        }
    }
}

/// In an SQL_ASCII database a name may be of any bytes. Each is a kind of its own, and the same
/// kind always.
#[test]
fn names_outside_utf8_are_kinds_as_any() {
    let mut client = database("ascii", "SQL_ASCII", &["a"]);
    let (definition, of_element) = ("(a integer, b integer)", "ROW(1, 5)::%1$I");
    run(
        &mut client,
        &format!(
            r#"CREATE TABLE filters (number serial, name text, f bloom);
             DO $do$
             DECLARE
                 odd text;
             BEGIN
                 FOREACH odd IN ARRAY ARRAY['caf' || chr(233), 'caf\xe9', 'caf\x5cxe9', 'caf' || chr(195) || chr(169)] LOOP
                     EXECUTE format('CREATE TYPE %I AS {definition}', odd);
                     EXECUTE format('INSERT INTO filters (name, f) SELECT %1$L, bloom_empty(1000) || {of_element}', odd);
                     EXECUTE format('CREATE SCHEMA %I', odd);
                     EXECUTE format('CREATE TYPE %1$I.%1$I AS ENUM (%1$L)', odd);
                 END LOOP;
             END $do$;
             CREATE FUNCTION answer(filter bloom, name text) RETURNS text LANGUAGE plpgsql AS $do$
             DECLARE
                 answer boolean;
             BEGIN
                 EXECUTE format('SELECT $1 @> {of_element}', name) INTO answer USING filter;
                 RETURN answer;
             EXCEPTION WHEN OTHERS THEN
                 RETURN SQLSTATE;
             END $do$;"#
        ),
    );
    let answers = "SELECT count(*) || ': ' || bool_and(answer(a.f, b.name) = CASE WHEN a.name = b.name THEN 'true' ELSE '42804' END)
                   FROM filters AS a, filters AS b";
    assert_eq!(value::<String>(&mut client, answers), "16: true");
    let kinds = "SELECT string_agg(substring(key_kind FROM '\"(.*)\"'), ' ' ORDER BY number)
                 FROM filters, LATERAL bloom_info(f)";
    assert_eq!(value::<String>(&mut client, kinds), r"caf\xe9 caf\x5cxe9 caf\x5cx5cxe9 café");
    let labels = "DO $do$
         DECLARE
             odd text;
             found boolean;
         BEGIN
             FOR odd IN SELECT name FROM filters LOOP
                 EXECUTE format('SELECT bloom_empty() || %1$L::%1$I.%1$I @> %1$L::text', odd) INTO found;
                 ASSERT found;
             END LOOP;
         END $do$";
    run(&mut client, labels);
    let layout = "DO $do$ BEGIN
             PERFORM bloom_empty(1, 0.1, 'caf' || chr(233));
         EXCEPTION WHEN invalid_parameter_value THEN
             ASSERT strpos(SQLERRM, 'caf\\xe9') > 0, SQLERRM;
         END $do$";
    run(&mut client, layout);
}
