import { described, refusal } from './errors.js';

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
/** The forms of runs, which are values of one type that follow each other. */
const TEXTS = 9;
const INTEGERS = 10;
const NUMBERS = 11;
/** The forms of values that no element can be, of which the module says so if it could be of their type. */
const UNPAIRED_TEXT = 12;
const NO_INSTANT = 13;
/** The bytes before the values of a run: its form, three unused ones, and the number of values. */
const RUN_HEADER = 8;

/** The bytes of values that are passed to the module at once, unless one value is larger. */
const BATCH_BYTES = 1 << 16;
/** The most values in a run. */
const LONGEST_RUN = 1 << 12;
/** From so many units on, a run of texts ends. A text of so many is in no run. */
const UNITS_OF_RUN = BATCH_BYTES / 2;
/** Whether numbers in memory are as the module reads them; they aren't on mainframes. */
const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
/** Texts of fewer units are encoded here, since a call of the encoder takes longer. */
const SHORT_TEXT = 48;
/** Stands behind the last value of a list. */
const END = Symbol('the end of a list');
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

/** The properties of all typed arrays, which say what one is, whatever properties of its own say. */
const ofTypedArrays = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(Uint8Array.prototype));
const { get: nameOfTypedArray } = ofTypedArrays[Symbol.toStringTag];
const { get: lengthOfTypedArray } = ofTypedArrays.length;

/** Returns whether a value is a Uint8Array, such as a Buffer, also of another frame or realm. */
export function isBytes(value) {
  return nameOfTypedArray.call(value) === 'Uint8Array';
}

/** Returns how many bytes a Uint8Array has. */
export function lengthOf(bytes) {
  return lengthOfTypedArray.call(bytes);
}

/** Returns whether a string has a surrogate without its other half. */
function hasLoneSurrogate(text) {
  return /\p{Surrogate}/u.test(text);
}

/** Values as bytes that the module reads. */
export class Writer {
  constructor() {
    this.length = 0;
    this.resize(2 * BATCH_BYTES);
    /** The lengths of the texts of a run. */
    this.lengths = new Uint32Array(LONGEST_RUN);
    /** The index of the next value of a list that is written, and that value, or `END`. */
    this.next = 0;
    this.value = END;
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
    const old = this.length > 0 ? this.written() : [];
    // The arrays of numbers need a length that is a multiple of 8.
    const buffer = new ArrayBuffer(Math.ceil(length / 8) * 8);
    this.bytes = new Uint8Array(buffer);
    this.bytes.set(old);
    this.view = new DataView(buffer);
    this.integers = new BigInt64Array(buffer);
    this.numbers = new Float64Array(buffer);
  }

  /**
   * Writes a value.
   *
   * Throws a TypeError if it is of a type that has no elements, and a RangeError for arrays that are
   * no array of SQL.
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

  /** Reads the value of a list with an index, which is the next one to be written. */
  moveTo(list, index) {
    this.next = index;
    this.value = index < list.length ? list[index] : END;
  }

  /**
   * Writes one or more values of a list that follow those that were written, and returns whether
   * there were any. Values of one type that follow each other are written as a run, which is faster
   * than to write each. Each value of the list is read once, since a getter may return another one
   * the next time.
   *
   * Throws what `write` throws.
   */
  writeSome(list) {
    const { next: first, value } = this;
    if (value === END) return false;
    const type = IS_LITTLE_ENDIAN ? typeof value : undefined;
    const isAligned = this.length % 8 === 0;
    if (type === 'string') this.writeTexts(list);
    else if (type === 'number' && isAligned) this.writeNumbers(list);
    else if (type === 'bigint' && isAligned) this.writeIntegers(list);
    if (this.next > first) return true;

    this.write(value);
    this.moveTo(list, first + 1);
    return true;
  }

  /** Writes a run of numbers, up to something else in the list. */
  writeNumbers(list) {
    this.reserve(RUN_HEADER + 8 * LONGEST_RUN);
    const { numbers, next: first } = this;
    const start = (this.length + RUN_HEADER) / 8;
    let { value } = this;
    let count = 0;
    while (typeof value === 'number' && count < LONGEST_RUN) {
      numbers[start + count] = value;
      count++;
      value = first + count < list.length ? list[first + count] : END;
    }
    this.finishRun(NUMBERS, count, 8 * (start + count), value);
  }

  /**
   * Writes a run of bigints of 64 bits, up to something else in the list. One function for these and
   * for numbers would be slower: engines compile a loop for the types that it meets.
   */
  writeIntegers(list) {
    this.reserve(RUN_HEADER + 8 * LONGEST_RUN);
    const { integers, next: first } = this;
    const start = (this.length + RUN_HEADER) / 8;
    let { value } = this;
    let count = 0;
    while (typeof value === 'bigint' && BigInt.asIntN(64, value) === value && count < LONGEST_RUN) {
      integers[start + count] = value;
      count++;
      value = first + count < list.length ? list[first + count] : END;
    }
    this.finishRun(INTEGERS, count, 8 * (start + count), value);
  }

  /**
   * Writes texts, up to something else in the list. If all of them are ASCII, they are a run, and are
   * encoded together.
   */
  writeTexts(list) {
    const { lengths, next: first } = this;
    let { value } = this;
    let joined = '';
    let count = 0;
    while (
      typeof value === 'string' &&
      value.length < UNITS_OF_RUN &&
      joined.length < UNITS_OF_RUN &&
      count < LONGEST_RUN
    ) {
      joined += value;
      lengths[count] = value.length;
      count++;
      value = first + count < list.length ? list[first + count] : END;
    }

    const { length: units } = joined;
    const start = this.length + RUN_HEADER + 4 * count;
    this.reserve(RUN_HEADER + 4 * count + units);
    const { read, written } = encoder.encodeInto(joined, this.bytes.subarray(start, start + units));
    const isAscii = read === units && written === units;
    if (isAscii) {
      this.bytes.set(new Uint8Array(lengths.buffer, 0, 4 * count), this.length + RUN_HEADER);
      this.finishRun(TEXTS, count, start + units, value);
      return;
    }
    let at = 0;
    for (const length of lengths.slice(0, count)) {
      this.write(joined.slice(at, at + length));
      at += length;
    }
    this.next += count;
    this.value = value;
  }

  /**
   * Writes what stands before the values of a run, which are already behind it, up to `end`. `value`
   * is the one in the list that follows them.
   */
  finishRun(form, count, end, value) {
    if (count === 0) return;
    this.bytes[this.length] = form;
    this.view.setUint32(this.length + 4, count, true);
    this.length = end;
    this.next += count;
    this.value = value;
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
    const isUnpaired = written !== text.length && hasLoneSurrogate(text);
    this.finishText(isUnpaired ? UNPAIRED_TEXT : TEXT, written);
  }

  /** Writes what stands before the bytes of a text, which are already behind it. */
  finishText(form, length) {
    this.bytes[this.length] = form;
    this.view.setUint32(this.length + 1, length, true);
    this.length += 5 + length;
  }

  writeBytes(form, bytes) {
    const length = lengthOf(bytes);
    this.reserve(5 + length);
    this.bytes.set(bytes, this.length + 5);
    this.finishText(form, length);
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
    if (Number.isNaN(milliseconds)) return this.writeNoInstant('an invalid Date is no instant');
    this.writeInt64(INSTANT, BigInt(milliseconds) * 1000n);
  }

  writeInstant(nanoseconds) {
    if (typeof nanoseconds !== 'bigint') {
      throw refusal(TypeError, `epochNanoseconds must be a bigint, not ${described(nanoseconds)}`);
    }
    if (nanoseconds % NANOSECONDS !== 0n) {
      const message = 'elements have microseconds, and this instant has nanoseconds: round it first';
      return this.writeNoInstant(message);
    }
    const microseconds = nanoseconds / NANOSECONDS;
    if (BigInt.asIntN(64, microseconds) !== microseconds) {
      return this.writeNoInstant('an instant of so many nanoseconds is out of range');
    }
    this.writeInt64(INSTANT, microseconds);
  }

  /** Writes why an instant can't be an element. */
  writeNoInstant(reason) {
    this.writeBytes(NO_INSTANT, encoder.encode(reason));
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
    // An iterator of the caller's could give more or fewer members than were announced.
    for (let i = 0; i < lengths[depth]; i++) {
      const member = array[i];
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
