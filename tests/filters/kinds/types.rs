//! Random types that are made of others, and random values of them.

use super::leaves::{LEAVES, Leaf, Pools, VALUES};
use crate::common::{Random, run};
use postgres::Client;

/// Schemas of the types.
pub const SCHEMAS: [&str; 3] = ["public", "Sch\"e ma", "pg_temp"];
/// Names of types and columns begin like this.
const NAMES: [&str; 8] = [
    "a",
    "b B",
    "select",
    "é",
    "9",
    "_x9",
    "Quo\"te",
    "กขคงจฉชซฌญฎฏฐฑฒณ",
];

/// A type.
#[derive(Clone)]
pub struct Type {
    /// Its name in SQL.
    pub sql: String,
    /// The name of what it is a domain over, or its own.
    base: String,
    /// Its key kind as the writer reads it.
    pub kind: String,
    shape: Shape,
}

#[derive(Clone)]
enum Shape {
    Leaf(usize),
    Array(Box<Type>),
    Row(Vec<Type>),
    /// Of a leaf whose values ascend.
    OwnRange {
        leaf: usize,
        is_multirange: bool,
    },
    /// Of values in any order, with the name of the type of the ranges in SQL.
    Range {
        bound: Box<Type>,
        range: String,
        is_multirange: bool,
    },
}

/// A value in SQL, and as the writer reads it.
#[derive(Clone)]
pub struct Value {
    pub sql: String,
    pub json: String,
}

/// Makes random types.
pub struct Types<'a> {
    pub client: &'a mut Client,
    pub random: &'a mut Random,
    pub has_multiranges: bool,
    /// How many were made.
    pub made: usize,
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Types<'_> {
    /// A type that is made of others, so deep at most.
    pub fn composite(&mut self, depth: usize) -> Type {
        let made = match self.random.below(5) {
            0 | 1 => self.row(depth),
            2 | 3 => self.array(depth),
            _ => self.range(depth),
        };
        self.maybe_domain(made)
    }

    fn part(&mut self, depth: usize) -> Type {
        if depth > 0 && self.random.below(2) == 0 {
            return self.composite(depth);
        }
        let leaf = self.random.below(LEAVES.len());
        self.maybe_domain(Type::leaf(leaf))
    }

    fn maybe_domain(&mut self, base: Type) -> Type {
        if self.random.below(4) > 0 { base } else { self.domain(base) }
    }

    fn domain(&mut self, base: Type) -> Type {
        let (sql, _) = self.name();
        run(self.client, &format!("CREATE DOMAIN {sql} AS {}", base.sql));
        Type { sql, ..base }
    }

    /// A new name of a type: in SQL, and as schema and name in JSON.
    fn name(&mut self) -> (String, String) {
        self.made += 1;
        let schema = *self.random.pick(&SCHEMAS);
        let name = format!("{}{}", self.random.pick(&NAMES), self.made);
        (format!("{}.{}", quoted(schema), quoted(&name)), format!("[{schema:?}, {name:?}]"))
    }

    fn array(&mut self, depth: usize) -> Type {
        let mut element = self.part(depth - 1);
        if matches!(element.shape, Shape::Array(_)) && element.sql == element.base {
            // An array of arrays is one of more dimensions, unless a domain is between.
            element = self.domain(element);
        }
        let sql = format!("{}[]", element.sql);
        let kind = format!(r#"{{"array": {}}}"#, element.kind);
        Type {
            base: sql.clone(),
            sql,
            kind,
            shape: Shape::Array(Box::new(element)),
        }
    }

    fn row(&mut self, depth: usize) -> Type {
        let (sql, name) = self.name();
        // Rows of many columns have names that are cut.
        let count = if self.random.below(6) == 0 {
            12 + self.random.below(12)
        } else {
            self.random.below(4)
        };
        let (mut types, mut columns, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..count {
            let part = self.part(depth - 1);
            let column = format!("{}{i}", self.random.pick(&NAMES));
            columns.push(format!("{} {}", quoted(&column), part.sql));
            kinds.push(format!("[{column:?}, {}]", part.kind));
            types.push(part);
        }
        run(self.client, &format!("CREATE TYPE {sql} AS ({})", columns.join(", ")));
        let kind = format!(r#"{{"row": {name}, "columns": [{}]}}"#, kinds.join(", "));
        Type { base: sql.clone(), sql, kind, shape: Shape::Row(types) }
    }

    fn range(&mut self, depth: usize) -> Type {
        let is_multirange = self.has_multiranges && self.random.below(2) == 0;
        let sort = if is_multirange { "multirange" } else { "range" };
        let leaf = self.random.below(LEAVES.len());
        if let Some(ranges) = &LEAVES[leaf].ranges {
            let name = if is_multirange { ranges.multirange } else { ranges.range };
            let kind = format!(
                r#"{{"{sort}": ["pg_catalog", "{name}"], "of": {}}}"#,
                Type::leaf(leaf).kind
            );
            return Type {
                sql: name.into(),
                base: name.into(),
                kind,
                shape: Shape::OwnRange { leaf, is_multirange },
            };
        }
        let bound = self.part(depth - 1);
        let ((mut sql, mut name), (multirange, of_multirange)) = (self.name(), self.name());
        let option = if self.has_multiranges {
            format!(", multirange_type_name = {multirange}")
        } else {
            String::new()
        };
        run(self.client, &format!("CREATE TYPE {sql} AS RANGE (subtype = {}{option})", bound.sql));
        let range = sql.clone();
        if is_multirange {
            (sql, name) = (multirange, of_multirange);
        }
        let kind = format!(r#"{{"{sort}": {name}, "of": {}}}"#, bound.kind);
        Type {
            base: sql.clone(),
            sql,
            kind,
            shape: Shape::Range { bound: Box::new(bound), range, is_multirange },
        }
    }
}

impl Type {
    pub fn leaf(leaf: usize) -> Type {
        let Leaf { sql_type, kinds, .. } = &LEAVES[leaf];
        let kind = if kinds[0].starts_with('{') {
            kinds[0].to_owned()
        } else {
            format!("{:?}", kinds[0])
        };
        Type {
            sql: (*sql_type).into(),
            base: (*sql_type).into(),
            kind,
            shape: Shape::Leaf(leaf),
        }
    }

    /// A value that is not NULL.
    pub fn value(&self, random: &mut Random, pools: &Pools) -> Value {
        let Value { sql, json } = match &self.shape {
            Shape::Leaf(leaf) => {
                let n = random.below(VALUES);
                Value {
                    sql: Pools::value(*leaf, n),
                    json: pools.json(*leaf, n).into(),
                }
            }
            Shape::Array(element) => self.array(element, random, pools),
            Shape::Row(types) => {
                let columns: Vec<Value> =
                    types.iter().map(|part| part.member(random, pools)).collect();
                let (sql, json) =
                    (joined(&columns, |value| &value.sql), joined(&columns, |value| &value.json));
                Value {
                    sql: format!("ROW({sql})"),
                    json: format!(r#"{{"row": [{json}]}}"#),
                }
            }
            Shape::OwnRange { leaf, is_multirange } => {
                self.own_range(*leaf, *is_multirange, random, pools)
            }
            Shape::Range { bound, range: name, is_multirange } => {
                let value = bound.value(random, pools);
                let none = || Value { sql: "NULL".into(), json: "null".into() };
                let ranges = match random.below(5) {
                    0 if *is_multirange => Vec::new(),
                    0 => vec![Value { sql: "'empty'".into(), json: r#""empty""#.into() }],
                    1 => vec![range(name, none(), none(), "[]")],
                    2 => vec![range(
                        name,
                        value,
                        none(),
                        random.pick::<&str>(&["[]", "()"]),
                    )],
                    3 => vec![range(
                        name,
                        none(),
                        value,
                        random.pick::<&str>(&["[]", "()"]),
                    )],
                    _ => vec![range(name, value.clone(), value, "[]")],
                };
                self.of_ranges(*is_multirange, ranges)
            }
        };
        Value { sql: format!("({sql})::{}::{}", self.base, self.sql), json }
    }

    /// A value within another.
    fn member(&self, random: &mut Random, pools: &Pools) -> Value {
        if random.below(6) == 0 {
            return Value { sql: format!("NULL::{}", self.sql), json: "null".into() };
        }
        self.value(random, pools)
    }

    fn array(&self, element: &Type, random: &mut Random, pools: &Pools) -> Value {
        let (sql, array, lower) = match random.below(8) {
            0 => ("'{}'".to_owned(), "[]".to_owned(), String::new()),
            1 => {
                let Value { sql, json } = element.member(random, pools);
                let sql = format!("array_fill({sql}, ARRAY[2, 1, 3], ARRAY[-7, 1, 0])");
                let row = format!("[[{json}, {json}, {json}]]");
                (sql, format!("[{row}, {row}]"), r#", "lower": [-7, 1, 0]"#.to_owned())
            }
            dimension => {
                let lines: Vec<Vec<Value>> = (0..2)
                    .map(|_| (0..3).map(|_| element.member(random, pools)).collect())
                    .collect();
                let lists = lines.iter().map(|line| {
                    (joined(line, |value| &value.sql), joined(line, |value| &value.json))
                });
                let lists: Vec<(String, String)> = lists
                    .map(|(sql, json)| (format!("[{sql}]"), format!("[{json}]")))
                    .collect();
                let (first, second) = (&lists[0], &lists[1]);
                if dimension > 4 {
                    (format!("ARRAY{}", first.0), first.1.clone(), String::new())
                } else {
                    let sql = format!("ARRAY[{}, {}]", first.0, second.0);
                    (sql, format!("[{}, {}]", first.1, second.1), String::new())
                }
            }
        };
        Value { sql, json: format!(r#"{{"array": {array}{lower}}}"#) }
    }

    fn own_range(
        &self,
        leaf: usize,
        is_multirange: bool,
        random: &mut Random,
        pools: &Pools,
    ) -> Value {
        let ranges = LEAVES[leaf].ranges.as_ref().expect("the leaf has ranges");
        let count = if is_multirange { random.below(4) } else { 1 };
        let mut ends: Vec<usize> = (0..VALUES).collect();
        while ends.len() > 2 * count {
            ends.swap_remove(random.below(ends.len()));
        }
        ends.sort_unstable();
        let ranges: Vec<Value> = ends
            .chunks_exact(2)
            .enumerate()
            .map(|(i, ends)| {
                let mut bound = |n: usize, may_be_none: bool| {
                    if may_be_none && random.below(4) == 0 {
                        return Value { sql: "NULL".into(), json: "null".into() };
                    }
                    Value { sql: Pools::value(leaf, n), json: pools.json(leaf, n).into() }
                };
                let (lower, upper) = (bound(ends[0], i == 0), bound(ends[1], i + 1 == count));
                let brackets =
                    if ranges.is_discrete { "[)" } else { *random.pick(&["[)", "(]", "()", "[]"]) };
                range(ranges.range, lower, upper, brackets)
            })
            .collect();
        self.of_ranges(is_multirange, ranges)
    }

    /// A range, or the multirange of ranges that ascend.
    fn of_ranges(&self, is_multirange: bool, ranges: Vec<Value>) -> Value {
        if !is_multirange {
            let Value { sql, json } = ranges.into_iter().next().expect("there is a range");
            return Value { sql, json: format!(r#"{{"range": {json}}}"#) };
        }
        let json = joined(&ranges, |value| &value.json);
        let json = format!(r#"{{"multirange": [{json}]}}"#);
        let sql = match (&self.shape, &ranges[..]) {
            (_, []) => "'{}'".into(),
            (Shape::Range { .. }, [range, ..]) => format!("multirange({})", range.sql),
            (_, ranges) => {
                let ranges: Vec<&str> =
                    ranges.iter().rev().map(|value| value.sql.as_str()).collect();
                format!("{}({})", self.base, ranges.join(", "))
            }
        };
        Value { sql, json }
    }
}

/// A range as PostgreSQL keeps it: an infinite bound is not stored.
fn range(name: &str, lower: Value, upper: Value, brackets: &str) -> Value {
    let sql = format!("{name}({}, {}, '{brackets}')", lower.sql, upper.sql);
    let first = if lower.json == "null" { "(" } else { &brackets[..1] };
    let last = if upper.json == "null" { ")" } else { &brackets[1..] };
    Value {
        sql,
        json: format!(r#"["{first}{last}", {}, {}]"#, lower.json, upper.json),
    }
}

fn joined(values: &[Value], part: impl Fn(&Value) -> &String) -> String {
    values
        .iter()
        .map(|value| part(value).as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
