//! Time and size of builds.

use super::{Bench, Index};
use crate::Row;
use pg_bloom_benches::median;

/// Builds of ours and of one other in turn.
const BUILDS: usize = 3;

/// A row that compares sizes.
fn sizes(work: &str, ours: i64, theirs: i64, bar: f64) -> Row {
    let show = |bytes: i64| format!("{:.2} MB", bytes as f64 / 1e6);
    Row {
        work: work.into(),
        against: "B-tree, built".into(),
        ours: show(ours),
        theirs: show(theirs),
        ratio: ours as f64 / theirs as f64,
        bar,
    }
}

impl Bench {
    /// Builds all indexes of the table, and those of some others.
    pub(super) fn builds(&mut self) -> Vec<Row> {
        let mut rows = self.builds_in_turn();
        rows.extend(self.builds_in_locales());
        rows.extend(self.sizes_of_text());
        rows.extend(self.sizes_of_uuid());
        rows.push(self.concurrently());
        rows
    }

    fn build(&mut self, index: Index) -> f64 {
        self.database
            .time(&format!("CREATE INDEX {} ON t USING {}", index.name(), index.using()))
    }

    /// Ours against a B-tree in "C" and BRIN's best, in turn, and one build of each other.
    pub(super) fn builds_in_turn(&mut self) -> Vec<Row> {
        let mut times = vec![Vec::new(); Index::ALL.len()];
        for round in 1..=BUILDS {
            for index in self.indexes.clone() {
                let slow = matches!(index, Index::Hash | Index::Contrib);
                if slow && round < BUILDS {
                    continue;
                }
                times[index as usize].push(self.build(index));
                if round < BUILDS {
                    self.database.run(&format!("DROP INDEX {}", index.name()));
                }
            }
        }
        let mut rows = Vec::new();
        for index in self.indexes.clone() {
            let bytes = self.bytes(index.name());
            let facts = self.facts(index);
            facts.build = median(&mut times[index as usize]);
            facts.bytes = bytes;
            let bar = match index {
                Index::Btree => 1.0 / 3.0,
                Index::Brin => 1.0,
                _ => continue,
            };
            let mut ours = times[Index::Ours as usize].clone();
            let against = if index == Index::Btree { "B-tree in \"C\"" } else { "BRIN" };
            rows.push(Row::timed(
                "CREATE INDEX",
                against,
                &mut ours,
                &mut times[index as usize],
                bar,
            ));
        }
        rows
    }

    /// Texts are compared by the rules of the system's library and of ICU, of those that there are.
    fn builds_in_locales(&mut self) -> Vec<Row> {
        self.database.run(
            "DO $$ BEGIN CREATE COLLATION \"en_US.UTF-8\" (LOCALE = 'en_US.UTF-8'); EXCEPTION WHEN OTHERS THEN NULL; END $$",
        );
        let mut rows = Vec::new();
        for (collation, bar) in [("en_US.UTF-8", 1.0 / 10.0), ("en-x-icu", 1.0 / 6.0)] {
            let is_there =
                format!("SELECT count(*) > 0 FROM pg_collation WHERE collname = '{collation}'");
            if !self.database.value::<bool>(&is_there) {
                continue;
            }
            let mut build = |using: &str| {
                let time = self.database.time(&format!(
                    "CREATE INDEX t_locale ON t USING {using} (key COLLATE \"{collation}\")"
                ));
                self.database.run("DROP INDEX t_locale");
                time
            };
            let (theirs, ours) = (build("btree"), build("bloom_filter"));
            let against = format!("B-tree in \"{collation}\"");
            rows.push(Row::timed("CREATE INDEX", against, &mut [ours], &mut [theirs], bar));
        }
        rows
    }

    fn sizes_of_text(&mut self) -> Vec<Row> {
        let (ours, theirs) = (self.bytes("t_ours"), self.bytes("t_btree"));
        let mut rows = vec![sizes("size, text, built", ours, theirs, 1.0 / 18.0)];
        self.database
            .run("CREATE TABLE appended (LIKE t) WITH (autovacuum_enabled = off)");
        self.database
            .run("CREATE INDEX appended_ours ON appended USING bloom_filter (key)");
        self.database.run("INSERT INTO appended SELECT * FROM t");
        let appended = self.bytes("appended_ours");
        rows.push(sizes("size, text, appended", appended, theirs, 1.0 / 15.0));
        let small = self.rows / 100;
        let made = self.of_rows("small", "key text COLLATE \"C\"", "md5(i::text)", small);
        self.database.run(&made);
        self.database
            .run("CREATE INDEX small_ours ON small USING bloom_filter (key); CREATE INDEX small_btree ON small (key)");
        let (ours, theirs) = (self.bytes("small_ours"), self.bytes("small_btree"));
        rows.push(sizes(&format!("size, text, {small} rows, built"), ours, theirs, 1.0 / 12.0));
        self.database.run("DROP TABLE small");
        rows
    }

    fn sizes_of_uuid(&mut self) -> Vec<Row> {
        let made = self.of_rows("u", "key uuid", "md5(i::text)::uuid", self.rows);
        self.database.run(&made);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..BUILDS {
            self.database.run("DROP INDEX IF EXISTS u_ours, u_btree");
            ours.push(
                self.database
                    .time("CREATE INDEX u_ours ON u USING bloom_filter (key)"),
            );
            theirs.push(self.database.time("CREATE INDEX u_btree ON u (key)"));
        }
        let (built, btree) = (self.bytes("u_ours"), self.bytes("u_btree"));
        self.database.run(
            "CREATE TABLE v (LIKE u); CREATE INDEX v_ours ON v USING bloom_filter (key); INSERT INTO v SELECT * FROM u",
        );
        let appended = self.bytes("v_ours");
        self.database.run("DROP TABLE u, v");
        vec![
            Row::timed("CREATE INDEX, uuid", "B-tree", &mut ours, &mut theirs, 1.0 / 3.0),
            sizes("size, uuid, built", built, btree, 1.0 / 9.5),
            sizes("size, uuid, appended", appended, btree, 1.0 / 8.0),
        ]
    }

    fn concurrently(&mut self) -> Row {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..BUILDS {
            with.push(
                self.database
                    .time("CREATE INDEX CONCURRENTLY t_second ON t USING bloom_filter (key)"),
            );
            self.database.run("DROP INDEX t_second");
            without.push(
                self.database
                    .time("CREATE INDEX t_second ON t USING bloom_filter (key)"),
            );
            self.database.run("DROP INDEX t_second");
        }
        Row::timed("CREATE INDEX CONCURRENTLY", "CREATE INDEX", &mut with, &mut without, 3.0)
    }
}
