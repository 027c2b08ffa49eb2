//! One key at a time.

use super::{Bench, Index, limited};
use crate::{ROUNDS, Row};
use pg_bloom_benches::median;

/// Keys that pages are counted for.
const COUNTED: usize = 100;

/// Times each lookup within the server, in seconds: a client and its socket would take longer than
/// an index does.
const LOOKUP: &str = "
    CREATE FUNCTION lookup(keys text[]) RETURNS float8[] LANGUAGE plpgsql AS $$
    DECLARE
        wanted text;
        start timestamptz;
        times float8[] := '{}';
    BEGIN
        FOREACH wanted IN ARRAY keys LOOP
            start := clock_timestamp();
            PERFORM id FROM t WHERE key = wanted;
            times := times || extract(epoch FROM clock_timestamp() - start)::float8;
        END LOOP;
        RETURN times;
    END $$";

impl Index {
    /// Lookups of a measurement: some take milliseconds.
    const fn lookups(self) -> usize {
        match self {
            Index::Contrib => 5,
            Index::Brin => 40,
            _ => 400,
        }
    }
}

/// Pages that executing a query reads of relations of these kinds: tables ("r"), indexes ("i").
/// Ours reads both.
const PAGES: &str = "
    CREATE FUNCTION pages_read(query text, kinds text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        fetched CONSTANT text := format('SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::bigint FROM pg_class
            WHERE oid >= 16384 AND strpos(%L, relkind::text) > 0', kinds);
        before bigint;
        planned bigint;
        after bigint;
    BEGIN
        EXECUTE fetched INTO before;
        EXECUTE 'EXPLAIN ' || query;
        EXECUTE fetched INTO planned;
        EXECUTE query;
        EXECUTE fetched INTO after;
        RETURN after - planned - (planned - before);
    END $$";

impl Bench {
    /// Keys of rows of the table, or of none.
    fn keys(&self, many: usize, round: usize, is_present: bool) -> Vec<String> {
        let of = |i: usize| {
            let number = (i + round * many) * 7_919 % self.rows + 1;
            format!(
                "md5('{}')",
                if is_present { number.to_string() } else { format!("no {number}") }
            )
        };
        (0..many).map(of).collect()
    }

    /// Seconds of each of many lookups.
    fn times_of(&mut self, index: Index, round: usize, is_present: bool) -> Vec<f64> {
        let keys = self.keys(index.lookups(), round, is_present).join(", ");
        self.database.value(&format!("SELECT lookup(ARRAY[{keys}])"))
    }

    /// Pages that lookups read, index and heap together: their mean.
    fn pages(&mut self, is_present: bool) -> f64 {
        self.mean_of_pages("t", is_present, "ri")
    }

    /// Pages of the index that lookups of absent keys read: their mean.
    pub(super) fn index_pages(&mut self, table: &str) -> f64 {
        self.mean_of_pages(table, false, "i")
    }

    fn mean_of_pages(&mut self, table: &str, is_present: bool, kinds: &str) -> f64 {
        let keys = self.keys(COUNTED, 0, is_present).join(", ");
        self.database.value(&format!(
            "SELECT avg(pages_read(format('SELECT id FROM {table} WHERE key = %L', k), '{kinds}'))::float8
             FROM unnest(ARRAY[{keys}]) AS k"
        ))
    }

    /// Each index asked for present and for absent keys, in turn: the medians of present keys'
    /// times and the means of absent ones', in seconds, a round each.
    pub(super) fn ask_each(&mut self) -> Vec<[Vec<f64>; 2]> {
        self.database.run(LOOKUP);
        self.database.run(PAGES);
        self.database.run("SET enable_seqscan = off");
        let indexes = self.indexes.clone();
        let mut times = vec![[Vec::new(), Vec::new()]; Index::ALL.len()];
        for round in 0..=ROUNDS {
            for index in &indexes {
                self.only(Some(*index));
                for (n, is_present) in [true, false].into_iter().enumerate() {
                    let measured = self.times_of(*index, round, is_present);
                    if round > 0 {
                        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
                        let middle = median(&mut measured.clone());
                        times[*index as usize][n].push(if is_present { middle } else { mean });
                    }
                }
            }
        }
        for index in &indexes {
            self.only(Some(*index));
            let pages = [self.pages(true), self.pages(false)];
            let facts = self.facts(*index);
            [facts.present_pages, facts.absent_pages] = pages;
            let [present, absent] = &mut times[*index as usize];
            (facts.present, facts.absent) = (median(present), median(absent));
        }
        times
    }

    /// Lookups of one key, against their bars.
    pub(super) fn lookups(&mut self) -> Vec<Row> {
        let mut times = self.ask_each();
        let indexes = self.indexes.clone();
        let mut rows = Vec::new();
        for (index, [present, absent]) in [
            (Index::Btree, [9.0, 2.0]),
            (Index::Brin, [1.0 / 30.0, 1.0 / 100.0]),
        ] {
            if !indexes.contains(&index) {
                continue;
            }
            let [mut ours_present, mut ours_absent] = times[Index::Ours as usize].clone();
            let [theirs_present, theirs_absent] = &mut times[index as usize];
            let title = index.title();
            rows.push(Row::timed(
                "a present key, median",
                title,
                &mut ours_present,
                theirs_present,
                present,
            ));
            rows.push(Row::timed(
                "an absent key, mean",
                title,
                &mut ours_absent,
                theirs_absent,
                absent,
            ));
        }
        self.only(Some(Index::Ours));
        self.database.run("ANALYZE appended");
        let (built, appended) = (self.index_pages("t"), self.index_pages("appended"));
        self.database.run("RESET enable_seqscan; DROP TABLE appended");
        rows.push(limited("index pages read for an absent key, built", built, 5.0, "pages"));
        rows.push(limited("index pages read for an absent key, appended", appended, 18.0, "pages"));
        rows
    }
}
