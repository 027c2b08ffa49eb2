//! Damaged files of indexes: each question is answered or fails with an error that names the block
//! and says REINDEX. An answer that is wrong is one that `bloom_index_check` finds. No session
//! dies, and REINDEX repairs everything.

use super::asking::agree;
use super::files::{assert_no_crash, found, refuses};
use super::{Random, Server, column, random, run, times, value};
use postgres::Client;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A table with many indexes `d0`, `d1` and so on, each of which is damaged in another way.
pub struct Damaged {
    pub table: &'static str,
    pub indexes: usize,
    /// Questions that only index `n` is for.
    pub questions: fn(&mut Random, usize) -> Vec<String>,
    /// Rows to insert, whose id is greater than 100000.
    pub inserts: &'static [&'static str],
    /// Damages a file, and says how.
    pub damage: fn(&mut Random, &mut Vec<u8>) -> String,
    /// Whether what the index finds may be in an answer without being asked again.
    pub is_exact: bool,
    /// Whether some damage does no harm even where pages have checksums.
    pub may_be_harmless: bool,
}

/// A query and its rows.
type Asked = (String, Vec<String>);

impl Damaged {
    /// Damages all indexes of a table that is there, and repairs them.
    pub fn live(&self, server: &Server, mut client: Client, seed: u64) {
        let mut random = random(seed);
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in 0..times(1) {
            let asked: Vec<Vec<Asked>> = (0..self.indexes)
                .map(|n| self.ask(&mut client, &mut random, n))
                .collect();
            let (damages, new_client) = self.damage_all(server, client, &mut random);
            client = new_client;
            for (n, damage) in damages.iter().enumerate() {
                let outcome = self.outcome(&mut client, &asked[n], n, damage);
                println!("index {n}: {damage}: {outcome}");
                *outcomes.entry(outcome).or_default() += 1;
            }
            for (n, damage) in damages.iter().enumerate() {
                self.insert(&mut client, n, damage);
            }
            self.repair(&mut client, &mut random);
        }
        assert_no_crash(server);
        println!("{} files: {outcomes:?}", times(1) * self.indexes);
        // PostgreSQL 18 has checksums unless told otherwise: then few damages are harmless, perhaps
        // none.
        let has_checksums = value::<String>(&mut client, "SHOW data_checksums") == "on";
        let expected = if has_checksums { 2 } else { 3 };
        let may_be_more = self.may_be_harmless || has_checksums;
        let is_possible = outcomes.len() == expected || may_be_more && outcomes.len() > expected;
        assert!(is_possible, "not every outcome was seen: {outcomes:?}");
    }

    /// Queries for an index that is not damaged yet: to plan a sequential scan PostgreSQL looks at
    /// it as well.
    fn ask(&self, client: &mut Client, random: &mut Random, n: usize) -> Vec<Asked> {
        (self.questions)(random, n)
            .into_iter()
            .map(|sql| (sql.clone(), column(client, &sql)))
            .collect()
    }

    /// Damages the files of a server that is stopped in the meantime.
    fn damage_all(
        &self,
        server: &Server,
        mut client: Client,
        random: &mut Random,
    ) -> (Vec<String>, Client) {
        let database: String = value(&mut client, "SELECT current_database()::text");
        let paths: Vec<PathBuf> = (0..self.indexes)
            .map(|n| value::<String>(&mut client, &format!("SELECT pg_relation_filepath('d{n}')")))
            .map(|path| server.dir().join("data").join(path))
            .collect();
        server.stop();
        let damaged = |path: &PathBuf| {
            let mut file = std::fs::read(path).expect("an index has a file");
            let said = (self.damage)(random, &mut file);
            std::fs::write(path, file).expect("the file can be written");
            said
        };
        let damages = paths.iter().map(damaged).collect();
        server.restart();
        (damages, server.connect(&database))
    }

    /// What became of a damaged index.
    fn outcome(
        &self,
        client: &mut Client,
        asked: &[Asked],
        n: usize,
        damage: &str,
    ) -> &'static str {
        let check = format!("SELECT bloom_index_check('d{n}')");
        let mut outcome = "unharmed";
        run(client, "SET enable_seqscan = off; SET enable_bitmapscan = on");
        for (sql, there) in asked {
            match found(client, damage, sql) {
                None => outcome = "refused",
                Some(found) if found == *there => {}
                Some(found) => {
                    assert!(
                        self.is_exact || found.len() <= there.len(),
                        "{damage}: rows that nobody asked for"
                    );
                    let is_found = refuses(client, damage, &check);
                    assert!(
                        is_found,
                        "{damage}: the check finds nothing wrong: {sql}: {found:?}, not {there:?}"
                    );
                    outcome = "found by the check";
                }
            }
        }
        if outcome == "unharmed" && refuses(client, damage, &check) {
            outcome = "found by the check";
        }
        refuses(client, damage, &format!("SELECT bloom_index_info('d{n}')"));
        outcome
    }

    /// Inserts into one damaged index, which grows by that, or fails. (Nobody but a test may do
    /// that.)
    fn insert(&self, client: &mut Client, n: usize, damage: &str) {
        run(
            client,
            &format!(
                "UPDATE pg_index SET indisready = (indexrelid = 'd{n}'::regclass)
                 WHERE indrelid = '{}'::regclass AND indisready <> (indexrelid = 'd{n}'::regclass)",
                self.table
            ),
        );
        for sql in self.inserts {
            refuses(client, damage, sql);
        }
        refuses(client, damage, &format!("VACUUM {}", self.table));
    }

    /// Builds all indexes again, which then find everything.
    fn repair(&self, client: &mut Client, random: &mut Random) {
        let table = self.table;
        run(
            client,
            &format!("UPDATE pg_index SET indisready = true WHERE indrelid = '{table}'::regclass"),
        );
        (0..self.indexes).for_each(|n| run(client, &format!("REINDEX INDEX d{n}")));
        run(client, &format!("DELETE FROM {table} WHERE id > 100000"));
        for n in 0..self.indexes {
            for sql in (self.questions)(random, n) {
                agree(client, &format!("d{n}"), &sql);
            }
        }
    }
}
