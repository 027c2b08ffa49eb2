import type { SQL, SQLWrapper } from 'drizzle-orm';
import type { IndexBuilder, ExtraConfigColumn, customType } from 'drizzle-orm/pg-core';
import type { Filter } from 'pg-bloom';

/** A column of type `bloom`, whose values are filters: `bloom()`, `bloom('name')`. */
export const bloom: ReturnType<typeof customType<{ data: Filter; driverData: string }>>;

/**
 * Returns the condition that a column of filters may contain an element. Its type in SQL is text,
 * bigint, boolean or bytea by that of the value; for other types, such as `date`, it is given.
 */
export function mayContain(column: SQLWrapper, value: unknown, type?: string): SQL<boolean>;

/** The operator class, and the options of the index, such as `fpr`. */
export interface BloomIndexOptions {
  operatorClass?: string;
  [option: string]: string | number | boolean | undefined;
}

/** Returns an index of the method `bloom_filter`, for the extra configuration of a table. */
export function bloomIndex(
  name: string,
  column: ExtraConfigColumn,
  options?: BloomIndexOptions,
): IndexBuilder;
