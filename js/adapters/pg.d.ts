/** What is used of a Client or a Pool of node-postgres. */
export interface Registrable {
  query(text: string): Promise<{ rows: unknown[] }>;
}

/**
 * Makes columns of type `bloom` and `bloom[]` come as Filter and arrays of Filter. Filters go as
 * parameters without it. Columns of type date, timestamp, timestamptz and interval come as strings,
 * since a Date has lost the microseconds of an element.
 *
 * A pool is registered right after it was made: clients that it already lends are not changed. It
 * rejects if the database doesn't have the extension.
 */
export function register(clientOrPool: Registrable): Promise<void>;
