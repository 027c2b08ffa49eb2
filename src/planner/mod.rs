//! Estimates and conditions for the planner.
//!
//! | module | what it knows |
//! |---|---|
//! | `functions` | the SQL functions: selectivity and cost |
//! | `statistics` | what the statistics of a column say about a filter |
//! | `cost` | the planner's requests for the cost of a call, and for the number of rows that it returns |
//! | `index_condition` | the planner's request for a condition on an index that a call is equivalent to |

mod cost;
mod functions;
mod index_condition;
mod statistics;
