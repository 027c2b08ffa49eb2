//! What Linux tells about a session's process.

use super::value;
use postgres::Client;

/// A number that Linux reports of a session's process, in kilobytes: `VmRSS:`, the memory that it
/// has now, or `VmHWM:`, the most that it has had.
pub fn kilobytes(client: &mut Client, name: &str) -> i64 {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .expect("Linux tells about processes");
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .expect("the number is there");
    line.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("it is a number")
}
