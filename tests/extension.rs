//! The extension's life: who may create it and where, what moves and is dropped with it, its
//! settings, and what becomes of it in a database that others prepared.

mod common;

use common::objects::{objects, same};
use common::{Server, column, refused, run, sqlstate, value};
use std::sync::OnceLock;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(""))
}

#[test]
fn whoever_may_create_in_a_database_may_create_it_in_any_schema() {
    let mut super_user = server().empty_database("owned", "");
    run(
        &mut super_user,
        "CREATE ROLE owner LOGIN; CREATE ROLE guest LOGIN; ALTER DATABASE owned OWNER TO owner",
    );
    let connect = |user: &str| {
        postgres::Config::new()
            .host_path(server().dir())
            .user(user)
            .dbname("owned")
            .connect(postgres::NoTls)
            .expect(user)
    };
    let (mut owner, mut guest) = (connect("owner"), connect("guest"));
    assert_eq!(sqlstate(&mut guest, "CREATE EXTENSION pg_bloom"), "42501");
    run(&mut owner, "CREATE SCHEMA \"Odd one\"; CREATE EXTENSION pg_bloom SCHEMA \"Odd one\"");
    run(&mut owner, "GRANT USAGE ON SCHEMA \"Odd one\" TO guest");
    // Not in anybody's search path.
    for client in [&mut owner, &mut guest] {
        assert_eq!(sqlstate(client, "SELECT bloom_empty()"), "42883");
        let all = "SELECT \"Odd one\".bloom_agg(i) OPERATOR(\"Odd one\".@>) 3
                AND NOT \"Odd one\".bloom_agg(i, 10) OPERATOR(\"Odd one\".@>) 7
                AND 'x' OPERATOR(\"Odd one\".<@) (\"Odd one\".bloom_empty(9) OPERATOR(\"Odd one\".||) 'x')
                AND \"Odd one\".bloom_union_agg(\"Odd one\".bloom_empty(9) OPERATOR(\"Odd one\".||) i)
                    OPERATOR(\"Odd one\".@>) 2
            FROM generate_series(1, 5) AS i";
        assert!(value::<bool>(client, all));
    }
    // The C functions belong to a superuser, as those of every trusted extension: the owner can't
    // replace them.
    let replace = "CREATE OR REPLACE FUNCTION \"Odd one\".bloom_empty() RETURNS \"Odd one\".bloom
        LANGUAGE sql AS 'SELECT NULL::\"Odd one\".bloom'";
    assert_eq!(sqlstate(&mut owner, replace), "42501");
    assert_eq!(sqlstate(&mut guest, "DROP EXTENSION pg_bloom"), "42501");
    run(&mut owner, "DROP EXTENSION pg_bloom; CREATE EXTENSION pg_bloom; DROP EXTENSION pg_bloom");
}

/// Everything that may depend on the extension.
const DEPENDENTS: &str = "
    CREATE TABLE kept (id integer PRIMARY KEY, f bloom DEFAULT bloom_empty(100), x text);
    INSERT INTO kept SELECT i, bloom_from_array(ARRAY[i, i + 1], 100), i FROM generate_series(1, 20) AS i;
    CREATE INDEX by_filter ON kept (f);
    CREATE INDEX by_hash ON kept USING hash (f);
    CREATE INDEX by_answer ON kept (id) WHERE f @> 3;
    CREATE VIEW found AS SELECT id FROM kept WHERE f @> 3;
    CREATE MATERIALIZED VIEW merged AS SELECT bloom_union_agg(f) AS f FROM kept;
    CREATE TABLE checked (x integer CHECK (NOT bloom_from_array(ARRAY[13], 10) @> x));
    CREATE FUNCTION asks(bloom) RETURNS boolean LANGUAGE sql AS 'SELECT $1 IS NOT NULL';
    CREATE TABLE parts (f bloom) PARTITION BY HASH (f);
    CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    INSERT INTO parts SELECT f FROM kept;";

#[test]
fn what_uses_it_follows_it_to_another_schema() {
    let mut client = server().database("moved");
    run(&mut client, DEPENDENTS);
    let before = objects(&mut client);
    let probe = "SELECT (SELECT array_agg(id ORDER BY id) FROM found) = ARRAY[2, 3]
        AND (SELECT count(*) FROM parts) = 20 AND (SELECT count(DISTINCT f) FROM kept WHERE id < 100) = 20";
    assert!(value::<bool>(&mut client, probe));
    run(&mut client, "CREATE SCHEMA apart; ALTER EXTENSION pg_bloom SET SCHEMA apart");
    same(&before, &objects(&mut client), "moving changed the objects");
    run(&mut client, "SET enable_seqscan = off");
    assert!(value::<bool>(&mut client, probe));
    run(
        &mut client,
        "INSERT INTO kept (id) VALUES (100); REFRESH MATERIALIZED VIEW merged; REINDEX TABLE kept",
    );
    assert!(value::<bool>(&mut client, "SELECT f OPERATOR(apart.@>) 20 FROM merged"));
    let default = "SELECT f OPERATOR(apart.=) apart.bloom_empty(100) FROM kept WHERE id = 100";
    assert!(value::<bool>(&mut client, default));
    refused(&mut client, "23514", "INSERT INTO checked VALUES (13)");
    run(&mut client, "INSERT INTO checked VALUES (14)");
    run(&mut client, "ALTER EXTENSION pg_bloom SET SCHEMA public");
    assert!(value::<bool>(&mut client, probe));
    same(&before, &objects(&mut client), "moving back changed the objects");
}

#[test]
fn dropping_it_asks_first_and_leaves_nothing() {
    let mut client = server().database("dropped");
    let before = objects(&mut client);
    run(&mut client, DEPENDENTS);
    refused(&mut client, "2BP01", "DROP EXTENSION pg_bloom");
    refused(&mut client, "2BP01", "DROP TYPE bloom");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM kept WHERE f @> id"), 20);
    run(&mut client, "DROP EXTENSION pg_bloom CASCADE");
    let left: Vec<String> = column(
        &mut client,
        "SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
         UNION ALL SELECT typname FROM pg_type
             WHERE typnamespace = 'public'::regnamespace AND typname LIKE '%bloom%'
         UNION ALL SELECT oprname FROM pg_operator WHERE oprnamespace = 'public'::regnamespace
         UNION ALL SELECT opfname FROM pg_opfamily WHERE opfnamespace = 'public'::regnamespace
         UNION ALL SELECT amname FROM pg_am WHERE amname = 'bloom_filter'
         UNION ALL SELECT relname FROM pg_class
             WHERE relname IN ('by_filter', 'by_hash', 'by_answer', 'found', 'parts')
         UNION ALL SELECT attname FROM pg_attribute WHERE attrelid = 'kept'::regclass AND attname = 'f'",
    );
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(value::<i64>(&mut client, "SELECT count(x) FROM kept"), 20);
    // The library is still loaded in this session, and serves the extension that is created next.
    run(&mut client, "CREATE EXTENSION pg_bloom");
    same(&before, &objects(&mut client), "creating it again made other objects");
    assert!(value::<bool>(&mut client, "SELECT bloom_from_array(ARRAY['a']) @> 'a'"));
}

/// Objects in the target schema, or before it in the search path, that would be found by an
/// unqualified name.
const TRAPS: &str = "
    CREATE FUNCTION trap(anyelement) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END';
    CREATE FUNCTION trap2(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped''; END';
    CREATE OPERATOR = (FUNCTION = trap2, LEFTARG = text, RIGHTARG = text);
    CREATE OPERATOR || (FUNCTION = trap2, LEFTARG = text, RIGHTARG = text);
    CREATE FUNCTION eqsel(internal, oid, internal, integer) RETURNS float8 LANGUAGE internal AS 'neqsel';
    CREATE FUNCTION scalarltsel(internal, oid, internal, integer) RETURNS float8 LANGUAGE internal AS 'neqsel';
    CREATE DOMAIN \"text\" AS integer;
    CREATE DOMAIN \"boolean\" AS integer;
    CREATE DOMAIN \"bytea\" AS integer;
    CREATE DOMAIN oid AS integer;
    CREATE DOMAIN internal_ AS integer;";

#[test]
fn a_hostile_schema_does_not_change_what_is_created() {
    let mut honest = server().database("honest");
    let expected = objects(&mut honest);
    let mut client = server().empty_database("hostile", "");
    run(&mut client, "CREATE SCHEMA trapped; SET search_path = trapped, pg_catalog");
    run(&mut client, TRAPS);
    run(&mut client, "CREATE EXTENSION pg_bloom SCHEMA trapped");
    let foreign: Vec<String> = column(
        &mut client,
        "SELECT pg_describe_object(d.classid, d.objid, 0) || ' needs ' || pg_describe_object(d.refclassid, d.refobjid, 0)
         FROM pg_depend AS d JOIN pg_depend AS member ON member.deptype = 'e' AND member.classid = d.classid
             AND member.objid = d.objid
         WHERE (d.refclassid, d.refobjid) IN (
             SELECT 'pg_proc'::regclass::oid, oid FROM pg_proc WHERE pronamespace = 'trapped'::regnamespace
             UNION SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = 'trapped'::regnamespace
             UNION SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprnamespace = 'trapped'::regnamespace)
         AND NOT EXISTS (SELECT FROM pg_depend AS own WHERE own.deptype = 'e' AND own.classid = d.refclassid
             AND own.objid = d.refobjid)
         AND NOT pg_describe_object(d.refclassid, d.refobjid, 0) ~ '^type .*bloom(_key)?\\[\\]$'",
    );
    assert_eq!(foreign, Vec::<String>::new(), "objects of the extension use what was planted");
    same(&expected, &objects(&mut client), "what was planted changed the extension");
}

#[test]
fn functions_do_not_look_names_up() {
    let mut client = server().database("paths");
    run(&mut client, "CREATE SCHEMA trapped; SET search_path = trapped, pg_catalog");
    run(&mut client, TRAPS);
    run(
        &mut client,
        "CREATE TABLE bloom (x pg_catalog.int4); CREATE TYPE mood AS ENUM ('good', 'bad')",
    );
    let all = "SELECT public.bloom_agg(x) OPERATOR(public.@>) 'good'::mood
            AND (public.bloom_info(public.bloom_agg(x))).key_kind OPERATOR(pg_catalog.=) 'text'
            AND NOT public.bloom_agg(1.50) OPERATOR(public.@>) 2.5
            AND public.bloom_agg('{\"a\": 1}'::jsonb) OPERATOR(public.@>) '{\"a\": 1.0}'::jsonb
            AND public.bloom_agg(ARRAY['b']) OPERATOR(public.@>) ARRAY['b']
            AND public.bloom_agg(x::pg_catalog.text)::pg_catalog.bytea::public.bloom OPERATOR(public.=) public.bloom_agg(x)
        FROM pg_catalog.unnest(ARRAY['good', 'bad']::mood[]) AS x";
    assert!(value::<bool>(&mut client, all));
    // Functions in SQL and PL/pgSQL would have a search path. The extension has functions in C, and
    // aggregates, whose language is called internal.
    let languages: Vec<String> = column(
        &mut client,
        "SELECT DISTINCT lanname::pg_catalog.text COLLATE pg_catalog.\"C\" AS name
         FROM pg_depend AS d
         JOIN pg_extension AS e ON e.oid OPERATOR(pg_catalog.=) d.refobjid AND extname OPERATOR(pg_catalog.=) 'pg_bloom'
         JOIN pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) d.objid AND deptype OPERATOR(pg_catalog.=) 'e'
         JOIN pg_language AS l ON l.oid OPERATOR(pg_catalog.=) prolang
         WHERE d.classid OPERATOR(pg_catalog.=) 'pg_proc'::regclass ORDER BY name",
    );
    assert_eq!(languages, ["c", "internal"]);
}

/// A server whose library is loaded before any session asks for it, with settings that came before.
#[test]
fn settings_may_be_there_before_the_library() {
    let config =
        "pg_bloom.default_fpr = 0.02\npg_bloom.max_filter_size = '64MB'\npg_bloom.overfill = error";
    for preload in [
        "",
        "shared_preload_libraries = 'pg_bloom'",
        "session_preload_libraries = 'pg_bloom'",
    ] {
        let server = Server::start(&format!("{config}\n{preload}"));
        let mut client = server.database("preloaded");
        let settings = "SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings WHERE category = 'Customized Options' AND name NOT LIKE 'plpgsql.%'";
        assert!(
            value::<bool>(&mut client, "SELECT (bloom_info(bloom_empty(1000))).target_fpr = 0.02"),
            "{preload}"
        );
        assert_eq!(
            value::<Vec<String>>(&mut client, settings),
            [
                "pg_bloom.default_fpr=0.02",
                "pg_bloom.heap_filter=on",
                "pg_bloom.max_filter_size=65536",
                "pg_bloom.overfill=error",
                "pg_bloom.read_ahead=on"
            ]
        );
        refused(&mut client, "54000", "SELECT bloom_empty(100000000)");
        drop(client);
        server.restart();
        let mut client = server.connect("preloaded");
        assert!(
            value::<bool>(&mut client, "SELECT (bloom_info(bloom_empty(1000))).target_fpr = 0.02"),
            "{preload}"
        );
    }
}

#[test]
fn settings_of_roles_and_databases_are_checked_when_the_library_loads() {
    let mut admin = server().database("settings");
    run(
        &mut admin,
        "CREATE ROLE plain LOGIN; CREATE ROLE trusted LOGIN;
         ALTER ROLE plain SET pg_bloom.default_fpr = 0.05;
         ALTER DATABASE settings SET pg_bloom.overfill = 'ignore'",
    );
    let connect = |user: &str, options: &str| {
        let mut config = postgres::Config::new();
        config
            .host_path(server().dir())
            .user(user)
            .dbname("settings")
            .options(options);
        config.connect(postgres::NoTls).expect(user)
    };
    let now = "SELECT (bloom_info(bloom_empty(1000))).target_fpr || ' ' || current_setting('pg_bloom.max_filter_size')
        || ' ' || current_setting('pg_bloom.overfill')";
    assert_eq!(value::<String>(&mut connect("plain", ""), now), "0.05 256MB ignore");
    refused(
        &mut connect("plain", ""),
        "42501",
        "SELECT bloom_empty(); SET pg_bloom.max_filter_size = '500MB'",
    );
    refused(
        &mut connect("plain", ""),
        "42501",
        "SELECT bloom_empty(); ALTER ROLE plain SET pg_bloom.max_filter_size = '500MB'",
    );

    // A placeholder that was set before the library is loaded: what is not allowed or not valid
    // doesn't become so.
    let mut early = connect("plain", "");
    run(&mut early, "SET pg_bloom.max_filter_size = '500MB'");
    assert_eq!(value::<String>(&mut early, now), "0.05 256MB ignore");
    let mut early =
        connect("plain", "-c pg_bloom.max_filter_size=400MB -c pg_bloom.default_fpr=0.25");
    assert_eq!(value::<String>(&mut early, now), "0.25 256MB ignore");
    for (name, bad) in [
        ("default_fpr", "7"),
        ("default_fpr", "many"),
        ("overfill", "shout"),
        ("max_filter_size", "1TB"),
    ] {
        let mut early = connect("postgres", "");
        run(&mut early, &format!("SET pg_bloom.{name} = '{bad}'"));
        // PostgreSQL warns and takes the default, and the session goes on.
        let outcome = sqlstate(&mut early, "SELECT bloom_empty()");
        assert_eq!(outcome, "00000", "{name} = {bad}");
        assert_eq!(value::<String>(&mut early, now), "0.01 256MB ignore", "{name} = {bad}");
    }
    // A name that doesn't exist is refused once the library is there.
    let mut client = connect("plain", "");
    refused(&mut client, "42602", "SELECT bloom_empty(); SET pg_bloom.no_such_setting = 1");
    run(&mut admin, "GRANT SET ON PARAMETER pg_bloom.max_filter_size TO trusted");
    let mut client = connect("trusted", "");
    run(&mut client, "SELECT bloom_empty(); SET pg_bloom.max_filter_size = '500MB'");
    assert_eq!(value::<String>(&mut client, now), "0.01 500MB ignore");
    let mut early = connect("trusted", "");
    run(&mut early, "SET pg_bloom.max_filter_size = '499MB'");
    assert_eq!(value::<String>(&mut early, now), "0.01 499MB ignore");
    run(&mut admin, "ALTER ROLE trusted SET pg_bloom.max_filter_size = '1MB'");
    refused(&mut connect("trusted", ""), "54000", "SELECT bloom_empty(10000000)");
}

#[test]
fn the_library_can_be_loaded_before_the_extension_is_created() {
    let mut client = server().empty_database("loaded", "");
    run(&mut client, "LOAD 'pg_bloom'");
    run(&mut client, "SET pg_bloom.default_fpr = 0.125");
    run(&mut client, "CREATE EXTENSION pg_bloom");
    assert_eq!(
        value::<f64>(&mut client, "SELECT (bloom_info(bloom_empty(100))).target_fpr"),
        0.125
    );
    run(&mut client, "LOAD 'pg_bloom'");
    assert_eq!(
        value::<f64>(&mut client, "SELECT (bloom_info(bloom_empty(100))).target_fpr"),
        0.125
    );
}

/// What docs/reference.md says about settings before the library is there.
#[test]
fn settings_are_known_once_the_library_is_loaded() {
    let mut admin = server().database("app");
    run(&mut admin, "CREATE ROLE visitor LOGIN");
    let connect = || {
        let mut config = postgres::Config::new();
        config
            .host_path(server().dir())
            .user("visitor")
            .dbname("app")
            .connect(postgres::NoTls)
            .expect("a session")
    };
    let show = "SHOW pg_bloom.default_fpr";
    let mut client = connect();
    refused(&mut client, "42704", show);
    refused(&mut client, "42501", "LOAD 'pg_bloom'");
    run(&mut client, "SET pg_bloom.default_fpr = 'many'; SET pg_bloom.max_filter_size = '1MB'");
    run(&mut client, "SELECT bloom_empty()");
    assert_eq!(value::<String>(&mut client, show), "0.01");
    assert_eq!(value::<String>(&mut client, "SHOW pg_bloom.max_filter_size"), "256MB");
    refused(&mut client, "22023", "SET pg_bloom.default_fpr = 'many'");
    run(&mut admin, "LOAD 'pg_bloom'");

    let preload = "ALTER DATABASE app SET session_preload_libraries = 'pg_bloom'";
    assert!(
        include_str!("../docs/reference.md").contains(preload),
        "the reference says something else"
    );
    run(&mut admin, preload);
    let mut client = connect();
    assert_eq!(value::<String>(&mut client, show), "0.01");
    refused(&mut client, "22023", "SET pg_bloom.default_fpr = 'many'");
}
