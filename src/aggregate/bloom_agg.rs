//! `bloom_agg`, whose state is [`BloomState`].
//!
//! ```text
//! rows ──transition──▶ state ──serialise──▶ bytes ──combine──▶ state ──final──▶ bloom
//! ```

use super::site::{CallSite, ElementHead, SharedParams, require_same_parameters, transition};
use super::state::{BloomHead, BloomState};
use super::tag::{Group, combine, deserialise, with_state};
use crate::arguments::empty_bloom;
use crate::pg::call::{Call, Outcome};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::Partial;
use pgrx::pg_sys::Datum;

/// The transition function for most rows: what needs nothing of PostgreSQL and can't fail.
#[inline(always)]
fn another_row(call: &Call) -> Option<Datum> {
    let site = call.recalled::<CallSite<BloomHead>>()?;
    // SAFETY: argument 0 is the state.
    let mut state = unsafe { BloomState::argument_at_once(call, 0)? };
    let hash = site.hash_at_once(call, state.params())?;
    state.push_at_once(hash).then(|| state.into_datum())
}

fn combine_states(call: &Call) -> Outcome {
    combine(call, |first: Option<BloomState>, bytes| {
        let (shared, partial) = (SharedParams::of(call)?, Partial::parse(bytes)?);
        let view = partial.view();
        let mut state = first.map_or_else(|| Group::with_header(call, shared, &view.header), Ok)?;
        require_same_parameters::<BloomHead>(state.params(), &view.header)?;
        state.absorb(call, shared, view)?;
        Ok(state)
    })
}

fn serialise(call: &Call) -> Outcome {
    Ok(with_state(call, |state: &mut BloomState| state.serialise())?.map(PgBuffer::into_datum))
}

fn finish(call: &Call) -> Outcome {
    match with_state(call, |state: &mut BloomState| state.finish(call))? {
        Some(filter) => Ok(Some(filter.into_datum())),
        None => empty_bloom().map(Some),
    }
}

pg_functions! {
    // SAFETY: what it uses needs nothing of PostgreSQL, and can't fail.
    bloom_agg_transition => transition::<BloomHead>, first unsafe another_row;
    bloom_agg_combine => combine_states;
    bloom_agg_serialise => serialise;
    bloom_agg_deserialise => deserialise::<BloomHead>;
    bloom_agg_final => finish;
}
