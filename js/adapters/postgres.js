import { Filter } from 'pg-bloom';
import { ARRAYS_AS_TEXT, NUMERIC, NUMERICS, OIDS_QUERY, TYPES_AS_TEXT } from './shared.js';
import { filtersOfArray, oidsOf, textsOfArray } from './shared.js';

export async function register(sql) {
  if (typeof sql.options?.parsers !== 'object') {
    throw new TypeError('register takes what postgres() returns, not a transaction or a reserved connection');
  }
  // Arrays of columns: names of columns may be transformed.
  const oids = oidsOf(await sql.unsafe(OIDS_QUERY).values());
  const { parsers, serializers } = sql.options;
  parsers[oids.filter] = (text) => Filter.parse(text);
  parsers[oids.array] = filtersOfArray;
  // A serializer that throws would leave the connection of postgres.js unusable.
  serializers[oids.filter] = textOrReason(textOf);
  serializers[oids.array] = textOrReason(arrayText);
  for (const oid of Object.values(TYPES_AS_TEXT)) {
    parsers[oid] = (text) => text;
    serializers[oid] = textOrSerialized(serializers[oid]);
  }
  for (const oid of Object.values(ARRAYS_AS_TEXT)) parsers[oid] = textsOfArray;
  // A program that has its own numbers has them in arrays, too.
  if (parsers[NUMERIC] === undefined) parsers[NUMERICS] = textsOfArray;
}

/**
 * Returns a serializer that sends texts as they are: that of postgres.js makes a Date of them, which
 * has no microseconds. Other values are for `serialize`, the driver's own one, if there is one.
 */
function textOrSerialized(serialize = String) {
  return (value) => (typeof value === 'string' ? value : serialize(value));
}

/**
 * Returns a serializer that never throws: for what is too large for a text, or has none, it returns
 * the reason, which the server refuses and shows.
 */
function textOrReason(serialize) {
  return (value) => {
    try {
      return serialize(value);
    } catch (error) {
      return `no text: ${error?.message}`;
    }
  };
}

/** Returns what is sent for a filter, which may be given as text, too. */
function textOf(filter) {
  return filter instanceof Filter ? filter.hex() : String(filter);
}

/** Returns what is sent for an array of filters, of any dimensions, which may be given as text, too. */
function arrayText(filters) {
  if (!Array.isArray(filters)) return textOf(filters);
  const members = filters.map((member) => {
    if (Array.isArray(member)) return arrayText(member);
    return member === null || member === undefined ? 'NULL' : `"\\${textOf(member)}"`;
  });
  return `{${members.join(',')}}`;
}
