//! One call of a function by PostgreSQL: its arguments, its memory, its result.
//!
//! | module | what it is for |
//! |---|---|
//! | [`functions`] | the macro that makes a C function of a Rust one |
//! | `guard` | the macro that calls PostgreSQL's function pointers |
//! | [`error`] | errors and warnings as PostgreSQL reports them |
//! | [`panics`] | what a panic shows |
//! | [`interrupt`] | cancelling, and the depth of the stack |
//! | [`nodes`] | expressions, and what that of a call shows about its arguments |

#[macro_use]
pub mod guard;
#[macro_use]
pub mod functions;

pub mod error;
pub mod interrupt;
pub mod nodes;
pub mod panics;

pub use self::error::{Error, Outcome, Result, SqlState, raise};
use super::catalog::{self, lookup};
use super::memory::{self, Context};
use super::value::encoding;
use super::value::toast::{self, Identity};
use super::value::varlena::Value;
use super::version;
use pgrx::pg_sys;
use std::any::TypeId;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_void};

pub struct Call {
    fcinfo: pg_sys::FunctionCallInfo,
    /// Whether what the call site remembers was handed out.
    is_site_in_use: Cell<bool>,
    /// A bit for each argument of type internal that was handed out.
    internals_in_use: Cell<u8>,
}

/// A value of any SQL type, which only whoever reads it knows: all that reads one is unsafe.
#[derive(Clone, Copy)]
pub struct Element {
    pub datum: pg_sys::Datum,
}

impl Call {
    /// # Safety
    /// `fcinfo` must be what PostgreSQL passed to the function being called, whose arguments have
    /// the types that the extension's script declares, and stay so while this is there. No other of
    /// the same may be in use.
    #[inline(always)]
    pub unsafe fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        Call {
            fcinfo,
            is_site_in_use: Cell::new(false),
            internals_in_use: Cell::new(0),
        }
    }

    #[inline(always)]
    fn info(&self) -> &pg_sys::FunctionCallInfoBaseData {
        // SAFETY: `new` was given a valid pointer, which stays valid for the call.
        unsafe { &*self.fcinfo }
    }

    #[inline(always)]
    pub fn nargs(&self) -> usize {
        self.info().nargs as usize
    }

    /// Argument `i`; `None` when it is NULL or was not given.
    #[inline(always)]
    pub fn datum(&self, i: usize) -> Option<pg_sys::Datum> {
        if i >= self.nargs() {
            return None;
        }
        // SAFETY: there are `nargs` arguments after the fixed part.
        let arg = unsafe { *self.info().args.as_ptr().add(i) };
        (!arg.isnull).then_some(arg.value)
    }

    #[inline(always)]
    pub fn element(&self, i: usize) -> Option<Element> {
        self.datum(i).map(|datum| Element { datum })
    }

    #[inline(always)]
    pub fn i64(&self, i: usize) -> Option<i64> {
        self.datum(i).map(|d| d.value() as i64)
    }

    pub fn i32(&self, i: usize) -> Option<i32> {
        self.datum(i).map(|d| d.value() as i32)
    }

    pub fn oid(&self, i: usize) -> Option<pg_sys::Oid> {
        self.datum(i).map(|d| pg_sys::Oid::from(d.value() as u32))
    }

    #[inline(always)]
    pub fn f64(&self, i: usize) -> Option<f64> {
        self.datum(i).map(|d| f64::from_bits(d.value() as u64))
    }

    /// In builds for debugging, panics if the function declares another type of argument `i` than
    /// can be read so.
    #[inline(always)]
    pub(in crate::pg) fn check_declared(
        &self,
        i: usize,
        is_read: impl FnOnce(pg_sys::Oid) -> bool,
    ) {
        #[cfg(debug_assertions)]
        if let Ok(function) = self.function()
            && let Some(declared) = catalog::argument_type(function, i)
        {
            assert!(is_read(declared), "argument {i} of function {function:?}");
        }
        #[cfg(not(debug_assertions))]
        let _ = (i, is_read);
    }

    /// Argument `i`, a value of variable length (text, bytea, bloom), whole and uncompressed.
    #[inline]
    pub fn value(&self, i: usize) -> Option<Value<'_>> {
        self.check_declared(i, |declared| catalog::storage(declared).len == -1);
        // SAFETY: by declaration the argument is of variable length.
        self.datum(i).map(|d| unsafe { Value::detoast(d) })
    }

    /// The TOAST identity of argument `i`, a value of variable length, if it is out of line on
    /// disk.
    #[inline(always)]
    pub fn identity(&self, i: usize) -> Option<Identity> {
        self.check_declared(i, |declared| catalog::storage(declared).len == -1);
        // SAFETY: by declaration the argument is of variable length.
        self.datum(i).and_then(|datum| unsafe { toast::identity(datum) })
    }

    /// Argument `i`, a text that is a word; of a longer one the start.
    pub fn word(&self, i: usize) -> Option<String> {
        self.value(i).map(|value| encoding::start_of(&value))
    }

    pub fn cstring(&self, i: usize) -> &CStr {
        self.check_declared(i, |declared| declared == pg_sys::CSTRINGOID);
        let pointer = self.datum(i).map_or(c"".as_ptr(), |d| d.cast_mut_ptr());
        // SAFETY: by declaration the argument is a C string; a NULL one was replaced.
        unsafe { CStr::from_ptr(pointer) }
    }

    pub fn name(&self, i: usize) -> Option<CString> {
        self.check_declared(i, |declared| declared == pg_sys::NAMEOID);
        // SAFETY: by declaration the argument is a name.
        let name: &pg_sys::NameData = unsafe { &*self.datum(i)?.cast_mut_ptr() };
        Some(CString::new(encoding::name_bytes(name)).expect("there is no zero byte"))
    }

    /// Argument `i`, the buffer of a receive function: everything in it, which is thereby read.
    ///
    /// # Safety
    /// It must be one: the states of aggregates are declared as it is.
    pub unsafe fn message(&self, i: usize) -> &[u8] {
        let Some(datum) = self.datum(i) else {
            return &[];
        };
        self.check_declared(i, |declared| declared == pg_sys::INTERNALOID);
        // SAFETY: promised by the caller: a StringInfo, whose cursor is within its length.
        unsafe {
            let buffer: &mut pg_sys::StringInfoData = &mut *datum.cast_mut_ptr();
            let from = buffer.cursor;
            buffer.cursor = buffer.len;
            std::slice::from_raw_parts(
                buffer.data.add(from as usize).cast(),
                (buffer.len - from) as usize,
            )
        }
    }

    /// Where argument `i` is, which PostgreSQL or another support function of the aggregate made.
    #[inline(always)]
    pub fn internal<T>(&self, i: usize) -> Option<*mut T> {
        self.datum(i).map(|d| d.cast_mut_ptr())
    }

    /// Notes that what argument `i` points to, one of the first eight, may be moved. Panics if it
    /// was noted before.
    #[inline(always)]
    pub fn use_internal(&self, i: usize) {
        let (used, own) = (self.internals_in_use.get(), 1 << i);
        assert!(i < 8 && used & own == 0, "an argument that is used once in a call");
        self.internals_in_use.set(used | own);
    }

    pub fn collation(&self) -> pg_sys::Oid {
        self.info().fncollation
    }

    fn flinfo(&self) -> Result<*mut pg_sys::FmgrInfo> {
        Some(self.info().flinfo)
            .filter(|flinfo| !flinfo.is_null())
            .ok_or_else(|| {
                let message = "function called without information about its call";
                Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            })
    }

    pub fn function(&self) -> Result<pg_sys::Oid> {
        // SAFETY: not null, and valid for the call.
        self.flinfo().map(|flinfo| unsafe { (*flinfo).fn_oid })
    }

    /// The type of argument `i` in the query, or else as the function declares it. Errors: 42P18
    /// when neither tells.
    pub fn argument_type(&self, i: usize) -> Result<pg_sys::Oid> {
        // SAFETY: flinfo is valid; the function reads the expression that is being executed.
        let in_query =
            lookup::valid(unsafe { pg_sys::get_fn_expr_argtype(self.flinfo()?, i as i32) });
        let polymorphic = [pg_sys::ANYELEMENTOID, pg_sys::ANYARRAYOID];
        let function = self.function()?;
        let declared =
            || catalog::argument_type(function, i).filter(|oid| !polymorphic.contains(oid));
        in_query.or_else(declared).ok_or_else(|| {
            let message = "could not determine the type of the element";
            Error::new(SqlState::ERRCODE_INDETERMINATE_DATATYPE, message)
                .hint("Cast the element to its type.")
        })
    }

    /// The expression of the call. That of an aggregate's function stands for the call, without the
    /// arguments.
    pub fn expression(&self) -> Option<*mut pg_sys::Node> {
        // SAFETY: flinfo is valid for the call.
        let node = unsafe { (*self.flinfo().ok()?).fn_expr };
        (!node.is_null()).then_some(node)
    }

    /// The node for which the function is called, if it has this tag. That of an aggregate stands
    /// for no window.
    pub(in crate::pg) fn node(&self, tag: pg_sys::NodeTag) -> Option<*mut pg_sys::Node> {
        let context: *mut pg_sys::Node = self.info().context;
        // SAFETY: null, or a node.
        unsafe { !context.is_null() && (*context).type_ == tag }.then_some(context)
    }

    /// What this call site remembers between calls: made by `make` at the first one and kept as
    /// long as the prepared expression. Panics if it was asked for in this call before: there would
    /// be two references to one thing.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "a call site is used by one call at a time, which gets it once"
    )]
    pub fn remembered<T: 'static>(&self, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
        let flinfo = self.flinfo()?;
        // SAFETY: flinfo is valid for the call.
        unsafe {
            if (*flinfo).fn_extra.is_null() {
                remember(flinfo, make)?;
            }
        }
        Ok(self
            .recalled()
            .expect("a call site remembers one thing, which is used once in a call"))
    }

    /// What this call site remembers already, by [`Call::remembered`], unless it was asked for in
    /// this call before.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "as above")]
    pub fn recalled<T: 'static>(&self) -> Option<&mut T> {
        let site = self.site()?;
        // SAFETY: what is remembered is there as long as the call site, and its type is compared;
        // nobody else has it, since PostgreSQL doesn't use a call site in two calls at once.
        unsafe {
            if (*site).type_id != TypeId::of::<T>() || self.is_site_in_use.replace(true) {
                return None;
            }
            Some(&mut (*site.cast::<Remembered<T>>()).thing)
        }
    }

    #[inline(always)]
    fn site(&self) -> Option<*mut Remembered<()>> {
        let flinfo = self.info().flinfo;
        // SAFETY: flinfo is null or valid; only `remember` makes what it points to, which begins
        // like this.
        unsafe {
            (!flinfo.is_null() && !(*flinfo).fn_extra.is_null()).then(|| (*flinfo).fn_extra.cast())
        }
    }

    /// Whether [`Call::mark`] was called for this call site in the client's current statement.
    pub fn is_marked(&self) -> bool {
        // SAFETY: what is remembered is there as long as the call site.
        self.site().is_some_and(|site| unsafe {
            (*site).marked == pg_sys::GetCurrentStatementStartTimestamp()
        })
    }

    /// Marks this call site until the client's next statement. A function that remembers something
    /// must do so before.
    pub fn mark(&self) {
        // SAFETY: flinfo is valid for the call, and what is remembered is there as long.
        unsafe {
            if self.site().is_none()
                && self.flinfo().and_then(|flinfo| remember(flinfo, || Ok(()))).is_err()
            {
                return;
            }
            if let Some(site) = self.site() {
                (*site).marked = pg_sys::GetCurrentStatementStartTimestamp();
            }
        }
    }

    /// Whether the executor prepared this call. Code that calls functions of an aggregate by hand,
    /// as Citus does to spread it over nodes, looks them up for each row: what is remembered ends
    /// with that, and there is no expression.
    pub fn is_prepared(&self) -> bool {
        self.expression().is_some()
    }

    pub fn site_context(&self) -> Result<Context<'_>> {
        // SAFETY: flinfo is valid, and its memory is there as long.
        self.flinfo().map(|flinfo| unsafe { Context::new((*flinfo).fn_mcxt) })
    }

    /// Memory that lives as long as the call, or longer.
    pub fn context(&self) -> Context<'_> {
        // SAFETY: a call is made in memory that lives longer, and what changes that here changes it
        // back.
        unsafe { Context::new(pg_sys::CurrentMemoryContext) }
    }

    /// The memory of the aggregate whose support function the executor calls. Errors: 55000 outside
    /// an aggregate.
    pub fn require_aggregate(&self) -> Result<Context<'_>> {
        let mut context = std::ptr::null_mut();
        // SAFETY: fcinfo is valid; outside an aggregate the context stays null, else it outlives
        // the call.
        unsafe {
            if pg_sys::AggCheckCallContext(self.fcinfo, &mut context) != 0 {
                return Ok(Context::new(context));
            }
        }
        let message = "aggregate function called in non-aggregate context";
        Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .hint("Use the aggregates bloom_agg and bloom_union_agg."))
    }

    /// Begins the set of rows that the function returns, in a store that goes to disk beyond
    /// `work_mem`. Returns a copy of what the caller gets: the store, and the row type of the
    /// function. Raises 0A000 if the caller takes no set.
    pub(in crate::pg) fn begin_set(&self) -> pg_sys::ReturnSetInfo {
        // SAFETY: fcinfo is valid; the function returns if it has a node for the set.
        unsafe {
            version::begin_set(self.fcinfo, 0);
            *self.info().resultinfo.cast()
        }
    }

    pub(in crate::pg) fn fcinfo(&self) -> pg_sys::FunctionCallInfo {
        self.fcinfo
    }

    #[inline(always)]
    pub fn finish(self, result: Outcome) -> pg_sys::Datum {
        let value = result.unwrap_or_else(|error| raise(error));
        // SAFETY: fcinfo is valid.
        unsafe { (*self.fcinfo).isnull = value.is_none() };
        value.unwrap_or(pg_sys::Datum::null())
    }
}

/// What a call site remembers. The thing comes last, so that the others are read before it is known
/// what it is.
#[repr(C)]
struct Remembered<T> {
    type_id: TypeId,
    /// When the client's statement began in which the site was marked.
    marked: pg_sys::TimestampTz,
    thing: T,
}

/// # Safety
/// `flinfo` must be valid.
#[cold]
#[inline(never)]
unsafe fn remember<T: 'static>(
    flinfo: *mut pg_sys::FmgrInfo,
    make: impl FnOnce() -> Result<T>,
) -> Result<()> {
    let made = Remembered { type_id: TypeId::of::<T>(), marked: 0, thing: make()? };
    // SAFETY: promised by the caller.
    unsafe {
        assert!((*flinfo).fn_extra.is_null(), "a call site remembers something else");
        (*flinfo).fn_extra = memory::keep(Context::new((*flinfo).fn_mcxt), made).cast::<c_void>();
    }
    Ok(())
}
