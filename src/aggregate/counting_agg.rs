//! `counting_bloom_agg` and `counting_bloom_union_agg`: they keep the same state, and differ in
//! what they add to it.
//!
//! ```text
//! | params | counters | len | batch of hashes |        counters ──▶ | payload |
//! ```
//!
//! The counters are allocated with the first element. Hashes are counted in batches: the memory
//! that a hash needs is prefetched when it arrives, and its counters are incremented with those of
//! the others.

use super::memory::{Payload, aggregate_memory};
use super::site::{ElementHead, Params, SharedParams, require_same_parameters, transition};
use super::tag::{Group, Head, Tag, combine, deserialise, with_state};
use crate::arguments::{Arguments, counting_header, empty_counting};
use crate::error::During;
use crate::filter_type::counting_bloom;
use crate::overfull;
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::counting::counters::{self, BLOCK_BYTES};
use pg_bloom_core::counting::{self, Counting};
use pg_bloom_core::{Header, Kind};

const UNION: &str = "counting_bloom_union_agg";

/// Hashes of a batch: few, since there may be many groups; enough for the memory to arrive.
const BATCH: usize = 32;

#[repr(C)]
struct CountingHead {
    tag: Tag,
    len: u32,
    params: Params,
    counters: Option<Payload>,
    batch: [u64; BATCH],
}

// SAFETY: it begins with its tag.
unsafe impl Head for CountingHead {
    const TAG: Tag = Tag::Counting;
}

type CountingState<'c> = Group<'c, CountingHead>;

impl ElementHead for CountingHead {
    const NAME: &'static str = "counting_bloom_agg";

    fn requested(arguments: &Arguments) -> Result<Header<'static>> {
        counting_header(arguments)
    }

    fn new(params: Params) -> CountingHead {
        CountingHead {
            tag: Tag::Counting,
            len: 0,
            params,
            counters: None,
            batch: [0; BATCH],
        }
    }

    #[inline(always)]
    fn params(&self) -> &Header<'_> {
        self.params
    }

    #[inline(always)]
    fn push(state: &mut CountingState<'_>, call: &Call, hash: u64) -> Result<()> {
        let shape = state.params.shape();
        counters::prefetch(state.counters(call)?, shape, hash);
        let head = state.head();
        head.batch[head.len as usize] = hash;
        head.len += 1;
        if head.len as usize == BATCH {
            state.flush();
        }
        Ok(())
    }
}

impl CountingState<'_> {
    #[inline(always)]
    fn head(&mut self) -> &mut CountingHead {
        // SAFETY: only this file has it, and sets nothing but what is there.
        unsafe { self.head_mut() }
    }

    /// The header of the filter as it is: without a kind as long as there are no elements.
    fn header(&self) -> Header<'static> {
        if self.counters.is_none() {
            Header { kind: Kind::NONE, ..*self.params }
        } else {
            *self.params
        }
    }

    /// The counters of a state that has elements, or is about to.
    #[inline(always)]
    fn counters(&mut self, call: &Call) -> Result<&mut [u8]> {
        let bytes = self.params.blocks as usize * BLOCK_BYTES;
        match &mut self.head().counters {
            Some(counters) => Ok(counters),
            none => Ok(none.insert(Payload::zeroed_in(aggregate_memory(call)?, bytes))),
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        let head = self.head();
        if let Some(counters) = &mut head.counters {
            counting::add_all(counters, head.params, &head.batch[..head.len as usize]);
        }
        head.len = 0;
    }

    /// The filter so far: the result, or what another process continues with. The state stays as it
    /// is.
    fn filter(&mut self) -> PgBuffer {
        self.flush();
        let header = self.header();
        match &self.counters {
            Some(counters) => Counting { header, counters }.to_buffer(),
            None => counting::empty(&header),
        }
    }
}

fn union_transition(call: &Call) -> Outcome {
    // SAFETY: argument 0 is the state.
    let state = unsafe { CountingState::argument(call, 0)? };
    if state.is_none() {
        call.require_aggregate()?;
    }
    let Some(filter) = counting_bloom(call, 1)? else {
        return Ok(state.map(Group::into_datum));
    };
    added(call, state, &filter, UNION).map(|state| Some(state.into_datum()))
}

/// A state, or a new one, to which a filter was added.
fn added<'c>(
    call: &'c Call,
    state: Option<CountingState<'c>>,
    filter: &Counting<'_>,
    aggregate: &str,
) -> Result<CountingState<'c>> {
    let shared = SharedParams::of(call)?;
    let mut state = state.map_or_else(|| Group::with_header(call, shared, &filter.header), Ok)?;
    if aggregate == CountingHead::NAME {
        require_same_parameters::<CountingHead>(state.params, &filter.header)?;
    }
    let summed = counting::summed_header(&state.header(), &filter.header).during(aggregate)?;
    state.head().params = shared.in_place_of(call, state.params, &summed)?;
    if !filter.header.kind.is_none() {
        counters::sum_into(state.counters(call)?, filter.counters);
    }
    Ok(state)
}

/// The combine function of both; filters of the union may have different parameters.
fn combine_states(call: &Call, aggregate: &str) -> Outcome {
    combine(call, |first, bytes| added(call, first, &Counting::parse(bytes)?, aggregate))
}

fn serialise(call: &Call) -> Outcome {
    Ok(with_state(call, |state: &mut CountingState| Ok(state.filter()))?.map(PgBuffer::into_datum))
}

/// The final function of both.
fn finish(call: &Call) -> Outcome {
    match with_state(call, |state: &mut CountingState| Ok(state.filter()))? {
        Some(filter) => overfull::finish(call, overfull::COUNTING, filter),
        None => empty_counting().map(Some),
    }
}

pg_functions! {
    counting_bloom_agg_transition => transition::<CountingHead>;
    counting_bloom_agg_combine => |call| combine_states(call, CountingHead::NAME);
    counting_bloom_agg_serialise => serialise;
    counting_bloom_agg_deserialise => deserialise::<CountingHead>;
    counting_bloom_agg_final => finish;
    counting_bloom_union_agg_transition => union_transition;
    counting_bloom_union_agg_combine => |call| combine_states(call, UNION);
}
