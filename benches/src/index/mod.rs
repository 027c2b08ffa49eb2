//! The index `USING bloom_filter` in a server, against the others that PostgreSQL has for `=`.
//!
//! All of them are on one table at once. Which of them the planner sees, and which inserts go into,
//! is set in pg_index: so each of two is measured in turn on the same heap, in the same cache.
//!
//! | file | what it measures |
//! |---|---|
//! | `builds` | time and size of a build, of an index that was appended to, of a small one |
//! | `lookups` | one key, present or absent: time, and pages that are read |
//! | `inserts` | time and WAL of a row, the longest single INSERT |
//! | `queries` | anti-joins, partitions |
//! | `growth` | size and lookups from a thousandth of the rows to all, and of many more in ours |

mod builds;
pub mod growth;
mod inserts;
mod lookups;
mod queries;

use crate::Row;
use crate::database::Database;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One of the indexes of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Index {
    Ours,
    Btree,
    Hash,
    Contrib,
    Brin,
}

impl Index {
    const ALL: [Index; 5] = [
        Index::Ours,
        Index::Btree,
        Index::Hash,
        Index::Contrib,
        Index::Brin,
    ];

    /// The name of the index.
    const fn name(self) -> &'static str {
        match self {
            Index::Ours => "t_ours",
            Index::Btree => "t_btree",
            Index::Hash => "t_hash",
            Index::Contrib => "t_contrib",
            Index::Brin => "t_brin",
        }
    }

    /// What the tables call it.
    const fn title(self) -> &'static str {
        match self {
            Index::Ours => "`bloom_filter`",
            Index::Btree => "B-tree",
            Index::Hash => "hash",
            Index::Contrib => "contrib/bloom, default",
            Index::Brin => "BRIN `text_bloom_ops`, 32 pages, 0.001",
        }
    }

    /// What follows `USING`, for texts of 65 rows a page.
    const fn using(self) -> &'static str {
        match self {
            Index::Ours => "bloom_filter (key)",
            Index::Btree => "btree (key)",
            Index::Hash => "hash (key)",
            Index::Contrib => "bloom (key)",
            Index::Brin => {
                "brin (key text_bloom_ops (n_distinct_per_range = 2080, false_positive_rate = 0.001))
                 WITH (pages_per_range = 32)"
            }
        }
    }
}

/// What is known of an index: a row of the table that compares all.
#[derive(Default)]
struct Facts {
    bytes: i64,
    build: f64,
    /// Seconds of a lookup of a present and of an absent key, and the pages it reads.
    present: f64,
    absent: f64,
    present_pages: f64,
    absent_pages: f64,
    /// Seconds of a row's insertion beyond that without an index, and bytes of WAL: after a
    /// checkpoint, and later.
    insert: f64,
    wal: [f64; 2],
}

/// A server with a table and its indexes.
pub struct Bench {
    /// Where the table is.
    pub database: Database,
    rows: usize,
    indexes: Vec<Index>,
    facts: BTreeMap<Index, Facts>,
}

impl Bench {
    /// Makes a database and the table: md5 as text, 65 rows a page.
    pub fn new(rows: usize) -> Bench {
        let mut bench = Bench {
            database: Database::create(format!("indexes_of_{rows}")),
            rows,
            indexes: Index::ALL.to_vec(),
            facts: BTreeMap::new(),
        };
        if bench.database.client.batch_execute("CREATE EXTENSION bloom").is_err() {
            bench.indexes.retain(|index| *index != Index::Contrib);
        }
        if bench
            .database
            .value::<i32>("SELECT current_setting('server_version_num')::integer")
            < 140_000
        {
            bench.indexes.retain(|index| *index != Index::Brin);
        }
        bench.database.run(
            "SET maintenance_work_mem = '256MB'; SET synchronous_commit = off; SET default_statistics_target = 100",
        );
        let made = bench.of_rows("t", "key text COLLATE \"C\"", "md5(i::text)", rows);
        bench.database.run(&made);
        bench.database.run("VACUUM (FREEZE, ANALYZE) t");
        bench
    }

    /// Statements that make a table of rows with a key, 120 bytes each if it is of 32 bytes.
    fn of_rows(&self, name: &str, column: &str, key: &str, rows: usize) -> String {
        format!(
            "CREATE TABLE {name} (id bigint, {column}, payload text) WITH (autovacuum_enabled = off);
             INSERT INTO {name} SELECT i, {key}, repeat('x', 52) FROM generate_series(1, {rows}) AS i"
        )
    }

    /// All measurements: a table that compares all indexes, and rows with bars.
    pub fn measure(&mut self) -> (String, Vec<Row>) {
        let mut rows = self.builds();
        rows.extend(self.lookups());
        rows.extend(self.anti_join());
        rows.extend(self.partitions());
        rows.extend(self.small_partitions());
        // Last, since each of them misses the rows that went into another.
        rows.extend(self.inserts());
        (self.comparison(), rows)
    }

    fn bytes(&mut self, relation: &str) -> i64 {
        self.database.value(&format!("SELECT pg_relation_size('{relation}')"))
    }

    /// Lets the planner see this index only, and inserts go into it only; into none if there is
    /// none.
    fn only(&mut self, index: Option<Index>) {
        self.database.only("t", index.map_or("", Index::name));
    }

    fn facts(&mut self, index: Index) -> &mut Facts {
        self.facts.entry(index).or_default()
    }

    /// All indexes side by side.
    fn comparison(&self) -> String {
        let mut text = String::from(
            "| index | MB | build s | present key µs | absent key µs | pages, present | pages, absent | insert µs | WAL bytes |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for index in &self.indexes {
            let Some(f) = self.facts.get(index) else {
                continue;
            };
            writeln!(
                text,
                "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} / {:.0} |",
                index.title(),
                f.bytes as f64 / 1e6,
                f.build,
                f.present * 1e6,
                f.absent * 1e6,
                f.present_pages,
                f.absent_pages,
                f.insert * 1e6,
                f.wal[0],
                f.wal[1]
            )
            .expect("text can be written to");
        }
        text
    }
}

/// A row that compares a number with what it may be at most.
fn limited(work: impl Into<String>, ours: f64, most: f64, unit: &str) -> Row {
    let show = |number: f64| format!("{number:.1} {unit}");
    Row {
        work: work.into(),
        against: "at most".into(),
        ours: show(ours),
        theirs: show(most),
        ratio: ours / most,
        bar: 1.0,
    }
}
