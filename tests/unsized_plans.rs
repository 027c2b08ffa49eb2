//! An unsized build has its rate and its size whatever a parallel plan does: with any number of workers, planned or started.

mod common;

use common::{Server, plan, run, value};
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
        "CREATE TABLE t WITH (parallel_workers = 8) AS SELECT x FROM generate_series(1, 400000) AS x; ANALYZE t",
    );
    // As hashes; as bits, where one process has more of them than the largest filter has bytes, and as both.
    for setup in [
        "SET work_mem = '64kB'",
        "SET work_mem = '1GB'",
        "SET work_mem = '1MB'; SET pg_bloom.max_filter_size = '600kB'",
    ] {
        for aggregate in ["bloom_agg(x)", "bloom_agg(x, NULL, 0.02, 'classic')", "bloom_agg(x, NULL, 0.05, 'parquet')"]
        {
            let build = format!("SELECT md5(bloom_send({aggregate})) FROM t");
            let expected = serial(&server, name, setup, &build);
            let mut client = server.connect(name);
            run(&mut client, setup);
            run(&mut client, PARALLEL);
            run(&mut client, &format!("PREPARE p AS {build}"));
            let plan = plan(&mut client, "COSTS OFF", &build);
            assert!(plan.contains("Workers Planned: 8") && plan.contains("Partial Aggregate"), "{plan}");
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
                assert_eq!(md5(&mut client, "EXECUTE p"), expected, "{setup}, {aggregate}, {setting}");
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
            assert_eq!(md5(&mut client, "SELECT built()"), expected, "{setup}, {aggregate}, PL/pgSQL");
            run(&mut client, PARALLEL);
            // In an InitPlan.
            let inner = format!("SELECT (SELECT md5(bloom_send({aggregate})) FROM t) FROM generate_series(1, 1)");
            assert_eq!(md5(&mut client, &inner), expected, "{setup}, {aggregate}, InitPlan");
            run(&mut client, "SET max_parallel_workers = 0");
            assert_eq!(md5(&mut client, &inner), expected, "{setup}, {aggregate}, InitPlan without workers");
        }
    }
}
