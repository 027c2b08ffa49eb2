//! Text in databases that are not in UTF-8.

use crate::common::{plan, run, value};
use crate::server;

/// PostgreSQL stores some characters of an encoding that have no form in UTF-8: no reason to refuse
/// them to an index, which never leaves its database.
#[test]
fn an_index_takes_text_that_has_no_form_in_utf8() {
    let mut client =
        server().empty_database("without_form", "ENCODING WIN1252 LOCALE 'C' TEMPLATE template0");
    run(&mut client, "CREATE EXTENSION pg_bloom");
    run(
        &mut client,
        "CREATE TABLE odd AS SELECT chr(i) AS x, ARRAY[chr(i)] AS xs, jsonb_build_object('a', chr(i)) AS j
         FROM generate_series(1, 255) AS i;
         CREATE INDEX ON odd USING bloom_filter (x);
         CREATE INDEX ON odd USING bloom_filter (xs);
         CREATE INDEX ON odd USING bloom_filter (j);
         INSERT INTO odd SELECT chr(129), ARRAY[chr(129)], jsonb_build_object('a', chr(129));
         SET enable_seqscan = off",
    );
    for condition in [
        "x = chr({i})",
        "xs = ARRAY[chr({i})]",
        "j = jsonb_build_object('a', chr({i}))",
    ] {
        let sql = |i: i32| {
            format!("SELECT count(*) FROM odd WHERE {}", condition.replace("{i}", &i.to_string()))
        };
        // The plan shows the character, which for others has no form in the client's encoding.
        let plan = plan(&mut client, "COSTS OFF", &sql(65));
        assert!(plan.contains("Bitmap Index Scan"), "{plan}");
        for i in 1..256 {
            assert_eq!(
                value::<i64>(&mut client, &sql(i)),
                if i == 129 { 2 } else { 1 },
                "{}",
                sql(i)
            );
        }
    }
}
