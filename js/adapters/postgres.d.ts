/** What is used of the function that postgres.js returns. */
export interface Registrable {
  unsafe(query: string): PromiseLike<ArrayLike<unknown>>;
}

/**
 * Makes columns of type `bloom` and `bloom[]` come as Filter and arrays of Filter, and sends these as
 * parameters. Columns of type date, timestamp, timestamptz and interval come as strings, since a Date
 * has lost the microseconds of an element.
 *
 * It rejects if the database doesn't have the extension.
 */
export function register(sql: Registrable): Promise<void>;
