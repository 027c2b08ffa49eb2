//! A database with elements of every type and filters of them, and the question whether they are
//! still the same.

use super::samples::{FURTHER_TYPES, Sample, TYPES, all_samples};
use super::{LAYOUTS, rows, run, value};
use postgres::Client;

/// Elements of each type.
pub const COUNT: usize = 300;

/// Filters of each type: each layout, sparse, dense and sized for what it saw.
pub const FILTERS: usize = LAYOUTS.len() * SIZES.len();

/// Capacity and rate of the filters; that of 50 is dense, overfull even.
const SIZES: [&str; 3] = ["1000000, 0.01", "50, 0.001", "NULL, 0.05"];

/// Returns the samples of all types that filters can be made of: all except `"char"`, for which each
/// call of a function is ambiguous.
pub fn samples() -> Vec<Sample> {
    all_samples().filter(|sample| sample.sql_type != "\"char\"").collect()
}

/// Makes a table of elements of each of these types, `elements_<n>`, and tables of filters of them,
/// whose column `kind` has that number.
pub fn fill(client: &mut Client, samples: &[Sample]) {
    run(client, TYPES);
    run(client, FURTHER_TYPES);
    run(client, "SET pg_bloom.overfill = ignore");
    run(client, "CREATE TABLE filters (kind integer, note text, f bloom)");
    run(client, "CREATE TABLE counting_filters (kind integer, note text, f counting_bloom)");
    for (n, Sample { sql_type, ordinary_value, .. }) in samples.iter().enumerate() {
        let table = format!("elements_{n}");
        run(
            client,
            &format!(
                "CREATE TABLE {table} (x {sql_type});
                 INSERT INTO {table} SELECT {ordinary_value} FROM generate_series(1, {COUNT}) AS i"
            ),
        );
        for layout in LAYOUTS {
            for size in SIZES {
                let build = format!(
                    "SELECT {n}, '{layout}, {size}', bloom_agg(x, {size}, '{layout}') FROM {table}"
                );
                run(client, &format!("INSERT INTO filters {build}"));
            }
        }
        let build = format!("SELECT {n}, 'counting', counting_bloom_agg(x, 1000) FROM {table}");
        run(client, &format!("INSERT INTO counting_filters {build}"));
    }
    run(
        client,
        "INSERT INTO counting_filters
         VALUES (NULL, 'no size', counting_bloom_empty()), (NULL, 'sized', counting_bloom_empty(9)), (NULL, 'none', NULL)",
    );
    run(client, "INSERT INTO filters VALUES (NULL, 'empty', bloom_empty()), (NULL, 'none', NULL)");
    run(
        client,
        "INSERT INTO filters VALUES (NULL, 'sized', bloom_empty(100)), (NULL, 'big', bloom_empty(9999999))",
    );
}

/// All filters, as bytes.
pub fn filters(client: &mut Client, table: &str) -> Vec<(Option<i32>, String, Option<Vec<u8>>)> {
    rows(client, &format!("SELECT kind, note, f::bytea FROM {table} ORDER BY 1, 2"))
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

/// Asserts that each filter finds all elements of its table. Returns how many answers that were.
pub fn finds_everything(client: &mut Client, samples: &[Sample]) -> i64 {
    let mut answers = 0;
    for (n, Sample { sql_type, .. }) in samples.iter().enumerate() {
        let row = &rows(
            client,
            &format!(
                "SELECT count(*), count(*) FILTER (WHERE f @> x AND x <@ f) FROM filters, elements_{n} WHERE kind = {n}"
            ),
        )[0];
        let (asked, found): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(
            (asked, found),
            ((FILTERS * COUNT) as i64, asked),
            "elements of type {sql_type}"
        );
        answers += asked;
        let rebuilt: bool = value(
            client,
            &format!(
                "SELECT f = counting_bloom_agg(x, 1000) AND bool_and(f @> x)
                        AND (NOT bool_or(counting_bloom_remove(f, x) = f) OR (counting_bloom_info(f)).counters_saturated > 0)
                 FROM counting_filters, elements_{n} WHERE kind = {n} GROUP BY f"
            ),
        );
        assert!(rebuilt, "elements of type {sql_type}");
    }
    answers
}
