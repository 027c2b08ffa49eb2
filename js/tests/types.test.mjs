// The types of index.d.ts accept what works, and refuse what doesn't.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
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
