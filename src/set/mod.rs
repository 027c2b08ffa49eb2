//! Sets that change: tables of many small filters, to which many sessions add, and which say what was new.
//!
//! ```text
//! element ──▶ hash ──▶ shard ──▶ row (shard, filter)     the filter is about 1 kB and stays in its row
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | `table` | opening a set, and the statements that read and change its rows |
//! | `items` | elements by their shards |
//! | `create` | `bloom_set_create`; `bloom_set_check`, which every row of a set meets |
//! | `add` | `bloom_set_add`, `bloom_set_add_all` |
//! | `ask` | `bloom_set_contains`, `bloom_set_present`, `bloom_set_absent` |
//! | `info` | `bloom_set_info` |
//! | `fill` | how full a set is; warnings about overfull ones |
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
mod fill;
mod info;
mod items;
mod table;
