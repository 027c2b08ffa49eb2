import { described, refusal, shown } from './errors.js';
import { withInstance } from './instance.js';

/** The codes of layouts, as filters store them. */
const LAYOUT_CODES = new Map([
  ['blocked', 1],
  ['classic', 2],
  ['parquet', 3],
]);
/** The greatest number of SQL's type bigint. */
const GREATEST_INTEGER = 2n ** 63n - 1n;
const DEFAULT_FPR = 0.01;

/** Returns the code of a layout. */
export function layoutCode(layout) {
  if (typeof layout !== 'string') {
    throw refusal(TypeError, `layout must be a string, not ${described(layout)}`);
  }
  const code = LAYOUT_CODES.get(layout);
  if (code === undefined) {
    const known = '"blocked", "classic" and "parquet"';
    throw refusal(RangeError, `unknown layout "${shown(layout)}": there are ${known}`);
  }
  return code;
}

/** Returns a number, which must be an integer from `least` to 2^63 - 1, as a bigint. */
export function integerParameter(name, value, least) {
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    throw refusal(TypeError, `${name} must be a number, not ${described(value)}`);
  }
  const isExact = typeof value === 'bigint' || Number.isSafeInteger(value);
  if (!isExact || value < least || value > GREATEST_INTEGER) {
    const wanted = value > least && value <= GREATEST_INTEGER && Number.isInteger(value)
      ? 'a bigint above 2^53 - 1'
      : `an integer from ${least} to 2^63 - 1`;
    throw refusal(RangeError, `${name} must be ${wanted}, not ${shown(value)}`);
  }
  return BigInt(value);
}

/** Returns a capacity as a bigint; 0 if there is none. */
export function capacityParameter(capacity) {
  if (capacity === undefined || capacity === null) return 0n;
  return integerParameter('capacity', capacity, 1);
}

/** Returns a false positive rate, which the module checks; the default if there is none. */
export function rateParameter(fpr) {
  if (fpr === undefined || fpr === null) return DEFAULT_FPR;
  if (typeof fpr !== 'number') {
    throw refusal(TypeError, `fpr must be a number, not ${described(fpr)}`);
  }
  return fpr;
}

/** Returns the number or the object that a function of the module leaves as JSON. */
function reported(name, ...parameters) {
  return withInstance((instance) => {
    instance.checked(instance.exports[name](...parameters));
    return JSON.parse(instance.outputText());
  });
}

/** The size of a filter for a capacity, as SQL's bloom_parameters returns it. */
export function parameters(capacity, fpr, layout = 'blocked') {
  const elements = integerParameter('capacity', capacity, 1);
  return reported('parameters', elements, rateParameter(fpr), layoutCode(layout));
}

/** What the lookup table recommends for a rate, as SQL's bloom_best_practices returns it. */
export function bestPractices(maxFpr, layout = 'classic') {
  if (typeof maxFpr !== 'number') {
    throw refusal(TypeError, `maxFpr must be a number, not ${described(maxFpr)}`);
  }
  return reported('best_practices', maxFpr, layoutCode(layout));
}

/** The false positive rate of a filter, as SQL's bloom_expected_fpr returns it. */
export function expectedFpr(elements, numBits, numHashes, layout = 'classic') {
  const hashes = integerParameter('number of hashes', numHashes, 1);
  if (hashes > 64n) throw refusal(RangeError, `number of hashes must be at most 64, not ${hashes}`);
  return reported(
    'expected_fpr',
    integerParameter('number of elements', elements, 0),
    integerParameter('number of bits', numBits, 1),
    Number(hashes),
    layoutCode(layout),
  );
}

/** The largest capacity whose filter fits in so many bytes, as SQL's bloom_capacity returns it. */
export function capacityForBytes(bytes, fpr, layout = 'blocked') {
  const limit = integerParameter('number of bytes', bytes, 1);
  return reported('capacity', limit, rateParameter(fpr), layoutCode(layout));
}
