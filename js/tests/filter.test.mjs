// What a Filter does with values of JavaScript, and what it refuses.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import test from 'node:test';
import {
  Filter,
  FormatError,
  bestPractices,
  capacityForBytes,
  expectedFpr,
  parameters,
} from 'pg-bloom';

/** A value of each kind, and one that is the same element. */
const SAME_ELEMENTS = {
  integer: [42n, '42'],
  text: ['é€😀', 'é€😀'],
  bytea: [new Uint8Array([1, 2]), Buffer.from([1, 2])],
  float: [0, -0],
  numeric: ['1.50', '15e-1'],
  uuid: ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{A0EEBC999C0B4EF8BB6D6BB9BD380A11}'],
  date: ['2026-02-28', '+002026-02-28'],
  timestamp: ['2026-02-28T12:34:56.789', '2026-02-28 12:34:56.789000'],
  timestamptz: ['2026-02-28T12:34:56.789Z', new Date('2026-02-28T12:34:56.789Z')],
  boolean: [true, true],
  time: ['12:34', '12:34:00.000000'],
  timetz: ['12:34+02', '12:34:00+02:00'],
  interval: ['P1Y2M3DT4H5M6.789S', '1 year 2 mons 3 days 04:05:06.789'],
  'array of integer': [[1n, null], [1, null]],
  'text[]': [[['a', 'b'], ['c', null]], [['a', 'b'], ['c', null]]],
};

test('an element is found in each way of writing it', () => {
  for (const layout of ['blocked', 'classic', 'parquet']) {
    for (const [kind, [value, same]] of Object.entries(SAME_ELEMENTS)) {
      const filter = Filter.build([value], { capacity: 10, layout, kind });
      assert.equal(filter.has(value), true, kind);
      assert.equal(filter.has(same), true, kind);
      assert.deepEqual(filter.hasMany([same, null]), [true, false], kind);
      assert.ok(filter.withAll([same]).equals(filter), kind);
    }
  }
});

test('offsets without a colon are hours and minutes', () => {
  for (const [offset, same] of [['+0200', '+02'], ['+0002', '+00:02'], ['-0030', '-00:30'], ['+0020', '+00:20'], ['+002', '+00:02'], ['+123', '+01:23']]) {
    for (const [kind, text] of [['timetz', '12:34'], ['timestamptz', '2026-02-28T12:34']]) {
      assert.ok(Filter.build([text + offset], { kind }).has(text + same), `${kind} ${offset}`);
    }
  }
  const filter = Filter.build(['12:34+02'], { kind: 'timetz' });
  for (const offset of ['+0200:30', '+00200', '+2']) assert.throws(() => filter.has(`12:34${offset}`), TypeError, offset);
});

test('a huge bigint is refused at once, in few words', { timeout: 10_000 }, () => {
  const huge = 1n << 100_000_000n;
  for (const integer of [huge, -huge, 1n << 100_000n]) {
    const few = { name: 'RangeError', message: /^.{1,200}$/ };
    assert.throws(() => Filter.build([integer]), few);
    assert.throws(() => Filter.build([1n]).has(integer), few);
    assert.throws(() => Filter.build([], { capacity: integer }), few);
    assert.throws(() => parameters(integer), few);
    assert.throws(() => Filter.build(['a']).has(integer), { name: 'TypeError', message: /integer/ });
  }
  assert.throws(() => Filter.build(['1'], { kind: 'numeric' }).has(huge), RangeError);
  const instant = { [Symbol.toStringTag]: 'Temporal.Instant', epochNanoseconds: 1000n * huge };
  assert.throws(() => Filter.build([instant]), { name: 'RangeError', message: /^.{1,200}$/ });
  assert.ok(Filter.build([10n ** 131_071n], { kind: 'numeric' }).has('1e131071'));
});

test('an array without members has the kind that is named', () => {
  for (const layout of ['blocked', 'classic', 'parquet']) {
    for (const array of [[], [null], [[null, null]]]) {
      const filter = Filter.build([array], { kind: 'date[]', capacity: 100, layout });
      assert.equal(filter.header.keyKind, 'array of date');
      assert.ok(filter.has(array));
      assert.ok(filter.withAll([['2026-02-28']]).has(['2026-02-28']));
      assert.ok(filter.equals(Filter.build([['2026-02-28']], { kind: 'date[]', capacity: 100, layout }).withAll([array]).intersection(filter)));
    }
  }
  assert.throws(() => Filter.build([[]]), { name: 'RangeError', message: /without members/ });
  assert.throws(() => Filter.build([[]], { kind: 'integer' }), TypeError);
});

test('an array of a kind without values is of another kind, unless it is empty', () => {
  const named = Buffer.from(Filter.build([[]], { kind: 'integer[]', capacity: 100 }).bytes());
  const name = Buffer.from('array of pg_catalog.inet');
  named.writeUInt16LE(name.length, 6);
  const stored = Buffer.concat([named.subarray(0, 44), name, named.subarray(44 + 16)]);
  const filter = Filter.parse(stored);
  assert.equal(filter.header.keyKind, 'array of pg_catalog.inet');
  assert.ok(filter.has([]));
  for (const element of [['a'], [1n], [1], [true]]) assert.throws(() => filter.has(element), TypeError);
});

test('elements of another kind are refused, and both kinds are named', () => {
  for (const [kind, [value]] of Object.entries(SAME_ELEMENTS)) {
    const filter = Filter.build([value], { kind });
    for (const [otherKind, [other]] of Object.entries(SAME_ELEMENTS)) {
      const isOther = typeof value !== typeof other || Array.isArray(value) !== Array.isArray(other);
      if (!isOther || (kind === 'numeric' && typeof other === 'bigint')) continue;
      if (kind === 'timestamptz' || (kind === 'integer' && typeof other === 'number')) continue;
      const error = { name: 'TypeError', message: new RegExp(filter.header.keyKind) };
      assert.throws(() => filter.has(other), error, `${otherKind} in ${kind}`);
      assert.throws(() => filter.hasMany([value, other]), error, `${otherKind} in ${kind}`);
      assert.throws(() => filter.withAll([other]), error, `${otherKind} in ${kind}`);
      assert.throws(() => Filter.build([other, value], { kind }), TypeError, `${otherKind}, ${kind}`);
    }
  }
  const integers = Filter.build([1n]);
  const bothNamed = { name: 'TypeError', message: /integer.*text/ };
  assert.throws(() => integers.has('one'), bothNamed);
  assert.throws(() => integers.has(1.5), { name: 'TypeError', message: /integer.*float/ });
  const numerics = Filter.build(['1'], { kind: 'numeric' });
  assert.throws(() => numerics.has(1), { name: 'TypeError', message: /numeric.*float/ });
  assert.throws(() => integers.union(Filter.build(['a'])), bothNamed);
});

test('a message names both kinds, as that of SQL does', () => {
  assert.throws(() => Filter.build([1n]).has('one'), (error) => /kind integer .*kind text/.test(error.message));
});

test('a text is not normalised', () => {
  const composed = 'caf\u00e9';
  const filter = Filter.build([composed]);
  assert.ok(filter.has(composed));
  assert.equal(filter.has(composed.normalize('NFD')), false);
});

test('a number of 32 bits is found by its value in 64 bits', () => {
  // As the server has it: 0.1::real is 0.10000000149011612.
  const filter = Filter.build([Math.fround(0.1)], { kind: 'float' });
  assert.ok(filter.has(0.10000000149011612));
  assert.equal(filter.has(0.1), false);
});

test('a Date is an instant, and no date, time or timestamp', () => {
  const instant = new Date('2026-02-28T12:34:56.789Z');
  for (const kind of ['date', 'time', 'timetz', 'timestamp', 'interval', 'text', 'integer']) {
    const filter = Filter.build([SAME_ELEMENTS[kind][0]], { kind });
    assert.throws(() => filter.has(instant), { name: 'TypeError', message: /timestamptz/ }, kind);
    assert.throws(() => Filter.build([instant], { kind }), TypeError, kind);
  }
  assert.equal(Filter.build([instant]).header.keyKind, 'timestamptz');
});

test('infinities are written as PostgreSQL writes them', () => {
  for (const kind of ['date', 'timestamp', 'timestamptz', 'interval']) {
    const filter = Filter.build(['infinity'], { kind });
    assert.deepEqual(filter.hasMany(['infinity', '-infinity', SAME_ELEMENTS[kind][0]]), [true, false, false], kind);
    assert.throws(() => filter.has('Infinite'), TypeError, kind);
  }
  const floats = Filter.build([Infinity, NaN], { kind: 'float' });
  assert.deepEqual(floats.hasMany([Infinity, -Infinity, NaN]), [true, false, true]);
  const numerics = Filter.build(['Infinity', 'NaN'], { kind: 'numeric' });
  assert.deepEqual(numerics.hasMany(['Infinity', '-Infinity', 'NaN']), [true, false, true]);
});

test('a filter of Parquet takes text and bytes alike', () => {
  const filter = Filter.build(['é'], { layout: 'parquet' });
  assert.equal(filter.header.keyKind, 'parquet BYTE_ARRAY');
  assert.ok(filter.has(new TextEncoder().encode('é')));
  assert.throws(() => filter.has(1n), TypeError);
});

test('the first element tells the kind', () => {
  assert.equal(Filter.build(['1']).header.keyKind, 'text');
  assert.equal(Filter.build([null, 1n]).header.keyKind, 'integer');
  assert.equal(Filter.build([[null], ['a']]).header.keyKind, 'array of text');
  assert.equal(Filter.build([]).header.keyKind, null);
  assert.equal(Filter.build([], { kind: 'integer' }).header.keyKind, null);
  assert.equal(Filter.build([]).has(1), false);
  assert.throws(() => Filter.build([1]), { name: 'TypeError', message: /kind/ });
  assert.throws(() => Filter.build([[1]]), { name: 'TypeError', message: /kind/ });
  assert.throws(() => Filter.build([[null]]), RangeError);
  assert.ok(Filter.build([1], { kind: 'integer' }).equals(Filter.build([1n])));
});

test('values out of range are refused', () => {
  const integers = Filter.build([2n ** 63n - 1n, -(2n ** 63n)]);
  for (const value of [2n ** 63n, '9223372036854775808', 2 ** 53, 1e300]) {
    assert.throws(() => integers.has(value), RangeError, String(value));
  }
  const refused = {
    date: ['2026-02-29', '2026-13-01', '0000-01-01', '5874898-01-01'],
    timestamp: ['2026-02-28T24:00:01', '2026-02-28T12:60:00', '294277-01-01 00:00:00'],
    timestamptz: ['2026-02-28T12:00:00+16', new Date(NaN), { ...new Date() }, '2026-02-28T12:00:00.1234567Z'],
    time: ['24:00:01', '12:00:60'],
    interval: ['P3000000000M', 'PT99999999999999999H'],
    numeric: ['1e200000'],
    text: ['\ud800', `${'a'.repeat(60)}\udc00`],
  };
  for (const [kind, values] of Object.entries(refused)) {
    const filter = Filter.build([SAME_ELEMENTS[kind][0]], { kind });
    for (const value of values) {
      const expected = Object.getPrototypeOf(value) === Object.prototype ? TypeError : RangeError;
      assert.throws(() => filter.has(value), expected, `${kind} ${String(value)}`);
    }
  }
  // Without a kind, none is named.
  assert.throws(() => Filter.build([new Date(-8.64e15)]), { name: 'RangeError', message: 'element is out of range' });
  const instant = { [Symbol.toStringTag]: 'Temporal.Instant', epochNanoseconds: 10n ** 40n };
  assert.throws(() => Filter.build([instant]), { name: 'RangeError', message: /nanoseconds is out of range/ });
  assert.throws(() => Filter.build([[[1n], [2n, 3n]]]), RangeError);
  assert.throws(() => Filter.build([[1n, [2n]]]), RangeError);
});

test('text that is written otherwise is of another kind', () => {
  const written = {
    date: ['28.02.2026', '2026-2-28', ''],
    timestamp: ['2026-02-28', '2026-02-28T12:00Z'],
    timestamptz: ['2026-02-28T12:00', '2026-02-28T12:00:00 UTC'],
    time: ['1:00', '12:00Z'],
    timetz: ['12:00'],
    interval: ['P', 'PT', '1 week', '', 'P1.5D', '1 day '],
    uuid: ['a0eebc99', '{a0eebc999c0b4ef8bb6d6bb9bd380a11', 'a0-eebc999c0b4ef8bb6d6bb9bd380a11'],
  };
  for (const [kind, texts] of Object.entries(written)) {
    const filter = Filter.build([SAME_ELEMENTS[kind][0]], { kind });
    for (const text of texts) {
      assert.throws(() => filter.has(text), { name: 'TypeError', message: /text/ }, `${kind} ${text}`);
    }
  }
});

test('what is no element is refused', () => {
  const filter = Filter.build(['a']);
  for (const value of [undefined, Symbol('a'), () => 1, {}, new Map(), new Float64Array(1), Object('a')]) {
    assert.throws(() => filter.has(value), TypeError);
    assert.throws(() => filter.hasMany([value]), TypeError);
    assert.throws(() => Filter.build([value]), TypeError);
  }
  assert.equal(filter.has(null), false);
});

test('one value is no list', () => {
  const filter = Filter.build(['a']);
  for (const value of ['a', new Uint8Array(1), Buffer.from('a'), 7, null, undefined, {}]) {
    assert.throws(() => filter.hasMany(value), TypeError);
    assert.throws(() => filter.withAll(value), TypeError);
    assert.throws(() => Filter.build(value), TypeError);
  }
  assert.deepEqual(filter.hasMany(new Set(['a'])), [true]);
  assert.deepEqual(filter.hasMany((function* () { yield 'a'; })()), [true]);
});

test('options are checked', () => {
  for (const options of [
    { capacity: 10.5 }, { capacity: 0 }, { capacity: -1n }, { capacity: 2n ** 63n }, { capacity: NaN },
    { fpr: 0 }, { fpr: 0.6 }, { fpr: NaN }, { fpr: 1e-7, layout: 'parquet' },
    { layout: 'blokced' }, { kind: 'jsonb' }, { kind: 'txt' }, { kind: '' }, { capacity: 1e12 },
  ]) {
    assert.throws(() => Filter.build([], options), RangeError, JSON.stringify(options, String));
  }
  for (const options of [
    { capacity: '10' }, { fpr: '0.1' }, { layout: 1 }, { kind: 1 }, { capcity: 10 }, null, 'blocked',
  ]) {
    assert.throws(() => Filter.build([], options), TypeError, JSON.stringify(options));
  }
  const inherited = Filter.build([], Object.create({ capacity: 7 }));
  assert.equal(inherited.header.capacity, 7);
  // Options that other code has given to all objects.
  const polluted = { capacity: 7, fpr: 0.5, layout: 'classic', kind: 'integer' };
  Object.assign(Object.prototype, polluted);
  try {
    assert.ok(Filter.build(['a']).equals(Filter.build(['a'], { capacity: null, fpr: 0.01, layout: 'blocked', kind: null })));
    assert.equal(Filter.build(['a'], { capacity: 9 }).header.capacity, 9);
  } finally {
    for (const name of Object.keys(polluted)) delete Object.prototype[name];
  }
  for (const name of ['layout', 'kind']) {
    assert.throws(() => Filter.build([], { [name]: 'x'.repeat(1e6) }), { name: 'RangeError', message: /^.{1,200}$/ });
  }
  assert.throws(() => Filter.build([], { capacity: 2 ** 53 }), { name: 'RangeError', message: /bigint/ });
  assert.throws(() => Filter.build([1n]).resize(0), RangeError);
  assert.throws(() => Filter.build([1n]).union(7), TypeError);
  assert.throws(() => new Filter(), TypeError);
});

test('filters are values', () => {
  const filter = Filter.build(['a', 'b'], { capacity: 100 });
  const bytes = filter.bytes();
  assert.ok(Filter.parse(bytes).equals(filter));
  assert.ok(Filter.parse(filter.hex()).equals(filter));
  assert.ok(Filter.parse(`${filter.hex().toUpperCase().replace('\\X', '\\x')}\n`).equals(filter));
  assert.ok(Filter.parse(JSON.parse(JSON.stringify({ filter })).filter).equals(filter));
  assert.equal(filter.toPostgres(), filter.hex());
  bytes.fill(0);
  assert.ok(filter.has('a'));
  const given = filter.bytes();
  const parsed = Filter.parse(given);
  given.fill(0);
  assert.ok(parsed.has('a'));
  assert.equal(filter.equals(Filter.build(['a'], { capacity: 100 })), false);
  assert.equal(filter.equals(bytes), false);
  for (const other of [null, undefined, 7, Object.create(Filter.prototype), new Proxy(filter, {})]) {
    assert.equal(filter.equals(other), false);
    assert.throws(() => filter.union(other), { name: 'TypeError', message: /merged with another Filter/ });
  }
  assert.deepEqual(filter.header, {
    formatVersion: 1, layout: 'blocked', keyKind: 'text', representation: 'sparse', capacity: 100,
    targetFpr: 0.01, numBits: 1024, numHashes: 6, bytes: 60,
  });
  assert.equal(filter.info().cardinality, filter.cardinality);
  assert.equal(filter.info().currentFpr, filter.fpr);
});

test('filters are merged and resized into new ones', () => {
  const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => BigInt(from + i));
  const low = Filter.build(numbers(0, 500), { capacity: 1000 });
  const high = Filter.build(numbers(400, 1000), { capacity: 1000 });
  assert.ok(low.union(high).equals(Filter.build(numbers(0, 1000), { capacity: 1000 })));
  assert.ok(low.withAll(numbers(400, 1000)).equals(low.union(high)));
  assert.ok(low.intersection(high).hasMany(numbers(400, 500)).every(Boolean));
  const sparse = Filter.build([1n], { capacity: 1000 });
  assert.equal(sparse.resize(777).header.capacity, 777);
  assert.ok(sparse.resize().header.bytes <= sparse.header.bytes);
  assert.throws(() => low.resize(), RangeError);
  assert.throws(() => low.union(Filter.build([1n], { capacity: 1000, fpr: 0.1 })), RangeError);
  assert.equal(low.overfull, false);
  assert.equal(Filter.build(numbers(0, 5000), { capacity: 1000 }).overfull, true);
});

test('bytes that are no filter are refused', () => {
  for (const stored of ['', '\\x', '\\x0', '\\x00', '\\xzz', 'abc', new Uint8Array(0), new Uint8Array(60)]) {
    assert.throws(() => Filter.parse(stored), FormatError);
    assert.throws(() => Filter.parse(stored), { name: 'FormatError', message: /invalid|version/ });
  }
  for (const stored of [7, null, undefined, [1], new ArrayBuffer(8)]) {
    assert.throws(() => Filter.parse(stored), TypeError);
  }
});

test('sizes are told', () => {
  assert.deepEqual(Object.keys(parameters(1000)), ['numBits', 'numHashes', 'bytes', 'fpr']);
  assert.equal(parameters(1000n, 0.01, 'classic').numHashes, 7);
  assert.ok(parameters(1000, 0.001).fpr <= 0.001);
  assert.deepEqual(Object.keys(bestPractices(0.01)), ['bitsPerElement', 'numHashes', 'fpr']);
  assert.ok(expectedFpr(100, 1000, 7) < 0.01);
  const capacity = capacityForBytes(1_000_000);
  assert.ok(parameters(capacity).bytes <= 1_000_000);
  assert.ok(parameters(capacity + 1).bytes > 1_000_000);
  for (const sizing of [
    () => parameters(0), () => parameters(1.5), () => parameters(10, 2), () => parameters(1, 0.1, 'x'),
    () => bestPractices(0), () => expectedFpr(1, 0, 1), () => expectedFpr(1, 100, 65),
    () => expectedFpr(-1, 100, 1), () => capacityForBytes(10),
  ]) {
    assert.throws(sizing, RangeError);
  }
  for (const sizing of [() => parameters('1'), () => bestPractices('1'), () => capacityForBytes(null)]) {
    assert.throws(sizing, TypeError);
  }
});

/** Returns values in which types, long and short texts, and what needs more than ASCII, alternate. */
function* mixed() {
  const texts = ['', 'a', 'key 1', 'é€😀', 'x'.repeat(47), 'x'.repeat(48), 'y'.repeat(70_000), '2'];
  for (let round = 0; round < 400; round++) {
    const runs = [1, 2, 3, round % 40];
    for (let i = 0; i < runs[round % 4]; i++) yield texts[(round + i) % texts.length];
    for (let i = 0; i < runs[(round + 1) % 4]; i++) yield `${round} ${i}`;
    if (round % 3 === 0) yield null;
  }
}

test('a list has the elements that its members have one by one', () => {
  const count = 10_000;
  const numbers = Array.from({ length: count }, (_, i) => i * 37 - 5_000);
  const lists = {
    text: [[...mixed()], numbers.map((i) => `key ${i}`), numbers.map((i) => (i % 500 === 0 ? `é ${i}` : `${i}`))],
    integer: [
      numbers,
      numbers.map(BigInt),
      numbers.map((i) => [i, BigInt(i), String(i), null][i & 3]),
      [-(2n ** 63n), 2n ** 63n - 1n, Number.MAX_SAFE_INTEGER, -0],
    ],
    float: [numbers.map((i) => i / 7), [NaN, -0, 0, Infinity, -Infinity, 5e-324]],
    numeric: [[1n, 2n ** 64n, -(2n ** 64n), '1.50', 3n, null, 10n ** 100n, '4'], numbers.map(BigInt)],
    boolean: [[true, false, null, true]],
    date: [numbers.map((i) => new Date(i * 864e5).toISOString().slice(0, 10))],
    'integer[]': [[[1, 2], [3n, null], [], [[1], [2]]]],
  };
  for (const layout of ['blocked', 'classic', 'parquet']) {
    for (const [kind, listsOfKind] of Object.entries(lists)) {
      if (layout === 'parquet' && /numeric|boolean/.test(kind)) continue;
      for (const list of listsOfKind) {
        const options = { kind, layout, capacity: 2 * list.length };
        const filter = Filter.build(list, options);
        assert.ok(filter.equals(Filter.build(list.values(), options)), kind);
        const half = list.slice(0, list.length / 2);
        assert.ok(Filter.build(half, options).withAll(list).equals(filter), kind);
        const answers = Filter.build(half, options).hasMany(list);
        assert.deepEqual(answers, Filter.build(half, options).hasMany(list.values()), kind);
        const few = list.slice(0, 300);
        assert.deepEqual(filter.hasMany(few), few.map((element) => filter.has(element)), kind);
      }
    }
  }
});

test('what is refused in a list is refused wherever it stands', () => {
  const texts = Array.from({ length: 5_000 }, (_, i) => `key ${i}`);
  const filter = Filter.build(texts);
  for (const place of [0, 1, 4_095, 4_096, 4_999]) {
    for (const [value, error] of [['\ud800', RangeError], [undefined, TypeError], [1n, TypeError], [1, TypeError]]) {
      const list = Array.from(texts, (text, i) => (i === place ? value : text));
      assert.throws(() => filter.hasMany(list), error);
      assert.throws(() => Filter.build(list, { kind: 'text' }), error);
    }
  }
  const integers = texts.map((_, i) => i);
  for (const [value, error] of [[0.5, TypeError], [2 ** 53, RangeError], [2n ** 63n, RangeError], ['x', TypeError]]) {
    assert.throws(() => Filter.build(integers, { kind: 'integer' }).hasMany([...integers, value]), error);
    assert.throws(() => Filter.build([...integers.map(BigInt), value]), error);
  }
  assert.throws(() => filter.hasMany(['a', , 'b']), TypeError);
});

test('each value of a list is read once, where runs end as well', () => {
  const texts = Array.from({ length: 5_000 }, (_, i) => `key ${i}`);
  const lists = [
    ['text', texts],
    ['integer', texts.map((_, i) => i)],
    ['integer', texts.map((_, i) => BigInt(i))],
    ['integer', texts.map((_, i) => [i, BigInt(i), String(i)][i % 3])],
  ];
  for (const [kind, values] of lists) {
    const reads = new Uint32Array(values.length);
    const list = [...values];
    for (let i = 0; i < list.length; i += 63) {
      Object.defineProperty(list, i, { get: () => (reads[i]++, values[i]), enumerable: true });
    }
    assert.ok(Filter.build(list, { kind }).equals(Filter.build(values, { kind })));
    assert.ok(list.every((_, i) => reads[i] <= 2), 'every reads once more');
    assert.ok([...reads].every((count, i) => count === (i % 63 === 0 ? 2 : 0)));
  }
  // A list that becomes shorter or longer while it is read ends where it ends.
  const shrinking = ['a', 'b', 'c'];
  Object.defineProperty(shrinking, 1, { get: () => ((shrinking.length = 2), 'b') });
  assert.ok(Filter.build(shrinking).equals(Filter.build(['a', 'b'])));
  for (const place of [0, 1, 2, 4_095, 4_096, 4_097]) {
    const truncated = [...Array(place).fill(7), '3', 4];
    const get = () => {
      Object.defineProperty(truncated, place, { value: 0, configurable: true });
      truncated.length = place;
      return '3';
    };
    Object.defineProperty(truncated, place, { get, configurable: true });
    assert.ok(Filter.build(truncated, { kind: 'integer' }).has(3), String(place));
  }
  const growing = ['a', 'b'];
  Object.defineProperty(growing, 1, { get: () => (growing.push('c'), 'b') });
  assert.ok(Filter.build(growing).equals(Filter.build(['a', 'b', 'c'])));
});

test('a value that no element can be is refused as others of its type are', () => {
  const elements = {
    text: 'a',
    integer: 1n,
    bytea: new Uint8Array(1),
    date: '2026-02-28',
    timestamptz: '2026-02-28T12:00:00Z',
    'array of text': ['a'],
    'array of timestamptz': ['2026-02-28T12:00:00Z'],
  };
  const instant = (epochNanoseconds) => ({ [Symbol.toStringTag]: 'Temporal.Instant', epochNanoseconds });
  const impossible = {
    text: ['\ud800', `${'a'.repeat(60)}\udc00`],
    timestamptz: [new Date(NaN), new Date(-8.64e15), instant(1n), instant(10n ** 40n)],
  };
  for (const [kind, element] of Object.entries(elements)) {
    const filter = Filter.build([element], { kind });
    for (const [type, values] of Object.entries(impossible)) {
      for (const value of values) {
        for (const [given, kindOfGiven] of [[value, type], [[value], `array of ${type}`]]) {
          const expected = kindOfGiven === kind ? RangeError : TypeError;
          const message = `${kind}: ${kindOfGiven} ${String(value)}`;
          assert.throws(() => filter.has(given), expected, message);
          assert.throws(() => filter.hasMany([element, given]), expected, message);
          assert.throws(() => filter.withAll([given]), expected, message);
          assert.throws(() => Filter.build([given], { kind }), expected, message);
        }
      }
    }
  }
  for (const value of ['\ud800', ['\ud800'], new Date(NaN), [null, new Date(NaN)]]) {
    assert.throws(() => Filter.build([value]), RangeError);
    assert.throws(() => Filter.build([]).has(value), RangeError);
  }
});

test('a list with an iterator of its own is read by it', () => {
  class Twice extends Array {
    *[Symbol.iterator]() {
      for (let i = 0; i < this.length; i++) yield `${this[i]}${this[i]}`;
    }
  }
  assert.ok(Filter.build(Twice.of('a', 'b')).has('aa'));
  const own = ['a'];
  own[Symbol.iterator] = () => ['b'].values();
  assert.deepEqual(Filter.build(['b']).hasMany(own), [true]);
  const changing = new Proxy(['a', 'b'], { get: (list, name) => (name === '1' ? Math.random() : list[name]) });
  assert.throws(() => Filter.build(changing), TypeError);
});

test('a filter of Parquet takes texts and bytes in any order, whichever kind is named', () => {
  const bytes = new Uint8Array([98]);
  for (const kind of ['text', 'bytea', undefined]) {
    const filters = [['a', bytes], [bytes, 'a']].map((list) => Filter.build(list, { layout: 'parquet', kind }));
    assert.ok(filters[0].equals(filters[1]), kind);
    assert.deepEqual(filters[0].hasMany(['a', 'b', bytes, new Uint8Array([97])]), [true, true, true, true]);
    assert.throws(() => Filter.build([1n], { layout: 'parquet', kind: kind ?? 'text' }), TypeError);
  }
  for (const [kind, other] of [['text', bytes], ['bytea', 'a']]) {
    assert.throws(() => Filter.build([other], { kind }), TypeError, kind);
  }
});

test('the longest text may stand anywhere in a list', () => {
  const filter = Filter.build(['a']);
  const text = 'x'.repeat(2 ** 29 - 24);
  assert.deepEqual(filter.hasMany(['a', text, 'b']), [true, false, false]);
  assert.deepEqual(filter.hasMany(new Set([text, 'a'])), [false, true]);
});

test('the class of errors stands whatever was frozen, and what messages cut ends with an ellipsis', () => {
  const program = `
    const { Filter, FormatError } = require('pg-bloom');
    Object.freeze(Error.prototype);
    try { Filter.parse('x'); } catch (error) { console.log(error instanceof FormatError, error.name, String(error)); }
  `;
  const printed = execFileSync(process.execPath, ['--eval', program], { cwd: new URL('..', import.meta.url), encoding: 'utf8' });
  assert.match(printed, /^true FormatError FormatError: invalid bloom filter/);
  const numerics = Filter.build(['1'], { kind: 'numeric' });
  assert.throws(() => numerics.has(10n ** 131_072n), { name: 'RangeError', message: /"10{39}…" is out of range/ });
});

test('a text that is no number is not out of range', () => {
  const filter = Filter.build(['1'], { kind: 'numeric' });
  for (const text of ['2020-02-29', '1-', '--1', '1.2.3', '1e', 'e5', '.', '-', '+.e1', '1e5.', '1e5e5', '', 'x']) {
    assert.throws(() => filter.has(text), { name: 'TypeError', message: /is not written like/ }, text);
  }
  for (const text of ['1e200000', `${'9'.repeat(140_000)}`, '-1.5E+999999', `.${'1'.repeat(20_000)}`]) {
    assert.throws(() => filter.has(text), { name: 'RangeError', message: /out of range/ }, text.slice(0, 20));
  }
});

test('what an object says of itself does not change what it has', () => {
  const withIterator = (members, given) => {
    const array = [...members];
    array[Symbol.iterator] = () => given.values();
    return array;
  };
  const arrays = Filter.build([[5n], [5n, 6n]]);
  assert.deepEqual(arrays.hasMany([withIterator([7n], [5n, 6n]), withIterator([5n], [])]), [false, true]);
  assert.ok(Filter.build([withIterator([7n, 7n], [5n]), [6n]]).hasMany([[7n, 7n], [6n]]).every(Boolean));

  const bytes = Filter.build([new Uint8Array([1, 2, 3])]);
  for (const length of [0, 1, 100, NaN, 2 ** 32, '3']) {
    const lying = Object.defineProperty(new Uint8Array([1, 2, 3]), 'length', { value: length });
    assert.deepEqual(bytes.hasMany([lying, lying]), [true, true]);
    const stored = Object.defineProperty(bytes.bytes(), 'length', { value: length });
    assert.ok(Filter.parse(stored).equals(bytes));
  }
  const tagged = Object.defineProperty(new Uint8Array([1, 2, 3]), Symbol.toStringTag, { value: 'Other' });
  assert.ok(bytes.has(tagged));
  const lying = Object.defineProperty(new Int32Array([1, 2, 3]), Symbol.toStringTag, { value: 'Uint8Array' });
  assert.throws(() => bytes.has(lying), TypeError);
  assert.throws(() => bytes.has({ constructor: { name: Symbol('name') } }), { name: 'TypeError', message: /^object cannot/ });

  let reads = 0;
  const list = ['é', 'ü'];
  Object.defineProperty(list, 1, { get: () => `é ${reads++}` });
  assert.deepEqual(Filter.build(list).hasMany(['é 0', 'é 1']), [true, false]);
});

test('there are these names, and none that changes a filter', () => {
  const methods = Object.getOwnPropertyNames(Filter.prototype).sort();
  assert.deepEqual(methods, [
    'bytes', 'cardinality', 'constructor', 'equals', 'fpr', 'has', 'hasMany', 'header', 'hex', 'info', 'intersection',
    'overfull', 'resize', 'toJSON', 'toPostgres', 'toString', 'union', 'withAll',
  ]);
  const functions = Object.getOwnPropertyNames(Filter).filter((name) => typeof Filter[name] === 'function');
  assert.deepEqual(functions.sort(), ['build', 'parse']);

  const filter = Filter.build(['a'], { capacity: 100 });
  const before = filter.hex();
  filter.withAll(['b']);
  filter.union(Filter.build(['c'], { capacity: 100 }));
  filter.resize(10);
  assert.equal(filter.hex(), before);
  assert.ok(Object.isFrozen(filter.header));
});

test('import and require have one class', () => {
  const required = createRequire(import.meta.url)('pg-bloom');
  assert.equal(required.Filter, Filter);
  assert.equal(required.FormatError, FormatError);
});
