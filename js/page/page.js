'use strict';
// The page that sizes filters and looks into them. pg_bloom.js is before it.

(() => {
  const { Filter, capacityForBytes, expectedFpr, parameters } = pgBloom;
  const LAYOUTS = ['blocked', 'classic', 'parquet'];
  const FIELDS = ['n', 'p', 'm', 'k', 'l'];
  const DEFAULT_RATE = 0.01;
  const GREATEST_RATE = 0.5;
  const LEAST_RATES = { blocked: 1e-9, classic: 1e-9, parquet: 1e-6 };
  const PARQUET_HASHES = 8;
  const MOST_HASHES = 64;
  const HEADER_BYTES = 44;
  const HASH_BYTES = 8;
  const MOST_STORED_BYTES = 511 * 1024 * 1024;

  const byId = (id) => document.getElementById(id);

  // Numbers as people write them.

  const UNITS = { '': 1, k: 1e3, m: 1e6, g: 1e9, b: 1e9, t: 1e12, thousand: 1e3, million: 1e6, billion: 1e9 };
  const BYTE_UNITS = {
    '': 1, b: 1, byte: 1, bytes: 1, k: 1e3, kb: 1e3, m: 1e6, mb: 1e6, g: 1e9, gb: 1e9, t: 1e12, tb: 1e12,
    kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40,
  };

  /** Groups of three digits, such as 10,000,000; not 0,010 or 1,50. */
  const GROUPS = /^[1-9]\d{0,2}([ ,_])\d{3}(?:\1\d{3})*(?!\d)/;

  /** Returns the number that a text is, times its unit; undefined if it is empty. */
  function parsed(text, units, what) {
    const written = text.trim().toLowerCase().replace(GROUPS, (digits) => digits.replace(/\D/g, ''));
    if (written === '') return undefined;
    const match = /^(\d*\.?\d+(?:e[+-]?\d+)?)\s*([a-z]*)$/.exec(written);
    const number = match ? Number(match[1]) * units[match[2]] : NaN;
    if (!(number > 0)) throw new RangeError(`“${text}” is not a ${what}`);
    return number;
  }

  /** Returns the rate that a text is: `1%`, `0.01`, `1 in 100`, `1/100`. */
  function parsedRate(text) {
    const ratio = /^(.+?)\s*(?:in|\/)\s*(.+)$/i.exec(text.trim());
    if (ratio) return parsed(ratio[1], UNITS, 'rate') / parsed(ratio[2], UNITS, 'rate');
    const percent = text.trim().endsWith('%');
    const rate = parsed(text.trim().replace(/\s*%$/, ''), { '': 1 }, 'rate');
    // Without the noise of a division: 0.7 % is 0.007, not 0.006999999999999999.
    return percent && rate !== undefined ? Number((rate / 100).toPrecision(12)) : rate;
  }

  const grouped = (number) => Math.round(number).toLocaleString('en');

  function shownBytes(bytes) {
    const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
    let size = bytes;
    let unit = 0;
    for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
    return `${unit ? Number(size.toPrecision(3)) : size} ${units[unit]}`;
  }

  function shownRate(rate) {
    if (rate === 0) return '0';
    const percent = Number((100 * rate).toPrecision(3));
    return rate >= 1e-4 ? `${percent} %` : `1 in ${Number((1 / rate).toPrecision(3)).toLocaleString('en')}`;
  }

  // What a filter must be.

  /** Returns the least number of four digits that is not less than this one. */
  function roundedUp(number) {
    const rounded = Number(number.toPrecision(4));
    if (rounded >= number) return rounded;
    const step = 10 ** (Math.floor(Math.log10(rounded)) - 3);
    return Number((rounded + step).toPrecision(4));
  }

  /** Returns the least rate, of four digits, whose filter of so many elements fits in so many bytes. */
  function rateThatFits(elements, bytes, layout) {
    const fits = (rate) => parameters(elements, rate, layout).bytes <= bytes;
    if (!fits(GREATEST_RATE)) {
      throw new RangeError(`no ${layout} filter for ${grouped(elements)} elements fits in ${shownBytes(bytes)}`);
    }
    if (fits(LEAST_RATES[layout])) return LEAST_RATES[layout];
    let low = Math.log(LEAST_RATES[layout]);
    let high = Math.log(GREATEST_RATE);
    for (let i = 0; i < 40; i++) {
      const middle = (low + high) / 2;
      if (fits(Math.exp(middle))) high = middle;
      else low = middle;
    }
    return roundedUp(Math.min(GREATEST_RATE, Math.exp(high)));
  }

  /** Returns what was asked for, with what was left open, and which part of it gives way. */
  function solved(wanted) {
    const { layout, bytes, hashes } = wanted;
    let { elements, rate } = wanted;
    let note = '';
    if (rate === undefined && !(elements && bytes)) {
      rate = hashes ? Math.max(2 ** -hashes, LEAST_RATES[layout]) : DEFAULT_RATE;
      note = `No rate is given: ${shownRate(rate)} is taken.`;
    }
    if (elements === undefined) {
      elements = capacityForBytes(Math.floor(bytes), rate, layout);
      note += ` As many elements as fit in ${shownBytes(bytes)}.`;
    } else if (bytes !== undefined) {
      const needed = rate === undefined ? Infinity : parameters(elements, rate, layout).bytes;
      if (needed > bytes) {
        const given = rate;
        rate = rateThatFits(elements, bytes, layout);
        note = given === undefined
          ? `The least rate that fits in ${shownBytes(bytes)}.`
          : `The rate gives way: ${shownRate(given)} takes ${shownBytes(needed)}, more than ${shownBytes(bytes)}.`;
      } else {
        note = `The bytes give way: ${shownBytes(needed)} are enough.`;
      }
    }
    return { elements, rate, layout, hashes, note: `${wanted.note}${note.trim()}` };
  }

  /** Returns what the filter of a layout is. */
  function sizeOf(layout, { elements, rate, hashes }) {
    const leastRate = LEAST_RATES[layout];
    if (rate < leastRate) return { layout, problem: `from ${shownRate(leastRate)}` };
    const size = parameters(elements, rate, layout);
    const withHashes = layout === 'parquet' ? PARQUET_HASHES : (hashes ?? size.numHashes);
    const fpr = expectedFpr(elements, size.numBits, withHashes, layout);
    return { layout, ...size, usedHashes: withHashes, fpr };
  }

  function read() {
    const elements = parsed(byId('n').value, UNITS, 'number of elements');
    const hashes = parsed(byId('k').value, { '': 1 }, 'number of hashes');
    if (hashes !== undefined && !(Number.isInteger(hashes) && hashes <= MOST_HASHES)) {
      throw new RangeError(`the number of hashes is an integer from 1 to ${MOST_HASHES}`);
    }
    const wanted = {
      elements: elements === undefined ? undefined : Math.ceil(elements),
      rate: parsedRate(byId('p').value),
      bytes: parsed(byId('m').value, BYTE_UNITS, 'number of bytes'),
      hashes,
      layout: byId('l').value,
    };
    const isExample = wanted.elements === undefined && wanted.bytes === undefined;
    if (isExample) wanted.elements = 1e6;
    wanted.note = isExample ? 'An example of 1,000,000 elements: give your own. ' : '';
    return wanted;
  }

  const ROWS = [
    ['Bytes', (size) => `${shownBytes(size.bytes)} (${grouped(size.bytes)})`],
    ['Bits per element', (size, { elements }) => (size.numBits / elements).toFixed(2)],
    ['Hashes', (size) => String(size.usedHashes)],
    ['Rate at capacity', (size) => shownRate(size.fpr)],
    ['As a list of hashes', (_, { elements }) => shownBytes(HEADER_BYTES + HASH_BYTES * elements)],
    ['Stays a list up to', (size) => `${grouped(Math.floor(size.numBits / 8 / HASH_BYTES))} elements`],
  ];

  function update() {
    try {
      const answer = solved(read());
      const sizes = LAYOUTS.map((layout) => sizeOf(layout, answer));
      const chosen = sizes.find(({ layout }) => layout === answer.layout);
      if (chosen.problem) throw new RangeError(`rates of layout ${chosen.layout} are ${chosen.problem}`);
      byId('results').hidden = false; // before curves are drawn, which need its width
      byId('link').href = linkOfFields();
      showSizes(answer, sizes);
      showCurves(answer, sizes.filter(({ problem }) => !problem));
      let { note } = answer;
      if (answer.hashes && answer.hashes !== chosen.numHashes) {
        note += ` The hashes give way in SQL: pg_bloom takes the best number, ${chosen.numHashes}.`;
      }
      if (chosen.bytes > MOST_STORED_BYTES) note += ' It is larger than 511 MB, the most that is stored.';
      byId('note').textContent = note;
    } catch (error) {
      byId('results').hidden = true;
      byId('note').textContent = error.message;
    }
  }

  function cell(row, name, text) {
    row.appendChild(document.createElement(name)).textContent = text;
  }

  function showSizes(answer, sizes) {
    const table = byId('sizes');
    table.tHead.replaceChildren();
    const heading = table.tHead.insertRow();
    cell(heading, 'th', `${grouped(answer.elements)} elements`);
    for (const { layout } of sizes) cell(heading, 'th', layout);
    table.tBodies[0].replaceChildren();
    for (const [label, text] of ROWS) {
      const row = table.tBodies[0].insertRow();
      cell(row, 'th', label);
      for (const size of sizes) cell(row, 'td', size.problem ?? text(size, answer));
    }
    const options = `${answer.elements}, ${answer.rate}, '${answer.layout}'`;
    byId('sql').textContent =
      `SELECT bloom_agg(x, ${options}) FROM t;\nSELECT * FROM bloom_parameters(${options});`;
  }

  // Curves.

  const SVG = 'http://www.w3.org/2000/svg';
  const GREATEST_WIDTH = 640;
  const LEAST_WIDTH = 300;
  const HEIGHT = 300;
  const MARGIN = { left: 80, right: 24, top: 34, bottom: 40 };
  const LABEL_WIDTH = 64;
  const STEPS = 60;

  function element(parent, name, attributes, text) {
    const made = parent.appendChild(document.createElementNS(SVG, name));
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** Returns round numbers from 0 to at least a maximum, about five of them. */
  function roundTicks(maximum) {
    const rough = maximum / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    return Array.from({ length: Math.ceil(maximum / step) + 1 }, (_, i) => i * step);
  }

  /** Returns the powers of ten between two numbers. */
  function powersOfTen(least, greatest) {
    const first = Math.ceil(Math.log10(least) - 1e-9);
    const last = Math.floor(Math.log10(greatest) + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
  }

  /** Draws curves: each has a layout and points; x and y have a scale from 0 to 1, ticks and labels. */
  function draw(id, title, curves, x, y) {
    const width = Math.max(LEAST_WIDTH, Math.min(GREATEST_WIDTH, byId(id).clientWidth));
    const svg = document.createElementNS(SVG, 'svg');
    for (const [key, value] of Object.entries({ width, height: HEIGHT, role: 'img', 'aria-label': title })) {
      svg.setAttribute(key, value);
    }
    const across = (value) => MARGIN.left + x.scale(value) * (width - MARGIN.left - MARGIN.right);
    const up = (value) => HEIGHT - MARGIN.bottom - y.scale(value) * (HEIGHT - MARGIN.top - MARGIN.bottom);
    const line = { stroke: 'var(--line)' };
    // Where there is little room, some ticks have no label.
    const labelEvery = Math.ceil((LABEL_WIDTH * (x.ticks.length - 1)) / (across(x.ticks.at(-1)) - across(x.ticks[0])));
    for (const [i, tick] of x.ticks.entries()) {
      element(svg, 'line', { x1: across(tick), x2: across(tick), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom, ...line });
      if (i % labelEvery === 0) element(svg, 'text', { x: across(tick), y: HEIGHT - MARGIN.bottom + 16, 'text-anchor': 'middle' }, x.label(tick));
    }
    for (const tick of y.ticks) {
      element(svg, 'line', { x1: MARGIN.left, x2: width - MARGIN.right, y1: up(tick), y2: up(tick), ...line });
      element(svg, 'text', { x: MARGIN.left - 6, y: up(tick) + 4, 'text-anchor': 'end' }, y.label(tick));
    }
    element(svg, 'text', { x: width / 2, y: HEIGHT - 4, 'text-anchor': 'middle' }, x.name);
    curves.forEach(({ layout, points }, i) => {
      const path = points.map((point) => `${across(point.x).toFixed(1)},${up(point.y).toFixed(1)}`).join(' ');
      const colour = `var(--${layout})`;
      const dashes = ['', '6 3', '2 3'][i];
      element(svg, 'polyline', { points: path, fill: 'none', stroke: colour, 'stroke-width': 2, 'stroke-dasharray': dashes });
      const at = { x: MARGIN.left + 76 * i, y: 16 };
      element(svg, 'text', { ...at, style: `fill: ${colour}` }, `${['—', '- -', '···'][i]} ${layout}`);
    });
    byId(id).replaceChildren(svg);
  }

  const shortNumber = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 2 });

  /** Returns a rate in few characters, for the ticks of an axis. */
  function tickRate(rate) {
    return rate >= 1e-4 ? shownRate(rate) : `1 in ${shortNumber.format(1 / rate)}`;
  }

  function logarithmic(least, greatest) {
    return (value) => Math.log(Math.max(value, least) / least) / Math.log(greatest / least);
  }

  function showCurves(answer, sizes) {
    const most = 4 * answer.elements;
    const leastRate = 10 ** Math.floor(Math.log10(answer.rate) - 3);
    const rates = sizes.map(({ layout, numBits, usedHashes }) => ({
      layout,
      points: Array.from({ length: STEPS + 1 }, (_, i) => {
        const elements = Math.round((most * i) / STEPS);
        return { x: elements, y: expectedFpr(elements, numBits, usedHashes, layout) };
      }),
    }));
    const ticks = roundTicks(most).filter((tick) => tick <= most);
    draw('rates', 'False positive rate by number of elements', rates,
      { scale: (value) => value / most, ticks, label: (tick) => shortNumber.format(tick), name: 'elements' },
      { scale: logarithmic(leastRate, 1), ticks: powersOfTen(leastRate, 1), label: tickRate });

    const bytes = sizes.map(({ layout }) => ({
      layout,
      points: Array.from({ length: STEPS + 1 }, (_, i) => {
        const rate = Math.min(GREATEST_RATE, 10 ** (-6 + (i / STEPS) * (6 + Math.log10(GREATEST_RATE))));
        return { x: Math.max(rate, 1e-6), y: parameters(answer.elements, Math.max(rate, 1e-6), layout).bytes };
      }),
    }));
    const mostBytes = Math.max(...bytes.flatMap(({ points }) => points.map((point) => point.y)));
    const unit = 1024 ** Math.floor(Math.log(mostBytes) / Math.log(1024));
    const byteTicks = roundTicks(mostBytes / unit).map((tick) => tick * unit);
    draw('bytes', 'Bytes by false positive rate', bytes,
      { scale: logarithmic(1e-6, GREATEST_RATE), ticks: powersOfTen(1e-6, GREATEST_RATE), label: tickRate, name: 'rate' },
      { scale: (value) => value / byteTicks.at(-1), ticks: byteTicks, label: shownBytes });
  }

  // The link.

  function linkOfFields() {
    const given = FIELDS.filter((id) => byId(id).value.trim() !== '');
    return `#${given.map((id) => `${id}=${encodeURIComponent(byId(id).value.trim())}`).join('&')}`;
  }

  /** Sets all fields: what the link doesn't name has its default. */
  function readLink() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const id of FIELDS) {
      const value = given.get(id) ?? '';
      byId(id).value = id !== 'l' || LAYOUTS.includes(value) ? value : LAYOUTS[0];
    }
    update();
  }

  // A filter.

  let filter;
  let lastLook = 0;
  /** Stored bytes begin with the version of the format, which is less than any character of a text. */
  const FIRST_CHARACTER = '\t'.charCodeAt(0);

  /** Returns the only filter in a text that psql or COPY wrote, which may have headings. Fails if there are several. */
  function filterOfText(text) {
    // With further digits, which are refused: a part may be a filter of fewer elements.
    const found = text.match(/\\x[0-9a-fA-F]+((?:[\s.…]+|[^\n]*\n[^\w\n]*)[0-9a-fA-F]{8,})?/g) ?? [];
    if (found.length > 1) throw new RangeError(`there are ${found.length} filters in it: give only one`);
    return Filter.parse(found[0] ?? text);
  }

  /** Returns the filter in a file, which has its stored bytes or a text. */
  async function filterOfFile(file) {
    const buffer = await file.arrayBuffer().catch((error) => {
      throw new Error(`“${file.name}” cannot be read: ${error.message}`);
    });
    const bytes = new Uint8Array(buffer);
    if (!(bytes[0] >= FIRST_CHARACTER)) return Filter.parse(bytes);
    // PowerShell writes UTF-16. The decoder drops a byte order mark.
    const encoding = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : 'utf-8';
    return filterOfText(new TextDecoder(encoding).decode(bytes));
  }

  /** Shows the filter that `read` returns or promises, unless `look` is called again in the meantime. */
  async function look(read) {
    const ownLook = ++lastLook;
    byId('problem').textContent = '';
    byId('found').hidden = true;
    byId('answer').textContent = '';
    try {
      const found = await read();
      if (ownLook !== lastLook) return;
      filter = found;
      showFilter(filter.info());
      byId('found').hidden = false;
    } catch (error) {
      if (ownLook === lastLook) byId('problem').textContent = error.message;
    }
  }

  function showFilter(info) {
    const rows = [
      ['Kind of elements', info.keyKind ?? 'none yet'],
      ['Layout', info.layout],
      ['Stored as', info.representation === 'sparse' ? 'a list of hashes' : 'bits'],
      ['Bytes', `${shownBytes(info.bytes)} (${grouped(info.bytes)})`],
      ['Capacity', info.capacity === null ? 'not given' : grouped(info.capacity)],
      ['Elements, estimated', info.cardinality === Infinity ? 'too many to tell' : grouped(info.cardinality)],
      ['Rate promised', shownRate(info.targetFpr)],
      ['Rate now', shownRate(info.currentFpr)],
      ['Overfull', filter.overfull ? 'yes' : 'no'],
      ['Bits set', `${grouped(info.bitsSet)} of ${grouped(info.numBits)} (${(100 * info.fillRatio).toFixed(1)} %)`],
      ['Hashes', String(info.numHashes)],
    ];
    const body = byId('header').tBodies[0];
    body.replaceChildren();
    for (const [label, text] of rows) {
      const row = body.insertRow();
      cell(row, 'th', label);
      cell(row, 'td', text);
    }
    showFill(info);
    const losesDigits = /timestamptz|UTC/.test(info.keyKind ?? '');
    byId('warning').textContent = losesDigits
      ? 'Write instants with all six digits of a second, as in 2026-02-28T12:34:56.789012Z: a Date of JavaScript has only three.'
      : '';
  }

  const COLUMNS = 32;
  const SQUARE = 18;

  /** Draws how full the parts of a filter are: blocks, or runs of blocks where there are many. */
  function showFill(info) {
    const picture = byId('fill');
    if (info.representation === 'sparse') {
      picture.textContent = 'A list of hashes has no bits yet.';
      return;
    }
    const bits = filter.bytes().subarray(-Math.ceil(info.numBits / 8));
    const blockBytes = info.layout === 'parquet' ? 32 : 64;
    const blocks = Math.ceil(bits.length / blockBytes);
    const parts = Math.min(blocks, COLUMNS * 16);
    const svg = document.createElementNS(SVG, 'svg');
    const label = `Share of bits set in each of ${parts} parts of the filter`;
    const size = { width: COLUMNS * SQUARE, height: Math.ceil(parts / COLUMNS) * SQUARE };
    for (const [key, value] of Object.entries({ ...size, role: 'img', 'aria-label': label })) {
      svg.setAttribute(key, value);
    }
    for (let part = 0; part < parts; part++) {
      const start = Math.floor((part * blocks) / parts) * blockBytes;
      const end = Math.floor(((part + 1) * blocks) / parts) * blockBytes;
      const fill = share(bits.subarray(start, end));
      const square = element(svg, 'rect', {
        x: (part % COLUMNS) * SQUARE, y: Math.floor(part / COLUMNS) * SQUARE,
        width: SQUARE - 1, height: SQUARE - 1, fill: 'var(--blocked)', 'fill-opacity': fill.toFixed(3), stroke: 'var(--line)',
      });
      element(square, 'title', {}, `${(100 * fill).toFixed(1)} %`);
    }
    picture.replaceChildren(svg);
  }

  function share(bytes) {
    let set = 0;
    for (let byte of bytes) for (; byte; byte &= byte - 1) set++;
    return set / (8 * bytes.length);
  }

  /** Bytes as PostgreSQL writes them. */
  const BYTES = /^\\x(?:[0-9a-fA-F]{2})*$/;
  /** The kinds of floats, and of arrays of them. */
  const FLOATS = /\b(float|FLOAT|DOUBLE)$/;

  function bytesOf(text) {
    if (!BYTES.test(text)) throw new TypeError('write bytes as \\x and hexadecimal digits');
    return Uint8Array.from(text.slice(2).match(/../g) ?? [], (byte) => parseInt(byte, 16));
  }

  /** Returns the number that a text is in PostgreSQL. Fails if it is none. */
  function floatOf(text) {
    const written = text.trim().toLowerCase();
    if (/^[+-]?nan$/.test(written)) return NaN;
    if (/^[+-]?inf(inity)?$/.test(written)) return written.startsWith('-') ? -Infinity : Infinity;
    const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(written) ? Number(written) : NaN;
    if (!Number.isFinite(number)) throw new TypeError(`“${text}” is not a number of double precision`);
    return number;
  }

  /** Returns the element that a text is in a filter of this kind. */
  function elementOf(text, kind) {
    if (/^array/.test(kind)) return JSON.parse(text);
    if (FLOATS.test(kind)) return floatOf(text);
    if (kind === 'boolean') return { true: true, false: false }[text] ?? text;
    return kind === 'bytea' ? bytesOf(text) : text;
  }

  /** Returns a function that rounds floats, times a factor, to type real. */
  const realForm = (factor) => (value, kind) =>
    typeof value === 'number' && FLOATS.test(kind) ? Math.fround(factor * value) : value;

  /**
   * The forms in which a column may have a typed element, and what the answer says of each. Types of one kind, such
   * as real and double precision, have different ones, and a "no" must hold for all.
   */
  const FORMS = [
    ['', (value) => value],
    [', as a real', realForm(1)],
    // A text near the middle of two reals is read as that middle, and PostgreSQL may round it to either.
    [', as a real', realForm(1 - 2 ** -53)],
    [', as a real', realForm(1 + 2 ** -52)],
    [', as a char(n)', (value) => (typeof value === 'string' ? value.replace(/ +$/, '') : value)],
    [', as bytes', (value, kind) => (kind === 'parquet BYTE_ARRAY' && BYTES.test(value) ? bytesOf(value) : value)],
  ];

  /** Returns an element in one of the forms; of an array, all members are in that form. */
  function inForm(element, form, kind) {
    return Array.isArray(element) ? element.map((member) => inForm(member, form, kind)) : form(element, kind);
  }

  function ask(event) {
    event.preventDefault();
    try {
      const kind = filter.header.keyKind ?? '';
      const element = elementOf(byId('element').value, kind);
      const found = FORMS.find(([, form]) => filter.has(inForm(element, form, kind)));
      byId('answer').textContent = found ? `It may be in the filter${found[0]}.` : 'It is not in the filter.';
    } catch (error) {
      byId('answer').textContent = error.message;
    }
  }

  function lookIntoFile(file) {
    if (file) look(() => filterOfFile(file));
  }

  byId('wanted').addEventListener('input', update);
  byId('wanted').addEventListener('submit', (event) => event.preventDefault());
  byId('paste').addEventListener('input', () => {
    if (byId('paste').value.trim() !== '') look(() => filterOfText(byId('paste').value));
  });
  byId('file').addEventListener('change', (event) => lookIntoFile(event.target.files[0]));
  byId('ask').addEventListener('submit', ask);
  for (const name of ['dragover', 'dragleave', 'drop']) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      byId('drop').classList.toggle('over', name === 'dragover');
      if (name === 'drop') lookIntoFile(event.dataTransfer.files[0]);
    });
  }
  window.addEventListener('hashchange', readLink);
  window.addEventListener('resize', update);
  readLink();
})();
