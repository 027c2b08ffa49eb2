import { Filter } from 'pg-bloom';
import { OIDS_QUERY, TYPES_AS_TEXT, filtersOfArray, oidsOf } from './shared.js';

export async function register(sql) {
  const oids = oidsOf(await sql.unsafe(OIDS_QUERY));
  const { parsers, serializers } = sql.options;
  parsers[oids.filter] = (text) => Filter.parse(text);
  parsers[oids.array] = filtersOfArray;
  serializers[oids.filter] = textOf;
  serializers[oids.array] = arrayText;
  for (const oid of Object.values(TYPES_AS_TEXT)) parsers[oid] = (text) => text;
}

/** Returns what is sent for a filter, which may be given as text, too. */
function textOf(filter) {
  return filter instanceof Filter ? filter.hex() : filter;
}

function arrayText(filters) {
  const members = filters.map((filter) => (filter === null ? 'NULL' : `"\\${textOf(filter)}"`));
  return `{${members.join(',')}}`;
}
