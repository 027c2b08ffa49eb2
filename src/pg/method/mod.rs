//! What PostgreSQL and an index access method exchange.
//!
//! | module | what it is for |
//! |---|---|
//! | [`table`] | scans of tables for builds and checks |
//! | [`scan`] | index scans as PostgreSQL asks for them |
//! | [`vacuum`], [`planning`] | what VACUUM and the planner ask of an index |
//! | `explain` | what EXPLAIN (ANALYZE) shows of scans, from PostgreSQL 18 on |

#[cfg(not(feature = "before_pg18"))]
pub mod explain;
pub mod planning;
pub mod scan;
pub mod table;
pub mod vacuum;
