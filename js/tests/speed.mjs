// Compares this package's times with those of the package for Python, each measured in turn with the other:
//
//   pip install ./python                   in an environment, so that its code is optimized as a release is
//   node js/tests/speed.mjs PYTHON [TURNS]
//
// The times are of the processor: for a million elements, in nanoseconds for each; for a filter of a million elements, in
// microseconds. A turn is a process of its own, which takes the median of seven calls; the table has the median of the turns.
// On a busy machine ELEMENTS may be fewer than a million. A million short texts are meant to take at most 1.5 times as long as in Python, integers and floats at most as long.
//
// The last line has the time, in milliseconds, from the beginning of the import to the first answer, in new processes; it is meant to be at most 80.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Filter } from 'pg-bloom';

const ELEMENTS = Number(process.env.ELEMENTS ?? 1_000_000);
const CALLS = 7;
/** How much longer than in Python calls with many elements may take. */
const BARS = { 'short texts': 1.5, integers: 1, bigints: 1, floats: 1 };

const IN_PYTHON = `
import json, time
from pg_bloom import Filter

def seconds(work):
    times = []
    for _ in range(${CALLS}):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return sorted(times)[${CALLS} // 2]

def each(filter, elements):
    for element in elements:
        element in filter

def of_elements(elements):
    filter = Filter.build(elements, capacity=${ELEMENTS})
    half = Filter.build(elements[:${ELEMENTS} // 2], capacity=${ELEMENTS})
    work = {
        "build": lambda: Filter.build(elements, capacity=${ELEMENTS}),
        "withAll": lambda: half.add_all(elements),
        "hasMany": lambda: filter.contains_many(elements),
        "has": lambda: each(filter, elements),
    }
    return {name: seconds(call) * 1e9 / ${ELEMENTS} for name, call in work.items()}

def of_filter(filter):
    stored = bytes(filter)
    text = "\\\\x" + stored.hex()
    work = {
        "parse bytes": lambda: Filter(stored),
        "parse text": lambda: Filter(text),
        "bytes": lambda: bytes(filter),
        "hex": lambda: "\\\\x" + bytes(filter).hex(),
    }
    return {name: seconds(call) * 1e6 for name, call in work.items()}

integers = list(range(${ELEMENTS}))
texts = [f"key {i}" for i in integers]
print(json.dumps({
    "short texts": of_elements(texts),
    "URLs": of_elements([f"https://example.com/articles/{i}?page=2" for i in integers]),
    "integers": of_elements(integers),
    "bigints": of_elements(integers),
    "floats": of_elements([i / 7 for i in integers]),
    "a filter": of_filter(Filter.build(texts, capacity=${ELEMENTS})),
}))
`;

function median(times) {
  return [...times].sort((a, b) => a - b)[times.length >> 1];
}

/** Returns the median time of some calls, in microseconds. */
function microseconds(work) {
  const times = [];
  for (let call = 0; call < CALLS; call++) {
    const start = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(start);
    times.push(user + system);
  }
  return median(times);
}

function askEach(filter, elements) {
  let found = 0;
  for (const element of elements) found += Number(filter.has(element));
  return found;
}

function timesOfElements(elements, kind) {
  const options = { capacity: ELEMENTS, kind };
  const filter = Filter.build(elements, options);
  const half = Filter.build(elements.slice(0, ELEMENTS / 2), options);
  const work = {
    build: () => Filter.build(elements, options),
    withAll: () => half.withAll(elements),
    hasMany: () => filter.hasMany(elements),
    has: () => askEach(filter, elements),
  };
  return timesOf(work, 1000 / ELEMENTS);
}

function timesOfFilter(filter) {
  const bytes = filter.bytes();
  const text = filter.hex();
  const work = {
    'parse bytes': () => Filter.parse(bytes),
    'parse text': () => Filter.parse(text),
    bytes: () => filter.bytes(),
    hex: () => filter.hex(),
  };
  return timesOf(work, 1);
}

/** Returns the times of calls by their names. `unit` is what a microsecond counts. */
function timesOf(work, unit) {
  return Object.fromEntries(
    Object.entries(work).map(([name, call]) => [name, microseconds(call) * unit]),
  );
}

function timesHere() {
  const numbers = Array.from({ length: ELEMENTS }, (_, i) => i);
  const texts = numbers.map((i) => `key ${i}`);
  return {
    'short texts': timesOfElements(texts),
    URLs: timesOfElements(numbers.map((i) => `https://example.com/articles/${i}?page=2`)),
    integers: timesOfElements(numbers, 'integer'),
    bigints: timesOfElements(numbers.map(BigInt), 'integer'),
    floats: timesOfElements(numbers.map((i) => i / 7), 'float'),
    'a filter': timesOfFilter(Filter.build(texts, { capacity: ELEMENTS })),
  };
}

/** Returns the time from the beginning of the import to the first answer in a new process, in ms. */
function loadingTime() {
  const program = `
    const start = performance.now();
    const { Filter } = await import('pg-bloom');
    Filter.build(['a']).has('a');
    console.log(performance.now() - start);
  `;
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const args = ['--input-type=module', '--eval', program];
  return Number(execFileSync(process.execPath, args, { cwd, encoding: 'utf8' }));
}

function compare(python, numTurns) {
  const program = fileURLToPath(import.meta.url);
  const turns = Array.from({ length: numTurns }, () => ({
    here: JSON.parse(execFileSync(process.execPath, [program, '--here'], { encoding: 'utf8' })),
    there: JSON.parse(execFileSync(python, ['-c', IN_PYTHON], { encoding: 'utf8' })),
  }));
  const rows = [];
  for (const [of, methods] of Object.entries(turns[0].here)) {
    for (const method of Object.keys(methods)) {
      const here = median(turns.map((turn) => turn.here[of][method]));
      const there = median(turns.map((turn) => turn.there[of][method]));
      const ratio = median(turns.map((turn) => turn.here[of][method] / turn.there[of][method]));
      const bar = method === 'has' ? undefined : BARS[of];
      rows.push({
        of, method, JavaScript: Math.round(here), Python: Math.round(there), ratio: ratio.toFixed(2), bar: bar ?? '',
      });
    }
  }
  console.table(rows);
  console.log(`loading: ${median(Array.from({ length: CALLS }, loadingTime)).toFixed(1)} ms`);
}

const [python = 'python3', numTurns = '5'] = process.argv.slice(2);
if (python === '--here') console.log(JSON.stringify(timesHere()));
else compare(python, Number(numTurns));
