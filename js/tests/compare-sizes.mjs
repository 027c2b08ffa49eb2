// Compares sizes and estimates with those of the core, which are lines of JSON on standard input.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Filter, parameters } from 'pg-bloom';

/** Fails unless two numbers differ by at most 1e-12 of their size. */
function assertClose(actual, expected, about) {
  const isClose = Math.abs(actual - expected) <= 1e-12 * Math.abs(expected);
  assert.ok(isClose || actual === expected, `${about}: ${actual} and ${expected}`);
}

const lines = readFileSync(0, 'utf8').trim().split('\n');
for (const line of lines) {
  const expected = JSON.parse(line);
  if (expected.stored === undefined) compareSize(expected, line);
  else compareEstimates(expected, line);
}

function compareSize({ layout, capacity, target, fpr, ...size }, line) {
  const { fpr: actualFpr, ...actualSize } = parameters(capacity, target, layout);
  assert.deepEqual(actualSize, size, line);
  assertClose(actualFpr, fpr, line);
}

function compareEstimates(expected, line) {
  const { layout, elements, stored } = expected;
  const numbers = Array.from({ length: elements }, (_, i) => i);
  const filter = Filter.build(numbers, { capacity: 1000, layout, kind: 'integer' });
  assert.equal(filter.hex(), `\\x${stored}`, line);
  const info = filter.info();
  assert.equal(info.bitsSet, expected.bitsSet, line);
  assert.equal(filter.overfull, expected.overfull, line);
  for (const name of ['fillRatio', 'cardinality', 'currentFpr']) {
    assertClose(info[name], expected[name], `${name} of ${line.slice(0, 60)}`);
  }
}
