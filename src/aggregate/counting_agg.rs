//! `counting_bloom_agg` and `counting_bloom_union_agg`: they keep the same state, and differ in what they add to it.
//!
//! ```text
//! | params | value | len | batch of hashes |        value ──▶ | stored header | counters |
//! ```
//!
//! The counters are allocated with the first element. Hashes are counted in batches: the memory that a hash needs is
//! prefetched when it arrives, and its counters are incremented with those of the others.

use super::site::{ElementHead, Params, SharedParams, allocate, combine_by, require_same_parameters, transition};
use super::tag::{Group, Head, Tag, deserialise, nothing_of_its_own, only_state};
use crate::arguments::{Arguments, counting_header, empty_counting};
use crate::error::During;
use crate::filter_type::{CountingBloom, argument};
use crate::overfull;
use crate::pg::call::{Call, Outcome, Result};
use crate::pg::memory::Context;
use crate::pg::value::varlena::{PgBuffer, Value};
use pg_bloom_core::counting::{self, Counting, counters};
use pg_bloom_core::{Header, Kind};
use pgrx::pg_sys;

/// The other aggregate, for messages.
const UNION: &str = "counting_bloom_union_agg";

/// Hashes of a batch: few, since there may be many groups; enough for the memory to arrive.
const BATCH: usize = 32;

#[repr(C)]
struct CountingHead {
    tag: Tag,
    /// Whether the value is borrowed, and only read.
    is_borrowed: bool,
    /// Hashes in the batch.
    len: u32,
    /// The header of the filter; its kind is that of the elements, even if there are none yet.
    params: Params,
    /// The stored value being built; null as long as there is no element.
    value: *mut pg_sys::varlena,
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

    unsafe fn new(params: Params) -> CountingHead {
        let (tag, value) = (Tag::Counting, std::ptr::null_mut());
        CountingHead { tag, is_borrowed: false, len: 0, params, value, batch: [0; BATCH] }
    }

    #[inline(always)]
    fn params(&self) -> &Header<'_> {
        self.own_params()
    }

    #[inline(always)]
    fn push(state: &mut CountingState<'_>, call: &Call, hash: u64) -> Result<()> {
        if state.is_empty() {
            state.make_counters(call.require_aggregate()?);
        }
        let header = state.params();
        counters::prefetch(&state.value()[header.prefix_bytes()..], header.shape(), hash);
        let len = state.len as usize;
        let head = state.head();
        head.batch[len] = hash;
        head.len += 1;
        if len + 1 == BATCH {
            state.flush();
        }
        Ok(())
    }
}

impl CountingHead {
    /// The parameters, which must not be shown to others without the lifetime of the state.
    #[inline(always)]
    fn own_params(&self) -> &Header<'static> {
        // SAFETY: as was promised when they became those of the state.
        unsafe { &*self.params }
    }
}

impl<'c> CountingState<'c> {
    /// A state that another process serialised, read in place. Errors: 22P03 for bytes that are not a state.
    fn deserialised(call: &'c Call, value: Value<'c>) -> Result<CountingState<'c>> {
        let header = Counting::parse(value.bytes())?.header;
        let context = call.context();
        let has_elements = !header.kind.is_none();
        // SAFETY: the parameters are in the same memory.
        let mut head = unsafe { CountingHead::new(allocate(context, &header)) };
        if has_elements {
            (head.value, head.is_borrowed) = (value.into_datum().cast_mut_ptr(), true);
        }
        Ok(Group::new(context, head))
    }

    #[inline(always)]
    fn head(&mut self) -> &mut CountingHead {
        // SAFETY: only this file has it, and sets nothing but what is there.
        unsafe { self.head_mut() }
    }

    fn is_empty(&self) -> bool {
        self.value.is_null()
    }

    /// The header of the filter as it is: without a kind as long as there are no elements.
    fn header(&self) -> Header<'static> {
        if self.is_empty() { Header { kind: Kind::NONE, ..*self.own_params() } } else { *self.own_params() }
    }

    /// The value being built, of a state with elements of its own.
    #[inline(always)]
    fn value(&self) -> &[u8] {
        // SAFETY: the buffer is this state's own, lives as long, and is borrowed with it.
        unsafe { &*PgBuffer::bytes_of(self.own_value()) }
    }

    #[inline(always)]
    fn value_mut(&mut self) -> &mut [u8] {
        // SAFETY: the buffer is this state's own, lives as long, and is borrowed for writing with it.
        unsafe { &mut *PgBuffer::bytes_of(self.own_value()) }
    }

    #[inline(always)]
    fn own_value(&self) -> *mut pg_sys::varlena {
        if self.value.is_null() || self.is_borrowed {
            nothing_of_its_own();
        }
        self.value
    }

    #[inline(never)]
    fn make_counters(&mut self, context: Context<'_>) {
        let bytes = counting::stored_bytes(self.params()) as usize;
        self.head().value = PgBuffer::zeroed_in(context, bytes).into_pointer();
    }

    /// Counts the hashes of the batch.
    #[inline(never)]
    fn flush(&mut self) {
        let hashes = self.batch;
        let len = std::mem::take(&mut self.head().len);
        if len > 0 {
            let header = *self.own_params();
            counting::add_all(&mut self.value_mut()[header.prefix_bytes()..], &header, &hashes[..len as usize]);
        }
    }

    /// Adds a filter.
    fn absorb(&mut self, call: &Call, shared: &mut SharedParams, filter: &Counting<'_>, aggregate: &str) -> Result<()> {
        let summed = counting::summed_header(&self.header(), &filter.header).during(aggregate)?;
        self.head().params = shared.in_place_of(call, self.own_params(), &summed)?;
        if !filter.header.kind.is_none() {
            if self.is_empty() {
                self.make_counters(call.require_aggregate()?);
            }
            counters::sum_into(&mut self.value_mut()[summed.prefix_bytes()..], filter.counters);
        }
        Ok(())
    }

    /// Adds the elements of another state.
    fn absorb_state(
        &mut self,
        call: &Call,
        shared: &mut SharedParams,
        mut other: CountingState<'_>,
        aggregate: &str,
    ) -> Result<()> {
        other.flush();
        let header = other.header();
        if other.is_empty() {
            return self.absorb(call, shared, &Counting { header, counters: &[] }, aggregate);
        }
        // SAFETY: a value of variable length, its own or a borrowed one, which outlives the other state.
        let value = unsafe { Value::detoast(other.value.into()) };
        let counters = &value.bytes()[header.prefix_bytes()..];
        self.absorb(call, shared, &Counting { header, counters }, aggregate)
    }

    /// The filter so far: the result, or what another process continues with. The state stays as it is.
    fn filter(&mut self) -> pg_sys::Datum {
        self.flush();
        let header = self.header();
        if self.is_empty() {
            return counting::empty::<PgBuffer>(&header).into_datum();
        }
        counting::rewrite(&header, self.value_mut());
        self.value.into()
    }

    /// The finished filter. Errors: 22023 for an overfull one, if the setting says so.
    fn finish(&mut self, call: &Call) -> Result<pg_sys::Datum> {
        let datum = self.filter();
        // SAFETY: a value of variable length that was just made.
        let value = unsafe { Value::detoast(datum) };
        overfull::check::<CountingBloom>(call, overfull::COUNTING, &Counting::parse_trusted(value.bytes())?)?;
        Ok(datum)
    }
}

/// `counting_bloom_union_agg_transition(state, filter)`.
fn union_transition(call: &Call) -> Outcome {
    // SAFETY: argument 0 is the state.
    let state = unsafe { CountingState::argument(call, 0)? };
    if state.is_none() {
        call.require_aggregate()?;
    }
    let Some(filter) = argument::<CountingBloom>(call, 1)? else {
        // SAFETY: it was returned before.
        return Ok(state.map(|state| unsafe { state.into_datum() }));
    };
    // SAFETY: remembered by the site of this call.
    let shared = call.remembered(|| Ok(unsafe { SharedParams::new() }))?;
    let mut state = state.map_or_else(|| Group::with_header(call, shared, &filter.header), Ok)?;
    state.absorb(call, shared, &filter, UNION)?;
    // SAFETY: it was returned before, or made in the memory of the aggregate.
    Ok(Some(unsafe { state.into_datum() }))
}

fn combine(call: &Call) -> Outcome {
    combine_by(call, |state: &mut CountingState, shared, second| {
        require_same_parameters::<CountingHead>(state.params(), second.params())?;
        state.absorb_state(call, shared, second, CountingHead::NAME)
    })
}

/// `counting_bloom_union_agg_combine(state, state)`, whose filters may have different parameters.
fn union_combine(call: &Call) -> Outcome {
    combine_by(call, |state: &mut CountingState, shared, second| state.absorb_state(call, shared, second, UNION))
}

fn serialise(call: &Call) -> Outcome {
    // SAFETY: the state is not moved.
    let state: Option<CountingState> = unsafe { only_state(call)? };
    Ok(state.map(|mut state| state.filter()))
}

/// The final function of both.
fn finish(call: &Call) -> Outcome {
    // SAFETY: the state is not moved.
    let state: Option<CountingState> = unsafe { only_state(call)? };
    state.map_or_else(empty_counting, |mut state| state.finish(call)).map(Some)
}

pg_functions! {
    counting_bloom_agg_transition => transition::<CountingHead>;
    counting_bloom_agg_combine => combine;
    counting_bloom_agg_serialise => serialise;
    counting_bloom_agg_deserialise => |call| deserialise(call, CountingState::deserialised);
    counting_bloom_agg_final => finish;
    counting_bloom_union_agg_transition => union_transition;
    counting_bloom_union_agg_combine => union_combine;
}
