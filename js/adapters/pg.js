import { Filter } from 'pg-bloom';
import { ARRAYS_AS_TEXT, NUMERICS, OIDS_QUERY, TYPES_AS_TEXT, filtersOfArray, oidsOf, textsOfArray } from './shared.js';

/** Makes a client of node-postgres read filters, and instants with all their digits. */
function setParsers(client, oids) {
  client.setTypeParser(oids.filter, 'text', (text) => Filter.parse(text));
  client.setTypeParser(oids.array, 'text', filtersOfArray);
  for (const oid of Object.values(TYPES_AS_TEXT)) client.setTypeParser(oid, 'text', (text) => text);
  for (const oid of [...Object.values(ARRAYS_AS_TEXT), NUMERICS]) client.setTypeParser(oid, 'text', textsOfArray);
}

async function fetchOids(client) {
  const { rows } = await client.query({ text: OIDS_QUERY, rowMode: 'array' });
  return oidsOf(rows);
}

export async function register(clientOrPool) {
  if (typeof clientOrPool.setTypeParser === 'function') {
    setParsers(clientOrPool, await fetchOids(clientOrPool));
    return;
  }
  const client = await clientOrPool.connect();
  try {
    const oids = await fetchOids(client);
    setParsers(client, oids);
    clientOrPool.on('connect', (other) => setParsers(other, oids));
  } finally {
    client.release();
  }
}
