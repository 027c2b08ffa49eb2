/** What is used of a Client of node-postgres. */
export interface RegistrableClient {
  query: (...parameters: any[]) => any;
  setTypeParser: (...parameters: any[]) => any;
}

/** What is used of a Pool of node-postgres. */
export interface RegistrablePool {
  connect: (...parameters: any[]) => any;
  on: (...parameters: any[]) => any;
}

/**
 * Makes columns of type `bloom` and `bloom[]` come as Filter and arrays of Filter. Filters go as
 * parameters without it. Columns of type date, timestamp, timestamptz and interval come as strings,
 * and arrays of these and of numeric as arrays of strings, since a Date has lost the microseconds of
 * an element and a number may have lost digits.
 *
 * A pool is registered right after it was made: clients that it has already are not changed. If the
 * extension is dropped and created again, its types have other numbers: make a new pool. It rejects if
 * the database doesn't have the extension.
 */
export function register(clientOrPool: RegistrableClient | RegistrablePool): Promise<void>;
