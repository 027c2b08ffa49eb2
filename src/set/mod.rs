//! Filter sets: tables of rows with sorted hashes, to which many sessions add elements, and learn
//! which were new.
//!
//! ```text
//! element ──▶ hash ──▶ leaf of a tree ──▶ row (bucket, hashes)     the hashes are some 500 bytes and stay in their row
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | `parameters` | what a set was made for, and the constraint that stores it |
//! | `table` | opening a set: checking its table, and what a session remembers of it |
//! | `statements` | the statements that read and change rows |
//! | `rows` | reading and writing rows by these statements |
//! | `row_errors` | the errors for rows that are damaged, missing, hidden or not stored |
//! | `leaves` | finding the leaves of elements |
//! | `change` | how elements are added and removed: the protocol of locks |
//! | `fullness` | whether a set is overfull; the warning about that |
//! | `create` | `bloom_set_create`; `bloom_set_check`, the constraint of every row |
//! | `elements` | `bloom_set_add`, `bloom_set_remove`, `bloom_set_contains`, and their forms for arrays |
//! | `all_rows` | `bloom_set_info`, `bloom_set_expire` |
//! | `clear` | `bloom_set_clear`; the rows of a set without elements |
//!
//! The table has a constraint,
//! `CHECK (bloom_set_check(bucket, hashes, element, kind, capacity, fpr, keep, renew) IS TRUE)`. It
//! stores what the set was made for, so that dumps have it, and rejects rows that don't belong to
//! the set.
//! Rows are read and changed by SQL, so PostgreSQL and its other extensions handle rights,
//! policies, triggers, partitions and replication; if one of them stores something else, the call
//! fails.

mod all_rows;
mod change;
mod clear;
mod create;
mod elements;
mod fullness;
mod leaves;
mod parameters;
mod row_errors;
mod rows;
mod statements;
mod table;
