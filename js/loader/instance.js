import { errorOfNumber, isHarmless } from './errors.js';
import { compiledModule } from './module.js';
import { Writer } from './writer.js';

/** The copies of filters that an instance keeps, in bytes. The last ones used are kept anyway. */
const MOST_CACHED_BYTES = 64 * 1024 * 1024;
/** What a copy takes beside its bytes, about, so that tiny filters are not kept by the million. */
const BYTES_PER_COPY = 1024;
/**
 * The memory of an instance never shrinks. From this size on, an instance that uses less than a
 * quarter of it for copies of filters is discarded.
 */
const LARGE_MEMORY_BYTES = 256 * 1024 * 1024;

/** So many bytes are copied faster one by one than by a call. */
const FEW_BYTES = 64;

const decoder = new TextDecoder();

/** Returns an address as it is meant: above 2 GB, the module's are negative in JavaScript. */
function unsigned(address) {
  return address >>> 0;
}

/**
 * An instance of the WebAssembly module, and the copies of filters in it.
 *
 * An exception of the module leaves an instance in an unknown state: it is discarded then, with all
 * copies. The bytes of filters are in JavaScript, so nothing is lost.
 */
class Instance {
  constructor() {
    this.exports = new WebAssembly.Instance(compiledModule(), {}).exports;
    this.writer = new Writer();
    this.lastMemory = new Uint8Array(0);
    /** Where the module's input is, and for how many bytes it has room. */
    this.inputAddress = 0;
    this.inputRoom = 0;
    /** Handles of copies by the bytes that were copied, the one used last at the end. */
    this.handles = new Map();
    this.cachedBytes = 0;
    /** The bytes used last, and their handle. */
    this.lastBytes = undefined;
    this.lastHandle = -1;
  }

  /** All bytes of the module's memory, until the module is called again. */
  get memory() {
    // When memory grows, the old array loses its bytes.
    if (this.lastMemory.length === 0) this.lastMemory = new Uint8Array(this.exports.memory.buffer);
    return this.lastMemory;
  }

  /** Copies the first bytes of an array, all unless `length` is given, to the module's input. */
  write(bytes, length = bytes.length) {
    if (length > this.inputRoom) {
      this.inputAddress = unsigned(this.exports.input(length));
      this.inputRoom = length;
    }
    const { memory, inputAddress } = this;
    if (length > FEW_BYTES) {
      memory.set(bytes.subarray(0, length), inputAddress);
    } else {
      for (let i = 0; i < length; i++) memory[inputAddress + i] = bytes[i];
    }
  }

  /** Returns the output of the last call, until the module is called again. */
  output() {
    const address = unsigned(this.exports.output());
    return this.memory.subarray(address, address + this.exports.output_length());
  }

  /** Returns the output of the last call as text. */
  outputText() {
    return decoder.decode(this.output());
  }

  /**
   * Returns a number that the module returned, if it isn't negative.
   *
   * Throws the error that a negative number stands for.
   */
  checked(number) {
    if (number < 0) throw errorOfNumber(number, this.outputText());
    return number;
  }

  /**
   * Returns the handle of the filter with these bytes, which must never change. The copy of the
   * filter `kept` stays in the module meanwhile.
   *
   * Throws a FormatError if the bytes are not a filter.
   */
  handleOf(bytes, kept) {
    if (bytes === this.lastBytes) return this.lastHandle;
    let handle = this.handles.get(bytes);
    if (handle === undefined) {
      this.makeRoom(bytes.length, kept);
      this.write(bytes);
      // The filter may take the input's memory for itself.
      this.inputRoom = 0;
      handle = this.checked(this.exports.filter_parse(bytes.length));
    }
    this.remember(bytes, handle);
    return handle;
  }

  /** Returns the bytes of a new filter, whose copy in the module is kept. */
  bytesOf(handle) {
    this.checked(handle);
    const address = unsigned(this.exports.filter_bytes(handle));
    const bytes = this.memory.slice(address, address + this.exports.filter_length(handle));
    this.makeRoom(bytes.length);
    this.remember(bytes, handle);
    return bytes;
  }

  /** Makes the copy with this handle the one used last. */
  remember(bytes, handle) {
    if (!this.handles.delete(bytes)) this.cachedBytes += bytes.length + BYTES_PER_COPY;
    this.handles.set(bytes, handle);
    this.lastBytes = bytes;
    this.lastHandle = handle;
  }

  /** Releases copies that were not used for longest, until there is room for one more. */
  makeRoom(length, kept) {
    for (const [bytes, handle] of this.handles) {
      if (this.cachedBytes + length <= MOST_CACHED_BYTES) return;
      if (bytes === kept) continue;
      this.exports.filter_release(handle);
      this.handles.delete(bytes);
      this.cachedBytes -= bytes.length + BYTES_PER_COPY;
      if (bytes === this.lastBytes) this.lastBytes = undefined;
    }
  }

  /** Returns whether most of the memory is unused, so that a new instance is better. */
  isWasteful() {
    const memoryBytes = this.memory.length;
    return memoryBytes > LARGE_MEMORY_BYTES && this.cachedBytes < memoryBytes / 4;
  }
}

/** The instance that waits for the next call. */
let idle;

/**
 * Returns what `work` returns, which is called with an instance and the two values that follow. While
 * it runs, others get another instance: an iterator of the caller may use filters, too.
 *
 * Throws what `work` throws, and a RangeError if memory runs out.
 */
export function withInstance(work, first, second) {
  const instance = idle ?? new Instance();
  idle = undefined;
  try {
    const result = work(instance, first, second);
    if (!instance.isWasteful()) idle = instance;
    return result;
  } catch (error) {
    if (isHarmless(error)) idle = instance;
    throw reason(instance, error);
  }
}

/** Returns the error to throw for an exception: one that says so if memory ran out. */
function reason(instance, error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return error;
  const missing = unsigned(instance.exports.missing_bytes());
  if (missing === 0) return error;
  return new RangeError(`no memory for ${missing} bytes`, { cause: error });
}
