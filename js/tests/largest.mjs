// A filter of more than 268 MB, whose text doesn't fit in a string, and the largest of all, of 504 MB: sizes are rounded, and
// the next one would be of more than 511 MB.

import assert from 'node:assert/strict';
import { Filter, FormatError, capacityForBytes, parameters } from 'pg-bloom';

const MEGABYTE = 2 ** 20;

/** Returns a dense filter of at most so many bytes: one of few bits, spread to many by doubling. */
function filterOf(bytes, capacity) {
  const elements = Array.from({ length: 70_000 }, (_, i) => BigInt(i));
  let filter = Filter.build(elements, { capacity });
  for (;;) {
    const { capacity, bytes: size } = filter.header;
    if (2 * size > bytes) return filter;
    filter = filter.resize(2 * capacity);
  }
}

/** Checks a filter that is too large for a string. */
function check(filter) {
  assert.ok(filter.header.bytes > (2 ** 29 - 26) / 2);
  assert.ok(filter.hasMany([1n, 2n]).every(Boolean));
  assert.throws(() => filter.hex(), { name: 'RangeError', message: /bytes\(\)/ });
  assert.ok(Filter.parse(filter.bytes()).has(7n));
}

check(filterOf(511 * MEGABYTE, 64_000));
const largest = filterOf(511 * MEGABYTE, capacityForBytes(511 * 1024));
check(largest);
const most = parameters(capacityForBytes(511 * MEGABYTE));
assert.equal(largest.header.bytes, most.bytes);
assert.ok(most.bytes > 504 * MEGABYTE - 1);
assert.throws(() => Filter.parse(new Uint8Array(511 * MEGABYTE + 1)), FormatError);
assert.throws(() => Filter.build([], { capacity: 2 * capacityForBytes(511 * MEGABYTE) }), RangeError);
