// Filters as parameters and in columns with node-postgres, postgres.js and Drizzle, on the server that
// PGHOST names: the directory of its socket.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { and, desc, eq, sql } from 'drizzle-orm';
import { drizzle as drizzleOfPg } from 'drizzle-orm/node-postgres';
import { date, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { drizzle as drizzleOfPostgres } from 'drizzle-orm/postgres-js';
import pg from 'pg';
import postgres from 'postgres';
import { Filter } from 'pg-bloom';
import { bloom, bloomIndex, mayContain } from 'pg-bloom/drizzle';
import { register as registerPg } from 'pg-bloom/pg';
import { register as registerPostgres } from 'pg-bloom/postgres';

const A = Filter.build(['a'], { capacity: 100 });
const B = Filter.build(Array.from({ length: 50 }, (_, i) => BigInt(i)), { capacity: 10 });
const INSTANT = "'2026-02-28 12:34:56.789012+00'::timestamptz";

/** Types whose values, alone and in arrays, are asked as the driver returns them. */
const VALUES = {
  date: ['2026-02-28', 'infinity', '-infinity', '0044-03-15 BC', '12026-01-01'],
  timestamp: ['2026-02-28 12:34:56.789012', 'infinity', '0044-03-15 12:00:00.000001 BC'],
  timestamptz: ['2026-02-28 12:34:56.789012+00', '2026-02-28 12:34:56.789012+05:45', '-infinity'],
  interval: ['1 year 2 mons 3 days 04:05:06.789012', '-1 days', '@ 1 mon ago'],
  numeric: ['12345678901234567890.123456789', '-0.1', 'NaN'],
};

/** Returns the statement that has values of a type, their filter, and filters of their arrays. */
function valuesQuery(type) {
  const values = `unnest(ARRAY['${VALUES[type].join("','")}']::${type}[]) AS v(x)`;
  return `
    SELECT x, (SELECT bloom_agg(x) FROM ${values}) AS filter, ARRAY[x, NULL, x] AS list,
      (SELECT bloom_agg(ARRAY[x, NULL, x]) FROM ${values}) AS lists, ARRAY[ARRAY[x], ARRAY[x]] AS nested
    FROM ${values}`;
}

/** Each value that is in the table is found by what the driver returns for it. */
async function driversValues(query) {
  for (const type of Object.keys(VALUES)) {
    const rows = await query(valuesQuery(type));
    assert.equal(rows.length, VALUES[type].length);
    for (const { x, filter, list, lists, nested } of rows) {
      assert.ok(filter.has(x), `${type} ${x}`);
      assert.ok(lists.has(list), `${type} ${list}`);
      assert.deepEqual(nested, [[x], [x]]);
      assert.ok(list.every((member) => member === null || filter.has(member)), `${type} ${list}`);
    }
  }
}

/** Fails unless these are the same filters, in the same arrays. */
function assertFilters(actual, expected) {
  if (Array.isArray(expected)) {
    assert.equal(actual.length, expected.length);
    expected.forEach((filter, i) => assertFilters(actual[i], filter));
  } else if (expected === null) assert.equal(actual, null);
  else assert.ok(expected.equals(actual), String(actual));
}

async function nodePostgres() {
  const pool = new pg.Pool({ max: 2 });
  await registerPg(pool);
  const client = new pg.Client();
  await client.connect();
  await registerPg(client);
  const lent = [await pool.connect(), await pool.connect(), client];
  for (const connection of lent) {
    const { rows } = await connection.query({
      text: `SELECT $1::bloom, $2::bloom[], NULL::bloom, bloom_agg(${INSTANT}), ${INSTANT}`,
      values: [A, [A, null, B]],
      rowMode: 'array',
    });
    const [one, many, none, instants, instant] = rows[0];
    assertFilters([one, many, none], [A, [A, null, B], null]);
    // The text of the driver is the element, with all its digits.
    assert.equal(instant, '2026-02-28 12:34:56.789012+00');
    assert.ok(instants.has(instant));
    assert.ok(!instants.has(new Date(instant)));
    const found = await connection.query("SELECT $1::bloom @> 'a'::text AS found", [A]);
    assert.equal(found.rows[0].found, true);
  }
  await driversValues(async (text) => (await client.query(text)).rows);
  for (const connection of lent) await (connection === client ? client.end() : connection.release());
  await pool.end();
}

function connectionOfPostgres(options) {
  const { PGHOST, PGPORT = '5432' } = process.env;
  return postgres({ path: `${PGHOST}/.s.PGSQL.${PGPORT}`, max: 2, onnotice: () => {}, ...options });
}

async function postgresJs() {
  const sql = connectionOfPostgres();
  await registerPostgres(sql);
  const [row] = await sql`
    SELECT ${A}::bloom AS one, ${[A, null, B]}::bloom[] AS many, NULL::bloom AS none,
      bloom_agg(${sql.unsafe(INSTANT)}) AS instants, ${sql.unsafe(INSTANT)} AS instant`;
  assertFilters([row.one, row.many, row.none], [A, [A, null, B], null]);
  assert.ok(row.instants.has(row.instant));
  await sql`CREATE TABLE sent (filter bloom)`;
  await sql`INSERT INTO sent ${sql({ filter: B })}`;
  assertFilters((await sql`SELECT filter FROM sent`)[0].filter, B);
  await driversValues((text) => sql.unsafe(text));
  await driversValues((text) => sql.unsafe(text, [], { prepare: true }));

  // Filters go where the driver knows no type of theirs, and in arrays of any dimensions.
  await sql`CREATE DOMAIN checked AS bloom`;
  const [sent] = await sql`
    SELECT ${A}::checked::bloom AS domain, ${sql.array([A])}::bloom[] AS list, ${[[A], [null]]}::bloom[] AS nested,
      ${'{}'}::bloom[] AS text`;
  assertFilters([sent.domain, sent.list, sent.nested, sent.text], [A, [A], [[A], [null]], []]);
  await sql.end();
}

/** What postgres.js returns is found again when it is sent, wherever the program runs. */
async function postgresJsSendsWhatItReads() {
  const zone = process.env.TZ;
  for (process.env.TZ of ['UTC', 'America/New_York']) {
    const sql = connectionOfPostgres({ max: 1 });
    await registerPostgres(sql);
    for (const type of ['date', 'timestamp', 'timestamptz', 'interval']) {
      for (const { x, filter, list } of await sql.unsafe(valuesQuery(type))) {
        const cast = sql.unsafe(type);
        const [row] = await sql`SELECT ${filter}::bloom @> ${x}::${cast} AS found, ${list}::${cast}[] = ARRAY[
          ${x}::${cast}, NULL, ${x}::${cast}] AS same`;
        assert.deepEqual(row, { found: true, same: true }, `${type} ${x}`);
      }
    }
    const date = new Date('2026-02-28T12:34:56.789Z');
    assert.equal((await sql`SELECT ${date}::timestamptz = '2026-02-28 12:34:56.789+00' AS same`)[0].same, true);
    // What is no filter is refused by the server, time and again: the connection stays usable.
    for (let i = 0; i < 4; i++) {
      await assert.rejects(sql`SELECT ${'a'}::bloom[]`, { code: '22P02' });
      await assert.rejects(sql`SELECT ${{}}::bloom`, { code: '22P02' });
      await assert.rejects(sql`SELECT ${Object.create(null)}::bloom`, { code: '22P02' });
      // As an array of filters that is longer than any text.
      const without = { toString() { throw new RangeError('Invalid string length'); } };
      const others = [sql`SELECT 1 AS one`, sql`SELECT ${[without]}::bloom[]`, sql`SELECT 2 AS two`];
      const [one, many, two] = await Promise.allSettled(others);
      assert.deepEqual([one.value[0].one, many.reason.code, two.value[0].two], [1, '22P02', 2]);
    }
    assert.equal((await sql`SELECT 3 AS three`)[0].three, 3);
    await sql.end();
  }
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
}

async function postgresJsWithOtherNames() {
  const copied = { row: (row) => ({ ...row }) };
  for (const transform of [postgres.camel, postgres.pascal, { column: (name) => `of_${name}` }, copied]) {
    const sql = connectionOfPostgres({ transform });
    await registerPostgres(sql);
    const [row] = await sql`SELECT ${A}::bloom, ${[A, null]}::bloom[]`.values();
    const [filter, filters] = Object.values(row);
    assertFilters([filter, filters], [A, [A, null]]);
    await sql.begin((transaction) => assert.rejects(registerPostgres(transaction), TypeError));
    const reserved = await sql.reserve();
    await assert.rejects(registerPostgres(reserved), TypeError);
    reserved.release();
    await sql.end();
  }
  const hidden = connectionOfPostgres({ transform: { row: () => ({}) } });
  await assert.rejects(registerPostgres(hidden), /hidden by a transform/);
  await hidden.end();

  const numbers = connectionOfPostgres({ types: { numeric: { to: 1700, from: [1700], serialize: String, parse: Number } } });
  await registerPostgres(numbers);
  assert.deepEqual((await numbers`SELECT 1.5 AS one, ARRAY[1.5, 2.5] AS list`)[0], { one: 1.5, list: [1.5, 2.5] });
  await numbers.end();
}

const daily = pgTable('daily', { day: date().primaryKey(), urls: bloom().notNull() }, (table) => [
  bloomIndex('daily_urls', table.urls),
]);
/** Arrays by their types in SQL, which are also the kinds of their filters. */
const LISTS = {
  'integer[]': [1, null, 3],
  'text[]': ['a "quoted" \\ text', '', 'NULL', '{,}', null],
  'boolean[]': [true, false],
  'bytea[]': [new Uint8Array([1, 92, 34]), new Uint8Array(0)],
  'numeric[]': ['1.5', '-2'],
  'date[]': ['2026-02-28', 'infinity'],
  'timestamp[]': ['2026-02-28 12:34:56.789012'],
  'timestamptz[]': [new Date('2026-02-28T12:34:56.789Z'), '2026-02-28 12:34:56.789012+02'],
  'uuid[]': [['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'], ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12']],
};

const weekly = pgTable('weekly', { week: integer(), filters: bloom().array() });
const visits = pgTable('visits', { url: text() }, (table) => [
  bloomIndex('visits_parts', table.url, { operatorClass: 'text_ngram_ops', fpr: '0.001' }),
]);

async function drizzle(db) {
  await db.insert(daily).values([{ day: '2026-01-01', urls: A }, { day: '2026-01-02', urls: B }]);
  const rows = await db.select().from(daily).orderBy(desc(daily.day));
  assertFilters(rows.map((row) => row.urls), [B, A]);
  const texts = db.select({ day: daily.day }).from(daily).where(mayContain(daily.urls, 'a'));
  // The other filter is of integers.
  await assert.rejects(texts.execute(), (error) => error.cause.code === '42804');
  await db.execute("DELETE FROM daily WHERE day = '2026-01-02'");
  for (const [value, days] of [['a', ['2026-01-01']], ['b', []]]) {
    const found = await db.select({ day: daily.day }).from(daily).where(mayContain(daily.urls, value));
    assert.deepEqual(found.map((row) => row.day), days);
  }
  const lists = Filter.build([[1n, 2n]]);
  const date = new Date('2026-02-28T12:34:56.789Z');
  const dates = Filter.build([date]);
  await db.insert(daily).values([{ day: '2026-01-03', urls: lists }, { day: '2026-01-04', urls: dates }]);
  const days = (condition, day) => db.select({ day: daily.day }).from(daily).where(and(eq(daily.day, day), condition));
  assert.equal((await days(mayContain(daily.urls, [1, 2], 'bigint[]'), '2026-01-03')).length, 1);
  assert.equal((await days(mayContain(daily.urls, [2, 1], 'bigint[]'), '2026-01-03')).length, 0);
  assert.equal((await days(mayContain(daily.urls, date, 'timestamptz'), '2026-01-04')).length, 1);
  for (const [type, list] of Object.entries(LISTS)) {
    const filter = Filter.build([list], { kind: type });
    await db.insert(daily).values([{ day: '2026-01-05', urls: filter }]);
    assert.equal((await days(mayContain(daily.urls, list, type), '2026-01-05')).length, 1, type);
    await db.delete(daily).where(eq(daily.day, '2026-01-05'));
  }
  const views = [new DataView(Uint8Array.of(1, 2, 3).buffer, 1), new Uint8ClampedArray([4]), Uint8Array.of(5).buffer];
  const bytes = [[2, 3], [4], [5]].map((members) => Uint8Array.from(members));
  await db.insert(daily).values([{ day: '2026-01-06', urls: Filter.build([bytes]) }]);
  assert.equal((await days(mayContain(daily.urls, views, 'bytea[]'), '2026-01-06')).length, 1);
  for (const member of [sql`'a'`, {}]) {
    assert.throws(() => mayContain(daily.urls, [member], 'text[]'), TypeError);
  }
  for (const far of [new Date('-000044-03-15T12:00:00Z'), new Date('+012026-01-01T00:00:00.001Z')]) {
    await db.insert(daily).values([{ day: '2026-01-05', urls: Filter.build([far]) }]);
    assert.equal((await days(mayContain(daily.urls, far, 'timestamptz'), '2026-01-05')).length, 1, String(far));
    await db.delete(daily).where(eq(daily.day, '2026-01-05'));
  }
  // The element is the value of the whole expression.
  await db.insert(daily).values([{ day: '2026-01-05', urls: Filter.build([false]) }]);
  const isFirst = sql`${daily.day} = '2026-01-01' and true`;
  assert.equal((await days(mayContain(daily.urls, isFirst, 'boolean'), '2026-01-05')).length, 1);
  assert.equal((await days(mayContain(daily.urls, sql`false or true`, 'boolean'), '2026-01-05')).length, 0);
  for (const type of ['double precision', 'numeric(10, 2)', 'timestamp(3) with time zone', 'public."a b"[]', 'varchar(9)[]']) {
    mayContain(daily.urls, 'a', type);
  }
  for (const type of ['boolean or true', 'boolean is not null or true', 'boolean order by day', 'text; drop table daily']) {
    assert.throws(() => mayContain(daily.urls, false, type), RangeError, type);
  }
  await db.insert(weekly).values([{ week: 1, filters: [A, B] }, { week: 2, filters: [A, null] }]);
  const weeks = await db.select().from(weekly).orderBy(weekly.week);
  assertFilters(weeks.map((row) => row.filters), [[A, B], [A, null]]);
  await db.execute('TRUNCATE weekly');
  assert.throws(() => mayContain(daily.urls, 7), TypeError);
  assert.throws(() => mayContain(daily.urls, 'a', "text); DROP TABLE daily; --"), RangeError);
  await db.execute('TRUNCATE daily');
}

async function drizzleWithBoth() {
  const client = new pg.Client();
  await client.connect();
  await client.query('CREATE TABLE daily (day date PRIMARY KEY, urls bloom NOT NULL)');
  await client.query('CREATE TABLE weekly (week integer, filters bloom[])');
  await drizzle(drizzleOfPg(client));
  await registerPg(client);
  await drizzle(drizzleOfPg(client));
  await client.end();
  const sql = connectionOfPostgres();
  await drizzle(drizzleOfPostgres(sql));
  await registerPostgres(sql);
  await drizzle(drizzleOfPostgres(sql));
  await sql.end();

  const { getTableConfig } = createRequire(import.meta.url)('drizzle-orm/pg-core');
  const { config } = getTableConfig(visits).indexes[0];
  assert.equal(config.method, 'bloom_filter');
  assert.deepEqual(config.with, { fpr: '0.001' });
  assert.equal(config.columns[0].indexConfig.opClass, 'text_ngram_ops');
}

async function withoutTheExtension() {
  const client = new pg.Client({ database: 'postgres' });
  await client.connect();
  await assert.rejects(registerPg(client), /CREATE EXTENSION pg_bloom/);
  await client.end();
}

await nodePostgres();
await postgresJs();
await postgresJsSendsWhatItReads();
await postgresJsWithOtherNames();
await drizzleWithBoth();
await withoutTheExtension();
