//! `bloom_union_agg` and `bloom_intersection_agg`: aggregates over filters.
//!
//! The state of both is [`MergedFilters`], in the memory of the aggregate: the filters so far,
//! merged as far as their sizes allow. The result depends neither on the order of the filters nor
//! on how they are spread over processes.

use super::memory::{Payload, PgList, aggregate_memory};
use super::pointer::{
    AggregateState, StateHead, StateTag, aggregate_context, combine, deserialise, with_state,
};
use crate::arguments::empty_bloom;
use crate::error::WithFunctionName;
use crate::filter_type::bloom;
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::memory::Context;
use crate::pg::value::varlena::PgBuffer;
use crate::{overfull, settings};
use pg_bloom_core::filter::merging::{MergeMemory, MergedFilters, Operation, PartialMerge};

impl MergeMemory for Context<'static> {
    type Bits = Payload;
    type List<T> = PgList<T>;

    fn zeroed(&mut self, len: usize) -> Payload {
        Payload::zeroed_in(*self, len)
    }

    fn free(&mut self, bits: Payload) {
        bits.free();
    }

    fn list<T>(&mut self, room: usize) -> PgList<T> {
        PgList::new_in(*self, room)
    }
}

#[repr(C)]
struct MergeHead {
    tag: StateTag,
    filters: MergedFilters<Context<'static>>,
}

// SAFETY: the struct is repr(C), and its first field is a tag, which is only ever set to TAG.
unsafe impl StateHead for MergeHead {
    const TAG: StateTag = StateTag::Merge;
}

type MergeState<'c> = AggregateState<'c, MergeHead>;

impl<'c> MergeState<'c> {
    /// Allocates a state that has merged no filter yet. Fails with 55000 outside an aggregate.
    fn without_filters(call: &'c Call, operation: Operation) -> Result<MergeState<'c>> {
        let filters = MergedFilters::new(&mut aggregate_memory(call)?, operation);
        AggregateState::new(call, MergeHead { tag: StateTag::Merge, filters })
    }

    /// Calls `use_filters` with the filters that the state has merged so far, and with the memory
    /// context in which they may allocate, and returns its result. An error of `use_filters` is
    /// given the name of the SQL aggregate. Fails if `use_filters` does, and with 55000 outside an
    /// aggregate.
    fn with_filters<T>(
        &mut self,
        call: &Call,
        use_filters: impl FnOnce(
            &mut MergedFilters<Context<'static>>,
            &mut Context<'static>,
        ) -> pg_bloom_core::Result<T>,
    ) -> Result<T> {
        // SAFETY: the filters are changed by their own methods only, and the tag isn't.
        let filters = unsafe { &mut self.head_mut().filters };
        let aggregate = match filters.operation {
            Operation::Union => "bloom_union_agg",
            Operation::Intersection => "bloom_intersection_agg",
        };
        use_filters(filters, &mut aggregate_memory(call)?).with_function_name(aggregate)
    }
}

/// Implements the transition functions of `bloom_union_agg` and `bloom_intersection_agg`: adds the
/// filter in argument 1 to the state in argument 0, and returns the state. A NULL filter adds
/// nothing.
///
/// Filters whose sizes don't divide each other are no error yet: a later filter may have a size
/// that is a multiple of both. Fails with 22023 or 42804 for filters that can't be merged, with
/// 54000 for a result that would be too large, and with 55000 outside an aggregate.
fn transition(call: &Call, operation: Operation) -> Outcome {
    // SAFETY: transition functions are declared with the state as argument 0.
    let existing_state = unsafe { MergeState::argument(call, 0)? };
    aggregate_context(call)?;
    let Some(filter) = bloom(call, 1)? else {
        return Ok(existing_state.map(AggregateState::into_datum));
    };

    let mut state = match existing_state {
        Some(state) => state,
        None => MergeState::without_filters(call, operation)?,
    };
    state.with_filters(call, |filters, memory| filters.add(memory, &filter))?;
    Ok(Some(state.into_datum()))
}

/// Implements the combine functions of both aggregates: merges the state in argument 1, which
/// another process has sent as bytes, into the state in argument 0; into a new one for NULL. Fails
/// with 22023 or 42804 for filters that can't be merged, with 54000 for a result that would be too
/// large, and with 55000 outside an aggregate.
fn combine_states(call: &Call, operation: Operation) -> Outcome {
    combine(call, |own, bytes| {
        let other = PartialMerge::parse(bytes)?;
        let mut state = match own {
            Some(state) => state,
            None => MergeState::without_filters(call, operation)?,
        };
        state.with_filters(call, |filters, memory| filters.add_partial(memory, &other))?;
        Ok(state)
    })
}

/// Returns the state as bytes, for another process. Fails with 54000 if they would be too many.
fn serialise(call: &Call) -> Outcome {
    let bytes = with_state(call, |state: &mut MergeState| {
        state.with_filters(call, |filters, _| filters.to_partial())
    })?;
    Ok(bytes.map(PgBuffer::into_datum))
}

/// Returns the merged filter; `None` if there were no filters. Fails with 22023 for filters that
/// can't be merged, and with 54000 for a result that would be too large.
fn finished(call: &Call) -> Result<Option<PgBuffer>> {
    let limit = settings::max_filter_bytes();
    with_state(call, |state: &mut MergeState| {
        state.with_filters(call, |filters, memory| filters.finish(memory, limit))
    })
}

/// Returns the union, with a warning or an error if it is overfull; an empty filter for no filters.
fn finish_union(call: &Call) -> Outcome {
    match finished(call)? {
        Some(filter) => overfull::finish(call, overfull::MERGED, filter),
        None => empty_bloom().map(Some),
    }
}

pg_functions! {
    bloom_union_agg_transition => |call| transition(call, Operation::Union);
    bloom_union_agg_combine => |call| combine_states(call, Operation::Union);
    bloom_union_agg_final => finish_union;
    bloom_intersection_agg_transition => |call| transition(call, Operation::Intersection);
    bloom_intersection_agg_combine => |call| combine_states(call, Operation::Intersection);
    bloom_intersection_agg_final => |call| Ok(finished(call)?.map(PgBuffer::into_datum));
    bloom_merge_agg_serialise => serialise;
    bloom_merge_agg_deserialise => deserialise::<MergeHead>;
}
