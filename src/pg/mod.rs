//! Safe wrappers around PostgreSQL. Nothing here knows what a filter is.
//!
//! | module | what it is for |
//! |---|---|
//! | [`call`] | one call of a function: its arguments, its result, its errors, what its expression shows |
//! | [`memory`] | memory contexts, Rust's own allocations, temporary files |
//! | [`value`] | values of variable length, those out of line, and those that are made of others; text |
//! | [`catalog`] | what the catalogs say about types, operators, tables and rights |
//! | [`sql`] | statements of SQL |
//! | [`query`] | a query on a table that stands for its parent |
//! | [`storage`] | relations, their pages under locks, and changes with their WAL records |
//! | [`method`] | what PostgreSQL and an access method exchange: builds, scans, VACUUM, plans, options |
//! | [`version`] | what differs between PostgreSQL's major versions |

#[macro_use]
pub mod call;

pub mod catalog;
pub mod memory;
pub mod method;
pub mod query;
pub mod sql;
pub mod storage;
pub mod value;
pub mod version;
