//! The index over what is in values, in a server, against GIN: windows of text, words, members of
//! arrays, values in jsonb.
//!
//! Each class has a table with our index and a GIN index on it, `fastupdate` off. Which of them the
//! planner sees, and which inserts go into, is set in pg_index.
//!
//! | file | what it measures |
//! |---|---|
//! | `lines` | nothing: it makes the log lines |
//! | `builds` | size, `CREATE INDEX`, `CREATE INDEX CONCURRENTLY` |
//! | `patterns` | `LIKE`, and the ranges that are read for it |
//! | `rare` | a rare word, member, value |
//! | `inserts` | time and WAL of a row |
//! | `growth` | sizes by the number of rows, and a figure |

mod builds;
pub mod growth;
mod inserts;
pub mod lines;
mod patterns;
mod rare;

use crate::Row;
use crate::database::Database;
use lines::Random;
use std::io::Write;

/// Seeds of the lines of the table, and of others.
const SEEDS: [u64; 2] = [1, 2];

/// A table with a column that has parts, and what is expected of our index on it.
struct Class {
    /// Name of the table, and of the column.
    name: &'static str,
    /// Its type.
    column: &'static str,
    /// What the rows of the page call it.
    title: &'static str,
    /// Values of row `i`, from `i` and the line `message`.
    value: &'static str,
    /// The table has one row for so many lines.
    share: usize,
    /// Operator classes, if not the default ones: ours, and GIN's.
    classes: [&'static str; 2],
    /// What our size may be at most, as a share of GIN's.
    size: f64,
    /// A query for conditions that one row meets, for so many rows; none for text.
    rare: &'static str,
    /// Whether another table has the same operator class: some rows are about operator classes.
    is_repeated: bool,
}

impl Class {
    /// The name of our index.
    fn ours(&self) -> String {
        format!("{}_ours", self.name)
    }

    /// What the rows of the page call GIN's.
    fn gin_title(&self) -> String {
        match self.classes[1] {
            "" => "GIN".into(),
            class => format!("GIN `{class}`"),
        }
    }

    /// The name of the GIN index.
    fn gin(&self) -> String {
        format!("{}_gin", self.name)
    }

    /// What follows the table's name in CREATE INDEX: for ours, and for GIN.
    fn using(&self) -> [String; 2] {
        let [ours, gin] = self.classes;
        [
            format!("USING bloom_filter ({} {ours})", self.name),
            format!("USING gin ({} {gin}) WITH (fastupdate = off)", self.name),
        ]
    }
}

const TEXT: Class = Class {
    name: "message",
    column: "text",
    title: "log lines",
    value: "message",
    share: 1,
    classes: ["text_ngram_ops", "gin_trgm_ops"],
    size: 1.0 / 20.0,
    rare: "",
    is_repeated: false,
};

const OTHERS: [Class; 4] = [
    Class {
        name: "words",
        column: "tsvector",
        title: "`tsvector` of log lines",
        value: "to_tsvector('simple', message)",
        share: 2,
        classes: ["", ""],
        size: 1.0 / 12.0,
        rare: "SELECT format('words @@ %L', quote_literal(word)) FROM ts_stat('SELECT words FROM words') WHERE ndoc = 1
               ORDER BY md5(word)",
        is_repeated: false,
    },
    Class {
        name: "ids",
        column: "bigint[]",
        title: "`bigint[]` of five unique ids",
        value: "ARRAY(SELECT hashint8extended(5 * i + n, 1) FROM generate_series(1, 5) AS n)",
        share: 2,
        classes: ["", ""],
        size: 1.0 / 12.0,
        rare: "SELECT format('ids @> %L', ids[3:3]) FROM ids ORDER BY hashint8(id)",
        is_repeated: false,
    },
    Class {
        name: "tags",
        column: "integer[]",
        title: "`integer[]` of five out of 100,000",
        value: "ARRAY(SELECT abs(hashint8extended(5 * i + n, 2) % 100000)::integer FROM generate_series(1, 5) AS n)",
        share: 2,
        classes: ["", ""],
        size: 1.0 / 2.3,
        rare: "",
        is_repeated: true,
    },
    Class {
        name: "attributes",
        column: "jsonb",
        title: "`jsonb` of seven keys",
        value: "jsonb_build_object('trace', to_hex(hashint8extended(i, 3)), 'user', abs(hashint8extended(i, 4) % 100000),
                'host', 'node-' || abs(hashint8extended(i, 5) % 200), 'service', 'service ' || abs(hashint8extended(i, 6) % 30),
                'status', 200 + abs(hashint8extended(i, 7) % 5), 'path', '/api/' || abs(hashint8extended(i, 8) % 1000),
                'took', abs(hashint8extended(i, 9) % 5000))",
        share: 2,
        classes: ["", "jsonb_path_ops"],
        size: 1.0 / 7.0,
        rare: "SELECT format('attributes @> %L', jsonb_build_object('trace', attributes -> 'trace')) FROM attributes
               ORDER BY hashint8(id)",
        is_repeated: false,
    },
];

/// A server with the tables.
pub struct Bench {
    /// Where they are.
    pub database: Database,
    /// Lines of the table of text.
    lines: Vec<String>,
}

impl Bench {
    /// Makes a database, and in it the lines that all tables are made from: so many, and those that
    /// are inserted later.
    pub fn new(rows: usize) -> Bench {
        let mut database = Database::create("keys");
        database.run(
            "SET maintenance_work_mem = '512MB'; SET synchronous_commit = off; SET synchronize_seqscans = off;
             CREATE EXTENSION pg_trgm; CREATE TABLE lines (i bigint, message text) WITH (autovacuum_enabled = off)",
        );
        database.run(ASK);
        let make = |seed, many| {
            let mut random = Random::new(seed);
            (0..many).map(|_| random.line()).collect::<Vec<String>>()
        };
        let mut bench = Bench { database, lines: make(SEEDS[0], rows) };
        let others = make(SEEDS[1], bench.inserted());
        let mut copy = bench
            .database
            .client
            .copy_in("COPY lines FROM STDIN")
            .expect("lines can be copied");
        for (i, line) in bench.lines.iter().chain(&others).enumerate() {
            assert!(!line.contains(['\\', '\t']), "a line needs no quoting");
            writeln!(copy, "{i}\t{line}").expect("lines can be copied");
        }
        copy.finish().expect("lines can be copied");
        bench
    }

    /// All measurements, and what is to be known of the lines.
    pub fn measure(&mut self) -> (String, Vec<Row>) {
        self.make(&TEXT);
        let mut rows = self.builds_of_text();
        rows.push(self.concurrently(&TEXT));
        let (text, measured) = self.patterns();
        rows.extend(measured);
        // Last, since each index misses the rows that go into the other.
        rows.extend(self.inserts(&TEXT));
        for class in &OTHERS {
            self.make(class);
            rows.push(self.build(class));
            if !class.is_repeated {
                rows.push(self.concurrently(class));
                rows.push(self.rare(class));
            }
            rows.extend(self.inserts(class));
        }
        (text, rows)
    }

    /// Makes the table of a class, and one with the rows that are inserted later.
    fn make(&mut self, class: &Class) {
        let Class { name, column, value, share, .. } = class;
        let (rows, end) = (self.lines.len(), self.lines.len() / share);
        self.database.run(&format!(
            "CREATE TABLE {name} (id bigint, {name} {column}) WITH (autovacuum_enabled = off);
             INSERT INTO {name} SELECT i, {value} FROM lines WHERE i < {end};
             CREATE TABLE more_{name} AS SELECT i - {rows} AS id, {value} AS value FROM lines WHERE i >= {rows}"
        ));
        self.database.run(&format!("VACUUM (FREEZE, ANALYZE) {name}"));
        self.database.run(&format!("ANALYZE more_{name}"));
    }

    fn bytes(&mut self, relation: &str) -> i64 {
        self.database.value(&format!("SELECT pg_relation_size('{relation}')"))
    }

    /// Seconds of each of these queries in the server.
    fn ask(&mut self, queries: &[String]) -> Vec<f64> {
        self.database
            .client
            .query_one("SELECT ask($1)", &[&queries])
            .expect("they can be asked")
            .get(0)
    }
}

/// Times queries within the server, in seconds, with their planning.
const ASK: &str = "
    CREATE FUNCTION ask(queries text[]) RETURNS float8[] LANGUAGE plpgsql AS $$
    DECLARE
        query text;
        start timestamptz;
        times float8[] := '{}';
        rows bigint;
    BEGIN
        FOREACH query IN ARRAY queries LOOP
            start := clock_timestamp();
            EXECUTE query INTO rows;
            times := times || extract(epoch FROM clock_timestamp() - start)::float8;
        END LOOP;
        RETURN times;
    END $$";

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
