//! Filters across servers: `docs/distributed.md` is run, statement by statement, and must print
//! what it says.
//!
//! A block of SQL in the page begins with a line that says where it runs; a block of text after it
//! is what psql prints, with `…` for lines left out. Each server has one session for the whole
//! page.

mod common;

use common::{PATIENCE, Server, column, major_version, rows, run, value};
use postgres::Client;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const PAGE: &str = include_str!("../docs/distributed.md");
const NAMES: [&str; 3] = ["the coordinator", "shard1", "shard2"];
/// What psql prints last for a block.
const END: &str = "-- the end of a block";

/// The servers of the page, after it was run.
fn cluster() -> &'static [Server; 3] {
    static CLUSTER: OnceLock<[Server; 3]> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let servers = NAMES.map(|_| Server::start("wal_level = logical"));
        for server in &servers {
            run(&mut server.connect("postgres"), "CREATE ROLE app SUPERUSER LOGIN");
            server.empty_database("app", "OWNER app");
        }
        run_page(&servers);
        servers
    })
}

fn coordinator() -> Client {
    let mut client = cluster()[0].connect("app");
    // Whose user mappings the page makes.
    run(&mut client, "SET SESSION AUTHORIZATION app");
    client
}

/// A psql that stays, with the server's settings between blocks.
struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn new(server: &Server) -> Session {
        let mut command = server.program("psql");
        command.args([
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-P",
            "pager=off",
            "-U",
            "app",
            "-d",
            "app",
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql runs");
        let stdin = child.stdin.take().expect("standard input is a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        Session { child, stdin, stdout }
    }

    /// The lines that psql prints for some statements.
    fn run(&mut self, sql: &str) -> Vec<String> {
        writeln!(self.stdin, "{sql}\n\\echo {END}").expect("psql reads");
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).expect("psql prints text");
            assert!(read > 0, "psql ended: {:?}, at\n{sql}", self.child.try_wait());
            match line.trim_end() {
                END => return lines,
                line => lines.push(line.to_owned()),
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // psql ends with its input; what happens to it afterwards is of no interest.
        writeln!(self.stdin, "\\q").ok();
        self.child.wait().ok();
    }
}

/// A block of the page: its language and its lines.
struct Block {
    language: &'static str,
    lines: Vec<&'static str>,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let lines = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block { language, lines });
        }
    }
    blocks
}

/// A block of the page as this version of PostgreSQL takes it.
fn for_version(version: i32, sql: &str) -> String {
    if version >= 14 {
        return sql.into();
    }
    // Subscriptions have this option from 14 on. Without it values travel as text.
    sql.replace("\n    WITH (binary = true);", ";")
}

fn run_page(servers: &[Server; 3]) {
    let version = major_version(&mut servers[0].connect("app"));
    let mut sessions = servers.each_ref().map(Session::new);
    let (mut printed, mut differences) = (Vec::new(), Vec::new());
    let mut statements = "";
    for block in blocks() {
        match block.language {
            "sql" => {
                assert!(
                    printed.is_empty(),
                    "the page doesn't show what is printed by\n{statements}"
                );
                let (first, rest) = block.lines.split_first().expect("a block has lines");
                let place = first
                    .strip_prefix("-- on ")
                    .unwrap_or_else(|| panic!("no server is named: {first}"));
                let mut sql = for_version(version, &rest.join("\n"));
                for (name, server) in NAMES.iter().zip(servers) {
                    let path = server.dir().to_str().expect("the path is UTF-8");
                    sql = sql.replace(&format!("{name}.example.com"), path);
                }
                wait_for_subscribers(servers);
                for name in place.split(" and ") {
                    let known = NAMES.iter().position(|known| known == &name);
                    let n = known.unwrap_or_else(|| panic!("there is no server {name}"));
                    printed.extend(sessions[n].run(&sql));
                }
                statements = first;
            }
            "text" => {
                let actual: Vec<&str> = printed.iter().map(String::as_str).collect();
                let end = actual
                    .iter()
                    .rposition(|line| !line.is_empty())
                    .map_or(0, |last| last + 1);
                if !matches(&block.lines, &actual[..end]) {
                    let (says, printed) = (block.lines.join("\n"), actual.join("\n"));
                    differences
                        .push(format!("the page says\n{says}\nbut this was printed:\n{printed}"));
                }
                printed.clear();
            }
            other => panic!("a block of {other:?} is neither run nor compared"),
        }
    }
    assert!(printed.is_empty(), "the page doesn't show what is printed by its last block");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// Whether lines are those of a pattern, in which `…` stands for any number of lines.
///
/// How far a line is indented doesn't count: versions of PostgreSQL have different levels in the
/// same plan.
fn matches(pattern: &[&str], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..])),
        Some((first, rest)) => {
            lines
                .first()
                .is_some_and(|line| line.trim_start() == first.trim_start())
                && matches(rest, &lines[1..])
        }
    }
}

#[test]
fn patterns_match_only_what_they_say() {
    assert!(matches(&["a", "…", "b"], &["a", "x", "b", "b"]));
    assert!(!matches(&["a", "…", "b"], &["a", "b", "x"]));
    assert!(!matches(&["a"], &["a", "b"]) && !matches(&["a", "b"], &["a"]));
}

/// Waits until what the first shard published is in the coordinator's tables.
fn wait_for_subscribers(servers: &[Server; 3]) {
    let mut subscriber = servers[0].connect("app");
    if value::<i64>(&mut subscriber, "SELECT count(*) FROM pg_subscription") == 0 {
        return;
    }
    let mut publisher = servers[1].connect("app");
    let end: String = value(&mut publisher, "SELECT pg_current_wal_lsn()::text");
    let copied = "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel";
    let applied = format!(
        "SELECT count(*) > 0 FROM pg_stat_replication
         WHERE application_name = 'filters' AND state = 'streaming' AND replay_lsn >= '{end}'"
    );
    let start = Instant::now();
    while !(value::<Option<bool>>(&mut subscriber, copied) == Some(true)
        && value::<bool>(&mut publisher, &applied))
    {
        assert!(start.elapsed() < PATIENCE, "the subscriber doesn't catch up");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_page_prints_what_it_says() {
    cluster();
    assert!(blocks().iter().filter(|block| block.language == "text").count() > 8);
}

/// The page's table of conditions, with whether they are sent.
fn conditions() -> Vec<(String, bool)> {
    let table = PAGE
        .split("| condition on `visits` | sent |\n|---|---|\n")
        .nth(1)
        .expect("the page has the table");
    let row = |line: &str| {
        let line = line.replace("\\|", "\u{1}");
        let mut cells = line.split('|').map(|cell| cell.trim().replace('\u{1}', "|"));
        let condition = cells
            .nth(1)
            .expect("a row has two cells")
            .trim_matches('`')
            .to_owned();
        let answer = cells.next().expect("a row has two cells");
        assert!(answer == "yes" || answer.starts_with("no: "), "{answer}");
        (condition, answer == "yes")
    };
    table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .map(row)
        .collect()
}

/// What the shards are asked for, by the plan of a statement.
fn remote_queries(client: &mut Client, sql: &str) -> Vec<String> {
    let plan = column::<String>(client, &format!("EXPLAIN (VERBOSE, COSTS OFF) {sql}"));
    plan.iter()
        .filter_map(|line| line.trim_start().strip_prefix("Remote SQL: ").map(str::to_owned))
        .collect()
}

/// A filter of some of the rows' URLs, as a literal.
fn filter(client: &mut Client) -> String {
    let built = "SELECT bloom_agg('https://example.com/' || i, 200, 0.01)::text FROM generate_series(1, 200000, 1000) AS i";
    format!("'{}'::bloom", value::<String>(client, built))
}

#[test]
fn conditions_are_sent_as_the_table_says() {
    let mut client = coordinator();
    let filter = filter(&mut client);
    // What is computed for each row here, as one condition is, copies 250 kB of the page's filter
    // each time.
    run(&mut client, &format!("CREATE TEMPORARY TABLE seen AS SELECT {filter} AS f"));
    let conditions = conditions();
    assert!(
        conditions.iter().filter(|(_, sent)| *sent).count() > 5
            && conditions.iter().any(|(_, sent)| !sent)
    );
    let mut with_rows = 0;
    for (n, (condition, sent)) in conditions.iter().enumerate() {
        let asked = format!("AS SELECT count(*) FROM visits WHERE {condition}");
        // A tenth of each shard's rows is enough to count.
        let of_few = format!("PREPARE count_{n}(bloom) {asked} AND id % 100000 < 10000");
        run(&mut client, &format!("PREPARE ask_{n}(bloom) {asked}; {of_few}"));
        let [ask, count] = ["ask", "count"].map(|name| format!("EXECUTE {name}_{n}({filter})"));
        let mut counts = Vec::new();
        for mode in ["force_custom_plan", "force_generic_plan"] {
            run(&mut client, &format!("SET plan_cache_mode = {mode}"));
            let remote = remote_queries(&mut client, &ask);
            assert!(remote.len() >= 2, "{condition}");
            assert!(
                remote.iter().all(|query| query.contains(" WHERE ") == *sent),
                "{condition}, {mode}: {remote:?}"
            );
            counts.push(value::<i64>(&mut client, &count));
        }
        // Without the option nothing of the extension is sent, and the answer is the same.
        run(&mut client, "BEGIN");
        for shard in ["shard1", "shard2"] {
            run(&mut client, &format!("ALTER SERVER {shard} OPTIONS (DROP extensions)"));
        }
        let remote = remote_queries(&mut client, &ask);
        assert!(remote.iter().all(|query| !query.contains(" WHERE ")), "{condition}: {remote:?}");
        counts.push(value::<i64>(&mut client, &count));
        run(&mut client, "ROLLBACK");
        assert!(counts.iter().all(|count| *count == counts[0]), "{condition}: {counts:?}");
        with_rows += usize::from(counts[0] > 0);
    }
    assert!(with_rows > 8, "only {with_rows} conditions have rows");
}

/// A union is equal to the stored filter if and only if that has the element.
#[test]
fn a_filter_of_one_text_asks_what_the_operator_asks() {
    let mut client = coordinator();
    let compared = "
        SELECT count(*) FILTER (WHERE by_operator) AS found, count(*) FILTER (WHERE NOT by_operator) AS absent,
            count(*) FILTER (WHERE by_operator IS DISTINCT FROM by_union) AS different
        FROM (SELECT urls FROM url_filters OFFSET 0) AS filters,
            (SELECT 'https://example.com/' || i FROM generate_series(1, 200000, 97) AS i) AS probe (url),
            LATERAL (SELECT urls @> url AS by_operator,
                (urls | bloom_from_array(ARRAY[url], 10000, 0.01)) = urls AS by_union) AS answer";
    let row = client.query_one(compared, &[]).expect("filters are asked");
    let [found, absent, different] = [0, 1, 2].map(|column| row.get::<_, i64>(column));
    assert!(found > 1000 && absent > 10_000, "{found} found, {absent} absent");
    assert_eq!(different, 0);
}

#[test]
fn variables_of_functions_are_sent() {
    let mut client = coordinator();
    let asking = "
        CREATE FUNCTION pg_temp.asked(f bloom) RETURNS SETOF text LANGUAGE plpgsql AS $$
        DECLARE line text;
        BEGIN
            FOR line IN EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM visits WHERE f @> url LOOP RETURN NEXT line; END LOOP;
            FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM visits WHERE $1 @> url' USING f
            LOOP RETURN NEXT line; END LOOP;
        END $$";
    run(&mut client, asking);
    let filter = filter(&mut client);
    for mode in ["force_custom_plan", "force_generic_plan"] {
        run(&mut client, &format!("SET plan_cache_mode = {mode}"));
        let plan = column::<String>(&mut client, &format!("SELECT pg_temp.asked({filter})"));
        let remote: Vec<&String> =
            plan.iter().filter(|line| line.contains("Remote SQL: ")).collect();
        assert_eq!(remote.len(), 4);
        assert!(remote.iter().all(|line| line.contains(" WHERE ")), "{mode}");
    }
}

#[test]
fn filters_of_the_same_server_are_joined_there() {
    let mut client = coordinator();
    // Versions of PostgreSQL guess differently what a join here would cost: only whether it can be
    // sent is asked.
    run(&mut client, "SET enable_nestloop = off");
    let join = "SELECT v.id FROM filters_eu f JOIN visits_eu v ON f.seen @> v.url";
    let remote = remote_queries(&mut client, join);
    assert!(remote.len() == 1 && remote[0].contains("JOIN"), "{remote:?}");
    assert_eq!(rows(&mut client, join).len(), 100_000);
}

/// The page counts the rows that meet the condition; these are the ones that the scans really
/// return.
#[test]
fn only_rows_that_may_match_are_moved() {
    let mut client = coordinator();
    let condition = "(SELECT bloom_agg(url, 1000, 0.01) FROM wanted) @> v.url";
    let counted: i64 =
        value(&mut client, &format!("SELECT count(*) FROM visits v WHERE {condition}"));
    let join = "SELECT v.* FROM visits v JOIN wanted w ON w.url = v.url";
    for (sql, expected) in [
        (join.to_owned(), 200_000),
        (format!("{join} WHERE {condition}"), counted),
    ] {
        let options = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)";
        let plan = column::<String>(&mut client, &format!("{options} {sql}"));
        let of_scan = |line: &String| {
            line.contains("Foreign Scan").then(|| {
                let rows = line
                    .split("rows=")
                    .nth(1)
                    .and_then(|rest| rest.split([' ', '.']).next());
                rows.and_then(|rows| rows.parse::<i64>().ok())
                    .unwrap_or_else(|| panic!("no rows: {line}"))
            })
        };
        assert_eq!(plan.iter().filter_map(of_scan).sum::<i64>(), expected, "{}", plan.join("\n"));
    }
    assert!(
        (1_000..1_000 + 2_000).contains(&counted),
        "{counted}: more false positives than promised"
    );
}

#[test]
fn defaults_of_the_shard_decide_where_no_rate_is_given() {
    let mut client = coordinator();
    run(&mut cluster()[1].connect("app"), "ALTER ROLE app SET pg_bloom.default_fpr = 0.5");
    let rates = "SELECT (bloom_info(bloom_agg(url, 200000))).target_fpr FROM visits_eu
                 UNION ALL SELECT (bloom_info(bloom_agg(url, 200000, 0.02))).target_fpr FROM visits_eu";
    assert_eq!(column::<f64>(&mut client, rates), [0.5, 0.02]);
    run(&mut cluster()[1].connect("app"), "ALTER ROLE app RESET ALL");
}

/// What a publisher sends for a change of another column.
#[test]
fn unchanged_filters_are_sent_again_only_with_full_identity() {
    cluster();
    let mut client = cluster()[1].connect("app");
    run(
        &mut client,
        "CREATE TABLE by_key AS TABLE daily;
         ALTER TABLE by_key ADD PRIMARY KEY (day);
         CREATE TABLE by_row AS TABLE daily;
         ALTER TABLE by_row REPLICA IDENTITY FULL;
         CREATE PUBLICATION sizes FOR TABLE by_key, by_row",
    );
    run(&mut client, "SELECT pg_create_logical_replication_slot('sizes', 'pgoutput')");
    let filter: i64 =
        value(&mut client, "SELECT max(octet_length(seen::bytea))::bigint FROM by_key");
    let mut sent = |table: &str| -> i64 {
        run(
            &mut client,
            &format!("UPDATE {table} SET note = note || '!' WHERE day = '2026-01-01'"),
        );
        let changes = "pg_logical_slot_get_binary_changes('sizes', NULL, NULL,
                       'proto_version', '1', 'publication_names', 'sizes')";
        value(&mut client, &format!("SELECT sum(length(data))::bigint FROM {changes}"))
    };
    let (by_key, by_row) = (sent("by_key"), sent("by_row"));
    assert!(
        by_key < 1_000 && by_row > 2 * filter,
        "{by_key} by key, {by_row} by row, filters of {filter}"
    );
}

/// Without `binary`, which the page has, values travel as text.
#[test]
fn replicas_by_text_are_the_same() {
    let servers = cluster();
    let mut publisher = servers[1].connect("app");
    let mut subscriber = servers[2].connect("app");
    run(
        &mut publisher,
        "CREATE TABLE texts AS TABLE daily;
         ALTER TABLE texts REPLICA IDENTITY FULL;
         CREATE PUBLICATION texts FOR TABLE texts;",
    );
    run(&mut subscriber, "CREATE TABLE texts (day date, note text, seen bloom)");
    let host = servers[1].dir().to_str().expect("the path is UTF-8");
    let connection = format!("host={host} dbname=app user=app");
    run(
        &mut subscriber,
        &format!("CREATE SUBSCRIPTION texts CONNECTION '{connection}' PUBLICATION texts"),
    );
    let start = Instant::now();
    let mut same = |client: &mut Client| {
        let all = "SELECT string_agg(concat_ws(' ', day, note, md5(seen::text)), ', ' ORDER BY day) FROM texts";
        let expected: Option<String> = value(&mut publisher, all);
        while value::<Option<String>>(client, all) != expected {
            assert!(
                start.elapsed() < PATIENCE,
                "the subscriber doesn't catch up with {expected:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        run(
            &mut publisher,
            "UPDATE texts SET seen = seen || 'text' WHERE day = '2026-01-01';
             UPDATE texts SET note = 'only the note' WHERE day = '2026-01-02';
             DELETE FROM texts WHERE day > '2026-01-02'",
        );
        expected
    };
    let first = same(&mut subscriber);
    let second = same(&mut subscriber);
    assert!(first.is_some() && second.is_some() && first != second);
}
