import { Filter } from 'pg-bloom';
import { OIDS_QUERY, TYPES_AS_TEXT, filtersOfArray, oidsOf } from './shared.js';

/** Makes a client of node-postgres read filters, and instants with all their digits. */
function setParsers(client, oids) {
  client.setTypeParser(oids.filter, 'text', (text) => Filter.parse(text));
  client.setTypeParser(oids.array, 'text', filtersOfArray);
  for (const oid of Object.values(TYPES_AS_TEXT)) client.setTypeParser(oid, 'text', (text) => text);
}

export async function register(clientOrPool) {
  if (typeof clientOrPool.setTypeParser === 'function') {
    const { rows } = await clientOrPool.query(OIDS_QUERY);
    setParsers(clientOrPool, oidsOf(rows));
    return;
  }
  const client = await clientOrPool.connect();
  try {
    const { rows } = await client.query(OIDS_QUERY);
    const oids = oidsOf(rows);
    setParsers(client, oids);
    clientOrPool.on('connect', (other) => setParsers(other, oids));
  } finally {
    client.release();
  }
}
