import { sql } from 'drizzle-orm';
import { customType, index } from 'drizzle-orm/pg-core';
import { Filter } from 'pg-bloom';

export const bloom = customType({ dataType: () => 'bloom', toDriver: (filter) => filter.hex(), fromDriver });

/** Returns the filter, or null, that a driver gives for a column of filters or a member of an array. */
function fromDriver(value) {
  // A driver that was registered has read the filter already.
  if (value instanceof Filter) return value;
  // Drizzle itself reads arrays that are text: it leaves NULL in them, and drops any backslash.
  if (value === null || value === 'NULL') return null;
  return Filter.parse(typeof value === 'string' ? value.replace(/^x/, '\\x') : value);
}

const NAME = '(?:[a-z_][a-z0-9_]*|"[^"]+")';
/** Names of types, with a schema, quotes, lengths or brackets, and nothing else. */
const TYPE_NAME = new RegExp(
  `^${NAME}(?:\\.${NAME})?(?: precision| varying)?(?:\\(\\d+(?:, ?\\d+)?\\))?(?: with(?:out)? time zone)?(?:\\[\\])*$`,
  'i',
);

/** Returns the type in SQL of a value, if the value tells it. */
function typeOf(value) {
  if (typeof value === 'string') return 'text';
  if (typeof value === 'bigint') return 'bigint';
  if (typeof value === 'boolean') return 'boolean';
  if (value instanceof Uint8Array) return 'bytea';
  throw new TypeError('name the type of the element in SQL: mayContain(column, value, "bigint")');
}

export function mayContain(column, value, type = typeOf(value)) {
  if (!TYPE_NAME.test(type)) throw new RangeError(`"${type}" is no name of a type`);
  // node-postgres sends no types, and an element is of the kind of its type.
  return sql`${column} @> (${sent(value)})::${sql.raw(type)}`;
}

/** Returns what is sent for an element: through Drizzle, drivers can't send some values as they are. */
function sent(value) {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Date) return textOfDate(value);
  return Array.isArray(value) ? textOfArray(value) : value;
}

/** Returns a Date as PostgreSQL writes it, which has no year 0 and no signs of years. */
function textOfDate(date) {
  const time = date.toISOString().slice(0, -'Z'.length);
  const year = date.getUTCFullYear();
  const dayAndTime = time.slice(time.indexOf('-', 1)).replace('T', ' ');
  const written = String(year > 0 ? year : 1 - year).padStart(4, '0');
  return `${written}${dayAndTime}+00${year > 0 ? '' : ' BC'}`;
}

/** Returns an array as PostgreSQL reads it. */
function textOfArray(array) {
  const members = Array.from(array, (member) => {
    if (Array.isArray(member)) return textOfArray(member);
    if (member === null || member === undefined) return 'NULL';
    return `"${textOfMember(member).replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${members.join(',')}}`;
}

/**
 * Returns a member of an array as PostgreSQL reads it. Throws a TypeError for objects that have no
 * text of their own, such as expressions and columns: their text would be taken for an element.
 */
function textOfMember(member) {
  if (member instanceof Date) return textOfDate(member);
  const bytes = bytesOf(member);
  if (bytes) return `\\x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
  const text = String(member);
  if (typeof member === 'object' && text.startsWith('[object ')) {
    throw new TypeError('the members of an array must be values, not expressions or other objects');
  }
  return text;
}

/** Returns the bytes of a view or a buffer; undefined for other values. */
function bytesOf(value) {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!ArrayBuffer.isView(value)) return undefined;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

export function bloomIndex(name, column, { operatorClass, ...options } = {}) {
  const indexed = operatorClass === undefined ? column : column.op(operatorClass);
  const made = index(name).using('bloom_filter', indexed);
  return Object.keys(options).length === 0 ? made : made.with(options);
}
