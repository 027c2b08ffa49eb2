//! Filters of Parquet files: those that other programs wrote are read, and ours are read by another
//! program, with the same answers for each element.
//!
//! The other program is the crate `parquet`. The files of tests/data/parquet are by DuckDB and
//! pyarrow: scripts/parquet-samples.

#[path = "../common/mod.rs"]
mod common;
mod files;
mod plain;
mod script;

use common::{Random, Server, refused, run, value};
use files::{chunks, write_file};
use parquet::basic::Type;
use parquet::bloom_filter::Sbbf;
use plain::{COLUMNS, Column, Plain, completed, physical};
use postgres::Client;
use std::path::Path;
use std::sync::OnceLock;

/// Elements that are asked for besides those that are there.
const ABSENT: i64 = 20_000;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("timezone = 'UTC'"))
}

/// Elements 0 to `until` of a column, as Parquet stores them.
fn elements(client: &mut Client, column: &Column, physical: Type, until: i64) -> Vec<Plain> {
    let sql = format!(
        "SELECT array_agg({}) FROM (SELECT {} AS x FROM generate_series(0, $1::bigint - 1) AS i) AS elements",
        column.plain, column.element
    );
    let sent = client
        .query_one(&sql, &[&until])
        .unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    sent.get::<_, Vec<&[u8]>>(0)
        .into_iter()
        .map(|bytes| Plain::of(physical, bytes))
        .collect()
}

/// Whether our filter, given as an expression, may have elements 0 to `until` of a column.
fn answers(
    client: &mut Client,
    column: &Column,
    filter: &str,
    bytes: &[u8],
    until: i64,
) -> Vec<bool> {
    let sql = format!(
        "WITH f AS MATERIALIZED (SELECT {filter} AS filter)
         SELECT array_agg(filter @> x) FROM f, (SELECT {} AS x FROM generate_series(0, $2::bigint - 1) AS i) AS elements",
        column.element
    );
    client
        .query_one(&sql, &[&bytes, &until])
        .unwrap_or_else(|e| panic!("{sql}: {e:?}"))
        .get(0)
}

/// Reads every filter of a file and compares answers; each of the first `present` elements must be
/// in one of its row groups.
fn compare_file(client: &mut Client, path: &Path, present: i64) {
    let chunks = chunks(path);
    for column in &COLUMNS {
        let of_column: Vec<_> = chunks.iter().filter(|chunk| chunk.1.name == column.name).collect();
        let Some((_, _, physical, ..)) = of_column.first() else {
            continue;
        };
        let until = present + ABSENT;
        let present = if column.sql_type == "smallint" { present.min(1 << 16) } else { present };
        let plain = elements(client, column, *physical, until);
        let mut found = vec![false; present as usize];
        for (group, _, _, bytes, theirs) in of_column {
            let filter = format!("bloom_from_parquet($1, '{}')", column.sql_type);
            let ours = answers(client, column, &filter, bytes, until);
            let expected = completed(theirs, *physical);
            for (i, (ours, plain)) in ours.iter().zip(&plain).enumerate() {
                assert_eq!(
                    *ours,
                    plain.is_in(&expected),
                    "{path:?}, row group {group}, {}, element {i}: {plain:?}",
                    column.name
                );
            }
            found.iter_mut().zip(ours).for_each(|(found, ours)| *found |= ours);
            compare_written(client, column, bytes);
        }
        assert!(found.iter().all(|&found| found), "{path:?}, {}", column.name);
    }
}

/// What is written of what was read is the same, except for the floats that are completed on the
/// way.
fn compare_written(client: &mut Client, column: &Column, bytes: &[u8]) {
    let sql = format!("SELECT bloom_to_parquet(bloom_from_parquet($1, '{}'))", column.sql_type);
    let written: Vec<u8> = client.query_one(&sql, &[&bytes]).expect("a filter").get(0);
    if ["real", "double"].contains(&column.name) {
        let more = bytes.iter().zip(&written).all(|(before, after)| before & !after == 0);
        let bits: u32 = bytes
            .iter()
            .zip(&written)
            .map(|(before, after)| (before ^ after).count_ones())
            .sum();
        assert!(
            written.len() == bytes.len() && more && bits <= 3 * 8,
            "{}: {bits} more bits",
            column.name
        );
    } else {
        assert!(written == bytes, "{}", column.name);
    }
}

#[test]
fn files_of_duckdb_and_pyarrow_are_read() {
    let mut client = server().database("samples");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet");
    for (name, chunks_of_it, present) in [
        ("duckdb.parquet", 22, 10_000),
        ("pyarrow.parquet", 22, 100_000),
        ("pyarrow-sizes.parquet", 6, 100_000),
    ] {
        let path = samples.join(name);
        assert_eq!(chunks(&path).len(), chunks_of_it);
        compare_file(&mut client, &path, present);
    }
}

#[test]
fn files_of_the_parquet_crate_are_read() {
    let mut client = server().database("crate");
    let path = server().dir().join("elements.parquet");
    // Filters of the wanted rate, smaller ones, and larger ones.
    for (present, fpp, ndv) in [
        (40_000, 0.01, 20_000),
        (2_000, 0.05, 100),
        (1_000, 0.1, 100_000),
    ] {
        let columns: Vec<_> = COLUMNS
            .iter()
            .map(|column| (column, elements(&mut client, column, physical(column), present)))
            .collect();
        write_file(&path, &columns, fpp, ndv);
        compare_file(&mut client, &path, present);
    }
}

/// What the other program writes of a filter of ours: of its bits, or if it is sparse of these
/// elements in as many blocks.
fn written_by_the_crate(stored: &[u8], elements: &[Plain], physical: Type) -> Vec<u8> {
    let mut filter = if stored[3] == 0 {
        let blocks = u64::from_le_bytes(stored[8..16].try_into().expect("eight bytes"));
        let mut filter = Sbbf::new(&vec![0; blocks as usize * 32]);
        elements.iter().for_each(|element| element.insert(&mut filter));
        filter
    } else {
        Sbbf::new(&stored[44..])
    };
    // Another program may ask for the other zero, and for a NaN with a sign.
    let pairs = match physical {
        Type::FLOAT => vec![0.0, f32::NAN]
            .into_iter()
            .map(|x| (Plain::Float(x), Plain::Float(-x)))
            .collect(),
        Type::DOUBLE => vec![0.0, f64::NAN]
            .into_iter()
            .map(|x| (Plain::Double(x), Plain::Double(-x)))
            .collect(),
        _ => vec![],
    };
    let others: Vec<_> = pairs
        .iter()
        .filter(|(canonical, _)| canonical.is_in(&filter))
        .map(|(_, other)| other)
        .collect();
    others.into_iter().for_each(|other| other.insert(&mut filter));
    let mut bytes = Vec::new();
    filter.write(&mut bytes).expect("bytes can be written to memory");
    bytes
}

#[test]
fn ours_are_read_by_the_parquet_crate() {
    let mut client = server().database("ours");
    for column in &COLUMNS {
        let plain = elements(&mut client, column, physical(column), 25_000 + ABSENT);
        // Dense; with other than a power of two of blocks; sparse; without a capacity; merged of
        // two sizes.
        for agg in [
            "bloom_agg(x, 16384, 0.01, 'parquet') FILTER (WHERE i < 16384)",
            "bloom_agg(x, 25000, 0.03, 'parquet') FILTER (WHERE i < 25000)",
            "bloom_agg(x, 25000, 0.01, 'parquet') FILTER (WHERE i < 250)",
            "bloom_from_array(array_agg(x) FILTER (WHERE i < 5000), NULL, 0.1, 'parquet')",
            "bloom_agg(x, 2500, 0.01, 'parquet') FILTER (WHERE i < 2500) |
             bloom_agg(x, 20000, 0.01, 'parquet') FILTER (WHERE i BETWEEN 2500 AND 22499)",
        ] {
            let sql = format!(
                "SELECT f::bytea, bloom_to_parquet(f) FROM (SELECT {agg} AS f
                 FROM (SELECT i, {} AS x FROM generate_series(0, 24999::bigint) AS i) AS elements) AS built",
                column.element
            );
            let row = client.query_one(&sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            let (stored, written): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
            let is_sparse = stored[3] == 0;
            assert_eq!(is_sparse, agg.contains("i < 250)"));
            assert!(
                written == written_by_the_crate(&stored, &plain[..250], physical(column)),
                "{}, {agg}",
                column.name
            );
            let theirs = Sbbf::from_bytes(&written).expect("the crate reads it");
            let ours =
                answers(&mut client, column, "$1::bytea::bloom", &stored, plain.len() as i64);
            let may_have_more = is_sparse || ["real", "double"].contains(&column.name);
            for (i, (ours, plain)) in ours.iter().zip(&plain).enumerate() {
                let theirs = plain.is_in(&theirs);
                assert!(
                    theirs == *ours || theirs && may_have_more,
                    "{}, {agg}, element {i}: {plain:?}",
                    column.name
                );
            }
        }
    }
}

#[test]
fn equal_floats_are_found_whoever_wrote_the_filter() {
    let mut client = server().database("floats");
    run(&mut client, "SET extra_float_digits = 3");
    let path = server().dir().join("floats.parquet");
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column| ["real", "double"].contains(&column.name))
        .collect();
    let nan = f64::from_bits(0xFFF8_0000_1234_0000);
    for (held, asked, absent) in [
        (-0.0, "0", "NaN"),
        (0.0, "-0", "Infinity"),
        (nan, "NaN", "0"),
        (1.5, "1.5", "-0"),
    ] {
        let values = [
            vec![Plain::Float(held as f32); 2],
            vec![Plain::Double(held); 2],
        ];
        let values: Vec<_> = columns.iter().copied().zip(values).collect();
        write_file(&path, &values, 0.01, 100_000);
        for (_, column, _, bytes, theirs) in chunks(&path) {
            let sql = format!(
                "SELECT f @> '{asked}'::real, f @> '{asked}'::float8, f @> '{absent}'::float8, bloom_to_parquet(f)
                 FROM bloom_from_parquet($1, '{}') AS f",
                column.sql_type
            );
            let row = client.query_one(&sql, &[&bytes]).expect("a filter");
            assert_eq!((row.get(0), row.get(1)), (true, true), "{held} in {}", column.name);
            // Any NaN may be in a filter that has something, as we can't ask for each of them.
            assert_eq!(row.get::<_, bool>(2), absent == "NaN", "{absent} asked for in {held}");
            let again = Sbbf::from_bytes(row.get(3)).expect("the crate reads it");
            let of_file = if column.name == "real" { &values[0].1[0] } else { &values[1].1[0] };
            assert!(of_file.is_in(&theirs) && of_file.is_in(&again), "{held} in {}", column.name);
        }
    }
    // Ours, asked by the other program.
    let sql = "SELECT bloom_to_parquet(bloom_from_array(ARRAY[0, 'NaN']::float8[], 10000, 0.01, 'parquet'))";
    let theirs = Sbbf::from_bytes(&value::<Vec<u8>>(&mut client, sql)).expect("the crate reads it");
    assert!(
        [0.0, -0.0, f64::NAN, -f64::NAN].iter().all(|x| theirs.check(x)) && !theirs.check(&1.5f64)
    );
    let sql =
        "SELECT bloom_to_parquet(bloom_from_array(ARRAY[1.5]::float8[], 10000, 0.01, 'parquet'))";
    let theirs = Sbbf::from_bytes(&value::<Vec<u8>>(&mut client, sql)).expect("the crate reads it");
    assert!(
        ![0.0, -0.0, f64::NAN, -f64::NAN].iter().any(|x| theirs.check(x)) && theirs.check(&1.5f64)
    );
}

#[test]
fn filters_of_files_merge_with_ours() {
    let mut client = server().database("merged");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet");
    run(&mut client, "CREATE TABLE filters (file text, row_group bigint, name text, filter bloom)");
    for file in ["duckdb.parquet", "pyarrow.parquet"] {
        for (group, column, _, bytes, _) in chunks(&samples.join(file)) {
            let sql = format!(
                "INSERT INTO filters VALUES ($1, $2, $3, bloom_from_parquet($4, '{}'))",
                column.sql_type
            );
            client
                .execute(&sql, &[&file, &(group as i64), &column.name, &bytes])
                .expect("a filter");
        }
    }
    run(&mut client, "SET pg_bloom.overfill = ignore");
    for column in &COLUMNS {
        let (name, element) = (column.name, column.element);
        let sql = format!(
            "SELECT bool_and(filter | own @> x) FROM
             (SELECT {element} AS x FROM generate_series(0, 999::bigint) AS i) AS asked,
             (SELECT bloom_union_agg(filter) AS filter FROM filters WHERE name = '{name}') AS theirs,
             (SELECT bloom_from_array(array_agg({element}), NULL, 0.01, 'parquet') AS own
              FROM generate_series(500, 999::bigint) AS i) AS ours"
        );
        assert!(value::<bool>(&mut client, &sql), "{name}");
    }
}

#[test]
fn damaged_bytes_are_refused_or_a_filter() {
    let mut client = server().database("damaged");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet");
    let good = chunks(&samples.join("pyarrow-sizes.parquet")).remove(2).3;
    assert_eq!(good.len(), 47);
    let mut random = Random(7);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let place = random.below(bytes.len());
            bytes[place] = random.bits() as u8;
        }
        bytes.truncate(47 - random.below(8).saturating_sub(6) * random.below(48));
        match client.query_one("SELECT bloom_info(bloom_from_parquet($1, 'real'))::text", &[&bytes])
        {
            Ok(_) => accepted += 1,
            Err(e) => {
                assert_eq!(common::state_of(&e), "22P03", "{bytes:x?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 500 && accepted > 500, "{refused} refused, {accepted} accepted");
}

#[test]
fn limits_hold() {
    let mut client = server().database("limits");
    run(&mut client, "SET pg_bloom.max_filter_size = '64kB'");
    let header = "'\\x158080081c1c00001c1c00001c1c000000'::bytea";
    refused(
        &mut client,
        "54000",
        &format!(
            "SELECT bloom_from_parquet({header} || decode(repeat('00', 65536), 'hex'), 'integer')"
        ),
    );
    run(&mut client, "SET pg_bloom.max_filter_size = '65kB'");
    run(
        &mut client,
        &format!(
            "SELECT bloom_from_parquet({header} || decode(repeat('00', 65536), 'hex'), 'integer')"
        ),
    );
    // A sparse filter that would be larger than it may be when it is written.
    run(
        &mut client,
        "RESET pg_bloom.max_filter_size; CREATE TABLE t AS SELECT bloom_from_array(ARRAY[1], 1000000, 0.01, 'parquet') AS f",
    );
    run(&mut client, "SET pg_bloom.max_filter_size = '1MB'");
    refused(&mut client, "54000", "SELECT bloom_to_parquet(f) FROM t");
}
