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

/** Types an element, asks for it, and returns the answer. */
async function answer(page, element) {
  await page.type('element', element);
  await page.press('Enter', 13, '\r');
  return page.text('answer');
}

/** Returns whether an element has the attribute `hidden`. */
function isHidden(page, id) {
  return page.value(`document.getElementById('${id}').hidden`);
}

/** Returns a filter of Parquet's kind FLOAT, which the package doesn't build. The kind is the third byte. */
function filterOfFloats(...numbers) {
  const bytesOf = (number) => new Uint8Array(Float32Array.of(number).buffer);
  const bytes = Filter.build(numbers.map(bytesOf), { layout: 'parquet' }).bytes();
  bytes[2] = 34;
  return Filter.parse(bytes);
}

/** Defines `drop(file)` in a page, which drops a file or what stands for one. */
const DEFINE_DROP = `window.drop = (file) => {
  const event = new DragEvent('drop', { bubbles: true });
  Object.defineProperty(event, 'dataTransfer', { value: { files: [file] } });
  document.getElementById('drop').dispatchEvent(event);
}`;

/** Waits until a condition holds in a page. Fails if it doesn't within ten seconds. */
async function until(page, condition) {
  const end = Date.now() + 10_000;
  while (!(await page.value(condition))) {
    assert.ok(Date.now() < end, condition);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
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

    const unread = [
      ['n', 'many'], ['p', '2'], ['m', '1 byte'], ['k', '99'],
      ['p', '0,010%'], ['n', '10,000,0000'], ['n', '1000,000'], ['n', '1,5'], ['n', '1 000,000'],
    ];
    for (const [field, text] of unread) {
      await page.type(field, text);
      assert.match(await page.text('note'), /“|must be|fits|integer/, `${field} ${text}`);
      // Sizes and SQL of the numbers before aren't those of this text.
      assert.equal(await isHidden(page, 'results'), true, `${field} ${text}`);
      await page.type(field, '');
      assert.equal(await isHidden(page, 'results'), false);
    }

    // Half of a character, which no keyboard types.
    await page.value(`(() => {
      document.getElementById('n').value = '\\ud800';
      document.getElementById('wanted').dispatchEvent(new Event('input'));
    })()`);
    assert.match(await page.text('note'), /is not a number of elements/);

    for (const text of ['10,000,000', '10 000 000', '10_000_000', '10,000 k', '1e7']) {
      await page.type('n', text);
      assert.match(await page.text('sql'), /\(x, 10000000, /, text);
    }
    await page.type('n', '');
    for (const [text, bytes] of [['1 TiB', 2 ** 40], ['1 TB', 1e12]]) {
      await page.type('m', text);
      assert.match(await page.text('sql'), new RegExp(`\\(x, ${capacityForBytes(bytes)}, 0\\.01,`));
    }
  }),
);

test('filters of the SQL fit in the bytes that are given', options, () =>
  withPage(async (page) => {
    const counts = ['1e6', '123,456', '2e7', '999', ''];
    const rates = ['', '1 in 3', '0.7 %', '1e-5'];
    const bytes = ['5 MiB', '1 MB', '3,000,000', '1 GiB', '777 kB', '2000'];
    const cases = await page.value(`(() => {
      const field = (id) => document.getElementById(id);
      const cases = [];
      for (const layout of ['blocked', 'classic', 'parquet']) {
        for (const n of ${JSON.stringify(counts)}) for (const p of ${JSON.stringify(rates)}) for (const m of ${JSON.stringify(bytes)}) {
          for (const [id, value] of Object.entries({ n, p, m, l: layout })) field(id).value = value;
          field('wanted').dispatchEvent(new Event('input'));
          const shown = field('sizes').textContent;
          if (!field('results').hidden) cases.push({ layout, n, p, m, sql: field('sql').textContent, shown });
        }
      }
      return cases;
    })()`);
    assert.ok(cases.length > 200, String(cases.length));
    const wholes = { '5 MiB': 5 * 2 ** 20, '1 MB': 1e6, '3,000,000': 3e6, '1 GiB': 2 ** 30, '777 kB': 777e3, 2000: 2000 };
    for (const { layout, n, p, m, sql, shown } of cases) {
      const [, elements, rate] = /\(x, (\d+), ([^,]+),/.exec(sql);
      const size = parameters(Number(elements), Number(rate), layout).bytes;
      const label = `${n} elements, rate ${p}, ${m}, ${layout}: ${sql}`;
      assert.ok(size <= wholes[m], `${size} bytes for ${label}`);
      assert.ok(shown.includes(`(${size.toLocaleString('en')})`), label);
    }

    // The rate is not much greater than it must be.
    const [{ sql }] = cases;
    const [, rate] = /\(x, 1000000, ([^,]+),/.exec(sql);
    assert.ok(parameters(1e6, Number(rate) * 0.998).bytes > 5 * 2 ** 20, rate);
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

    // What a link doesn't name has its default, also if the page is open.
    await page.value('location.hash = "#n=5&l=parquet"');
    await until(page, 'document.getElementById("l").value === "parquet"');
    await page.value('location.hash = "#n=6"');
    await until(page, 'document.getElementById("n").value === "6"');
    assert.match(await page.text('sql'), /\(x, 6, 0\.01, 'blocked'\)/);
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
    assert.equal(await isHidden(page, 'found'), false);
    assert.match(await page.text('header'), /text.*blocked.*bits.*1,000/s);
    assert.equal(await page.value('document.querySelectorAll("#fill rect").length'), filter.header.numBits / 512);

    assert.match(await answer(page, 'element 7'), /may be/);
    assert.match(await answer(page, 'element x'), /is not/);

    // Files that psql and COPY wrote, and one of the bytes.
    const instants = Filter.build(['2026-02-28T12:00:00.123456Z'], { kind: 'timestamptz' });
    const hex = instants.hex();
    const written = [`${hex}\n`, `\\${hex}\n`, `\ufeff\r\n  ${hex} \r\n\r\n`, ` bloom_agg \n-----------\n ${hex}\n(1 row)\n\n`];
    written.push(`${hex}\n1000\n`, `1|${hex}\n2|\n`, `${hex} | 123456789\nAdd\n`);
    const utf16 = new Uint16Array([...`\ufeff${hex}`].map((character) => character.charCodeAt(0)));
    const contents = [...written, instants.bytes(), new Uint8Array(utf16.buffer)];
    await page.value(DEFINE_DROP);
    for (const content of contents) {
      await page.value('document.getElementById("found").hidden = true');
      const part = typeof content === 'string' ? JSON.stringify(content) : `new Uint8Array([${content}])`;
      await page.value(`drop(new File([${part}], 'filter.txt'))`);
      await until(page, '!document.getElementById("found").hidden');
      assert.match(await page.text('header'), /timestamptz/);
      assert.match(await page.text('warning'), /six digits/);
    }
    for (const text of written) {
      await page.type('paste', text);
      assert.equal(await isHidden(page, 'found'), false, text);
    }
    await page.type('paste', `${hex}\n${hex}\n`);
    assert.match(await page.text('problem'), /2 filters/);
    assert.equal(await isHidden(page, 'found'), true);

    // A part of a list of hashes may be a filter, too, of fewer elements.
    const list = Filter.build(texts.slice(0, 30), { capacity: 100_000 }).hex();
    const parts = new RegExp(`.{1,${(list.length >> 2) & ~15}}`, 'g');
    const lines = list.match(parts);
    assert.ok(Filter.parse(list.slice(0, 90 + 16 * 4)));
    for (const broken of [lines.join('\n'), ` ${lines.join('.\n.')}\n(1 row)\n`, `${list.slice(0, 154)}\r\n${list.slice(154)}`,
      ` ${list.slice(0, 154)}.| 5\n.${list.slice(154)} |\n`, `${list.slice(0, 154)} ${list.slice(154)}`]) {
      await page.type('paste', broken);
      assert.match(await page.text('problem'), /hexadecimal digits/, broken);
      assert.equal(await isHidden(page, 'found'), true);
    }

    for (const damaged of ['\\x01', filter.hex().replace('\\x01', '\\x07'), 'nothing']) {
      await page.type('paste', damaged);
      assert.match(await page.text('problem'), /invalid|version/, damaged);
      assert.equal(await isHidden(page, 'found'), true);
    }
  }),
);

test('the last file dropped is shown, and a file that cannot be read is an error', options, () =>
  withPage(async (page) => {
    const bytesOf = (element) => `new Uint8Array([${Filter.build([element]).bytes()}]).buffer`;
    await page.value(DEFINE_DROP);
    await page.value(`(() => {
      const slow = new Promise((resolve) => setTimeout(resolve, 100));
      drop({ name: 'slow', arrayBuffer: () => slow.then(() => ${bytesOf(1n)}) });
      drop({ name: 'fast', arrayBuffer: async () => ${bytesOf('a')} });
      return slow.then(() => new Promise((resolve) => setTimeout(resolve, 50)));
    })()`);
    assert.match(await page.text('header'), /text/);

    // A folder is dropped as a file that can't be read.
    await page.value(`drop({ name: 'folder', arrayBuffer: async () => { throw new Error('no such file'); } })`);
    await until(page, 'document.getElementById("problem").textContent !== ""');
    assert.match(await page.text('problem'), /“folder” cannot be read: no such file/);
    assert.equal(await isHidden(page, 'found'), true);
  }),
);

test('only elements that cannot be in a filter are not in it', options, () =>
  withPage(async (page) => {
    const floats = [1.5, Math.fround(0.1), 1 + 2 ** -23, Infinity, NaN];
    const bytes = Uint8Array.of(0xab, 0xcd);
    const parquet = { layout: 'parquet' };
    const maybe = 'It may be in the filter';
    const no = 'It is not in the filter.';
    const cases = [
      [Filter.build(floats, { kind: 'float' }), [
        ['1.5', `${maybe}.`], [' +15e-1 ', `${maybe}.`], ['2.5', no], ['-inf', no],
        ['infinity', `${maybe}.`], ['Inf', `${maybe}.`], ['+INF', `${maybe}.`], ['nan', `${maybe}.`], ['-NaN', `${maybe}.`],
        ['0.1', `${maybe}, as a real.`], ['0.1000000015', `${maybe}, as a real.`],
        ['1.0000000596046448', `${maybe}, as a real.`],
      ]],
      [Filter.build([0.1], { kind: 'float' }), [['0.1', `${maybe}.`]]],
      [Filter.build([[Math.fround(0.1), null]], { kind: 'float[]' }), [
        ['[0.1, null]', `${maybe}, as a real.`], ['[0.2, null]', no],
      ]],
      [Filter.build([[16777216n]], { kind: 'integer[]' }), [['[16777216]', `${maybe}.`], ['[16777217]', no]]],
      [filterOfFloats(0.1), [['0.1', `${maybe}, as a real.`], ['0.2', no]]],
      [Filter.build(['\\xabcd'], parquet), [['\\xabcd', `${maybe}.`], ['\\xabce', no]]],
      [Filter.build([bytes], parquet), [['\\xABcd', `${maybe}, as bytes.`], ['\\xabce', no], ['\\xabc', no]]],
      [Filter.build(['ab']), [['ab  ', `${maybe}, as a char(n).`], [' ab', no]]],
      [Filter.build([bytes]), [['\\xabcd', `${maybe}.`], ['\\xab', no]]],
    ];
    for (const [filter, asked] of cases) {
      await page.type('paste', filter.hex());
      for (const [element, expected] of asked) assert.equal(await answer(page, element), expected, element);
    }

    await page.type('paste', Filter.build([1.5, 0], { kind: 'float' }).hex());
    for (const text of ['1,5', '1.5 kg', 'abc', '', ' ', '１.５', '0x10', '1e', '.', '1e999', 'infinit']) {
      assert.match(await answer(page, text), /is not a number/, text);
    }
    // PostgreSQL reads other texts than \x and digits as characters.
    await page.type('paste', Filter.build([bytes]).hex());
    for (const text of ['abcd', '\\Xabcd', '\\xabc']) assert.match(await answer(page, text), /write bytes/, text);
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
