//! How a state gets from the part of a plan that builds it to the part that combines states.
//!
//! ```text
//! one process                                     another one
//! Finalize Aggregate  ◀── takes the state over
//!   Gather                                        ◀── bytes
//!     Partial Aggregate  ──▶ the state's name     Partial Aggregate  ──▶ the state's bytes
//! ```
//!
//! PostgreSQL wants bytes in either case, and copies them on their way even within one process. The process that
//! gathers works as well, and does all the work where no planned worker starts: there the bytes are a name of the
//! state, which is taken over as it is, with its memory and its file, and costs what it costs in a serial plan.
//!
//! A name can be used once, in the process that gave it, for as long as the state lives. So it is given only where the
//! plan shows who takes it, and that nothing which keeps rows, like a sort, lies between: neither aggregate has groups.

use super::parameters::SharedParams;
use super::site::ElementState;
use super::state::{Head, Owner, State};
use crate::pg::call::Call;
use crate::pg::error::Result;
use crate::pg::nodes::nth;
use crate::pg::varlena::{PgBuffer, Value};
use pg_bloom_core::Partial;
use pgrx::PgMemoryContexts;
use pgrx::pg_sys::{self, AggSplit, AggStrategy, NodeTag, Plan};
use std::cell::{Cell, RefCell};

/// What a name begins with: no version of the stored form does.
const MARK: [u8; 8] = *b"state no";

thread_local! {
    /// The states that have a name, by its number.
    static NAMED: RefCell<Vec<(u64, *mut Head)>> = const { RefCell::new(Vec::new()) };
    /// Names given so far.
    static GIVEN: Cell<u64> = const { Cell::new(0) };
}

/// Lives in the memory of a state that has a name.
struct Name(u64);

impl Drop for Name {
    fn drop(&mut self) {
        take(self.0);
    }
}

/// The state of this name, which is invalid from then on. Memory may be freed at any time, so this must not fail.
fn take(number: u64) -> Option<*mut Head> {
    NAMED
        .try_with(|named| {
            let mut named = named.try_borrow_mut().ok()?;
            let place = named.iter().position(|&(given, _)| given == number)?;
            Some(named.swap_remove(place).1)
        })
        .ok()?
}

impl State {
    /// A state that was serialised: the one that `value` names, or one that is read in place: `value` must outlive it.
    ///
    /// # Errors
    /// 22P03 for bytes that are not a state; 55000 outside an aggregate.
    pub fn deserialised(call: &Call, shared: &mut SharedParams, value: Value<'_>) -> Result<State> {
        if let Some(state) = State::named(&value) {
            return Ok(state);
        }
        let partial = Partial::parse(&value)?;
        let mut state = State::new(call, shared, &partial.view().header)?;
        let head = state.head_mut();
        (head.dense, head.owner) = (value.into_datum().cast_mut_ptr(), Owner::Borrowed);
        Ok(state)
    }

    /// A name of this state instead of its bytes, where this process takes it over at once.
    pub fn name(&mut self, call: &Call) -> Result<Option<PgBuffer>> {
        // One state may be handed over for several aggregates, but only one of them can have it.
        if self.has_name() || self.head().owner == Owner::Borrowed || !is_taken_over(call) {
            return Ok(None);
        }
        let number = GIVEN.get();
        GIVEN.set(number + 1);
        PgMemoryContexts::For(call.require_aggregate()?).leak_and_drop_on_delete(Name(number));
        NAMED.with_borrow_mut(|named| named.push((number, self.head)));
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&MARK);
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        Ok(Some(PgBuffer::copy_of(&bytes)))
    }

    fn has_name(&self) -> bool {
        NAMED.with_borrow(|named| named.iter().any(|&(_, head)| std::ptr::eq(head, self.head)))
    }

    /// The state that these bytes name, if they name one. The caller owns it from then on.
    fn named(bytes: &Value<'_>) -> Option<State> {
        let (mark, number) = bytes.split_first_chunk::<8>()?;
        if *mark != MARK {
            return None;
        }
        let mut state = State { head: take(u64::from_le_bytes(number.try_into().ok()?))? };
        state.head_mut().owner = Owner::Handed;
        Some(state)
    }

    /// Frees the bits of a state that was serialised, if nothing is done with it afterwards but to ask for the same
    /// bytes again, for the same row.
    pub fn let_go(&mut self, call: &Call, bytes: pg_sys::Datum) {
        let is_over = partial_aggregate(call)
            // SAFETY: the state of an aggregate that is being executed. One that hashes its groups may show them again.
            .is_some_and(|aggregate| unsafe { (*aggregate).aggstrategy } == AggStrategy::AGG_PLAIN);
        if is_over
            && !self.has_name()
            && let Some(payload) = self.take_payload()
        {
            payload.free();
            // The head stays where it is: the executor knows its address.
            let head = self.head_mut();
            (head.dense, head.owner) = (bytes.cast_mut_ptr(), Owner::Borrowed);
        }
    }

    /// Frees the memory of all elements.
    pub fn free(&mut self) -> Result<()> {
        if let Some(payload) = self.take_payload() {
            payload.free();
        }
        let head = self.head_mut();
        head.spill = std::ptr::null_mut();
        (head.len, head.sorted, head.in_parts) = (0, 0, false);
        self.resize(size_of::<Head>())
    }
}

/// The aggregate whose states the executor hands over by this call, if it does.
fn partial_aggregate(call: &Call) -> Option<*mut pg_sys::AggState> {
    let aggregate = call.aggregate_state().filter(|_| call.is_prepared())?;
    // SAFETY: the state of an aggregate that is being executed.
    let split = unsafe { (*aggregate).aggsplit };
    (split == AggSplit::AGGSPLIT_INITIAL_SERIAL).then_some(aggregate)
}

/// Whether the state of this call is taken over by an aggregate of the same process before the next row is made: the
/// plan that this process executes contains it, with nothing in between that does more than pass rows on.
fn is_taken_over(call: &Call) -> bool {
    let Some(aggregate) = partial_aggregate(call) else { return false };
    // SAFETY: the state of an aggregate that is being executed, and the statement that it is a part of.
    unsafe {
        let statement = (*(*aggregate).ss.ps.state).es_plannedstmt;
        if (*aggregate).aggstrategy != AggStrategy::AGG_PLAIN || statement.is_null() {
            return false;
        }
        let partial = (*aggregate).ss.ps.plan;
        finalizes((*statement).planTree, partial) || any((*statement).subplans, &mut |plan| finalizes(plan, partial))
    }
}

/// Whether an aggregate in a plan takes what `partial` hands over.
///
/// # Safety
/// `plan` must be null or a valid plan.
unsafe fn finalizes(plan: *mut Plan, partial: *mut Plan) -> bool {
    // SAFETY: promised by the caller; each node is read as what its tag says.
    unsafe {
        if plan.is_null() {
            return false;
        }
        pg_sys::check_stack_depth();
        let mut below = |plan| finalizes(plan, partial);
        let is_found = match (*plan).type_ {
            NodeTag::T_Agg => {
                let aggregate: *mut pg_sys::Agg = plan.cast();
                (*aggregate).aggstrategy == AggStrategy::AGG_PLAIN
                    && (*aggregate).aggsplit == AggSplit::AGGSPLIT_FINAL_DESERIAL
                    && passes_on((*plan).lefttree, partial)
            }
            NodeTag::T_Append => any((*plan.cast::<pg_sys::Append>()).appendplans, &mut below),
            NodeTag::T_MergeAppend => any((*plan.cast::<pg_sys::MergeAppend>()).mergeplans, &mut below),
            NodeTag::T_CustomScan => any((*plan.cast::<pg_sys::CustomScan>()).custom_plans, &mut below),
            NodeTag::T_SubqueryScan => below((*plan.cast::<pg_sys::SubqueryScan>()).subplan),
            _ => false,
        };
        is_found || finalizes((*plan).lefttree, partial) || finalizes((*plan).righttree, partial)
    }
}

/// Whether a plan is `partial`, or passes its rows on as they come.
///
/// # Safety
/// As [`finalizes`].
unsafe fn passes_on(plan: *mut Plan, partial: *mut Plan) -> bool {
    // SAFETY: promised by the caller; each node is read as what its tag says.
    unsafe {
        if plan.is_null() || std::ptr::eq(plan, partial) {
            return !plan.is_null();
        }
        match (*plan).type_ {
            NodeTag::T_Gather => passes_on((*plan).lefttree, partial),
            NodeTag::T_Append => {
                any((*plan.cast::<pg_sys::Append>()).appendplans, &mut |plan| passes_on(plan, partial))
            }
            _ => false,
        }
    }
}

/// Whether one of a list of plans satisfies `is_such`.
///
/// # Safety
/// `plans` must be null or a valid list of plans.
unsafe fn any(plans: *mut pg_sys::List, is_such: &mut dyn FnMut(*mut Plan) -> bool) -> bool {
    // SAFETY: promised by the caller.
    unsafe { (0..).map_while(|i| nth(plans, i)).any(|plan| is_such(plan.cast())) }
}
