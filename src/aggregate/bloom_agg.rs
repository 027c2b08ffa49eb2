//! `bloom_agg`, whose state is [`State`].
//!
//! ```text
//! rows ──transition──▶ state ──serialise──▶ bytes ──deserialise──▶ state ──combine──▶ state ──final──▶ bloom
//! ```

use super::parameters::SharedParams;
use super::site::{Aggregate, ElementState, deserialise, finish, same_parameters, transition};
use super::state::BloomState;
use super::tag::{self, State};
use crate::arguments::{Arguments, request};
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::settings;
use pg_bloom_core::Header;

/// The aggregate `bloom_agg`.
enum BloomAgg {}

impl Aggregate for BloomAgg {
    const NAME: &'static str = "bloom_agg";
    type State = BloomState;

    fn requested(arguments: &Arguments) -> Result<Header<'static>> {
        Ok(request(arguments)?.header(settings::max_filter_bytes())?)
    }
}

/// `bloom_agg_combine(state, state)`.
fn combine(call: &Call) -> Outcome {
    tag::combine(call, |first: Option<BloomState>, second: BloomState| {
        if let Some(first) = &first {
            same_parameters::<BloomAgg>(first.params(), second.params())?;
        }
        let shared = call.remembered(|| Ok(SharedParams::new()))?;
        BloomState::combine(call, shared, first, second)
    })
}

/// `bloom_agg_serialise(state)`.
fn serialise(call: &Call) -> Outcome {
    call.require_aggregate()?;
    BloomState::argument(call, 0)?.map(|mut state| state.serialise()).transpose()
}

pg_functions! {
    bloom_agg_transition => transition::<BloomAgg>;
    bloom_agg_combine => combine;
    bloom_agg_serialise => serialise;
    bloom_agg_deserialise => deserialise::<BloomState>;
    bloom_agg_final => finish::<BloomState>;
}
