//! Filters of every kind: those of random types that are made of others, and of all types that are
//! not. The writer in Python, written from docs/format.md alone, makes the bytes that the server
//! makes, and the reader answers as the server does.

mod leaves;
mod types;

use crate::common::samples::{KEY_KIND_SAMPLES, Sample, TYPES};
use crate::common::{LAYOUTS, Random, major_version, python, rows, run, value};
use crate::server;
use leaves::{LEAVES, Leaf, Pools, VALUES};
use pg_bloom_core::Tag;
use postgres::Client;
use types::{SCHEMAS, Type, Types, Value};

/// A filter of elements, and questions to it.
struct Case {
    /// A query of the stored bytes, in hexadecimal, and of an array of answers.
    sql: String,
    /// How the filter is written.
    written: String,
    /// The kind and the element of each question.
    questions: Vec<String>,
}

/// How a filter is made.
struct Making {
    layout: &'static str,
    is_counting: bool,
    capacity: Option<u32>,
    fpr: f64,
}

impl Making {
    fn random(random: &mut Random) -> Making {
        let is_counting = random.below(4) == 0;
        let layout = if is_counting { "blocked" } else { *random.pick(&LAYOUTS) };
        let capacity = *random.pick(&[Some(1), Some(3), Some(10), Some(1000), None]);
        let capacity = if is_counting { capacity.or(Some(5)) } else { capacity };
        Making {
            layout,
            is_counting,
            capacity,
            fpr: *random.pick(&[0.5, 0.1, 0.01, 0.0001]),
        }
    }

    /// A filter of the first half of some values of a type, asked for all of them.
    fn case(&self, sql_type: &str, kinds: [&str; 2], values: &[(Value, String)]) -> Case {
        let listed: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(n, (value, _))| format!("({n}, ({})::{sql_type})", value.sql))
            .collect();
        let half = values.len() / 2;
        let capacity = self
            .capacity
            .map_or("NULL".to_owned(), |capacity| capacity.to_string());
        let (aggregate, layout) = if self.is_counting {
            ("counting_bloom_agg", String::new())
        } else {
            ("bloom_agg", format!(", '{}'", self.layout))
        };
        let sql = format!(
            "WITH v (n, x) AS MATERIALIZED (VALUES {}),
                  b AS MATERIALIZED (SELECT {aggregate}(x, {capacity}, {:?}{layout}) FILTER (WHERE n < {half}) AS f FROM v)
             SELECT encode(f::bytea, 'hex'), ARRAY(SELECT f @> x FROM v ORDER BY n) FROM b",
            listed.join(", "),
            self.fpr
        );
        let elements: Vec<&str> =
            values[..half].iter().map(|(value, _)| value.json.as_str()).collect();
        let sort = if self.is_counting {
            r#""counting": true"#.into()
        } else {
            format!(r#""layout": "{}""#, self.layout)
        };
        let written = format!(
            r#"{{{sort}, "capacity": {}, "fpr": {:?}, "kind": {}, "elements": [{}]}}"#,
            capacity.to_lowercase(),
            self.fpr,
            kinds[usize::from(self.layout == "parquet")],
            elements.join(", ")
        );
        let kind = kinds[0].trim_matches('"');
        let questions = values.iter().map(|(_, text)| format!("{kind}\t{text}")).collect();
        Case { sql, written, questions }
    }
}

/// Compares what the server says with what the writer writes and the reader reads. Returns the
/// stored bytes, and how many answers were "yes" and "no".
fn compare(client: &mut Client, cases: &[Case]) -> (Vec<String>, usize, usize) {
    let (mut stored, mut questions, mut answers) = (Vec::new(), String::new(), Vec::new());
    for case in cases {
        let row = rows(client, &case.sql).remove(0);
        let (hex, answered): (String, Vec<bool>) = (row.get(0), row.get(1));
        for (question, answer) in case.questions.iter().zip(answered) {
            questions += &format!("{hex}\t{question}\n");
            answers.push((if answer { "t" } else { "f" }, case, question));
        }
        stored.push(hex);
    }
    let written = python::lines(
        "writer.py",
        &[],
        &cases
            .iter()
            .map(|case| case.written.clone() + "\n")
            .collect::<String>(),
    );
    assert_eq!(written.len(), cases.len());
    for ((case, stored), written) in cases.iter().zip(&stored).zip(&written) {
        assert!(
            stored == written,
            "{}\n{}\nis {stored}\nand was written as {written}",
            case.sql,
            case.written
        );
    }
    let read = python::lines("reader.py", &[], &questions);
    assert_eq!(read.len(), answers.len());
    for (read, (answer, case, question)) in read.iter().zip(&answers) {
        assert_eq!(read, answer, "{question} of {}", case.sql);
    }
    let yes = answers.iter().filter(|(answer, ..)| *answer == "t").count();
    let no = answers.len() - yes;
    (stored, yes, no)
}

fn session(name: &str) -> (Client, Pools) {
    let mut client = server().database(name);
    run(&mut client, TYPES);
    run(&mut client, "SET pg_bloom.overfill = ignore");
    let pools = Pools::new(&mut client);
    (client, pools)
}

#[test]
fn filters_of_simple_types_are_written_and_read() {
    let (mut client, pools) = session("kinds");
    let mut random = Random(7);
    let mut cases = Vec::new();
    // A "char" by itself is no element: it is ambiguous. It is a part of other types.
    let elements = |(_, leaf): &(usize, &Leaf)| leaf.sql_type != "\"char\"";
    for (leaf, described) in LEAVES.iter().enumerate().filter(elements) {
        let kinds = described
            .kinds
            .map(|kind| if kind.starts_with('{') { kind.to_owned() } else { format!("{kind:?}") });
        let values: Vec<(Value, String)> = (0..VALUES)
            .map(|n| {
                let value = Value { sql: Pools::value(leaf, n), json: pools.json(leaf, n).into() };
                (value, pools.text(leaf, n).to_owned())
            })
            .collect();
        for _ in 0..6 {
            let making = Making::random(&mut random);
            cases.push(making.case(described.sql_type, [&kinds[0], &kinds[1]], &values));
        }
    }
    let (_, yes, no) = compare(&mut client, &cases);
    assert!(yes > 2000 && no > 1000, "{yes} yes, {no} no");
}

#[test]
fn filters_of_types_made_of_others_are_written_and_read() {
    let (mut client, pools) = session("other_types");
    run(&mut client, "CREATE TYPE pg_temp.first AS ()");
    run(&mut client, &format!("CREATE SCHEMA \"{}\"", SCHEMAS[1].replace('"', "\"\"")));
    let mut random = Random(8);
    let has_multiranges = major_version(&mut client) >= 14;
    let mut cases = Vec::new();
    for n in 0..200 {
        let mut types = Types {
            client: &mut client,
            random: &mut random,
            has_multiranges,
            made: 1000 * n,
        };
        let made: Type = types.composite(1 + n % 3);
        let values: Vec<(Value, String)> = (0..10)
            .map(|_| {
                let value = made.value(&mut random, &pools);
                (value.clone(), value.json)
            })
            .collect();
        cases.push(Making::random(&mut random).case(&made.sql, [&made.kind, &made.kind], &values));
    }
    let (stored, yes, no) = compare(&mut client, &cases);
    assert!(yes > 1000 && no > 300, "{yes} yes, {no} no");
    // The name's length is in the bytes 6 and 7.
    let length = |hex: &String| {
        u16::from_str_radix(&format!("{}{}", &hex[14..16], &hex[12..14]), 16).expect("a number")
    };
    let cut = stored.iter().filter(|hex| length(hex) > 508).count();
    assert!(cut > 5 && cut < stored.len() / 2, "{cut} long names");
}

/// The tests that loop over [`KEY_KIND_SAMPLES`] leave no key kind out.
#[test]
fn every_key_kind_has_a_sample() {
    let mut client = server().database("sampled_kinds");
    run(&mut client, TYPES);
    let mut without_sample: Vec<Tag> = (0..=u8::MAX).filter_map(Tag::from_code).collect();
    without_sample.retain(|tag| *tag != Tag::None);
    for Sample { sql_type, ordinary_value, .. } in KEY_KIND_SAMPLES {
        for layout in LAYOUTS {
            let code: i32 = value(
                &mut client,
                &format!(
                    "SELECT get_byte((bloom_empty(1, 0.01, '{layout}') || ({ordinary_value})::{sql_type})::bytea, 2)
                     FROM (SELECT 1) AS number (i)"
                ),
            );
            without_sample.retain(|tag| i32::from(*tag as u8) != code);
        }
    }
    assert!(without_sample.is_empty(), "no sample has one of the kinds {without_sample:?}");
}
