import { Filter } from 'pg-bloom';

/** The types whose values drivers make a Date of, or an object: filters need all their digits. */
export const TYPES_AS_TEXT = { date: 1082, timestamp: 1114, timestamptz: 1184, interval: 1186 };

/** Asks for the numbers of the type bloom and of its arrays, in the schema that has the extension. */
export const OIDS_QUERY = `
  SELECT t.oid::int8::text AS oid, t.typarray::int8::text AS array_oid
  FROM pg_catalog.pg_type t JOIN pg_catalog.pg_extension e ON t.typnamespace = e.extnamespace
  WHERE e.extname = 'pg_bloom' AND t.typname = 'bloom'`;

/** Returns the numbers of the types in the rows of that query. */
export function oidsOf(rows) {
  if (rows.length === 0) {
    throw new Error('the database has no type bloom: run CREATE EXTENSION pg_bloom');
  }
  return { filter: Number(rows[0].oid), array: Number(rows[0].array_oid) };
}

/** Returns the filters of an array as PostgreSQL writes it: `{"\\x01…",NULL}`, or of several dimensions. */
export function filtersOfArray(text) {
  // Filters are written as hexadecimal digits, so nothing in quotes is a brace or a comma.
  const json = text
    .slice(text.indexOf('{'))
    .replaceAll('{', '[')
    .replaceAll('}', ']')
    .replaceAll('NULL', 'null');
  return filtersIn(JSON.parse(json));
}

function filtersIn(value) {
  if (Array.isArray(value)) return value.map(filtersIn);
  return value === null ? null : Filter.parse(value);
}
