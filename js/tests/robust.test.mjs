// What bytes from outside, a lack of memory and of stack, and iterators of the caller can do: an
// exception, never more.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { Filter, FormatError } from 'pg-bloom';

const MEGABYTE = 2 ** 20;

/** Returns the files of an archive of the fuzzer. */
function* inputs(name) {
  const archive = new URL(`../../core/fuzz/corpus/${name}.tar.gz`, import.meta.url);
  const tar = gunzipSync(readFileSync(archive));
  for (let at = 0; at + 512 <= tar.length; ) {
    const size = parseInt(tar.toString('latin1', at + 124, at + 136), 8) || 0;
    const isFile = tar[at + 156] === 0x30;
    if (isFile) yield tar.subarray(at + 512, at + 512 + size);
    at += 512 + 512 * Math.ceil(size / 512);
  }
}

/** Calls a function, which may refuse its parameters. */
function maybe(work) {
  try {
    return work();
  } catch (error) {
    const isRefusal = error instanceof TypeError || error instanceof RangeError;
    assert.ok(isRefusal || error instanceof FormatError, error.stack);
    assert.ok(!(error.cause instanceof WebAssembly.RuntimeError), error.stack);
    return undefined;
  }
}

/** Returns the bytes of filters with one bit changed, in each of the first sixty bytes. */
function* damaged(stored) {
  for (let place = 0; place < Math.min(60, stored.length); place++) {
    for (const bit of [1, 128]) {
      const bytes = stored.slice();
      bytes[place] ^= bit;
      yield bytes;
    }
  }
}

test('hostile bytes are refused, or are a filter that every method works with', () => {
  const built = [['a'], [1n, 2n], [[1n, null]], [true]].flatMap((elements) =>
    [undefined, 9].map((capacity) => Filter.build(elements, { capacity }).bytes()),
  );
  const archived = ['parse', 'operations'].flatMap((name) => [...inputs(name)]);
  const candidates = [...built, ...built.flatMap((bytes) => [...damaged(bytes)]), ...archived];
  let accepted = 0;
  for (const bytes of candidates) {
    const filter = maybe(() => Filter.parse(bytes));
    if (filter === undefined) continue;
    accepted++;
    assert.deepEqual(filter.bytes(), new Uint8Array(bytes));
    assert.equal(filter.header.bytes, bytes.length);
    assert.ok(filter.cardinality >= 0 && filter.fpr >= 0 && filter.fpr <= 1);
    assert.equal(typeof filter.overfull, 'boolean');
    assert.ok(filter.info().fillRatio <= 1);
    for (const element of ['a', 1n, 0.5, true, '2026-02-28', [1n], new Uint8Array(2)]) {
      maybe(() => filter.has(element));
      maybe(() => filter.withAll([element]));
    }
    maybe(() => filter.union(filter));
    maybe(() => filter.intersection(filter));
    maybe(() => filter.resize());
    maybe(() => filter.resize(1000));
  }
  assert.ok(archived.length > 100 && accepted > 300, `${accepted} of ${candidates.length}`);
});

test('values that another caller of the module writes wrongly are refused', () => {
  const wasm = readFileSync(new URL('../dist/pg_bloom.wasm', import.meta.url));
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(wasm), {});
  const give = (bytes) => {
    const address = exports.input(bytes.length) >>> 0;
    new Uint8Array(exports.memory.buffer).set(bytes, address);
    return bytes.length;
  };
  let state = 1;
  const random = (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  const stored = ['text', 'integer', 'float', 'uuid'].map((kind) => Filter.build([], { kind, capacity: 100 }));
  const filters = stored.map((filter) => exports.filter_parse(give(filter.bytes())));
  let refused = 0;
  for (let round = 0; round < 40_000; round++) {
    const bytes = Uint8Array.from({ length: random(40) }, () => random(4) && random(12));
    if (bytes.length > 0) bytes[0] = 9 + random(4);
    // A run of a few values, mostly.
    if (bytes.length > 8) bytes.set([random(5), 0, 0, random(50) === 0 ? 255 : 0], 4);
    const filter = filters[random(filters.length)];
    const builder = exports.builder_new(100n, 0.01, 1, 0);
    for (const number of [exports.filter_contains(filter, give(bytes)), exports.builder_add(builder, give(bytes))]) {
      assert.ok(number >= -2 && number <= bytes.length, `${number}: ${bytes}`);
      refused += Number(number < 0);
    }
    exports.builder_release(builder);
  }
  assert.ok(refused > 10_000 && refused < 79_000, String(refused));
});

test('100,000 damaged inputs and refused elements take no memory', () => {
  const stored = Filter.build(['a'], { capacity: 1000 }).bytes();
  const filter = Filter.parse(stored);
  const damage = stored.slice();
  damage[0] = 9;
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 100_000; i++) {
    assert.throws(() => Filter.parse(damage), FormatError);
    assert.throws(() => filter.has(1n), TypeError);
  }
  assert.ok(filter.has('a'));
  assert.ok(process.memoryUsage().rss - before < 100 * MEGABYTE);
});

test('filters that are dropped in a loop without awaiting take no memory', () => {
  const stored = Filter.build(['a', 'b'], { capacity: 1_000_000 }).withAll(numbers(200_000)).bytes();
  assert.ok(stored.length > MEGABYTE);
  for (let i = 0; i < 1000; i++) assert.ok(Filter.parse(stored).has('a'));
  // Copies in the module, 64 MB, and what the collector has not freed yet.
  assert.ok(process.memoryUsage().rss < 600 * MEGABYTE);
});

function* numbers(count) {
  for (let i = 0; i < count; i++) yield String(i);
}

test('the module has copies of 64 MB, whatever was read', () => {
  const program = fileURLToPath(new URL('memory.mjs', import.meta.url));
  execFileSync(process.execPath, [program], { stdio: 'inherit' });
});

test('filters of more than the cache are asked by turns', () => {
  const base = Filter.build(numbers(250_000), { capacity: 2_000_000 });
  const filters = Array.from({ length: 40 }, (_, i) => base.withAll([`more ${i}`]));
  assert.ok(filters[0].header.bytes > 1_900_000);
  for (const filter of [...filters, ...filters]) assert.ok(filter.has('7'));
  const union = filters.reduce((a, b) => a.union(b));
  assert.ok(union.equals(base.withAll(Array.from({ length: 40 }, (_, i) => `more ${i}`))));
});

test('iterators may use filters, fail, and end early', () => {
  const filter = Filter.build(['a']);
  function* nested() {
    for (let i = 0; i < 20_000; i++) {
      assert.ok(filter.has('a'));
      if (i % 5000 === 0) assert.throws(() => Filter.parse('\\x'), FormatError);
      yield String(Filter.build([BigInt(i)]).header.bytes + i);
    }
  }
  const outer = Filter.build(nested());
  assert.ok(outer.hasMany(nested()).every(Boolean));
  function* failing() {
    yield 'b';
    throw new SyntaxError('of the iterator');
  }
  for (const work of [() => Filter.build(failing()), () => filter.hasMany(failing())]) {
    assert.throws(work, { name: 'SyntaxError', message: 'of the iterator' });
  }
  assert.throws(() => filter.withAll(failing()), SyntaxError);
  assert.ok(filter.has('a'));
});

test('the end of the stack is a RangeError, after which all works', () => {
  const filter = Filter.build(['a']);
  let answers = 0;
  const dive = () => {
    answers += filter.has('a') ? 1 : 0;
    dive();
  };
  for (let i = 0; i < 30; i++) {
    assert.throws(dive, RangeError);
    assert.ok(filter.has('a'));
    assert.ok(!filter.has('b'));
  }
  assert.ok(answers > 1000);
});

test('a lack of memory is a RangeError, after which all works', () => {
  const program = fileURLToPath(new URL('exhaustion.mjs', import.meta.url));
  // 1,000 pages are 64 MB.
  execFileSync(process.execPath, ['--wasm-max-mem-pages=1000', program], { stdio: 'inherit' });
});

test('the largest filters are read, and their text is refused', { timeout: 600_000 }, () => {
  const program = fileURLToPath(new URL('largest.mjs', import.meta.url));
  execFileSync(process.execPath, [program], { stdio: 'inherit' });
});
