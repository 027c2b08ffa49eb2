//! `counting_bloom_agg` and `counting_bloom_union_agg`. Both have the same state; one adds elements
//! to it, the other one filters.
//!
//! ```text
//! | head: header, pointer to counters, batch of hashes |        counters ──▶ | payload |
//! ```
//!
//! The counters are allocated with the first element. A hash is only put into the batch, and the
//! memory that it needs is prefetched; its counters are incremented with those of the whole batch,
//! when that memory has arrived.

use super::elements::{
    BuildHeader, ElementState, HeaderCache, parameters_of, require_same_parameters, transition,
};
use super::memory::{Payload, aggregate_memory};
use super::pointer::{
    AggregateState, StateHead, StateTag, aggregate_context, combine, deserialise, with_state,
};
use crate::arguments::{FilterArguments, counting_header, empty_counting};
use crate::error::WithFunctionName;
use crate::filter_type::counting_bloom;
use crate::overfull;
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::value::varlena::PgBuffer;
use pg_bloom_core::counting::counters::{self, BLOCK_BYTES};
use pg_bloom_core::counting::{self, Counting};
use pg_bloom_core::{Header, Kind};

/// How many hashes a batch has: few, since there may be a million groups, but enough that the
/// memory of the first has arrived when the last comes.
const BATCH_HASHES: usize = 32;

/// Which of the two aggregates is called.
#[derive(Clone, Copy, PartialEq)]
enum CountingAggregate {
    /// `counting_bloom_agg`: all filters have the same parameters.
    OfElements,
    /// `counting_bloom_union_agg`: the filters may have different parameters.
    Union,
}

impl CountingAggregate {
    /// Returns the name in SQL.
    fn name(self) -> &'static str {
        match self {
            CountingAggregate::OfElements => CountingHead::SQL_NAME,
            CountingAggregate::Union => "counting_bloom_union_agg",
        }
    }
}

#[repr(C)]
struct CountingHead {
    tag: StateTag,
    /// How many hashes the batch has.
    batch_len: u32,
    header: BuildHeader,
    /// `None` as long as there are no elements.
    counters: Option<Payload>,
    /// Hashes that aren't counted yet.
    batch: [u64; BATCH_HASHES],
}

// SAFETY: the struct is repr(C), and its first field is a tag, which is only ever set to TAG.
unsafe impl StateHead for CountingHead {
    const TAG: StateTag = StateTag::Counting;
}

type CountingState<'c> = AggregateState<'c, CountingHead>;

impl ElementState for CountingHead {
    const SQL_NAME: &'static str = "counting_bloom_agg";

    fn requested_header(arguments: &FilterArguments) -> Result<Header<'static>> {
        counting_header(arguments)
    }

    fn empty(header: BuildHeader) -> CountingHead {
        CountingHead {
            tag: StateTag::Counting,
            batch_len: 0,
            header,
            counters: None,
            batch: [0; BATCH_HASHES],
        }
    }

    #[inline(always)]
    fn header(&self) -> &Header<'_> {
        self.header
    }

    #[inline(always)]
    fn add(state: &mut CountingState<'_>, call: &Call, hash: u64) -> Result<()> {
        let shape = state.header.shape();
        // The memory of the counters arrives while the batch gets more hashes.
        counters::prefetch(state.counters(call)?, shape, hash);

        let head = state.head();
        head.batch[head.batch_len as usize] = hash;
        head.batch_len += 1;
        if head.batch_len as usize == BATCH_HASHES {
            state.count_batch();
        }
        Ok(())
    }
}

impl CountingState<'_> {
    #[inline(always)]
    fn head(&mut self) -> &mut CountingHead {
        // SAFETY: only this file uses the head, and it doesn't change the tag.
        unsafe { self.head_mut() }
    }

    /// Returns the header of the filter as it is now. It has no key kind as long as there are no
    /// elements.
    fn present_header(&self) -> Header<'static> {
        if self.counters.is_none() {
            Header { kind: Kind::NONE, ..*self.header }
        } else {
            *self.header
        }
    }

    /// Returns the counters of the filter that is being built. The first call allocates them, all
    /// 0, in the memory of the aggregate. Fails with 55000 outside an aggregate.
    #[inline(always)]
    fn counters(&mut self, call: &Call) -> Result<&mut [u8]> {
        let bytes = self.header.blocks as usize * BLOCK_BYTES;
        match &mut self.head().counters {
            Some(counters) => Ok(counters),
            none => Ok(none.insert(Payload::zeroed_in(aggregate_memory(call)?, bytes))),
        }
    }

    /// Increments the counters of the hashes in the batch, which were collected while the memory of
    /// their counters was prefetched, and empties the batch.
    #[inline(never)]
    fn count_batch(&mut self) {
        let head = self.head();
        if let Some(counters) = &mut head.counters {
            let batch = &head.batch[..head.batch_len as usize];
            counting::add_all(counters, head.header, batch);
        }
        head.batch_len = 0;
    }

    /// Returns the filter so far, which is the result and also the form in which a state is sent to
    /// another process. The state can still be used.
    fn filter(&mut self) -> PgBuffer {
        self.count_batch();
        let header = self.present_header();
        match &self.counters {
            Some(counters) => Counting { header, counters }.to_buffer(),
            None => counting::empty(&header),
        }
    }
}

/// Implements the transition function of `counting_bloom_union_agg`: adds the counters of the
/// filter in argument 1 to the state in argument 0, and returns the state. A NULL filter adds
/// nothing. Fails with 22023 if the parameters of the filters differ so that they can't be added,
/// with 42804 if the kinds of elements differ, and with 55000 outside an aggregate.
fn union_transition(call: &Call) -> Outcome {
    // SAFETY: transition functions are declared with the state as argument 0.
    let state = unsafe { CountingState::argument(call, 0)? };
    if state.is_none() {
        aggregate_context(call)?;
    }
    let Some(filter) = counting_bloom(call, 1)? else {
        return Ok(state.map(AggregateState::into_datum));
    };
    let state = add_filter(call, state, &filter, CountingAggregate::Union)?;
    Ok(Some(state.into_datum()))
}

/// Adds the counters of a counting filter to the state of an aggregate, and returns the state; a
/// new one for `None`. `aggregate` says which of two aggregates is called: `counting_bloom_agg`,
/// whose states must all have the same parameters, or `counting_bloom_union_agg`.
///
/// Fails with 22023 if the parameters differ, with 42804 if the kinds of elements do, and with
/// 55000 outside an aggregate.
fn add_filter<'c>(
    call: &'c Call,
    existing_state: Option<CountingState<'c>>,
    filter: &Counting<'_>,
    aggregate: CountingAggregate,
) -> Result<CountingState<'c>> {
    let header_cache = HeaderCache::of_site(call)?;
    let mut state = match existing_state {
        Some(state) => state,
        None => AggregateState::with_header(call, header_cache, &filter.header)?,
    };
    if aggregate == CountingAggregate::OfElements {
        let own_parameters = parameters_of(state.header);
        require_same_parameters::<CountingHead>(own_parameters, parameters_of(&filter.header))?;
    }

    let summed = counting::summed_header(&state.present_header(), &filter.header)
        .with_function_name(aggregate.name())?;
    let own_header = state.header;
    state.head().header = header_cache.merged_header_in_memory(call, own_header, &summed)?;

    let is_empty = filter.header.kind.is_none();
    if !is_empty {
        counters::sum_into(state.counters(call)?, filter.counters);
    }
    Ok(state)
}

/// Implements the combine functions of both aggregates: merges the state in argument 1, a counting
/// filter's bytes from another process, into the state in argument 0. Fails with 22023 if the
/// parameters differ, with 42804 if the kinds of elements do, and with 55000 outside an aggregate.
fn combine_states(call: &Call, aggregate: CountingAggregate) -> Outcome {
    combine(call, |own, bytes| {
        let other = Counting::parse(bytes)?;
        add_filter(call, own, &other, aggregate)
    })
}

/// Returns the state as bytes, for another process.
fn serialise(call: &Call) -> Outcome {
    let bytes = with_state(call, |state: &mut CountingState| Ok(state.filter()))?;
    Ok(bytes.map(PgBuffer::into_datum))
}

/// Implements the final function of both aggregates: returns the filter of the state in argument 0,
/// or an empty filter for NULL, as without rows. Raises a warning, or an error as
/// `pg_bloom.overfill` says, if the filter is overfull.
fn finish(call: &Call) -> Outcome {
    match with_state(call, |state: &mut CountingState| Ok(state.filter()))? {
        Some(filter) => overfull::finish(call, overfull::COUNTING, filter),
        None => empty_counting().map(Some),
    }
}

pg_functions! {
    counting_bloom_agg_transition => transition::<CountingHead>;
    counting_bloom_agg_combine => |call| combine_states(call, CountingAggregate::OfElements);
    counting_bloom_agg_serialise => serialise;
    counting_bloom_agg_deserialise => deserialise::<CountingHead>;
    counting_bloom_agg_final => finish;
    counting_bloom_union_agg_transition => union_transition;
    counting_bloom_union_agg_combine => |call| combine_states(call, CountingAggregate::Union);
}
