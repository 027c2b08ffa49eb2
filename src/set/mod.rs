//! Sets that change: tables of many small filters, to which many sessions add, and which say what was new.
//!
//! ```text
//! element ──▶ hash ──▶ shard ──▶ row (shard, filter)     the filter is about 1 kB and stays in its row
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | `table` | opening a set: which table is one, and what it was made for |
//! | `statements` | the statements about it |
//! | `list`, `items` | which generations it has; elements in the order of their shards |
//! | `rows` | reading and changing its rows |
//! | `rates`, `fill` | what some filters say of all; warnings about overfull sets |
//! | `generations` | how a generation ends and the next is made, and how those that are over go |
//! | `create` | `bloom_set_create`; `bloom_set_check`, which every row of a set meets |
//! | `add` | `bloom_set_add`, `bloom_set_add_all` |
//! | `ask` | `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent` |
//! | `expire` | `bloom_set_expire` |
//! | `info` | `bloom_set_info`, `bloom_set_generations` |
//!
//! The table has a constraint, `CHECK (bloom_set_check(shard, filter, element, shards, capacity, fpr))`. It keeps what
//! the set was made for where a dump keeps it, and rows that don't belong there out. It tells a missing row from a
//! smaller set: if the number of shards were that of the rows, losing the last one would move every element to another
//! shard.
//!
//! Rows are read and changed by SQL, in a few prepared statements, so that rights, policies, triggers, partitions,
//! generated columns, logical replication and distributed tables are PostgreSQL's affair, and those of its extensions.
//! What could leave a row as it is, or store it otherwise, is found out: every row of the batch must come back.

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
