// Runs out of memory again and again, in one loop: node --wasm-max-mem-pages=1000 exhaustion.mjs
// EXHAUSTIONS says how often; 100,000 take three minutes.

import assert from 'node:assert/strict';
import { Filter } from 'pg-bloom';

const exhaustions = Number(process.env.EXHAUSTIONS ?? 2000);
const filter = Filter.build(['a'], { capacity: 100 });
const elements = Array.from({ length: 20_000 }, (_, i) => BigInt(i));
const dense = Filter.build(elements, { capacity: 20_000 });
const outOfMemory = { name: 'RangeError', message: /^no memory for \d+ bytes$/ };

for (let i = 0; i < exhaustions; i++) {
  assert.throws(() => dense.resize(20_000 * 4096), outOfMemory);
  assert.ok(filter.has('a') && !filter.has('b'));
}
assert.throws(() => Filter.parse(new Uint8Array(100_000_000)), outOfMemory);
assert.ok(dense.hasMany(elements).every(Boolean));
assert.ok(process.memoryUsage().rss < 400 * 2 ** 20, `${process.memoryUsage().rss} bytes`);
