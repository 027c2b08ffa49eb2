//! Sessions that build, probe, merge and update the same filters at once: no error, no lost
//! element, no memory kept.

mod common;

use common::{Server, output, rows, run, value};
use std::process::Stdio;

/// Sessions at once.
const CLIENTS: usize = 8;
/// What each of them does, unless `SOAK_SECONDS` says for how long.
const TRANSACTIONS: usize = 250;
/// Filters that they share.
const FILTERS: usize = 20;
/// How much the memory of a session may grow once it has done everything a few times, in kilobytes.
const MOST_GROWTH: i32 = 16 << 10;

/// What sessions do, by pgbench's language, and how often beside the others. A wrong answer is a
/// division by zero.
const SCRIPTS: [(&str, usize, &str); 6] = [
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
    // The session's own memory, in kilobytes.
    (
        "measure",
        2,
        "INSERT INTO memory (pid, kb) SELECT pg_backend_pid(),
            substring(pg_read_file('/proc/self/status', 0, 100000) FROM 'RssAnon:\\s*(\\d+)')::integer;",
    ),
];

#[test]
fn sessions_at_once_lose_nothing() {
    // Five of 14 transactions add one or two elements. How many a soak has is up to the machine.
    let (length, fewest) = match std::env::var("SOAK_SECONDS") {
        Ok(seconds) => (["-T".into(), seconds], 0),
        Err(_) => (["-t".into(), TRANSACTIONS.to_string()], CLIENTS * TRANSACTIONS / 4),
    };
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
             CREATE TABLE memory (at serial, pid integer, kb integer NOT NULL);
             ALTER DATABASE soak SET pg_bloom.overfill = ignore"
        ),
    );
    let mut pgbench = server.program("pgbench");
    for (name, weight, sql) in SCRIPTS {
        let path = server.dir().join(format!("{name}.sql"));
        std::fs::write(
            &path,
            sql.lines()
                .map(|line| line.trim_start().to_owned() + "\n")
                .collect::<String>(),
        )
        .expect("the script can be written");
        pgbench.arg("-f").arg(format!("{}@{weight}", path.display()));
    }
    let initial: i64 = value(&mut client, "SELECT count(*) FROM added");
    pgbench
        .args([
            "-n",
            "-M",
            "prepared",
            "--random-seed=15",
            "-c",
            &CLIENTS.to_string(),
            "-j",
            "2",
        ])
        .args(length);
    let ended = pgbench
        .arg("soak")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("pgbench runs");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let complained = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && !complained.contains("ERROR"), "{complained}");
    println!("{said}");

    // The most that each session had in the first third of what it did, and in the last.
    let grown = rows(
        &mut client,
        "SELECT max(kb) FILTER (WHERE third = 1), max(kb) FILTER (WHERE third = 3), count(*)
         FROM (SELECT pid, kb, ntile(3) OVER (PARTITION BY pid ORDER BY at) AS third FROM memory) AS m GROUP BY pid",
    );
    let grown: Vec<(i32, i32)> = grown
        .iter()
        .filter(|row| row.get::<_, i64>(2) >= 9)
        .map(|r| (r.get(0), r.get(1)))
        .collect();
    println!("memory of the sessions in the first and in the last third: {grown:?} kB");
    assert_eq!(grown.len(), CLIENTS, "not every session measured itself");
    assert!(grown.iter().all(|(first, last)| last - first < MOST_GROWTH), "{grown:?}");

    let lost: i64 = value(
        &mut client,
        "SELECT count(*) FROM filters JOIN added USING (id) WHERE NOT seen @> x",
    );
    let added: i64 = value(&mut client, "SELECT count(*) FROM added");
    println!("{added} elements, {lost} lost");
    assert_eq!(lost, 0);
    assert!(added - initial > fewest as i64, "only {} elements were added", added - initial);
    let whole: i64 = value(
        &mut client,
        "SELECT count(*) FROM (SELECT bloom_union_agg(seen) AS f FROM filters OFFSET 0) AS merged, added WHERE NOT f @> x",
    );
    assert_eq!(whole, 0);
    output(server.program("pg_dump").args(["-f", "/dev/null", "soak"]));
}
