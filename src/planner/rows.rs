//! The planner's request for the number of rows that `bloom_find_all` returns.

use crate::pg::call::Call;
use crate::pg::call::nodes::argument;
use crate::pg::version;
use pgrx::pg_sys::{self, Datum};

/// Rows to expect of a key, as the script declares for `bloom_find`.
const ROWS_OF_KEY: f64 = 3.0;

/// Answers the request, if argument 0 of a support function is one and the keys are argument 2 of a known call.
pub fn answer(call: &Call) -> Option<Datum> {
    let request = call.internal::<pg_sys::SupportRequestRows>(0)?;
    // SAFETY: as for the request for the cost of a call: a node, which is read as what its tag says.
    unsafe {
        let is_asked = (*request).type_ == pg_sys::NodeTag::T_SupportRequestRows;
        if !is_asked || (*request).root.is_null() || (*request).node.is_null() {
            return None;
        }
        let keys = argument((*request).node, 2)?;
        (*request).rows = (ROWS_OF_KEY * version::array_length((*request).root, keys)).max(1.0);
    }
    Some(Datum::from(request))
}
