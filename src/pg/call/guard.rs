//! The border to PostgreSQL: how its errors pass through Rust.
//!
//! An error of PostgreSQL is a long jump. Over Rust's stack frames it would skip their destructors,
//! and leak what they own. So it becomes a panic, which unwinds the frames, and then the same error
//! again, with all that it has: its code, context, names of objects, texts in the encoding of the
//! database.
//!
//! ```text
//! PostgreSQL ──▶ Entry::run ──▶ our function ──▶ guard ──▶ PostgreSQL
//!            ◀── jump                        ◀── panic     ◀── jump
//! ```
//!
//! The compiler refuses every other call of a function pointer (`deny(ffi_unwind_calls)`).
//!
//! The functions of [`pgrx::pg_sys`] have a guard of pgrx inside. It copies the error before it
//! sets back the list of callbacks that PostgreSQL calls for each message. If there is no memory
//! for the copy, PostgreSQL calls callbacks in stack frames that are gone. So all functions that
//! may run code of users are declared in [`raw`], and called by [`guard`].

#![allow(clippy::disallowed_methods, reason = "errors are caught and raised again here")]

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
        Datum, ErrorData, Expr, FmgrInfo, GenericCosts, HeapTuple, IndexInfo, IndexPath, List,
        Node, Oid, ParseState, PlanState, PlannerInfo, QueryDesc, Relation, SPIPlanPtr, TupleDesc,
        VariableStatData, varlena,
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
        pub fn standard_ExecutorStart(query: *mut QueryDesc, flags: c_int);
        /// Calls `visit` with each node right below this one, until it returns true.
        #[cfg_attr(not(feature = "before_pg16"), link_name = "planstate_tree_walker_impl")]
        pub fn planstate_tree_walker(
            node: *mut PlanState,
            visit: unsafe extern "C" fn(*mut PlanState, *mut c_void) -> bool,
            context: *mut c_void,
        ) -> bool;
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

/// An error of PostgreSQL on its way through Rust: the payload of a panic.
struct PassingError {
    /// The copy of the error that [`guard`] has made.
    copy: *mut pg_sys::ErrorData,
    /// The number of the call in whose memory the copy is.
    call: u64,
}

// SAFETY: only `Entry::run` looks into it, in the session's thread.
unsafe impl Send for PassingError {}

/// Runs code of PostgreSQL. If that raises an error, the error unwinds from here as a panic.
///
/// Panics in another thread than the session's.
///
/// # Safety
/// `call_postgres` must own nothing that needs to be dropped while it calls PostgreSQL, since an
/// error jumps over it. It must not panic.
#[inline(always)]
pub unsafe fn guard<T>(call_postgres: impl FnOnce() -> T) -> T {
    require_session();
    // SAFETY: this follows PostgreSQL's own protocol, PG_TRY: all variables that an error changes
    // are set back. The copy of the error is in the memory of the caller, which isn't freed before
    // the error is raised again.
    unsafe {
        let memory_before = pg_sys::CurrentMemoryContext;
        let exception_stack_before = pg_sys::PG_exception_stack;
        let context_stack_before = pg_sys::error_context_stack;

        let mut result = MaybeUninit::uninit();
        let jumped = call_with_sigsetjmp(false, |buffer| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            result.write(call_postgres());
            0
        });
        pg_sys::PG_exception_stack = exception_stack_before;
        pg_sys::error_context_stack = context_stack_before;
        if jumped == 0 {
            return result.assume_init();
        }

        pg_sys::CurrentMemoryContext = memory_before;
        // If there is no memory for the copy, pgrx's guard around this function unwinds with that
        // error instead.
        let copy = pg_sys::CopyErrorData();
        raw::FlushErrorState();
        note_panic();
        let call = CURRENT_CALL.load(Ordering::Relaxed);
        resume_unwind(Box::new(PassingError { copy, call }))
    }
}

// A process of PostgreSQL has one thread. The variables below are atomic only because Rust asks for
// that in statics.

/// The number of the call that is under way, 0 for none. A call that is made during another one has
/// a larger number.
static CURRENT_CALL: AtomicU64 = AtomicU64::new(0);
/// The last number that a call was given.
static LAST_CALL: AtomicU64 = AtomicU64::new(0);
/// Where PostgreSQL's errors went (`PG_exception_stack`) when the call that is under way began.
static EXCEPTION_STACK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// How many [`MemoryOfCall`] exist in the call that is under way, and the bit [`PANICKED`]. They
/// are one number, so that the end of a call checks both at once.
static CALL_STATE: AtomicUsize = AtomicUsize::new(CLEAN_STATE);
/// The value of [`CALL_STATE`] if there is no [`MemoryOfCall`], and nothing has panicked.
const CLEAN_STATE: usize = 0;
/// The bit of [`CALL_STATE`] that is set after a panic or an error of PostgreSQL: the highest one,
/// which no count reaches.
const PANICKED: usize = 1 << (usize::BITS - 1);

/// Returns the number of the call that is under way; 0 for none, and while the process ends.
pub(in crate::pg) fn current_call() -> u64 {
    if is_process_ending() {
        return 0;
    }
    CURRENT_CALL.load(Ordering::Relaxed)
}

/// Accompanies something that lives in the memory of the call under way. If it still exists when
/// the call ends, the process is aborted, since there may be references to memory that is gone.
pub(in crate::pg) struct MemoryOfCall {
    call: u64,
}

impl MemoryOfCall {
    /// Panics outside of calls.
    #[inline(always)]
    pub fn new() -> MemoryOfCall {
        let call = CURRENT_CALL.load(Ordering::Relaxed);
        assert!(call != 0, "memory of a call is allocated outside of calls");
        let state = CALL_STATE.load(Ordering::Relaxed);
        CALL_STATE.store(state + 1, Ordering::Relaxed);
        MemoryOfCall { call }
    }

    /// Panics in another call than that whose memory it is.
    #[inline(always)]
    pub fn check(&self) {
        assert!(self.call == CURRENT_CALL.load(Ordering::Relaxed), "memory of another call");
    }
}

impl Drop for MemoryOfCall {
    #[inline(always)]
    fn drop(&mut self) {
        if self.call == CURRENT_CALL.load(Ordering::Relaxed) {
            let state = CALL_STATE.load(Ordering::Relaxed);
            CALL_STATE.store(state - 1, Ordering::Relaxed);
        }
    }
}

/// Notes that the call under way has met a panic or an error of PostgreSQL, with which the call
/// must then end.
#[cold]
pub(super) fn note_panic() {
    if IS_SESSION.get() && CURRENT_CALL.load(Ordering::Relaxed) != 0 {
        let state = CALL_STATE.load(Ordering::Relaxed);
        CALL_STATE.store(state | PANICKED, Ordering::Relaxed);
    }
}

/// Returns whether a panic is under way. PostgreSQL then releases the resources of the call itself,
/// and the call fails.
///
/// The panic is noted here, too: one that safe code begins by `resume_unwind` runs no hook, and
/// safe code may catch it.
pub(in crate::pg) fn is_unwinding() -> bool {
    let is_unwinding = std::thread::panicking();
    if is_unwinding {
        note_panic();
    }
    is_unwinding
}

/// Runs `body` and then `end`, also if `body` panics; then the call fails.
#[inline(always)]
pub(in crate::pg) fn finally<T>(body: impl FnOnce() -> T, end: impl FnOnce()) -> T {
    let result = catch_unwind(AssertUnwindSafe(body));
    if result.is_err() {
        note_panic();
    }
    end();
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs `body` and then `end`. If `body` panics, `end` isn't run: PostgreSQL ends what was begun,
/// and the call fails.
#[inline(always)]
pub(in crate::pg) fn with_end<T, U>(body: impl FnOnce() -> T, end: impl FnOnce() -> U) -> T {
    let result = finally(body, || ());
    end();
    result
}

/// Refuses the end of a call whose state isn't [`CLEAN_STATE`]. Aborts the process if memory of the call is still
/// in use, since there may be references to it. Panics if the call has met an error and goes on as
/// if nothing had happened: PostgreSQL has then not ended what was under way. Returns if the call
/// is ending with that error, `is_panicking`.
#[cold]
fn refuse_end(state: usize, is_panicking: bool) {
    let still_in_use = state & !PANICKED;
    if still_in_use != 0 {
        abort("memory of a call was kept");
    }
    if !is_panicking {
        // `resume_unwind` runs no hook, so this isn't noted as a panic of the call around this one.
        resume_unwind(Box::new("an error was caught and not raised again"));
    }
}

/// Ends the process, since there may be references to memory that is gone.
#[cold]
pub(in crate::pg) fn abort(why: &str) -> ! {
    // If the log can't be written, there is nobody to report that to.
    writeln!(std::io::stderr(), "pg_bloom: {why}").ok();
    std::process::abort()
}

thread_local! {
    /// Whether this is the session's thread, the one that PostgreSQL runs in.
    static IS_SESSION: Cell<bool> = const { Cell::new(false) };
}

/// Panics in another thread than the session's. Code that reads a variable of PostgreSQL calls
/// this; [`guard`] does it for calls.
#[inline(always)]
pub(in crate::pg) fn require_session() {
    assert!(IS_SESSION.get(), "PostgreSQL has one thread");
}

/// Returns whether the process is ending. From then on nothing is dropped, as [`crate::pg`] says.
///
/// PostgreSQL sets this before it runs the callbacks for the end. Our own callback comes too late:
/// it isn't the first one if the session has temporary tables.
pub(in crate::pg) fn is_process_ending() -> bool {
    // SAFETY: this reads a variable of the process.
    unsafe { pg_sys::proc_exit_inprogress }
}

/// Notes that this thread is the session's, and that no call is under way once the process ends:
/// the memory of calls is gone then.
///
/// It is called for the first two entries of a process. The first is `_PG_init`, perhaps in the
/// postmaster: its children inherit the variable but not the callback, and the second entry is
/// theirs.
#[cold]
fn begin_process() {
    IS_SESSION.set(true);
    // SAFETY: the callback uses only variables of this file.
    unsafe { pg_sys::before_shmem_exit(Some(end_process), pg_sys::Datum::null()) };
}

unsafe extern "C-unwind" fn end_process(_code: i32, _: pg_sys::Datum) {
    CURRENT_CALL.store(0, Ordering::Relaxed);
}

/// The right to run the body of a function that PostgreSQL calls.
pub struct Entry(());

/// The variables of the call around a call, which are set back when the inner call ends.
struct OuterCall {
    call: u64,
    exception_stack: *mut c_void,
    state: usize,
}

impl Entry {
    /// Begins a call of the extension by PostgreSQL.
    ///
    /// # Safety
    /// PostgreSQL must have called the function that calls this, and the function must have nothing
    /// to drop, since PostgreSQL's errors jump over it. The first time in a process must be in
    /// `_PG_init`.
    #[inline(always)]
    pub unsafe fn new() -> Entry {
        Entry(())
    }

    /// Runs the body of a function that PostgreSQL has called, and returns its result. An error
    /// that PostgreSQL raises in the body first unwinds Rust's stack frames, and is then raised
    /// again, unchanged. A panic of our own passes on to pgrx's guard, which must be around this.
    ///
    /// Panics if the body has caught an error of PostgreSQL, or a panic, and returns all the same.
    /// Aborts the process if something that lives in the memory of this call still exists after the
    /// body.
    #[inline(always)]
    pub fn run<T>(self, body: impl FnOnce() -> T) -> T {
        // An error is copied before it unwinds, and an error for lack of memory needs memory for
        // the copy, too. The session keeps a block for that: it is allocated here, and
        // `catch_panic_with_reserve` has it freed when PostgreSQL makes such an error.
        reserve::require();
        // SAFETY: this reads a variable of the session.
        let exception_stack = unsafe { pg_sys::PG_exception_stack };
        let (call_number, outer_call) = begin_call(exception_stack.cast());

        let result = catch_panic_with_reserve(body);

        // The state counts what still lives in the memory of this call, and says whether the body
        // has met an error.
        let state = end_call(outer_call);
        if state != CLEAN_STATE {
            refuse_end(state, result.is_err());
        }
        match result {
            Ok(value) => value,
            // The box is freed before the error is raised again, which drops nothing.
            Err(payload) => match payload.downcast::<PassingError>().map(|passing| *passing) {
                Ok(passing) => raise_again(passing, call_number),
                Err(payload) => resume_unwind(payload),
            },
        }
    }
}

/// Runs `body`, and returns its result, or the payload of the panic with which it ends. While it
/// runs, PostgreSQL calls [`reserve::give_back`] for each error that it makes: if it has no memory,
/// that frees the session's reserve.
#[inline(always)]
fn catch_panic_with_reserve<T>(body: impl FnOnce() -> T) -> std::thread::Result<T> {
    // SAFETY: PostgreSQL's context callbacks are linked through stack frames. This one takes itself
    // out at the end, whatever the body does. If there is no memory to copy an error, pgrx's guard
    // unwinds and leaves both variables set, so both are set back here.
    unsafe {
        let exception_stack_before = pg_sys::PG_exception_stack;
        let callbacks_before = pg_sys::error_context_stack;
        let mut callback = pg_sys::ErrorContextCallback {
            previous: callbacks_before,
            callback: Some(reserve::give_back),
            arg: null_mut(),
        };
        pg_sys::error_context_stack = &raw mut callback;
        let result = catch_unwind(AssertUnwindSafe(body));
        pg_sys::PG_exception_stack = exception_stack_before;
        pg_sys::error_context_stack = callbacks_before;
        result
    }
}

/// Begins a call of one of the extension's functions by PostgreSQL: gives the call a number, and
/// sets the session's variables about the call that is under way. Returns the number, and the
/// values that the variables had, which [`end_call`] sets back: a function can run SQL that calls
/// the extension again. `exception_stack` is where PostgreSQL's errors go now.
///
/// Panics if the extension's own code has called this, and not PostgreSQL. That shows in
/// `exception_stack`: whenever our code calls PostgreSQL, a guard first sets another place for
/// errors.
#[inline(always)]
fn begin_call(exception_stack: *mut c_void) -> (u64, OuterCall) {
    let outer_call = OuterCall {
        call: CURRENT_CALL.load(Ordering::Relaxed),
        exception_stack: EXCEPTION_STACK.load(Ordering::Relaxed),
        state: CALL_STATE.load(Ordering::Relaxed),
    };
    let is_outermost = outer_call.call == 0;
    let is_called_by_postgres = is_outermost || exception_stack != outer_call.exception_stack;
    assert!(is_called_by_postgres, "PostgreSQL calls this");

    let call_number = LAST_CALL.load(Ordering::Relaxed) + 1;
    // Call 1 is `_PG_init`. If the postmaster loads the library, that is in the postmaster, and its
    // children begin with call 2, since they inherit the variables. So either may be the first call
    // of this process; to do this twice does no harm.
    let may_be_first_of_process = call_number <= 2;
    if may_be_first_of_process {
        begin_process();
    }
    LAST_CALL.store(call_number, Ordering::Relaxed);
    CURRENT_CALL.store(call_number, Ordering::Relaxed);
    EXCEPTION_STACK.store(exception_stack, Ordering::Relaxed);
    CALL_STATE.store(CLEAN_STATE, Ordering::Relaxed);
    (call_number, outer_call)
}

/// Ends a call, and sets back the variables of the call around it. Returns the state of the call
/// that has ended.
#[inline(always)]
fn end_call(outer_call: OuterCall) -> usize {
    let state = CALL_STATE.load(Ordering::Relaxed);
    CALL_STATE.store(outer_call.state, Ordering::Relaxed);
    CURRENT_CALL.store(outer_call.call, Ordering::Relaxed);
    EXCEPTION_STACK.store(outer_call.exception_stack, Ordering::Relaxed);
    state
}

/// Raises an error of PostgreSQL again, at the end of the call in which it was raised first, the one
/// with number `call_number`.
///
/// Panics if the error is one of another call, whose memory is gone.
#[cold]
fn raise_again(passing: PassingError, call_number: u64) -> ! {
    let PassingError { copy, call } = passing;
    assert!(call == call_number, "an error of another call");
    // SAFETY: `guard` has copied the error into the memory of this call. The stack frames from here
    // to PostgreSQL's have nothing to drop.
    unsafe { raw::ReThrowError(copy) }
}

/// Runs code that PostgreSQL may call at any time, such as a callback, apart from the call that
/// may be under way.
pub(in crate::pg) fn outside<T>(body: impl FnOnce() -> T) -> T {
    let call = CURRENT_CALL.swap(0, Ordering::Relaxed);
    finally(body, || CURRENT_CALL.store(call, Ordering::Relaxed))
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

/// Calls a function pointer of PostgreSQL under [`guard`]. The caller promises that the arguments
/// are what the function expects.
///
/// `guarded!({ … })` runs a block under one guard. That is for many short calls, of which a guard
/// for each would take a good part of the time. The block must own nothing that needs to be
/// dropped, since an error jumps over it. It must not panic: so it calls no function of
/// [`pgrx::pg_sys`], which turn errors into panics.
macro_rules! guarded {
    ($($body:tt)*) => {{
        #[allow(ffi_unwind_calls, reason = "under the guard, which catches the jump")]
        $crate::pg::call::guard::guard(|| $($body)*)
    }};
}
