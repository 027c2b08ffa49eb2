//! Hashes of elements are the same in every version of PostgreSQL, on every machine.
//!
//! Canonical bytes are frozen. Those of kind "other" come from PostgreSQL's own functions, which
//! nobody promises will stay what they are: these are their values in PostgreSQL 15; a version in
//! which one differs fails here.

use crate::common::corpus;
use crate::common::samples::{FURTHER_TYPES, Sample, TYPES};
use crate::common::{run, sqlstate, value};
use crate::server;

/// The hash of the element number 7 of each type of the corpus, as its filter keeps it.
const HASHES: [(&str, &str); 69] = [
    ("smallint", "55e4fd6a40cd7608"),
    ("integer", "55e4fd6a40cd7608"),
    ("bigint", "dfbb984032a6e55e"),
    ("real", "847f0a34539e08f9"),
    ("double precision", "95a3a153f1229594"),
    ("numeric", "3b81fc9fd832ab71"),
    ("text", "1422e4014c1e6730"),
    ("varchar", "1422e4014c1e6730"),
    ("varchar(20)", "1422e4014c1e6730"),
    ("char(12)", "c992cf678cfc0cdd"),
    ("char(40)", "c992cf678cfc0cdd"),
    ("name", "57d89f38d0664b17"),
    ("mood", "b751e0fd503ce052"),
    ("bytea", "2e4b4dc0c7647322"),
    ("uuid", "2e4b4dc0c7647322"),
    ("date", "f8db600e248e5c49"),
    ("timestamp", "b56b6a3a7057392d"),
    ("timestamptz", "b56b6a3a7057392d"),
    ("boolean", "682705db4aa834e9"),
    ("inet", "3a359345b450bce6"),
    ("jsonb", "93ecb957ee4c479d"),
    ("text[]", "ef718c7229047ada"),
    ("interval", "8424d00b8f86149c"),
    ("int4range", "dd18029cb94b4dff"),
    ("pair", "01182804ee0f18ca"),
    ("cidr", "3a359345b450bce6"),
    ("macaddr", "9a7c015b1414550b"),
    ("macaddr8", "a257d7bdcca74dfc"),
    ("pg_lsn", "c5d0990b0458b214"),
    ("time", "7921dda4e6982bbb"),
    ("timetz", "d6bea30774dc8c13"),
    ("oid", "db68121d00251112"),
    ("xid", "89835488ef03b188"),
    ("xid8", "aff7127161e80ae3"),
    ("cid", "89835488ef03b188"),
    ("tid", "83563b61a852750b"),
    ("oidvector", "961f17804812e974"),
    ("smallint[]", "5fe50d9199edee5e"),
    ("integer[]", "a780525cc3a9bb21"),
    ("bigint[]", "ea9b88c43d2074aa"),
    ("real[]", "0613e60eae514abd"),
    ("double precision[]", "489db2d35e17a64f"),
    ("numeric[]", "4e4910be983f0121"),
    ("boolean[]", "a6b985b63d7083cd"),
    ("bytea[]", "b0dbb1ce40631fb3"),
    ("uuid[]", "472722afbc9c5032"),
    ("date[]", "4155b981f8cc787a"),
    ("timestamp[]", "d0e8bdee9dd2389b"),
    ("timestamptz[]", "0c9001ab89aa799b"),
    ("name[]", "0512e1118165d112"),
    ("varchar(9)[]", "1bb1a2af21bf69f7"),
    ("char(9)[]", "4bf8b13fb7ee5fbd"),
    ("\"char\"[]", "f0cf449fb79c2779"),
    ("interval[]", "bb000fbe656856e2"),
    ("inet[]", "c4f28c470ebc7082"),
    ("jsonb[]", "0000926b06441340"),
    ("int8range", "9cc0fca1acb15e8e"),
    ("numrange", "16800cff6f2be38e"),
    ("daterange", "06aed3c804521957"),
    ("tsrange", "e30a537111d4a258"),
    ("tstzrange", "607ce749c1c30e97"),
    ("textrange", "bfddc0f6cfdb62cb"),
    ("int4multirange", "ebc72831171832ef"),
    ("datemultirange", "eef727b9fb6900ec"),
    ("tick", "89835488ef03b188"),
    ("wide", "f58a12e07fd94031"),
    ("label", "1422e4014c1e6730"),
    ("small", "55e4fd6a40cd7608"),
    ("labels", "1bb1a2af21bf69f7"),
];

#[test]
fn hashes_of_elements_are_what_they_were() {
    let mut client = server().database("hashes");
    run(&mut client, TYPES);
    run(&mut client, FURTHER_TYPES);
    let mut differing = Vec::new();
    for Sample { sql_type, ordinary_value, .. } in corpus::samples() {
        let hash: String = value(
            &mut client,
            &format!(
                "SELECT right((bloom_empty(1000) || ({ordinary_value})::{sql_type})::text, 16)
                 FROM (SELECT 7) AS number (i)"
            ),
        );
        let expected = HASHES
            .iter()
            .find(|(name, _)| *name == sql_type)
            .map(|(_, hash)| *hash);
        if Some(hash.as_str()) != expected {
            differing.push((sql_type, hash));
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

/// No function takes a `"char"` by itself: it is ambiguous. Members of an array may be some.
#[test]
fn the_hash_of_a_single_char_is_what_it_was() {
    let mut client = server().database("char_hash");
    let added = r#"bloom_add_all(bloom_empty(1000), ARRAY['('::"char"])::text"#;
    let hash: String = value(&mut client, &format!("SELECT right({added}, 16)"));
    assert_eq!(hash, "a5b928195f7c17ca");
    for (sql, state) in [
        (r#"SELECT bloom_empty() @> 'a'::"char""#, "42725"),
        (r#"SELECT bloom_agg('a'::"char", 10)"#, "42725"),
        (r#"SELECT bloom_set_add('pg_class', 'a'::"char")"#, "42725"),
        (r#"SELECT counting_bloom_empty(10) || 'a'::"char""#, "42725"),
        (r#"SELECT bloom_empty() @> 'a'::"char"::text"#, "00000"),
    ] {
        assert_eq!(sqlstate(&mut client, sql), state, "{sql}");
    }
    let error = client
        .batch_execute(r#"SELECT bloom_add(bloom_empty(), 'a'::"char")"#)
        .expect_err("it is ambiguous");
    let error = error.as_db_error().expect("the server raised it");
    assert_eq!(error.message(), r#"function bloom_add(bloom, "char") is not unique"#);
    assert!(error.hint().is_some_and(|hint| hint.contains("explicit type casts")));
}

#[test]
fn equal_elements_have_one_hash() {
    let mut client = server().database("equals");
    for (one, other) in [
        ("interval '1 mon'", "interval '30 days'"),
        ("interval '1 day -24:00'", "interval '0'"),
        ("ARRAY[1.50, 2]", "ARRAY[1.5, 2.000]"),
        ("ARRAY['-0']::float8[]", "ARRAY[0]::float8[]"),
        ("ARRAY['NaN']::float8[]", "ARRAY['-NaN']::float8[]"),
        ("ARRAY['NaN', 0]::real[]", "ARRAY['-NaN', '-0']::real[]"),
        ("'{\"a\": 1.0, \"b\": [2]}'::jsonb", "'{\"b\": [2.00], \"a\": 1e0}'::jsonb"),
        ("int4range(1, 5)", "int4range(0, 4, '(]')"),
        ("daterange('2000-01-01', '2000-01-01')", "'empty'::daterange"),
        ("numrange(1.0, 2)", "numrange(1, 2.00)"),
        ("ARRAY['a', 'b']::char(5)[]", "ARRAY['a  ', 'b ']::char(3)[]"),
        ("inet '10.0.0.1'", "inet '10.0.0.1/32'"),
        ("'{1, 2}'::int4[]", "'[1:2]={1,2}'::int4[]"),
    ] {
        assert!(value::<bool>(&mut client, &format!("SELECT {one} = {other}")), "{one} = {other}");
        let found = format!(
            "SELECT (bloom_empty(1000) || {one}) @> {other} AND (bloom_empty(1000) || {other}) @> {one}"
        );
        assert!(value::<bool>(&mut client, &found), "{one} = {other}");
    }
}
