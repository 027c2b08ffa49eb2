//! Which aggregate a state is of.
//!
//! PostgreSQL hands states around as pointers of type `internal`, which say nothing about what they point to. A user
//! who creates aggregates with such a state may mix the functions of several. So every state begins with a byte that
//! says whose it is. The bytes are odd: what other aggregates keep begins with an aligned pointer, or with a number of
//! a few bits.

use crate::pg::call::Call;
use crate::pg::call::error::{Error, Result, SqlState, raise};

/// The first byte of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// Of `bloom_agg`.
    Bloom = 0xB1,
    /// Of `bloom_union_agg` and `bloom_intersection_agg`.
    Set = 0xB3,
    /// Of `counting_bloom_agg` and `counting_bloom_union_agg`.
    Counting = 0xB5,
}

/// Argument `i` of a support function, a state with this tag; `None` before the first row.
///
/// # Errors
/// 55000 for a state of another aggregate.
#[inline(always)]
pub fn state_argument<T>(call: &Call, i: usize, tag: Tag) -> Result<Option<*mut T>> {
    let Some(state) = call.internal::<T>(i) else { return Ok(None) };
    // SAFETY: the argument is the state of an aggregate, which is never empty.
    if unsafe { *state.cast::<u8>() } != tag as u8 {
        return Err(foreign_state());
    }
    Ok(Some(state))
}

#[cold]
fn foreign_state() -> Error {
    Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "state belongs to another aggregate")
        .hint("Give an aggregate the transition, combine and final functions of one aggregate of pg_bloom.")
}

/// Refuses to build on a state that has no elements of its own: it was handed over, or reads what another process
/// handed over.
#[cold]
pub fn nothing_of_its_own() -> ! {
    raise(
        Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "state is another's, to be read only")
            .hint("Give an aggregate the functions of one aggregate of pg_bloom, each in its place."),
    )
}
