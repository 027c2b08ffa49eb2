// Runs the examples of README.md as they are written, on the server that PGHOST names, one after the other: psql's export,
// the program that asks it, and those that use drivers. What an example takes for given is written before it here.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const js = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(js, 'README.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'pg_bloom-readme-'));
mkdirSync(join(folder, 'node_modules'));
symlinkSync(js, join(folder, 'node_modules', 'pg-bloom'));
for (const driver of ['pg', 'postgres', 'drizzle-orm']) {
  symlinkSync(join(js, 'node_modules', driver), join(folder, 'node_modules', driver));
}

/** Returns the examples in a language. */
function examples(language) {
  const found = readme.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'gm'));
  return [...found].map(([, code]) => code);
}

/** Runs a program, and returns what it prints. */
function run(program, ...parameters) {
  return execFileSync(program, parameters, { cwd: folder, encoding: 'utf8' });
}

function psql(sql) {
  return run('psql', '--no-psqlrc', '--quiet', '--no-align', '--tuples-only', '--command', sql).trim();
}

/** Runs an example with what goes before and after it, and returns what it prints. */
function node(before, example, after) {
  return run(process.execPath, '--input-type=module', '--eval', `${before}\n${example}\n${after}`);
}

const IMPORT = "import { Filter } from 'pg-bloom';";
const CLIENT = "import pg from 'pg';\nconst client = new pg.Client();\nawait client.connect();";
const POOL = "import pg from 'pg';\nconst pool = new pg.Pool();";
// It takes no socket from PGHOST by itself.
const SQL = `import postgres from 'postgres';
const { PGHOST, PGPORT = '5432' } = process.env;
const sql = postgres({ path: \`\${PGHOST}/.s.PGSQL.\${PGPORT}\` });`;
const DRIZZLE = `${CLIENT}
import { drizzle } from 'drizzle-orm/node-postgres';
import { date, pgTable } from 'drizzle-orm/pg-core';
const db = drizzle(client);`;

try {
  const [exported] = examples('sh');
  const [asked, built, withPg, withPostgres, withDrizzle, ...others] = examples('js');
  assert.deepEqual(others, []);

  psql("CREATE TABLE customers AS SELECT unnest(ARRAY['ada@example.com', 'ben@example.com']) AS email");
  run('bash', '-c', exported);
  assert.match(readFileSync(join(folder, 'customers.txt'), 'latin1'), /^\\x[0-9a-f]+\n$/);
  const shown = "console.log(customers.has('ada@example.com'), customers.hasMany(['a', 'b']), customers.header.keyKind);";
  assert.equal(node('', asked, shown), 'true [ false, false ] text\n');

  psql('CREATE TABLE t (filter bloom); INSERT INTO t VALUES (NULL)');
  node(`${IMPORT}\n${CLIENT}`, built, 'await client.end();');
  assert.equal(psql("SELECT filter @> 'a'::text AND filter @> 'c'::text AND NOT filter @> 'd'::text FROM t"), 't');

  psql('DELETE FROM t');
  psql("INSERT INTO t SELECT bloom_agg(email) FROM customers");
  const ofPg = node(`${IMPORT}\n${POOL}`, withPg, "console.log(rows[0].filter.has('ben@example.com'));\nawait pool.end();");
  assert.equal(ofPg, 'true\n');
  assert.equal(psql('SELECT count(*) FROM t'), '2');

  const ofPostgres = node(SQL, withPostgres, "console.log(filter.has('ada@example.com'));\nawait sql.end();");
  assert.equal(ofPostgres, 'true\n');

  psql('CREATE TABLE daily (day date PRIMARY KEY, urls bloom NOT NULL, users bloom NOT NULL)');
  psql(`INSERT INTO daily VALUES ('2026-02-28', bloom_from_array(ARRAY['https://example.com/1'], 10),
    bloom_from_array(ARRAY[7], 10))`);
  node(DRIZZLE, withDrizzle, 'await client.end();');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
