//! `bloom_union_agg` and `bloom_intersection_agg`: aggregates over filters. The state of both has the filters so far,
//! merged as far as that is possible yet, in the aggregate's own memory: see [`pg_bloom_core::filter::merging`]. The
//! result does not depend on the order of the filters, nor on how they are spread over processes.

use super::memory::{Payload, PgList};
use super::tag::{self, Group, Head, Tag, only_state};
use crate::arguments::empty_bloom;
use crate::error::During;
use crate::filter_type::{Bloom, argument};
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::memory::Context;
use crate::pg::value::varlena::{PgBuffer, Value};
use crate::{overfull, settings};
use pg_bloom_core::filter::merging::{MergeMemory, MergedFilters, Operation, PartialMerge};
use pg_bloom_core::{Buffer, View};
use pgrx::pg_sys;

fn aggregate(operation: Operation) -> &'static str {
    match operation {
        Operation::Union => "bloom_union_agg",
        Operation::Intersection => "bloom_intersection_agg",
    }
}

/// The memory of an aggregate, where the state and the filters in it are kept.
struct AggregateMemory(Context<'static>);

impl AggregateMemory {
    /// Errors: 55000 outside an aggregate.
    fn of(call: &Call) -> Result<AggregateMemory> {
        // SAFETY: it is used for this call, and by what is kept there.
        Ok(AggregateMemory(unsafe { Context::new(call.require_aggregate()?.raw()) }))
    }
}

impl MergeMemory for AggregateMemory {
    type Bits = Payload;
    type List<T> = PgList<T>;

    fn zeroed(&mut self, len: usize) -> Payload {
        // SAFETY: kept there.
        unsafe { Payload::zeroed_in(self.0, len) }
    }

    fn copied(&mut self, bytes: &[u8]) -> Payload {
        // SAFETY: kept there.
        unsafe { Payload::copied_in(self.0, bytes) }
    }

    fn free(&mut self, bits: Payload) {
        bits.free();
    }

    fn list<T>(&mut self, room: usize) -> PgList<T> {
        PgList::new_in(self.0, room)
    }
}

#[repr(C)]
struct MergeHead {
    tag: Tag,
    merged: Merged,
}

// SAFETY: it begins with its tag.
unsafe impl Head for MergeHead {
    const TAG: Tag = Tag::Merge;
}

enum Merged {
    /// Filters that this process was given.
    Own(MergedFilters<AggregateMemory>),
    /// What another process handed over, read in place.
    Handed(*mut pg_sys::varlena),
}

type MergeState<'c> = Group<'c, MergeHead>;

impl<'c> MergeState<'c> {
    /// Errors: 55000 outside an aggregate.
    fn of(call: &'c Call, operation: Operation) -> Result<MergeState<'c>> {
        let mut memory = AggregateMemory::of(call)?;
        Ok(MergeState::with(memory.0, Merged::Own(MergedFilters::new(&mut memory, operation))))
    }

    /// A state that another process serialised, which is read in place. Errors: 22P03 for bytes that are not a state.
    fn deserialised(call: &'c Call, value: Value<'c>) -> Result<MergeState<'c>> {
        PartialMerge::parse(&value)?;
        Ok(MergeState::with(call.context(), Merged::Handed(value.into_datum().cast_mut_ptr())))
    }

    fn with(context: Context<'c>, merged: Merged) -> MergeState<'c> {
        Group::new(context, MergeHead { tag: Tag::Merge, merged })
    }

    /// The filters of this state, and the memory for more. A state that was handed over is first copied.
    fn merged(&mut self, call: &Call) -> Result<(&mut MergedFilters<AggregateMemory>, AggregateMemory)> {
        let mut memory = AggregateMemory::of(call)?;
        if let Some(parts) = self.parts()? {
            let mut merged = MergedFilters::new(&mut memory, parts.operation);
            merged.take_parts(&mut memory, &parts).during(aggregate(parts.operation))?;
            *self = MergeState::with(memory.0, Merged::Own(merged));
        }
        // SAFETY: only the filters are changed.
        match unsafe { &mut self.head_mut().merged } {
            Merged::Own(merged) => Ok((merged, memory)),
            Merged::Handed(_) => unreachable!("it has become this process's own"),
        }
    }

    /// What another process handed over; `None` for a state of this process's own filters.
    fn parts(&self) -> Result<Option<PartialMerge<'_>>> {
        let Merged::Handed(value) = self.merged else { return Ok(None) };
        // SAFETY: a value of variable length, which outlives the state.
        let value = unsafe { Value::detoast(value.into()) };
        Ok(Some(PartialMerge::parse(value.into_bytes())?))
    }

    /// Takes a filter. Sizes that don't divide each other are no error yet: a later one may be a multiple of both.
    fn take(&mut self, call: &Call, view: &View<'_>) -> Result<()> {
        let (merged, mut memory) = self.merged(call)?;
        merged.take(&mut memory, view).during(aggregate(merged.operation))
    }

    /// Takes the filters of another state.
    fn take_state(&mut self, call: &Call, mut other: MergeState<'_>) -> Result<()> {
        let (merged, mut memory) = self.merged(call)?;
        let aggregate = aggregate(merged.operation);
        if let Some(parts) = other.parts()? {
            return merged.take_parts(&mut memory, &parts).during(aggregate);
        }
        let bytes: PgBuffer = other.merged(call)?.0.to_parts()?;
        merged.take_parts(&mut memory, &PartialMerge::parse(bytes.bytes())?).during(aggregate)
    }

    /// The state as bytes, for another process. Errors: 54000 for filters that take too many bytes in all.
    fn serialise(&mut self, call: &Call) -> Result<pg_sys::Datum> {
        Ok(self.merged(call)?.0.to_parts::<PgBuffer>()?.into_datum())
    }

    /// The filter that all make so far. Errors: 22023 for filters that can't be merged, 54000 for too large a result.
    fn finish(&mut self, call: &Call) -> Result<PgBuffer> {
        let (merged, mut memory) = self.merged(call)?;
        merged.finish(&mut memory, settings::max_filter_bytes()).during(aggregate(merged.operation))
    }
}

fn transition(call: &Call, operation: Operation) -> Outcome {
    // SAFETY: argument 0 is the state.
    let state = unsafe { MergeState::argument(call, 0)? };
    call.require_aggregate()?;
    let Some(view) = argument::<Bloom>(call, 1)? else {
        // SAFETY: it was returned before.
        return Ok(state.map(|state| unsafe { state.into_datum() }));
    };
    let mut state = state.map_or_else(|| MergeState::of(call, operation), Ok)?;
    state.take(call, &view)?;
    // SAFETY: it was returned before, or made in the memory of the aggregate.
    Ok(Some(unsafe { state.into_datum() }))
}

fn combine(call: &Call, operation: Operation) -> Outcome {
    // SAFETY: the first state is returned, or one in the memory of the aggregate.
    unsafe {
        tag::combine(call, |first: Option<MergeState>, second| {
            let mut state = first.map_or_else(|| MergeState::of(call, operation), Ok)?;
            state.take_state(call, second)?;
            Ok(state)
        })
    }
}

fn serialise(call: &Call) -> Outcome {
    // SAFETY: the state is not moved.
    let state: Option<MergeState> = unsafe { only_state(call)? };
    state.map(|mut state| state.serialise(call)).transpose()
}

fn finish_union(call: &Call) -> Outcome {
    // SAFETY: the state is not moved.
    match unsafe { only_state::<MergeHead>(call)? } {
        Some(mut state) => overfull::finish::<Bloom>(call, overfull::MERGED, state.finish(call)?),
        None => empty_bloom().map(Some),
    }
}

fn finish_intersection(call: &Call) -> Outcome {
    // SAFETY: the state is not moved.
    let state: Option<MergeState> = unsafe { only_state(call)? };
    state.map(|mut state| Ok(state.finish(call)?.into_datum())).transpose()
}

pg_functions! {
    bloom_union_agg_transition => |call| transition(call, Operation::Union);
    bloom_union_agg_combine => |call| combine(call, Operation::Union);
    bloom_union_agg_final => finish_union;
    bloom_intersection_agg_transition => |call| transition(call, Operation::Intersection);
    bloom_intersection_agg_combine => |call| combine(call, Operation::Intersection);
    bloom_intersection_agg_final => finish_intersection;
    bloom_merge_agg_serialise => serialise;
    bloom_merge_agg_deserialise => |call| tag::deserialise(call, MergeState::deserialised);
}
