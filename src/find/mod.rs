//! `bloom_find`, `bloom_find_all`: the rows of a table and all its partitions or children that have a key.
//!
//! A query on the parent locks, plans and starts a scan of every partition. This asks the indexes of the partitions
//! first, and plans a query only on those that may have the key. That query is what the planner makes of the query on
//! the parent for a partition: it checks no rights, since the parent's were checked.
//!
//! | module | what it does |
//! |---|---|
//! | `parent` | the table that the call names, and the caller's rights to it |
//! | `condition` | `column = key`, and the keys to ask an index for |
//! | `leaves` | the tables below the parent, and which keys each may have |

mod condition;
mod leaves;
mod parent;

use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use crate::pg::memory::in_scratch;
use crate::pg::query::Output;
use crate::pg::sql;
use condition::LookedFor;
use parent::Parent;

/// `bloom_find(anyelement, name, anycompatible) → SETOF anyelement`, `bloom_find_all(…, anycompatiblearray)`
fn find(call: &Call, is_array: bool) -> Outcome {
    let parent = Parent::argument(call)?;
    let column = parent.column(call)?;
    let output = Output::new(call, parent.table())?;
    let Some(condition) = LookedFor::argument(call, &parent, &column, is_array)? else { return Ok(None) };
    let compressed = sql::compressed_by_timescale()?;
    leaves::each(&parent, |leaf| {
        let has_all = !compressed.contains(&leaf.oid());
        // SAFETY: a leaf, and the column of the condition; rows that were found are in the output's memory, and what is
        // known of an index in Rust's.
        unsafe {
            in_scratch(|| {
                let may_have = if has_all { leaves::candidates(leaf, &column, &condition)? } else { None };
                if may_have.as_ref().is_none_or(|may_have| may_have.contains(&true)) {
                    output.add_rows(leaf, condition.of_keys(may_have.as_deref()));
                }
                Ok(())
            })
        }
    })?;
    Ok(None)
}

pg_functions! {
    bloom_find => |call| find(call, false);
    bloom_find_all => |call| find(call, true);
}
