//! A set spread over the filters of many rows by `bloom_shard`, as docs/distributed.md says,
//! behaves as one filter does.

use crate::common::{bound, column, plan, rows, run, value};
use crate::server;
use postgres::Client;

const SHARDS: i64 = 64;
const ELEMENTS: i64 = 640_000;
/// Elements that are asked for and are not there.
const ABSENT: i64 = 1_000_000;

/// A shard's capacity: its mean load and four standard deviations.
fn capacity(elements: i64, shards: i64) -> i64 {
    let mean = elements as f64 / shards as f64;
    (mean + 4.0 * mean.sqrt()).ceil() as i64
}

/// Makes the table `sharded` of the elements 1 to [`ELEMENTS`].
fn build(client: &mut Client) {
    let capacity = capacity(ELEMENTS, SHARDS);
    run(
        client,
        &format!(
            "CREATE TABLE sharded (set_id integer, shard integer, filter bloom, PRIMARY KEY (set_id, shard));
             INSERT INTO sharded SELECT 1, bloom_shard(i, {SHARDS}), bloom_agg(i, {capacity}, 0.01)
             FROM generate_series(1, {ELEMENTS}) AS i GROUP BY 2;
             CREATE TABLE single AS SELECT bloom_agg(i, {capacity} * {SHARDS}, 0.01) AS filter
             FROM generate_series(1, {ELEMENTS}) AS i;
             ANALYZE sharded"
        ),
    );
}

/// How many of the elements from `first` to `last` are found by this query of the sets of elements
/// of each shard.
fn found(client: &mut Client, first: i64, last: i64) -> i64 {
    value(
        client,
        &format!(
            "SELECT sum(cardinality(bloom_present(filter, elements))) FROM sharded JOIN (
                 SELECT bloom_shard(i, {SHARDS}) AS shard, array_agg(i) AS elements
                 FROM generate_series({first}, {last}) AS i GROUP BY 1
             ) AS asked USING (shard) WHERE set_id = 1"
        ),
    )
}

#[test]
fn shards_have_the_rate_of_one_filter_of_their_size() {
    let mut client = server().database("rate");
    build(&mut client);
    // Nothing is lost: all together have just the bits of the one.
    let bits = "SELECT sum((bloom_info(filter)).num_bits)::bigint FROM";
    assert_eq!(
        value::<i64>(&mut client, &format!("{bits} sharded")),
        value::<i64>(&mut client, &format!("{bits} single"))
    );
    assert_eq!(found(&mut client, 1, ELEMENTS), ELEMENTS);
    let (first, last) = (ELEMENTS * 2, ELEMENTS * 2 + ABSENT - 1);
    let sharded = found(&mut client, first, last) as f64;
    let single = value::<i64>(
        &mut client,
        &format!(
            "SELECT count(*) FROM single, generate_series({first}, {last}) AS i WHERE filter @> i"
        ),
    ) as f64;
    // Each is a binomial count; their difference has the variance of both.
    let absent = ABSENT as f64;
    let rate = (sharded + single) / 2.0 / absent;
    assert!(
        (sharded - single).abs() < bound(2.0 * absent, rate),
        "{sharded} against {single} of {absent}"
    );
    // … and each is what its bits say.
    for (counted, table) in [(sharded, "sharded"), (single, "single")] {
        let rate: f64 = value(&mut client, &format!("SELECT avg(bloom_fpr(filter)) FROM {table}"));
        assert!(
            (counted - rate * absent).abs() < bound(absent, rate),
            "{table}: {counted}, not {}",
            rate * absent
        );
        assert!(rate < 0.01, "{table}: {rate}");
    }
}

#[test]
fn loads_are_balanced_and_within_the_margin() {
    let mut client = server().database("balance");
    for (element, elements) in [
        ("i", ELEMENTS),
        ("i * 1000003::bigint", ELEMENTS),
        ("'https://example.org/' || i", 200_000),
    ] {
        for shards in [2, 64, 1000] {
            let sql = format!(
                "SELECT count(*) FROM generate_series(1, {elements}) AS i GROUP BY bloom_shard({element}, {shards})"
            );
            let loads: Vec<i64> = column(&mut client, &sql);
            assert_eq!(loads.len() as i64, shards);
            // Four standard deviations are enough for a hundred shards, and five for a hundred
            // thousand.
            let mean = elements as f64 / shards as f64;
            let most = if shards > 100 {
                (mean + 5.0 * mean.sqrt()) as i64
            } else {
                capacity(elements, shards)
            };
            assert!(
                loads.iter().all(|&load| load <= most),
                "{element}: {:?} of {most}",
                loads.iter().max()
            );
            // Chi-square, whose mean is its degrees of freedom and whose variance is twice that.
            let square: f64 = loads.iter().map(|&load| (load as f64 - mean).powi(2) / mean).sum();
            let freedom = shards as f64 - 1.0;
            assert!(
                (square - freedom).abs() < 4.5 * (2.0 * freedom).sqrt(),
                "{element}, {shards} shards: {square}"
            );
        }
    }
}

#[test]
fn merging_shards_is_building_them_from_both_sets() {
    let mut client = server().database("merging");
    build(&mut client);
    let capacity = capacity(ELEMENTS, SHARDS);
    run(
        &mut client,
        &format!(
            "INSERT INTO sharded SELECT 2 + i % 2, bloom_shard(i, {SHARDS}), bloom_agg(i, {capacity}, 0.01)
             FROM generate_series(1, {ELEMENTS}) AS i GROUP BY 1, 2"
        ),
    );
    let same: Vec<bool> = column(
        &mut client,
        "SELECT whole.filter = merged.filter FROM sharded AS whole JOIN (
             SELECT shard, bloom_union_agg(filter) AS filter FROM sharded WHERE set_id IN (2, 3) GROUP BY shard
         ) AS merged USING (shard) WHERE set_id = 1",
    );
    assert_eq!(same, vec![true; SHARDS as usize]);
}

#[test]
fn a_probe_reads_one_row_by_the_index_and_a_slice_of_it() {
    let mut client = server().database("probe");
    build(&mut client);
    let size: i64 =
        value(&mut client, "SELECT min(octet_length(filter::bytea))::bigint FROM sharded");
    run(
        &mut client,
        &format!(
            "INSERT INTO sharded SELECT id, shard, bloom_empty() FROM generate_series(2, 200) AS id, generate_series(0, {SHARDS} - 1) AS shard;
             ANALYZE sharded"
        ),
    );
    assert!(size > 12_000, "{size}");
    run(
        &mut client,
        "PREPARE probe(bigint) AS SELECT filter @> $1 FROM sharded WHERE set_id = 1 AND shard = bloom_shard($1, 64)",
    );
    let executed = plan(
        &mut client,
        "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF",
        "EXECUTE probe(77)",
    );
    assert!(executed.contains("Index Scan using sharded_pkey"), "{executed}");
    assert!(executed.contains("actual rows=1") && !executed.contains("Filter:"), "{executed}");
    let buffers = executed
        .split("Buffers: shared ")
        .nth(1)
        .expect("it says how many pages it read");
    let pages: i64 = buffers
        .lines()
        .next()
        .into_iter()
        .flat_map(|line| line.split([' ', '=']))
        .filter_map(|word| word.parse::<i64>().ok())
        .sum();
    assert!(pages < 20, "{executed}");
    // Integers of any width have one shard.
    for sql_type in ["smallint", "integer", "bigint"] {
        for element in [1, 77, 32_000] {
            let sql = format!(
                "SELECT filter @> {element}::{sql_type} FROM sharded
                 WHERE set_id = 1 AND shard = bloom_shard({element}::{sql_type}, {SHARDS})"
            );
            assert_eq!(
                rows(&mut client, &sql)
                    .iter()
                    .map(|row| row.get(0))
                    .collect::<Vec<bool>>(),
                [true]
            );
        }
    }
}

#[test]
fn a_parallel_build_has_the_same_shards() {
    let mut client = server().database("parallel");
    build(&mut client);
    run(
        &mut client,
        &format!(
            "CREATE TABLE elements WITH (parallel_workers = 2) AS SELECT i FROM generate_series(1, {ELEMENTS}) AS i;
             SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
        ),
    );
    // Without this the planner expects as many groups as there are elements.
    let version: i32 = value(&mut client, "SELECT current_setting('server_version_num')::integer");
    let statistics = if version >= 140_000 {
        "STATISTICS shards ON (bloom_shard(i, 64))"
    } else {
        "INDEX ON elements (bloom_shard(i, 64))"
    };
    let from = if version >= 140_000 { " FROM elements" } else { "" };
    run(&mut client, &format!("CREATE {statistics}{from}; ANALYZE elements"));
    let query = format!(
        "SELECT bloom_shard(i, {SHARDS}) AS shard, bloom_agg(i, {}, 0.01) AS filter FROM elements GROUP BY 1",
        capacity(ELEMENTS, SHARDS)
    );
    assert!(plan(&mut client, "COSTS OFF", &query).contains("Partial HashAggregate"));
    let same: Vec<bool> = column(
        &mut client,
        &format!(
            "SELECT built.filter = sharded.filter FROM ({query}) AS built JOIN sharded USING (shard)"
        ),
    );
    assert_eq!(same, vec![true; SHARDS as usize]);
}
