//! Canonical bytes of jsonb against a naive writer of that text, and of all that is made of parts
//! against `=`.

use crate::common::{Random, Server, column, run, value};
use crate::server;
use pg_bloom_core::hash::hash;
use postgres::Client;

/// A value of JSON.
enum Json {
    /// null, true, false.
    Word(&'static str),
    /// This number by the power of ten of minus that.
    Number(i64, usize),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn random(random: &mut Random, characters: &[char], depth: usize) -> Json {
        match random.below(if depth == 0 { 3 } else { 5 }) {
            0 => Json::Word(["null", "true", "false"][random.below(3)]),
            1 => {
                let digits = 1 + random.below(60);
                Json::Number(random.bits() as i64 >> digits, random.below(25))
            }
            2 => Json::String(text(random, characters)),
            3 => Json::Array(
                (0..random.below(5))
                    .map(|_| Json::random(random, characters, depth - 1))
                    .collect(),
            ),
            _ => {
                let mut members: Vec<(String, Json)> = Vec::new();
                for _ in 0..random.below(6) {
                    let key = text(random, characters);
                    if members.iter().all(|(known, _)| *known != key) {
                        members.push((key, Json::random(random, characters, depth - 1)));
                    }
                }
                Json::Object(members)
            }
        }
    }

    /// The value as somebody might write it.
    fn written(&self, random: &mut Random) -> String {
        let blank = *random.pick(&["", " ", "\n\t"]);
        match self {
            Json::Word(word) => format!("{blank}{word}"),
            Json::Number(number, places) => match random.below(3) {
                0 => format!("{number}e-{places}"),
                1 => format!("{number}.0E-{places}"),
                _ => format!("{}{blank}", plain(*number, *places)),
            },
            Json::String(string) => quoted(string),
            Json::Array(elements) => {
                let elements: Vec<String> =
                    elements.iter().map(|element| element.written(random)).collect();
                format!("[{}{blank}]", elements.join(","))
            }
            Json::Object(members) => {
                let mut members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{}{blank}:{}", quoted(key), value.written(random)))
                    .collect();
                for i in (1..members.len()).rev() {
                    members.swap(i, random.below(i + 1));
                }
                format!("{{{blank}{}}}", members.join(","))
            }
        }
    }

    /// The canonical bytes of docs/format.md.
    fn canonical(&self) -> String {
        match self {
            Json::Word(word) => (*word).into(),
            Json::Number(number, places) => plain(*number, *places),
            Json::String(string) => quoted(string),
            Json::Array(elements) => {
                format!("[{}]", elements.iter().map(Json::canonical).collect::<Vec<_>>().join(","))
            }
            Json::Object(members) => {
                let mut members: Vec<&(String, Json)> = members.iter().collect();
                members.sort_by_key(|(key, _)| (key.len(), key.as_bytes()));
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, value)| format!("{}:{}", quoted(key), value.canonical()))
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

fn text(random: &mut Random, characters: &[char]) -> String {
    (0..random.below(4)).map(|_| *random.pick(characters)).collect()
}

/// A number as plain decimal text.
fn plain(number: i64, places: usize) -> String {
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    let sign = if number < 0 { "-" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

fn quoted(string: &str) -> String {
    let mut quoted = String::from("\"");
    for c in string.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The hash of a value that a filter has as its only element.
fn hash_of(client: &mut Client, expression: &str, parameter: &str) -> u64 {
    let sql = format!(
        "SELECT (bloom_empty(1000) || {expression})::bytea FROM (SELECT $1::text AS x) AS given"
    );
    let row = client
        .query_one(&sql, &[&parameter])
        .unwrap_or_else(|e| panic!("{parameter}: {e:?}"));
    let filter: Vec<u8> = row.get(0);
    u64::from_le_bytes(*filter.last_chunk().expect("there is an element"))
}

#[test]
fn jsonb_is_hashed_as_its_compact_text() {
    let server = server();
    let encodings = [
        ("UTF8", "aé€😀"),
        ("LATIN1", "aéÿ"),
        ("EUC_JP", "aあ漢é"),
        ("SQL_ASCII", "aé€"),
    ];
    for (number, (encoding, letters)) in encodings.into_iter().enumerate() {
        let options = format!("ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        let mut client = server.empty_database(&format!("jsonb_{number}"), &options);
        run(&mut client, "CREATE EXTENSION pg_bloom");
        let characters: Vec<char> = letters
            .chars()
            .chain("bz\"\\/ \u{1}\u{8}\u{c}\n\r\t\u{1f}".chars())
            .collect();
        let mut random = Random(number as u64);
        for _ in 0..400 {
            let json = Json::random(&mut random, &characters, 4);
            let (written, canonical) = (json.written(&mut random), json.canonical());
            assert_eq!(
                hash_of(&mut client, "x::jsonb", &written),
                hash(canonical.as_bytes()),
                "{written}\n{canonical}"
            );
        }
    }
}

#[test]
fn numbers_are_hashed_as_plain_text() {
    let mut client = server().database("numbers");
    let mut random = Random(1);
    for _ in 0..500 {
        let digits = 1 + random.below(63);
        let (number, places) = (random.bits() as i64 >> digits, random.below(40));
        let canonical = plain(number, places);
        assert_eq!(
            hash_of(&mut client, "x::numeric", &format!("{number}e-{places}")),
            hash(canonical.as_bytes())
        );
    }
    let long = format!("-{}", "1203400000".repeat(5_000));
    assert_eq!(hash_of(&mut client, "x::numeric", &long), hash(long.as_bytes()));
    let small = format!("0.{}1", "0".repeat(16_000));
    assert_eq!(hash_of(&mut client, "x::numeric", &format!("{small}00")), hash(small.as_bytes()));
}

/// Types that are made of others, and expressions that give few values of them, so that many are
/// equal: of numbers `a`, `b` and `c` from 0 to 2.
const MADE_OF_PARTS: [(&str, &str); 22] = [
    ("integer[]", "array_fill(a, ARRAY[b, c], ARRAY[1, c])"),
    (
        "integer[]",
        "CASE a WHEN 0 THEN ARRAY[b, NULL] WHEN 1 THEN ARRAY[NULL, b] ELSE ARRAY[b, c] END",
    ),
    ("smallint[]", "ARRAY[[a, b], [c, NULL]]::smallint[]"),
    (
        "bigint[]",
        "(ARRAY['{}', '{1}', '{{1}}', '[0:0]={1}', '{NULL}', '[1:1][2:2]={{1}}'])[1 + a + b]::bigint[]",
    ),
    (
        "float8[]",
        "ARRAY[(ARRAY['0', '-0', 'NaN'])[a + 1], (ARRAY['0', '-0', 'NaN'])[b + 1]]::float8[]",
    ),
    (
        "numeric[]",
        "ARRAY[(ARRAY['1', '1.0', '1.01'])[a + 1], (ARRAY['1', '1e0', '10'])[b + 1]]::numeric[]",
    ),
    ("text[]", "ARRAY[repeat('x', a), repeat('x', b), NULLIF(repeat('x', c), '')]"),
    ("char(4)[]", "ARRAY[repeat(' ', a) || 'x' || repeat(' ', b), repeat(' ', c)]::char(4)[]"),
    ("mood[]", "ARRAY[(enum_range(NULL::mood))[a + 1], (enum_range(NULL::mood))[b + 1]]"),
    (
        "interval[]",
        "ARRAY[make_interval(months => a), make_interval(days => 30 * b, hours => 24 * c)]",
    ),
    ("interval", "make_interval(months => a, days => 30 * b - 30, hours => 24 * 30 * c)"),
    ("timetz", "('1' || a || ':00+0' || b)::timetz + make_interval(hours => c)"),
    ("time", "('2' || a || ':00')::time + make_interval(hours => b)"),
    ("jsonb[]", "ARRAY[('{\"a\": ' || a || ', \"b\": [' || b || '.0]}')::jsonb, to_jsonb(c)]"),
    ("inet[]", "ARRAY[inet '10.0.0.0' + a, set_masklen('10.0.0.0', 31 + b / 2) + c]"),
    ("pair", "ROW(NULLIF(a, 2), repeat('x', b), c * 1.0)::pair"),
    ("pair", "CASE WHEN a > 0 THEN ROW(b, 'x', c)::pair END"),
    (
        "nested",
        "ROW(CASE WHEN a > 0 THEN ROW(b, NULL, 1)::pair END, ARRAY[c], int4range(a, a + b))::nested",
    ),
    ("pair[]", "ARRAY[ROW(a, 'y', b)::pair, NULL, ROW(c, NULL, NULL)::pair]"),
    ("int4range", "int4range(NULLIF(a, 2), 2 + b, (ARRAY['()', '[]', '[)'])[c + 1])"),
    ("numrange", "numrange(a, 2 + b * 0.5, (ARRAY['()', '[]', '[)'])[c + 1])"),
    (
        "numrange[]",
        "ARRAY[numrange(NULLIF(a, 1), NULL), numrange(b, b), numrange(1, 1 + c * 0.50)]",
    ),
];

/// The same of ranges of several parts.
const MULTIRANGES: [(&str, &str); 2] = [
    ("int4multirange", "int4multirange(int4range(a, a + 1), int4range(b, 2 + c))"),
    (
        "nummultirange",
        "nummultirange(numrange(a, a + 1, '(]'), numrange(4, 4 + b, '[]'), numrange(c, c))",
    ),
];

#[test]
fn elements_have_one_hash_if_and_only_if_they_are_equal() {
    let mut client = server().database("equality");
    run(
        &mut client,
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
         CREATE TYPE pair AS (a integer, b text, c numeric);
         CREATE TYPE nested AS (p pair, l integer[], r int4range)",
    );
    let multiranges = &MULTIRANGES[..];
    for (sql_type, element) in MADE_OF_PARTS.iter().chain(multiranges) {
        let pairs = format!(
            "WITH elements AS MATERIALIZED (
                 SELECT x, bloom_empty(1000) || x AS f
                 FROM generate_series(0, 2) AS a, generate_series(0, 2) AS b, generate_series(0, 2) AS c,
                     LATERAL (SELECT ({element})::{sql_type} AS x) AS v WHERE x IS DISTINCT FROM NULL)
             SELECT format('%s, %s', l.x, r.x) FROM elements AS l, elements AS r WHERE true"
        );
        let wrong: Vec<String> =
            column(&mut client, &format!("{pairs} AND (l.x = r.x) <> (l.f = r.f)"));
        assert!(wrong.is_empty(), "{sql_type}: {}", wrong[0]);
        let equal: Vec<String> = column(&mut client, &format!("{pairs} AND l.x = r.x"));
        let unequal: Vec<String> = column(&mut client, &format!("{pairs} AND l.x <> r.x"));
        assert!(
            equal.len() > 5 && unequal.len() > 5,
            "{sql_type}: {} equal, {} not",
            equal.len(),
            unequal.len()
        );
    }
}

#[test]
fn jsonb_nested_as_deep_as_can_be_is_hashed() {
    let server = Server::start("max_stack_depth = 6MB");
    let mut client = server.database("deep");
    let mut depth = 1_000;
    // As deep as this server reads it.
    while crate::common::sqlstate(&mut client, &nested(2 * depth, "IS NULL")) == "00000"
        && depth < 1_000_000
    {
        depth *= 2;
    }
    assert!(depth >= 4_000, "{depth}");
    let found = nested(depth, "<@ (bloom_empty() || (repeat('[', 10) || repeat(']', 10))::jsonb)");
    assert!(!value::<bool>(&mut client, &found));
    let found: bool = value(
        &mut client,
        &format!(
            "SELECT bloom_agg(x) @> min(x::text)::jsonb FROM ({}) AS v (x)",
            nested(depth, "")
        ),
    );
    assert!(found);
}

fn nested(depth: usize, what: &str) -> String {
    format!("SELECT (repeat('[', {depth}) || repeat(']', {depth}))::jsonb {what}")
}

#[test]
fn jsonb_that_prints_far_more_than_it_has_is_hashed_in_little_memory_and_can_be_cancelled() {
    let mut client = server().database("large");
    run(
        &mut client,
        "CREATE TABLE large AS SELECT jsonb_agg(1e131071) AS j FROM generate_series(1, 40) AS i;
         CREATE TABLE filters AS SELECT bloom_agg(j) AS f FROM large",
    );
    assert!(value::<i32>(&mut client, "SELECT pg_column_size(j) FROM large") < 10_000);
    assert!(value::<bool>(&mut client, "SELECT f @> j AND NOT f @> (j - 0) FROM filters, large"));
    run(
        &mut client,
        "UPDATE large SET j = (SELECT jsonb_agg(1e131071) FROM generate_series(1, 20000))",
    );
    assert_eq!(
        crate::common::sqlstate_within(&mut client, 200, "SELECT f @> j FROM filters, large"),
        "57014"
    );
}
