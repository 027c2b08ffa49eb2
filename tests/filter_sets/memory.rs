//! The memory of a call depends on its array, and not on how many rows of the set that concerns.

use crate::common::process::kilobytes;
use crate::common::{Random, Server, run, value};
use pg_bloom_core::set::{Row, RowEntry, SetForm};
use postgres::Client;

/// The depth of the rows: that of a set of some twenty million elements.
const DEPTH: u32 = 16;
/// Hashes of a row, which take some 600 bytes.
const HASHES: usize = 200;
/// Elements of the array, so that each row gets some.
const ELEMENTS: i64 = 200_000;

/// Returns the row of a bucket, with random hashes.
fn random_row(form: SetForm, bucket: u64, random: &mut Random) -> Row {
    let width = form.bits - DEPTH;
    let first_hash = (bucket - (1 << DEPTH)) << width;
    let mut hashes: Vec<u64> = (0..HASHES)
        .map(|_| first_hash | random.bits() >> (64 - width))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    let entries = hashes
        .into_iter()
        .map(|hash| RowEntry { hash, time_slice: 0 })
        .collect();
    Row { entries, ..Row::empty(bucket) }
}

/// Replaces the rows of a set by many more.
fn fill(client: &mut Client, set: &str) {
    let form = SetForm { bits: 40, forgets: false };
    let mut random = Random(3);
    run(client, &format!("TRUNCATE {set}"));
    let insert = format!("INSERT INTO {set} SELECT * FROM unnest($1::bigint[], $2::bytea[])");
    let buckets: Vec<i64> = (1 << DEPTH..2 << DEPTH).collect();
    for part in buckets.chunks(4096) {
        let rows: Vec<Vec<u8>> = part
            .iter()
            .map(|&bucket| random_row(form, bucket as u64, &mut random).write(form))
            .collect();
        client.execute(&insert, &[&part, &rows]).expect("rows of a set");
    }
}

#[test]
fn a_call_takes_no_more_memory_than_three_times_its_array_and_64_megabytes() {
    let server = Server::start("shared_buffers = '2MB'");
    let mut client = server.database("memory");
    run(&mut client, "SELECT bloom_set_create('s', 'bigint')");
    fill(&mut client, "s");
    let array_kilobytes = ELEMENTS * 8 / 1024;
    let elements = format!("ARRAY(SELECT generate_series(1, {ELEMENTS}::bigint))");
    for (call, count) in [
        ("bloom_set_absent", ELEMENTS),
        ("bloom_set_add_all", ELEMENTS),
        ("bloom_set_present", ELEMENTS),
        ("bloom_set_remove_all", ELEMENTS),
        ("bloom_set_expire", 0),
    ] {
        let mut session = server.connect("memory");
        // What a session keeps of a set is known then.
        run(
            &mut session,
            "SELECT bloom_set_add('s', -1::bigint), bloom_set_remove('s', -1::bigint)",
        );
        let before = kilobytes(&mut session, "VmRSS:");
        let sql = if count > 0 {
            format!("SELECT cardinality({call}('s', {elements}))::bigint")
        } else {
            format!("SELECT {call}('s')")
        };
        let found: i64 = value(&mut session, &sql);
        // With 40 bits of each hash, few of so many elements have those of another.
        assert!((found - count).abs() < 20, "{found}: {call}");
        let grown = kilobytes(&mut session, "VmHWM:") - before;
        println!("{grown} kB: {call}");
        assert!(grown <= 3 * array_kilobytes + 64 * 1024, "{grown} kB: {call}");
    }
}
