// The package as npm packs it, in the hosts and by the bundlers that js/hosts/package.json names. What is not installed
// there is left out, and the test says so.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { Page, installedBrowser } from './browser.mjs';

const js = fileURLToPath(new URL('..', import.meta.url));
const installed = join(js, 'hosts', 'node_modules');
const fromHosts = createRequire(join(js, 'hosts', 'package.json'));
const processor = { x64: 'x64', arm64: 'arm64' }[process.arch];
const WORKS = 'the package works';

/** Programs by their names: a file below js/hosts/node_modules/. */
const HOSTS = {
  'Node 18': `node-linux-${processor}/bin/node`,
  Bun: `@oven/bun-linux-${processor === 'arm64' ? 'aarch64' : 'x64'}/bin/bun`,
  Deno: `@deno/linux-${processor}-glibc/deno`,
  workerd: `@cloudflare/workerd-linux-${processor === 'x64' ? '64' : 'arm64'}/bin/workerd`,
};
const BUNDLERS = { esbuild: bundledByEsbuild, vite: bundledByVite, webpack: bundledByWebpack };

/** Returns the options of a test that needs a file of js/hosts/node_modules/. */
function needs(path) {
  const skip = !existsSync(join(installed, path)) && `${path} is not installed: scripts/setup js`;
  return { skip, timeout: 600_000 };
}

/** An application that has the package, as npm packs it, among its own. */
class Application {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'pg_bloom-hosts-'));
    const folder = join(this.folder, 'node_modules', 'pg-bloom');
    mkdirSync(folder, { recursive: true });
    execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', this.folder], { cwd: js });
    const { version } = JSON.parse(readFileSync(join(js, 'package.json'), 'utf8'));
    const archive = join(this.folder, `pg-bloom-${version}.tgz`);
    execFileSync('tar', ['-xzf', archive, '-C', folder, '--strip-components=1']);
    this.write('package.json', '{ "private": true, "dependencies": { "pg-bloom": "*" } }');
    copyFileSync(join(js, 'tests', 'host-check.mjs'), this.path('host-check.mjs'));
    const imports = "import * as loaded from 'pg-bloom';\nimport { check } from './host-check.mjs';\n";
    this.write('import.mjs', `${imports}console.log(check(loaded));\n`);
    this.write('page.mjs', `${imports}globalThis.result = check(loaded);\n`);
    this.write('worker.mjs', `${imports}export default { test: () => check(loaded) };\n`);
    this.write(
      'require.cjs',
      `const loaded = require('pg-bloom');
      (async () => {
        const { check } = await import('./host-check.mjs');
        const imported = await import('pg-bloom');
        if (imported.Filter !== loaded.Filter) throw new Error('two classes');
        console.log(check(loaded));
      })();`,
    );
  }

  path(name) {
    return join(this.folder, name);
  }

  write(name, text) {
    writeFileSync(this.path(name), text);
  }

  /** Runs a host, and returns what it prints. */
  run(host, parameters) {
    const program = join(installed, HOSTS[host]);
    // Deno and Bun keep what they compile. A test runner tells its children by a variable to speak to it.
    const folders = { DENO_DIR: this.path('deno'), BUN_INSTALL: this.path('bun') };
    const env = { ...process.env, ...folders, NODE_TEST_CONTEXT: undefined };
    return execFileSync(program, parameters, { cwd: this.folder, env, encoding: 'utf8' }).trim();
  }
}

const anyIsInstalled = existsSync(installed);
const application = anyIsInstalled ? new Application() : undefined;
after(() => application && rmSync(application.folder, { recursive: true, force: true }));

for (const [host, options] of [
  ['Node 18', []],
  ['Bun', []],
  ['Deno', ['run', '--no-remote', '--node-modules-dir=manual', '--allow-read']],
]) {
  test(`${host} imports and requires it`, needs(HOSTS[host]), () => {
    for (const program of ['import.mjs', 'require.cjs']) {
      assert.equal(application.run(host, [...options, program]), WORKS, program);
    }
  });
}

test('Node 18 passes the tests of filters', needs(HOSTS['Node 18']), () => {
  const files = ['filter', 'vectors'].map((name) => join(js, 'tests', `${name}.test.mjs`));
  const printed = application.run('Node 18', ['--test', ...files]);
  assert.match(printed, /^# fail 0$/m);
});

test('workerd compiles the module apart', needs(HOSTS.workerd), () => {
  // A worker is bundled as Cloudflare's tools do it: with their conditions, and without modules for WebAssembly.
  const bundle = fromHosts('esbuild').buildSync({
    entryPoints: [application.path('worker.mjs')],
    bundle: true,
    format: 'esm',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['*.wasm'],
    outfile: application.path('worker.js'),
    metafile: true,
  });
  const inputs = Object.keys(bundle.metafile.inputs);
  assert.ok(inputs.some((name) => name.endsWith('pg-bloom/dist/worker.mjs')), inputs.join());
  const dist = application.path('node_modules/pg-bloom/dist');
  copyFileSync(join(dist, 'pg_bloom.wasm'), application.path('pg_bloom.wasm'));
  application.write(
    'workerd.capnp',
    `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (services = [(name = "main", worker = .worker)]);
    const worker :Workerd.Worker = (
      compatibilityDate = "2024-01-01",
      modules = [
        (name = "worker", esModule = embed "worker.js"),
        (name = "pg_bloom.wasm", wasm = embed "pg_bloom.wasm"),
      ],
    );`,
  );
  // It fails unless the handler \`test\` of the worker returns.
  application.run('workerd', ['test', 'workerd.capnp']);
});

for (const [name, bundled] of Object.entries(BUNDLERS)) {
  test(`${name} bundles it for pages`, needs(name), async () => {
    const code = await bundled();
    const page = vm.createContext({ WebAssembly, TextEncoder, TextDecoder, atob, RangeError, Error });
    vm.runInContext(code, page);
    assert.equal(page.result, WORKS);
    if (installedBrowser() === undefined) return;
    application.write(`${name}.html`, `<!doctype html><meta charset="utf-8"><script>${code}</script>`);
    const opened = await Page.open(pathToFileURL(application.path(`${name}.html`)).href);
    try {
      assert.equal(await opened.value('result'), WORKS);
      assert.deepEqual(opened.failures, []);
    } finally {
      await opened.close();
    }
  });
}

function bundledByEsbuild() {
  const { outputFiles } = fromHosts('esbuild').buildSync({
    entryPoints: [application.path('page.mjs')],
    bundle: true,
    minify: true,
    format: 'iife',
    platform: 'browser',
    write: false,
  });
  return outputFiles[0].text;
}

async function bundledByVite() {
  const vite = await import(pathToFileURL(fromHosts.resolve('vite')).href);
  const [{ output }] = await vite.build({
    configFile: false,
    root: application.folder,
    logLevel: 'error',
    build: {
      write: false,
      minify: true,
      lib: { entry: application.path('page.mjs'), formats: ['iife'], name: 'bundle' },
    },
  });
  return output[0].code;
}

async function bundledByWebpack() {
  const webpack = fromHosts('webpack');
  const compiler = webpack({
    mode: 'production',
    context: application.folder,
    entry: application.path('page.mjs'),
    output: { path: application.folder, filename: 'webpack.js' },
    target: 'web',
  });
  const stats = await new Promise((resolve, reject) => {
    compiler.run((error, result) => (error ? reject(error) : resolve(result)));
  });
  assert.ok(!stats.hasErrors(), stats.toString());
  return readFileSync(application.path('webpack.js'), 'utf8');
}
