//! Copies of a set: dumps, subscribers, standbys.

use crate::common::samples::TYPES;
use crate::common::standby::{catch_up, follow, wait_until};
use crate::common::{Server, column, fed, feed, output, refused, run, value};
use crate::{add_all, server};
use postgres::Client;

/// Everything in a set, in a form that two databases can be compared by.
fn contents(client: &mut Client, set: &str) -> Vec<String> {
    column(client, &format!("SELECT bucket || ' ' || hashes::text FROM {set} ORDER BY bucket"))
}

/// Sets of several types of elements with something in them: text, of users' types, with odd names,
/// empty.
fn fill(client: &mut Client) -> Vec<&'static str> {
    run(client, TYPES);
    run(
        client,
        "CREATE SCHEMA \"Other place\";
         CREATE TYPE \"Other place\".\"Mixed type\" AS (id bigint, label text);
         SELECT bloom_set_create('texts', 'text', 20000), bloom_set_create('moods', 'mood', 10),
            bloom_set_create('\"Other place\".\"A set\"', '\"Other place\".\"Mixed type\"', 3000, 1e-9),
            bloom_set_create('empty', 'integer[]', 1000000, 0.5);
         SELECT bloom_set_add_all('texts', ARRAY(SELECT 'x' || i FROM generate_series(1, 20000) AS i)),
            bloom_set_add_all('moods', ARRAY['bad', 'fair é']::mood[]),
            bloom_set_add_all('\"Other place\".\"A set\"',
                ARRAY(SELECT ROW(i, 'n' || i)::\"Other place\".\"Mixed type\" FROM generate_series(1, 500) AS i))",
    );
    vec!["texts", "moods", "\"Other place\".\"A set\"", "empty"]
}

#[test]
fn a_dump_keeps_sets() {
    let mut original = server().database("dumped");
    let sets = fill(&mut original);
    for (format, name) in [("plain", "restored_plain"), ("custom", "restored_custom")] {
        let dump = output(server().program("pg_dump").args(["--format", format, "dumped"]));
        let mut restored = server().empty_database(name, "");
        let mut program = server().program(if format == "plain" { "psql" } else { "pg_restore" });
        match format {
            "plain" => program.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", name]),
            _ => program.args(["--exit-on-error", "-d", name]),
        };
        feed(&mut program, &dump);
        for set in &sets {
            assert!(contents(&mut original, set) == contents(&mut restored, set), "{set}");
            let info = format!(
                "SELECT element::text || capacity || target_fpr || elements || rows FROM bloom_set_info('{set}')"
            );
            assert_eq!(
                value::<String>(&mut original, &info),
                value::<String>(&mut restored, &info)
            );
        }
        for (sql, expected) in [
            ("SELECT bloom_set_add('texts', 'x1')", false),
            ("SELECT bloom_set_add('moods', 'bad'::mood)", false),
            ("SELECT bloom_set_add('moods', 'good'::mood)", true),
            (
                "SELECT bloom_set_add('\"Other place\".\"A set\"', ROW(7, 'n7')::\"Other place\".\"Mixed type\")",
                false,
            ),
            ("SELECT bloom_set_add('empty', ARRAY[1, 2])", true),
        ] {
            assert_eq!(value::<bool>(&mut restored, sql), expected, "{sql}");
        }
    }
}

/// What `pg_dump --data-only` writes goes into a set whose table is empty: the rows of a set that
/// was made there are in the way.
#[test]
fn a_dump_of_data_goes_into_a_truncated_set() {
    let mut original = server().database("data_dumped");
    run(&mut original, "SELECT bloom_set_create('s', 'integer', 5000)");
    let elements: Vec<i32> = (0..2000).collect();
    let new = add_all(&mut original, "s", &elements);
    let mut copy = server().database("data_restored");
    run(&mut copy, "SELECT bloom_set_create('s', 'integer', 5000)");
    let dump = output(server().program("pg_dump").args(["--data-only", "data_dumped"]));
    let restore = || {
        let mut program = server().program("psql");
        program.args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-v",
            "VERBOSITY=sqlstate",
        ]);
        fed(program.args(["-d", "data_restored"]), &dump)
    };
    let failed = restore();
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains("23505"), "{said}");
    run(&mut copy, "TRUNCATE s");
    assert!(restore().status.success());
    assert!(contents(&mut original, "s") == contents(&mut copy, "s"));
    assert_eq!(add_all(&mut copy, "s", &new), []);
}

/// A subscriber has what the publisher has, and can go on by itself.
#[test]
fn a_subscriber_follows() {
    let mut publisher = server().database("publisher");
    run(
        &mut publisher,
        "SELECT bloom_set_create('s', 'integer', 5000); CREATE PUBLICATION p FOR TABLE s",
    );
    let early: Vec<i32> = (0..1000).collect();
    add_all(&mut publisher, "s", &early);
    let mut subscriber = server().database("subscriber");
    run(&mut subscriber, "SELECT bloom_set_create('s', 'integer', 5000); TRUNCATE s");
    run(&mut publisher, "SELECT pg_create_logical_replication_slot('followed', 'pgoutput')");
    run(
        &mut subscriber,
        &format!(
            "CREATE SUBSCRIPTION followed CONNECTION 'host={} user=postgres dbname=publisher' PUBLICATION p WITH (create_slot = false)",
            server().dir().display()
        ),
    );
    // Some are added while it copies, some when it follows; rows are split in the meantime.
    let (middle, late): (Vec<i32>, Vec<i32>) = ((1000..3000).collect(), (3000..5000).collect());
    for batch in middle.chunks(100) {
        add_all(&mut publisher, "s", batch);
    }
    wait_until("the table is copied", || {
        value(&mut subscriber, "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel")
    });
    for batch in late.chunks(50) {
        add_all(&mut publisher, "s", batch);
    }
    let expected = contents(&mut publisher, "s");
    wait_until("the subscriber has everything", || contents(&mut subscriber, "s") == expected);
    run(
        &mut subscriber,
        "ALTER SUBSCRIPTION followed DISABLE; ALTER SUBSCRIPTION followed SET (slot_name = NONE); DROP SUBSCRIPTION followed",
    );
    assert_eq!(add_all(&mut subscriber, "s", &early), []);
    assert_eq!(add_all(&mut subscriber, "s", &[-1]), [-1]);
    // A set without an identity of its rows can't be published, here as for UPDATE.
    run(
        &mut publisher,
        "SELECT pg_drop_replication_slot('followed'); ALTER TABLE s REPLICA IDENTITY NOTHING",
    );
    refused(&mut publisher, "55000", "SELECT bloom_set_add('s', -2)");
    run(&mut publisher, "ALTER TABLE s REPLICA IDENTITY FULL");
    assert_eq!(add_all(&mut publisher, "s", &[-2]), [-2]);
}

/// A standby answers, refuses to add, and goes on when it is promoted.
#[test]
fn a_standby_answers_and_takes_over() {
    let config = "wal_level = replica\nmax_wal_senders = 5";
    let (primary, standby) = (Server::start(config), Server::start(config));
    let mut on_primary = primary.database("followed");
    run(&mut on_primary, "SELECT bloom_set_create('s', 'integer', 20000)");
    run(&mut on_primary, "SELECT bloom_set_create('unlogged', 'integer', 100)");
    run(&mut on_primary, "ALTER TABLE unlogged SET UNLOGGED");
    let early: Vec<i32> = (0..5000).collect();
    add_all(&mut on_primary, "s", &early);
    follow(&standby, &primary);
    let mut on_standby = standby.connect("followed");
    let late: Vec<i32> = (5000..20_000).collect();
    for batch in late.chunks(500) {
        add_all(&mut on_primary, "s", batch);
    }
    catch_up(&mut on_primary, &mut on_standby);
    assert!(contents(&mut on_primary, "s") == contents(&mut on_standby, "s"));
    let all = "SELECT cardinality(bloom_set_present('s', ARRAY(SELECT generate_series(0, 19999))))";
    assert_eq!(value::<i32>(&mut on_standby, all), 20_000);
    assert!(value::<f64>(&mut on_standby, "SELECT elements FROM bloom_set_info('s')") > 19_000.0);
    for call in [
        "bloom_set_add('s', -1)",
        "bloom_set_add_all('s', ARRAY[-1])",
        "bloom_set_create('t', 'text', 10)",
    ] {
        refused(&mut on_standby, "25006", &format!("SELECT {call}"));
    }
    // An unlogged table isn't there.
    for call in [
        "bloom_set_contains('unlogged', 1)",
        "bloom_set_info('unlogged')",
    ] {
        refused(&mut on_standby, "0A000", &format!("SELECT {call}"));
    }
    primary.kill9();
    assert!(value::<bool>(&mut on_standby, "SELECT pg_promote()"));
    assert_eq!(add_all(&mut on_standby, "s", &early), []);
    assert_eq!(add_all(&mut on_standby, "s", &[-1]).len(), 1);
}
