//! Two real lists of URLs: everything in the one is found, and of the other no more than promised.

use crate::common::{LAYOUTS, bound, data_lines, run, value};
use crate::server;
use postgres::Client;

/// Distinct URLs of the first list, those of the second, and how many of these the first has too.
const VISITED: usize = 29_897;
const FRONTIER: usize = 36_920;
const COMMON: i64 = 24_811;

const RATE: f64 = 0.01;

/// The lists as tables, the second with whether the first has each URL.
fn lists(database: &str) -> Client {
    let mut client = server().database(database);
    for (table, file, count) in [
        ("visited", "crawl-a.txt.gz", VISITED),
        ("frontier", "crawl-b.txt.gz", FRONTIER),
    ] {
        let urls = data_lines(file);
        run(&mut client, &format!("CREATE TABLE {table} (url text)"));
        client
            .execute(&format!("INSERT INTO {table} SELECT unnest($1::text[])"), &[&urls])
            .expect("URLs are loaded");
        let distinct: i64 = value(&mut client, &format!("SELECT count(DISTINCT url) FROM {table}"));
        assert_eq!(distinct, count as i64);
    }
    run(
        &mut client,
        "CREATE TABLE asked AS SELECT url, url IN (SELECT url FROM visited) AS truth FROM frontier",
    );
    client
}

/// What a filter answers: how many of the first list it finds, how many of the second that the
/// first has too, and how many of the second that it has not.
fn answers(client: &mut Client, build: &str) -> (i64, i64, i64) {
    run(
        client,
        &format!("DROP TABLE IF EXISTS f; CREATE TABLE f AS SELECT {build} AS seen FROM visited"),
    );
    let found =
        |client: &mut Client, from: &str| value(client, &format!("SELECT count(*) FROM f, {from}"));
    (
        found(client, "visited WHERE seen @> url"),
        found(client, "asked WHERE truth AND seen @> url"),
        found(client, "asked WHERE NOT truth AND url <@ seen"),
    )
}

#[test]
fn a_filter_of_each_layout_finds_all_and_keeps_its_rate() {
    let mut client = lists("sized");
    let absent = (FRONTIER as i64 - COMMON) as f64;
    for layout in LAYOUTS {
        let (of_visited, of_common, false_positives) =
            answers(&mut client, &format!("bloom_agg(url, {VISITED}, {RATE}, '{layout}')"));
        assert_eq!((of_visited, of_common), (VISITED as i64, COMMON), "{layout}");
        let distance = (false_positives as f64 - absent * RATE).abs();
        assert!(
            distance <= bound(absent, RATE),
            "{layout}: {false_positives} false positives of {absent}"
        );
    }
}

#[test]
fn a_filter_without_a_capacity_finds_all_at_or_under_its_rate() {
    let mut client = lists("unsized");
    let absent = (FRONTIER as i64 - COMMON) as f64;
    for (build, rate) in [
        ("bloom_agg(url)".into(), RATE),
        ("bloom_from_array(array_agg(url))".into(), RATE),
        ("bloom_agg(url, NULL, 0.001)".into(), 0.001),
    ]
    .into_iter()
    .chain(LAYOUTS.map(|layout| (format!("bloom_agg(url, NULL, 0.1, '{layout}')"), 0.1)))
    {
        let (of_visited, of_common, false_positives) = answers(&mut client, &build);
        assert_eq!((of_visited, of_common), (VISITED as i64, COMMON), "{build}");
        let most = absent * rate + bound(absent, rate);
        assert!(
            false_positives as f64 <= most,
            "{build}: {false_positives} false positives of {absent}"
        );
        let fpr: f64 = value(&mut client, "SELECT bloom_fpr(seen) FROM f");
        assert!(fpr > 0.0 && fpr <= rate * 1.1, "{build}: bloom_fpr is {fpr}");
    }
}

#[test]
fn filters_of_pieces_answer_as_the_filter_of_the_whole() {
    let mut client = lists("pieces");
    for layout in LAYOUTS {
        let arguments = format!("url, {VISITED}, {RATE}, '{layout}'");
        let same: bool = value(
            &mut client,
            &format!(
                "WITH pieces AS (SELECT bloom_agg({arguments}) AS seen FROM visited GROUP BY length(url) % 9)
                 SELECT (SELECT bloom_union_agg(seen) FROM pieces) = bloom_agg({arguments}) FROM visited"
            ),
        );
        assert!(same, "{layout}");
    }
}
