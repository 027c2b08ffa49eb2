//! How large a filter must be.
//!
//! | module | what it knows |
//! |---|---|
//! | [`limits`] | which rates, capacities and sizes are possible |
//! | [`rate`] | the exact false positive rate of a layout |
//! | [`table`] | the lookup tables, in the manner of ClickHouse |
//! | [`size`](mod@size) | how many blocks a capacity needs, and the inverse |
//! | `search` | where a condition changes |

pub mod limits;
pub mod rate;
pub(crate) mod search;
pub mod size;
pub mod table;

pub use crate::layout::{GREATEST_FPR, is_possible_fpr, least_fpr};
pub use limits::{DEFAULT_FPR, MAX_STORED_BYTES, check_capacity, check_fpr};
pub use size::{Density, Size, capacity_for_payload, capacity_of, density, power_of_two, size};
