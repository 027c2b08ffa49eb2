//! `bloom_agg`, whose state is [`BloomState`].
//!
//! ```text
//! rows ──transition──▶ state ──serialise──▶ bytes ──deserialise──▶ state ──combine──▶ state ──final──▶ bloom
//! ```

use super::site::{CallSite, ElementHead, combine_by, require_same_parameters, transition};
use super::state::{BloomHead, BloomState};
use super::tag::{deserialise, only_state};
use crate::arguments::empty_bloom;
use crate::pg::call::{Call, Outcome};
use pgrx::pg_sys::Datum;

/// The transition function for most rows: what needs nothing of PostgreSQL and can't fail.
#[inline(always)]
fn another_row(call: &Call) -> Option<Datum> {
    let site = call.recalled::<CallSite<BloomHead>>()?;
    // SAFETY: argument 0 is the state.
    let mut state = unsafe { BloomState::argument_at_once(call, 0)? };
    let hash = site.hash_at_once(call, state.params())?;
    // SAFETY: it was returned before.
    state.push_at_once(hash).then(|| unsafe { state.into_datum() })
}

fn combine(call: &Call) -> Outcome {
    combine_by(call, |state: &mut BloomState, shared, second| {
        require_same_parameters::<BloomHead>(state.params(), second.params())?;
        state.absorb_state(call, shared, second)
    })
}

fn serialise(call: &Call) -> Outcome {
    // SAFETY: the state is not moved.
    let state: Option<BloomState> = unsafe { only_state(call)? };
    state.map(|mut state| state.serialise()).transpose()
}

fn finish(call: &Call) -> Outcome {
    // SAFETY: the state is not moved.
    let state: Option<BloomState> = unsafe { only_state(call)? };
    state.map_or_else(empty_bloom, |mut state| state.finish(call)).map(Some)
}

pg_functions! {
    // SAFETY: what it uses needs nothing of PostgreSQL, and can't fail.
    bloom_agg_transition => transition::<BloomHead>, first unsafe another_row;
    bloom_agg_combine => combine;
    bloom_agg_serialise => serialise;
    bloom_agg_deserialise => |call| deserialise(call, BloomState::deserialised);
    bloom_agg_final => finish;
}
