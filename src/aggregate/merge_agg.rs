//! `bloom_union_agg` and `bloom_intersection_agg`: aggregates over filters. Both keep a [`MergeState`], whose result
//! does not depend on the order of the filters, nor on how they are spread over processes.

use super::merge_state::MergeState;
use super::tag::{self, State};
use crate::arguments::empty_bloom;
use crate::filter_type::{Bloom, argument};
use crate::overfull;
use crate::pg::call::Call;
use crate::pg::call::error::Outcome;
use pg_bloom_core::filter::merging::Operation;

fn transition(call: &Call, operation: Operation) -> Outcome {
    // SAFETY: argument 0 is the state.
    let state = unsafe { MergeState::argument(call, 0)? };
    call.require_aggregate()?;
    let Some(view) = argument::<Bloom>(call, 1)? else {
        // SAFETY: it was returned before.
        return Ok(state.map(|state| unsafe { state.into_datum() }));
    };
    let mut state = state.map_or_else(|| MergeState::new(call, operation), Ok)?;
    state.take(call, &view)?;
    // SAFETY: it was returned before, or made in the memory of the aggregate.
    Ok(Some(unsafe { state.into_datum() }))
}

fn combine(call: &Call, operation: Operation) -> Outcome {
    // SAFETY: the first state is returned, or one in the memory of the aggregate.
    unsafe {
        tag::combine(call, |first: Option<MergeState>, second| {
            let mut state = first.map_or_else(|| MergeState::new(call, operation), Ok)?;
            state.take_state(call, second)?;
            Ok(state)
        })
    }
}

fn serialise(call: &Call) -> Outcome {
    // SAFETY: nothing is added to it.
    unsafe { tag::only_state::<MergeState>(call)? }.map(|mut state| state.serialise(call)).transpose()
}

fn deserialise(call: &Call) -> Outcome {
    let Some(bytes) = call.value(0) else { return Ok(None) };
    // SAFETY: this is the deserialisation function.
    Ok(Some(unsafe { MergeState::handed(call, bytes)?.into_datum() }))
}

fn finish_union(call: &Call) -> Outcome {
    // SAFETY: nothing is added to it.
    match unsafe { tag::only_state::<MergeState>(call)? } {
        Some(mut state) => overfull::finish::<Bloom>(call, overfull::MERGED, state.finish(call)?),
        None => empty_bloom().map(Some),
    }
}

fn finish_intersection(call: &Call) -> Outcome {
    // SAFETY: nothing is added to it.
    unsafe { tag::only_state::<MergeState>(call)? }.map(|mut state| Ok(state.finish(call)?.into_datum())).transpose()
}

pg_functions! {
    bloom_union_agg_transition => |call| transition(call, Operation::Union);
    bloom_union_agg_combine => |call| combine(call, Operation::Union);
    bloom_union_agg_final => finish_union;
    bloom_intersection_agg_transition => |call| transition(call, Operation::Intersection);
    bloom_intersection_agg_combine => |call| combine(call, Operation::Intersection);
    bloom_intersection_agg_final => finish_intersection;
    bloom_merge_agg_serialise => serialise;
    bloom_merge_agg_deserialise => deserialise;
}
