// The golden vectors of tests/format: hashes of elements, and filters of the server with answers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Filter } from 'pg-bloom';

const file = new URL('../../tests/format/vectors.json', import.meta.url);
const vectors = JSON.parse(readFileSync(file, 'utf8'));

/** Kinds that JavaScript has no values for. */
const WITHOUT_VALUES = new Set(['pg_lsn', 'xid8', 'jsonb']);
/** The days of tests/format, from 1970-01-01, and microseconds, as JavaScript writes them. */
const MICROSECONDS_OF_HOUR = 3_600_000_000;

/** Returns the value of JavaScript for an element as tests/format writes it. */
function value(kind, text) {
  switch (kind) {
    case 'bytea':
      return Buffer.from(text, 'hex');
    case 'float':
    case 'parquet DOUBLE':
      return Number(text);
    case 'boolean':
      return text === 't';
    case 'timestamptz':
    case 'parquet TIMESTAMP_MICROS (UTC)':
      return instant(BigInt(text));
    case 'time':
      return timeOf(Number(text));
    case 'timetz':
      return timetzOf(...text.split(' ').map(Number));
    case 'interval':
      return intervalOf(...text.split(' '));
    default:
      return text;
  }
}

/** Returns an instant as the Temporal API has it, which Node doesn't have yet. */
function instant(microseconds) {
  return { epochNanoseconds: microseconds * 1000n, [Symbol.toStringTag]: 'Temporal.Instant' };
}

function timeOf(microseconds) {
  return `${String(microseconds / MICROSECONDS_OF_HOUR).padStart(2, '0')}:00`;
}

function timetzOf(microseconds, secondsWest) {
  const hours = -secondsWest / 3600;
  return `${timeOf(microseconds)}${hours < 0 ? '-' : '+'}${String(Math.abs(hours)).padStart(2, '0')}`;
}

function intervalOf(months, days, microseconds) {
  return `P${months}M${days}DT0.${microseconds.padStart(6, '0')}S`;
}

/** Returns the value of an element that is given by its expression in SQL. */
function valueOfSql(kind, sql) {
  const expression = sql.slice(0, sql.lastIndexOf('::'));
  const literal = expression.replace(/^'|'$/g, '');
  if (kind === 'bytea') return Buffer.from(literal.slice(2), 'hex');
  if (kind === 'float') return Number(literal);
  if (kind === 'boolean') return literal === 'true';
  if (kind === 'timestamp') return literal.replace(' ', 'T');
  if (kind === 'interval' && literal === '1 month') return '1 mon';
  if (kind === 'interval') return '-1 days +00:00:00.000002';
  return literal;
}

test('elements have the hashes of the server', () => {
  let compared = 0;
  for (const { kind, sql, hash } of vectors.elements) {
    if (WITHOUT_VALUES.has(kind)) continue;
    // A filter of one element is a list of its hash.
    const bytes = Filter.build([valueOfSql(kind, sql)], { capacity: 100, kind }).bytes();
    const stored = new DataView(bytes.buffer).getBigUint64(bytes.length - 8, true);
    assert.equal(stored.toString(16).padStart(16, '0'), hash, `${kind} ${sql}`);
    compared++;
  }
  assert.ok(compared > 40, `${compared} elements`);
});

test('filters of the server are read, and answer as there', () => {
  let compared = 0;
  for (const { sql, kind, stored, contains, absent } of vectors.filters) {
    const filter = Filter.parse(`\\x${stored}`);
    assert.equal(filter.header.keyKind, kind);
    assert.equal(Buffer.from(filter.bytes()).toString('hex'), stored);
    if (WITHOUT_VALUES.has(kind)) {
      assert.throws(() => filter.has('1'), { name: 'TypeError', message: new RegExp(kind) });
      continue;
    }
    // Texts and bytes are one kind in Parquet: the expression tells which the elements are.
    const valueKind = sql.includes('::bytea[]') ? 'bytea' : kind;
    const values = (texts) => texts.map((text) => value(valueKind, text));
    assert.ok(filter.hasMany(values(contains)).every(Boolean), sql);
    assert.ok(values(contains).every((element) => filter.has(element)), sql);
    assert.ok(!filter.hasMany(values(absent)).some(Boolean), sql);
    compared++;
  }
  assert.ok(compared > 40, `${compared} filters`);
});
