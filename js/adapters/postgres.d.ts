/** What is used of the function that `postgres()` returns; a transaction doesn't have it. */
export interface Registrable {
  unsafe: (...parameters: any[]) => any;
  options: { parsers: object; serializers: object };
}

/**
 * Makes columns of type `bloom` and `bloom[]` come as Filter and arrays of Filter, and sends these as
 * parameters. Columns of type date, timestamp, timestamptz and interval come as strings, and arrays of
 * these as arrays of strings, since a Date has lost the microseconds of an element; so do arrays of
 * numeric, unless there is a parser of numeric. Such a string is sent as it is.
 *
 * The types of postgres.js take a Filter as a parameter after
 * `const sql = postgres() as postgres.Sql<{ bloom: Filter }>`.
 *
 * It rejects if the database doesn't have the extension.
 */
export function register(sql: Registrable): Promise<void>;
