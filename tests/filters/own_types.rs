//! Types that users make, whose hash function follows from operator classes and casts that come and
//! go. Whatever becomes of these, no filter, set or index says "no" to what it holds: it says "yes",
//! or there is an error.

use crate::common::{Random, feed, output, random, refused, run, sqlstate, times, value};
use crate::server;
use postgres::Client;
use std::process::Command;

/// A type with the values of `bigint`, and what operator classes for it can be made of. The three hash
/// functions differ.
const TICK: &str = "
    CREATE TYPE tick;
    CREATE FUNCTION tick_in(cstring) RETURNS tick LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
    CREATE FUNCTION tick_out(tick) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
    CREATE TYPE tick (INPUT = tick_in, OUTPUT = tick_out, LIKE = int8);
    CREATE FUNCTION tick_eq(tick, tick) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int8eq';
    CREATE FUNCTION tick_lt(tick, tick) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int8lt';
    CREATE FUNCTION tick_cmp(tick, tick) RETURNS integer LANGUAGE internal IMMUTABLE STRICT AS 'btint8cmp';
    CREATE FUNCTION tick_hash(tick) RETURNS integer LANGUAGE internal IMMUTABLE STRICT AS 'hashint8';
    CREATE FUNCTION tick_hash_0(tick, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT AS 'hashint8extended';
    CREATE FUNCTION tick_hash_1(tick, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT AS 'hashfloat8extended';
    CREATE FUNCTION tick_hash_2(tick, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
        AS 'SELECT hashtextextended($1::text, $2)';
    CREATE OPERATOR = (FUNCTION = tick_eq, LEFTARG = tick, RIGHTARG = tick, HASHES);
    CREATE OPERATOR < (FUNCTION = tick_lt, LEFTARG = tick, RIGHTARG = tick);
    CREATE OPERATOR CLASS tick_by_name FOR TYPE tick USING bloom_filter
        AS OPERATOR 1 =, FUNCTION 4 tick_hash_2(tick, bigint);
    CREATE OPERATOR CLASS tick_by_default FOR TYPE tick USING bloom_filter AS OPERATOR 1 =;
    CREATE DOMAIN tick_domain AS tick;
    CREATE TYPE tick_row AS (t tick, d tick_domain, a tick[]);";

/// What can happen to the type. Most of these fail in most states.
const CHANGES: [&str; 15] = [
    "CREATE CAST (tick AS bigint) WITHOUT FUNCTION AS IMPLICIT",
    "CREATE CAST (tick AS float8) WITHOUT FUNCTION AS IMPLICIT",
    "CREATE CAST (tick AS timestamp) WITHOUT FUNCTION AS IMPLICIT",
    "DROP CAST (tick AS bigint)",
    "DROP CAST (tick AS float8)",
    "DROP CAST (tick AS timestamp)",
    "CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING btree
        AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 tick_cmp(tick, tick)",
    "DROP OPERATOR FAMILY tick_ops USING btree CASCADE",
    "CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING hash
        AS OPERATOR 1 =, FUNCTION 1 tick_hash(tick), FUNCTION 2 tick_hash_0(tick, bigint)",
    "CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING hash
        AS OPERATOR 1 =, FUNCTION 1 tick_hash(tick), FUNCTION 2 tick_hash_1(tick, bigint)",
    "CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING hash
        AS OPERATOR 1 =, FUNCTION 1 tick_hash(tick)",
    "ALTER OPERATOR FAMILY tick_ops USING hash DROP FUNCTION 2 (tick, tick)",
    "ALTER OPERATOR FAMILY tick_ops USING hash ADD FUNCTION 2 (tick, tick) tick_hash_1(tick, bigint)",
    "ALTER OPERATOR FAMILY tick_ops USING hash ADD FUNCTION 2 (tick, tick) tick_hash_2(tick, bigint)",
    "DROP OPERATOR FAMILY tick_ops USING hash CASCADE",
];

/// Elements that are made of ticks, as expressions of the text `i`, with their types.
const ELEMENTS: [(&str, &str); 5] = [
    ("tick", "i::tick"),
    ("tick_domain", "i::tick_domain"),
    ("tick[]", "ARRAY[i::tick, NULL]"),
    ("tick_row", "ROW(i::tick, i::tick, ARRAY[i::tick])::tick_row"),
    ("tick_row[]", "ARRAY[ROW(i::tick, NULL, NULL)::tick_row]"),
];

/// Operator classes of an index on ticks.
const CLASSES: [&str; 4] = ["", "tick_by_name", "tick_by_default", "int8_ops"];

/// The numbers that all have, as texts.
const NUMBERS: &str = "unnest('{1,2,3,1000000,-7,4611686018427387904}'::text[]) AS i";
/// Some of their number.
const COUNT: i64 = 6;

/// What is refused: another kind, and what can't be an element or in an index.
const REFUSALS: [&str; 2] = ["42804", "0A000"];

/// Something that holds the numbers, with queries that say how many of them it has: by a plan that the
/// session may have had before, and by a new one.
struct Holder {
    made: String,
    asked: [String; 2],
    /// What puts them in once more.
    adds: String,
}

impl Holder {
    /// What makes a holder of elements of the type `of`, and the holder.
    fn new(made: String, make: &str, (asked, adds): (String, String)) -> (String, Holder) {
        let function = format!("ask_{made}");
        let make = format!(
            "{make};
             CREATE FUNCTION {function}() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN ({asked}); END $$"
        );
        let asked = [format!("SELECT {function}()"), asked];
        (make, Holder { made, asked, adds })
    }

    fn filter(n: usize, element: &str) -> (String, Holder) {
        let make =
            format!("CREATE TABLE f{n} AS SELECT bloom_agg({element}, 100) AS f FROM {NUMBERS}");
        let asked = format!("SELECT count(*) FROM f{n}, {NUMBERS} WHERE f @> ({element})");
        let adds =
            format!("UPDATE f{n} SET f = bloom_add_all(f, ARRAY(SELECT {element} FROM {NUMBERS}))");
        Holder::new(format!("filter_{n}"), &make, (asked, adds))
    }

    /// Filters of one element each, in a column with an index.
    fn indexed_filters(n: usize, element: &str) -> (String, Holder) {
        let build = format!("SELECT bloom_agg({element}, 100) AS f FROM {NUMBERS} GROUP BY i");
        let make = format!(
            "CREATE TABLE g{n} AS {build};
             CREATE INDEX ON g{n} USING bloom_filter (f)"
        );
        let asked = format!(
            "SELECT count(*) FROM {NUMBERS}, LATERAL (SELECT FROM g{n} WHERE f @> ({element}) LIMIT 1) AS found"
        );
        let adds = format!("INSERT INTO g{n} {build}");
        Holder::new(format!("filters_{n}"), &make, (asked, adds))
    }

    fn set(n: usize, of: &str, element: &str) -> (String, Holder) {
        let adds =
            format!("SELECT bloom_set_add_all('s{n}', ARRAY(SELECT {element} FROM {NUMBERS}))");
        let make = format!("SELECT bloom_set_create('s{n}', '{of}'); {adds}");
        let asked =
            format!("SELECT count(*) FROM {NUMBERS} WHERE bloom_set_contains('s{n}', {element})");
        Holder::new(format!("set_{n}"), &make, (asked, adds))
    }

    /// An index with an operator class, or with the default one. It is asked for each number by a
    /// nested loop.
    fn index(n: usize, element: &str, class: &str) -> (String, Holder) {
        let make = format!(
            "CREATE TABLE t{n} AS SELECT {element} AS x FROM {NUMBERS};
             CREATE INDEX ON t{n} USING bloom_filter (x {class})"
        );
        let asked = format!(
            "SELECT count(*) FROM {NUMBERS}, LATERAL (SELECT FROM t{n} WHERE x = ({element}) LIMIT 1) AS found"
        );
        let adds = format!("INSERT INTO t{n} SELECT {element} FROM {NUMBERS}");
        Holder::new(format!("index_{n}"), &make, (asked, adds))
    }
}

/// A session that asks all the time, and how many questions were answered or refused.
struct Askers {
    old: Client,
    answers: i64,
    refusals: i64,
}

impl Askers {
    /// Asks a holder in the session that was there before, and in a new one.
    fn ask(&mut self, holder: &Holder, new: &mut Client, history: &[&str]) {
        for sql in &holder.asked {
            for client in [&mut self.old, &mut *new] {
                match client.query_one(sql, &[]) {
                    Ok(row) => {
                        assert_eq!(
                            row.get::<_, i64>(0),
                            COUNT,
                            "{} misses elements: {sql}, after {history:#?}",
                            holder.made
                        );
                        self.answers += 1;
                    }
                    Err(error) => {
                        let state = error.code().expect("the server raised it").code();
                        // Without `=` a table can't be asked.
                        let is_refused = REFUSALS.contains(&state) || state == "42883";
                        assert!(
                            is_refused,
                            "{}: {sql}: {error:?}, after {history:#?}",
                            holder.made
                        );
                        self.refusals += 1;
                    }
                }
            }
        }
    }
}

/// A session that takes indexes where it can.
fn quick_to_index(database: &str) -> Client {
    let mut client = server().connect(database);
    run(&mut client, "SET enable_seqscan = off; SET pg_bloom.overfill = ignore");
    client
}

#[test]
fn nothing_is_missed_when_operator_classes_come_and_go() {
    let mut random = random(31);
    let (mut answers, mut refusals) = (0, 0);
    for walk in 0..times(9) {
        let database = format!("classes_{walk}");
        let mut client = server().database(&database);
        run(&mut client, TICK);
        let mut askers = Askers { old: quick_to_index(&database), answers: 0, refusals: 0 };
        walk_through(&mut client, &database, &mut random, &mut askers);
        answers += askers.answers;
        refusals += askers.refusals;
    }
    println!("{answers} answers, {refusals} refusals");
    assert!(answers > 100 && refusals > 100);
}

/// Changes the type at random, and makes and asks holders in between.
fn walk_through(client: &mut Client, database: &str, random: &mut Random, askers: &mut Askers) {
    let mut history = Vec::new();
    let mut made = Vec::new();
    let mut ranges = Vec::new();
    for n in 0..20 {
        let change = *random.pick(&CHANGES);
        if sqlstate(client, change) == "00000" {
            history.push(change);
        }
        // A range compares as its subtype does on the day that it is made.
        let range = format!("tick_range_{n}");
        if random.below(8) == 0
            && sqlstate(client, &format!("CREATE TYPE {range} AS RANGE (SUBTYPE = tick)"))
                == "00000"
        {
            let element = format!("{range}(i::tick, NULL)");
            ranges.push((range, element));
        }
        let plain = ELEMENTS.map(|(of, element)| (of.to_owned(), element.to_owned()));
        let kinds: Vec<&(String, String)> = plain.iter().chain(&ranges).collect();
        let (of, element) = *random.pick(&kinds);
        let class = if of == "tick" { *random.pick(&CLASSES) } else { "" };
        for (make, holder) in [
            Holder::filter(n, element),
            Holder::indexed_filters(n, element),
            Holder::set(n, of, element),
            Holder::index(n, element, class),
        ] {
            if sqlstate(client, &make) == "00000" {
                made.push(holder);
            }
        }
        let mut new = quick_to_index(database);
        for holder in &made {
            askers.ask(holder, &mut new, &history);
            if random.below(4) == 0 {
                // What is added is found as well, or refused.
                sqlstate(&mut askers.old, &holder.adds);
            }
        }
    }
}

fn has_extension(client: &mut Client, name: &str) -> bool {
    let sql = format!("SELECT count(*) > 0 FROM pg_available_extensions WHERE name = '{name}'");
    value(client, &sql)
}

/// The kind of a filter of one element.
fn kind(client: &mut Client, element: &str) -> String {
    value(client, &format!("SELECT (bloom_header(bloom_from_array(ARRAY[{element}]))).key_kind"))
}

/// Nobody can replace the functions of PostgreSQL: filters that were stored before kinds named functions
/// have the same kinds. A class that somebody makes makes another kind.
#[test]
fn types_of_postgres_keep_their_kinds() {
    let mut client = server().database("own_types_of_postgres");
    for (element, expected) in [
        ("inet '10.0.0.1'", "pg_catalog.inet"),
        ("cidr '10.0.0.0/8'", "pg_catalog.cidr"),
        ("macaddr '08:00:2b:01:02:03'", "pg_catalog.macaddr"),
        ("macaddr8 '08:00:2b:01:02:03:04:05'", "pg_catalog.macaddr8"),
        ("oid '1'", "pg_catalog.oid"),
        ("xid '1'", "pg_catalog.xid"),
        ("cid '1'", "pg_catalog.cid"),
        ("tid '(1,2)'", "pg_catalog.tid"),
        ("oidvector '1 2'", "pg_catalog.oidvector"),
    ] {
        assert_eq!(kind(&mut client, element), expected);
    }
    run(
        &mut client,
        "CREATE TABLE f AS SELECT bloom_from_array(ARRAY['10.0.0.0/8']::cidr[]) AS f;
         CREATE OPERATOR CLASS own DEFAULT FOR TYPE cidr USING hash AS OPERATOR 1 = (inet, inet),
            FUNCTION 1 (cidr, cidr) hashinet(inet), FUNCTION 2 (cidr, cidr) hashinetextended(inet, bigint)",
    );
    // The operator of the new class isn't of its type, so it has none.
    refused(&mut client, "0A000", "SELECT f @> cidr '10.0.0.0/8' FROM f");
    run(
        &mut client,
        "DROP OPERATOR FAMILY own USING hash;
         CREATE OPERATOR CLASS own DEFAULT FOR TYPE money USING hash AS OPERATOR 1 =,
            FUNCTION 1 (money, money) hashint8(bigint), FUNCTION 2 (money, money) hashint8extended(bigint, bigint)",
    );
    assert!(value::<bool>(&mut client, "SELECT f @> cidr '10.0.0.0/8' FROM f"));
    let money = "pg_catalog.money@pg_catalog.hashint8extended(pg_catalog.int8)";
    assert_eq!(kind(&mut client, "1::money"), money);
}

/// An extension's class and functions stay as long as the type, unless somebody works by hand.
#[test]
fn types_of_an_extension_keep_their_kinds() {
    let mut client = server().database("own_types_of_extensions");
    if !has_extension(&mut client, "hstore") {
        println!("hstore is not there");
        return;
    }
    run(
        &mut client,
        "CREATE EXTENSION hstore;
         CREATE TABLE f AS SELECT bloom_from_array(ARRAY['a=>1', 'b=>2']::hstore[]) AS f;
         CREATE FUNCTION by_hand(hstore, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
            AS 'SELECT hashtextextended($1::text, $2)'",
    );
    let ask = "SELECT f @> 'a=>1'::hstore FROM f";
    assert_eq!(kind(&mut client, "hstore 'a=>1'"), "public.hstore");
    assert!(value::<bool>(&mut client, ask));
    run(
        &mut client,
        "ALTER OPERATOR FAMILY hash_hstore_ops USING hash DROP FUNCTION 2 (hstore, hstore);
         ALTER OPERATOR FAMILY hash_hstore_ops USING hash ADD FUNCTION 2 (hstore, hstore) by_hand(hstore, bigint)",
    );
    assert_eq!(kind(&mut client, "hstore 'a=>1'"), "public.hstore@public.by_hand(public.hstore)");
    refused(&mut client, "42804", ask);
    run(
        &mut client,
        "ALTER OPERATOR FAMILY hash_hstore_ops USING hash DROP FUNCTION 2 (hstore, hstore);
         ALTER OPERATOR FAMILY hash_hstore_ops USING hash
            ADD FUNCTION 2 (hstore, hstore) hstore_hash_extended(hstore, bigint)",
    );
    assert!(value::<bool>(&mut client, ask));
    // The class is no longer the extension's: it can be dropped.
    run(&mut client, "ALTER EXTENSION hstore DROP OPERATOR CLASS hash_hstore_ops USING hash");
    refused(&mut client, "42804", ask);
}

#[test]
fn what_is_compared_as_a_refused_type_is_refused() {
    let mut client = server().database("own_types_refused");
    let make = |name: &str, like: &str, functions: [&str; 2]| {
        format!(
            "CREATE TYPE {name};
             CREATE FUNCTION {name}_in(cstring) RETURNS {name} LANGUAGE internal IMMUTABLE STRICT AS '{}';
             CREATE FUNCTION {name}_out({name}) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS '{}';
             CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out, LIKE = {like}, CATEGORY = 'U');
             CREATE CAST ({name} AS {like}) WITHOUT FUNCTION AS IMPLICIT",
            functions[0], functions[1]
        )
    };
    run(&mut client, &make("sieve", "bloom", ["byteain", "byteaout"]));
    refused(&mut client, "0A000", "SELECT bloom_agg(bloom_empty()::bytea::text::sieve)");
    if has_extension(&mut client, "citext") {
        run(&mut client, "CREATE EXTENSION citext");
        run(&mut client, &make("caseless", "citext", ["textin", "textout"]));
        refused(&mut client, "0A000", "SELECT bloom_agg('a'::caseless)");
        refused(&mut client, "0A000", "SELECT bloom_agg(ARRAY['a'::caseless])");
    }
}

/// Filters and sets come with a dump before somebody makes the operator class that they were built by,
/// or after they were built without.
#[test]
fn a_class_that_comes_after_the_table_makes_no_wrong_answer() {
    let class = "CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING btree
            AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 tick_cmp(tick, tick);
        CREATE OPERATOR CLASS tick_ops DEFAULT FOR TYPE tick USING hash
            AS OPERATOR 1 =, FUNCTION 1 tick_hash(tick), FUNCTION 2 tick_hash_1(tick, bigint)";
    let cast = "CREATE CAST (tick AS bigint) WITHOUT FUNCTION AS IMPLICIT";
    let fill = "CREATE TABLE f AS SELECT bloom_from_array(ARRAY['1', '2']::tick[]) AS f;
        CREATE TABLE t AS SELECT i::text::tick AS x FROM generate_series(1, 100) AS i;
        CREATE INDEX t_x ON t USING bloom_filter (x tick_by_name);
        SELECT bloom_set_create('s', 'tick'); SELECT bloom_set_add_all('s', ARRAY['1', '2']::tick[])";
    let questions = [
        "SELECT f @> '1'::tick FROM f",
        "SELECT bloom_set_contains('s', '1'::tick)",
        "SELECT count(*) = 1 FROM t WHERE x = '1'::tick",
        "SELECT bloom_index_check('t_x') = 100",
    ];
    for (n, (before, after)) in [(cast, class), (class, cast)].into_iter().enumerate() {
        let source = format!("class_{n}");
        let mut client = server().database(&source);
        // The operator of the index is the usual equality with the class only.
        run(&mut client, &format!("{TICK}; {before}"));
        let has_index = before == class;
        let fill = if has_index { fill.to_owned() } else { fill.replace("CREATE INDEX", "-- ") };
        run(&mut client, &fill);
        let whole = output(server().program("pg_dump").arg(&source));
        let tables = output(
            server()
                .program("pg_dump")
                .args(["-t", "f", "-t", "s", "-t", "t", &source]),
        );

        // Into a new database, with all that the dump has.
        let restored = format!("class_{n}_restored");
        server().empty_database(&restored, "TEMPLATE template0");
        feed(psql(&restored).args(["-v", "ON_ERROR_STOP=1"]), &whole);
        let mut client = quick_to_index(&restored);
        for question in questions
            .iter()
            .filter(|question| has_index || !question.contains("t_x"))
        {
            assert!(value::<bool>(&mut client, question), "{question}");
        }

        // Into one where the type has nothing yet, and then the other way to be hashed.
        let moved = format!("class_{n}_moved");
        let mut client = server().database(&moved);
        run(&mut client, TICK);
        feed(&mut psql(&moved), &tables);
        let mut client = quick_to_index(&moved);
        for state in ["", after] {
            run(&mut client, state);
            for question in questions {
                let state =
                    sqlstate(&mut client, &format!("DO $$ BEGIN ASSERT ({question}); END $$"));
                assert_ne!(state, "P0004", "{question}: no");
            }
            refused(&mut client, if state.is_empty() { "0A000" } else { "42804" }, questions[0]);
            refused(&mut client, if state.is_empty() { "0A000" } else { "42804" }, questions[1]);
        }
        // And the way that the filters were built.
        let undo = match after {
            after if after == cast => "DROP CAST (tick AS bigint)",
            _ => {
                "DROP OPERATOR FAMILY tick_ops USING hash; DROP OPERATOR FAMILY tick_ops USING btree"
            }
        };
        run(&mut client, undo);
        run(&mut client, before);
        for question in &questions[..2] {
            assert!(value::<bool>(&mut client, question), "{question}");
        }
    }
}

fn psql(database: &str) -> Command {
    let mut command = server().program("psql");
    command.args(["-X", "-q", "-d", database]);
    command
}

/// A set of a type that may hold text, in a database with another encoding.
#[test]
fn a_set_that_comes_from_another_encoding_says_so() {
    let mut client =
        server().empty_database("set_latin1", "ENCODING LATIN1 LOCALE 'C' TEMPLATE template0");
    let cast = "CREATE CAST (tick AS bigint) WITHOUT FUNCTION AS IMPLICIT";
    run(&mut client, "CREATE EXTENSION pg_bloom");
    run(&mut client, &format!("{TICK}; {cast}; SELECT bloom_set_create('s', 'tick[]')"));
    run(&mut client, "SELECT bloom_set_add('s', ARRAY['1'::tick])");
    let dump = output(server().program("pg_dump").arg("set_latin1"));
    server().empty_database("set_utf8", "ENCODING UTF8 LOCALE 'C' TEMPLATE template0");
    feed(psql("set_utf8").args(["-v", "ON_ERROR_STOP=1"]), &dump);
    let mut client = server().connect("set_utf8");
    let error = client
        .batch_execute("SELECT bloom_set_contains('s', ARRAY['1'::tick])")
        .expect_err("another encoding");
    let error = error.as_db_error().expect("the server raised it");
    assert_eq!(error.code().code(), "42804");
    assert_eq!(
        error.message(),
        "filter set \"s\" was made in a database in encoding LATIN1, and this one is in UTF8"
    );
}
