/** Extra bits and least values of the symbols for lengths and distances: RFC 1951, section 3.2.5. */
const LENGTHS = symbolValues(29, 3, (i) => (i < 8 || i === 28 ? 0 : (i - 4) >> 2));
LENGTHS.least[28] = 258;
const DISTANCES = symbolValues(30, 1, (i) => (i < 4 ? 0 : (i - 2) >> 1));
/** The order in which the lengths of codes for lengths are stored. */
const CODE_LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const END_OF_BLOCK = 256;

function symbolValues(count, first, extraBits) {
  const values = { least: [], extra: [] };
  let least = first;
  for (let i = 0; i < count; i++) {
    values.least.push(least);
    values.extra.push(extraBits(i));
    least += 1 << extraBits(i);
  }
  return values;
}

/** The types of blocks. */
const STORED = 0;
const WITH_FIXED_CODES = 1;

/** Returns the bytes of a valid stream of raw deflate. `length` is how many bytes there are. */
export function inflate(stream, length) {
  const bytes = new Uint8Array(length);
  let written = 0;
  let position = 0;
  let bitBuffer = 0;
  let bitCount = 0;

  function bits(count) {
    while (bitCount < count) {
      bitBuffer |= stream[position++] << bitCount;
      bitCount += 8;
    }
    const value = bitBuffer & ((1 << count) - 1);
    bitBuffer >>>= count;
    bitCount -= count;
    return value;
  }

  // Codes of one length are consecutive numbers, so a code is found by counting.
  function symbol({ counts, symbols }) {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let codeLength = 1; ; codeLength++) {
      code |= bits(1);
      const count = counts[codeLength];
      if (code - first < count) return symbols[index + code - first];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
  }

  function readCodes() {
    const literalCount = bits(5) + 257;
    const distanceCount = bits(5) + 1;
    const orderCount = bits(4) + 4;
    const orderLengths = new Array(19).fill(0);
    for (let i = 0; i < orderCount; i++) orderLengths[CODE_LENGTH_ORDER[i]] = bits(3);
    const lengthCode = codeOf(orderLengths);

    const lengths = [];
    while (lengths.length < literalCount + distanceCount) {
      const length = symbol(lengthCode);
      if (length < 16) lengths.push(length);
      else if (length === 16) repeat(lengths, lengths.at(-1), 3 + bits(2));
      else if (length === 17) repeat(lengths, 0, 3 + bits(3));
      else repeat(lengths, 0, 11 + bits(7));
    }
    return {
      literals: codeOf(lengths.slice(0, literalCount)),
      distances: codeOf(lengths.slice(literalCount)),
    };
  }

  function copyStored() {
    // The block begins at a whole byte.
    bitBuffer = 0;
    bitCount = 0;
    const count = bits(16);
    bits(16); // the complement of the count
    for (let i = 0; i < count; i++) bytes[written++] = stream[position++];
  }

  let isLast = false;
  while (!isLast) {
    isLast = bits(1) === 1;
    const type = bits(2);
    if (type === STORED) {
      copyStored();
      continue;
    }
    const { literals, distances } = type === WITH_FIXED_CODES ? fixedCodes() : readCodes();
    for (let next = symbol(literals); next !== END_OF_BLOCK; next = symbol(literals)) {
      if (next < END_OF_BLOCK) {
        bytes[written++] = next;
        continue;
      }
      const run = next - 257;
      const runLength = LENGTHS.least[run] + bits(LENGTHS.extra[run]);
      const back = symbol(distances);
      const distance = DISTANCES.least[back] + bits(DISTANCES.extra[back]);
      for (let i = 0; i < runLength; i++, written++) bytes[written] = bytes[written - distance];
    }
  }
  return bytes;
}

/** Returns the codes of blocks that have none of their own: RFC 1951, section 3.2.6. */
function fixedCodes() {
  const lengths = [];
  repeat(lengths, 8, 144);
  repeat(lengths, 9, 112);
  repeat(lengths, 7, 24);
  repeat(lengths, 8, 8);
  return { literals: codeOf(lengths), distances: codeOf(new Array(30).fill(5)) };
}

function repeat(list, value, count) {
  for (let i = 0; i < count; i++) list.push(value);
}

/** Returns the canonical Huffman code whose symbols have these lengths. */
function codeOf(lengths) {
  const counts = new Array(16).fill(0);
  const symbols = [];
  for (let length = 1; length < 16; length++) {
    lengths.forEach((ofSymbol, symbol) => {
      if (ofSymbol === length) {
        counts[length]++;
        symbols.push(symbol);
      }
    });
  }
  return { counts, symbols };
}
