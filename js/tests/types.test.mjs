// The types of index.d.ts accept what works, and refuse what doesn't.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

/** Returns the path of TypeScript's compiler, if it is installed. */
function compiler() {
  try {
    const manifest = createRequire(import.meta.url).resolve('typescript/package.json');
    return join(dirname(manifest), 'bin', 'tsc');
  } catch {
    return undefined;
  }
}

const tsc = compiler();
const skip = tsc === undefined && 'TypeScript is not installed: scripts/setup js';

test('programs have the types that they should', { skip }, () => {
  const program = fileURLToPath(new URL('types.mts', import.meta.url));
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--skipLibCheck'];
  const { stdout } = spawnSync(process.execPath, [tsc, ...options, program], { encoding: 'utf8' });
  assert.equal(stdout, '');
});

test('what is exported is documented', () => {
  const lines = readFileSync(new URL('../index.d.ts', import.meta.url), 'utf8').split('\n');
  const declared = lines.flatMap((line, i) => (/^export |^  (static )?[a-zA-Z]+\(/.test(line) ? [i] : []));
  const undocumented = declared.filter((i) => !/\*\/$/.test(lines[i - 1])).map((i) => lines[i]);
  assert.ok(declared.length > 25);
  assert.deepEqual(undocumented.filter((line) => !line.includes('constructor')), []);
});
