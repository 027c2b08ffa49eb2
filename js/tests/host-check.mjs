// What every host must do alike: js/tests/hosts.test.mjs runs this in each of them.

/** Fails unless the package that a host has loaded gives the answers that it has in Node. */
export function check({ Filter, FormatError, parameters }) {
  const texts = Filter.build(['a', 'é€😀'], { capacity: 1000, fpr: 0.001 });
  expect(texts.hex(), SEEN);
  const parsed = Filter.parse(SEEN);
  expect(String(parsed.hasMany(['a', 'é€😀', 'b'])), 'true,true,false');
  expect(parsed.equals(texts) && Filter.parse(texts.bytes()).has('a'), true);
  expect(parsed.header.keyKind, 'text');
  expect(parameters(1000, 0.01).numHashes, 6);

  const integers = Filter.build([2n ** 63n - 1n, -7, '12'], { kind: 'integer' });
  expect(String(integers.hasMany([9223372036854775807n, -7n, 12, 13])), 'true,true,true,false');
  expect(Filter.build(['2026-02-28'], { kind: 'date' }).has('2026-02-28'), true);
  const many = Filter.build(Array.from({ length: 20_000 }, (_, i) => `element ${i}`));
  expect(many.has('element 19999') && many.union(many).equals(many), true);

  expect(nameOfError(() => integers.has('a text')), 'TypeError');
  expect(nameOfError(() => texts.has(7n)), 'TypeError');
  expect(nameOfError(() => Filter.parse(SEEN.slice(0, 40))), 'FormatError');
  expect(nameOfError(() => Filter.parse(new Uint8Array(60))), 'FormatError');
  expect(new FormatError('x') instanceof Error, true);
  // The module traps where the stack ends, and another instance takes over.
  const dive = () => [texts.has('a'), dive()];
  expect(nameOfError(dive), 'RangeError');
  expect(texts.has('a') && !texts.has('b'), true);
  return 'the package works';
}

// The two texts of the first filter.
const SEEN =
  '\\x01010200090100001f000000000000001f00000000000000e803000000000000fca9f1d24d62503f' +
  '0000000071fb2b7bbba253835b6e8ca9f1c44ed2';

function expect(actual, expected) {
  if (actual !== expected) throw new Error(`${actual} where ${expected} was expected`);
}

function nameOfError(work) {
  try {
    work();
  } catch (error) {
    return error.name;
  }
  return 'no error';
}
