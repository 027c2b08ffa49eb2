// The types of index.d.ts accept what works, and refuse what doesn't.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
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

test('adapters have types in projects that know no exports', { skip }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'pg-bloom-'));
  try {
    mkdirSync(join(directory, 'node_modules'));
    symlinkSync(fileURLToPath(new URL('..', import.meta.url)), join(directory, 'node_modules', 'pg-bloom'), 'dir');
    const program = join(directory, 'program.ts');
    writeFileSync(program, `
      import { Filter } from 'pg-bloom';
      import { register } from 'pg-bloom/pg';
      import { register as registerPostgres } from 'pg-bloom/postgres';
      import { mayContain } from 'pg-bloom/drizzle';
      // @ts-expect-error it takes a client or a pool
      register(7);
      export { Filter, mayContain, registerPostgres };
    `);
    const options = ['--noEmit', '--strict', '--module', 'commonjs', '--moduleResolution', 'node10', '--skipLibCheck'];
    const { stdout } = spawnSync(process.execPath, [tsc, ...options, program], { encoding: 'utf8' });
    assert.equal(stdout, '');
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('what is exported is documented', () => {
  const lines = readFileSync(new URL('../index.d.ts', import.meta.url), 'utf8').split('\n');
  const declared = lines.flatMap((line, i) => (/^export |^  (static )?[a-zA-Z]+\(/.test(line) ? [i] : []));
  const undocumented = declared.filter((i) => !/\*\/$/.test(lines[i - 1])).map((i) => lines[i]);
  assert.ok(declared.length > 25);
  assert.deepEqual(undocumented.filter((line) => !line.includes('constructor')), []);
});
