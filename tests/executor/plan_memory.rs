//! A build takes the memory of a serial plan in a parallel one, and what PostgreSQL needs to hand
//! over what workers have: the process that gathers hands nothing over to itself.

use crate::common::{Server, plan, run, value};
use postgres::Client;

/// Elements of the table.
const ELEMENTS: i64 = 2_000_000;
/// Kilobytes that may differ by chance: PostgreSQL's caches, what the memory of a process is
/// rounded to.
const SLACK: i64 = 6_000;

/// A number that Linux reports of a session's process, in kilobytes.
fn memory(client: &mut Client, name: &str) -> i64 {
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

/// The result of a query in a session of its own, and the kilobytes that it takes at most.
fn peak(server: &Server, settings: &str, part_of_plan: &str, sql: &str) -> (String, i64) {
    let mut client = server.connect("peaks");
    run(&mut client, "SET jit = off; SET work_mem = '1MB'; SELECT bloom_agg(1)");
    run(&mut client, settings);
    let plan = plan(&mut client, "COSTS OFF", sql);
    assert!(plan.contains(part_of_plan), "{plan}");
    let before = memory(&mut client, "VmRSS:");
    let result = value(&mut client, sql);
    (result, memory(&mut client, "VmHWM:") - before)
}

const SERIAL: &str = "SET max_parallel_workers_per_gather = 0";
const PARALLEL: &str = "
    SET max_parallel_workers_per_gather = 8; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
    SET min_parallel_table_scan_size = 0;";

#[test]
fn a_build_keeps_its_memory_whatever_starts() {
    let server = Server::start(
        "max_worker_processes = 12\nmax_parallel_workers = 12\nshared_buffers = '2MB'\nfsync = off",
    );
    let mut client = server.database("peaks");
    run(
        &mut client,
        &format!(
            "CREATE TABLE t WITH (parallel_workers = 8) AS SELECT x FROM generate_series(1, {ELEMENTS}) AS x;
             CREATE TABLE parts (x integer) PARTITION BY RANGE (x);
             CREATE TABLE below PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ({ELEMENTS} / 2);
             CREATE TABLE above PARTITION OF parts FOR VALUES FROM ({ELEMENTS} / 2) TO (MAXVALUE);
             INSERT INTO parts SELECT x FROM t"
        ),
    );
    run(&mut client, "VACUUM ANALYZE");
    // A list of hashes, and bits.
    for aggregate in ["bloom_agg(x)", "bloom_agg(x, 20000000)"] {
        let build = format!("SELECT md5(bloom_send({aggregate})) FROM t");
        let (expected, serial) = peak(&server, SERIAL, "Seq Scan", &build);
        // What processes hand over: eight bytes per element, or the bits of each. A process has it
        // up to three times: as a state, as the bytes of it, and as PostgreSQL's copy of these.
        let handed = |processes: i64| {
            let bits = processes * 25_000;
            3 * if aggregate == "bloom_agg(x)" { ELEMENTS * 8 / 1000 } else { bits }
        };
        for (workers, settings, handed) in [
            (0, "SET max_parallel_workers = 0", handed(1)),
            (1, "SET max_parallel_workers = 1", handed(2)),
            (8, "SET max_parallel_workers = 8", handed(9)),
        ] {
            let (result, most) =
                peak(&server, &format!("{PARALLEL}{settings}"), "Workers Planned: 8", &build);
            assert_eq!(result, expected, "{aggregate} with {workers} workers");
            let allowed = serial + handed + SLACK;
            assert!(
                most <= allowed,
                "{aggregate} with {workers} workers: {most} kB, serial {serial} kB"
            );
        }
        let settings = format!("{SERIAL}; SET enable_partitionwise_aggregate = on");
        let parts = build.replace("FROM t", "FROM parts");
        let (result, most) = peak(&server, &settings, "Partial Aggregate", &parts);
        assert_eq!(result, expected, "{aggregate} of partitions");
        // The state of the second partition is there beside that of both, and what is handed over.
        assert!(
            most <= 2 * serial + handed(2) + SLACK,
            "{aggregate} of partitions: {most} kB, serial {serial} kB"
        );
    }
}
