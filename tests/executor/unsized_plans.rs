//! An unsized build has its rate and its size whatever a parallel plan does: with any number of
//! workers, planned or started.

use crate::common::{Server, plan, run, value};
use postgres::Client;

/// Planned with eight workers.
const PARALLEL: &str = "
    SET max_parallel_workers_per_gather = 8; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
    SET min_parallel_table_scan_size = 0;";

fn md5(client: &mut Client, sql: &str) -> String {
    value(client, sql)
}

/// What a build of all the table's x has by a serial plan.
fn serial(server: &Server, name: &str, setup: &str, build: &str) -> String {
    let mut client = server.connect(name);
    run(&mut client, setup);
    run(&mut client, "SET max_parallel_workers_per_gather = 0");
    md5(&mut client, build)
}

#[test]
fn the_number_of_processes_is_of_no_account() {
    let server = Server::start("max_worker_processes = 12\nmax_parallel_workers = 12");
    let name = "plans";
    let mut client = server.database(name);
    run(
        &mut client,
        "CREATE TABLE t WITH (parallel_workers = 8) AS SELECT x FROM generate_series(1, 250000) AS x; ANALYZE t",
    );
    // As hashes; as bits, where one process has more of them than the largest filter has bytes, and
    // as both.
    for setup in [
        "SET work_mem = '64kB'",
        "SET work_mem = '1GB'",
        "SET work_mem = '1MB'; SET pg_bloom.max_filter_size = '600kB'",
    ] {
        for aggregate in [
            "bloom_agg(x)",
            "bloom_agg(x, NULL, 0.02, 'classic')",
            "bloom_agg(x, NULL, 0.05, 'parquet')",
        ] {
            let build = format!("SELECT md5(bloom_send({aggregate})) FROM t");
            let expected = serial(&server, name, setup, &build);
            let mut client = server.connect(name);
            run(&mut client, setup);
            run(&mut client, PARALLEL);
            run(&mut client, &format!("PREPARE p AS {build}"));
            let plan = plan(&mut client, "COSTS OFF", &build);
            assert!(
                plan.contains("Workers Planned: 8") && plan.contains("Partial Aggregate"),
                "{plan}"
            );
            // The plan is that of before, whatever the settings say when it runs.
            let settings = [
                "SET max_parallel_workers_per_gather = 8",
                "SET max_parallel_workers_per_gather = 0",
                "SET max_parallel_workers = 0",
                "SET max_parallel_workers = 1",
                "SET max_parallel_workers = 3; SET parallel_leader_participation = off",
            ];
            run(&mut client, "SET plan_cache_mode = force_generic_plan");
            assert_eq!(md5(&mut client, "EXECUTE p"), expected, "{setup}, {aggregate}");
            for setting in settings {
                run(&mut client, setting);
                assert_eq!(
                    md5(&mut client, "EXECUTE p"),
                    expected,
                    "{setup}, {aggregate}, {setting}"
                );
                run(&mut client, "RESET max_parallel_workers; RESET parallel_leader_participation");
            }
            run(&mut client, PARALLEL);
            run(
                &mut client,
                &format!(
                    "CREATE OR REPLACE FUNCTION built() RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
                     AS $$ BEGIN RETURN (SELECT md5(bloom_send({aggregate})) FROM t); END $$;
                     SELECT built(); SET max_parallel_workers_per_gather = 0"
                ),
            );
            assert_eq!(
                md5(&mut client, "SELECT built()"),
                expected,
                "{setup}, {aggregate}, PL/pgSQL"
            );
            run(&mut client, PARALLEL);
            // In an InitPlan.
            let inner = format!(
                "SELECT (SELECT md5(bloom_send({aggregate})) FROM t) FROM generate_series(1, 1)"
            );
            assert_eq!(md5(&mut client, &inner), expected, "{setup}, {aggregate}, InitPlan");
            run(&mut client, "SET max_parallel_workers = 0");
            assert_eq!(
                md5(&mut client, &inner),
                expected,
                "{setup}, {aggregate}, InitPlan without workers"
            );
        }
    }
}

/// A state that this process hands over to itself is neither lost nor taken twice.
#[test]
fn a_state_is_handed_over_once() {
    let server =
        Server::start("max_worker_processes = 12\nmax_parallel_workers = 12\nwork_mem = '64kB'");
    let mut client = server.database("handed");
    // Another aggregate with the same functions has the same state.
    run(
        &mut client,
        "CREATE TABLE t (x integer, g integer) PARTITION BY LIST (g);
         CREATE TABLE t0 PARTITION OF t FOR VALUES IN (0) WITH (parallel_workers = 2);
         CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1) WITH (parallel_workers = 2);
         INSERT INTO t SELECT x, x % 2 FROM generate_series(1, 60000) AS x;
         ANALYZE t;
         CREATE AGGREGATE again(anyelement) (
             SFUNC = bloom_agg_transition, STYPE = internal, FINALFUNC = bloom_agg_final, COMBINEFUNC = bloom_agg_combine,
             SERIALFUNC = bloom_agg_serialise, DESERIALFUNC = bloom_agg_deserialise, PARALLEL = SAFE
         );
         CREATE AGGREGATE again(element anyelement, capacity bigint) (
             SFUNC = bloom_agg_transition, STYPE = internal, FINALFUNC = bloom_agg_final, COMBINEFUNC = bloom_agg_combine,
             SERIALFUNC = bloom_agg_serialise, DESERIALFUNC = bloom_agg_deserialise, PARALLEL = SAFE
         );",
    );
    let filters = "bloom_agg(x) AS a, again(x) AS b, again(x + 0) AS c, bloom_agg(x, 50000) AS d, again(x, 50000) AS e";
    let names = "ARRAY[md5(bloom_send(a)), md5(bloom_send(b)), md5(bloom_send(c)), md5(bloom_send(d)), md5(bloom_send(e))]";
    let md5s = format!("{names}::text FROM (SELECT {filters} FROM t WHERE x % 3 <> k) AS f");
    let whole = format!("SELECT {md5s}").replace("<> k", "<> 0");
    // Built again for each outer row, some with rows that are not there.
    let again = format!(
        "SELECT array_agg((SELECT {md5s}) ORDER BY k)::text FROM generate_series(0, 3) AS k"
    );
    let none = whole.replace("% 3 <> 0", "% 3 > 5");
    let queries = [&whole, &again, &none];
    run(&mut client, "SET max_parallel_workers_per_gather = 0");
    let expected = queries.map(|sql| value::<String>(&mut client, sql));
    run(&mut client, "SET enable_partitionwise_aggregate = on");
    for workers in [0, 1, 8] {
        run(&mut client, PARALLEL);
        run(&mut client, &format!("SET max_parallel_workers_per_gather = {workers}"));
        for started in [0, 8] {
            run(&mut client, &format!("SET max_parallel_workers = {started}"));
            for (sql, expected) in queries.iter().zip(&expected) {
                let plan = plan(&mut client, "COSTS OFF", sql);
                assert!(plan.contains("Partial Aggregate"), "{plan}");
                assert_eq!(
                    &value::<String>(&mut client, sql),
                    expected,
                    "{started} of {workers} workers\n{sql}\n{plan}"
                );
            }
        }
    }
}
