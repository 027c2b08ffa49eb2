// Compiled by types.test.mjs. Each @ts-expect-error fails if the line below has no error.

import {
  type BuildOptions,
  Filter,
  FormatError,
  type Header,
  type Info,
  bestPractices,
  capacityForBytes,
  expectedFpr,
  parameters,
} from 'pg-bloom';
import { bloom, bloomIndex, mayContain } from 'pg-bloom/drizzle';
import { register as registerPg } from 'pg-bloom/pg';
import { register as registerPostgres } from 'pg-bloom/postgres';
import type { SQL } from 'drizzle-orm';
import { date, pgTable } from 'drizzle-orm/pg-core';
import pg from 'pg';
import postgres from 'postgres';

const daily = pgTable('daily', { day: date().primaryKey(), urls: bloom().notNull() }, (table) => [
  bloomIndex('daily_urls', table.urls),
]);
const urls: Filter = {} as typeof daily.$inferSelect.urls;
const condition: SQL<boolean> = mayContain(daily.urls, 'https://example.com/1');
const registered: Promise<void>[] = [
  registerPg(new pg.Client()),
  registerPg(new pg.Pool()),
  registerPostgres(postgres()),
];
export { condition, registered, urls };

const options: BuildOptions = { capacity: 1000n, fpr: 0.01, layout: 'parquet', kind: 'integer[]' };
const filter: Filter = Filter.build([[1n, null], null], options);
const more: Filter = filter.withAll(new Set(['a', 1n, 2, true, new Uint8Array(1), new Date()]));
const found: boolean = more.has('a');
const all: boolean[] = more.hasMany(['a', null]);
const merged: Filter = filter.union(more).intersection(more).resize(10).resize();
const header: Header = merged.header;
const info: Info = merged.info();
const numbers: number[] = [merged.cardinality, merged.fpr, info.bitsSet, header.numBits];
const bytes: Uint8Array = Filter.parse(merged.hex()).bytes();
const text: string = Filter.parse(bytes).toPostgres() + filter.toJSON();
const sizes: number[] = [
  parameters(10).bytes,
  bestPractices(0.1, 'classic').bitsPerElement,
  expectedFpr(1, 10n, 3),
  capacityForBytes(1e6, null, 'blocked'),
];
const error: Error = new FormatError('damaged');
export { all, error, found, numbers, sizes, text };

// @ts-expect-error a number is no list
filter.hasMany(7);
// @ts-expect-error a text is an element, and no list of them
filter.hasMany('abc');
// @ts-expect-error other objects of the Temporal API are no instants
filter.has({ [Symbol.toStringTag]: 'Temporal.ZonedDateTime', epochNanoseconds: 0n } as const);
// @ts-expect-error undefined is no element
filter.has(undefined);
// @ts-expect-error a misspelt layout
Filter.build([], { layout: 'blokced' });
// @ts-expect-error a misspelt option
Filter.build([], { capcity: 10 });
// @ts-expect-error a kind without values
Filter.build([], { kind: 'jsonb' });
// @ts-expect-error a filter is not made by new
new Filter();
// @ts-expect-error a filter never changes
filter.header.capacity = 7;
// @ts-expect-error a filter is merged with a filter
filter.union(bytes);
// @ts-expect-error bytes or text
Filter.parse(7);
// @ts-expect-error a transaction of postgres.js can't be registered
postgres().begin((transaction) => registerPostgres(transaction));
// @ts-expect-error there is no default
type Default = typeof import('pg-bloom').default;

const typed = postgres() as postgres.Sql<{ bloom: Filter }>;
export const sent = typed`SELECT ${filter}::bloom, ${[filter]}::bloom[]`;
