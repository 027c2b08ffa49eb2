//! The border to PostgreSQL: how its errors pass through Rust.
//!
//! An error of PostgreSQL is a long jump: over Rust's frames it would skip their destructors, and
//! leak what they own. Under [`guard`] it becomes a panic, which unwinds them, and which
//! [`Entry::run`], in the function that PostgreSQL called, turns into the same error again, with
//! all that it has: its code, context, names of objects, texts in the encoding of the database. The
//! compiler refuses every other call of a function pointer (`deny(ffi_unwind_calls)`).
//!
//! The functions of [`pgrx::pg_sys`] have a guard of pgrx inside. It copies the error before it
//! sets back what PostgreSQL calls for each message: if there is no memory for the copy, PostgreSQL
//! calls what is in frames that are gone. So whatever runs code of users goes through this one.

#![allow(
    clippy::disallowed_methods,
    reason = "errors are caught and raised again here"
)]

use crate::pg::memory::reserve;
use cee_scape::call_with_sigsetjmp;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_void;
use std::io::Write;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// PostgreSQL's functions without pgrx's guard. Declared not to unwind: what they raise jumps.
pub mod raw {
    use pgrx::pg_sys::{
        Datum, ErrorData, ExecScanAccessMtd, ExecScanRecheckMtd, Expr, FmgrInfo, GenericCosts,
        HeapTuple, IndexInfo, IndexPath, List, Node, Oid, ParseState, PlannerInfo, QueryDesc,
        Relation, SPIPlanPtr, ScanState, TupleDesc, TupleTableSlot as Slot, VariableStatData,
        varlena,
    };
    use std::ffi::{c_char, c_int, c_long, c_void};

    type Arg = *mut Node;

    unsafe extern "C" {
        pub fn ThrowErrorData(error: *mut ErrorData);
        pub fn FlushErrorState();
        pub fn ReThrowError(error: *mut ErrorData) -> !;
        /// Neither an argument nor the result is NULL.
        pub fn FunctionCall2Coll(
            function: *mut FmgrInfo,
            collation: Oid,
            a: Datum,
            b: Datum,
        ) -> Datum;
        pub fn ExecScan(
            scan: *mut ScanState,
            next: ExecScanAccessMtd,
            recheck: ExecScanRecheckMtd,
        ) -> *mut Slot;
        pub fn heap_deform_tuple(
            row: HeapTuple,
            descriptor: TupleDesc,
            values: *mut Datum,
            nulls: *mut bool,
        );
        pub fn SPI_prepare_cursor(
            sql: *const c_char,
            count: c_int,
            types: *mut Oid,
            options: c_int,
        ) -> SPIPlanPtr;
        pub fn SPI_execute_plan(
            plan: SPIPlanPtr,
            values: *mut Datum,
            nulls: *const c_char,
            is_read_only: bool,
            most: c_long,
        ) -> c_int;
        pub fn OidInputFunctionCall(
            function: Oid,
            text: *mut c_char,
            parameter: Oid,
            modifier: c_int,
        ) -> Datum;
        pub fn make_op(
            state: *mut ParseState,
            name: *mut List,
            a: Arg,
            b: Arg,
            set: Arg,
            at: c_int,
        ) -> *mut Expr;
        pub fn make_scalar_array_op(
            state: *mut ParseState,
            name: *mut List,
            is_any: bool,
            a: Arg,
            b: Arg,
            at: c_int,
        ) -> *mut Expr;
        /// Fails for another type than boolean.
        pub fn coerce_to_boolean(
            state: *mut ParseState,
            node: *mut Node,
            construct: *const c_char,
        ) -> *mut Node;
        pub fn assign_expr_collations(state: *mut ParseState, expression: *mut Node);
        pub fn eval_const_expressions(root: *mut PlannerInfo, expression: *mut Node) -> *mut Node;
        pub fn estimate_expression_value(
            root: *mut PlannerInfo,
            expression: *mut Node,
        ) -> *mut Node;
        pub fn get_restriction_variable(
            root: *mut PlannerInfo,
            arguments: *mut List,
            relation: c_int,
            column: *mut VariableStatData,
            value: *mut *mut Node,
            column_is_left: *mut bool,
        ) -> bool;
        pub fn genericcostestimate(
            root: *mut PlannerInfo,
            path: *mut IndexPath,
            loops: f64,
            costs: *mut GenericCosts,
        );
        pub fn BuildIndexInfo(index: Relation) -> *mut IndexInfo;
        pub fn ExecutorStart(query: *mut QueryDesc, flags: c_int);
        pub fn ExecutorFinish(query: *mut QueryDesc);
        pub fn ExecutorEnd(query: *mut QueryDesc);
        /// The expression must be whole and uncompressed. What is compiled stays in PostgreSQL's
        /// cache for a while.
        pub fn RE_compile_and_cache(
            expression: *mut varlena,
            flags: c_int,
            collation: Oid,
        ) -> *mut c_void;
        // What these call themselves asks how deep the stack is.
        pub fn pg_reg_getnumoutarcs(regex: *const c_void, state: c_int) -> c_int;
        pub fn pg_reg_getoutarcs(
            regex: *const c_void,
            state: c_int,
            arcs: *mut [c_int; 2],
            room: c_int,
        );
    }
}

/// An error of PostgreSQL on its way through Rust, and the call in whose memory it is.
struct Passing(*mut pg_sys::ErrorData, u64);

// SAFETY: only `Entry::run` looks into it, in the session's thread.
unsafe impl Send for Passing {}

/// Runs code of PostgreSQL, and unwinds with its error. Panics in another thread than the
/// session's.
///
/// # Safety
/// `work` must own nothing when it calls PostgreSQL, since the jump goes over it, and must not
/// panic.
#[inline(always)]
pub unsafe fn guard<T>(work: impl FnOnce() -> T) -> T {
    require_session();
    // SAFETY: this is PostgreSQL's own protocol (PG_TRY): what an error changes is set back. The
    // copy of the error is in the caller's memory, which nobody frees before the error is raised
    // again.
    unsafe {
        let (memory, exceptions) = (pg_sys::CurrentMemoryContext, pg_sys::PG_exception_stack);
        let contexts = pg_sys::error_context_stack;
        let mut result = MaybeUninit::uninit();
        let jumped = call_with_sigsetjmp(false, |buffer| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            result.write(work());
            0
        });
        pg_sys::PG_exception_stack = exceptions;
        pg_sys::error_context_stack = contexts;
        if jumped == 0 {
            return result.assume_init();
        }
        pg_sys::CurrentMemoryContext = memory;
        // There may be no memory for the copy: pgrx's guard is around it, and that error unwinds
        // instead.
        let error = pg_sys::CopyErrorData();
        raw::FlushErrorState();
        note_panic();
        resume_unwind(Box::new(Passing(error, NOW.load(Ordering::Relaxed))))
    }
}

/// The number of the call that is under way, 0 for none; those of calls that it makes are larger.
static NOW: AtomicU64 = AtomicU64::new(0);
/// Where PostgreSQL's errors went when it began.
static EXCEPTIONS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// How many [`Held`] the call has that are still there, and [`PANIC`] if there was one: a call
/// looks at both at once.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Nobody counts so far.
const PANIC: usize = 1 << (usize::BITS - 1);
/// The last number given.
static LAST: AtomicU64 = AtomicU64::new(0);

pub(in crate::pg) fn current_call() -> u64 {
    if is_process_ending() { 0 } else { NOW.load(Ordering::Relaxed) }
}

/// What is in the memory of the call that is under way: if safe code keeps it until the end, the
/// process is aborted.
pub(in crate::pg) struct Held(u64);

impl Held {
    /// Panics outside of calls.
    #[inline(always)]
    pub fn new() -> Held {
        let by = NOW.load(Ordering::Relaxed);
        assert!(by != 0, "memory of a call");
        HELD.store(HELD.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Held(by)
    }

    /// Panics in another call.
    #[inline(always)]
    pub fn check(&self) {
        assert!(self.0 == NOW.load(Ordering::Relaxed), "memory of another call");
    }
}

impl Drop for Held {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0 == NOW.load(Ordering::Relaxed) {
            HELD.store(HELD.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }
}

/// Notes a panic of Rust's or an error of PostgreSQL in the call that is under way.
#[cold]
pub(super) fn note_panic() {
    if IS_SESSION.get() && NOW.load(Ordering::Relaxed) != 0 {
        HELD.store(HELD.load(Ordering::Relaxed) | PANIC, Ordering::Relaxed);
    }
}

/// Whether a panic is under way, so that PostgreSQL itself must release what it gave. The call then
/// fails: a panic that safe code began by `resume_unwind`, and may have caught, is seen nowhere but
/// here.
pub(in crate::pg) fn is_unwinding() -> bool {
    let is_unwinding = std::thread::panicking();
    if is_unwinding {
        note_panic();
    }
    is_unwinding
}

/// Runs `work`, and then `end`, also if a panic leaves `work`: the call then fails.
#[inline(always)]
pub(in crate::pg) fn finally<T>(work: impl FnOnce() -> T, end: impl FnOnce()) -> T {
    let result = catch_unwind(AssertUnwindSafe(work));
    if result.is_err() {
        note_panic();
    }
    end();
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs `work`, and then `end`. If a panic leaves `work`, PostgreSQL ends what was begun, and the
/// call fails.
#[inline(always)]
pub(in crate::pg) fn with_end<T, U>(work: impl FnOnce() -> T, end: impl FnOnce() -> U) -> T {
    let result = finally(work, || ());
    end();
    result
}

/// Refuses the end of a call that kept its memory, or goes on after an error, of which PostgreSQL
/// has ended nothing.
#[cold]
fn refuse_end(held: usize, is_panicking: bool) {
    if !held.is_multiple_of(PANIC) {
        abort("memory of a call was kept");
    }
    if !is_panicking {
        // Not a panic of the call around this one.
        resume_unwind(Box::new("an error was caught and not raised again"));
    }
}

/// Ends the process, since references to what is gone may be left.
#[cold]
pub(in crate::pg) fn abort(why: &str) -> ! {
    // Where the log can't be written there is nobody to tell.
    writeln!(std::io::stderr(), "pg_bloom: {why}").ok();
    std::process::abort()
}

thread_local! {
    static IS_SESSION: Cell<bool> = const { Cell::new(false) };
}

/// Panics in another thread than the session's. For what reads a variable of PostgreSQL; calls are
/// in [`guard`].
#[inline(always)]
pub(in crate::pg) fn require_session() {
    assert!(IS_SESSION.get(), "PostgreSQL has one thread");
}

/// Whether the process ends: then nothing is dropped any more, as [`crate::pg`] says. PostgreSQL
/// sets this before it runs its callbacks for the end. Ours is not the first one if the session has
/// temporary tables.
pub(in crate::pg) fn is_process_ending() -> bool {
    // SAFETY: reads a variable of the process.
    unsafe { pg_sys::proc_exit_inprogress }
}

/// Says which thread is the session's, and has no call be under way once the process ends, when
/// their memory is gone. The first entry is `_PG_init`, maybe in the postmaster, whose children
/// forget the callback; the second is their own.
#[cold]
fn begin_process() {
    IS_SESSION.set(true);
    // SAFETY: the callback needs nothing.
    unsafe { pg_sys::before_shmem_exit(Some(process_ends), pg_sys::Datum::null()) };
}

unsafe extern "C-unwind" fn process_ends(_code: i32, _: pg_sys::Datum) {
    NOW.store(0, Ordering::Relaxed);
}

/// The right to run the body of a function that PostgreSQL calls.
pub struct Entry(());

impl Entry {
    /// # Safety
    /// PostgreSQL must have called this function, which has nothing to drop and runs the body
    /// itself: PostgreSQL's errors jump over it. The first time is in `_PG_init`.
    #[inline(always)]
    pub unsafe fn new() -> Entry {
        Entry(())
    }

    /// Runs the body: with a reserve of memory for errors, and with PostgreSQL's errors raised
    /// again at the end. It comes first in the function, below pgrx's guard, which is for Rust's
    /// errors.
    #[inline(always)]
    pub fn run<T>(self, body: impl FnOnce() -> T) -> T {
        let outer = NOW.load(Ordering::Relaxed);
        // SAFETY: reads a variable of the session.
        let exceptions = unsafe { pg_sys::PG_exception_stack }.cast();
        let outer_exceptions = EXCEPTIONS.load(Ordering::Relaxed);
        assert!(outer == 0 || exceptions != outer_exceptions, "PostgreSQL calls this");
        reserve::require();
        // A process of PostgreSQL has one thread.
        EXCEPTIONS.store(exceptions, Ordering::Relaxed);
        let own = LAST.load(Ordering::Relaxed) + 1;
        if own <= 2 {
            begin_process();
        }
        LAST.store(own, Ordering::Relaxed);
        NOW.store(own, Ordering::Relaxed);
        let outer_held = HELD.load(Ordering::Relaxed);
        HELD.store(0, Ordering::Relaxed);
        // SAFETY: PostgreSQL's callbacks are linked through frames of the stack. This one takes
        // itself out at the end, whatever the body does. Without memory to copy an error, pgrx's
        // guard unwinds and leaves both variables set.
        let result = unsafe {
            let (previous, arg) = (pg_sys::error_context_stack, null_mut());
            let mut callback =
                pg_sys::ErrorContextCallback { previous, callback: Some(reserve::give_back), arg };
            pg_sys::error_context_stack = &raw mut callback;
            let result = catch_unwind(AssertUnwindSafe(body));
            pg_sys::PG_exception_stack = exceptions.cast();
            pg_sys::error_context_stack = previous;
            result
        };
        let held = HELD.load(Ordering::Relaxed);
        HELD.store(outer_held, Ordering::Relaxed);
        NOW.store(outer, Ordering::Relaxed);
        EXCEPTIONS.store(outer_exceptions, Ordering::Relaxed);
        if held != 0 {
            refuse_end(held, result.is_err());
        }
        result.unwrap_or_else(|payload| match payload.downcast::<Passing>() {
            Ok(passing) if passing.1 == own => {
                let error = passing.0;
                drop(passing);
                // SAFETY: copied by `guard` into memory of this call. Frames up to PostgreSQL's
                // have nothing to drop.
                unsafe { raw::ReThrowError(error) }
            }
            // Somebody kept the error of another call, whose memory is gone.
            Ok(_) => panic!("an error of another call"),
            Err(payload) => resume_unwind(payload),
        })
    }
}

/// Runs what PostgreSQL calls whenever it likes, as no part of the call that may be under way.
pub(in crate::pg) fn outside<T>(work: impl FnOnce() -> T) -> T {
    let now = NOW.swap(0, Ordering::Relaxed);
    finally(work, || NOW.store(now, Ordering::Relaxed))
}

/// Variables of the session, as in `thread_local!`, which are not dropped when the process ends.
macro_rules! session_locals {
    ($($(#[$doc:meta])* static $name:ident: $of:ty = const { $init:expr };)*) => {
        thread_local! {
            $(
                $(#[$doc])*
                static $name: ::std::mem::ManuallyDrop<$of> = const { ::std::mem::ManuallyDrop::new($init) };
            )*
        }
    };
}

/// Calls a function pointer of PostgreSQL under the guard. The caller promises that the arguments
/// are what it expects.
///
/// `guarded!({ … })` runs a block under one guard, for calls that are so many and so short that a
/// guard for each would take a good part of their time. The block must own nothing, since the jump
/// goes over it, and must not panic: so it uses no function of [`pgrx::pg_sys`], which turn errors
/// into panics.
macro_rules! guarded {
    ($($body:tt)*) => {{
        #[allow(ffi_unwind_calls, reason = "under the guard, which catches the jump")]
        $crate::pg::call::guard::guard(|| $($body)*)
    }};
}
