//! Estimates and conditions for the planner.
//!
//! | module | what it knows |
//! |---|---|
//! | `functions` | the SQL functions: selectivity and cost |
//! | `statistics` | what the statistics of a column say about a filter |
//! | `cost` | the planner's request for the cost of a call |
//! | `rows` | the planner's request for the number of rows that a call returns |
//! | `index_condition` | the planner's request for a condition on an index that a call is equivalent to |

mod cost;
mod functions;
mod index_condition;
mod rows;
mod statistics;
