/** How the bits of an element are chosen. `parquet` is Parquet's split block filter. */
export type Layout = 'blocked' | 'classic' | 'parquet';

/** The kinds of elements that are not arrays. */
export type ScalarKind =
  | 'integer'
  | 'text'
  | 'bytea'
  | 'float'
  | 'numeric'
  | 'uuid'
  | 'date'
  | 'timestamp'
  | 'timestamptz'
  | 'boolean'
  | 'time'
  | 'timetz'
  | 'interval';

/** The kinds of elements that JavaScript has values for. */
export type Kind = ScalarKind | `${ScalarKind}[]` | `array of ${ScalarKind}`;

/** An instant of the Temporal API, or of a polyfill. It must be of whole microseconds. */
export interface Instant {
  readonly [Symbol.toStringTag]: 'Temporal.Instant';
  readonly epochNanoseconds: bigint;
}

/** An element that is not an array. */
export type Scalar = string | bigint | number | boolean | Uint8Array | Date | Instant;

/**
 * An element. What it stands for depends on the kind of the filter:
 *
 * | kind | values |
 * |---|---|
 * | `integer` | a `bigint` of 64 bits, a safe integer, decimal digits (node-postgres reads `bigint` so) |
 * | `text` | a `string`; it is not normalised |
 * | `uuid` | a `string` in any form that PostgreSQL reads |
 * | `bytea` | a `Uint8Array`, such as a `Buffer` |
 * | `boolean` | a `boolean` |
 * | `float` | a `number`; of a column of type `real` give `Math.fround(x)` |
 * | `numeric` | a `string` or a `bigint` |
 * | `date` | `'2026-02-28'` |
 * | `timestamp`, `time` | `'2026-02-28T12:34:56.789012'`, `'12:34:56.789012'` |
 * | `timestamptz`, `timetz` | the same with `Z` or an offset, such as `+02:00` |
 * | `timestamptz` | also a `Date` or a `Temporal.Instant` |
 * | `interval` | `'P1Y2M3DT4H5M6.789012S'` |
 * | arrays | an `Array`; arrays in it are further dimensions |
 *
 * A `Date` has lost its microseconds: an element that has them is not found by one.
 */
export type Element = Scalar | ReadonlyArray<Scalar | null | ReadonlyArray<unknown>>;

/** What a filter is, apart from its elements: what SQL's `bloom_header` returns. */
export interface Header {
  readonly formatVersion: number;
  readonly layout: Layout;
  /** The kind of the elements, such as `text`; null for a filter that never had an element. */
  readonly keyKind: string | null;
  /** `sparse` for a list of hashes, `dense` for bits. */
  readonly representation: 'sparse' | 'dense';
  /** The number of elements up to which the filter keeps its rate; null if none was given. */
  readonly capacity: number | null;
  /** The false positive rate that was asked for. */
  readonly targetFpr: number;
  readonly numBits: number;
  /** The number of bits that an element sets. */
  readonly numHashes: number;
  /** The size of the stored filter. */
  readonly bytes: number;
}

/** What a filter is and how full it is: what SQL's `bloom_info` returns. */
export interface Info extends Header {
  /** Bits that are set in the dense form. */
  readonly bitsSet: number;
  /** The share of bits that are set. */
  readonly fillRatio: number;
  /** The estimated number of distinct elements; Infinity if all bits are set. */
  readonly cardinality: number;
  /** The false positive rate that the filter has now. */
  readonly currentFpr: number;
  /** Whether all bits are set, so that any element may be in the filter. */
  readonly saturated: boolean;
}

/** How a filter is built. */
export interface BuildOptions {
  /** Distinct elements to make room for; without it the filter is sized for those that it gets. */
  capacity?: number | bigint | null;
  /** The false positive rate at that capacity: 0.01 unless given. */
  fpr?: number | null;
  /** `blocked` unless given. */
  layout?: Layout | null;
  /**
   * The kind of the elements: that of the first one unless given. A `string` is a text then, a
   * `bigint` an integer; a `number` needs a kind. A filter without elements forgets it: it has no
   * kind.
   */
  kind?: Kind | null;
}

/**
 * A Bloom filter, as the type `bloom` of PostgreSQL has it. It never changes.
 *
 * An element of another kind than the filter's is a TypeError, since it would never be found. A value
 * out of its type's range is a RangeError. `null` is in no filter; `undefined` is a TypeError.
 */
export class Filter {
  private constructor();

  /**
   * Reads a stored filter: its bytes, or their text as psql shows it, `\x` and hexadecimal digits,
   * with white space around.
   *
   * Throws a FormatError for anything else. The bytes are copied.
   */
  static parse(stored: Uint8Array | string): Filter;

  /**
   * Returns the filter of these elements, the same bytes as SQL's `bloom_agg` makes. `null` is not
   * added. A string or a Uint8Array is one element, and a TypeError as a list of them.
   *
   * Throws a RangeError for options that are out of their range, and if the filter would have more
   * than 511 MB.
   */
  static build(elements: Iterable<Element | null> & object, options?: BuildOptions): Filter;

  /** Returns whether an element may be in the filter; `false` is certain. */
  has(element: Element | null): boolean;

  /** Returns for each element, in their order, whether it may be in the filter. */
  hasMany(elements: Iterable<Element | null> & object): boolean[];

  /** Returns a new filter that has more elements. This one stays as it is. */
  withAll(elements: Iterable<Element | null> & object): Filter;

  /**
   * Returns the filter of the elements of both.
   *
   * Throws a TypeError if their elements are of different kinds, and a RangeError if their layouts or
   * the numbers of bits that an element sets differ, or if neither size is a multiple of the other. A
   * filter without elements and capacity merges with any.
   */
  union(other: Filter): Filter;

  /** Returns the filter of what may be in both. It throws what `union` throws. */
  intersection(other: Filter): Filter;

  /**
   * Returns the filter as if built for another capacity. Without one, a sparse filter is sized for the
   * elements that it has.
   *
   * Throws a RangeError if the bits of a dense filter can't be divided so.
   */
  resize(capacity?: number | bigint | null): Filter;

  /** Returns whether another filter, of this copy of the package, has the same bytes. */
  equals(other: unknown): boolean;

  /** What the filter is, apart from its elements. */
  readonly header: Header;

  /** Returns what the filter is and how full it is. */
  info(): Info;

  /** The estimated number of distinct elements; Infinity if all bits are set. */
  readonly cardinality: number;

  /** The false positive rate that the filter has now. */
  readonly fpr: number;

  /** Whether that rate is higher than promised, beyond random variation. */
  readonly overfull: boolean;

  /** Returns a copy of the stored bytes, which PostgreSQL casts to `bloom` from `bytea`. */
  bytes(): Uint8Array;

  /**
   * Returns the stored bytes as text, as psql shows them: what `bloom` is written as in SQL.
   *
   * Throws a RangeError above 268 MB, since no string is long enough.
   */
  hex(): string;

  /** Returns what node-postgres sends for a filter: the text. */
  toPostgres(): string;

  /** Returns the text, so that a filter in JSON can be read again. */
  toJSON(): string;

  /** Returns the text, which drivers without an adapter send for a filter. */
  toString(): string;
}

/** Bytes, or a text, that are not a filter. */
export class FormatError extends Error {}

/** The size of a filter: what SQL's `bloom_parameters` returns. */
export interface Parameters {
  readonly numBits: number;
  readonly numHashes: number;
  /** The bytes of the filter as stored, once it is dense. */
  readonly bytes: number;
  /** The false positive rate at capacity. */
  readonly fpr: number;
}

/** Returns the size of a filter for a capacity. The rate is 0.01 unless given. */
export function parameters(
  capacity: number | bigint,
  fpr?: number | null,
  layout?: Layout,
): Parameters;

/** What a lookup table recommends: what SQL's `bloom_best_practices` returns. */
export interface BestPractices {
  readonly bitsPerElement: number;
  readonly numHashes: number;
  readonly fpr: number;
}

/** Returns the bits and hashes for a false positive rate. The layout is `classic` unless given. */
export function bestPractices(maxFpr: number, layout?: Layout): BestPractices;

/**
 * Returns the false positive rate of a filter with these numbers of distinct elements, bits and
 * hashes, as SQL's `bloom_expected_fpr` does. The layout is `classic` unless given.
 */
export function expectedFpr(
  elements: number | bigint,
  numBits: number | bigint,
  numHashes: number,
  layout?: Layout,
): number;

/**
 * Returns the largest capacity whose filter fits in so many bytes, as SQL's `bloom_capacity` does. The
 * rate is 0.01 unless given.
 *
 * Throws a RangeError if not even a filter for one element fits.
 */
export function capacityForBytes(
  bytes: number | bigint,
  fpr?: number | null,
  layout?: Layout,
): number;
