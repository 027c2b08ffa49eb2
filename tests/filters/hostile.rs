//! Damaged and forged values: each is refused as malformed, or accepted and then harmless to every
//! function.

use crate::common::damage::{damage, hex};
use crate::common::{Random, Server, column, run, state_of, times, value};
use postgres::Client;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::OnceLock;

/// Errors that functions may give for a filter that was accepted: it can't be merged, has another
/// kind, is too large.
const REFUSALS: [&str; 3] = ["22023", "42804", "54000"];

/// The largest filter that a function may make.
const LIMIT: &str = "1MB";

/// Filters to be damaged, one of each sort.
const SEEDS: &str = "
    SELECT f::bytea FROM (VALUES
        (bloom_empty()), (bloom_empty(NULL, 0.2, 'parquet')), (bloom_empty(1000)), (bloom_empty(100, 1e-6, 'classic')),
        (bloom_from_array(ARRAY[1, 2, 3], 1000)), (bloom_from_array(ARRAY['a', 'b', 'c'], 50, 0.1, 'classic')),
        (bloom_from_array(ARRAY[1, 2, 3], 1000, 0.01, 'parquet')), (bloom_from_array(ARRAY[inet '::1', '10.0.0.1'], 100)),
        (bloom_from_array(ARRAY['{}'::jsonb], 1, 0.5)), (bloom_empty(5000) | bloom_empty(10000)),
        (bloom_from_array(ARRAY(SELECT generate_series(1, 60)), 60)),
        (bloom_from_array(ARRAY(SELECT generate_series(1, 60)::text), 60, 0.1, 'classic')),
        (bloom_from_array(ARRAY(SELECT generate_series(1, 60)::float8), 60, 0.1, 'parquet')),
        (bloom_from_array(ARRAY(SELECT inet '::1' + generate_series(1, 60)), 60, 0.2)),
        (bloom_from_array(ARRAY(SELECT generate_series(1, 300)::numeric), 60, 0.2)),
        (bloom_from_array(ARRAY(SELECT generate_series(1, 60)), 60) | bloom_empty(480))
    ) AS seeds (f)";

/// What is done with each filter f that was accepted, beside a filter g. Each must end, in a value
/// or a refusal.
const USES: [&str; 36] = [
    "bloom_info(f)",
    "bloom_cardinality(f)",
    "bloom_fpr(f)",
    "f @> 1",
    "f @> 'x'::text",
    "2.5::float8 <@ f",
    "inet '::1' <@ f",
    "bloom_contains_any(f, ARRAY[1, 2, NULL, 77])",
    "bloom_contains_all(f, ARRAY['a', 'b'])",
    "bloom_query(f, 'x'::text)",
    "bloom_query(f, 1)",
    "f || 'x'::text",
    "f || 5",
    "bloom_add(f, inet '10.0.0.1')",
    "bloom_add(f, NULL::integer)",
    "bloom_add_all(f, ARRAY(SELECT generate_series(1, 50)))",
    "bloom_add_all(f, ARRAY['a', NULL, 'b'])",
    "bloom_add_all(f, '{}'::text[])",
    "bloom_info(f | f)",
    "f | g",
    "g | f",
    "f & f",
    "f & g",
    "g & f",
    "bloom_info(bloom_fold(f, 0.5))",
    "bloom_fold(f, 1e-9)",
    "bloom_fold(f | g, 0.1)",
    "bloom_header(f)",
    "bloom_resize(f, 1000)",
    "bloom_union_cardinality(f, g)",
    "bloom_intersection_cardinality(g, f)",
    "bloom_jaccard(f, f)",
    "(bloom_hash(f), bloom_hash_extended(f, 7), bloom_cmp(f, g), f < g, f >= g)",
    "(SELECT bloom_union_agg(h) FROM unnest(ARRAY[f, g, f, NULL]) AS h)",
    "(SELECT bloom_intersection_agg(h) FROM unnest(ARRAY[g, f, f]) AS h)",
    "(SELECT count(*) FROM (SELECT h FROM unnest(ARRAY[f, g, f]) AS h GROUP BY h) AS groups)",
];

/// A session in a new database with the functions `try_bytea(bytea, bloom)` and
/// `try_text(text, bloom)`. Both return what happened: first how the value was received, then the
/// errors and wrong answers of what was done with it.
fn session(name: &str) -> Client {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let mut client = SERVER
        .get_or_init(|| Server::start("max_connections = 20"))
        .database(name);
    let uses: String = USES
        .iter()
        .map(|sql| {
            format!(
                "BEGIN ok := ({sql}) IS NULL;
                 EXCEPTION WHEN OTHERS THEN found := found || (SQLSTATE || ' for {}'); END;\n",
                sql.replace('\'', "''")
            )
        })
        .collect();
    for (name, argument) in [("try_bytea", "bytea"), ("try_text", "text")] {
        run(
            &mut client,
            &format!(
                "CREATE FUNCTION {name}(given {argument}, g bloom) RETURNS text[] LANGUAGE plpgsql AS $body$
                 DECLARE f bloom; ok boolean; found text[] := ARRAY['accepted'];
                 BEGIN
                     BEGIN f := given::bloom; EXCEPTION WHEN OTHERS THEN RETURN ARRAY['refused ' || SQLSTATE]; END;
                     IF f::text::bloom <> f OR f::bytea::bloom <> f OR bloom_send(f) <> f::bytea THEN
                         found := found || 'XX000 for a round trip'::text;
                     END IF;
                     IF lower(given::text) <> f::text THEN found := found || 'XX000 for other bytes'::text; END IF;
                     IF f | f <> f OR f & f <> f OR ((bloom_info(f)).num_bits > 0 AND f | bloom_empty() <> f) THEN
                         found := found || 'XX000 for a merge with itself or with nothing'::text;
                     END IF;
                     BEGIN
                         IF f | g <> g | f OR (f | g) | g <> f | g THEN found := found || 'XX000 for a union'::text; END IF;
                     EXCEPTION WHEN OTHERS THEN found := found || (SQLSTATE || ' for a union');
                     END;
                     -- What is written to a file is dense: as large as the limit lets it be.
                     IF current_setting('pg_bloom.max_filter_size') = '{LIMIT}' THEN
                         BEGIN
                             IF bloom_to_parquet(bloom_from_parquet(bloom_to_parquet(f), 'text')) <> bloom_to_parquet(f)
                                 OR bloom_info(bloom_from_parquet(bloom_to_parquet(f), 'double precision')) IS NULL THEN
                                 found := found || 'XX000 for a Parquet file'::text;
                             END IF;
                         EXCEPTION WHEN OTHERS THEN found := found || (SQLSTATE || ' for a Parquet file');
                         END;
                     END IF;
                     {uses}
                     RETURN found;
                 END $body$"
            ),
        );
    }
    // Whatever takes longer hangs; no value of a hundred bytes may need more memory than this.
    run(
        &mut client,
        &format!(
            "SET statement_timeout = '20min'; SET pg_bloom.max_filter_size = '{LIMIT}'; SET pg_bloom.overfill = ignore"
        ),
    );
    client
}

/// A filter that is whole but was never built: every field is one that could be, and the payload is
/// random.
fn forge(random: &mut Random) -> Vec<u8> {
    let layout = 1 + random.below(3) as u8;
    let block_bits = [512, 1, 256][usize::from(layout) - 1];
    let hashes = if layout == 3 { 8 } else { 1 + random.below(20) as u8 };
    let kind = *random.pick(if layout == 3 {
        &[0, 5, 10, 11, 32, 33, 36]
    } else {
        &[0, 1, 2, 3, 4, 11, 11]
    });
    let name: &[u8] = if kind == 11 { b"inet" } else { b"" };
    let small = random.below(3) > 0;
    let base = if small {
        1 + random.below(40 * 512 / block_bits) as u64
    } else {
        1 + random.bits() % (1 << 22)
    };
    let blocks = base * *random.pick(&[1, 1, 2, 3, 8]);
    let dense = small && random.below(2) == 0;
    let capacity = *random.pick(&[1, 7, 1000, u64::from(u32::MAX), i64::MAX as u64]);
    let fpr: f64 = *random.pick(&[5e-324, 1e-12, 0.01, 0.5, 1.0 - f64::EPSILON]);
    let mut bytes = vec![
        1,
        layout,
        kind,
        u8::from(dense),
        hashes,
        1,
        name.len() as u8,
        0,
    ];
    for number in [blocks, base, capacity, fpr.to_bits()] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes.extend(name);
    bytes.resize(44 + name.len().next_multiple_of(8), 0);
    let payload = (blocks as usize * block_bits).div_ceil(64);
    let words: Vec<u64> = if dense {
        (0..payload)
            .map(|_| random.bits() & if random.below(3) == 0 { u64::MAX } else { random.0 << 9 })
            .collect()
    } else {
        let mut hashes: Vec<u64> = (0..random.below(payload.min(30) + 1))
            .map(|_| random.bits())
            .collect();
        hashes.sort_unstable();
        hashes
    };
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// A value to be tried: forged, damaged or both.
fn hostile(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let forged = random.below(3) == 0;
    let mut bytes = if forged { forge(random) } else { random.pick(seeds).clone() };
    let most = if forged { 2 } else { 4 };
    (0..random.below(most)).for_each(|_| damage(random, &mut bytes, seeds));
    bytes
}

/// Text that is nearly a filter.
fn hostile_text(random: &mut Random, seeds: &[Vec<u8>]) -> String {
    let bytes = hostile(random, seeds);
    let mut text: Vec<char> = hex(&bytes).chars().collect();
    for _ in 0..random.below(3) {
        let at = random.below(text.len() + 1);
        let odd = *random.pick(&[
            'g',
            'x',
            'A',
            '\\',
            ' ',
            '\n',
            'é',
            '0',
            '\u{1F600}',
            '\u{FF10}',
            '-',
        ]);
        match random.below(5) {
            0 => text.insert(at, odd),
            1 => text.truncate(at),
            2 => text.iter_mut().skip(2).for_each(|c| *c = c.to_ascii_uppercase()),
            3 => text.splice(..at.min(3), [odd]).for_each(drop),
            _ => text.iter_mut().skip(at).take(1).for_each(|c| *c = odd),
        }
    }
    text.into_iter().collect()
}

/// Sees that a session ends as it began, and how its values fared.
struct Watch {
    identity: (i32, String),
    fates: BTreeMap<String, usize>,
}

fn identity(client: &mut Client) -> (i32, String) {
    let row = client
        .query_one("SELECT pg_backend_pid(), pg_postmaster_start_time()::text", &[])
        .expect("it answers");
    (row.get(0), row.get(1))
}

impl Watch {
    fn new(client: &mut Client) -> Watch {
        Watch { identity: identity(client), fates: BTreeMap::new() }
    }

    /// Takes what happened to a value, which may only be refused with `state` or have harmless
    /// uses.
    fn record(&mut self, state: &str, value: &str, report: &[String]) {
        let (fate, errors) = report.split_first().expect("something happened");
        let allowed = *fate == format!("refused {state}") || fate == "accepted";
        assert!(allowed, "{value} was {fate}");
        let wrong: Vec<_> = errors.iter().filter(|e| !REFUSALS.contains(&&e[..5])).collect();
        assert!(wrong.is_empty(), "{value} was accepted and gave {wrong:?}");
        *self.fates.entry(fate.clone()).or_default() += 1;
    }

    /// Asserts that the server and the session are still the same, and that neither fate was rare.
    fn end(self, client: &mut Client) {
        assert_eq!(identity(client), self.identity);
        let enough = self.fates.len() == 2 && self.fates.values().all(|&n| n > times(1000));
        assert!(enough, "{:?}", self.fates);
    }
}

/// Values that are tried as bytea and as text, and how many at once. With those of COPY they are
/// 35,000.
const BATCHES: usize = 50;
const BATCH: usize = 250;
/// Values that are tried by COPY, one at a time, and for how many the uses are tried at once.
const COPIED: usize = 10_000;

/// Tries values in batches.
fn try_all<T: postgres::types::ToSql + Sync>(
    client: &mut Client,
    sql: &str,
    seed: u64,
    make: fn(&mut Random, &[Vec<u8>]) -> T,
    state: &str,
    show: fn(&T) -> String,
) {
    let seeds: Vec<Vec<u8>> = column(client, SEEDS);
    let mut watch = Watch::new(client);
    let mut random = Random(seed);
    for _ in 0..times(BATCHES) {
        let values: Vec<T> = (0..BATCH).map(|_| make(&mut random, &seeds)).collect();
        let partner = random.pick(&seeds);
        let answers = client.query(sql, &[&values, partner]).expect("errors are caught");
        assert_eq!(answers.len(), values.len());
        for (answer, value) in answers.iter().zip(&values) {
            watch.record(state, &show(value), &answer.get::<_, Vec<String>>(0));
        }
    }
    watch.end(client);
}

#[test]
fn hostile_bytea_is_refused_or_harmless() {
    let mut client = session("hostile_bytea");
    let sql = "SELECT try_bytea(b, $2::bytea::bloom) FROM unnest($1::bytea[]) WITH ORDINALITY AS t (b, n) ORDER BY n";
    try_all(&mut client, sql, 1, hostile, "22P03", |bytes| hex(bytes));
}

#[test]
fn hostile_text_is_refused_or_harmless() {
    let mut client = session("hostile_text");
    let sql = "SELECT try_text(t, $2::bytea::bloom) FROM unnest($1::text[]) WITH ORDINALITY AS t (t, n) ORDER BY n";
    try_all(&mut client, sql, 2, hostile_text, "22P02", |text| text.clone());
}

/// A file in the format of COPY BINARY: one row with one field.
fn copy_file(field: &[u8]) -> Vec<u8> {
    let mut file = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01".to_vec();
    file.extend((field.len() as i32).to_be_bytes());
    file.extend(field);
    file.extend((-1i16).to_be_bytes());
    file
}

#[test]
fn hostile_copy_is_refused_or_harmless() {
    let mut client = session("hostile_copy");
    let seeds: Vec<Vec<u8>> = column(&mut client, SEEDS);
    let mut watch = Watch::new(&mut client);
    run(&mut client, "CREATE TABLE received (f bloom)");
    let mut random = Random(3);
    for _ in 0..times(COPIED) {
        let bytes = hostile(&mut random, &seeds);
        let mut writer = client
            .copy_in("COPY received FROM STDIN (FORMAT binary)")
            .expect("COPY starts");
        writer.write_all(&copy_file(&bytes)).expect("COPY takes the bytes");
        if let Err(error) = writer.finish() {
            watch.record("22P03", &hex(&bytes), &[format!("refused {}", state_of(&error))]);
        }
    }
    let partner = hex(random.pick::<Vec<u8>>(&seeds));
    let sql = format!("SELECT try_bytea(f::bytea, '{partner}'), f::bytea FROM received");
    for row in crate::common::rows(&mut client, &sql) {
        watch.record("none", &hex(row.get(1)), &row.get::<_, Vec<String>>(0));
    }
    watch.end(&mut client);
}

/// The most memory that a session's process ever had, in kilobytes.
fn peak_memory(client: &mut Client) -> u64 {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .expect("Linux tells about processes");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("it tells the peak");
    line.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("the peak is a number")
}

#[test]
fn small_values_that_claim_to_be_huge_cost_no_memory() {
    let mut client = session("huge");
    run(&mut client, "SET pg_bloom.max_filter_size = '511MB'");
    for layout in crate::common::LAYOUTS {
        let huge =
            format!("SELECT bloom_from_array(ARRAY[1, 2, 3], 300000000, 0.01, '{layout}')::bytea");
        let huge: Vec<u8> = value(&mut client, &huge);
        assert!(huge.len() < 100);
        let row = client
            .query_one("SELECT try_bytea($1, $1::bytea::bloom)", &[&huge])
            .expect("errors are caught");
        let report: Vec<String> = row.get(0);
        assert_eq!(report[0], "accepted");
        assert!(report[1..].iter().all(|error| REFUSALS.contains(&&error[..5])), "{report:?}");
    }
    // Nor does what is asked of two that are of different sizes.
    for layout in crate::common::LAYOUTS {
        let claims = |millions: u32| {
            format!("bloom_from_array(ARRAY[1, 2, 3], {millions}000000, 0.01, '{layout}')")
        };
        let (f, g) = (claims(300), claims(150));
        let sql = format!(
            "SELECT bloom_union_cardinality({f}, {g}) BETWEEN 2.9 AND 3.1 AND bloom_jaccard({f}, {g}) BETWEEN 0.9 AND 1
                AND bloom_intersection_cardinality({g}, {f}) BETWEEN 2.9 AND 3.1"
        );
        assert!(value::<bool>(&mut client, &sql), "{layout}");
    }
    let peak = peak_memory(&mut client);
    assert!(peak < 100_000, "{peak} kB");
}
