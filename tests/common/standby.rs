//! Standbys, and waiting for what other sessions do.

use super::{PATIENCE, Server, output, value};
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
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether this is what a client sees of a server's death. A process may notice that before it is killed itself.
pub fn is_death(error: &postgres::Error) -> bool {
    // The last is what the leader of a parallel build says whose workers were killed first.
    error.code().is_none_or(|code| ["57P01", "55000"].contains(&code.code()))
}

/// Makes a server a copy of another one, which it then follows. The other one keeps WAL until it was sent, however slow
/// the copy is.
pub fn follow(standby: &Server, primary: &Server) {
    standby.stop();
    let data = standby.dir().join("data");
    std::fs::remove_dir_all(&data).expect("the new server's data can be deleted");
    output(
        primary
            .program("pg_basebackup")
            .args(["-X", "stream", "-c", "fast", "-C", "-S", "follower", "-R", "-D"])
            .arg(&data),
    );
    let mut config = std::fs::read_to_string(data.join("postgresql.conf")).expect("there is a configuration");
    config.push_str(&format!("unix_socket_directories = '{}'\nhot_standby_feedback = on\n", standby.dir().display()));
    std::fs::write(data.join("postgresql.conf"), config).expect("the configuration can be written");
    output(Command::new("chown").arg("-R").arg("--reference").arg(standby.dir()).arg(&data));
    standby.restart();
}

/// Whether a standby is so far behind that the disk might fill with WAL. Where nobody follows, nobody is behind.
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
