//! The state of `bloom_union_agg` and `bloom_intersection_agg`: the filters so far, merged as far as that is possible
//! yet, in the aggregate's own memory. What that means is in [`pg_bloom_core::filter::set`].

use super::list::PgList;
use super::payload::Payload;
use super::tag::{Group, Head, Tag};
use crate::error::During;
use crate::pg::call::Call;
use crate::pg::call::error::Result;
use crate::pg::memory::Context;
use crate::pg::value::varlena::{PgBuffer, Value};
use crate::settings;
use pg_bloom_core::filter::set::{Memory, Operation, Parts, Set};
use pg_bloom_core::{Buffer, View};
use pgrx::pg_sys;

fn aggregate(operation: Operation) -> &'static str {
    match operation {
        Operation::Union => "bloom_union_agg",
        Operation::Intersection => "bloom_intersection_agg",
    }
}

/// The memory of an aggregate, where the state and the filters in it are kept.
struct Merging(Context<'static>);

impl Merging {
    /// # Errors
    /// 55000 outside an aggregate.
    fn of(call: &Call) -> Result<Merging> {
        // SAFETY: it is used for this call, and by what is kept there.
        Ok(Merging(unsafe { Context::new(call.require_aggregate()?.raw()) }))
    }
}

impl Memory for Merging {
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
pub struct SetHead {
    tag: Tag,
    merged: Merged,
}

// SAFETY: it begins with its tag.
unsafe impl Head for SetHead {
    const TAG: Tag = Tag::Set;
}

enum Merged {
    /// Filters that this process was given.
    Own(Set<Merging>),
    /// What another process handed over, read in place.
    Handed(*mut pg_sys::varlena),
}

pub type SetState<'c> = Group<'c, SetHead>;

impl<'c> SetState<'c> {
    /// # Errors
    /// 55000 outside an aggregate.
    pub fn new(call: &'c Call, operation: Operation) -> Result<SetState<'c>> {
        let mut memory = Merging::of(call)?;
        Ok(SetState::with(memory.0, Merged::Own(Set::new(&mut memory, operation))))
    }

    /// A state that another process serialised, which is read in place.
    ///
    /// # Errors
    /// 22P03 for bytes that are not a state; 55000 outside an aggregate.
    pub fn handed(call: &'c Call, value: Value<'c>) -> Result<SetState<'c>> {
        call.require_aggregate()?;
        Parts::parse(&value)?;
        Ok(SetState::with(call.context(), Merged::Handed(value.into_datum().cast_mut_ptr())))
    }

    fn with(context: Context<'c>, merged: Merged) -> SetState<'c> {
        Group::allocate(context, size_of::<SetHead>(), SetHead { tag: Tag::Set, merged })
    }

    /// The filters of this state, and the memory for more. A state that was handed over is first copied.
    fn set(&mut self, call: &Call) -> Result<(&mut Set<Merging>, Merging)> {
        let mut memory = Merging::of(call)?;
        if let Some(parts) = self.parts()? {
            let mut set = Set::new(&mut memory, parts.operation());
            set.take_parts(&mut memory, &parts).during(aggregate(parts.operation()))?;
            *self = SetState::with(memory.0, Merged::Own(set));
        }
        // SAFETY: only the filters are changed.
        match unsafe { &mut self.head_mut().merged } {
            Merged::Own(set) => Ok((set, memory)),
            Merged::Handed(_) => unreachable!("it has become this process's own"),
        }
    }

    /// What another process handed over; `None` for a state of this process's own filters.
    fn parts(&self) -> Result<Option<Parts<'_>>> {
        match &self.merged {
            Merged::Own(_) => Ok(None),
            Merged::Handed(value) => {
                // SAFETY: a value of variable length, which outlives the state.
                let value = unsafe { Value::detoast((*value).into()) };
                Ok(Some(Parts::parse(value.into_bytes())?))
            }
        }
    }

    /// # Errors
    /// Those of a union. Sizes that don't divide each other are no error yet: a later filter may be a multiple of both.
    pub fn take(&mut self, call: &Call, view: &View<'_>) -> Result<()> {
        let (set, mut memory) = self.set(call)?;
        set.take(&mut memory, view).during(aggregate(set.operation()))
    }

    /// Takes a partial state of another process.
    ///
    /// # Errors
    /// As [`SetState::take`]; 22P03 for bytes that are not a state.
    pub fn take_state(&mut self, call: &Call, mut other: SetState<'_>) -> Result<()> {
        let (set, mut memory) = self.set(call)?;
        let aggregate = aggregate(set.operation());
        match other.parts()? {
            Some(parts) => set.take_parts(&mut memory, &parts).during(aggregate),
            None => {
                let bytes: PgBuffer = other.set(call)?.0.to_parts()?;
                set.take_parts(&mut memory, &Parts::parse(bytes.bytes())?).during(aggregate)
            }
        }
    }

    /// The state as bytes, for another process to continue with.
    ///
    /// # Errors
    /// 54000 for filters that take too many bytes in all.
    pub fn serialise(&mut self, call: &Call) -> Result<pg_sys::Datum> {
        Ok(self.set(call)?.0.to_parts::<PgBuffer>()?.into_datum())
    }

    /// The filter that all of them make. More can follow.
    ///
    /// # Errors
    /// 22023 for filters that can't be merged, 54000 for a result that is too large.
    pub fn finish(&mut self, call: &Call) -> Result<PgBuffer> {
        let (set, mut memory) = self.set(call)?;
        set.finish(&mut memory, settings::max_filter_bytes()).during(aggregate(set.operation()))
    }
}
