// Writes the package into js/dist/ and the page's script into js/page/, from js/loader/ and the
// compiled module: node js/build.mjs MODULE.wasm
//
// The files of the loader import only each other, and no two have a name in common. So they are put
// one after another, those that are imported first, without the words `import` and `export`.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';

const here = new URL('./', import.meta.url);
const dist = new URL('dist/', here);
const wasm = readFileSync(process.argv[2]);
const { version } = JSON.parse(readFileSync(new URL('package.json', here), 'utf8'));
const banner = `// pg-bloom ${version}: see README.md. PostgreSQL License.\n`;

const NAMED_IMPORT = /^import \{[^}]*\} from '\.\/([a-z]+)\.js';\n/gm;
const NAMED_EXPORT = /^export \{([^}]*)\} from '\.\/([a-z]+)\.js';\n/gm;

/** Returns a file of the loader. */
function source(name) {
  return readFileSync(new URL(`loader/${name}.js`, here), 'utf8');
}

/** Returns the files that a file imports, each after those that it imports itself, and the file. */
function inOrder(name, text, texts) {
  for (const [, imported] of text.matchAll(NAMED_IMPORT)) {
    if (!texts.has(imported)) inOrder(imported, texts.source(imported), texts);
  }
  texts.set(name, text);
}

/** The texts of files by their names, with another file for the module. */
class Texts extends Map {
  constructor(moduleFile) {
    super();
    this.moduleFile = moduleFile;
  }

  source(name) {
    return source(name === 'module' ? this.moduleFile : name);
  }
}

/** Returns the loader without imports and exports, and the names that it exports. */
function loader(moduleFile) {
  const texts = new Texts(moduleFile);
  const names = [];
  for (const [, exported, file] of source('index').matchAll(NAMED_EXPORT)) {
    names.push(...exported.split(',').map((name) => name.trim()));
    if (!texts.has(file)) inOrder(file, texts.source(file), texts);
  }
  const bodies = [...texts.values()].map((text) =>
    text.replace(NAMED_IMPORT, '').replace(/^export (?=(class|function|const) )/gm, ''),
  );
  return { names, body: bodies.join('\n') };
}

/** Returns a text with what stands between some marks. */
function filled(text, values) {
  return text.replace(/@(deflated|length)@/g, (_, name) => values[name]);
}

function write(name, text) {
  writeFileSync(new URL(name, dist), banner + text);
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
copyFileSync(process.argv[2], new URL('pg_bloom.wasm', dist));

const inline = loader('module');
const list = inline.names.join(', ');
const body = filled(inline.body, {
  deflated: deflateRawSync(wasm, { level: 9 }).toString('base64'),
  length: String(wasm.length),
});
write('inline.mjs', `${body}\nexport { ${list} };\n`);
write('inline.cjs', `'use strict';\n${body}\nmodule.exports = { ${list} };\n`);
const global = `globalThis.pgBloom = (() => {\n'use strict';\n${body}\nreturn { ${list} };\n})();\n`;
write('script.js', global);

// The types of what is imported: unlike what is required, it has no default.
write('index.d.mts', `export * from '../index.js';\n`);

// One class for import and require: a filter made by the one is a Filter of the other.
write('node.mjs', `import loaded from './inline.cjs';\nexport const { ${list} } = loaded;\n`);

// Vercel and Next.js take a module for WebAssembly by the end of its name.
const imported = loader('imported').body;
write('worker.mjs', `${imported}\nexport { ${list} };\n`);
write('edge.mjs', `${imported.replace("pg_bloom.wasm'", "pg_bloom.wasm?module'")}\nexport { ${list} };\n`);

// The page works from file:, so the script is beside it.
copyFileSync(new URL('script.js', dist), new URL('page/pg_bloom.js', here));

// Adapters import the package by its name, so that there is one class. shared.js is put into each.
const shared = readFileSync(new URL('adapters/shared.js', here), 'utf8');
for (const adapter of ['pg', 'postgres', 'drizzle']) {
  const own = readFileSync(new URL(`adapters/${adapter}.js`, here), 'utf8');
  const usesShared = own.includes("'./shared.js'");
  const imports = new Set(own.match(/^import .* from '[^.].*';$/gm));
  const parts = usesShared ? [withoutImports(shared).replace(/^export /gm, '')] : [];
  const text = [...parts, withoutImports(own)].join('\n');
  write(`${adapter}.mjs`, `${[...imports].join('\n')}\n${text}`);
  for (const end of ['d.mts', 'd.cts']) {
    copyFileSync(new URL(`adapters/${adapter}.d.ts`, here), new URL(`${adapter}.${end}`, dist));
  }
  write(`${adapter}.cjs`, `'use strict';\n${asCommonJs([...imports], text)}`);
}

function withoutImports(text) {
  return text.replace(/^import .*;\n/gm, '');
}

function asCommonJs(imports, text) {
  const required = imports.map((line) =>
    line.replace(/^import (\{.*\}) from ('.*');$/, 'const $1 = require($2);'),
  );
  const names = [...text.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map((match) => match[1]);
  const body = text.replace(/^export /gm, '');
  return `${required.join('\n')}\n${body}\nmodule.exports = { ${names.join(', ')} };\n`;
}
