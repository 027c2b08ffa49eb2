// Filters as parameters and in columns with node-postgres, postgres.js and Drizzle, on the server that
// PGHOST names: the directory of its socket.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { desc } from 'drizzle-orm';
import { drizzle as drizzleOfPg } from 'drizzle-orm/node-postgres';
import { date, pgTable, text } from 'drizzle-orm/pg-core';
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
  for (const connection of lent) await (connection === client ? client.end() : connection.release());
  await pool.end();
}

function connectionOfPostgres() {
  const { PGHOST, PGPORT = '5432' } = process.env;
  return postgres({ path: `${PGHOST}/.s.PGSQL.${PGPORT}`, max: 2, onnotice: () => {} });
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
  await sql.end();
}

const daily = pgTable('daily', { day: date().primaryKey(), urls: bloom().notNull() }, (table) => [
  bloomIndex('daily_urls', table.urls),
]);
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
  assert.throws(() => mayContain(daily.urls, 7), TypeError);
  assert.throws(() => mayContain(daily.urls, 'a', "text); DROP TABLE daily; --"), RangeError);
  await db.execute('TRUNCATE daily');
}

async function drizzleWithBoth() {
  const client = new pg.Client();
  await client.connect();
  await client.query('CREATE TABLE daily (day date PRIMARY KEY, urls bloom NOT NULL)');
  await drizzle(drizzleOfPg(client));
  await registerPg(client);
  await drizzle(drizzleOfPg(client));
  await client.end();
  const sql = connectionOfPostgres();
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
await drizzleWithBoth();
await withoutTheExtension();
