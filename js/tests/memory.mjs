// Counts the instances of the module, and the bytes of their memory: node memory.mjs
// FILTERS says how many filters of 1.2 MB are read in one loop; 20,000 take half a minute.

import assert from 'node:assert/strict';
import { Filter } from 'pg-bloom';

const MEGABYTE = 2 ** 20;
const filters = Number(process.env.FILTERS ?? 500);

const instances = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = function (...parameters) {
  const instance = new Instance(...parameters);
  instances.push(instance);
  return instance;
};

function moduleBytes() {
  return instances.at(-1).exports.memory.buffer.byteLength;
}

const texts = Array.from({ length: 150_000 }, (_, i) => String(i));
const stored = Filter.build(texts, { capacity: 1_000_000 }).bytes();
assert.ok(stored.length > 1.1 * MEGABYTE);
let growths = 0;
let lastBytes = moduleBytes();
for (let i = 0; i < filters; i++) {
  assert.ok(Filter.parse(stored).has('7'));
  growths += Number(moduleBytes() > lastBytes);
  lastBytes = moduleBytes();
}
assert.equal(instances.length, 1);
// Memory grows by steps: V8 collects garbage whenever it has grown.
assert.ok(growths < 10, `memory grew ${growths} times`);
assert.ok(moduleBytes() < 80 * MEGABYTE, `${moduleBytes()} bytes`);

// Damaged bytes and refused elements leave nothing behind, and the instance stays.
const filter = Filter.build(['a'], { capacity: 1000 });
const damaged = filter.bytes();
damaged[0] = 9;
const before = moduleBytes();
for (let i = 0; i < 20_000; i++) {
  assert.throws(() => Filter.parse(damaged), { name: 'FormatError' });
  assert.throws(() => filter.has(1n), TypeError);
  assert.throws(() => filter.withAll([1n]), TypeError);
}
assert.equal(instances.length, 1);
assert.equal(moduleBytes(), before);

// The end of the stack is a trap where the module's code meets it. Its instance is discarded, and filters stay valid.
const many = Filter.parse(stored);
// A report needs more of the stack than the loader does, and each attempt begins at another depth.
const dive = () => [filter.info(), dive()];
const diveFrom = (depth) => (depth === 0 ? dive() : [diveFrom(depth - 1)]);
for (let i = 0; i < 100 && instances.length === 1; i++) {
  assert.throws(() => diveFrom(i), RangeError);
}
assert.ok(instances.length > 1);
assert.ok(filter.has('a') && !filter.has('b'));
assert.deepEqual(many.hasMany(['7', 'x']), [true, false]);
