//! Rows that are inserted.

use super::{Bench, Index, limited};
use crate::{ROUNDS, Row};
use pg_bloom_benches::median;

/// Rows of a statement.
const STATEMENT: usize = 500;

/// Inserts rows one by one, and returns the longest time, in seconds.
const LONGEST: &str = "
    CREATE FUNCTION longest(rows integer) RETURNS float8 LANGUAGE plpgsql AS $$
    DECLARE
        start timestamptz;
        longest interval := '0';
    BEGIN
        FOR i IN 1..rows LOOP
            start := clock_timestamp();
            INSERT INTO t VALUES (-i, md5('longest ' || i), repeat('x', 52));
            longest := greatest(longest, clock_timestamp() - start);
        END LOOP;
        RETURN extract(epoch FROM longest);
    END $$";

impl Bench {
    /// A batch of rows by statements of 500 each: seconds and bytes of WAL of a row.
    fn insert(&mut self, salt: usize) -> (f64, f64) {
        let statements = (self.rows / 60 / STATEMENT).max(2);
        let lsn = "SELECT pg_current_wal_insert_lsn()::text";
        let before: String = self.database.value(lsn);
        let seconds = self.database.time(&format!(
            "DO $$ BEGIN FOR s IN 1..{statements} LOOP
                INSERT INTO t SELECT -i, md5('{salt} ' || s || ' ' || i), repeat('x', 52) FROM generate_series(1, {STATEMENT}) AS i;
             END LOOP; END $$"
        ));
        let written: i64 = self
            .database
            .value(&format!("SELECT (pg_current_wal_insert_lsn() - '{before}'::pg_lsn)::bigint"));
        let rows = (statements * STATEMENT) as f64;
        (seconds / rows, written as f64 / rows)
    }

    /// Batches into the table with each of the indexes, and with none, in turn.
    pub(super) fn inserts(&mut self) -> Vec<Row> {
        let mut cases: Vec<Option<Index>> = self.indexes.iter().copied().map(Some).collect();
        cases.push(None);
        let mut seconds = vec![Vec::new(); cases.len()];
        let mut wal = vec![[0.0; 2]; cases.len()];
        for round in 0..=ROUNDS {
            for (n, case) in cases.iter().enumerate() {
                self.only(*case);
                if round == 0 {
                    self.database.run("CHECKPOINT");
                }
                let (time, bytes) = self.insert(round * cases.len() + n);
                if round > 0 {
                    seconds[n].push(time);
                }
                // The first batch after a checkpoint, and the last one long after it.
                wal[n][usize::from(round > 0)] = bytes;
            }
        }
        let last = cases.len() - 1;
        let (none, none_wal) = (median(&mut seconds[last]), wal[last]);
        let mut costs = [0.0; Index::ALL.len()];
        for (n, case) in cases.iter().enumerate() {
            let Some(index) = *case else { continue };
            let cost = median(&mut seconds[n]) - none;
            costs[index as usize] = cost;
            let facts = self.facts(index);
            facts.insert = cost;
            facts.wal = [wal[n][0] - none_wal[0], wal[n][1] - none_wal[1]];
        }
        let (ours, theirs) = (costs[Index::Ours as usize], costs[Index::Btree as usize]);
        let steady = self.facts(Index::Ours).wal[1];
        vec![
            Row::timed(
                "a row's insertion, beyond none",
                "B-tree",
                &mut [ours],
                &mut [theirs],
                0.25,
            ),
            limited("WAL of a row, steady, beyond none", steady, 120.0, "bytes"),
            self.longest(),
        ]
    }

    /// The longest INSERT of a row among many that fill several tiles.
    fn longest(&mut self) -> Row {
        self.database.run(LONGEST);
        // A new segment of the WAL takes thirty milliseconds to be filled with zeros, whoever needs
        // it.
        self.database.run("SET wal_init_zero = off");
        let rows = self.rows / 30;
        let measure = |bench: &mut Bench, index| {
            bench.only(index);
            bench.database.value::<f64>(&format!("SELECT longest({rows})")) * 1e3
        };
        let without = measure(self, None);
        let with = measure(self, Some(Index::Ours));
        let title = format!(
            "the longest of {rows} INSERTs while tiles are added (without an index {without:.1} ms)"
        );
        limited(title, with, 20.0, "ms")
    }
}
