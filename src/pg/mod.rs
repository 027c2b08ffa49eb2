//! Safe faces of PostgreSQL. Nothing here knows what a filter is.
//!
//! | module | what it is for |
//! |---|---|
//! | [`functions`] | the macro that makes a C function of a Rust one |
//! | [`call`] | one call: its arguments, its memory, its result |
//! | [`error`] | errors and warnings as PostgreSQL reports them |
//! | [`panics`] | what a panic shows |
//! | [`interrupt`] | cancelling, and the depth of the stack |
//! | [`memory`], [`allocator`] | memory contexts, and Rust's own allocations |
//! | [`varlena`], [`toast`] | values of variable length, and those out of line |
//! | [`array`](mod@array), [`range`], [`row`], [`row_type`] | values that are made of others |
//! | [`catalog`], [`operators`], [`encoding`] | what the catalogs say about types and operator classes; text |
//! | [`nodes`], [`expression`], [`coercion`], [`parsed`] | what the expression of a call shows about its arguments |
//! | [`once`] | what a call site does once in a statement |
//! | [`temporary_file`] | a file that ends with a memory context |
//! | [`relation`], [`buffer`], [`wal`] | indexes and tables; their pages under locks; changes with their WAL records |
//! | [`heap_page`], [`heap_scan`] | the rows of a table's page, of which one column is read; those of all pages |
//! | [`new_pages`] | the pages of a relation that is being made |
//! | [`page_batches`], [`page_file`], `page_writer` | how they get into its file; a worker that writes them |
//! | [`worker`], [`feed`] | a second process that works for this one; one that is given batches of work |
//! | [`table`], [`scan`] | scans of tables; index scans as PostgreSQL asks for them |
//! | [`snapshot`], [`owner`] | what is visible now; rights |
//! | [`read_ahead`] | sequential scans that ask a condition of many rows at once |
//! | [`planning`], [`vacuum`] | what the planner and VACUUM ask of an index |
//! | `scan_paths`, [`array_paths`] | further ways to scan a table; those by an index for `operator ANY (array)` |
//! | [`reloptions`], [`hooks`] | options of relations; what PostgreSQL tells of changes of objects and transactions |
//! | [`definition`], [`invalidation`] | what a table consists of; what changed since |
//! | [`sql`] | statements of SQL |

#[macro_use]
pub mod functions;

pub mod allocator;
pub mod array;
pub mod array_paths;
pub mod buffer;
pub mod call;
pub mod catalog;
pub mod coercion;
pub mod definition;
pub mod encoding;
pub mod error;
pub mod expression;
pub mod feed;
pub mod heap_page;
pub mod heap_scan;
pub mod hooks;
pub mod interrupt;
pub mod invalidation;
pub mod memory;
pub mod new_pages;
pub mod nodes;
pub mod once;
pub mod operators;
pub mod owner;
pub mod page_batches;
pub mod page_file;
mod page_writer;
pub mod panics;
pub mod parsed;
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
pub mod wal;
pub mod worker;
