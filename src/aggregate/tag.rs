//! States as PostgreSQL hands them around, and which aggregate one is of.
//!
//! They are pointers of type `internal`, which say nothing about what they point to. A user who
//! creates aggregates with such a state may mix the functions of several. So every state begins
//! with a byte that says whose it is. The bytes are odd: what other aggregates keep begins with an
//! aligned pointer, or with a number of a few bits.
//!
//! A state that another process serialised is no state here, but bytes: PostgreSQL passes what a
//! deserialisation function returns to one call of the combine function, as its second argument, at
//! once. Elsewhere it is refused.

use crate::pg::call::{Call, Error, Outcome, Result, SqlState};
use crate::pg::memory::{self, Context};
use crate::pg::value::varlena::Value;
use pgrx::pg_sys::{Datum, MAXIMUM_ALIGNOF, repalloc_huge, varlena};
use std::marker::PhantomData;
use std::ops::Deref;

/// What PostgreSQL's memory is aligned to.
pub const ALIGNMENT: usize = MAXIMUM_ALIGNOF as usize;

/// The first byte of a state.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub enum Tag {
    Bloom = 0xB1,
    Merge = 0xB3,
    Counting = 0xB5,
    /// Serialised by another process.
    Handed = 0xB7,
}

/// What an aggregate keeps for a group.
///
/// # Safety
/// It must be `repr(C)`, and begin with a [`Tag`] that is always `TAG`.
pub unsafe trait Head: Sized + 'static {
    const TAG: Tag;
    /// Bytes of a new state: with these more may follow the head.
    const BYTES: usize = size_of::<Self>();
}

#[repr(C)]
struct Handed {
    tag: Tag,
    /// Whose it is.
    of: Tag,
    /// Its bytes, which are there as long as this.
    value: *mut varlena,
}

// SAFETY: it begins with its tag.
unsafe impl Head for Handed {
    const TAG: Tag = Tag::Handed;
}

/// The state of one group in a call, in the memory of the aggregate. More may follow what it points
/// to.
pub struct Group<'c, H> {
    head: *mut H,
    call: PhantomData<&'c Call>,
}

impl<'c, H: Head> Group<'c, H> {
    /// Errors: 55000 outside an aggregate.
    pub fn new(call: &'c Call, head: H) -> Result<Group<'c, H>> {
        Ok(Group::new_in(call.require_aggregate()?, head))
    }

    fn new_in(context: Context<'c>, head: H) -> Group<'c, H> {
        const {
            assert!(
                !std::mem::needs_drop::<H>()
                    && align_of::<H>() <= ALIGNMENT
                    && H::BYTES >= size_of::<H>()
            )
        };
        let state: *mut H = memory::allocate(context, H::BYTES).cast();
        // SAFETY: the allocation has room for the head, which is written whole.
        unsafe { state.write(head) };
        Group { head: state, call: PhantomData }
    }

    /// # Safety
    /// What the head says of the memory that is there must stay true.
    #[inline(always)]
    pub unsafe fn head_mut(&mut self) -> &mut H {
        // SAFETY: as for reading it, and borrowed for writing.
        unsafe { &mut *self.head }
    }

    #[inline(always)]
    pub fn behind_head(&self) -> *mut u8 {
        self.head.wrapping_add(1).cast()
    }

    /// Moves the state to memory of so many bytes, in the same context.
    ///
    /// # Safety
    /// There must be room for all that the head says to be there.
    pub unsafe fn reallocate(&mut self, bytes: usize) {
        assert!(bytes >= size_of::<H>(), "a state has its head");
        // SAFETY: the state came from palloc, which keeps its memory context.
        self.head = unsafe { repalloc_huge(self.head.cast(), bytes).cast() };
    }

    /// Argument `i`, a state; `None` before the first row. Errors: 55000 for a state of another
    /// aggregate. Panics if it was asked for in this call before: there would be two of one state,
    /// of which one may move it.
    ///
    /// # Safety
    /// The function must declare the argument `internal`, as an aggregate's state.
    #[inline(always)]
    pub unsafe fn argument(call: &'c Call, i: usize) -> Result<Option<Group<'c, H>>> {
        call.use_internal(i);
        // SAFETY: promised by the caller; it is the only one in this call, as was just asked.
        match unsafe { Group::argument_at_once(call, i) } {
            None if call.datum(i).is_some() => Err(foreign_state()),
            state => Ok(state),
        }
    }

    /// Argument `i`, if it is a state of this aggregate.
    ///
    /// # Safety
    /// As [`Group::argument`]. The state may be used until it is moved, and by one of these at a
    /// time.
    #[inline(always)]
    pub unsafe fn argument_at_once(call: &'c Call, i: usize) -> Option<Group<'c, H>> {
        let head: *mut H = call.internal(i)?;
        // SAFETY: promised by the caller; a state is never empty, and its first byte says what it
        // is.
        (unsafe { *head.cast::<u8>() } == H::TAG as u8).then_some(Group { head, call: PhantomData })
    }

    #[inline(always)]
    pub fn into_datum(self) -> Datum {
        Datum::from(self.head)
    }
}

impl<H> Deref for Group<'_, H> {
    type Target = H;

    #[inline(always)]
    fn deref(&self) -> &H {
        // SAFETY: the state is there, as whoever made this promised, and borrowed.
        unsafe { &*self.head }
    }
}

/// The body of a deserialisation function, which leaves it to [`combine`] to read the bytes.
pub fn deserialise<H: Head>(call: &Call) -> Outcome {
    call.require_aggregate()?;
    let Some(value) = call.value(0) else {
        return Ok(None);
    };
    let handed = Handed { tag: Tag::Handed, of: H::TAG, value: value.pointer() };
    Ok(Some(Group::new_in(call.context(), handed).into_datum()))
}

/// The body of a combine function: the first state, or none, joined with the bytes of one that was
/// serialised.
pub fn combine<'c, H: Head>(
    call: &'c Call,
    join: impl FnOnce(Option<Group<'c, H>>, &'c [u8]) -> Result<Group<'c, H>>,
) -> Outcome {
    call.require_aggregate()?;
    // SAFETY: both arguments are states.
    let (first, second) =
        unsafe { (Group::argument(call, 0)?, Group::<Handed>::argument(call, 1)?) };
    let joined = match second {
        None => first,
        Some(handed) if handed.of != H::TAG => return Err(foreign_state()),
        // SAFETY: a value of variable length, which lives as long as what was handed over.
        Some(handed) => {
            Some(join(first, unsafe { Value::detoast(handed.value.into()) }.into_bytes())?)
        }
    };
    Ok(joined.map(Group::into_datum))
}

/// What `work` makes of the state that a function of an aggregate gets as its only one, to
/// serialise or to end it; `None` for no rows. It must not move the state: PostgreSQL keeps that
/// where it is, and may hand it out again. Errors: 55000 outside an aggregate, and for a state of
/// another one.
pub fn with_state<'c, H: Head, T>(
    call: &'c Call,
    work: impl FnOnce(&mut Group<'c, H>) -> Result<T>,
) -> Result<Option<T>> {
    call.require_aggregate()?;
    // SAFETY: argument 0 is the state.
    let Some(mut state) = (unsafe { Group::argument(call, 0)? }) else {
        return Ok(None);
    };
    let before = state.head;
    let result = work(&mut state)?;
    assert!(state.head == before, "a state that stays where it is");
    Ok(Some(result))
}

#[cold]
fn foreign_state() -> Error {
    Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "state belongs to another aggregate")
        .hint("Give an aggregate the transition, combine and final functions of one aggregate of pg_bloom.")
}
