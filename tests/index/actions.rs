//! What happens to a table in a random history.

use crate::common::{Random, run, value};
use postgres::Client;
use std::collections::BTreeMap;
use std::io::Write;

/// How many keys there are. Below a tenth of that, keys have many rows.
pub const KEYS: usize = 30_000;
/// What `x` can be. Each is cast to the next, and the last one to the first.
const TYPES: [&str; 6] = [
    "integer",
    "bigint",
    "numeric",
    "text",
    "varchar(40)",
    "varchar(60)",
];
/// A table with more rows than this is shortened.
const MANY: i64 = 6_000;

/// A sort of step: its name, how often it is beside the others, and what it does.
type Sort = (&'static str, usize, fn(&mut Actions, &mut Client));

const SORTS: [Sort; 20] = [
    ("insert", 6, |a, c| {
        let rows = 1 + a.random.below(8);
        a.run(c, |a| a.insert(rows))
    }),
    ("insert many", 5, |a, c| {
        let rows = 200 + a.random.below(800);
        a.run(c, |a| a.insert(rows))
    }),
    ("copy", 4, Actions::copy),
    ("update HOT", 5, |a, c| a.run(c, |a| format!("UPDATE t SET n = n + 1 WHERE {}", a.some()))),
    ("update keys", 5, |a, c| a.run(c, Actions::update_keys)),
    ("update all columns", 3, |a, c| a.run(c, Actions::update_rows)),
    ("delete", 4, |a, c| a.run(c, |a| format!("DELETE FROM t WHERE {}", a.some()))),
    ("transaction", 8, |a, c| a.run(c, Actions::transaction)),
    ("vacuum", 6, |a, c| {
        let how = *a.random.pick(&["", "FREEZE", "(INDEX_CLEANUP on)"]);
        a.run(c, |_| format!("VACUUM {how} t"))
    }),
    ("vacuum full", 1, |a, c| a.run(c, |_| "VACUUM FULL t".into())),
    ("cluster", 2, |a, c| a.run(c, |_| "CLUSTER t USING t_id".into())),
    ("truncate", 1, |a, c| {
        a.run(c, |a| format!("BEGIN; TRUNCATE t; {}; {}", a.insert(30), a.end()))
    }),
    ("reindex", 3, |a, c| {
        let what = *a
            .random
            .pick(&["INDEX t_x", "TABLE t", "INDEX t_part", "INDEX t_md5"]);
        a.run(c, |_| format!("REINDEX {what}"))
    }),
    ("reindex concurrently", 3, |a, c| {
        let what = *a.random.pick(&["INDEX CONCURRENTLY t_x", "TABLE CONCURRENTLY t"]);
        a.run(c, |_| format!("REINDEX {what}"))
    }),
    ("create concurrently", 3, Actions::recreate_concurrently),
    ("create", 2, |a, c| a.run(c, Actions::recreate)),
    ("options", 2, |a, c| a.run(c, |a| format!("ALTER INDEX t_x SET ({})", a.options()))),
    ("alter type", 5, |a, c| a.run(c, Actions::alter_type)),
    ("persistence", 1, |a, c| {
        a.run(c, |_| "ALTER TABLE t SET UNLOGGED; ALTER TABLE t SET LOGGED".into())
    }),
    ("checkpoint", 2, |a, c| a.run(c, |_| "CHECKPOINT".into())),
];

/// A table's history so far.
pub struct Actions {
    random: Random,
    next_id: usize,
    /// Of which of [`TYPES`] `x` is.
    type_now: usize,
    /// How often each sort was.
    done: BTreeMap<&'static str, usize>,
    step: usize,
}

impl Actions {
    pub fn new(random: Random) -> Actions {
        Actions {
            random,
            next_id: 1,
            type_now: 0,
            done: BTreeMap::new(),
            step: 0,
        }
    }

    /// The type that `x` has now.
    pub fn key_type(&self) -> &'static str {
        TYPES[self.type_now]
    }

    /// What was done, and how often.
    pub fn said(&self) -> String {
        self.done
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Does something.
    pub fn step(&mut self, client: &mut Client, step: usize) {
        self.step = step;
        if value::<i64>(client, "SELECT count(*) FROM t") > MANY {
            self.run(client, |a| format!("DELETE FROM t WHERE id % 4 <> {}", a.random.below(4)));
        }
        let mut left = self.random.below(SORTS.iter().map(|(_, weight, _)| weight).sum());
        for (name, weight, act) in SORTS {
            if left < weight {
                *self.done.entry(name).or_default() += 1;
                return act(self, client);
            }
            left -= weight;
        }
    }

    /// Runs a statement, and says which.
    fn run(&mut self, client: &mut Client, sql: impl FnOnce(&mut Actions) -> String) {
        let sql = sql(self);
        println!("{}: {sql}", self.step);
        run(client, &sql);
    }

    /// New rows, narrow or so wide that a page has three of them.
    pub fn insert(&mut self, rows: usize) -> String {
        let (first, pad) = (self.next_id, *self.random.pick(&[0, 10, 300, 2500]));
        self.next_id += rows;
        format!(
            "INSERT INTO t SELECT i, {}, 0, repeat('-', {pad}) FROM generate_series({first}::bigint, {}) AS i",
            self.key_of("i"),
            self.next_id - 1
        )
    }

    /// A key for a row as an expression of its number: every tenth is frequent, every 50th NULL.
    fn key_of(&mut self, number: &str) -> String {
        let salt = self.random.below(KEYS);
        format!(
            "(CASE WHEN {number} % 50 = 7 THEN NULL WHEN {number} % 10 = 3 THEN {number} * 7919 % {}
              ELSE ({number} * 104729 + {salt}) % {KEYS} END)::{}",
            KEYS / 1000,
            self.key_type()
        )
    }

    /// A condition that some rows meet: neighbours, or rows all over the table.
    fn some(&mut self) -> String {
        let low = self.random.below(self.next_id);
        match self.random.below(3) {
            0 => format!("id BETWEEN {low} AND {}", low + self.random.below(400)),
            1 => format!("id % 17 = {}", self.random.below(17)),
            _ => format!("id = {low}"),
        }
    }

    fn end(&mut self) -> &'static str {
        if self.random.below(3) == 0 { "ROLLBACK" } else { "COMMIT" }
    }

    fn update_keys(&mut self) -> String {
        format!("UPDATE t SET x = {} WHERE {}", self.key_of("(id + n)"), self.some())
    }

    /// All indexes get a new entry: the row gets another number.
    fn update_rows(&mut self) -> String {
        let (low, many, by) =
            (self.random.below(self.next_id), self.random.below(400), self.next_id);
        self.next_id += many + 1;
        format!(
            "UPDATE t SET id = id - {low} + {by}, x = {}, pad = repeat('+', {}) WHERE id BETWEEN {low} AND {}",
            self.key_of("id"),
            self.random.below(900),
            low + many
        )
    }

    fn change(&mut self) -> String {
        match self.random.below(5) {
            0 => {
                let rows = 1 + self.random.below(100);
                self.insert(rows)
            }
            1 => self.update_keys(),
            2 => format!("UPDATE t SET n = n + 1 WHERE {}", self.some()),
            3 => format!("DELETE FROM t WHERE {}", self.some()),
            _ => self.insert(2),
        }
    }

    /// Changes with savepoints, one of them rolled back to, that are committed or not.
    fn transaction(&mut self) -> String {
        let changes: Vec<String> = (0..5).map(|_| self.change()).collect();
        let back = *self.random.pick(&["ROLLBACK TO b", "ROLLBACK TO a", "RELEASE b"]);
        let end = self.end();
        format!(
            "BEGIN; {}; SAVEPOINT a; {}; SAVEPOINT b; {}; {back}; {}; {}; {end}",
            changes[0], changes[1], changes[2], changes[3], changes[4]
        )
    }

    fn options(&mut self) -> String {
        let (fpr, pages) = (
            *self.random.pick(&["0.00002", "0.01", "0.1", "0.0000001"]),
            *self.random.pick(&[1, 2, 8, 128]),
        );
        format!("fpr = {fpr}, pages_per_range = {pages}")
    }

    fn recreate_concurrently(&mut self, client: &mut Client) {
        let options = self.options();
        self.run(client, |_| "DROP INDEX CONCURRENTLY t_x".into());
        self.run(client, |_| {
            format!("CREATE INDEX CONCURRENTLY t_x ON t USING bloom_filter (x) WITH ({options})")
        });
    }

    /// In a transaction that changes the table before and after, and may be rolled back.
    fn recreate(&mut self) -> String {
        let (before, after, options, end) =
            (self.change(), self.change(), self.options(), self.end());
        format!(
            "BEGIN; {before}; DROP INDEX t_x; CREATE INDEX t_x ON t USING bloom_filter (x) WITH ({options}); {after}; {end}"
        )
    }

    fn alter_type(&mut self) -> String {
        self.type_now = (self.type_now + 1) % TYPES.len();
        format!("ALTER TABLE t ALTER x TYPE {0} USING x::{0}", self.key_type())
    }

    fn copy(&mut self, client: &mut Client) {
        let (first, rows) = (self.next_id, 50 + self.random.below(500));
        println!("{}: COPY of {rows} rows from {first}", self.step);
        self.next_id += rows;
        let mut writer = client.copy_in("COPY t (id, x, pad) FROM STDIN").expect("COPY begins");
        for id in first..first + rows {
            writeln!(writer, "{id}\t{}\t{}", self.random.below(KEYS), "c".repeat(id % 200))
                .expect("a row is sent");
        }
        writer.finish().expect("COPY ends");
    }
}
