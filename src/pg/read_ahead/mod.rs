//! Sequential scans that read some rows ahead before they ask a condition of them, so that what the condition touches
//! can be fetched to the processor's cache for all of them at once.
//!
//! The condition is a call of a function with two arguments: one that is the same for the whole scan, and a column of
//! the table. The caller that defines the function says how it is evaluated for many rows ([`Condition`]).
//!
//! | module | what it knows |
//! |---|---|
//! | `provider` | the conditions that are evaluated so |
//! | `path` | the planner's side: which scans are worth it |
//! | `plan`, `parts` | from a path to a plan; what is in a plan |
//! | `scan` | the executor's side: reading ahead and handing out |
//! | `batch` | rows that were read, and those among them that are handed out |
//! | `asked` | the condition, prepared to be evaluated for many rows |
//! | `methods` | what PostgreSQL calls in the executor |
//! | `scan_paths` | further ways to scan a table, for the planner to choose from |
//! | `raw` | PostgreSQL's functions and function pointers that are called for each row |

mod asked;
mod batch;
mod methods;
mod parts;
mod path;
mod plan;
mod provider;
mod raw;
mod scan;
mod scan_paths;

pub use path::define;
pub use provider::{Condition, MOST_ROWS, Provider};
