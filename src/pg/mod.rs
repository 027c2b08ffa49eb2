//! Safe wrappers around PostgreSQL. Nothing here knows what a filter is.
//!
//! No safe function here can break memory, whatever its callers do without `unsafe`. Safe code is
//! what also passes `make lint`: it catches no panics, raises none with a payload of its own, and
//! starts no threads, since PostgreSQL's error handling and its memory know one stack; and it leaks
//! no boxes, whose references would outlive the memory in them. `clippy.toml` refuses that in all
//! of the library; where it is needed here, the reason is beside it. Nor does it make futures,
//! which may borrow of themselves, assemble, or hide code from the lint: `tests/rooms/words.rs`
//! looks.
//!
//! pgrx's own safe functions promise less: its connections and callbacks change memory under a
//! call. So the library can't name them: the crate in `pgrx/`, which it depends on instead, has
//! PostgreSQL's functions, which are unsafe, and a list of what else is used. What has pgrx's guard
//! is unsafe too, since it jumps: that test looks. Nobody formats a node of PostgreSQL's that he made: `Display` believes its tag.
//!
//! - What PostgreSQL passes becomes a value here by an unsafe function. Nothing else makes a
//!   [`call::Call`], a [`storage::relation::Relation`], a memory context, a build, a scan or a
//!   VACUUM.
//! - These, and what is opened or locked here, have lifetimes within the call, or are only lent. A
//!   buffer of PostgreSQL's memory, which the core makes, knows its call instead, and panics in
//!   another. If one is still there when its call ends, so may be references to it, and the process
//!   is ended. None is under way any more when a process ends.
//! - A fatal error unwinds nothing: a frame may be left in the middle of a change of what it
//!   borrows. So from then on nothing is dropped that a call site remembers, nor ever a variable of
//!   the session: what isn't here makes these by `session_locals!`.
//! - A datum is a number. Only unsafe functions read what it points to: nothing but its type says
//!   what that is.
//! - What a call site remembers, the options of an index, the columns of rows that are made or that
//!   a statement returns, the parameters of a statement, and whether a relation is a table, an
//!   index or one of the extension's are compared, in all builds.
//! - The bytes of a page are those of an index of the extension's, and only `wal` changes them,
//!   behind the header. Who has a page locked is noted here, since PostgreSQL doesn't lock those of
//!   temporary indexes. A subtransaction that fails gives back the locks of all pages: if a call
//!   has one, the process is ended.
//! - An error is raised again only by the call in whose memory it is, and only where an unsafe
//!   function says that PostgreSQL made the call: it jumps from there. A call that catches an error
//!   all the same, or a panic that leaves something open here, fails, since PostgreSQL has ended
//!   nothing of what was under way. Most of what is here panics in another thread than the
//!   session's.
//!
//! This is promised elsewhere, and trusted:
//!
//! - `sql/pg_bloom.sql` declares the arguments of each function as its Rust code reads them. Builds
//!   for debugging, which the tests run, compare them.
//! - Where it declares `internal`, that is a state of an aggregate, or a node of the planner, as
//!   the function reads it.
//! - It declares the result of each as its Rust code makes it: a function returns a datum, and
//!   PostgreSQL reads that. No statement that the library executes declares others.
//! - The hook of panics stays that of [`call::panics`], which notes errors: `make lint` refuses
//!   others too.
//! - PostgreSQL uses a call site in two calls at once only for support functions of operator
//!   classes that it found by a type. Those of the extension remember nothing.
//! - Statements and names are in the encoding of the database.
//! - What may run outside of a transaction uses nothing that needs one, though much of `catalog`
//!   and `sql` takes no `Call`: `_PG_init`, what [`catalog::invalidation`] is given to call, and
//!   `drop` of what a call site remembers, or a thread-local variable has. Nor does a destructor of
//!   safe code use PostgreSQL while an error passes.
//!
//! | module | what it is for |
//! |---|---|
//! | [`call`] | one call of a function: its arguments, its result, its errors, what its expression shows |
//! | [`memory`] | memory contexts, Rust's own allocations, temporary files |
//! | [`value`] | values of variable length, those out of line, and those that are made of others; text |
//! | [`catalog`] | what the catalogs say about types, operators, tables and rights |
//! | [`sql`] | statements, transactions, names as SQL writes them |
//! | [`regex`] | the automata of regular expressions |
//! | [`query`] | a query on a table that stands for its parent |
//! | [`storage`] | relations, their pages under locks, and changes with their WAL records |
//! | [`method`] | what PostgreSQL and an access method exchange: builds, scans, VACUUM, plans |
//! | [`version`] | what differs between PostgreSQL's major versions |

#[macro_use]
pub mod call;

pub mod catalog;
pub mod memory;
pub mod method;
pub mod query;
pub mod regex;
pub mod sql;
pub mod storage;
pub mod value;
pub mod version;
