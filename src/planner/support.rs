//! What the planner is told about calls with an element before it simplifies them. A function has one support function:
//! another one, of a function with an element, begins with [`refuse_quiet_argument`] as well.

use crate::element::refuse_string;
use crate::pg::call::Call;
use crate::pg::error::{Outcome, Result};
use crate::pg::parsed::quiet_argument;
use pgrx::pg_sys::Datum;

/// Refuses a call with an argument of `citext` or its like that the parser made a `text` of, if the planner asks to
/// simplify it: what is left of the argument then may not show that.
///
/// # Errors
/// 0A000 for such an argument.
pub fn refuse_quiet_argument(call: &Call) -> Result<()> {
    quiet_argument(call).map_or(Ok(()), |oid| Err(refuse_string(oid)))
}

/// `bloom_element_support`, for functions with an element: simplifies nothing.
fn element(call: &Call) -> Outcome {
    refuse_quiet_argument(call)?;
    Ok(Some(Datum::null()))
}

pg_functions! {
    bloom_element_support => element;
}
