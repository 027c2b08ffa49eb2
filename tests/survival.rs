//! What was committed survives a crash at any moment of building and storing, and is the same on a
//! standby.

mod common;

use common::corpus::{self, filters, finds_everything};
use common::standby::{StopsWhenDropped, catch_up, follow, is_death, wait_until};
use common::{LAYOUTS, Random, Server, column, rows, run, sqlstate, value};
use postgres::Client;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The temporary files of all processes.
fn temporary_files(server: &Server) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(server.dir().join("data/base/pgsql_tmp")) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        match std::fs::read_dir(entry.path()) {
            Ok(inner) => files.extend(inner.filter_map(Result::ok).map(|file| file.path())),
            Err(_) => files.push(entry.path()),
        }
    }
    files
}

/// Filters that writers store, each with the integers that it holds: `low` to `high`.
const STORED: &str = "
    CREATE TABLE stored (
        id integer PRIMARY KEY, layout text, capacity integer, low bigint, high bigint, f bloom
    );
    CREATE INDEX ON stored USING hash (f);
    CREATE TABLE thousand AS SELECT x FROM generate_series(1, 1000) AS x;
    CREATE TABLE million AS SELECT x FROM generate_series(1, 1000000) AS x;
    ANALYZE thousand, million;";

/// The filter that a row should have, of what the row says.
const REBUILT: &str =
    "(SELECT bloom_agg(x, capacity, 0.01, layout) FROM generate_series(low, high) AS x)";

/// What a writer was told is stored: each id with the highest element.
type Acknowledged = Vec<(i32, i64)>;

/// Stores new filters, and adds to old ones, until the server is gone. Returns what was
/// acknowledged.
fn write_until_gone(
    client: &mut Client,
    first_id: i32,
    seed: u64,
    progress: &Mutex<[usize; 2]>,
    n: usize,
) -> Acknowledged {
    let mut random = Random(seed);
    let mut acknowledged: Acknowledged = Vec::new();
    loop {
        let add = acknowledged.len() > 3 && random.below(3) > 0;
        let (id, high, sql) = if add {
            let at = random.below(acknowledged.len());
            let (id, high) = acknowledged[at];
            let more = [1, 5, 300][random.below(3)];
            let update = if more == 1 {
                format!("UPDATE stored SET f = f || (high + 1), high = high + 1 WHERE id = {id}")
            } else {
                format!(
                    "UPDATE stored SET high = high + {more},
                        f = f | (SELECT bloom_agg(x, capacity, 0.01, layout) FROM generate_series(high + 1, high + {more}) AS x)
                     WHERE id = {id}"
                )
            };
            (id, high + more, update)
        } else {
            let id = first_id + acknowledged.len() as i32;
            let (low, count) = (i64::from(id) * 1_000_000, [3, 900, 20_000][random.below(3)]);
            let (layout, capacity) = (random.pick(&LAYOUTS), random.pick(&[20_000, 200_000]));
            let insert = format!(
                "INSERT INTO stored SELECT {id}, '{layout}', {capacity}, {low}, {high}, bloom_agg(x, {capacity}, 0.01, '{layout}')
                 FROM generate_series({low}, {high}::bigint) AS x",
                high = low + count,
            );
            (id, low + count, insert)
        };
        match client.batch_execute(&sql) {
            Ok(()) => match acknowledged.iter_mut().find(|(known, _)| *known == id) {
                Some(known) => known.1 = high,
                None => acknowledged.push((id, high)),
            },
            Err(error) => {
                assert!(is_death(&error), "{sql}\n{error:?}");
                return acknowledged;
            }
        }
        progress.lock().expect("no writer panicked")[n] += 1;
    }
}

/// Builds a filter that takes longer than the server lives.
fn build_until_gone(client: &mut Client, parallel: bool) {
    let workers = if parallel { 2 } else { 0 };
    run(
        client,
        &format!(
            "SET work_mem = '64kB'; SET max_parallel_workers_per_gather = {workers}; SET parallel_setup_cost = 0;
             SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
        ),
    );
    let build = "SELECT bloom_agg(m.x * 1000 + t.x) FROM million AS m CROSS JOIN thousand AS t";
    let plan = common::plan(client, "COSTS OFF", build);
    assert_eq!(plan.contains("Gather"), parallel, "{plan}");
    // INSERT itself is never parallel, so that is what the filter is handed to.
    let whole = if parallel {
        build.into()
    } else {
        format!("INSERT INTO stored (id, f) SELECT -1, ({build})")
    };
    let error = client
        .batch_execute(&whole)
        .expect_err("it takes longer than the server lives");
    assert!(is_death(&error), "{whole}\n{error:?}");
}

#[test]
fn committed_filters_survive_crashes_while_others_are_built_and_stored() {
    const ROUNDS: usize = 4;
    let server =
        Server::start("max_worker_processes = 20\ncheckpoint_timeout = 30s\nmax_wal_size = 32MB");
    let mut client = server.database("crashes");
    let samples = corpus::samples();
    corpus::fill(&mut client, &samples);
    run(&mut client, STORED);
    let expected = filters(&mut client, "filters");
    drop(client);
    let (mut seen, mut answers, mut left_behind) = (0, 0, 0);
    for round in 0..ROUNDS {
        let mut sessions: Vec<Client> = (0..3).map(|_| server.connect("crashes")).collect();
        let (mut builder, mut second, mut first) =
            (sessions.remove(0), sessions.remove(0), sessions.remove(0));
        let progress = Mutex::new([0; 2]);
        let (base, wanted) = ((round * 2) as i32 * 100_000, 15 + round * 7);
        let acknowledged = thread::scope(|scope| {
            let progress = &progress;
            scope.spawn(move || build_until_gone(&mut builder, round % 2 == 0));
            let seed = round as u64;
            let writers = [
                scope.spawn(move || write_until_gone(&mut first, base, seed, progress, 0)),
                scope.spawn(move || {
                    write_until_gone(&mut second, base + 100_000, seed + 100, progress, 1)
                }),
            ];
            wait_until("all three are at work", || {
                let stored = progress
                    .lock()
                    .expect("no writer panicked")
                    .iter()
                    .all(|n| *n >= wanted);
                stored && !temporary_files(&server).is_empty()
            });
            server.kill9();
            left_behind += temporary_files(&server).len();
            writers
                .map(|writer| writer.join().expect("a writer only ends with the server"))
                .concat()
        });
        server.restart();
        assert_eq!(temporary_files(&server), Vec::<PathBuf>::new(), "left after the restart");

        let mut client = server.connect("crashes");
        run(&mut client, "SET pg_bloom.overfill = ignore");
        assert!(expected == filters(&mut client, "filters"), "the crash changed a filter");
        answers += finds_everything(&mut client, &samples);
        // At most the last statement of each writer may be stored without having been acknowledged.
        let mut ahead = 0;
        for (id, high) in &acknowledged {
            let stored: i64 =
                value(&mut client, &format!("SELECT high FROM stored WHERE id = {id}"));
            assert!(stored >= *high, "row {id} has lost what was committed");
            ahead += usize::from(stored > *high);
        }
        assert!(ahead <= 2, "{ahead} rows hold more than was asked for");
        assert_eq!(
            column::<i32>(&mut client, "SELECT id FROM stored WHERE id < 0"),
            [0i32; 0],
            "an unfinished build is stored"
        );
        let row = &rows(
            &mut client,
            &format!(
                "SELECT count(*), count(*) FILTER (WHERE f = {REBUILT}), sum(high - low + 1)::bigint,
                    sum((SELECT count(*) FROM generate_series(low, high) AS x WHERE f @> x))::bigint FROM stored"
            ),
        )[0];
        let (all, same, elements, found): (i64, i64, i64, i64) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        assert_eq!((all, elements), (same, found), "a stored filter is not that of its elements");
        assert!(all as usize >= acknowledged.len());
        (seen, answers) = (all, answers + found);
        run(&mut client, "VACUUM stored");
        run(&mut client, "REINDEX TABLE stored");
    }
    assert!(left_behind > 0, "no crash left anything to clean up");
    println!(
        "{ROUNDS} crashes, {left_behind} temporary files left by them, {seen} rows, {answers} answers"
    );
}

/// Stores and changes filters until told to stop. Returns how many statements that were.
fn write_until(client: &mut Client, done: &AtomicBool) -> usize {
    let mut random = Random(1);
    let mut statements = 0;
    while !done.load(Ordering::Relaxed) {
        let id = 1 + random.below(20);
        let (layout, capacity) = (LAYOUTS[id % LAYOUTS.len()], [3_000, 200_000][id % 2]);
        let low = id * 1_000_000;
        run(client, &match random.below(4) {
            0 => format!("DELETE FROM stored WHERE id = {id}"),
            1 => format!(
                "INSERT INTO stored SELECT {id}, '{layout}', {capacity}, {low}, {low} + 2000,
                    bloom_agg(x, {capacity}, 0.01, '{layout}') FROM generate_series({low}, {low} + 2000::bigint) AS x
                 ON CONFLICT DO NOTHING"
            ),
            2 => format!("UPDATE stored SET f = f || (high + 1), high = high + 1 WHERE id = {id}"),
            _ => "UPDATE stored SET f = bloom_add_all(f, ARRAY[high + 1, high + 2]), high = high + 2 WHERE id % 5 = 0".into(),
        });
        statements += 1;
        if statements % 200 == 0 {
            run(client, "VACUUM stored");
        }
    }
    statements
}

#[test]
fn filters_read_the_same_on_a_standby_which_can_take_over() {
    const PROBES: usize = 60;
    let config = "wal_level = replica\nmax_wal_senders = 5\nmax_replication_slots = 5";
    let (primary, standby) = (Server::start(config), Server::start(config));
    let mut on_primary = primary.database("followed");
    let samples = corpus::samples();
    corpus::fill(&mut on_primary, &samples);
    run(&mut on_primary, STORED);
    run(&mut on_primary, "SET pg_bloom.overfill = ignore");
    follow(&standby, &primary);
    let mut on_standby = standby.connect("followed");
    catch_up(&mut on_primary, &mut on_standby);
    assert!(filters(&mut on_primary, "filters") == filters(&mut on_standby, "filters"));
    let mut answers = finds_everything(&mut on_standby, &samples);

    // One session asks while rows, their TOAST tables and what it remembers of them change under
    // it.
    let done = AtomicBool::new(false);
    let statements = thread::scope(|scope| {
        let (done, writer) = (&done, &mut on_primary);
        let writing = scope.spawn(move || write_until(writer, done));
        let stop = StopsWhenDropped(done);
        run(&mut on_standby, "SET pg_bloom.overfill = ignore");
        let mut states = std::collections::BTreeSet::new();
        wait_until("the standby sees enough of it", || {
            let row = &rows(
                &mut on_standby,
                &format!(
                    "SELECT sum(high - low + 1)::bigint, count(*), count(*) FILTER (WHERE f = {REBUILT}),
                        sum((SELECT count(*) FROM generate_series(low, high) AS x WHERE f @> x))::bigint,
                        md5(string_agg(id || ' ' || high, ',' ORDER BY id)) FROM stored"
                ),
            )[0];
            let (asked, found): (Option<i64>, Option<i64>) = (row.get(0), row.get(3));
            assert_eq!(asked, found, "a filter on the standby has lost elements");
            assert_eq!(
                row.get::<_, i64>(1),
                row.get::<_, i64>(2),
                "a filter on the standby is not that of its elements"
            );
            answers += asked.unwrap_or(0);
            states.insert(row.get::<_, Option<String>>(4));
            states.len() >= PROBES || writing.is_finished()
        });
        drop(stop);
        let statements = writing.join().expect("the primary stores filters");
        assert!(states.len() >= PROBES);
        statements
    });

    // Whole tables build there, in files as well, and nothing can be stored.
    let build = "SELECT bloom_agg(x)::text FROM million";
    for session in [&mut on_primary, &mut on_standby] {
        run(session, "SET max_parallel_workers_per_gather = 0");
    }
    run(&mut on_standby, "SET work_mem = '64kB'");
    assert_eq!(value::<String>(&mut on_primary, build), value::<String>(&mut on_standby, build));
    assert_eq!(sqlstate(&mut on_standby, "UPDATE stored SET f = f || 1"), "25006");

    catch_up(&mut on_primary, &mut on_standby);
    let (last, last_on_standby) =
        (filters(&mut on_primary, "filters"), filters(&mut on_standby, "filters"));
    assert!(last == last_on_standby);
    primary.kill9();
    assert!(value::<bool>(&mut on_standby, "SELECT pg_promote()"));
    run(&mut on_standby, "UPDATE stored SET f = f || (high + 1), high = high + 1");
    run(&mut on_standby, "CREATE TABLE again AS SELECT kind, note, f | f AS f FROM filters");
    assert!(last == filters(&mut on_standby, "again"));
    let kept = format!(
        "SELECT count(*) = count(*) FILTER (WHERE f = {REBUILT} AND f @> high) AND count(*) > 0 FROM stored"
    );
    assert!(value::<bool>(&mut on_standby, &kept), "a filter was lost when the standby took over");
    answers += finds_everything(&mut on_standby, &samples);
    println!(
        "{statements} statements on the primary, {PROBES} states seen on the standby, {answers} answers there"
    );
}
