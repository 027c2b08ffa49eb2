//! Hashes of elements are the same in every version of PostgreSQL, on every machine.
//!
//! Those of kind "other" are PostgreSQL's own functions, which nobody promises will stay what they are. These are their
//! values in PostgreSQL 15, wrapped as `docs/format.md` says; a version in which one differs fails here.

mod common;

use common::corpus::{self, all_kinds};
use common::{Server, run, value};

/// The hash of the element number 7 of each type of the corpus, as its filter keeps it.
const HASHES: [(&str, &str); 60] = [
    ("smallint", "55e4fd6a40cd7608"),
    ("integer", "55e4fd6a40cd7608"),
    ("bigint", "dfbb984032a6e55e"),
    ("real", "847f0a34539e08f9"),
    ("double precision", "95a3a153f1229594"),
    ("numeric", "3b81fc9fd832ab71"),
    ("text", "1422e4014c1e6730"),
    ("varchar(20)", "057b841fa6fc01ad"),
    ("char(12)", "c992cf678cfc0cdd"),
    ("name", "57d89f38d0664b17"),
    ("\"char\"", "a5b928195f7c17ca"),
    ("mood", "b751e0fd503ce052"),
    ("bytea", "2e4b4dc0c7647322"),
    ("uuid", "2e4b4dc0c7647322"),
    ("date", "f8db600e248e5c49"),
    ("timestamp", "b56b6a3a7057392d"),
    ("timestamptz", "b56b6a3a7057392d"),
    ("boolean", "682705db4aa834e9"),
    ("inet", "3a359345b450bce6"),
    ("jsonb", "d397cd8224d8f114"),
    ("text[]", "9e984794cb1390c4"),
    ("interval", "2c77267a341530d4"),
    ("int4range", "f9214e8d0db41f83"),
    ("pair", "555e09bcc6dd1849"),
    ("cidr", "3a359345b450bce6"),
    ("macaddr", "9a7c015b1414550b"),
    ("macaddr8", "a257d7bdcca74dfc"),
    ("pg_lsn", "39a5fe564ddf98e9"),
    ("time", "263cc8aa36151363"),
    ("timetz", "1eded653bf31ba88"),
    ("oid", "db68121d00251112"),
    ("xid", "89835488ef03b188"),
    ("xid8", "05dc46ef19e7859f"),
    ("cid", "89835488ef03b188"),
    ("tid", "83563b61a852750b"),
    ("oidvector", "961f17804812e974"),
    ("smallint[]", "15c35f3b96f3c040"),
    ("integer[]", "851fd67462ddb68a"),
    ("bigint[]", "14e84a40e3d18b8b"),
    ("real[]", "61098b5f1b00c723"),
    ("double precision[]", "1c7d3f4d2c6fd379"),
    ("numeric[]", "1f78864a7d266ed6"),
    ("boolean[]", "25c31b4468bcd652"),
    ("bytea[]", "3ba60746326fc811"),
    ("uuid[]", "f0d06db54851f492"),
    ("date[]", "7b31bef810d7eca5"),
    ("timestamp[]", "3e6526bdb9bce808"),
    ("timestamptz[]", "d6af6899a2fb5582"),
    ("name[]", "431da682df6125a8"),
    ("char(9)[]", "c39504df6119f2f6"),
    ("\"char\"[]", "4ec7a5eee975d9c4"),
    ("interval[]", "698e5669e1212caf"),
    ("jsonb[]", "3e3238764c4a458b"),
    ("int8range", "6bd8620aa1d4e7c0"),
    ("numrange", "2814fff1ce6a5aa0"),
    ("daterange", "8bfec73ff68a65d4"),
    ("tsrange", "bd9b0eb197584aa6"),
    ("tstzrange", "bdc0aa3090784094"),
    ("datemultirange", "526ab088d61e8524"),
    ("wide", "f656c08bb6048c5d"),
];

#[test]
fn hashes_of_elements_are_what_they_were() {
    let server = Server::start("");
    let mut client = server.database("hashes");
    run(&mut client, corpus::TYPES);
    run(&mut client, corpus::MORE_TYPES);
    for (sql_type, element) in all_kinds(&mut client) {
        let hash: String = value(
            &mut client,
            &format!(
                "SELECT right((bloom_empty(1000) || ({element})::{sql_type})::text, 16)
                 FROM (SELECT 7) AS number (i)"
            ),
        );
        let expected = HASHES.iter().find(|(name, _)| *name == sql_type).map(|(_, hash)| *hash);
        assert_eq!(Some(hash.as_str()), expected, "{sql_type}");
    }
}

#[test]
fn equal_elements_have_one_hash() {
    let server = Server::start("");
    let mut client = server.database("equals");
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
        let found =
            format!("SELECT (bloom_empty(1000) || {one}) @> {other} AND (bloom_empty(1000) || {other}) @> {one}");
        assert!(value::<bool>(&mut client, &found), "{one} = {other}");
    }
}
