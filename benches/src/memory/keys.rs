//! Random keys of a table four times as large as the memory: lookups and insertions.

use super::{Bench, Taken, megabytes, milliseconds, reads};
use crate::keys::lines::Random;
use crate::{Row, median, show};
use pg_bloom_benches::machine;
use std::fmt::Write as _;

/// The memory of the server, as a share of the table.
const SHARE: f64 = 0.25;
/// How often the server is started for each index.
const ROUNDS: usize = 3;
/// Lookups of each kind that are the first after a start.
const FIRST: usize = 100;
/// So many rows of the table for one of the lookups of each kind before those that count as later
/// ones. A larger index needs more of them until as large a share of it is in memory.
const ROWS_PER_LOOKUP: usize = 20_000;
const LEAST_BETWEEN: usize = 1000;
/// Later lookups.
const LATER: usize = 200;
/// Rows of each statement that inserts.
const ROWS: usize = 1000;
/// So many rows of the table for one that is inserted. With more insertions, pages of the B-tree are
/// changed several times between two checkpoints, but written whole to the WAL only once.
const ROWS_PER_INSERTED: usize = 200;
const LEAST_INSERTIONS: usize = 20;

/// An index that is compared.
struct Side {
    /// What follows the table's name.
    name: &'static str,
    title: &'static str,
    method: &'static str,
    bytes: f64,
    build_seconds: f64,
    /// Present and absent keys: first after a start, later.
    first: [Taken; 2],
    later: [Taken; 2],
    inserted: Taken,
}

impl Side {
    fn new(name: &'static str, title: &'static str, method: &'static str) -> Side {
        Side {
            name,
            title,
            method,
            bytes: 0.0,
            build_seconds: 0.0,
            first: Default::default(),
            later: Default::default(),
            inserted: Taken::default(),
        }
    }

    fn index(&self) -> String {
        format!("spans_{}", self.name)
    }
}

impl Bench {
    /// Measures lookups and insertions of random keys. Returns a table, and the rows with bars.
    pub(super) fn keys(&mut self, rows: usize) -> (String, Vec<Row>) {
        let mut sides = [
            Side::new("btree", "B-tree", "btree"),
            Side::new("hash", "hash", "hash"),
            Side::new("ours", "`bloom_filter`", "bloom_filter"),
        ];
        self.database.run(&format!(
            "SET maintenance_work_mem = '1GB';
             CREATE TABLE spans (trace uuid, span bigint, body text) WITH (autovacuum_enabled = off);
             INSERT INTO spans SELECT md5(i::text)::uuid, i, repeat(md5(i::text), 1)
               FROM generate_series(1, {rows}) AS i"
        ));
        self.database.run("VACUUM (FREEZE, ANALYZE) spans");
        for side in &mut sides {
            let index = side.index();
            side.build_seconds = self
                .database
                .time(&format!("CREATE INDEX {index} ON spans USING {} (trace)", side.method));
            side.bytes = self.bytes(&index);
        }
        let table_bytes = self.bytes("spans");
        let memory = super::memory_for(table_bytes, SHARE);

        let between = (rows / ROWS_PER_LOOKUP).max(LEAST_BETWEEN);
        let mut random = Random::new(1);
        for _ in 0..ROUNDS {
            for side in &mut sides {
                self.database.only("spans", &side.index());
                self.restart(memory);
                for (present, first) in [true, false].into_iter().zip(&mut side.first) {
                    first.add(self.look_up(FIRST, present, rows, &mut random));
                }
                for (present, later) in [true, false].into_iter().zip(&mut side.later) {
                    self.look_up(between, present, rows, &mut random);
                    later.add(self.look_up(LATER, present, rows, &mut random));
                }
            }
        }

        // Last, since each index lacks the rows that are inserted into the others.
        let mut none = Taken::default();
        let insertions = (rows / ROWS_PER_INSERTED / ROWS).max(LEAST_INSERTIONS);
        let mut first_row = rows;
        for side in &mut sides {
            self.database.only("spans", &side.index());
            self.restart(memory);
            side.inserted = self.insert(insertions, &mut first_row);
        }
        self.database.only("spans", "");
        self.restart(memory);
        none.add(self.insert(insertions, &mut first_row));
        self.restart(memory);
        let latency = self.random_read_time("spans");

        let version = self.database.version();
        let text = format!(
            "PostgreSQL {version}, {}. A random page of the disk takes {}. `effective_io_concurrency` is 16, \
             `random_page_cost` 1.5.\n\n{}",
            machine::describe(),
            show(latency),
            table(&sides, &none, rows, table_bytes, memory as f64)
        );
        self.database.run("DROP TABLE spans");
        (text, bars(&mut sides))
    }

    /// Looks up random keys.
    fn look_up(
        &mut self,
        lookups: usize,
        present: bool,
        rows: usize,
        random: &mut Random,
    ) -> Taken {
        let prefix = if present { "" } else { "absent " };
        let statement = self
            .database
            .client
            .prepare("SELECT span FROM spans WHERE trace = md5($1)::uuid")
            .expect("a query can be prepared");
        self.take(lookups, |database, _| {
            let key = format!("{prefix}{}", 1 + random.below(rows));
            let found = database
                .client
                .query(&statement, &[&key])
                .expect("a key can be looked up");
            assert_eq!(found.len(), usize::from(present), "{key}");
        })
    }

    /// Inserts rows with new keys after the first `first_row` ones, by so many statements, and adds
    /// their number.
    fn insert(&mut self, insertions: usize, first_row: &mut usize) -> Taken {
        let first = *first_row;
        *first_row += insertions * ROWS;
        self.take(insertions, |database, number| {
            let from = first + number * ROWS + 1;
            database.run(&format!(
                "INSERT INTO spans SELECT md5(i::text)::uuid, i, repeat(md5(i::text), 1)
                 FROM generate_series({from}, {}) AS i",
                from + ROWS - 1
            ));
        })
    }
}

fn table(sides: &[Side; 3], none: &Taken, rows: usize, table_bytes: f64, memory: f64) -> String {
    let mut text = format!(
        "| {rows} rows with random keys, table {} MB, memory {} MB |",
        megabytes(table_bytes),
        megabytes(memory)
    );
    for side in sides {
        write!(text, " {} |", side.title).expect("text can be written to");
    }
    text.push_str("\n|---|---:|---:|---:|\n");
    let mut line = |title: &str, cell: &dyn Fn(&Side) -> String| {
        write!(text, "| {title} |").expect("text can be written to");
        for side in sides {
            write!(text, " {} |", cell(side)).expect("text can be written to");
        }
        text.push('\n');
    };
    line("size, MB", &|side| megabytes(side.bytes));
    line("`CREATE INDEX`, s", &|side| format!("{:.1}", side.build_seconds));
    line("1,000 rows inserted, mean, ms", &|side| milliseconds(side.inserted.mean()));
    line("disk reads for them", &|side| format!("{:.0}", side.inserted.requests_each()));
    line("WAL for them, MB", &|side| megabytes(side.inserted.wal_bytes_each()));
    let time = |taken: &Taken| {
        format!("{} ({})", milliseconds(median(&mut taken.seconds.clone())), reads(taken))
    };
    line("a present key, median, ms (reads): first after start", &|side| time(&side.first[0]));
    line("later", &|side| time(&side.later[0]));
    line("an absent key: first after start", &|side| time(&side.first[1]));
    line("later", &|side| time(&side.later[1]));
    writeln!(
        text,
        "\nWithout an index 1,000 rows take {} ms and {} MB of WAL.",
        milliseconds(none.mean()),
        megabytes(none.wal_bytes_each())
    )
    .expect("text can be written to");
    text
}

fn bars(sides: &mut [Side; 3]) -> Vec<Row> {
    let [btree, _, ours] = sides;
    let mut rows = Vec::new();
    let kinds = [("a present key", 2.0), ("an absent key", 0.7)];
    for (number, (kind, bar)) in kinds.into_iter().enumerate() {
        let times = [
            ("first after start", &mut ours.first, &mut btree.first),
            ("later", &mut ours.later, &mut btree.later),
        ];
        for (when, ours, theirs) in times {
            rows.push(Row::timed(
                format!("{kind}, {when}"),
                "B-tree",
                &mut ours[number].seconds,
                &mut theirs[number].seconds,
                bar,
            ));
        }
    }
    let (a, b) = (ours.inserted.mean(), btree.inserted.mean());
    rows.push(Row {
        work: "1,000 rows inserted, mean".into(),
        against: "B-tree".into(),
        ours: show(a),
        theirs: show(b),
        ratio: a / b,
        bar: 1.0 / 20.0,
    });
    let (a, b) = (ours.inserted.wal_bytes_each(), btree.inserted.wal_bytes_each());
    rows.push(Row {
        work: "their WAL".into(),
        against: "B-tree".into(),
        ours: format!("{} MB", megabytes(a)),
        theirs: format!("{} MB", megabytes(b)),
        ratio: a / b,
        bar: 1.0 / 10.0,
    });
    rows
}
