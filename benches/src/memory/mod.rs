//! Tables and sets that are larger than the memory that the server may use.
//!
//! What a lookup or an insertion takes then is mostly what it reads from disk. For each side the
//! server is started with an empty cache, in turn and several times, with a quarter of the bytes of
//! the table as its limit, or half of them for texts; a quarter of that are its shared buffers.
//!
//! | file | what it measures |
//! |---|---|
//! | `keys` | `=` on random keys, against B-tree and hash |
//! | `text` | `LIKE` on log lines, against GIN's trigrams and a sequential scan |
//! | `sets` | new elements, against a primary key on hashes |
//! | `limit` | nothing: it starts the server with a limit |
//! | `disk` | nothing: it counts reads |

mod disk;
mod keys;
mod limit;
mod sets;
mod text;

use crate::Row;
use crate::database::Database;
use disk::{Disk, DiskReads};
use limit::Limit;
use std::path::PathBuf;
use std::time::Instant;

/// The memory that the server is given at least: its processes need some of it.
const LEAST_MEMORY: u64 = 64 << 20;

/// A server with little memory, and a database in it.
pub struct Bench {
    database: Database,
    limit: Limit,
    disk: Option<Disk>,
    /// The server's data.
    data: PathBuf,
}

/// What some statements took: seconds of each, and what all of them read from disk.
#[derive(Default)]
struct Taken {
    seconds: Vec<f64>,
    reads: DiskReads,
    wal_bytes: f64,
}

impl Taken {
    fn add(&mut self, other: Taken) {
        self.seconds.extend(other.seconds);
        self.reads.requests += other.reads.requests;
        self.reads.bytes += other.reads.bytes;
        self.wal_bytes += other.wal_bytes;
    }

    fn mean(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.seconds.len() as f64
    }

    fn requests_each(&self) -> f64 {
        self.reads.requests / self.seconds.len() as f64
    }

    fn bytes_each(&self) -> f64 {
        self.reads.bytes / self.seconds.len() as f64
    }

    fn wal_bytes_each(&self) -> f64 {
        self.wal_bytes / self.seconds.len() as f64
    }
}

/// Checks that the server's memory can be limited here. Fails with the reason why not.
pub fn can_be_measured() -> Result<(), String> {
    Limit::new().map(drop)
}

/// Measures what doesn't fit into memory. Returns the text of the part and its rows.
pub fn measure(rows: usize) -> (String, Vec<Row>) {
    let limit = Limit::new().expect("the memory can be limited");
    let mut database = Database::create("memory");
    let data: String = database.value("SHOW data_directory");
    let data = PathBuf::from(data);
    let disk = Disk::of(&data);
    // As one sets them for a disk that is fast at random reads.
    for setting in ["random_page_cost = 1.5", "effective_io_concurrency = 16"] {
        database.run(&format!("ALTER SYSTEM SET {setting}"));
    }
    let mut bench = Bench { database, limit, disk, data };
    let (keys, mut measured) = bench.keys(rows);
    bench.restart_without_limit();
    let (text, of_text) = bench.text(rows / 10);
    measured.extend(of_text);
    bench.restart_without_limit();
    let (sets, of_sets) = bench.sets(rows);
    measured.extend(of_sets);
    for setting in [
        "random_page_cost",
        "effective_io_concurrency",
        "shared_buffers",
    ] {
        bench.database.run(&format!("ALTER SYSTEM RESET {setting}"));
    }
    let Bench { database, limit, .. } = bench;
    drop(database);
    drop(limit);
    (format!("{keys}\n{text}\n{sets}"), measured)
}

impl Bench {
    /// Starts the server with an empty cache and so much memory.
    fn restart(&mut self, memory: u64) {
        let buffers = (memory / 4 / 8192).max(16);
        self.database
            .run(&format!("ALTER SYSTEM SET shared_buffers = {buffers}"));
        self.limit.restart(Some(memory));
        self.database.reconnect();
    }

    /// Starts the server without a limit, to make tables.
    fn restart_without_limit(&mut self) {
        self.database.run("ALTER SYSTEM RESET shared_buffers");
        self.limit.restart(None);
        self.database.reconnect();
    }

    /// Returns what statements take one by one, each of which `next` runs.
    fn take(&mut self, statements: usize, mut next: impl FnMut(&mut Database, usize)) -> Taken {
        let wal = |database: &mut Database| {
            database
                .value::<f64>("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8")
        };
        let wal_before = wal(&mut self.database);
        let reads_before = self.reads();
        let mut seconds = Vec::new();
        for number in 0..statements {
            let start = Instant::now();
            next(&mut self.database, number);
            seconds.push(start.elapsed().as_secs_f64());
        }
        Taken {
            seconds,
            reads: self.reads().since(reads_before),
            wal_bytes: wal(&mut self.database) - wal_before,
        }
    }

    fn reads(&self) -> DiskReads {
        self.disk.as_ref().map_or(DiskReads::default(), Disk::reads)
    }

    fn bytes(&mut self, relation: &str) -> f64 {
        self.database
            .value(&format!("SELECT pg_relation_size('{relation}')::float8"))
    }

    /// Returns how long a random page of a relation takes, if it isn't in memory.
    fn random_read_time(&mut self, relation: &str) -> f64 {
        let path: String = self
            .database
            .value(&format!("SELECT pg_relation_filepath('{relation}')"));
        disk::random_read_time(&self.data.join(path))
    }
}

/// Returns the memory for the server, if it should have this share of a table.
fn memory_for(table_bytes: f64, share: f64) -> u64 {
    ((table_bytes * share) as u64).max(LEAST_MEMORY)
}

fn megabytes(bytes: f64) -> String {
    let megabytes = bytes / 1024.0 / 1024.0;
    let digits = if megabytes < 10.0 { 1 } else { 0 };
    format!("{megabytes:.digits$}")
}

/// Milliseconds with three digits.
fn milliseconds(seconds: f64) -> String {
    let milliseconds = seconds * 1000.0;
    let digits = (2 - milliseconds.log10().floor() as i32).clamp(0, 3) as usize;
    format!("{milliseconds:.digits$}")
}

/// How many requests and bytes a statement read.
fn reads(taken: &Taken) -> String {
    format!("{:.1}, {:.0} kB", taken.requests_each(), taken.bytes_each() / 1024.0)
}
