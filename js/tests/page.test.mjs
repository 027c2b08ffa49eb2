// The page of js/page/ in a headless Chromium, from file:.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { Filter, capacityForBytes, parameters } from 'pg-bloom';
import { Page, installedBrowser } from './browser.mjs';

const url = new URL('../page/index.html', import.meta.url).href;
const skip = installedBrowser() === undefined && 'Chromium is not installed: scripts/setup js';
const options = { skip, timeout: 120_000 };

/** Calls `work` with a page, of which no script may fail. */
async function withPage(work, address = url, settings = {}) {
  const page = await Page.open(address, settings);
  try {
    await work(page);
    assert.deepEqual(page.failures, []);
  } finally {
    await page.close();
  }
}

/** Returns the cells of a row of the table of sizes. */
function row(page, label) {
  return page.value(`[...document.querySelectorAll('#sizes tbody tr')]
    .filter((row) => row.cells[0].textContent === ${JSON.stringify(label)})
    .flatMap((row) => [...row.cells].slice(1).map((cell) => cell.textContent))`);
}

/** Returns the whole bytes in a cell, such as `1.2 MiB (1,258,291)`. */
function wholeBytes(text) {
  return Number(/\(([\d,]+)\)/.exec(text)[1].replaceAll(',', ''));
}

test('the page is small', () => {
  const bytes = (name) => gzipSync(readFileSync(new URL(`../page/${name}`, import.meta.url))).length;
  const own = bytes('page.js') + bytes('page.css') + bytes('index.html');
  assert.ok(bytes('page.js') <= 8000 && own + bytes('pg_bloom.js') <= 120_000, `${own} bytes`);
});

test('fields are read as people write them, and the others follow', options, () =>
  withPage(async (page) => {
    await page.type('n', '10M');
    await page.type('p', '1 in 1000');
    for (const [i, layout] of ['blocked', 'classic', 'parquet'].entries()) {
      const { bytes } = parameters(10_000_000, 0.001, layout);
      assert.equal(wholeBytes((await row(page, 'Bytes'))[i]), bytes);
    }
    assert.match(await page.text('sql'), /bloom_agg\(x, 10000000, 0\.001, 'blocked'\)/);

    // Without elements: as many as fit.
    await page.type('n', '');
    await page.type('m', '5 MiB');
    const most = capacityForBytes(5 * 2 ** 20, 0.001);
    assert.match(await page.text('sql'), new RegExp(`\\(x, ${most}, 0\\.001`));

    // Without a rate: the least that fits.
    await page.type('n', '1e7');
    await page.type('p', '');
    assert.match(await page.text('note'), /least rate/);
    assert.ok(wholeBytes((await row(page, 'Bytes'))[0]) <= 5 * 2 ** 20);

    // All are given: the rate gives way, and the note says so.
    await page.type('p', '0.1%');
    assert.match(await page.text('note'), /rate gives way/);
    await page.type('m', '1 GB');
    assert.match(await page.text('note'), /bytes give way/);
    await page.type('k', '3');
    assert.match(await page.text('note'), /hashes give way/);
    assert.deepEqual(await row(page, 'Hashes'), ['3', '3', '8']);

    for (const [field, text] of [['n', 'many'], ['p', '2'], ['m', '1 byte'], ['k', '99']]) {
      await page.type(field, text);
      assert.match(await page.text('note'), /“|must be|fits|integer/, `${field} ${text}`);
      await page.type(field, '');
    }
  }),
);

test('a link has all fields', options, () =>
  withPage(async (page) => {
    assert.match(await page.text('sql'), /\(x, 20000, 0\.03, 'classic'\)/);
    await page.type('n', '3e4');
    const link = await page.value('document.getElementById("link").href');
    await page.go('about:blank');
    await page.go(link);
    assert.match(await page.text('sql'), /\(x, 30000, 0\.03, 'classic'\)/);
    assert.equal(await page.value('document.getElementById("n").value'), '3e4');
  }, `${url}#n=20k&p=3%25&l=classic`),
);

test('curves have round ticks', options, () =>
  withPage(async (page) => {
    const labels = await page.value(
      '[...document.querySelectorAll("#rates text")].map((text) => text.textContent)',
    );
    for (const label of ['0', '1M', '2M', '3M', '4M', '100 %', '1 %']) assert.ok(labels.includes(label), label);
    assert.equal(await page.value('document.querySelectorAll("#bytes polyline").length'), 3);
  }, `${url}#n=1M`),
);

test('labels of curves are not cut', options, () =>
  withPage(async (page) => {
    for (const link of ['', '#n=1', '#n=1e12&p=1e-9&l=classic', '#n=123456789&p=1 in 3', '#m=511MiB&p=50%']) {
      const cut = await page.value(`new Promise((resolve) => {
        const cutLabels = () => [...document.querySelectorAll('svg text')].filter((text) => {
          const box = text.getBBox();
          const { width, height } = text.ownerSVGElement.getBoundingClientRect();
          return box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height;
        });
        const look = () => resolve(cutLabels().map((text) => text.textContent));
        const link = ${JSON.stringify(link)};
        if (link === '') return look();
        addEventListener('hashchange', () => setTimeout(look), { once: true });
        location.hash = link;
      })`);
      assert.deepEqual(cut, [], link);
    }
  }),
);

test('everything is reached by the keyboard', options, () =>
  withPage(async (page) => {
    await page.type('paste', Filter.build(['a'], { capacity: 10 }).hex());
    await page.value('document.activeElement.blur(), scrollTo(0, 0)');
    const reached = new Set();
    for (let i = 0; i < 40; i++) {
      await page.press('Tab', 9);
      reached.add(await page.value('document.activeElement.id || document.activeElement.tagName'));
    }
    for (const id of ['n', 'p', 'm', 'k', 'l', 'sql', 'link', 'rates', 'bytes', 'file', 'paste', 'element', 'BUTTON']) {
      assert.ok(reached.has(id), `${id} of ${[...reached]}`);
    }
  }),
);

test('a filter is pasted, dropped, and asked', options, () =>
  withPage(async (page) => {
    const texts = Array.from({ length: 900 }, (_, i) => `element ${i}`);
    const filter = Filter.build(texts, { capacity: 1000 });
    await page.type('paste', filter.hex());
    assert.equal(await page.value('document.getElementById("found").hidden'), false);
    assert.match(await page.text('header'), /text.*blocked.*bits.*1,000/s);
    assert.equal(await page.value('document.querySelectorAll("#fill rect").length'), filter.header.numBits / 512);

    await page.type('element', 'element 7');
    await page.press('Enter', 13, '\r');
    assert.match(await page.text('answer'), /may be/);
    await page.type('element', 'element x');
    await page.press('Enter', 13, '\r');
    assert.match(await page.text('answer'), /is not/);

    // A file that psql wrote, and one of the bytes.
    const instants = Filter.build(['2026-02-28T12:00:00.123456Z'], { kind: 'timestamptz' });
    const dropped = [JSON.stringify(`${instants.hex()}\n`), `new Uint8Array([${instants.bytes()}])`];
    for (const content of dropped) {
      await page.value(`(() => {
        document.getElementById('found').hidden = true;
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([${content}], 'filter.txt'));
        document.getElementById('drop').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true }));
      })()`);
      await page.value(`new Promise((resolve) => {
        const look = () => (document.getElementById('found').hidden ? setTimeout(look, 10) : resolve());
        look();
      })`);
      assert.match(await page.text('header'), /timestamptz/);
      assert.match(await page.text('warning'), /six digits/);
    }

    for (const damaged of ['\\x01', filter.hex().replace('\\x01', '\\x07'), 'nothing']) {
      await page.type('paste', damaged);
      assert.match(await page.text('problem'), /invalid|version/, damaged);
      assert.equal(await page.value('document.getElementById("found").hidden'), true);
    }
  }),
);

test('nothing is wider than a phone, in the light and in the dark', options, async () => {
  const backgrounds = new Set();
  for (const [width, isDark] of [[360, false], [360, true], [1440, false], [1440, true]]) {
    await withPage(async (page) => {
      assert.ok((await page.value('document.documentElement.scrollWidth')) <= width, String(width));
      backgrounds.add(await page.value('getComputedStyle(document.getElementById("n")).backgroundColor'));
      const unlabelled = 'input:not(label input), textarea:not(label textarea), select:not(label select)';
      assert.equal(await page.value(`document.querySelectorAll('${unlabelled}').length`), 0);
      if (process.env.PICTURES) {
        const { writeFileSync } = await import('node:fs');
        writeFileSync(`${process.env.PICTURES}/page-${width}-${isDark}.png`, await page.picture());
      }
    }, url, { width, isDark });
  }
  assert.equal(backgrounds.size, 2);
});
