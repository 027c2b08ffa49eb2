//! A Redis server with RedisBloom, over a socket of its own: what `make bench` compares filter sets
//! with.
//!
//! `scripts/setup redisbloom` puts the module into target/redisbloom. Nobody offers it as a package
//! that its makers made; a Python package of somebody else has it. Without it there is nothing to
//! compare with.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MODULE: &str = "target/redisbloom/redisbloom.so";
/// Debian's package redis-tools has the server under this name; it is what it is called by.
const SERVER: &str = "redis-check-rdb";

/// A server and a connection to it. The server ends with this.
pub struct RedisBloom {
    process: Child,
    directory: PathBuf,
    connection: BufReader<UnixStream>,
}

impl RedisBloom {
    /// Starts a server that keeps nothing on disk; `None` if the module is not there.
    pub fn start() -> Option<RedisBloom> {
        let module = std::fs::canonicalize(MODULE).ok()?;
        let directory = std::env::temp_dir().join(format!("pg_bloom_redis.{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory can be made");
        let socket = directory.join("socket");
        let mut command = Command::new(SERVER);
        command.arg0("redis-server").args([
            "--port",
            "0",
            "--save",
            "",
            "--appendonly",
            "no",
            "--unixsocket",
        ]);
        command
            .arg(&socket)
            .arg("--dir")
            .arg(&directory)
            .arg("--loadmodule")
            .arg(module)
            .stdout(Stdio::null());
        let process = command
            .spawn()
            .expect("redis-check-rdb of the package redis-tools starts");
        let start = Instant::now();
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(
                    start.elapsed() < Duration::from_secs(30),
                    "Redis does not answer: {error}"
                ),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Some(RedisBloom { process, directory, connection: BufReader::new(stream) })
    }

    /// Runs a command. Returns the sum of the numbers in the answer: of ones and zeros, how many
    /// ones.
    pub fn run<T: AsRef<str>>(&mut self, words: &[&str], elements: &[T]) -> i64 {
        let mut bytes = format!("*{}\r\n", words.len() + elements.len()).into_bytes();
        for word in words.iter().copied().chain(elements.iter().map(AsRef::as_ref)) {
            write!(bytes, "${}\r\n{word}\r\n", word.len()).expect("memory can be written to");
        }
        self.connection
            .get_mut()
            .write_all(&bytes)
            .expect("Redis can be written to");
        self.answer()
    }

    fn answer(&mut self) -> i64 {
        let mut line = String::new();
        self.connection.read_line(&mut line).expect("Redis answers");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            ":" => rest.parse().expect("a number"),
            "*" => (0..rest.parse().expect("a number")).map(|_: i64| self.answer()).sum(),
            "+" => 0,
            _ => panic!("Redis answers {line}"),
        }
    }
}

impl Drop for RedisBloom {
    fn drop(&mut self) {
        // What can't be ended or deleted is left to the system.
        _ = self.process.kill();
        _ = self.process.wait();
        _ = std::fs::remove_dir_all(&self.directory);
    }
}
