//! Safe wrappers around PostgreSQL. Nothing here knows what a filter is.
//!
//! | module | what it is for |
//! |---|---|
//! | [`functions`] | the macro that makes a C function of a Rust one |
//! | `guard` | the macro that calls PostgreSQL's function pointers |
//! | [`call`] | one call: its arguments, its memory, its result |
//! | [`error`] | errors and warnings as PostgreSQL reports them |
//! | [`panics`] | what a panic shows |
//! | [`interrupt`] | cancelling, and the depth of the stack |
//! | [`memory`], [`allocator`] | memory contexts, and Rust's own allocations |
//! | [`varlena`], [`toast`] | values of variable length, and those out of line |
//! | [`array`](mod@array), [`range`], [`row`], [`row_type`] | values that are made of others |
//! | [`catalog`], [`operators`], [`encoding`] | what the catalogs say about types and operator classes; text |
//! | [`nodes`], [`expression`] | what the expression of a call shows about its arguments |
//! | [`once`] | what a call site does once in a statement |
//! | [`temporary_file`] | a file that ends with a memory context |
//! | [`relation`], [`buffer`], [`wal`] | indexes and tables; their pages under locks; changes with their WAL records |
//! | [`heap_page`] | the rows of a table's page, one column of each |
//! | [`bulk_write`] | the pages of a relation that is being made |
//! | [`table`], [`scan`] | scans of tables; index scans as PostgreSQL asks for them |
//! | [`snapshot`], [`owner`] | what is visible now; rights |
//! | [`read_ahead`] | sequential scans that ask a condition of many rows at once |
//! | [`planning`], [`vacuum`] | what the planner and VACUUM ask of an index |
//! | `scan_paths` | further ways to scan a table |
//! | [`reloptions`], [`hooks`] | options of relations; transactions that fail |
//! | [`definition`], [`invalidation`] | what a table consists of; what changed since |
//! | [`sql`] | statements of SQL |
//! | [`version`] | what differs between PostgreSQL's major versions |

#[macro_use]
mod guard;
#[macro_use]
pub mod functions;

pub mod allocator;
pub mod array;
pub mod buffer;
pub mod bulk_write;
pub mod call;
pub mod catalog;
pub mod definition;
pub mod encoding;
pub mod error;
pub mod expression;
pub mod heap_page;
pub mod hooks;
pub mod interrupt;
pub mod invalidation;
pub mod memory;
pub mod nodes;
pub mod once;
pub mod operators;
pub mod owner;
pub mod panics;
pub mod planning;
pub mod range;
pub mod read_ahead;
pub mod relation;
pub mod reloptions;
pub mod row;
pub mod row_type;
pub mod scan;
mod scan_paths;
pub mod snapshot;
pub mod sql;
pub mod table;
pub mod temporary_file;
pub mod toast;
pub mod vacuum;
pub mod varlena;
pub mod version;
pub mod wal;
