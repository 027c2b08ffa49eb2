//! What can't be indexed is refused when the index is made, and says why.

use crate::common::standby::wait_until;
use crate::common::{refused, run, sqlstate, value};
use crate::server;
use postgres::Client;
use std::thread;

/// What a hint or a message must say, somewhere, for a user to know what to do.
struct Refusal<'s> {
    state: &'static str,
    sql: &'s str,
    says: &'static str,
}

const fn refusal(state: &'static str, sql: &'static str, says: &'static str) -> Refusal<'static> {
    Refusal { state, sql, says }
}

const OBJECTS: &str = "
    CREATE TYPE mood AS ENUM ('good', 'bad');
    CREATE TYPE pair AS (a integer, b text);
    CREATE DOMAIN pairs AS pair;
    CREATE TYPE moodrange AS RANGE (SUBTYPE = mood);
    CREATE TYPE pairrange AS RANGE (SUBTYPE = pair);
    CREATE TABLE t (i integer, t text, p pair, ps pair[], d pairs, j json, x xml, pt point, ms mood[], mr moodrange, pr pairrange,
        v tsquery, b bit(3), m money, big real, n name);
    INSERT INTO t (i, t) VALUES (1, 'a');";

/// Structure that indexes of this method don't have, and options that are wrong.
const STRUCTURE: [Refusal<'static>; 21] = [
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (i, t)", "multicolumn"),
    refusal("0A000", "CREATE UNIQUE INDEX ON t USING bloom_filter (i)", "unique"),
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (i) INCLUDE (t)", "included columns"),
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (i DESC)", "ASC/DESC"),
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (i NULLS FIRST)", "NULLS FIRST/LAST"),
    refusal(
        "0A000",
        "ALTER TABLE t ADD EXCLUDE USING bloom_filter (i WITH =)",
        "exclusion constraints",
    ),
    refusal(
        "0A000",
        "CREATE INDEX refused ON t USING bloom_filter (i); CLUSTER t USING refused",
        "clustering",
    ),
    refusal("22023", "CREATE INDEX ON t USING bloom_filter (i) WITH (fpr = 0)", "fpr"),
    refusal("22023", "CREATE INDEX ON t USING bloom_filter (i) WITH (fpr = 1)", "fpr"),
    refusal("22023", "CREATE INDEX ON t USING bloom_filter (i) WITH (fpr = -0.1)", "fpr"),
    refusal("22023", "CREATE INDEX ON t USING bloom_filter (i) WITH (fpr = 0.00000001)", "fpr"),
    refusal("22023", "CREATE INDEX ON t USING bloom_filter (i) WITH (fpr = 'NaN')", "fpr"),
    refusal("22023", "CREATE INDEX ON t USING bloom_filter (i) WITH (fpr = few)", "fpr"),
    refusal(
        "22023",
        "CREATE INDEX ON t USING bloom_filter (i) WITH (pages_per_range = 0)",
        "pages_per_range",
    ),
    refusal(
        "22023",
        "CREATE INDEX ON t USING bloom_filter (i) WITH (pages_per_range = -1)",
        "pages_per_range",
    ),
    refusal(
        "22023",
        "CREATE INDEX ON t USING bloom_filter (i) WITH (pages_per_range = 1000000)",
        "pages_per_range",
    ),
    refusal("22023", "CREATE INDEX ON t USING bloom_filter (i) WITH (capacity = 1000)", "capacity"),
    refusal(
        "22023",
        "CREATE INDEX ON t USING bloom_filter (i) WITH (fillfactor = 50)",
        "fillfactor",
    ),
    refusal(
        "22023",
        "CREATE INDEX refused ON t USING bloom_filter (i); ALTER INDEX refused SET (fpr = 2)",
        "fpr",
    ),
    refusal("42804", "CREATE INDEX ON t USING bloom_filter (i text_ops)", "text_ops"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (i no_such_ops)", "no_such_ops"),
];

/// Types that have no operator class, or are refused although one takes them.
const TYPES: [Refusal<'static>; 12] = [
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (p)", "pair"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (d)", "pairs"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (j)", "json"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (x)", "xml"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (pt)", "point"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (v)", "tsquery"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (b)", "bit"),
    refusal("42704", "CREATE INDEX ON t USING bloom_filter (m)", "money"),
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (ps)", "pair"),
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (ms)", "mood"),
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (mr)", "mood"),
    refusal("0A000", "CREATE INDEX ON t USING bloom_filter (pr)", "pair"),
];

/// What the server says about a failure: message, detail and hint.
fn said(client: &mut Client, refusal: &Refusal<'_>) -> String {
    let error = client.batch_execute(refusal.sql).expect_err(refusal.sql);
    let error = error.as_db_error().expect("the server raised it");
    assert_eq!(error.code().code(), refusal.state, "{}: {}", refusal.sql, error.message());
    [Some(error.message()), error.detail(), error.hint()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" / ")
}

/// ALTER INDEX SET knows nothing of the operator class. What rebuilds the index says how to undo
/// it.
#[test]
fn options_that_an_index_cannot_have_are_refused_with_the_way_back() {
    let mut client = server().database("options");
    run(
        &mut client,
        "CREATE TABLE o (x text, seen bloom); INSERT INTO o SELECT 'a', bloom_agg('a'::text);
         CREATE INDEX o_x ON o USING bloom_filter (x); CREATE INDEX o_seen ON o USING bloom_filter (seen)",
    );
    for (index, set, reset) in [
        ("o_x", "fpr = 0.3", "(fpr)"),
        ("o_seen", "fpr = 0.01", "(fpr, pages_per_range)"),
    ] {
        run(&mut client, &format!("ALTER INDEX {index} SET ({set})"));
        for sql in [
            "TRUNCATE o",
            "VACUUM FULL o",
            &format!("REINDEX INDEX {index}"),
        ] {
            let error = said(&mut client, &Refusal { state: "22023", sql, says: "" });
            assert!(error.contains("ALTER INDEX ... RESET ") && error.contains(reset), "{error}");
            assert!(error.contains(&format!("index \"{index}\"")), "{error}");
        }
        run(&mut client, &format!("ALTER INDEX {index} RESET {reset}"));
        run(&mut client, "VACUUM FULL o");
    }
}

fn all_refused(client: &mut Client, refusals: &[Refusal<'_>]) {
    for refusal in refusals {
        let said = said(client, refusal);
        println!("{}: {said}", refusal.sql);
        assert!(said.contains(refusal.says), "{} is refused with: {said}", refusal.sql);
    }
}

/// An index on a table without rows and on one with: both are refused.
#[test]
fn what_cannot_be_indexed_is_refused_by_name() {
    let mut client = server().database("refused");
    run(&mut client, OBJECTS);
    for _ in 0..2 {
        all_refused(&mut client, &STRUCTURE);
        all_refused(&mut client, &TYPES);
        run(&mut client, "DELETE FROM t");
    }
    caseless(&mut client);
    strange_operator_classes(&mut client);
    let left: i64 =
        value(&mut client, "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass");
    assert_eq!(left, 0, "a refused index is there");
}

/// A function finds its index gone, or the table, once it may look at it.
#[test]
fn what_is_dropped_meanwhile_is_no_internal_error() {
    const WAITS: &str = "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'asks' AND wait_event_type = 'Lock'";
    let mut drops = server().database("dropped");
    let mut observer = server().connect("dropped");
    for (dropped, function) in [
        ("INDEX t_i", "bloom_index_check('t_i')"),
        ("INDEX t_i", "bloom_index_info('t_i')"),
        ("TABLE t", "bloom_index_check('t_i')"),
    ] {
        run(&mut drops, "CREATE TABLE t (i integer); CREATE INDEX t_i ON t USING bloom_filter (i)");
        run(&mut drops, &format!("BEGIN; DROP {dropped}"));
        let mut asks = server().connect("dropped");
        run(&mut asks, "SET application_name = asks");
        thread::scope(|scope| {
            let asking =
                scope.spawn(move || refused(&mut asks, "42P01", &format!("SELECT {function}")));
            wait_until("it waits for the lock", || value(&mut observer, WAITS));
            run(&mut drops, "COMMIT");
            asking.join().expect("it is refused");
        });
        run(&mut drops, "DROP TABLE IF EXISTS t");
    }
}

/// Text that is equal without being the same: citext, and nondeterministic collations where there
/// is ICU.
fn caseless(client: &mut Client) {
    if sqlstate(client, "CREATE EXTENSION citext") == "00000" {
        run(
            client,
            "CREATE DOMAIN folded AS citext; CREATE TABLE c (x citext, d folded, a citext[])",
        );
        for column in ["x", "d", "a"] {
            refused(client, "0A000", &format!("CREATE INDEX ON c USING bloom_filter ({column})"));
            let named = format!("CREATE INDEX ON c USING bloom_filter ({column} text_ops)");
            assert_ne!(sqlstate(client, &named), "00000", "{named}");
        }
        // Its text is text.
        run(client, "CREATE INDEX ON c USING bloom_filter ((x::text))");
        became_citext(client);
    }
    let icu: bool = value(client, "SELECT count(*) > 0 FROM pg_collation WHERE collprovider = 'i'");
    if icu {
        run(
            client,
            "CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
             CREATE TABLE n (x text COLLATE ignore_case, v varchar COLLATE ignore_case, c char(5) COLLATE ignore_case,
                e text, a text[] COLLATE ignore_case);
             CREATE DOMAIN folded_text AS text COLLATE ignore_case; CREATE TABLE nd (x folded_text);
             CREATE TYPE folded_range AS RANGE (SUBTYPE = text, COLLATION = ignore_case); CREATE TABLE nr (x folded_range)",
        );
        for (table, column) in [
            ("n", "x"),
            ("n", "v"),
            ("n", "c"),
            ("n", "a"),
            ("n", "e COLLATE ignore_case"),
            ("n", "lower(x)"),
            ("nd", "x"),
            ("nr", "x"),
        ] {
            refused(
                client,
                "0A000",
                &format!("CREATE INDEX ON {table} USING bloom_filter ({column})"),
            );
        }
        run(client, "CREATE INDEX n_x ON n USING bloom_filter (x COLLATE \"C\")");
        let of_column = "EXPLAIN (COSTS OFF) SELECT FROM n WHERE x = 'a'";
        run(client, "SET enable_seqscan = off; INSERT INTO n (x) VALUES ('A')");
        let plan = crate::common::column::<String>(client, of_column).join("\n");
        assert!(!plan.contains("n_x"), "an index under another collation is used: {plan}");
        assert_eq!(value::<i64>(client, "SELECT count(*) FROM n WHERE x = 'a'"), 1);
        assert_eq!(value::<i64>(client, "SELECT count(*) FROM n WHERE x = 'a' COLLATE \"C\""), 0);
        run(client, "RESET enable_seqscan");
    }
}

/// An index of text whose column becomes citext. PostgreSQL doesn't build it again, as the bytes
/// are the same: it is still one of text, which no question with citext's `=` may be asked of.
fn became_citext(client: &mut Client) {
    run(client, "CREATE TABLE was_text (x text); INSERT INTO was_text VALUES ('a'), ('B')");
    run(client, "CREATE INDEX was_text_x ON was_text USING bloom_filter (x)");
    let altered = sqlstate(client, "ALTER TABLE was_text ALTER x TYPE citext");
    assert!(["00000", "0A000"].contains(&altered.as_str()), "{altered}");
    let inserted = sqlstate(client, "INSERT INTO was_text VALUES ('A')");
    println!("ALTER TYPE citext: {altered}; INSERT: {inserted}");
    run(client, "SET enable_seqscan = off");
    let many = if altered == "00000" && inserted == "00000" { 2 } else { 1 };
    assert_eq!(value::<i64>(client, "SELECT count(*) FROM was_text WHERE x = 'a'"), many);
    run(client, "RESET enable_seqscan");
}

/// Operator classes that a superuser makes: only the type's own equality may be answered.
fn strange_operator_classes(client: &mut Client) {
    run(
        client,
        "CREATE FUNCTION same_length(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT length($1) = length($2)';
         CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = same_length, COMMUTATOR = ===);
         CREATE FUNCTION same_size(integer, integer) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT abs($1) = abs($2)';
         CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = same_size, COMMUTATOR = ===);
         CREATE TABLE s (i integer, t text, p point);
         INSERT INTO s VALUES (-1, 'b', '(1,2)')",
    );
    for class in [
        "CREATE OPERATOR CLASS length_ops FOR TYPE text USING bloom_filter AS OPERATOR 1 ===",
        "CREATE OPERATOR CLASS size_ops FOR TYPE integer USING bloom_filter AS OPERATOR 1 ===",
        "CREATE OPERATOR CLASS point_ops FOR TYPE point USING bloom_filter AS OPERATOR 1 ~=",
        "CREATE OPERATOR CLASS less_ops FOR TYPE integer USING bloom_filter AS OPERATOR 1 <",
    ] {
        let name = class.split(' ').nth(3).expect("a class has a name");
        let column = if class.contains("integer") {
            "i"
        } else if class.contains("point") {
            "p"
        } else {
            "t"
        };
        // Either one can't be made, or it can't be used.
        if sqlstate(client, class) == "00000" {
            let sql = format!("CREATE INDEX ON s USING bloom_filter ({column} {name})");
            let state = sqlstate(client, &sql);
            assert!(["0A000", "42P17"].contains(&state.as_str()), "{state}: {sql}");
        }
    }
}

/// An operator that an index can't answer, in an operator class that a superuser makes beside ones
/// that it can: a lookup by it would lose rows.
#[test]
fn operators_that_an_index_cannot_answer_are_refused() {
    const FILTERS: &str = "OPERATOR 2 @> (bloom, text), OPERATOR 2 @=> (bloom, bloom_key),
        FUNCTION 1 (bloom, bloom) bloom_key(anyelement), FUNCTION 2 (bloom, bloom) bloom_keys(anyarray)";
    let mut client = server().database("strange_operators");
    run(
        &mut client,
        "CREATE FUNCTION lacks(bloom, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN NOT $1 @> $2; END';
         CREATE OPERATOR !@> (LEFTARG = bloom, RIGHTARG = text, FUNCTION = lacks);
         CREATE TABLE s AS SELECT i, '10.0.0.1'::inet AS a, ARRAY[i] AS l, to_jsonb(i) AS j, 'x'::tsvector AS v,
             bloom_from_array(ARRAY[i::text]) AS f FROM generate_series(1, 5) AS i;
         ALTER TABLE s ADD t text DEFAULT 'x'",
    );
    let with_lacks = format!("{FILTERS}, OPERATOR 3 !@> (bloom, text)");
    for (column, sql_type, members) in [
        ("i", "integer", "OPERATOR 1 =, OPERATOR 5 <"),
        ("a", "inet", "OPERATOR 1 =, OPERATOR 5 <<="),
        ("f", "bloom", &with_lacks),
        (
            "l",
            "anyarray",
            "OPERATOR 4 &&, OPERATOR 5 <, FUNCTION 3 arrayoverlap(anyarray, anyarray)",
        ),
        ("j", "jsonb", "OPERATOR 3 @>, OPERATOR 5 <, FUNCTION 3 jsonb_contains(jsonb, jsonb)"),
        (
            "v",
            "tsvector",
            "OPERATOR 8 @@ (tsvector, tsquery), OPERATOR 5 <, FUNCTION 3 ts_match_vq(tsvector, tsquery)",
        ),
        ("t", "text", "OPERATOR 5 ~~, OPERATOR 6 <, FUNCTION 3 textlike(text, text)"),
        // The keys of another type, whose values would be read as what they are not.
        (
            "i",
            "integer",
            "OPERATOR 5 ~~ (text, text), FUNCTION 3 (integer, integer) textlike(text, text)",
        ),
        (
            "i",
            "integer",
            "OPERATOR 3 @> (jsonb, jsonb), FUNCTION 3 (integer, integer) jsonb_contains(jsonb, jsonb)",
        ),
        (
            "i",
            "integer",
            "OPERATOR 8 @@ (tsvector, tsquery), FUNCTION 3 (integer, integer) ts_match_vq(tsvector, tsquery)",
        ),
    ] {
        run(
            &mut client,
            &format!(
                "CREATE OPERATOR CLASS strange_ops FOR TYPE {sql_type} USING bloom_filter AS {members}"
            ),
        );
        let state = sqlstate(
            &mut client,
            &format!("CREATE INDEX ON s USING bloom_filter ({column} strange_ops)"),
        );
        println!("{sql_type}: {state}: {members}");
        assert_eq!(state, "0A000", "{members}");
        run(&mut client, "DROP OPERATOR FAMILY strange_ops USING bloom_filter CASCADE");
    }

    // An operator that comes after the index, also in a session that has asked the index before.
    for (column, sql_type, members, known, added, asked) in [
        ("i", "integer", "OPERATOR 1 =", "i = 5", "OPERATOR 5 < (integer, integer)", "i < 5"),
        (
            "f",
            "bloom",
            FILTERS,
            "f @> '5'::text",
            "OPERATOR 3 !@> (bloom, text)",
            "f !@> '5'::text",
        ),
    ] {
        run(
            &mut client,
            &format!(
                "CREATE OPERATOR CLASS own_ops FOR TYPE {sql_type} USING bloom_filter AS {members};
                 CREATE INDEX own ON s USING bloom_filter ({column} own_ops); SET enable_seqscan = off"
            ),
        );
        assert_eq!(value::<i64>(&mut client, &format!("SELECT count(*) FROM s WHERE {known}")), 1);
        run(&mut client, &format!("ALTER OPERATOR FAMILY own_ops USING bloom_filter ADD {added}"));
        refused(&mut client, "0A000", &format!("SELECT count(*) FROM s WHERE {asked}"));
        let mut other = server().connect("strange_operators");
        run(&mut other, "SET enable_seqscan = off");
        refused(&mut other, "0A000", &format!("SELECT count(*) FROM s WHERE {asked}"));
        run(
            &mut client,
            "DROP INDEX own; DROP OPERATOR FAMILY own_ops USING bloom_filter CASCADE; RESET enable_seqscan",
        );
    }
}
