// Filters of 268 MB, the largest whose text fits in a string, and of nearly 511 MB.

import assert from 'node:assert/strict';
import { Filter, FormatError, capacityForBytes } from 'pg-bloom';

const MEGABYTE = 2 ** 20;

/** Returns a dense filter of at most so many bytes. */
function filterOf(bytes) {
  // A filter of few bits, spread to many.
  const elements = Array.from({ length: 20_000 }, (_, i) => BigInt(i));
  let filter = Filter.build(elements, { capacity: 16_000 });
  for (;;) {
    const { capacity, bytes: size } = filter.header;
    if (2 * size > bytes) return filter;
    filter = filter.resize(2 * capacity);
  }
}

const largest = filterOf(511 * MEGABYTE);
assert.ok(largest.header.bytes > 255 * MEGABYTE);
assert.ok(largest.hasMany([1n, 2n]).every(Boolean));
if (largest.header.bytes > (2 ** 29 - 26) / 2) {
  assert.throws(() => largest.hex(), { name: 'RangeError', message: /bytes\(\)/ });
} else {
  assert.equal(largest.hex().length, 2 + 2 * largest.header.bytes);
}
assert.ok(Filter.parse(largest.bytes()).has(7n));
assert.throws(() => Filter.parse(new Uint8Array(511 * MEGABYTE + 1)), FormatError);
assert.throws(() => Filter.build([], { capacity: 2 * capacityForBytes(511 * MEGABYTE) }), RangeError);
