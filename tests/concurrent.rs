//! Sessions that build, probe, merge and update the same filters at once: no error, no lost element, no memory kept.

mod common;

use common::{Server, column, output, run, value};
use postgres::Client;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Sessions at once.
const CLIENTS: usize = 8;
/// Filters that they share.
const FILTERS: usize = 20;
/// How much the memory of a session may grow once it has done everything a few times, in kilobytes.
const MOST_GROWTH: u64 = 16 << 10;

/// What sessions do, by pgbench's language, and how often beside the others. A wrong answer is a division by zero.
const SCRIPTS: [(&str, usize, &str); 5] = [
    (
        "build",
        2,
        "\\set n random(1, 30000)
         SELECT 1 / (count(*) = 0)::int FROM generate_series(1, :n) AS x,
            (SELECT bloom_agg(y) AS f FROM generate_series(1, :n) AS y OFFSET 0) AS built WHERE NOT f @> x;
         SELECT 1 / (bloom_agg(x, 20000) = bloom_agg(x, 20000 ORDER BY x DESC))::int FROM generate_series(1, :n) AS x;",
    ),
    (
        "probe",
        4,
        "\\set id random(1, 20)
         SELECT 1 / (count(*) = 0)::int FROM filters JOIN added USING (id) WHERE id = :id AND NOT seen @> x;",
    ),
    (
        "merge",
        1,
        "SELECT 1 / (count(*) = 0)::int FROM (SELECT bloom_union_agg(seen) AS f FROM filters OFFSET 0) AS merged,
            (SELECT x FROM added ORDER BY x LIMIT 2000) AS old WHERE NOT f @> x;",
    ),
    (
        "update",
        4,
        "\\set id random(1, 20)
         \\set x random(1, 2000000000)
         BEGIN;
         UPDATE filters SET seen = seen || :x::integer WHERE id = :id;
         INSERT INTO added VALUES (:id, :x);
         COMMIT;",
    ),
    (
        "replace",
        1,
        "\\set id random(1, 20)
         \\set x random(1, 2000000000)
         BEGIN;
         UPDATE filters SET seen = bloom_union(seen, bloom_from_array(ARRAY[:x::integer, :x::integer + 1], 20000)) WHERE id = :id;
         INSERT INTO added VALUES (:id, :x), (:id, :x::integer + 1);
         COMMIT;",
    ),
];

/// The memory of each session of pgbench's, in kilobytes.
fn memory(client: &mut Client) -> Vec<u64> {
    let pids: Vec<i32> = column(
        client,
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY backend_start, pid",
    );
    let of = |pid: i32| {
        // A session may have ended meanwhile.
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find(|line| line.starts_with("RssAnon:"))?.split_whitespace().nth(1)?.parse().ok()
    };
    pids.into_iter().filter_map(of).collect()
}

#[test]
fn sessions_at_once_lose_nothing() {
    let seconds: u64 = std::env::var("SOAK_SECONDS").map_or(10, |text| text.parse().expect("SOAK_SECONDS is a number"));
    let server = Server::start("max_connections = 30\nwork_mem = '256kB'");
    let mut client = server.database("soak");
    run(
        &mut client,
        &format!(
            "CREATE TABLE filters (id integer PRIMARY KEY, seen bloom NOT NULL);
             INSERT INTO filters SELECT id, bloom_agg(x, 20000) FROM generate_series(1, {FILTERS}) AS id,
                generate_series(1, id * 500) AS x GROUP BY id;
             CREATE TABLE added (id integer, x integer);
             CREATE INDEX ON added (id); CREATE INDEX ON added (x);
             INSERT INTO added SELECT id, x FROM generate_series(1, {FILTERS}) AS id, generate_series(1, id * 500, 50) AS x;
             ALTER DATABASE soak SET pg_bloom.overfill = ignore"
        ),
    );
    let mut pgbench = server.program("pgbench");
    for (name, weight, sql) in SCRIPTS {
        let path = server.dir().join(format!("{name}.sql"));
        std::fs::write(&path, sql.lines().map(|line| line.trim_start().to_owned() + "\n").collect::<String>())
            .expect("the script can be written");
        pgbench.arg("-f").arg(format!("{}@{weight}", path.display()));
    }
    pgbench.args(["-n", "-M", "prepared", "-c", &CLIENTS.to_string(), "-j", "2", "-T", &seconds.to_string(), "soak"]);
    let started = Instant::now();
    let running = pgbench.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("pgbench runs");
    let (mut first, mut last) = (Vec::new(), Vec::new());
    while started.elapsed() < Duration::from_secs(seconds) - Duration::from_millis(500) {
        std::thread::sleep(Duration::from_millis(200));
        let now = memory(&mut client);
        if now.len() == CLIENTS {
            if started.elapsed() < Duration::from_secs(seconds) / 3 {
                first = now;
            } else {
                last = now;
            }
        }
    }
    let ended = running.wait_with_output().expect("pgbench ends");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let complained = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && !complained.contains("ERROR"), "{complained}");
    println!("{said}\nmemory of the sessions after a third: {first:?} kB, at the end: {last:?} kB");
    assert_eq!((first.len(), last.len()), (CLIENTS, CLIENTS), "the sessions were not seen");
    let grown = first.iter().zip(&last).map(|(first, last)| last.saturating_sub(*first)).max();
    assert!(grown.is_some_and(|grown| grown < MOST_GROWTH), "{first:?} grew to {last:?}");

    let lost: i64 = value(&mut client, "SELECT count(*) FROM filters JOIN added USING (id) WHERE NOT seen @> x");
    let added: i64 = value(&mut client, "SELECT count(*) FROM added");
    println!("{added} elements, {lost} lost");
    assert_eq!(lost, 0);
    assert!(added > 3000, "only {added} elements were added");
    let whole: i64 = value(
        &mut client,
        "SELECT count(*) FROM (SELECT bloom_union_agg(seen) AS f FROM filters OFFSET 0) AS merged, added WHERE NOT f @> x",
    );
    assert_eq!(whole, 0);
    output(server.program("pg_dump").args(["-f", "/dev/null", "soak"]));
}
