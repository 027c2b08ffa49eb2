// Compares the time of a million elements with that of the package for Python, in one run:
//
//   pip install ./python          in an environment, so that its code is optimized as a release is
//   node js/tests/speed.mjs PYTHON
//
// The times are of the processor, in nanoseconds for an element, and the least of five. Short texts are meant to take at most
// 1.5 times as long as in Python, numbers at most as long.

import { execFileSync } from 'node:child_process';
import { Filter } from 'pg-bloom';

const ELEMENTS = 1_000_000;
const ROUNDS = 5;

const IN_PYTHON = `
import json, time
from pg_bloom import Filter

def least(work):
    times = []
    for _ in range(${ROUNDS}):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1e9 / ${ELEMENTS}

def times(elements):
    filter = Filter.build(elements, capacity=${ELEMENTS})
    return {
        "build": least(lambda: Filter.build(elements, capacity=${ELEMENTS})),
        "hasMany": least(lambda: filter.contains_many(elements)),
    }

integers = list(range(${ELEMENTS}))
print(json.dumps({
    "short texts": times([f"key {i}" for i in integers]),
    "URLs": times([f"https://example.com/articles/{i}?page=2" for i in integers]),
    "integers": times(integers),
    "floats": times([i / 7 for i in integers]),
}))
`;

/** Returns the least time of some calls, in nanoseconds for an element. */
function least(work) {
  let shortest = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(start);
    shortest = Math.min(shortest, user + system);
  }
  return (shortest * 1000) / ELEMENTS;
}

function times(elements, kind) {
  const options = { capacity: ELEMENTS, kind };
  const filter = Filter.build(elements, options);
  return {
    build: least(() => Filter.build(elements, options)),
    hasMany: least(() => filter.hasMany(elements)),
  };
}

const numbers = Array.from({ length: ELEMENTS }, (_, i) => i);
const here = {
  'short texts': times(numbers.map((i) => `key ${i}`)),
  URLs: times(numbers.map((i) => `https://example.com/articles/${i}?page=2`)),
  integers: times(numbers, 'integer'),
  bigints: times(numbers.map(BigInt), 'integer'),
  floats: times(numbers.map((i) => i / 7), 'float'),
};
const [python = 'python3'] = process.argv.slice(2);
const there = JSON.parse(execFileSync(python, ['-c', IN_PYTHON], { encoding: 'utf8' }));
there.bigints = there.integers;

const rows = Object.entries(here).flatMap(([elements, methods]) =>
  Object.entries(methods).map(([method, time]) => {
    const inPython = there[elements][method];
    return { elements, method, JavaScript: time, Python: inPython, ratio: time / inPython };
  }),
);
console.table(rows.map((row) => ({ ...row, JavaScript: Math.round(row.JavaScript), Python: Math.round(row.Python), ratio: row.ratio.toFixed(2) })));
