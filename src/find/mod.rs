//! `bloom_find`, `bloom_find_all`: the rows of a table and all its partitions or children that have a key.
//!
//! A query on the parent locks, plans and starts a scan of every partition. This asks the indexes of the partitions
//! first, and plans a query only on those that may have the key. That query is what the planner makes of the query on
//! the parent for a partition: it checks no rights of its own, since the parent's were checked.
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
use crate::pg::call::error::{Outcome, Result};
use crate::pg::memory::Scratch;
use crate::pg::query::Output;
use condition::Condition;
use parent::Parent;

/// `bloom_find(anyelement, name, anycompatible) → SETOF anyelement`, `bloom_find_all(…, anycompatiblearray)`
fn find(call: &Call, is_array: bool) -> Outcome {
    let parent = Parent::argument(call)?;
    let column = parent.column(call)?;
    let output = Output::new(call, parent.table())?;
    if let Some(key) = call.datum(2) {
        let condition = Condition::new(&parent, &column, call.argument_type(2)?, key, is_array);
        leaves::each(&parent, |leaf| {
            let _scratch = Scratch::new();
            match leaves::candidates(leaf, &column, &condition)? {
                Some(keys) if keys.is_empty() => {}
                keys => output.add_rows(leaf, parent.table(), condition.of_keys(keys)),
            }
            Result::Ok(())
        })?;
    }
    Ok(None)
}

pg_functions! {
    bloom_find => |call| find(call, false);
    bloom_find_all => |call| find(call, true);
}
