//! A database of the server that is measured, and statements in it.

use postgres::types::FromSqlOwned;
use postgres::{Client, NoTls};
use std::time::Instant;

/// A database with pg_bloom, which is made for one part of the page, and a session in it.
pub struct Database {
    name: String,
    /// The session.
    pub client: Client,
}

fn connect(database: &str) -> Client {
    let host =
        std::env::var("PGHOST").expect("PGHOST names the server's socket: run this by make bench");
    let config = format!("host={host} user=postgres dbname={database}");
    Client::connect(&config, NoTls).expect("the server can be reached")
}

/// Returns the major version of the server that the environment names.
pub fn major_version() -> i32 {
    let version: String = connect("postgres")
        .query_one("SHOW server_version_num", &[])
        .expect("the server has a version")
        .get(0);
    let version: i32 = version.parse().expect("a version is a number");
    version / 10_000
}

impl Database {
    /// Makes one, on the server that the environment names.
    pub fn create(name: impl Into<String>) -> Database {
        let name = name.into();
        connect("postgres")
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .expect("a database can be made");
        let mut database = Database { client: connect(&name), name };
        database.run("CREATE EXTENSION pg_bloom");
        database.without_workers();
        database
    }

    fn without_workers(&mut self) {
        self.run("SET max_parallel_workers_per_gather = 0");
        self.run("SET max_parallel_maintenance_workers = 0");
    }

    /// Begins another session, after the server was started again.
    pub fn reconnect(&mut self) {
        self.client = connect(&self.name);
        self.without_workers();
    }

    /// One more session.
    pub fn another_client(&self) -> Client {
        connect(&self.name)
    }

    /// Removes it.
    pub fn drop(self) {
        let Database { name, client } = self;
        client.close().expect("a session can end");
        connect("postgres")
            .batch_execute(&format!("DROP DATABASE {name}"))
            .expect("a database can be dropped");
    }

    /// Version of the server.
    pub fn version(&mut self) -> String {
        let version: String = self.value("SHOW server_version");
        let assertions: String = self.value("SHOW debug_assertions");
        match assertions.as_str() {
            "on" => format!("{version} with its assertions"),
            _ => version,
        }
    }

    /// Runs statements.
    pub fn run(&mut self, sql: &str) {
        self.client
            .batch_execute(sql)
            .unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"));
    }

    /// The one value that a query gives.
    pub fn value<T: FromSqlOwned>(&mut self, sql: &str) -> T {
        self.client
            .query_one(sql, &[])
            .unwrap_or_else(|e| panic!("{sql}\nfailed: {e:?}"))
            .get(0)
    }

    /// Lets the planner see this index of a table only, and inserts go into it only; into none if
    /// there is no such index.
    pub fn only(&mut self, table: &str, index: &str) {
        self.run(&format!(
            "UPDATE pg_index SET indisvalid = (relname = '{index}'), indisready = (relname = '{index}')
             FROM pg_class WHERE pg_class.oid = indexrelid AND indrelid = '{table}'::regclass"
        ));
        // Functions keep their plans, which depend on the table and not on which of its indexes are
        // valid.
        self.run("DISCARD PLANS");
    }

    /// Seconds that statements take.
    pub fn time(&mut self, sql: &str) -> f64 {
        let start = Instant::now();
        self.run(sql);
        start.elapsed().as_secs_f64()
    }
}
