//! Whoever wants a wrong "no" out of it: filters of every kind of elements and of every shape,
//! changed at random, and questions of every form. What the index gives must be what a sequential
//! scan gives, errors included.

use crate::common::samples::{KEY_KIND_SAMPLES, Sample, TYPES};
use crate::common::{Random, Server, random, run, state_of, times, value};
use postgres::{Client, SimpleQueryMessage};

/// Steps of a history, and questions after each.
const STEPS: usize = 30;
const QUESTIONS: usize = 12;

/// A kind's table and its index; one partition of many.
fn tables(client: &mut Client) {
    run(client, TYPES);
    run(client, "CREATE TABLE k (kind integer, id integer, seen bloom) PARTITION BY LIST (kind)");
    for kind in 0..KEY_KIND_SAMPLES.len() {
        run(client, &format!("CREATE TABLE k{kind} PARTITION OF k FOR VALUES IN ({kind})"));
        run(client, &format!("ALTER TABLE k{kind} SET (parallel_workers = {})", kind % 3));
    }
    run(
        client,
        "CREATE INDEX k_seen ON k USING bloom_filter (seen);
         CREATE FUNCTION odd(f bloom) RETURNS bloom LANGUAGE sql IMMUTABLE AS 'SELECT public.bloom_union(f, f)'",
    );
    // A column of elements of each kind.
    let columns: Vec<String> = (0..KEY_KIND_SAMPLES.len())
        .map(|kind| format!("{} AS e{kind}", element(kind, "n")))
        .collect();
    run(
        client,
        &format!(
            "CREATE TABLE elements AS SELECT {} FROM generate_series(1, 30) AS n",
            columns.join(", ")
        ),
    );
    run(client, "ANALYZE elements");
}

/// An element as an expression of the number of one.
fn element(kind: usize, number: &str) -> String {
    let Sample { sql_type, ordinary_value, .. } = KEY_KIND_SAMPLES[kind];
    // The one column that the expressions name.
    format!(
        "(SELECT ({ordinary_value})::{sql_type} FROM (SELECT ({number})::integer AS i) AS numbers)"
    )
}

/// A filter of elements around a number, of some shape.
fn filter(random: &mut Random, kind: usize, first: &str) -> String {
    let Sample { sql_type, ordinary_value, .. } = KEY_KIND_SAMPLES[kind];
    let many = *random.pick(&[0, 1, 3, 20, 150, 900]);
    let elements = format!(
        "ARRAY(SELECT ({ordinary_value})::{sql_type} FROM generate_series({first}, {first} + {many}) AS i)"
    );
    let capacity = *random.pick(&["NULL", "40", "300", "300", "1500", "1500", "1000000"]);
    let rate = *random.pick(&["0.01", "0.01", "0.2", "1e-5"]);
    let layout = *random.pick(&["blocked", "blocked", "blocked", "classic", "parquet"]);
    let made = format!("bloom_from_array({elements}, {capacity}, {rate}, '{layout}')");
    match random.below(8) {
        0 => format!("bloom_fold({made}, 0.3)"),
        1 => format!(
            "bloom_union({made}, bloom_from_array({elements}, {capacity}, {rate}, '{layout}'))"
        ),
        2 => format!("bloom_intersection({made}, {made})"),
        3 => format!("bloom_add({made}, {})", element(kind, "7")),
        4 => format!(
            "CASE WHEN ({first}) % 3 = 0 THEN bloom_empty() WHEN ({first}) % 3 = 1 THEN NULL ELSE {made} END"
        ),
        _ => made,
    }
}

/// Changes the table of a kind; nothing that the questions need must hold of it.
fn change(client: &mut Client, random: &mut Random, kind: usize, next: &mut i32) -> String {
    let many = 1 + random.below(30) as i32;
    let of_kind = if random.below(40) == 0 { random.below(KEY_KIND_SAMPLES.len()) } else { kind };
    let made = filter(random, of_kind, "n % 500");
    let insert = format!(
        "INSERT INTO k{kind} SELECT {kind}, n, {made} FROM generate_series({next}, {next} + {many}) AS n"
    );
    *next += many + 1;
    let some = format!("id % {} = 0", 2 + random.below(9));
    let number = random.below(600);
    let merge = format!(
        "UPDATE k{kind} SET seen = bloom_add(seen, {}) WHERE {some}",
        element(kind, &number.to_string())
    );
    let sql = match random.below(16) {
        0..5 => insert,
        5 | 6 => merge,
        7 => format!("UPDATE k{kind} SET seen = bloom_union(seen, seen), id = id WHERE {some}"),
        8 => format!("DELETE FROM k{kind} WHERE {some}"),
        9 => format!(
            "BEGIN; {insert}; SAVEPOINT a; {merge}; ROLLBACK TO a; DELETE FROM k{kind} WHERE {some}; COMMIT"
        ),
        10 => format!("BEGIN; {insert}; {merge}; ROLLBACK"),
        11 => format!("VACUUM k{kind}"),
        12 => format!("VACUUM (FULL) k{kind}"),
        13 => format!("REINDEX TABLE CONCURRENTLY k{kind}"),
        14 => {
            format!("BEGIN; TRUNCATE k{kind}; {insert}; COMMIT")
        }
        _ => format!(
            "DROP INDEX IF EXISTS o{kind};
             DROP INDEX IF EXISTS p{kind};
             CREATE INDEX o{kind} ON k{kind} USING bloom_filter (odd(seen));
             CREATE INDEX p{kind} ON k{kind} USING bloom_filter (seen) WHERE id % 2 = 0"
        ),
    };
    for statement in if sql.starts_with("DROP") {
        sql.split(';').collect()
    } else {
        vec![sql.as_str()]
    } {
        // Not all filters can be merged, nor has Parquet all kinds.
        if let Err(error) = client.batch_execute(statement) {
            let state = state_of(&error);
            assert!(
                ["42804", "22023", "0A000"].contains(&state.as_str()),
                "{statement}: {error:?}"
            );
            run(client, "ROLLBACK");
        }
    }
    sql
}

/// A query, and what prepares it.
struct Question {
    before: String,
    sql: String,
}

/// A query in one of many forms.
fn question(client: &mut Client, random: &mut Random, kind: usize) -> Question {
    let own = random.below(30) != 0;
    let asked = if own { kind } else { random.below(KEY_KIND_SAMPLES.len()) };
    let sql_type = KEY_KIND_SAMPLES[asked].sql_type;
    let mut one = || element(asked, &random.below(700).to_string());
    let [x, y] = [one(), one()];
    let constant: String =
        value(client, &format!("SELECT quote_literal({x}::text) || '::{sql_type}'"));
    let table = if random.below(6) == 0 { "k".into() } else { format!("k{kind}") };
    let select = format!("SELECT id, {table}.kind FROM {table} WHERE");
    let mut before = "DEALLOCATE ALL".to_owned();
    let condition = match random.below(18) {
        0..3 => format!("seen @> {x}"),
        3 => format!("seen @> {constant}"),
        4 => format!("bloom_contains(seen, {x})"),
        5 => format!("{x} <@ seen"),
        6 => format!("bloom_contains_any(seen, ARRAY[{x}, NULL, {y}]::{sql_type}[])"),
        7 => format!("seen @> {x} AND seen @> {y}"),
        8 => format!("(seen @> {x} OR seen @> {y})"),
        9 => format!("seen @> {x} AND id % 2 = 0"),
        10 => format!("odd(seen) @> {x}"),
        11 => {
            let inner = format!("SELECT id FROM {table} WHERE seen @> e{asked}");
            let sql =
                format!("SELECT id, e{asked} FROM elements CROSS JOIN LATERAL ({inner}) AS found");
            return Question { before, sql };
        }
        12 => format!("seen @> ANY (ARRAY[{x}, {y}, NULL]::{sql_type}[])"),
        13 => format!("NOT seen @> {x} AND seen @> {y}"),
        14 => format!("bloom_contains_all(seen, ARRAY[{x}, NULL, {y}]::{sql_type}[])"),
        15 => {
            format!("bloom_contains_all(seen, ARRAY[{constant}, NULL, {constant}]::{sql_type}[])")
        }
        form => {
            let condition = if form == 16 {
                "seen @> $1"
            } else {
                "bloom_contains_any(seen, ARRAY[$1, $1])"
            };
            before += &format!("; PREPARE ask ({sql_type}) AS {select} {condition}");
            return Question { before, sql: format!("EXECUTE ask ({constant})") };
        }
    };
    Question { before, sql: format!("{select} {condition}") }
}

/// The rows of a query in their order, or the SQLSTATE that it fails with.
fn answer(client: &mut Client, sql: &str) -> Result<Vec<String>, String> {
    let messages = client.simple_query(sql).map_err(|error| state_of(&error))?;
    let mut rows: Vec<String> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some(format!("{:?}", (0..row.len()).map(|i| row.get(i)).collect::<Vec<_>>()))
            }
            _ => None,
        })
        .collect();
    rows.sort();
    Ok(rows)
}

/// Asks by the index, in one of several settings, and by a sequential scan. Returns whether the
/// index was used, and how many rows there are.
fn agree(
    client: &mut Client,
    random: &mut Random,
    Question { before, sql }: &Question,
) -> (bool, usize) {
    run(client, "BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT a");
    let settings = random.pick(&[
        "SET LOCAL work_mem = '64kB'",
        "SET LOCAL plan_cache_mode = force_generic_plan",
        "SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0",
        "SET LOCAL enable_nestloop = on",
    ]);
    run(client, settings);
    run(
        client,
        &format!(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = on; {before}; SAVEPOINT a"
        ),
    );
    let plan = answer(client, &format!("EXPLAIN (COSTS OFF) {sql}"));
    if plan.is_err() {
        run(client, "ROLLBACK TO a");
    }
    let is_used = plan.is_ok_and(|plan| plan.iter().any(|line| line.contains("Bitmap Index Scan")));
    let by_index = answer(client, sql);
    run(client, "ROLLBACK TO a; SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = off");
    run(client, before);
    let by_scan = answer(client, sql);
    run(client, "ROLLBACK");
    // Of conditions that raise errors the first one that is evaluated does.
    let may_differ = sql.contains("id % 2") && (by_index.is_err() || by_scan.is_err());
    assert!(may_differ || by_index == by_scan, "{settings}\n{sql}\n{by_index:?}\n{by_scan:?}");
    (is_used, by_scan.map_or(0, |rows| rows.len()))
}

fn check(client: &mut Client, kind: usize) {
    let indexes = format!(
        "SELECT count(*) FROM (SELECT bloom_index_check(indexrelid::regclass) FROM pg_index
        WHERE indrelid = 'k{kind}'::regclass) AS checked"
    );
    assert!(value::<i64>(client, &indexes) > 0);
}

#[test]
fn every_kind_shape_and_question() {
    let server = Server::start("autovacuum = off");
    let mut client = server.database("attack");
    let mut random = random(50);
    tables(&mut client);
    let (mut next, mut used, mut rows, mut asked) = (1, 0, 0, 0);
    let mut log: Vec<String> = Vec::new();
    for step in 0..times(STEPS) {
        let kind = if step < 2 * KEY_KIND_SAMPLES.len() {
            step / 2
        } else {
            random.below(KEY_KIND_SAMPLES.len())
        };
        for _ in 0..1 + random.below(3) {
            log.push(change(&mut client, &mut random, kind, &mut next));
        }
        for _ in 0..QUESTIONS {
            let asked_for = question(&mut client, &mut random, kind);
            let (is_used, found) = agree(&mut client, &mut random, &asked_for);
            (used, rows, asked) = (used + usize::from(is_used), rows + found, asked + 1);
        }
        check(&mut client, kind);
    }
    println!("{used} of {asked} questions used an index; {rows} rows");
    assert!(used * 2 > asked && rows > asked);
}
