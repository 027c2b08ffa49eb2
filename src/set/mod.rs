//! Filter sets: tables of many small filters, to which many sessions add elements and learn which of them were new.
//!
//! ```text
//! element ──▶ hash ──▶ shard ──▶ row (shard, filter)     the filter is about 1 kB and stays in its row
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | `table` | opening a set: checking the table, and what it was made for |
//! | `statements` | the statements about it |
//! | `list`, `items` | which generations it has; elements in the order of their shards |
//! | `rows` | reading and changing its rows |
//! | `rates`, `fill` | estimates from some of the filters; warnings about overfull sets |
//! | `generations` | how a generation ends and the next is made, and how forgotten ones are dropped |
//! | `create` | `bloom_set_create`; `bloom_set_check`, the constraint of every row |
//! | `add` | `bloom_set_add`, `bloom_set_add_all` |
//! | `ask` | `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent` |
//! | `expire` | `bloom_set_expire` |
//! | `info` | `bloom_set_info`, `bloom_set_generations` |
//!
//! The table has a constraint, `CHECK (bloom_set_check(shard, filter, element, shards, capacity, fpr))`. It stores what
//! the set was made for, so that dumps have it, and rejects rows that don't belong to the set. It also distinguishes a
//! missing row from a smaller set: if the number of rows were the number of shards, losing the last row would move
//! every element to another shard.
//!
//! Rows are read and changed by SQL, in a few prepared statements. So PostgreSQL and its other extensions handle
//! rights, policies, triggers, partitions, generated columns, logical replication and distributed tables. If one of
//! them skips a row or stores something else, the call fails: every row of the batch must come back as it was written.

mod add;
mod ask;
mod create;
mod expire;
mod fill;
mod generations;
mod info;
mod items;
mod list;
mod rates;
mod rows;
mod statements;
mod table;
