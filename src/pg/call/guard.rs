//! The border to PostgreSQL: how its errors pass through Rust.
//!
//! An error of PostgreSQL is a long jump: over Rust's frames it would skip their destructors, and leak what they own.
//! Under [`guard`] it becomes a panic, which unwinds them, and which [`Entry::run`], in the function that PostgreSQL
//! called, turns into the same error again, with all that it has: its code, context, names of objects, texts in the
//! encoding of the database. The compiler refuses every other call of a function pointer (`deny(ffi_unwind_calls)`).
//!
//! The functions of [`pgrx::pg_sys`] have a guard of pgrx inside. It copies the error before it sets back what
//! PostgreSQL calls for each message: if there is no memory for the copy, PostgreSQL calls what is in frames that are
//! gone. So whatever runs code of users goes through this one.

#![allow(clippy::disallowed_methods, reason = "errors are caught and raised again here")]

use crate::pg::memory::reserve::Ready;
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
        Datum, ErrorData, ExecScanAccessMtd, ExecScanRecheckMtd, Expr, FmgrInfo, GenericCosts, HeapTuple, IndexInfo,
        IndexPath, List, Node, Oid, ParseState, PlannerInfo, QueryDesc, Relation, SPIPlanPtr, ScanState, TupleDesc,
        TupleTableSlot, VariableStatData, varlena,
    };
    use std::ffi::{c_char, c_int, c_long, c_void};

    /// An argument of an operator.
    type Arg = *mut Node;

    unsafe extern "C" {
        /// Reports an error, a warning or a message with what is in this, which it copies.
        pub fn ThrowErrorData(error: *mut ErrorData);
        /// Forgets the error being handled.
        pub fn FlushErrorState();
        /// Raises a copied error.
        pub fn ReThrowError(error: *mut ErrorData) -> !;
        /// Calls a function with two arguments, neither of which, like the result, is NULL.
        pub fn FunctionCall2Coll(function: *mut FmgrInfo, collation: Oid, a: Datum, b: Datum) -> Datum;
        /// The next row of a scan, with its conditions and results evaluated.
        pub fn ExecScan(
            scan: *mut ScanState,
            next: ExecScanAccessMtd,
            recheck: ExecScanRecheckMtd,
        ) -> *mut TupleTableSlot;
        /// The values of a row's columns, and which of them are NULL.
        pub fn heap_deform_tuple(row: HeapTuple, descriptor: TupleDesc, values: *mut Datum, nulls: *mut bool);
        /// Executes a kept plan.
        pub fn SPI_execute_plan(
            plan: SPIPlanPtr,
            values: *mut Datum,
            nulls: *const c_char,
            is_read_only: bool,
            most: c_long,
        ) -> c_int;
        /// Prepares and executes a statement.
        pub fn SPI_execute_with_args(
            sql: *const c_char,
            count: c_int,
            types: *mut Oid,
            values: *mut Datum,
            nulls: *const c_char,
            is_read_only: bool,
            most: c_long,
        ) -> c_int;
        /// Calls the output function of a type.
        pub fn OidOutputFunctionCall(function: Oid, value: Datum) -> *mut c_char;
        /// Resolves an operator as the parser does.
        pub fn make_op(state: *mut ParseState, name: *mut List, a: Arg, b: Arg, set: Arg, at: c_int) -> *mut Expr;
        /// The same for an operator with ANY or ALL.
        pub fn make_scalar_array_op(
            p: *mut ParseState,
            n: *mut List,
            any: bool,
            a: Arg,
            b: Arg,
            at: c_int,
        ) -> *mut Expr;
        /// Makes a condition of an expression as the parser does, which fails for another type than boolean.
        pub fn coerce_to_boolean(state: *mut ParseState, node: *mut Node, construct: *const c_char) -> *mut Node;
        /// Resolves the collations of an expression as the parser does.
        pub fn assign_expr_collations(state: *mut ParseState, expression: *mut Node);
        /// Computes what is constant in an expression.
        pub fn eval_const_expressions(root: *mut PlannerInfo, expression: *mut Node) -> *mut Node;
        /// The same as far as it can be known while a query is planned.
        pub fn estimate_expression_value(root: *mut PlannerInfo, expression: *mut Node) -> *mut Node;
        /// The column of a clause with its statistics, and the value that it is compared with, as far as it is known.
        pub fn get_restriction_variable(
            root: *mut PlannerInfo,
            arguments: *mut List,
            relation: c_int,
            column: *mut VariableStatData,
            value: *mut *mut Node,
            column_is_left: *mut bool,
        ) -> bool;
        /// What the scan of an index costs as far as all access methods have it in common.
        pub fn genericcostestimate(root: *mut PlannerInfo, path: *mut IndexPath, loops: f64, costs: *mut GenericCosts);
        /// What rows are indexed, and what of them.
        pub fn BuildIndexInfo(index: Relation) -> *mut IndexInfo;
        /// Prepares the execution of a plan.
        pub fn ExecutorStart(query: *mut QueryDesc, flags: c_int);
        /// Ends it, after triggers.
        pub fn ExecutorFinish(query: *mut QueryDesc);
        /// Frees what it took.
        pub fn ExecutorEnd(query: *mut QueryDesc);
        /// Compiles a regular expression, or finds it among those that were, for which it must be whole and
        /// uncompressed.
        pub fn RE_compile_and_cache(expression: *mut varlena, flags: c_int, collation: Oid) -> *mut c_void;
        /// How many arcs a state of a compiled expression has. What it calls itself asks how deep the stack is.
        pub fn pg_reg_getnumoutarcs(regex: *const c_void, state: c_int) -> c_int;
        /// The arcs of a state, likewise: two numbers each.
        pub fn pg_reg_getoutarcs(regex: *const c_void, state: c_int, arcs: *mut [c_int; 2], room: c_int);
        /// Prepares a statement.
        pub fn SPI_prepare_cursor(sql: *const c_char, count: c_int, types: *mut Oid, options: c_int) -> SPIPlanPtr;
    }
}

/// An error of PostgreSQL on its way through Rust, and the call in whose memory it is.
struct Passing(*mut pg_sys::ErrorData, u64);

// SAFETY: only `Entry::run` looks into it, in the session's thread.
unsafe impl Send for Passing {}

/// Runs code of PostgreSQL, and unwinds with its error.
///
/// # Safety
/// `work` must own nothing when it calls PostgreSQL, since the jump goes over it, and must not panic.
///
/// # Panics
/// In another thread than the session's.
#[inline(always)]
pub unsafe fn guard<T>(work: impl FnOnce() -> T) -> T {
    require_session();
    // SAFETY: this is PostgreSQL's own protocol (PG_TRY): what an error changes is set back. The copy of the error is
    // in the caller's memory, which nobody frees before the error is raised again.
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
        // There may be no memory for the copy: pgrx's guard is around it, and that error unwinds instead.
        let error = pg_sys::CopyErrorData();
        raw::FlushErrorState();
        note_panic();
        resume_unwind(Box::new(Passing(error, NOW.load(Ordering::Relaxed))))
    }
}

/// The number of the call that is under way, of all in this session; those of calls that it makes are larger. 0 for
/// none.
static NOW: AtomicU64 = AtomicU64::new(0);
/// Where PostgreSQL's errors went when it began.
static EXCEPTIONS: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// How many [`Held`] the call has made that are still there, and whether there was a panic in it. One number, so that a
/// call looks at both at once.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// There was one. Nobody counts so far.
const PANIC: usize = 1 << (usize::BITS - 1);
/// The last number given.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The number of the call that is under way; 0 for none.
pub(in crate::pg) fn current_call() -> u64 {
    if is_process_ending() { 0 } else { NOW.load(Ordering::Relaxed) }
}

/// What is in the memory of the call that is under way, of no other, and must be gone when that ends: if safe code
/// leaks or keeps it, references to it may be left, and the process is aborted.
pub(in crate::pg) struct Held {
    /// The call.
    by: u64,
}

impl Held {
    /// Panics outside of calls.
    #[inline(always)]
    pub fn new() -> Held {
        let by = NOW.load(Ordering::Relaxed);
        assert!(by != 0, "memory of a call");
        HELD.store(HELD.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Held { by }
    }

    /// Panics in another call.
    #[inline(always)]
    pub fn check(&self) {
        assert!(self.by == NOW.load(Ordering::Relaxed), "memory of another call");
    }
}

impl Drop for Held {
    #[inline(always)]
    fn drop(&mut self) {
        if self.by == NOW.load(Ordering::Relaxed) {
            HELD.store(HELD.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }
}

/// Notes a panic in the call that is under way: of Rust's, or an error of PostgreSQL on its way.
#[cold]
pub(super) fn note_panic() {
    if IS_SESSION.get() && NOW.load(Ordering::Relaxed) != 0 {
        HELD.store(HELD.load(Ordering::Relaxed) | PANIC, Ordering::Relaxed);
    }
}

/// Whether a panic is under way, so that what PostgreSQL gave is left to it to end. The call then fails: nobody but
/// whoever asks this hears of a panic that safe code began by `resume_unwind`, and may have caught.
pub(in crate::pg) fn is_unwinding() -> bool {
    let is_unwinding = std::thread::panicking();
    if is_unwinding {
        note_panic();
    }
    is_unwinding
}

/// What is to be undone when a closure has returned, which then forgets this. If a panic leaves the closure, it isn't
/// undone, and the call fails.
pub(in crate::pg) struct ToUndo;

impl Drop for ToUndo {
    fn drop(&mut self) {
        note_panic();
    }
}

/// Refuses the end of a call that kept its memory, or one that goes on as if there had been no error: PostgreSQL has
/// not ended what the error interrupted, as it does after one.
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
    /// Whether this is the session's thread.
    static IS_SESSION: Cell<bool> = const { Cell::new(false) };
}

/// Panics in another thread than the session's. For what reads a variable of PostgreSQL; what calls a function of it
/// does so by [`guard`].
#[inline(always)]
pub(in crate::pg) fn require_session() {
    assert!(IS_SESSION.get(), "PostgreSQL has one thread");
}

/// Whether the process ends. A fatal error unwinds nothing, so a frame that it left may have borrowed anything, and be
/// in the middle of a change: what is not its own is not dropped any more. PostgreSQL says so before it calls what is
/// to be done at the end. Of that our own part is not the first where a session has temporary tables, for which the
/// transaction is aborted.
pub(in crate::pg) fn is_process_ending() -> bool {
    // SAFETY: reads a variable of the process.
    unsafe { pg_sys::proc_exit_inprogress }
}

/// Says which thread is the session's, and has no call be under way any more once the process ends, when the memory of
/// those that were is gone. The first entry is `_PG_init`, maybe in the postmaster, whose children forget what is to be
/// done at the end; the second is their own.
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
    /// For the function that makes it.
    ///
    /// # Safety
    /// PostgreSQL must have called this function, which has nothing to drop and runs the body itself: PostgreSQL's
    /// errors jump over it. The first time is in `_PG_init`.
    #[inline(always)]
    pub unsafe fn new() -> Entry {
        Entry(())
    }

    /// Runs the body: with a reserve of memory for errors, and with PostgreSQL's errors raised again at the end. It
    /// comes first in the function, below pgrx's guard, which is for Rust's errors.
    #[inline(always)]
    pub fn run<T>(self, body: impl FnOnce() -> T) -> T {
        let outer = NOW.load(Ordering::Relaxed);
        // SAFETY: reads a variable of the session.
        let exceptions = unsafe { pg_sys::PG_exception_stack }.cast();
        let outer_exceptions = EXCEPTIONS.load(Ordering::Relaxed);
        assert!(outer == 0 || exceptions != outer_exceptions, "PostgreSQL calls this");
        let mut ready = Ready::new();
        // SAFETY: two variables of this frame.
        let entered = unsafe { ready.enter() };
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
        let result = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: as it was when PostgreSQL called this. Where pgrx's guard has no memory to copy an error, it unwinds
        // before it sets that back.
        unsafe { pg_sys::PG_exception_stack = exceptions.cast() };
        let held = HELD.load(Ordering::Relaxed);
        HELD.store(outer_held, Ordering::Relaxed);
        NOW.store(outer, Ordering::Relaxed);
        EXCEPTIONS.store(outer_exceptions, Ordering::Relaxed);
        drop(entered);
        if held != 0 {
            refuse_end(held, result.is_err());
        }
        result.unwrap_or_else(|payload| match payload.downcast::<Passing>() {
            Ok(passing) if passing.1 == own => {
                let error = passing.0;
                drop(passing);
                // SAFETY: copied by `guard` into memory of this call. The frames up to PostgreSQL's own have nothing to
                // drop.
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
    struct Back(u64);
    impl Drop for Back {
        fn drop(&mut self) {
            NOW.store(self.0, Ordering::Relaxed);
        }
    }
    let _back = Back(NOW.swap(0, Ordering::Relaxed));
    work()
}

/// Variables of the session, as in `thread_local!`, which are not dropped when the process ends.
macro_rules! session_locals {
    () => {};
    ($(#[$doc:meta])* $vis:vis static $name:ident: $of:ty = const { $init:expr }; $($rest:tt)*) => {
        thread_local! {
            $(#[$doc])*
            $vis static $name: ::std::mem::ManuallyDrop<$of> = const { ::std::mem::ManuallyDrop::new($init) };
        }
        session_locals! { $($rest)* }
    };
    ($(#[$doc:meta])* $vis:vis static $name:ident: $of:ty = $init:expr; $($rest:tt)*) => {
        thread_local! {
            $(#[$doc])*
            $vis static $name: ::std::mem::ManuallyDrop<$of> = ::std::mem::ManuallyDrop::new($init);
        }
        session_locals! { $($rest)* }
    };
}

/// Calls a function pointer of PostgreSQL under the guard. The caller promises, as for any call of a pointer, that the
/// arguments are what the function expects.
///
/// `guarded!({ … })` runs a block under one guard, for calls that are so many and so short that a guard for each would
/// take a good part of their time. The block must own nothing, since the jump goes over it, and must not panic: so it
/// uses no function of [`pgrx::pg_sys`], which turn errors into panics.
macro_rules! guarded {
    ({ $($body:tt)* }) => {{
        #[allow(ffi_unwind_calls, reason = "under the guard, which catches the jump")]
        $crate::pg::call::guard::guard(|| { $($body)* })
    }};
    ($function:ident($($argument:expr),* $(,)?)) => {{
        #[allow(ffi_unwind_calls, reason = "under the guard, which catches the jump")]
        $crate::pg::call::guard::guard(|| $function($($argument),*))
    }};
}
