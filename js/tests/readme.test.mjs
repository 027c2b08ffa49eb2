// What README.md shows first: a filter that psql exported, asked in Node and in a page.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Filter } from 'pg-bloom';
import { Page, installedBrowser } from './browser.mjs';

const js = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(js, 'README.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'pg_bloom-readme-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the first example in a language. */
function example(language) {
  return new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'm').exec(readme)[1];
}

// As psql writes it: one line.
const exported = `${Filter.build(['ada@example.com', 'ben@example.com']).hex()}\n`;
writeFileSync(join(folder, 'customers.txt'), exported);
const skip = installedBrowser() === undefined && 'Chromium is not installed: scripts/setup js';

test('in Node', () => {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(js, join(folder, 'node_modules', 'pg-bloom'));
  const shown = 'console.log(customers.has("ada@example.com"), customers.hasMany(["a", "b"]), customers.header.keyKind);';
  writeFileSync(join(folder, 'program.mjs'), `${example('js')}\n${shown}\n`);
  const printed = execFileSync(process.execPath, ['program.mjs'], { cwd: folder, encoding: 'utf8' });
  assert.equal(printed, 'true [ false, false ] text\n');
});

test('in a page that is served', { skip, timeout: 600_000 }, async () => {
  const files = {
    '/': ['text/html; charset=utf-8', `<!doctype html>${example('html')}`],
    '/script.js': ['text/javascript', readFileSync(join(js, 'dist', 'script.js'))],
    '/customers.txt': ['text/plain', exported],
  };
  const server = createServer((request, response) => {
    const [type, body] = files[request.url] ?? ['text/plain', ''];
    response.writeHead(files[request.url] ? 200 : 404, { 'Content-Type': type }).end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const page = await Page.open(`http://127.0.0.1:${server.address().port}/`);
  try {
    assert.equal(await title(page), 'perhaps a customer');
    assert.deepEqual(page.failures, []);
  } finally {
    await page.close();
    server.close();
    server.closeAllConnections?.();
  }
});

test('in a page from file:, with a file that is chosen', { skip, timeout: 600_000 }, async () => {
  writeFileSync(join(folder, 'script.js'), readFileSync(join(js, 'dist', 'script.js')));
  writeFileSync(
    join(folder, 'page.html'),
    `<!doctype html><script src="script.js"></script><input type="file"><script>
      const input = document.querySelector('input');
      input.onchange = async () => {
        const customers = pgBloom.Filter.parse(await input.files[0].text());
        document.title = customers.has('ada@example.com') ? 'perhaps a customer' : 'no customer';
      };
    </script>`,
  );
  const page = await Page.open(pathToFileURL(join(folder, 'page.html')).href);
  try {
    await page.send('DOM.enable');
    const { root } = await page.send('DOM.getDocument');
    const { nodeId } = await page.send('DOM.querySelector', { nodeId: root.nodeId, selector: 'input' });
    await page.send('DOM.setFileInputFiles', { nodeId, files: [join(folder, 'customers.txt')] });
    assert.equal(await title(page), 'perhaps a customer');
  } finally {
    await page.close();
  }
});

test('in a page with a Content-Security-Policy that allows it', { skip, timeout: 600_000 }, async () => {
  const script = readFileSync(join(js, 'dist', 'script.js'), 'utf8');
  const use = `
    try {
      document.title = String(pgBloom.Filter.build(['a']).has('a'));
    } catch (error) {
      document.title = error.message;
    }`;
  const sources = /`('[a-z-]+')` in `script-src`/.exec(readme.replaceAll('\n', ' '))[1];
  assert.equal(sources, "'wasm-unsafe-eval'");
  for (const [allowed, expected] of [['', /unsafe-eval/], [sources, /^true$/]]) {
    const policy = `<meta http-equiv="Content-Security-Policy" content="script-src 'unsafe-inline' ${allowed}">`;
    writeFileSync(join(folder, 'policy.html'), `<!doctype html>${policy}<script>${script}</script><script>${use}</script>`);
    const page = await Page.open(pathToFileURL(join(folder, 'policy.html')).href);
    try {
      assert.match(await title(page), expected);
    } finally {
      await page.close();
    }
  }
});

/** Returns the title of a page, once it has one. */
function title(page) {
  return page.value(`new Promise((resolve) => {
    const look = () => (document.title ? resolve(document.title) : setTimeout(look, 10));
    look();
  })`);
}
