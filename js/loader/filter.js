import { FormatError, described, isHarmless, shown } from './errors.js';
import { bytesOfHex, hexOf } from './hex.js';
import { withInstance } from './instance.js';
import { capacityParameter, layoutCode, rateParameter } from './parameters.js';
import { isBytes, lengthOf } from './writer.js';

/** The largest stored filter, in bytes. */
const MAX_STORED_BYTES = 511 * 1024 * 1024;
/** Given to the constructor by this file alone. */
const TRUSTED = Symbol('stored bytes that were checked');
/** No name of a kind is longer. */
const LONGEST_KIND = 40;
/** V8 makes no longer lists at once. */
const LONGEST_LIST_MADE = 1 << 25;
const OPTIONS = ['capacity', 'fpr', 'layout', 'kind'];

/** A Bloom filter, as the type bloom of PostgreSQL has it. It never changes. */
export class Filter {
  #bytes;
  #header;

  constructor(trusted, bytes) {
    if (trusted !== TRUSTED) {
      throw new TypeError('a filter is made by Filter.parse or Filter.build');
    }
    this.#bytes = bytes;
  }

  static parse(stored) {
    const bytes = typeof stored === 'string' ? bytesOfHex(stored) : copyOfBytes(stored);
    withInstance((instance) => instance.handleOf(bytes));
    return new Filter(TRUSTED, bytes);
  }

  static build(elements, options = {}) {
    const { capacity, fpr, layout, kind } = checkedOptions(options);
    refuseOneValue(elements);
    const bytes = withInstance((instance) => {
      instance.write(kind);
      const builder = instance.exports.builder_new(capacity, fpr, layout, kind.length);
      return bytesOfBuild(instance, builder, elements);
    });
    return new Filter(TRUSTED, bytes);
  }

  withAll(elements) {
    refuseOneValue(elements);
    const bytes = withInstance((instance) => {
      const builder = instance.exports.builder_from(instance.handleOf(this.#bytes));
      return bytesOfBuild(instance, builder, elements);
    });
    return new Filter(TRUSTED, bytes);
  }

  has(element) {
    return withInstance(hasElement, this.#bytes, element);
  }

  hasMany(elements) {
    refuseOneValue(elements);
    return withInstance((instance) => {
      const answers = [];
      inBatches(instance.writer, elements, () => answers.push(answersOf(instance, this.#bytes)));
      return booleans(answers);
    });
  }

  union(other) {
    return this.#merged('filter_union', other);
  }

  intersection(other) {
    return this.#merged('filter_intersection', other);
  }

  /** Returns whether a value is a filter. An object can have the prototype of filters, but no bytes. */
  static #is(value) {
    return #bytes in Object(value);
  }

  #merged(operation, other) {
    if (!Filter.#is(other)) {
      const given = described(other);
      const hint = given === 'Filter' ? ' of another copy of the package or a proxy: parse its bytes' : '';
      throw new TypeError(`a filter is merged with another Filter, not with ${given}${hint}`);
    }
    const bytes = withInstance((instance) => {
      const handle = instance.handleOf(this.#bytes);
      const otherHandle = instance.handleOf(other.#bytes, this.#bytes);
      return instance.bytesOf(instance.exports[operation](handle, otherHandle));
    });
    return new Filter(TRUSTED, bytes);
  }

  resize(capacity) {
    const elements = capacityParameter(capacity);
    const bytes = withInstance((instance) => {
      const handle = instance.handleOf(this.#bytes);
      return instance.bytesOf(instance.exports.filter_resize(handle, elements));
    });
    return new Filter(TRUSTED, bytes);
  }

  equals(other) {
    if (!Filter.#is(other)) return false;
    const bytes = this.#bytes;
    const otherBytes = other.#bytes;
    return bytes.length === otherBytes.length && bytes.every((byte, i) => byte === otherBytes[i]);
  }

  get header() {
    this.#header ??= Object.freeze(this.#reported('filter_header'));
    return this.#header;
  }

  info() {
    const info = this.#reported('filter_info');
    // JSON has no infinity.
    info.cardinality ??= Infinity;
    return info;
  }

  #reported(name) {
    return withInstance((instance) => {
      instance.checked(instance.exports[name](instance.handleOf(this.#bytes)));
      return JSON.parse(instance.outputText());
    });
  }

  get cardinality() {
    return this.#number('filter_cardinality');
  }

  get fpr() {
    return this.#number('filter_fpr');
  }

  get overfull() {
    return this.#number('filter_is_overfull') === 1;
  }

  #number(name) {
    return withInstance((instance) => instance.exports[name](instance.handleOf(this.#bytes)));
  }

  bytes() {
    return this.#bytes.slice();
  }

  hex() {
    return hexOf(this.#bytes);
  }

  toPostgres() {
    return this.hex();
  }

  toJSON() {
    return this.hex();
  }

  toString() {
    return this.hex();
  }
}

function hasElement(instance, bytes, element) {
  const { writer, exports } = instance;
  writer.clear();
  writer.write(element);
  const handle = instance.handleOf(bytes);
  instance.write(writer.bytes, writer.length);
  return instance.checked(exports.filter_has(handle, writer.length)) === 1;
}

/** Writes elements, and calls `pass` whenever there are enough of them, and in the end. */
function inBatches(writer, elements, pass) {
  writer.clear();
  if (isPlainList(elements)) {
    writer.moveTo(elements, 0);
    while (writer.writeSome(elements)) {
      if (writer.isFull) pass();
    }
  } else {
    for (const element of elements) {
      writer.write(element);
      if (writer.isFull) pass();
    }
  }
  pass();
}

/** Returns whether a value is an array whose iterator is that of all arrays. */
function isPlainList(elements) {
  return (
    Array.isArray(elements) &&
    Object.getPrototypeOf(elements) === Array.prototype &&
    !Object.hasOwn(elements, Symbol.iterator)
  );
}

/**
 * Returns a byte for each element that was written, 1 if it may be in the filter and else 0, and
 * clears the writer.
 */
function answersOf(instance, bytes) {
  const { writer, exports } = instance;
  const handle = instance.handleOf(bytes);
  instance.write(writer.bytes, writer.length);
  instance.checked(exports.filter_contains(handle, writer.length));
  writer.clear();
  return instance.output().slice();
}

/** Returns a list with a boolean for each byte of some arrays: whether it is 1. */
function booleans(arrays) {
  const count = arrays.reduce((sum, array) => sum + array.length, 0);
  // A list that grows takes three times as long, but a longer one than this would be a hash table.
  const list = count <= LONGEST_LIST_MADE ? new Array(count) : [];
  let i = 0;
  for (const array of arrays) {
    for (let j = 0; j < array.length; j++) list[i++] = array[j] === 1;
  }
  return list;
}

/** Adds elements to a new builder, and returns the stored bytes of its filter. */
function bytesOfBuild(instance, builder, elements) {
  const { writer, exports } = instance;
  instance.checked(builder);
  try {
    inBatches(writer, elements, () => addWritten(instance, builder));
  } catch (error) {
    if (isHarmless(error)) exports.builder_release(builder);
    throw error;
  }
  return instance.bytesOf(exports.builder_finish(builder));
}

function addWritten(instance, builder) {
  const { writer, exports } = instance;
  instance.write(writer.bytes, writer.length);
  instance.checked(exports.builder_add(builder, writer.length));
  writer.clear();
}

/** Returns the options of a build as the module takes them. */
function checkedOptions(options) {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`options must be an object, not ${described(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!OPTIONS.includes(name)) throw new TypeError(`unknown option "${shown(name)}"`);
  }
  const kind = option(options, 'kind') ?? undefined;
  if (kind !== undefined && typeof kind !== 'string') {
    throw new TypeError(`kind must be a string, not ${described(kind)}`);
  }
  // The module has no kind for an empty name, and shows the whole name of an unknown one.
  if (kind === '' || kind?.length > LONGEST_KIND) {
    throw new RangeError(`unknown kind of elements "${shown(kind)}"`);
  }
  return {
    capacity: capacityParameter(option(options, 'capacity')),
    fpr: rateParameter(option(options, 'fpr')),
    layout: layoutCode(option(options, 'layout') ?? 'blocked'),
    kind: new TextEncoder().encode(kind ?? ''),
  };
}

/** Returns an option, unless all objects have it: other code may have changed their prototype. */
function option(options, name) {
  const isOfAllObjects = name in Object.prototype && !Object.prototype.hasOwnProperty.call(options, name);
  return isOfAllObjects ? undefined : options[name];
}

/** Refuses what is one element, whose characters or bytes would be taken for elements. */
function refuseOneValue(elements) {
  const isIterable = typeof elements?.[Symbol.iterator] === 'function';
  if (typeof elements === 'string' || isBytes(elements) || !isIterable) {
    const message = `elements must be given as an array or another iterable, not as one`;
    throw new TypeError(`${message} ${described(elements)}`);
  }
}

/** Returns a copy of bytes, which the caller may change later. */
function copyOfBytes(stored) {
  if (!isBytes(stored)) {
    const given = described(stored);
    throw new TypeError(`a filter is read from a Uint8Array or a string, not from ${given}`);
  }
  const length = lengthOf(stored);
  if (length > MAX_STORED_BYTES) {
    const why = `${length} bytes are too many`;
    throw new FormatError(`invalid bloom filter. The value is damaged: ${why}.`);
  }
  const copy = new Uint8Array(length);
  copy.set(stored);
  return copy;
}
