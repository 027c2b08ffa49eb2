//! `counting_bloom_agg` and `counting_bloom_union_agg`: both keep the same state, [`CountingState`], and differ in what
//! they add to it.

use super::counting_state::CountingState;
use super::parameters::SharedParams;
use super::site::{Aggregate, ElementState, deserialise, finish, same_parameters, transition};
use super::tag::{self, State};
use crate::arguments::{Arguments, counting_header};
use crate::filter_type::{CountingBloom, argument};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use pg_bloom_core::Header;

enum CountingBloomAgg {}

impl Aggregate for CountingBloomAgg {
    const NAME: &'static str = "counting_bloom_agg";
    type State<'c> = CountingState<'c>;

    fn requested(arguments: &Arguments) -> Result<Header<'static>> {
        counting_header(arguments)
    }
}

/// `counting_bloom_union_agg_transition(state, filter)`.
fn union_transition(call: &Call) -> Outcome {
    // SAFETY: argument 0 is the state.
    let state = unsafe { CountingState::argument(call, 0)? };
    if state.is_none() {
        call.require_aggregate()?;
    }
    let Some(filter) = argument::<CountingBloom>(call, 1)? else {
        // SAFETY: it was returned before.
        return Ok(state.map(|state| unsafe { state.into_datum() }));
    };
    // SAFETY: remembered by the site of this call.
    let shared = call.remembered(|| Ok(unsafe { SharedParams::new() }))?;
    let mut state = match state {
        Some(state) => state,
        None => CountingState::with_header(call, shared, &filter.header)?,
    };
    state.absorb(call, shared, &filter, "counting_bloom_union_agg")?;
    // SAFETY: it was returned before, or made in the memory of the aggregate.
    Ok(Some(unsafe { state.into_datum() }))
}

/// Adds two states, whose parameters must be the same if `same`.
fn combine(call: &Call, aggregate: &str, same: bool) -> Outcome {
    // SAFETY: remembered by the site of this call.
    let shared = call.remembered(|| Ok(unsafe { SharedParams::new() }))?;
    // SAFETY: the first state is returned, or one in the memory of the aggregate.
    unsafe {
        tag::combine(call, |first: Option<CountingState>, second: CountingState| {
            let mut first = match first {
                Some(first) => {
                    if same {
                        same_parameters::<CountingBloomAgg>(first.params(), second.params())?;
                    }
                    first
                }
                None => CountingState::with_header(call, shared, second.params())?,
            };
            first.absorb_state(call, shared, second, aggregate)?;
            Ok(first)
        })
    }
}

fn serialise(call: &Call) -> Outcome {
    // SAFETY: nothing is added to it.
    Ok(unsafe { tag::only_state::<CountingState>(call)? }.map(|mut state| state.filter()))
}

pg_functions! {
    counting_bloom_agg_transition => transition::<CountingBloomAgg>;
    counting_bloom_agg_combine => |call| combine(call, "counting_bloom_agg", true);
    counting_bloom_agg_serialise => serialise;
    counting_bloom_agg_deserialise => |call| deserialise::<CountingState>(call);
    counting_bloom_agg_final => |call| finish::<CountingState>(call);
    counting_bloom_union_agg_transition => union_transition;
    counting_bloom_union_agg_combine => |call| combine(call, "counting_bloom_union_agg", false);
}
