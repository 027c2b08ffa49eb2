//! Estimates and conditions for the planner.
//!
//! | module | what it knows |
//! |---|---|
//! | `functions` | the SQL functions: selectivity and cost |
//! | `statistics` | what the statistics of a column say about a filter |
//! | `cost` | the planner's question what a call costs |
//! | `rows` | the planner's question how many rows a call returns |
//! | `index_condition` | the planner's question which condition on an index a call is worth |

mod cost;
mod functions;
mod index_condition;
mod rows;
mod statistics;
