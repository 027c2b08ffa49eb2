import { Filter } from 'pg-bloom';

/** The types whose values drivers make a Date of, or an object: filters need all their digits. */
export const TYPES_AS_TEXT = { date: 1082, timestamp: 1114, timestamptz: 1184, interval: 1186 };
/** The types of arrays of these. */
export const ARRAYS_AS_TEXT = { dates: 1182, timestamps: 1115, timestamptzs: 1185, intervals: 1187 };
/** The types of numeric, and of its arrays, whose members drivers may make floats of. */
export const NUMERIC = 1700;
export const NUMERICS = 1231;

/** Asks for the numbers of the type bloom and of its arrays, in the schema that has the extension. */
export const OIDS_QUERY = `
  SELECT t.oid::int8::text, t.typarray::int8::text
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_extension e ON t.typnamespace = e.extnamespace
  WHERE e.extname = 'pg_bloom' AND t.typname = 'bloom'`;

/** Returns the numbers of the types in the rows of that query, which are arrays of columns. */
export function oidsOf(rows) {
  if (rows.length === 0) {
    throw new Error('the database has no type bloom: run CREATE EXTENSION pg_bloom');
  }
  // A driver that transforms rows may have made an object of the array.
  const [filter, array] = Object.values(rows[0]).map(Number);
  if (!(filter > 0 && array > 0)) throw new Error('the numbers of the types are hidden by a transform of rows');
  return { filter, array };
}

/** Returns the filters of an array as PostgreSQL writes it: `{"\\x01…",NULL}`, or of several dimensions. */
export function filtersOfArray(text) {
  return membersOfArray(text, (member) => Filter.parse(member));
}

/** Returns the members of an array of instants or numerics as PostgreSQL writes them. */
export function textsOfArray(text) {
  return membersOfArray(text, (member) => member);
}

/**
 * Returns the members of an array as PostgreSQL writes it, each as `parse` returns it; null for NULL.
 * None of them may have a quote, a brace or a comma.
 */
function membersOfArray(text, parse) {
  const json = text
    .slice(text.indexOf('{'))
    .replace(/"[^"]*"|[^{},"]+/g, (member) => (/^"|^NULL$/.test(member) ? member : `"${member}"`))
    .replaceAll('{', '[')
    .replaceAll('}', ']')
    .replaceAll('NULL', 'null');
  return parsedMembers(JSON.parse(json), parse);
}

function parsedMembers(value, parse) {
  if (Array.isArray(value)) return value.map((member) => parsedMembers(member, parse));
  return value === null ? null : parse(value);
}
