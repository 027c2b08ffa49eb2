import { described, refusal, shown } from './errors.js';

/** The forms of values, as js/src/value.rs reads them. */
const NULL = 0;
const TEXT = 1;
const BYTES = 2;
const INTEGER = 3;
const NUMBER = 4;
const BOOLEAN = 5;
const INSTANT = 6;
const LARGE_INTEGER = 7;
const ARRAY = 8;

/** The bytes of values that are passed to the module at once, unless one value is larger. */
const BATCH_BYTES = 1 << 16;
/** Texts of fewer units are encoded here, since a call of the encoder takes longer. */
const SHORT_TEXT = 48;
/** The most bytes of UTF-8 for a unit of a string. */
const BYTES_PER_UNIT = 3;
/** The most dimensions of an array in PostgreSQL. */
const MOST_DIMENSIONS = 6;
/** Nanoseconds of Temporal.Instant in a microsecond. */
const NANOSECONDS = 1000n;
/** More bits than the 131,072 digits of the largest numeric have. */
const MOST_INTEGER_BITS = 435_500;
/** Stands for all integers of more bits, which no kind has: their digits could take minutes. */
const TOO_LARGE = '1e131072';

const encoder = new TextEncoder();

/** Returns the name of a built-in class, also of a value that is from another frame or realm. */
function builtInClass(value) {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}

/** Returns whether a value is a Uint8Array, such as a Buffer. */
export function isBytes(value) {
  return ArrayBuffer.isView(value) && builtInClass(value) === 'Uint8Array';
}

/** Returns whether a string has a surrogate without its other half. */
function hasLoneSurrogate(text) {
  return /\p{Surrogate}/u.test(text);
}

/** Values as bytes that the module reads. */
export class Writer {
  constructor() {
    this.bytes = new Uint8Array(2 * BATCH_BYTES);
    this.view = new DataView(this.bytes.buffer);
    this.length = 0;
  }

  /** Forgets what was written. */
  clear() {
    this.length = 0;
    // Room for one large value isn't kept forever.
    if (this.bytes.length > 4 * BATCH_BYTES) this.resize(2 * BATCH_BYTES);
  }

  /** Whether there is enough to be passed to the module. */
  get isFull() {
    return this.length >= BATCH_BYTES;
  }

  /** Returns what was written, until more is written. */
  written() {
    return this.bytes.subarray(0, this.length);
  }

  /** Makes room for so many bytes more. */
  reserve(length) {
    const needed = this.length + length;
    if (needed > this.bytes.length) this.resize(Math.max(needed, 2 * this.bytes.length));
  }

  resize(length) {
    const bytes = new Uint8Array(length);
    bytes.set(this.written());
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
  }

  /**
   * Writes a value.
   *
   * Throws a TypeError if it is of a type that has no elements, and a RangeError for a string with
   * a lone surrogate, an invalid Date, and an instant with nanoseconds.
   */
  write(value) {
    if (typeof value === 'string') return this.writeText(value);
    this.reserve(9);
    if (typeof value === 'number') {
      this.bytes[this.length] = NUMBER;
      this.view.setFloat64(this.length + 1, value, true);
      this.length += 9;
    } else if (typeof value === 'bigint') {
      this.writeInteger(value);
    } else if (typeof value === 'boolean') {
      this.bytes[this.length] = BOOLEAN;
      this.bytes[this.length + 1] = Number(value);
      this.length += 2;
    } else if (value === null) {
      this.bytes[this.length++] = NULL;
    } else {
      this.writeObject(value);
    }
  }

  writeObject(value) {
    if (Array.isArray(value)) return this.writeArray(value);
    if (isBytes(value)) return this.writeBytes(BYTES, value);
    const className = typeof value === 'object' ? builtInClass(value) : undefined;
    if (className === 'Date') return this.writeDate(value);
    if (className === 'Temporal.Instant') return this.writeInstant(value.epochNanoseconds);
    throw refusal(TypeError, `${described(value)} cannot be an element of a bloom filter`);
  }

  writeText(text) {
    const { length } = text;
    if (length >= SHORT_TEXT) return this.writeLongText(text);

    this.reserve(5 + BYTES_PER_UNIT * SHORT_TEXT);
    const { bytes } = this;
    const start = this.length + 5;
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 127) return this.writeLongText(text);
      bytes[start + i] = unit;
    }
    this.finishText(TEXT, length);
  }

  writeLongText(text) {
    this.reserve(5 + BYTES_PER_UNIT * text.length);
    const { written } = encoder.encodeInto(text, this.bytes.subarray(this.length + 5));
    // A text with as many bytes as units is ASCII.
    if (written !== text.length && hasLoneSurrogate(text)) {
      throw refusal(RangeError, 'a string with a lone surrogate is not Unicode');
    }
    this.finishText(TEXT, written);
  }

  /** Writes what stands before the bytes of a text, which are already behind it. */
  finishText(form, length) {
    this.bytes[this.length] = form;
    this.view.setUint32(this.length + 1, length, true);
    this.length += 5 + length;
  }

  writeBytes(form, bytes) {
    this.reserve(5 + bytes.length);
    this.bytes.set(bytes, this.length + 5);
    this.finishText(form, bytes.length);
  }

  writeInteger(integer) {
    if (BigInt.asIntN(64, integer) !== integer) {
      const isNumeric = BigInt.asIntN(MOST_INTEGER_BITS, integer) === integer;
      const digits = isNumeric ? String(integer) : TOO_LARGE;
      return this.writeBytes(LARGE_INTEGER, encoder.encode(digits));
    }
    this.writeInt64(INTEGER, integer);
  }

  writeInt64(form, integer) {
    this.bytes[this.length] = form;
    this.view.setBigInt64(this.length + 1, integer, true);
    this.length += 9;
  }

  writeDate(date) {
    const milliseconds = Date.prototype.getTime.call(date);
    if (Number.isNaN(milliseconds)) throw refusal(RangeError, 'an invalid Date is no instant');
    this.writeInt64(INSTANT, BigInt(milliseconds) * 1000n);
  }

  writeInstant(nanoseconds) {
    if (typeof nanoseconds !== 'bigint') {
      throw refusal(TypeError, `epochNanoseconds must be a bigint, not ${described(nanoseconds)}`);
    }
    if (nanoseconds % NANOSECONDS !== 0n) {
      const message = 'elements have microseconds, and this instant has nanoseconds: round it first';
      throw refusal(RangeError, message);
    }
    const microseconds = nanoseconds / NANOSECONDS;
    if (BigInt.asIntN(64, microseconds) !== microseconds) {
      throw refusal(RangeError, `an instant of ${shown(nanoseconds)} nanoseconds is out of range`);
    }
    this.writeInt64(INSTANT, microseconds);
  }

  /** Writes an array. Arrays in it are further dimensions, as in PostgreSQL. */
  writeArray(array) {
    const lengths = [];
    for (let inner = array; Array.isArray(inner); inner = inner[0]) {
      if (lengths.length === MOST_DIMENSIONS) {
        throw refusal(RangeError, `an array has more than ${MOST_DIMENSIONS} dimensions`);
      }
      lengths.push(inner.length);
    }
    this.reserve(5 + 4 * lengths.length);
    this.bytes[this.length] = ARRAY;
    this.view.setUint32(this.length + 1, lengths.length, true);
    this.length += 5;
    for (const length of lengths) {
      this.view.setUint32(this.length, length, true);
      this.length += 4;
    }
    this.writeMembers(array, lengths, 0);
  }

  writeMembers(array, lengths, depth) {
    const isInnermost = depth === lengths.length - 1;
    if (!Array.isArray(array) || array.length !== lengths[depth]) throw ragged();
    for (const member of array) {
      if (!isInnermost) this.writeMembers(member, lengths, depth + 1);
      else if (Array.isArray(member)) throw ragged();
      else this.write(member);
    }
  }
}

function ragged() {
  const message = 'arrays in an array must have one length and depth, as an array of SQL has';
  return refusal(RangeError, message);
}
