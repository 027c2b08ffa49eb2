//! `counting_bloom_agg` and `counting_bloom_union_agg`: both keep the same state, in the aggregate's own memory, and
//! differ in what they add to it.
//!
//! ```text
//! | params | value | len | batch of hashes |        value ──▶ | stored header | counters |
//! ```
//!
//! The counters are allocated with the first element. Hashes are counted in batches: the memory that a hash needs is
//! prefetched when it arrives, and its counters are incremented with those of the others.

use super::parameters::{Params, SharedParams, allocate};
use super::site::{Aggregate, ElementState, deserialise, finish, same_parameters, transition};
use super::tag::{self, Group, Head, State, Tag, nothing_of_its_own};
use crate::arguments::{Arguments, counting_header, empty_counting};
use crate::error::During;
use crate::filter_type::{CountingBloom, argument};
use crate::overfull;
use crate::pg::call::Call;
use crate::pg::call::error::{Outcome, Result};
use crate::pg::memory::Context;
use crate::pg::value::varlena::{PgBuffer, Value};
use pg_bloom_core::counting::{self, Counting, counters};
use pg_bloom_core::{Header, Kind};
use pgrx::pg_sys;

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

impl<'c> ElementState<'c> for CountingState<'c> {
    unsafe fn new(context: Context<'c>, params: Params) -> CountingState<'c> {
        let (tag, value) = (Tag::Counting, std::ptr::null_mut());
        let head = CountingHead { tag, is_borrowed: false, len: 0, params, value, batch: [0; BATCH] };
        Group::allocate(context, size_of::<CountingHead>(), head)
    }

    #[inline(always)]
    fn params(&self) -> &Header<'_> {
        self.own_params()
    }

    #[inline(always)]
    fn push(&mut self, call: &Call, hash: u64) -> Result<()> {
        if self.is_empty() {
            self.make_counters(call.require_aggregate()?);
        }
        let header = self.own_params();
        counters::prefetch(&self.value()[header.prefix_bytes()..], header.shape(), hash);
        let len = self.len as usize;
        let head = self.head();
        head.batch[len] = hash;
        head.len += 1;
        if len + 1 == BATCH {
            self.flush();
        }
        Ok(())
    }

    fn deserialised(call: &'c Call, value: Value<'c>) -> Result<CountingState<'c>> {
        let filter = Counting::parse(value.bytes())?;
        let context = call.context();
        let has_elements = !filter.header.kind.is_none();
        // SAFETY: the parameters are in the same memory.
        let mut state = unsafe { CountingState::new(context, allocate(context, &filter.header)) };
        if has_elements {
            let head = state.head();
            (head.value, head.is_borrowed) = (value.into_datum().cast_mut_ptr(), true);
        }
        Ok(state)
    }

    fn finish(&mut self, call: &Call) -> Result<pg_sys::Datum> {
        let datum = self.filter();
        // SAFETY: a value of variable length that was just made.
        let value = unsafe { Value::detoast(datum) };
        let filter = Counting::parse_trusted(value.bytes())?;
        overfull::check::<CountingBloom>(call, overfull::COUNTING, &filter)?;
        Ok(datum)
    }

    fn empty() -> Result<pg_sys::Datum> {
        empty_counting()
    }
}

impl CountingState<'_> {
    /// The parameters, which live at least as long as the state, and are not shown to others without its lifetime.
    #[inline(always)]
    fn own_params(&self) -> &Header<'static> {
        // SAFETY: as was promised when they became those of the state.
        unsafe { &*self.params }
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
        let bytes = counting::stored_bytes(self.own_params()) as usize;
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

    /// # Errors
    /// Those of a sum.
    fn absorb(&mut self, call: &Call, shared: &mut SharedParams, filter: &Counting<'_>, aggregate: &str) -> Result<()> {
        let summed = counting::summed_header(&self.header(), &filter.header).during(aggregate)?;
        let has_elements = !filter.header.kind.is_none();
        // Parameters keep the kind of the elements that are still to come.
        let kind = if summed.kind.is_none() { self.own_params().kind } else { summed.kind };
        let header = Header { kind, ..summed };
        if *self.own_params() != header {
            self.head().params = shared.params(call, &header)?;
        }
        if has_elements {
            if self.is_empty() {
                self.make_counters(call.require_aggregate()?);
            }
            counters::sum_into(&mut self.value_mut()[header.prefix_bytes()..], filter.counters);
        }
        Ok(())
    }

    /// # Errors
    /// Those of a sum.
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

    /// The filter so far: the result of the aggregate, or what another process continues with. The state stays as it
    /// is.
    fn filter(&mut self) -> pg_sys::Datum {
        self.flush();
        let header = self.header();
        if self.is_empty() {
            return counting::empty::<PgBuffer>(&header).into_datum();
        }
        counting::rewrite(&header, self.value_mut());
        self.value.into()
    }
}

enum CountingBloomAgg {}

impl Aggregate for CountingBloomAgg {
    const NAME: &'static str = "counting_bloom_agg";
    type State<'c> = CountingState<'c>;

    fn requested(arguments: &Arguments) -> Result<Header<'static>> {
        counting_header(arguments)
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
    let mut state = match state {
        Some(state) => state,
        None => CountingState::with_header(call, shared, &filter.header)?,
    };
    state.absorb(call, shared, &filter, "counting_bloom_union_agg")?;
    // SAFETY: it was returned before, or made in the memory of the aggregate.
    Ok(Some(unsafe { state.into_datum() }))
}

/// Adds two states, whose parameters must be the same if `same`.
fn combine(call: &Call, aggregate: &str, same: bool) -> Outcome {
    // SAFETY: remembered by the site of this call.
    let shared = call.remembered(|| Ok(unsafe { SharedParams::new() }))?;
    // SAFETY: the first state is returned, or one in the memory of the aggregate.
    unsafe {
        tag::combine(call, |first: Option<CountingState>, second: CountingState| {
            let mut first = match first {
                Some(first) => {
                    if same {
                        same_parameters::<CountingBloomAgg>(first.params(), second.params())?;
                    }
                    first
                }
                None => CountingState::with_header(call, shared, second.params())?,
            };
            first.absorb_state(call, shared, second, aggregate)?;
            Ok(first)
        })
    }
}

fn serialise(call: &Call) -> Outcome {
    // SAFETY: nothing is added to it.
    Ok(unsafe { tag::only_state::<CountingState>(call)? }.map(|mut state| state.filter()))
}

pg_functions! {
    counting_bloom_agg_transition => transition::<CountingBloomAgg>;
    counting_bloom_agg_combine => |call| combine(call, "counting_bloom_agg", true);
    counting_bloom_agg_serialise => serialise;
    counting_bloom_agg_deserialise => |call| deserialise::<CountingState>(call);
    counting_bloom_agg_final => |call| finish::<CountingState>(call);
    counting_bloom_union_agg_transition => union_transition;
    counting_bloom_union_agg_combine => |call| combine(call, "counting_bloom_union_agg", false);
}
