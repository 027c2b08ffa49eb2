//! A writer in plain Python, written from docs/format.md alone, makes the bytes that the server
//! makes.

use crate::common::{LAYOUTS, Random, python, run, times};
use crate::server;
use postgres::Client;

/// A type of elements: its key kind in general and in the layout `parquet`, as given to the writer,
/// and the text of the i-th of them, in SQL and for the writer.
struct Element {
    sql_type: &'static str,
    kinds: [&'static str; 2],
    text: fn(usize) -> String,
}

const fn element(
    sql_type: &'static str,
    general: &'static str,
    parquet: &'static str,
    text: fn(usize) -> String,
) -> Element {
    Element { sql_type, kinds: [general, parquet], text }
}

const ELEMENTS: [Element; 9] = [
    element("integer", "integer", "parquet INT32", |i| format!("{}", i as i64 - 50)),
    element("bigint", "integer", "parquet INT64", |i| format!("{}", i as i64 * 1_000_000_007)),
    element("text", "text", "text", |i| format!("é{i}")),
    element("bytea", "bytea", "bytea", |i| format!("\\x{i:08x}")),
    element("numeric", "numeric", "numeric", |i| format!("{}.{}", i / 10, i % 10)),
    element("double precision", "float", "parquet DOUBLE", |i| format!("{}.25", i * i)),
    element("uuid", "uuid", "uuid", |i| format!("{:032x}", i * i)),
    element("date", "date", "date", |i| {
        format!("{:04}-{:02}-{:02}", 1900 + i / 336, i / 28 % 12 + 1, i % 28 + 1)
    }),
    element("boolean", "boolean", "boolean", |i| if i % 2 == 0 { "t".into() } else { "f".into() }),
];

/// An expression in SQL and for the writer.
#[derive(Clone)]
struct Expression {
    sql: String,
    json: String,
}

/// What filters that may be merged have in common.
struct Family {
    element: &'static Element,
    layout: &'static str,
    fpr: f64,
    capacity: u64,
}

impl Family {
    fn random(random: &mut Random) -> Family {
        let layout = *random.pick(&LAYOUTS);
        let least = if layout == "parquet" { 6.0 } else { 9.0 };
        let fpr = match random.below(3) {
            0 => *random.pick(&[0.5, 0.1, 0.05, 0.01, 0.001]),
            // Few, since the writer takes long to find the size of a rate that it hasn't met.
            _ => 10f64.powf(-0.302 - random.below(8) as f64 / 8.0 * (least - 0.31)),
        };
        let capacity = 10f64.powf(random.below(2_600) as f64 / 1e3) as u64;
        static KNOWN: [Element; 9] = ELEMENTS;
        Family { element: random.pick(&KNOWN), layout, fpr, capacity }
    }

    /// Some elements, distinct or not.
    fn elements(&self, random: &mut Random, most: usize) -> Vec<String> {
        let count = random.below(most + 1);
        (0..count)
            .map(|_| (self.element.text)(random.below(most * 2 + 2)))
            .collect()
    }

    fn kind(&self) -> &'static str {
        self.element.kinds[usize::from(self.layout == "parquet")]
    }

    fn array(&self, elements: &[String]) -> String {
        let quoted: Vec<String> = elements.iter().map(|text| format!("'{text}'")).collect();
        format!("ARRAY[{}]::{}[]", quoted.join(", "), self.element.sql_type)
    }

    fn list(elements: &[String]) -> String {
        format!(
            "[{}]",
            elements
                .iter()
                .map(|text| format!("{text:?}"))
                .collect::<Vec<_>>()
                .join(", ")
        )
    }

    fn filter(&self, random: &mut Random) -> Expression {
        let capacity = match random.below(5) {
            0 => None,
            n => Some(self.capacity << (n - 1)),
        };
        let most = 1 + random.below(2 * self.capacity as usize + 2).min(600);
        let elements = self.elements(random, most);
        let (in_sql, in_json) = capacity
            .map_or(("NULL".to_owned(), "null".to_owned()), |c| (c.to_string(), c.to_string()));
        Expression {
            sql: format!(
                "bloom_from_array({}, {in_sql}, {:?}, '{}')",
                self.array(&elements),
                self.fpr,
                self.layout
            ),
            json: format!(
                r#"{{"layout": "{}", "capacity": {in_json}, "fpr": {:?}, "kind": "{}", "elements": {}}}"#,
                self.layout,
                self.fpr,
                self.kind(),
                Family::list(&elements)
            ),
        }
    }

    fn counting(&self, random: &mut Random) -> Expression {
        let elements = self.elements(random, 1 + (self.capacity as usize).min(300));
        let sql = format!(
            "(SELECT counting_bloom_agg(x, {}, {:?}) FROM unnest({}) AS x)",
            self.capacity,
            self.fpr,
            self.array(&elements)
        );
        let json = format!(
            r#"{{"counting": true, "capacity": {}, "fpr": {:?}, "kind": "{}", "elements": {}}}"#,
            self.capacity,
            self.fpr,
            self.element.kinds[0],
            Family::list(&elements)
        );
        // An aggregate over no rows has no size.
        if elements.is_empty() {
            let (capacity, fpr) = (self.capacity, self.fpr);
            return Expression {
                sql: format!("counting_bloom_empty({capacity}, {fpr:?})"),
                json,
            };
        }
        Expression { sql, json }
    }

    /// An expression of filters that are merged, folded and resized, so deep at most.
    fn expression(&self, random: &mut Random, depth: usize) -> Expression {
        if depth == 0 {
            return self.filter(random);
        }
        let a = self.expression(random, depth - 1);
        match random.below(8) {
            0..=3 => {
                let depth = random.below(depth);
                let b = self.expression(random, depth);
                let (sign, name) =
                    *random.pick(&[("|", "union"), ("|", "union"), ("&", "intersection")]);
                Expression {
                    sql: format!("({} {sign} {})", a.sql, b.sql),
                    json: format!(r#"{{"{name}": [{}, {}]}}"#, a.json, b.json),
                }
            }
            4 | 5 => {
                let fpr = random.pick(&[0.5, 0.3, 0.1, 0.01]);
                Expression {
                    sql: format!("bloom_fold({}, {fpr})", a.sql),
                    json: format!(r#"{{"fold": {}, "fpr": {fpr}}}"#, a.json),
                }
            }
            6 => {
                let capacity = self.capacity << random.below(6);
                Expression {
                    sql: format!("bloom_resize({}, {capacity})", a.sql),
                    json: format!(r#"{{"resize": {}, "capacity": {capacity}}}"#, a.json),
                }
            }
            _ => a,
        }
    }
}

/// The stored bytes of expressions, in hexadecimal. Filters that can't be merged have none.
fn stored(client: &mut Client, expressions: &[Expression]) -> Vec<Option<String>> {
    let bytes = |expression: &Expression| {
        let sql = format!("SELECT encode({}::bytea, 'hex')", expression.sql);
        match client.query_one(&sql, &[]) {
            Ok(row) => Some(row.get(0)),
            Err(error) => {
                assert_eq!(crate::common::state_of(&error), "22023", "{sql}\n{error:?}");
                None
            }
        }
    };
    expressions.iter().map(bytes).collect()
}

/// Compares what the server and the writer make of expressions. Returns the stored bytes, and how
/// many are sparse, dense or counters.
fn compare(client: &mut Client, expressions: &[Expression]) -> (Vec<String>, [usize; 3]) {
    let expected = stored(client, expressions);
    let pairs: Vec<(&Expression, String)> = expressions
        .iter()
        .zip(expected)
        .filter_map(|(expression, hex)| Some((expression, hex?)))
        .collect();
    let lines: String = pairs
        .iter()
        .map(|(expression, _)| expression.json.clone() + "\n")
        .collect();
    let written = python::lines("writer.py", &[], &lines);
    assert_eq!(written.len(), pairs.len());
    let mut forms = [0; 3];
    for ((expression, hex), written) in pairs.iter().zip(&written) {
        assert!(
            hex == written,
            "{}\n{}\nis {hex}\nand was written as {written}",
            expression.sql,
            expression.json
        );
        forms[usize::from(hex.as_bytes()[7] - b'0')] += 1;
    }
    (pairs.into_iter().map(|(_, hex)| hex).collect(), forms)
}

/// Compares cardinality and rate as the server and the page have them.
fn compare_estimates(client: &mut Client, sql_type: &str, values: &[String]) {
    let numbers = |text: &str| -> [f64; 2] {
        let mut numbers = text
            .split(' ')
            .map(|number| number.replace("Infinity", "inf").parse().expect("a number"));
        [(); 2].map(|()| numbers.next().expect("two numbers"))
    };
    let estimated = python::lines("estimates.py", &[], &(values.join("\n") + "\n"));
    let sql = format!(
        "SELECT (i).cardinality || ' ' || (i).current_fpr
         FROM unnest($1::text[]) WITH ORDINALITY AS t (v, n), LATERAL {sql_type}_info(decode(v, 'hex')::{sql_type}) AS i ORDER BY n"
    );
    let shown = client
        .query(&sql, &[&values])
        .expect("the server shows its estimates");
    assert_eq!((shown.len(), estimated.len()), (values.len(), values.len()));
    for ((shown, estimated), value) in shown.iter().zip(&estimated).zip(values) {
        let shown: String = shown.get(0);
        for (a, b) in numbers(&shown).into_iter().zip(numbers(estimated)) {
            assert!(
                a == b || (a / b - 1.0).abs() < 1e-9,
                "{shown} and not {estimated} for {value}"
            );
        }
    }
}

fn session(name: &str) -> Client {
    let mut client = server().database(name);
    run(&mut client, "SET pg_bloom.overfill = ignore; SET pg_bloom.max_filter_size = '511MB'");
    client
}

#[test]
fn the_writer_builds_merges_and_folds_as_the_server_does() {
    let mut client = session("written");
    let mut random = Random(29);
    let count = times(240);
    let filters: Vec<Expression> = (0..count)
        .map(|i| Family::random(&mut random).expression(&mut random, i % 4))
        .collect();
    let (values, [sparse, dense, counters]) = compare(&mut client, &filters);
    assert!(
        sparse > count / 5 && dense > count / 5 && counters == 0,
        "{sparse} sparse, {dense} dense"
    );
    let merged = values.iter().filter(|hex| hex[16..32] != hex[32..48]).count();
    assert!(merged > count / 24, "only {merged} filters were merged from several sizes");
    compare_estimates(&mut client, "bloom", &values);

    let counting: Vec<Expression> = (0..count / 4)
        .map(|i| {
            let family = Family { layout: "blocked", ..Family::random(&mut random) };
            let family = Family { fpr: family.fpr.max(1e-4), ..family };
            let [a, b] = [family.counting(&mut random), family.counting(&mut random)];
            match i % 3 {
                0 => a,
                1 => Expression {
                    sql: format!("({} + {})", a.sql, b.sql),
                    json: format!(r#"{{"sum": [{}, {}]}}"#, a.json, b.json),
                },
                _ => Expression {
                    sql: format!("{}::bloom", a.sql),
                    json: format!(r#"{{"shown": {}}}"#, a.json),
                },
            }
        })
        .collect();
    let (mut values, [.., counters]) = compare(&mut client, &counting);
    assert!(counters >= count / 6, "{counters}");
    values.retain(|hex| hex.as_bytes()[7] == b'2');
    compare_estimates(&mut client, "counting_bloom", &values);
}

#[test]
fn the_writer_sizes_filters_as_the_server_does() {
    let mut client = session("estimated");
    let mut random = Random(30);
    let filters: Vec<Expression> = (0..times(300))
        .map(|_| {
            let family = Family::random(&mut random);
            let capacity = 10f64.powf(random.below(7_000) as f64 / 1e3) as u64;
            let (fpr, layout) = (family.fpr, family.layout);
            Expression {
                sql: format!("bloom_empty({capacity}, {fpr:?}, '{layout}')"),
                json: format!(
                    r#"{{"layout": "{layout}", "capacity": {capacity}, "fpr": {fpr:?}}}"#
                ),
            }
        })
        .collect();
    let (_, [sparse, ..]) = compare(&mut client, &filters);
    assert_eq!(sparse, filters.len());
}

/// The page's table of sizes.
#[test]
fn the_page_has_the_sizes_of_the_server() {
    let page = include_str!("../../docs/format.md");
    let table = page
        .split("| layout | n | p | k | b(k) | `needed` | B |\n")
        .nth(1)
        .expect("the page has the table");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect()
        })
        .collect();
    assert!(rows.len() >= 10);
    let mut client = session("sizes_of_the_page");
    for row in rows {
        let [layout, n, p, k, _, _, blocks] = row[..] else {
            panic!("{row:?}")
        };
        let sql = format!("SELECT num_hashes || ' ' || num_bits / CASE '{layout}' WHEN 'blocked' THEN 512 WHEN 'parquet' THEN 256 ELSE 1 END
            FROM bloom_parameters({n}, {p}, '{layout}')");
        assert_eq!(
            crate::common::value::<String>(&mut client, &sql),
            format!("{k} {blocks}"),
            "{row:?}"
        );
    }
}
