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

// One class for import and require: a filter made by the one is a Filter of the other.
write('node.mjs', `import loaded from './inline.cjs';\nexport const { ${list} } = loaded;\n`);

// Vercel and Next.js take a module for WebAssembly by the end of its name.
const imported = loader('imported').body;
write('worker.mjs', `${imported}\nexport { ${list} };\n`);
write('edge.mjs', `${imported.replace("pg_bloom.wasm'", "pg_bloom.wasm?module'")}\nexport { ${list} };\n`);

// The page works from file:, so the script is beside it.
copyFileSync(new URL('script.js', dist), new URL('page/pg_bloom.js', here));
