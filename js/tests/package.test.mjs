// The files of the package: how large they are, and that each loads where it is meant for.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import vm from 'node:vm';
import { constants, deflateRawSync, gzipSync } from 'node:zlib';

const NAMES = ['Filter', 'FormatError', 'bestPractices', 'capacityForBytes', 'expectedFpr', 'parameters'];

function file(name) {
  return readFileSync(new URL(`../dist/${name}`, import.meta.url));
}

function source(name) {
  return readFileSync(new URL(`../loader/${name}.js`, import.meta.url), 'utf8');
}

function compressedBytes(name) {
  return gzipSync(file(name), { level: 9 }).length;
}

test('files are small', () => {
  assert.ok(compressedBytes('pg_bloom.wasm') <= 90_000, String(compressedBytes('pg_bloom.wasm')));
  for (const name of ['inline.cjs', 'inline.mjs', 'script.js']) {
    assert.ok(compressedBytes(name) <= 120_000, `${name}: ${compressedBytes(name)}`);
  }
});

test('every type of block is inflated', () => {
  const inflate = new Function(`${source('inflate').replace('export function', 'function')}; return inflate;`)();
  const bytes = new Uint8Array(70_000).map((_, i) => (i * i) >> 7);
  for (const options of [{ level: 0 }, { level: 9, strategy: constants.Z_FIXED }, { level: 9 }]) {
    for (const length of [0, 1, 100, bytes.length]) {
      const part = bytes.subarray(0, length);
      assert.deepEqual(inflate(deflateRawSync(part, options), length), part);
    }
  }
});

test('the module imports nothing', () => {
  assert.deepEqual(WebAssembly.Module.imports(new WebAssembly.Module(file('pg_bloom.wasm'))), []);
});

test('bundlers get the inlined module', async () => {
  const inline = await import('../dist/inline.mjs');
  assert.deepEqual(Object.keys(inline).sort(), NAMES);
  assert.ok(inline.Filter.build(['a']).has('a'));
});

test('a classic script has one global', () => {
  const page = vm.createContext({ WebAssembly, TextEncoder, TextDecoder, atob });
  vm.runInContext(file('script.js').toString(), page);
  assert.equal(vm.runInContext('pgBloom.Filter.build(["a"]).has("a")', page), true);
  assert.deepEqual(vm.runInContext('Object.keys(pgBloom).sort().join()', page), NAMES.join());
});

test('a host that compiles modules gets the module', async () => {
  const compiled = new WebAssembly.Module(file('pg_bloom.wasm'));
  for (const [entry, imported] of [['worker.mjs', './pg_bloom.wasm'], ['edge.mjs', './pg_bloom.wasm?module']]) {
    const text = file(entry).toString();
    const importLine = `import imported from '${imported}';`;
    assert.ok(text.includes(importLine), entry);
    // Node imports no compiled module: the rest of the entry is run with one.
    const run = text.replace(importLine, '').replace(/^export \{(.*)\};$/m, 'return {$1};');
    const { Filter } = new Function('imported', run)(compiled);
    assert.ok(Filter.build(['a']).has('a'), entry);
  }
});

test('every file that package.json names is there', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const paths = JSON.stringify(manifest.exports).match(/(?<=:")\.\/[\w./]+/g);
  assert.ok(paths.length > 8);
  for (const path of [...paths, 'LICENSE', 'README.md']) {
    assert.ok(readFileSync(new URL(`../${path}`, import.meta.url)).length > 0, path);
  }
});
