//! States of aggregates as PostgreSQL passes them from call to call.
//!
//! A state is a pointer of SQL type `internal`, which doesn't say what it points to. Users can
//! create aggregates of their own from the functions of several aggregates, and then one would get
//! the state of another. So every state begins with a byte that says which aggregate it belongs to.
//! These bytes are odd. The states of other extensions begin with an aligned pointer, or with a
//! small number, whose first byte is none of them.
//!
//! In a parallel query, the states of worker processes travel as bytes:
//!
//! ```text
//! worker   state ──serialise──▶ bytes
//! leader                        bytes ──deserialise──▶ SerialisedState ──combine──▶ state
//! ```
//!
//! Deserialising only keeps a pointer to the bytes; the combine function reads them. PostgreSQL
//! passes the result of a deserialise function to the combine function at once, as its second
//! argument. Anywhere else it is refused.

use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::memory::{self, Context};
use crate::pg::value::varlena::Value;
use pgrx::pg_sys::{Datum, MAXIMUM_ALIGNOF, repalloc_huge, varlena};
use std::marker::PhantomData;
use std::ops::Deref;

/// Returns the memory of the aggregate whose support function is called. Fails with 55000 where SQL
/// calls that function by itself.
pub fn aggregate_context<'a>(call: &'a Call) -> Result<Context<'a>> {
    call.require_aggregate("Use the aggregates bloom_agg and bloom_union_agg.")
}

/// The alignment, in bytes, of memory that PostgreSQL allocates.
pub const ALIGNMENT: usize = MAXIMUM_ALIGNOF as usize;

/// The first byte of a state: what the state is.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub enum StateTag {
    /// A state of `bloom_agg`.
    Bloom = 0xB1,
    /// A state of `bloom_union_agg` or `bloom_intersection_agg`.
    Merge = 0xB3,
    /// A state of `counting_bloom_agg` or `counting_bloom_union_agg`.
    Counting = 0xB5,
    /// A [`SerialisedState`] of any of these.
    Serialised = 0xB7,
}

/// The fixed part at the beginning of an aggregate's state.
///
/// # Safety
/// The type must be `repr(C)`, and its first field a [`StateTag`] that is always `TAG`.
pub unsafe trait StateHead: Sized + 'static {
    /// The first byte of such a state.
    const TAG: StateTag;
    /// The bytes allocated for a new state, at least the size of the head.
    const INITIAL_BYTES: usize = size_of::<Self>();
}

/// The bytes of a state that another process serialised.
#[repr(C)]
struct SerialisedState {
    tag: StateTag,
    /// The tag of the state that was serialised.
    serialised_tag: StateTag,
    /// The bytes, which PostgreSQL keeps as long as it keeps this struct.
    bytes: *mut varlena,
}

// SAFETY: the struct is repr(C), and its first field is a tag, which is only ever set to TAG.
unsafe impl StateHead for SerialisedState {
    const TAG: StateTag = StateTag::Serialised;
}

/// The state of one group, during one call of a function of its aggregate.
///
/// It points to a head of type `Head` in PostgreSQL's memory. More data of the state may follow the
/// head.
pub struct AggregateState<'c, Head> {
    head: *mut Head,
    call: PhantomData<&'c Call>,
}

impl<'c, Head: StateHead> AggregateState<'c, Head> {
    /// Allocates a state in the memory of the aggregate. Fails with 55000 outside an aggregate.
    pub fn new(call: &'c Call, head: Head) -> Result<AggregateState<'c, Head>> {
        Ok(AggregateState::new_in(aggregate_context(call)?, head))
    }

    /// Allocates a state in a memory context.
    fn new_in(context: Context<'c>, head: Head) -> AggregateState<'c, Head> {
        const {
            assert!(
                !std::mem::needs_drop::<Head>(),
                "PostgreSQL frees states without dropping them"
            );
            assert!(align_of::<Head>() <= ALIGNMENT);
            assert!(Head::INITIAL_BYTES >= size_of::<Head>());
        };
        let allocated: *mut Head = memory::allocate(context, Head::INITIAL_BYTES).cast();
        // SAFETY: the allocation is large enough and aligned for a head.
        unsafe { allocated.write(head) };
        AggregateState { head: allocated, call: PhantomData }
    }

    /// Returns the head, to change it.
    ///
    /// # Safety
    /// The head must stay true: where it says that data follows it in memory, that data must exist.
    #[inline(always)]
    pub unsafe fn head_mut(&mut self) -> &mut Head {
        // SAFETY: the state exists for the call, and `self` is borrowed mutably.
        unsafe { &mut *self.head }
    }

    /// Returns a pointer to the first byte after the head.
    #[inline(always)]
    pub fn behind_head(&self) -> *mut u8 {
        self.head.wrapping_add(1).cast()
    }

    /// Moves the state into `bytes` bytes of memory in the same memory context.
    ///
    /// # Safety
    /// All data that the head says to follow it must fit.
    pub unsafe fn reallocate(&mut self, bytes: usize) {
        assert!(bytes >= size_of::<Head>(), "a state has room for its head");
        // SAFETY: the state was allocated by palloc, so it can be reallocated.
        self.head = unsafe { repalloc_huge(self.head.cast(), bytes).cast() };
    }

    /// Returns argument number `index` of the call as a state; `None` if it is NULL, as before the
    /// first row.
    ///
    /// Panics if the argument was returned before in this call: two owners could both move the
    /// state. Fails with 55000 if it is the state of another aggregate.
    ///
    /// # Safety
    /// The SQL function must declare the argument as `internal`, for the state of an aggregate.
    #[inline(always)]
    pub unsafe fn argument(
        call: &'c Call,
        index: usize,
    ) -> Result<Option<AggregateState<'c, Head>>> {
        call.use_internal(index);
        // SAFETY: the caller promises an argument that is declared so. `use_internal` has made sure
        // that no other owner exists.
        let state = unsafe { AggregateState::argument_without_check(call, index) };
        if state.is_none() && call.datum(index).is_some() {
            return Err(foreign_state());
        }
        Ok(state)
    }

    /// Returns argument number `index` of the call as a state of this aggregate; `None` if it is
    /// NULL, or the state of another aggregate, which its first byte tells. Neither fails nor calls
    /// PostgreSQL, and doesn't check that the state has no other owner in this call.
    ///
    /// # Safety
    /// As for [`AggregateState::argument`]. In addition, the caller must be the only one to use the
    /// argument, or not move the state.
    #[inline(always)]
    pub unsafe fn argument_without_check(
        call: &'c Call,
        index: usize,
    ) -> Option<AggregateState<'c, Head>> {
        let head: *mut Head = call.internal(index)?;
        // SAFETY: the caller promises that this is the state of an aggregate. Whichever aggregate
        // made it, it has at least one byte.
        let first_byte = unsafe { *head.cast::<u8>() };
        if first_byte != Head::TAG as u8 {
            return None;
        }
        Some(AggregateState { head, call: PhantomData })
    }

    /// Returns the pointer that PostgreSQL passes on.
    #[inline(always)]
    pub fn into_datum(self) -> Datum {
        Datum::from(self.head)
    }
}

impl<Head> Deref for AggregateState<'_, Head> {
    type Target = Head;

    #[inline(always)]
    fn deref(&self) -> &Head {
        // SAFETY: the head was written when the state was allocated, and PostgreSQL keeps the state
        // for the duration of the call.
        unsafe { &*self.head }
    }
}

/// Implements a deserialise function, by which PostgreSQL gets the state of another process:
/// returns the bytes in argument 0 as a state that only [`combine`] accepts, or NULL for NULL. The
/// bytes are neither copied nor read yet; PostgreSQL passes the result to the combine function at
/// once. Fails with 55000 outside an aggregate.
pub fn deserialise<Head: StateHead>(call: &Call) -> Outcome {
    aggregate_context(call)?;
    let Some(value) = call.value(0) else {
        return Ok(None);
    };
    let head = SerialisedState {
        tag: StateTag::Serialised,
        serialised_tag: Head::TAG,
        bytes: value.pointer(),
    };
    Ok(Some(AggregateState::new_in(call.context(), head).into_datum()))
}

/// Implements a combine function, by which PostgreSQL merges the states of several processes: calls
/// `merge` with the state in argument 0 (`None` for NULL), and with the bytes of the state in
/// argument 1, which another process has sent, and returns the merged state.
///
/// If argument 1 is NULL, the result is argument 0. Fails with 55000 outside an aggregate or for a
/// state of another aggregate, and if `merge` fails.
pub fn combine<'c, Head: StateHead>(
    call: &'c Call,
    merge: impl FnOnce(Option<AggregateState<'c, Head>>, &'c [u8]) -> Result<AggregateState<'c, Head>>,
) -> Outcome {
    aggregate_context(call)?;
    // SAFETY: combine functions are declared with two states as their arguments.
    let own = unsafe { AggregateState::<Head>::argument(call, 0)? };
    // SAFETY: combine functions are declared with two states as their arguments.
    let other = unsafe { AggregateState::<SerialisedState>::argument(call, 1)? };

    let Some(other) = other else {
        return Ok(own.map(AggregateState::into_datum));
    };
    if other.serialised_tag != Head::TAG {
        return Err(foreign_state());
    }
    // SAFETY: this pointer was the argument of `deserialise`, so it is a value of variable length.
    // PostgreSQL keeps it for the call of the combine function.
    let bytes = unsafe { Value::detoast(other.bytes.into()) }.into_bytes();
    Ok(Some(merge(own, bytes)?.into_datum()))
}

/// Calls `read` with the state in argument 0, and returns its result; `None` if the argument is
/// NULL, as for an aggregate over no rows. This is for the functions that read a state: serialise
/// and final functions.
///
/// `read` must not move the state to other memory, since PostgreSQL may use it again, as window
/// functions do; this panics if it does. Fails with 55000 outside an aggregate or for a state of
/// another aggregate, and if `read` fails.
pub fn with_state<'c, Head: StateHead, T>(
    call: &'c Call,
    read: impl FnOnce(&mut AggregateState<'c, Head>) -> Result<T>,
) -> Result<Option<T>> {
    aggregate_context(call)?;
    // SAFETY: serialise and final functions are declared with the state as argument 0.
    let Some(mut state) = (unsafe { AggregateState::argument(call, 0)? }) else {
        return Ok(None);
    };
    let head_before = state.head;
    let result = read(&mut state)?;
    assert!(state.head == head_before, "a state must not move while it is read");
    Ok(Some(result))
}

/// Returns the error 55000 for an argument that isn't a state of the aggregate whose function is
/// called.
#[cold]
fn foreign_state() -> Error {
    Error::new(
        SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "state belongs to another aggregate",
    )
    .hint(
        "Give an aggregate the transition, combine and final functions of one aggregate of pg_bloom.",
    )
}
