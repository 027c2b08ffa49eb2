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
//! | [`catalog`], [`encoding`] | what the catalogs say about types; text |
//! | [`nodes`], [`expression`], [`coercion`], [`parsed`] | what the expression of a call shows about its arguments |
//! | [`once`] | what a call site does once in a statement |
//! | [`temporary_file`] | a file that ends with a memory context |

#[macro_use]
pub mod functions;

pub mod allocator;
pub mod array;
pub mod call;
pub mod catalog;
pub mod coercion;
pub mod encoding;
pub mod error;
pub mod expression;
pub mod interrupt;
pub mod memory;
pub mod nodes;
pub mod once;
pub mod panics;
pub mod parsed;
pub mod range;
pub mod row;
pub mod row_type;
pub mod temporary_file;
pub mod toast;
pub mod varlena;
