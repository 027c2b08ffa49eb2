//! Queries with an index inside.

use super::{Bench, Index, limited};
use crate::{ROUNDS, Row};

impl Bench {
    /// New keys that a table doesn't have, by nested loops with an index of each inside.
    pub(super) fn anti_join(&mut self) -> Vec<Row> {
        let keys = self.rows / 30;
        self.database.run(&format!(
            "CREATE TABLE found AS SELECT md5('new ' || i) COLLATE \"C\" AS key FROM generate_series(1, {keys}) AS i;
             ANALYZE found; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off"
        ));
        let sql =
            "SELECT count(*) FROM found AS f WHERE NOT EXISTS (SELECT FROM t WHERE t.key = f.key)";
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            for (index, times) in [(Index::Ours, &mut ours), (Index::Btree, &mut theirs)] {
                self.only(Some(index));
                let time = self.database.time(sql);
                if round > 0 {
                    times.push(time);
                }
            }
        }
        self.database.run(
            "RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_seqscan; DROP TABLE found",
        );
        let work = format!("anti-join of {keys} new keys, nested loop");
        vec![Row::timed(
            work,
            "B-tree inside",
            &mut ours,
            &mut theirs,
            1.8,
        )]
    }

    /// A key that none of a hundred partitions has.
    pub(super) fn partitions(&mut self) -> Vec<Row> {
        let each = self.rows / 100;
        for (table, using) in [
            ("by_ours", "bloom_filter (key)"),
            ("by_btree", "btree (key)"),
        ] {
            self.database.run(&format!(
                "CREATE TABLE {table} (day integer, key text COLLATE \"C\", payload text) PARTITION BY LIST (day);
                 DO $$ BEGIN FOR day IN 1..100 LOOP
                     EXECUTE format('CREATE TABLE {table}_%s PARTITION OF {table} FOR VALUES IN (%1$s)', day);
                     EXECUTE format('INSERT INTO {table} SELECT %s, md5(%1$s || ''/'' || i), repeat(''x'', 56)
                        FROM generate_series(1, {each}) AS i', day);
                 END LOOP; END $$;
                 CREATE INDEX ON {table} USING {using}"
            ));
            self.database.run(&format!("VACUUM ANALYZE {table}"));
            self.database
                .run(&format!("PREPARE {table} (text) AS SELECT * FROM {table} WHERE key = $1"));
        }
        // Planning a hundred partitions takes longer than asking them.
        self.database.run("SET plan_cache_mode = force_generic_plan");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            for (table, times) in [("by_ours", &mut ours), ("by_btree", &mut theirs)] {
                let statements: String = (0..50)
                    .map(|i| format!("EXECUTE {table} ('none {round} {i}');"))
                    .collect();
                let time = self.database.time(&statements) / 50.0;
                if round > 0 {
                    times.push(time);
                }
            }
        }
        self.database.run("RESET plan_cache_mode");
        let read: f64 = self.database.value(
            "SELECT avg(pages_read(format('SELECT * FROM by_ours WHERE key = %L', 'nothing ' || i), 'r'))::float8
             FROM generate_series(1, 200) AS i",
        );
        let pages: f64 = self.database.value(
            "SELECT sum(pg_relation_size(oid) / current_setting('block_size')::integer)::float8 FROM pg_class WHERE relname ~ '^by_ours_[0-9]+$'",
        );
        self.database.run("DROP TABLE by_ours, by_btree");
        let title = format!("absent key, 100 partitions of {each} rows");
        // A page of each range that is read unnecessarily, by chance up to twice as many.
        let expected = (pages * 0.00002 * 2.0).max(1.0);
        vec![
            Row::timed(title.clone(), "B-trees", &mut ours, &mut theirs, 1.5),
            limited(format!("{title}: heap pages of {pages}"), read, expected, "pages"),
        ]
    }

    /// A key whose six rows are side by side in one of a thousand partitions of 51 pages: planned
    /// and executed each time. The planner takes these for so many more rows the less it knows
    /// about a partition.
    pub(super) fn small_partitions(&mut self) -> Vec<Row> {
        let (count, each) = ((self.rows / 6000).clamp(10, 1000), 3000);
        let tables = [
            ("small_ours", "bloom_filter (key)"),
            ("small_btree", "btree (key)"),
        ];
        for (table, using) in tables {
            self.database.run(&format!(
                "CREATE TABLE {table} (part integer, key text COLLATE \"C\", payload text) PARTITION BY LIST (part);
                 CREATE INDEX ON {table} USING {using};
                 DO $$ BEGIN FOR part IN 1..{count} LOOP
                     EXECUTE format('CREATE TABLE {table}_%s PARTITION OF {table} FOR VALUES IN (%1$s)', part);
                     EXECUTE format('INSERT INTO {table} SELECT %s, md5(%1$s || ''/'' || i / 6), repeat(''x'', 56)
                        FROM generate_series(0, {each} - 1) AS i', part);
                 END LOOP; END $$"
            ));
            self.database.run(&format!("VACUUM ANALYZE {table}"));
        }
        let mut rows = Vec::new();
        for cost in ["4", "1.1"] {
            self.database.run(&format!("SET random_page_cost = {cost}"));
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for round in 0..=ROUNDS {
                let (part, key) = (round * 7 % count + 1, round * 31 % (each / 6));
                for ((table, _), times) in tables.into_iter().zip([&mut ours, &mut theirs]) {
                    let time = self.database.time(&format!(
                        "SELECT count(*) FROM {table} WHERE key = md5('{part}/{key}')"
                    ));
                    if round > 0 {
                        times.push(time);
                    }
                }
            }
            let work = format!(
                "key of six rows, {count} partitions of {each} rows, random_page_cost {cost}"
            );
            rows.push(Row::timed(work, "B-trees", &mut ours, &mut theirs, 1.5));
        }
        self.database
            .run("RESET random_page_cost; DROP TABLE small_ours, small_btree");
        rows
    }
}
