//! The life of a primary and its standby: what the primary writes is asked for on the standby,
//! which then takes over.

use super::asking::{Answers, agree, check, indexes};
use super::standby::{
    StopsWhenDropped, assert_same_pages, catch_up, follow, index_is_gone, is_behind, is_death,
    wait_until,
};
use super::{Random, Server, random, refused, run, state_of, times, value};
use postgres::{Client, Error};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A table whose index is asked on a standby.
pub struct Followed {
    pub table: &'static str,
    pub index: &'static str,
    /// States of the table that are seen on the standby.
    pub states: usize,
    /// Rows that the standby still sees come before the primary dies.
    pub more_rows: i64,
    /// What distinguishes states of the table: an expression over its rows.
    pub state: &'static str,
    /// The next change of the table. Rows have ascending numbers, of which this is the next one.
    pub change: fn(&mut Random, &mut usize) -> String,
    /// Some questions.
    pub questions: fn(&mut Random) -> Vec<String>,
}

impl Followed {
    /// Changes the table until told to stop, or the server is gone: some statements for each look
    /// at it.
    fn write(
        &self,
        client: &mut Client,
        seed: u64,
        next: &mut usize,
        done: &AtomicBool,
        seen: &AtomicUsize,
    ) -> Result<usize, Error> {
        let mut random = Random(seed);
        let mut statements = 0;
        while !done.load(Ordering::Relaxed) {
            if statements > 4 * (seen.load(Ordering::Relaxed) + 1) || is_behind(client)? {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            client.batch_execute(&(self.change)(&mut random, next))?;
            statements += 1;
        }
        Ok(statements)
    }

    /// Asks the standby while the primary writes. Returns how many states and rows it saw.
    fn read(
        &self,
        client: &mut Client,
        random: &mut Random,
        mut goes_on: impl FnMut(usize) -> bool,
    ) -> (usize, usize) {
        let Followed { table, index, state, .. } = self;
        let (mut states, mut answers) = (BTreeSet::new(), 0);
        let (mut questions, mut by_index) = (0, 0);
        while goes_on(states.len()) {
            for sql in (self.questions)(random) {
                let found = match Answers::of_standby(client, &sql, index) {
                    Err(error) if index_is_gone(&error) => {
                        run(client, "ROLLBACK");
                        continue;
                    }
                    found => found.expect("a standby can be asked"),
                };
                let Some(found) = found else { continue };
                found.assert_same(&sql);
                answers += found.by_scan.len();
                // What was just built may be for later snapshots only.
                questions += 1;
                by_index += usize::from(found.used(index));
            }
            let state = format!("SELECT md5(string_agg({state}, ',' ORDER BY id)) FROM {table}");
            match client.query_one(&state, &[]) {
                Err(error) if index_is_gone(&error) => continue,
                row => {
                    states.insert(row.expect("a standby can be asked").get::<_, Option<String>>(0))
                }
            };
            if states.len() % 4 == 0 {
                match client.query_one(&format!("SELECT bloom_index_check('{index}')"), &[]) {
                    // It was replaced between the look at its name and its lock.
                    Err(error) => assert_eq!(state_of(&error), "42P01", "{error:?}"),
                    Ok(row) => assert!(row.get::<_, i64>(0) >= 0),
                }
            }
        }
        assert!(
            by_index * 2 > questions,
            "only {by_index} of {questions} questions were asked of the index"
        );
        (states.len(), answers)
    }

    /// Makes tables, follows them, compares answers and pages, kills the primary while it writes,
    /// and promotes the standby. Returns a client of the new primary, and the number of the next
    /// row.
    pub fn live(&self, tables: &[&str], seed: u64) -> (Server, Client, Random, usize) {
        let config = "wal_level = replica\nmax_wal_senders = 5\nwal_consistency_checking = 'all'\nmax_wal_size = 64MB\n\
            max_standby_streaming_delay = -1";
        let (primary, standby) = (Server::start(config), Server::start(config));
        let mut on_primary = primary.database("followed");
        tables.iter().for_each(|sql| run(&mut on_primary, sql));
        follow(&standby, &primary);
        let mut on_standby = standby.connect("followed");
        catch_up(&mut on_primary, &mut on_standby);
        let (mut random, mut next) = (random(seed), 1);
        self.ask_while_it_writes(&mut on_primary, &mut on_standby, &mut random, &mut next);
        catch_up(&mut on_primary, &mut on_standby);
        for index in indexes(&mut on_primary, self.table) {
            assert_same_pages(&mut on_primary, &mut on_standby, &index);
        }
        refused(&mut on_standby, "25006", &format!("REINDEX INDEX {}", self.index));
        self.die_while_it_writes(
            &primary,
            &mut on_primary,
            &mut on_standby,
            &mut random,
            &mut next,
        );
        assert!(value::<bool>(&mut on_standby, "SELECT pg_promote()"));
        (standby, on_standby, random, next)
    }

    fn ask_while_it_writes(
        &self,
        primary: &mut Client,
        standby: &mut Client,
        random: &mut Random,
        next: &mut usize,
    ) {
        let (done, seen) = (&AtomicBool::new(false), &AtomicUsize::new(0));
        let (states, answers) = thread::scope(|scope| {
            let stop = StopsWhenDropped(done);
            let seed = random.bits();
            let writing = scope.spawn(move || {
                self.write(primary, seed, next, done, seen)
                    .expect("the primary can be written to")
            });
            let found = self.read(standby, random, |states| {
                seen.fetch_add(1, Ordering::Relaxed);
                states < times(self.states) && !writing.is_finished()
            });
            drop(stop);
            println!("{} statements on the primary", writing.join().expect("the writer ends"));
            found
        });
        assert!(states >= times(self.states) && answers > 0);
        println!("{states} states and {answers} rows seen on the standby");
    }

    fn die_while_it_writes(
        &self,
        server: &Server,
        primary: &mut Client,
        standby: &mut Client,
        random: &mut Random,
        next: &mut usize,
    ) {
        let (done, unlimited) = (&AtomicBool::new(false), &AtomicUsize::new(usize::MAX / 8));
        let highest = format!("SELECT coalesce(max(id), 0)::bigint FROM {}", self.table);
        thread::scope(|scope| {
            let _stop = StopsWhenDropped(done);
            let seed = random.bits();
            let before: i64 = value(standby, &highest);
            let writing = scope.spawn(move || self.write(primary, seed, next, done, unlimited));
            wait_until("the standby sees more", || {
                writing.is_finished() || value::<i64>(standby, &highest) > before + self.more_rows
            });
            server.kill9();
            let error = writing
                .join()
                .expect("the writer ends")
                .expect_err("its server is gone");
            assert!(is_death(&error), "{error:?}");
        });
    }

    /// Asks the new primary, whose indexes are complete. A crash may have come between the steps of
    /// REINDEX CONCURRENTLY; the index by its name is valid.
    pub fn agree(&self, client: &mut Client, random: &mut Random) {
        for sql in (self.questions)(random) {
            agree(client, self.index, &sql);
        }
        for index in indexes(client, self.table) {
            check(client, &index);
        }
    }
}
