//! What PostgreSQL and an index access method exchange.
//!
//! | module | what it is for |
//! |---|---|
//! | [`table`] | scans of tables for builds and checks |
//! | [`scan`] | index scans as PostgreSQL asks for them |
//! | [`vacuum`], [`planning`] | what VACUUM and the planner ask of an index |

pub mod planning;
pub mod scan;
pub mod table;
pub mod vacuum;
