//! Standbys, and waiting for what other sessions do.

use super::{PATIENCE, Server, output, run, value};
use postgres::Client;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Tells others to stop when it goes, which is also when a test fails.
pub struct StopsWhenDropped<'a>(pub &'a AtomicBool);

impl Drop for StopsWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "waited for nothing: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether this is what a client sees of a server's death. A process may notice that before it is
/// killed itself.
pub fn is_death(error: &postgres::Error) -> bool {
    // The last is what the leader of a parallel build says whose workers were killed first.
    error
        .code()
        .is_none_or(|code| ["57P01", "55000"].contains(&code.code()))
}

/// Makes a server a copy of another one, which it then follows. The other one keeps WAL until it
/// was sent, however slow the copy is.
pub fn follow(standby: &Server, primary: &Server) {
    standby.stop();
    let data = standby.dir().join("data");
    std::fs::remove_dir_all(&data).expect("the new server's data can be deleted");
    output(
        primary
            .program("pg_basebackup")
            .args([
                "-X", "stream", "-c", "fast", "-C", "-S", "follower", "-R", "-D",
            ])
            .arg(&data),
    );
    let mut config =
        std::fs::read_to_string(data.join("postgresql.conf")).expect("there is a configuration");
    config.push_str(&format!(
        "unix_socket_directories = '{}'\nhot_standby_feedback = on\n",
        standby.dir().display()
    ));
    std::fs::write(data.join("postgresql.conf"), config).expect("the configuration can be written");
    output(
        Command::new("chown")
            .arg("-R")
            .arg("--reference")
            .arg(standby.dir())
            .arg(&data),
    );
    standby.restart();
}

/// Whether a standby is so far behind that the disk might fill with WAL. Where nobody follows,
/// nobody is behind.
pub fn is_behind(primary: &mut Client) -> Result<bool, postgres::Error> {
    let sql = "SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)) > 32 * 1024 * 1024, false)
        FROM pg_stat_replication";
    Ok(primary.query_one(sql, &[])?.get(0))
}

/// Waits until a standby has replayed what the primary has written.
pub fn catch_up(primary: &mut Client, standby: &mut Client) {
    let written: String = value(primary, "SELECT pg_current_wal_flush_lsn()::text");
    wait_until("the standby catches up", || {
        value(standby, &format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"))
    });
}

/// The pages of an index as they are on disk, without what a standby may have otherwise: LSN,
/// checksum and flags. Pages of zeroes at the end are left out: nothing was ever written there.
fn pages(client: &mut Client, index: &str) -> Vec<Vec<u8>> {
    run(client, "CHECKPOINT");
    let bytes: Vec<u8> =
        value(client, &format!("SELECT pg_read_binary_file(pg_relation_filepath('{index}'))"));
    let mut pages: Vec<Vec<u8>> = bytes.chunks(8192).map(|page| page[12..].to_vec()).collect();
    while pages.last().is_some_and(|page| page.iter().all(|byte| *byte == 0)) {
        pages.pop();
    }
    pages
}

/// Whether an index was dropped between the planner's look at the list of indexes and its opening
/// them. That may happen on standbys, where whoever replays REINDEX CONCURRENTLY waits for no
/// snapshot, with indexes of any sort.
pub fn index_is_gone(error: &postgres::Error) -> bool {
    error
        .as_db_error()
        .is_some_and(|e| e.message().starts_with("could not open relation with OID"))
}

/// Asserts that an index has the same bytes on a primary and on its standby.
pub fn assert_same_pages(primary: &mut Client, standby: &mut Client, index: &str) {
    run(primary, "CHECKPOINT");
    catch_up(primary, standby);
    let (there, here) = (pages(primary, index), pages(standby, index));
    let different: Vec<usize> = (0..there.len().max(here.len()))
        .filter(|&n| there.get(n) != here.get(n))
        .collect();
    println!("{index}: {} pages on the primary, {} on the standby", there.len(), here.len());
    assert!(different.is_empty(), "pages {different:?} of {index} differ on the standby");
}
