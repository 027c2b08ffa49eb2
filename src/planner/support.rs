//! What the planner is told of calls with an element, before it puts values in the place of parameters. A function has
//! one support function: another one, of a function with an element that is a text, begins with
//! [`refuse_quiet_parameter`] as well.

use crate::element::refuse_string;
use crate::pg::call::Call;
use crate::pg::error::{Outcome, Result};
use crate::pg::parameter::quiet_parameter;
use pgrx::pg_sys::Datum;

/// Refuses a call with a parameter of `citext` or its like that the parser made a `text` of, if the planner asks to
/// simplify it: the value that it puts there doesn't show that.
///
/// # Errors
/// 0A000 for such a parameter.
pub fn refuse_quiet_parameter(call: &Call) -> Result<()> {
    quiet_parameter(call).map_or(Ok(()), |oid| Err(refuse_string(oid)))
}

/// `bloom_element_support`, of functions with an element: simplifies nothing.
fn element(call: &Call) -> Outcome {
    refuse_quiet_parameter(call)?;
    Ok(Some(Datum::null()))
}

pg_functions! {
    bloom_element_support => element;
}
