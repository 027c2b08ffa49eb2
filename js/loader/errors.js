/** Bytes, or a text, that are not a filter. */
export class FormatError extends Error {}
// Not by an assignment, which fails if the prototype of all errors was frozen.
Object.defineProperty(FormatError.prototype, 'name', { value: 'FormatError', writable: true, configurable: true });

/** The classes of errors by the negative numbers that functions of the module return. */
const CLASSES = { '-1': TypeError, '-2': RangeError, '-3': FormatError };

/** Errors after which an instance of the module is as it was before. */
const harmless = new WeakSet();

/** Returns an error that says nothing about the state of the module. */
export function refusal(ErrorClass, message) {
  const error = new ErrorClass(message);
  harmless.add(error);
  return error;
}

/** Returns the error for a negative number that a function of the module returned. */
export function errorOfNumber(number, message) {
  return refusal(CLASSES[number], message);
}

/** Returns whether an instance can be used further although this was thrown. */
export function isHarmless(error) {
  return harmless.has(error);
}

/** Returns what a value is, for messages. */
export function described(value) {
  if (value === null) return 'null';
  if (typeof value !== 'object') return typeof value;
  const name = value.constructor?.name;
  return typeof name === 'string' && name !== '' ? name : 'object';
}

/** How much of a text messages show. */
const MOST_UNITS_SHOWN = 40;

/** Returns the beginning of a text, or a number, for messages. Digits of a huge bigint would take minutes. */
export function shown(value) {
  if (typeof value !== 'bigint') return String(value).slice(0, MOST_UNITS_SHOWN);
  return BigInt.asIntN(128, value) === value ? String(value) : 'a larger bigint';
}
