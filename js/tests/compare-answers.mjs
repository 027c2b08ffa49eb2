// Builds the filter that the server has built, and compares bytes and answers. Standard input is JSON
// with the elements, the server's filter of every second one, and its answers for all.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Filter } from 'pg-bloom';

const { kind, layout, capacity, stored, elements, answers } = JSON.parse(readFileSync(0, 'utf8'));
const values = kind === 'bytea' ? elements.map((hex) => Buffer.from(hex, 'hex')) : elements;

const half = values.filter((_, i) => i % 2 === 1);
const built = Filter.build(half, { capacity, layout, kind });
const ofServer = Filter.parse(stored);
assert.ok(built.equals(ofServer), `${kind}: the filters differ`);

const found = ofServer.hasMany(values);
assert.equal(found.map(Number).join(''), answers, kind);
assert.ok(found.every((answer, i) => answer || i % 2 === 0), kind);
for (let i = 0; i < Math.min(1000, values.length); i++) assert.equal(ofServer.has(values[i]), answers[i] === '1', kind);

// Integers as bigints and numbers are the same elements as their digits.
if (kind === 'integer') {
  assert.deepEqual(ofServer.hasMany(values.map(BigInt)), found);
  const safe = values.map(Number).map((number, i) => (Number.isSafeInteger(number) ? number : values[i]));
  assert.deepEqual(ofServer.hasMany(safe), found);
}
