//! `bloom_agg`, whose state is [`State`].
//!
//! ```text
//! rows ──transition──▶ state ──serialise──▶ bytes ──deserialise──▶ state ──combine──▶ state ──final──▶ bloom
//! ```

use super::parameters::SharedParams;
use super::site::{Aggregate, CallSite, ElementState, deserialise, finish, same_parameters, transition};
use super::state::BloomState;
use super::tag::{self, State};
use crate::arguments::{Arguments, request};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::settings;
use pg_bloom_core::Header;
use pgrx::pg_sys::Datum;

enum BloomAgg {}

impl Aggregate for BloomAgg {
    const NAME: &'static str = "bloom_agg";
    type State<'c> = BloomState<'c>;

    fn requested(arguments: &Arguments) -> Result<Header<'static>> {
        Ok(request(arguments)?.header(settings::max_filter_bytes())?)
    }
}

/// The transition function for most rows: what needs nothing of PostgreSQL and can't fail.
#[inline(always)]
fn another_row(call: &Call) -> Option<Datum> {
    let site = call.recalled::<CallSite<BloomAgg>>()?;
    // SAFETY: argument 0 is the state.
    let mut state = unsafe { BloomState::argument_at_once(call, 0)? };
    let hash = site.hash_at_once(call, state.params())?;
    // SAFETY: it was returned before.
    state.push_at_once(hash).then(|| unsafe { state.into_datum() })
}

fn combine(call: &Call) -> Outcome {
    // SAFETY: remembered by the site of this call.
    let shared = call.remembered(|| Ok(unsafe { SharedParams::new() }))?;
    // SAFETY: the first state is returned, or one in the memory of the aggregate.
    unsafe {
        tag::combine(call, |first: Option<BloomState>, second: BloomState| {
            if let Some(first) = &first {
                same_parameters::<BloomAgg>(first.params(), second.params())?;
            }
            BloomState::combine(call, shared, first, second)
        })
    }
}

fn serialise(call: &Call) -> Outcome {
    // SAFETY: nothing is added to it.
    unsafe { tag::only_state::<BloomState>(call)? }.map(|mut state| state.serialise()).transpose()
}

pg_functions! {
    // SAFETY: what it uses needs nothing of PostgreSQL, and can't fail.
    bloom_agg_transition => transition::<BloomAgg>, first unsafe another_row;
    bloom_agg_combine => combine;
    bloom_agg_serialise => serialise;
    bloom_agg_deserialise => |call| deserialise::<BloomState>(call);
    bloom_agg_final => |call| finish::<BloomState>(call);
}
