//! What a bitmap scan of the index costs.
//!
//! | module | what it knows |
//! |---|---|
//! | `by_hash` | lookups of elements |
//! | `by_condition` | lookups of parts |
//! | `rows` | what PostgreSQL does with the rows that a scan finds |

mod by_condition;
mod by_hash;
mod rows;

use super::columns::class::PARTS;
use crate::index::kind::Cost;
use crate::pg::method::planning::Planned;

pub fn estimate(planned: &Planned) -> Cost {
    let has_parts = planned.support_function(PARTS).1.is_some();
    if has_parts { by_condition::estimate(planned) } else { by_hash::estimate(planned) }
}
