//! `bloom_union_agg` and `bloom_intersection_agg`: aggregates over filters. The state of both has
//! the filters so far, merged as far as that is possible yet, in the aggregate's own memory: see
//! [`pg_bloom_core::filter::merging`]. The result does not depend on the order of the filters, nor
//! on how they are spread over processes.

use super::memory::{Payload, PgList, aggregate_memory};
use super::tag::{Group, Head, Tag, combine, deserialise, with_state};
use crate::arguments::empty_bloom;
use crate::error::During;
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
    tag: Tag,
    merged: MergedFilters<Context<'static>>,
}

// SAFETY: it begins with its tag.
unsafe impl Head for MergeHead {
    const TAG: Tag = Tag::Merge;
}

type MergeState<'c> = Group<'c, MergeHead>;

impl<'c> MergeState<'c> {
    fn or_new(
        state: Option<MergeState<'c>>,
        call: &'c Call,
        operation: Operation,
    ) -> Result<MergeState<'c>> {
        let new = || {
            let merged = MergedFilters::new(&mut aggregate_memory(call)?, operation);
            Group::new(call, MergeHead { tag: Tag::Merge, merged })
        };
        state.map_or_else(new, Ok)
    }

    /// What `work` does with the filters, and the memory for more.
    fn with_filters<T>(
        &mut self,
        call: &Call,
        work: impl FnOnce(
            &mut MergedFilters<Context<'static>>,
            &mut Context<'static>,
        ) -> pg_bloom_core::Result<T>,
    ) -> Result<T> {
        // SAFETY: only the filters are changed.
        let merged = unsafe { &mut self.head_mut().merged };
        let aggregate = match merged.operation {
            Operation::Union => "bloom_union_agg",
            Operation::Intersection => "bloom_intersection_agg",
        };
        work(merged, &mut aggregate_memory(call)?).during(aggregate)
    }
}

/// Takes a filter. Sizes that don't divide each other are no error yet: a later one may be a
/// multiple of both.
fn transition(call: &Call, operation: Operation) -> Outcome {
    // SAFETY: argument 0 is the state.
    let state = unsafe { MergeState::argument(call, 0)? };
    call.require_aggregate()?;
    let Some(view) = bloom(call, 1)? else {
        return Ok(state.map(Group::into_datum));
    };
    let mut state = MergeState::or_new(state, call, operation)?;
    state.with_filters(call, |merged, memory| merged.take(memory, &view))?;
    Ok(Some(state.into_datum()))
}

fn combine_states(call: &Call, operation: Operation) -> Outcome {
    combine(call, |first, bytes| {
        let (parts, mut state) =
            (PartialMerge::parse(bytes)?, MergeState::or_new(first, call, operation)?);
        state.with_filters(call, |merged, memory| merged.take_parts(memory, &parts))?;
        Ok(state)
    })
}

/// The state as bytes, for another process. Errors: 54000 for filters that take too many bytes in
/// all.
fn serialise(call: &Call) -> Outcome {
    let parts = with_state(call, |state: &mut MergeState| {
        state.with_filters(call, |merged, _| merged.to_parts())
    })?;
    Ok(parts.map(PgBuffer::into_datum))
}

/// The filter that all make so far. Errors: 22023 for filters that can't be merged, 54000 for too
/// large a result.
fn finished(call: &Call) -> Result<Option<PgBuffer>> {
    let limit = settings::max_filter_bytes();
    with_state(call, |state: &mut MergeState| {
        state.with_filters(call, |merged, memory| merged.finish(memory, limit))
    })
}

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
