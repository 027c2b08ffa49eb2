//! A call takes no more memory than its rows, and `work_mem` of these.

use crate::common::process::kilobytes;
use crate::common::{Server, run, value};

/// Kilobytes that may differ by chance: PostgreSQL's caches, what the memory of a process is
/// rounded to.
const SLACK: i64 = 12_000;

#[test]
fn a_call_takes_no_more_memory_than_its_rows() {
    let server = Server::start("shared_buffers = '2MB'");
    let mut client = server.database("memory");
    run(
        &mut client,
        "CREATE TABLE t (at integer, id text) PARTITION BY RANGE (at);
         DO $$ BEGIN FOR i IN 0 .. 99 LOOP
             EXECUTE format('CREATE TABLE t%s PARTITION OF t FOR VALUES FROM (%s) TO (%s)', i, i, i + 1);
         END LOOP; END $$;
         CREATE INDEX ON t USING bloom_filter (id) WITH (pages_per_range = 1);
         INSERT INTO t SELECT i % 100, 'key ' || i / 100 FROM generate_series(0, 9999) AS i;
         INSERT INTO t SELECT 50, repeat('long', 50) FROM generate_series(1, 200000)",
    );
    // What is kept of tables and indexes is known then.
    run(
        &mut client,
        "SET work_mem = '1MB'; SELECT * FROM bloom_find_all(NULL::t, 'id', '{key 0, key 1}')",
    );
    let (counted, keys) =
        ("SELECT count(*) FROM bloom_find", "SELECT array_agg('key ' || i) FROM generate_series");
    for (rows, call) in [
        (0, "(NULL::t, 'id', 'none')".into()),
        (100, "(NULL::t, 'id', 'key 7')".into()),
        // A megabyte of keys, and their conditions, for each of a hundred tables.
        (100, format!("_all(NULL::t, 'id', ({keys}(99, 20099) AS i))")),
        (100, format!("_all(NULL::t, 'id', ({keys}(99, 20099) AS i))")),
        // 50 MB of rows.
        (200_000, "(NULL::t, 'id', repeat('long', 50))".into()),
    ] {
        let sql = format!("{counted}{call}");
        let before = kilobytes(&mut client, "VmRSS:");
        assert_eq!(value::<i64>(&mut client, &sql), rows);
        let grown = kilobytes(&mut client, "VmHWM:") - before;
        println!("{grown} kB: {sql}");
        assert!(grown <= SLACK, "{grown} kB: {sql}");
    }
}
