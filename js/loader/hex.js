import { FormatError, refusal } from './errors.js';

/** V8's strings have at most 2^29 - 24 characters: two for each byte, and the \x before them. */
const MOST_HEX_BYTES = (2 ** 29 - 24 - 2) / 2;

const DIGITS = new TextEncoder().encode('0123456789abcdef');

/** The values of hexadecimal digits by their character codes; -1 for other characters. */
const VALUES = new Int8Array(128).fill(-1);
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16);
  VALUES[digit.charCodeAt(0)] = value;
  VALUES[digit.toUpperCase().charCodeAt(0)] = value;
}

/**
 * Returns bytes as psql shows them: `\x` and two digits for each.
 *
 * Throws a RangeError if no string is long enough.
 */
export function hexOf(bytes) {
  if (bytes.length > MOST_HEX_BYTES) {
    const message = `a filter of ${bytes.length} bytes is too large for a string: use bytes()`;
    throw refusal(RangeError, message);
  }
  const text = new Uint8Array(2 + 2 * bytes.length);
  text.set([0x5c, 0x78]);
  for (let i = 0; i < bytes.length; i++) {
    text[2 + 2 * i] = DIGITS[bytes[i] >> 4];
    text[3 + 2 * i] = DIGITS[bytes[i] & 15];
  }
  return new TextDecoder().decode(text);
}

/**
 * Returns the bytes of a text as psql shows it, around which may be white space.
 *
 * Throws a FormatError for other texts.
 */
export function bytesOfHex(text) {
  const trimmed = text.trim();
  if (!trimmed.startsWith('\\x') || trimmed.length % 2 === 1) throw notHexadecimal();
  const bytes = new Uint8Array(trimmed.length / 2 - 1);
  for (let i = 0; i < bytes.length; i++) {
    const high = VALUES[trimmed.charCodeAt(2 + 2 * i)] ?? -1;
    const low = VALUES[trimmed.charCodeAt(3 + 2 * i)] ?? -1;
    if (high < 0 || low < 0) throw notHexadecimal();
    bytes[i] = high * 16 + low;
  }
  return bytes;
}

function notHexadecimal() {
  const why = 'it is not \\x and hexadecimal digits';
  return refusal(FormatError, `invalid bloom filter. The value is damaged: ${why}.`);
}
