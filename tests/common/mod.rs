//! Throw-away servers, and what the tests of this folder share.
#![allow(dead_code, reason = "each file of tests uses a part of it")]

pub mod damage;
pub mod damaged;

use postgres::types::FromSqlOwned;
use postgres::{Client, Config, NoTls, Row};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub mod asking;
pub mod corpus;
pub mod files;
pub mod followed;
pub mod objects;
pub mod page;
pub mod process;
pub mod python;
pub mod samples;
pub mod standby;

/// How long to wait for what must happen: only what hangs takes longer, on however slow and busy a
/// machine.
pub const PATIENCE: Duration = Duration::from_secs(1200);

/// The layouts of filters.
pub const LAYOUTS: [&str; 3] = ["blocked", "classic", "parquet"];
const _: () = assert!(LAYOUTS.len() == pg_bloom_core::Layout::ALL.len());

/// The configuration of a server that keeps so much of its tables in memory (a size such as `1MB`),
/// and whose tables may be in tablespaces within its directory.
pub fn with_buffers(size: &str) -> String {
    format!(
        "shared_buffers = {size}
        autovacuum = off
        allow_in_place_tablespaces = on"
    )
}

/// A server of its own, deleted when the value is dropped or the process ends, however it ends.
pub struct Server {
    dir: PathBuf,
    /// `scripts/server with`: it deletes the server when its standard input ends.
    keeper: Child,
}

impl Server {
    /// A running server with these lines in its configuration.
    pub fn start(config: &str) -> Server {
        Server::start_with(config, &[])
    }

    /// A running server with these lines in its configuration, which `scripts/server` makes with
    /// these environment variables.
    pub fn start_with(config: &str, environment: &[(&str, &str)]) -> Server {
        let mut keeper = script()
            .args(["with", "sh", "-c", "echo \"$PGHOST\" && exec cat"])
            .env("SERVER_CONFIG", config)
            .env("SERVER_QUICK", "yes")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/server runs");
        let mut line = String::new();
        let stdout = keeper.stdout.take().expect("standard output is a pipe");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the server's directory can be read");
        assert!(line.starts_with('/'), "the server did not start: {line:?}");
        Server { dir: PathBuf::from(line.trim_end()), keeper }
    }

    /// A connection to a database.
    pub fn connect(&self, database: &str) -> Client {
        Config::new()
            .host_path(&self.dir)
            .user("postgres")
            .dbname(database)
            .connect(NoTls)
            .unwrap_or_else(|e| panic!("cannot connect to {database}: {e:?}"))
    }

    /// A connection to a new database with the extension.
    pub fn database(&self, name: &str) -> Client {
        let mut client = self.empty_database(name, "");
        run(&mut client, "CREATE EXTENSION pg_bloom");
        client
    }

    /// A connection to a new database that CREATE DATABASE makes with these options.
    pub fn empty_database(&self, name: &str, options: &str) -> Client {
        run(&mut self.connect("postgres"), &format!("CREATE DATABASE {name} {options}"));
        self.connect(name)
    }

    /// One of PostgreSQL's programs, to run against this server.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.dir.join("bin").join(name));
        for inherited in [
            "PGHOSTADDR",
            "PGSERVICE",
            "PGOPTIONS",
            "PGDATA",
            "PGPASSFILE",
        ] {
            command.env_remove(inherited);
        }
        command
            .env("PGHOST", &self.dir)
            .env("PGPORT", "5432")
            .env("PGUSER", "postgres");
        command
    }

    /// Where the server lives.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Stops it. [`Server::restart`] starts it again.
    pub fn stop(&self) {
        self.manage("stop");
    }

    /// Starts it, and stops it before if it runs.
    pub fn restart(&self) {
        self.manage("restart");
    }

    /// Starts it after one of its processes was killed. It may be recovering by itself: PostgreSQL
    /// may wait without end for a fast shutdown that comes just then.
    pub fn restart_after_crash(&self) {
        self.manage_with("restart", &["-m", "immediate"]);
    }

    /// Kills all its processes with SIGKILL, as a crash would.
    pub fn kill9(&self) {
        self.manage("kill9");
    }

    fn manage(&self, action: &str) {
        self.manage_with(action, &[]);
    }

    fn manage_with(&self, action: &str, options: &[&str]) {
        // Standard output goes to the tests' own: a server that is started would keep a pipe open.
        let status = script()
            .arg(action)
            .arg(&self.dir)
            .args(options)
            .status()
            .expect("scripts/server runs");
        assert!(status.success(), "scripts/server {action} failed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // Nothing is left to be done if it fails: what it says was printed.
        self.keeper.wait().ok();
    }
}

fn script() -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/server"));
    command.stdin(Stdio::null());
    command
}

/// Output of a command that must succeed.
pub fn output(command: &mut Command) -> Vec<u8> {
    let output = command.stderr(Stdio::piped()).output().expect("the program runs");
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Runs statements.
pub fn run(client: &mut Client, sql: &str) {
    client
        .batch_execute(sql)
        .unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"));
}

/// The rows of a query.
pub fn rows(client: &mut Client, sql: &str) -> Vec<Row> {
    client
        .query(sql, &[])
        .unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"))
}

/// The first column of a query's rows.
pub fn column<T: FromSqlOwned>(client: &mut Client, sql: &str) -> Vec<T> {
    rows(client, sql).iter().map(|row| row.get(0)).collect()
}

/// The only value of a query.
pub fn value<T: FromSqlOwned>(client: &mut Client, sql: &str) -> T {
    let mut values = column(client, sql);
    assert_eq!(values.len(), 1, "{sql}\nhas more or fewer than one row");
    values.remove(0)
}

/// The major version of the server: 15.
pub fn major_version(client: &mut Client) -> i32 {
    value::<i32>(client, "SELECT current_setting('server_version_num')::integer") / 10_000
}

/// What a program makes of this standard input, all of which it must read unless it fails.
pub fn fed(command: &mut Command, input: &[u8]) -> Output {
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the program runs");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    std::thread::scope(|scope| {
        let feeder = scope.spawn(move || stdin.write_all(input));
        let output = child.wait_with_output().expect("the program ends");
        let written = feeder.join().expect("the feeder ends");
        assert!(written.is_ok() || !output.status.success(), "{written:?}");
        output
    })
}

/// Runs a program with this standard input, which must succeed.
pub fn feed(command: &mut Command, input: &[u8]) {
    let output = fed(command, input);
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The SQLSTATE that a statement fails with; 00000 if it doesn't.
pub fn sqlstate(client: &mut Client, sql: &str) -> String {
    client
        .batch_execute(sql)
        .err()
        .map_or("00000".into(), |e| state_of(&e))
}

/// The SQLSTATE that a statement ends with that may run for so long. The limit ends with the
/// statement: PostgreSQL reports one that is over while a session waits for a command too, as an
/// answer to the next command. So it does of one that is over at the very moment that the statement
/// ends: something is asked next for that.
pub fn sqlstate_within(client: &mut Client, milliseconds: usize, sql: &str) -> String {
    let state = sqlstate(client, &format!("SET LOCAL statement_timeout = {milliseconds}; {sql}"));
    let next = sqlstate(client, "SELECT");
    assert!(["00000", "57014", "25P02"].contains(&next.as_str()), "{next} after {sql}");
    state
}

/// The SQLSTATE of an error, which the server must have raised.
pub fn state_of(error: &postgres::Error) -> String {
    error
        .code()
        .unwrap_or_else(|| panic!("no error of the server's: {error:?}"))
        .code()
        .into()
}

/// Asserts that a statement fails with an SQLSTATE.
pub fn refused(client: &mut Client, state: &str, sql: &str) {
    assert_eq!(sqlstate(client, sql), state, "{sql}");
}

/// The plan of a query, executed where `ANALYZE` shall show what really happened.
pub fn plan(client: &mut Client, options: &str, sql: &str) -> String {
    column::<String>(client, &format!("EXPLAIN ({options}) {sql}")).join("\n")
}

/// The lines of a file of `tests/data`, which is compressed.
pub fn data_lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = output(Command::new("gzip").arg("-dc").arg(path));
    String::from_utf8(text)
        .expect("the data is UTF-8")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// How far a count may be from its mean: 4.5 standard errors of a binomial count.
pub fn bound(trials: f64, rate: f64) -> f64 {
    4.5 * (trials * rate * (1.0 - rate)).sqrt()
}

/// SplitMix64, so that random tests are the same on every machine.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Random numbers from the seed of the environment, or from this one; either is printed.
pub fn random(seed: u64) -> Random {
    let given = std::env::var("INDEX_SEED").ok();
    let seed = given.map_or(seed, |text| text.parse().expect("INDEX_SEED is a number"));
    println!("INDEX_SEED={seed}");
    Random(seed)
}

/// How often a test repeats something: `SOAK` times the usual number, at least once. A third if
/// `SOAK` isn't set.
pub fn times(usual: usize) -> usize {
    let factor = std::env::var("SOAK")
        .map_or(1.0 / 3.0, |text| text.parse::<f64>().expect("SOAK is a number"));
    ((usual as f64 * factor).round() as usize).max(1)
}
