//! One call of a function by PostgreSQL: its arguments, its memory, its result.
//!
//! | module | what it is for |
//! |---|---|
//! | [`functions`] | the macro that makes a C function of a Rust one |
//! | `guard` | the macro that calls PostgreSQL's function pointers |
//! | [`site`] | what a place in an expression remembers from call to call |
//! | [`error`] | errors and warnings as PostgreSQL reports them |
//! | [`panics`] | what a panic shows |
//! | [`interrupt`] | cancelling, and the depth of the stack |
//! | [`nodes`] | expressions, and what that of a call shows about its arguments |
//! | [`scan`] | the sequential scan that evaluates a call |
//! | `test_functions` | functions that only tests call, in builds for debugging |

#[macro_use]
pub mod guard;
#[macro_use]
pub mod functions;

pub mod error;
pub mod interrupt;
pub mod nodes;
pub mod panics;
pub mod scan;
pub mod site;
#[cfg(debug_assertions)]
mod test_functions;

pub use self::error::{Error, Outcome, Result, SqlState, raise};
use super::catalog::{self, lookup};
use super::memory::Context;
use super::value::encoding;
use super::value::toast::{self, Identity};
use super::value::varlena::Value;
use super::version;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::{CStr, CString};

/// How many arguments of type `internal` a call can keep apart: see [`Call::use_internal`].
const MOST_INTERNALS: usize = u8::BITS as usize;

/// One call of a SQL function by PostgreSQL. Arguments are numbered from 0.
pub struct Call {
    fcinfo: pg_sys::FunctionCallInfo,
    /// Whether the call has returned a reference to what its call site remembers.
    is_site_in_use: Cell<bool>,
    /// A bit for each argument of type `internal`: whether the call has returned an owner of what
    /// it points to.
    internals_in_use: Cell<u8>,
}

/// A value of an SQL type that only its reader knows. All functions that read one are unsafe.
#[derive(Clone, Copy)]
pub struct SqlValue {
    pub datum: pg_sys::Datum,
}

impl Call {
    /// Wraps what PostgreSQL passes to a function.
    ///
    /// # Safety
    /// `fcinfo` must be the argument of the function that PostgreSQL is calling. The arguments in
    /// it must have the types that the extension's script declares, and stay valid as long as the
    /// result exists. No other `Call` may exist for it.
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
        // SAFETY: `new` was given a pointer that is valid for the call.
        unsafe { &*self.fcinfo }
    }

    /// Returns the number of arguments.
    #[inline(always)]
    pub fn nargs(&self) -> usize {
        self.info().nargs as usize
    }

    /// Returns argument `i`; `None` if it is NULL or wasn't given.
    #[inline(always)]
    pub fn datum(&self, i: usize) -> Option<pg_sys::Datum> {
        if i >= self.nargs() {
            return None;
        }
        // SAFETY: `nargs` arguments follow the fixed part of the struct.
        let argument = unsafe { *self.info().args.as_ptr().add(i) };
        if argument.isnull { None } else { Some(argument.value) }
    }

    /// Returns argument `i`, a value of any type; `None` if it is NULL or wasn't given.
    #[inline(always)]
    pub fn element(&self, i: usize) -> Option<SqlValue> {
        self.datum(i).map(|datum| SqlValue { datum })
    }

    /// Returns argument `i`, which must be declared `bigint`; `None` if it is NULL or wasn't given.
    #[inline(always)]
    pub fn i64(&self, i: usize) -> Option<i64> {
        self.datum(i).map(|datum| datum.value() as i64)
    }

    /// Returns argument `i`, which must be declared `integer`; `None` if it is NULL or wasn't
    /// given.
    pub fn i32(&self, i: usize) -> Option<i32> {
        self.datum(i).map(|datum| datum.value() as i32)
    }

    /// Returns argument `i`, which must be declared `oid` or a type of names for one, such as
    /// `regclass`; `None` if it is NULL or wasn't given.
    pub fn oid(&self, i: usize) -> Option<pg_sys::Oid> {
        self.datum(i).map(|datum| pg_sys::Oid::from(datum.value() as u32))
    }

    /// Returns argument `i`, which must be declared `double precision`; `None` if it is NULL or
    /// wasn't given.
    #[inline(always)]
    pub fn f64(&self, i: usize) -> Option<f64> {
        self.datum(i).map(|datum| f64::from_bits(datum.value() as u64))
    }

    /// Checks that the extension's script declares argument `i` with a type for which `is_allowed`
    /// is true. Panics otherwise. Only builds for debugging check this; others trust the script.
    #[inline(always)]
    pub(in crate::pg) fn check_declared(
        &self,
        i: usize,
        is_allowed: impl FnOnce(pg_sys::Oid) -> bool,
    ) {
        #[cfg(debug_assertions)]
        if let Ok(function) = self.function()
            && let Some(declared) = catalog::argument_type(function, i)
        {
            assert!(is_allowed(declared), "argument {i} of function {function:?}");
        }
        #[cfg(not(debug_assertions))]
        let _ = (i, is_allowed);
    }

    #[inline(always)]
    fn check_declared_varlena(&self, i: usize) {
        self.check_declared(i, |declared| catalog::storage(declared).len == -1);
    }

    /// Returns argument `i`, which must be declared with a type of variable length such as text,
    /// whole and uncompressed; `None` if it is NULL or wasn't given.
    #[inline]
    pub fn value(&self, i: usize) -> Option<Value<'_>> {
        self.check_declared_varlena(i);
        let datum = self.datum(i)?;
        // SAFETY: the script declares the argument with a type of variable length.
        Some(unsafe { Value::detoast(datum) })
    }

    /// Returns what identifies the stored value of argument `i`, which must be declared with a type
    /// of variable length. `None` if it isn't stored out of line, is NULL, or wasn't given.
    #[inline(always)]
    pub fn identity(&self, i: usize) -> Option<Identity> {
        self.check_declared_varlena(i);
        let datum = self.datum(i)?;
        // SAFETY: the script declares the argument with a type of variable length.
        unsafe { toast::identity(datum) }
    }

    /// Returns argument `i`, which must be declared `text`, or the start of it if it is longer than
    /// any keyword; `None` if it is NULL or wasn't given.
    pub fn word(&self, i: usize) -> Option<String> {
        self.value(i).map(|value| encoding::start_of(&value))
    }

    /// Returns argument `i`, which must be declared `cstring`; an empty one if it is NULL.
    pub fn cstring(&self, i: usize) -> &CStr {
        self.check_declared(i, |declared| declared == pg_sys::CSTRINGOID);
        let pointer = match self.datum(i) {
            Some(datum) => datum.cast_mut_ptr(),
            None => c"".as_ptr(),
        };
        // SAFETY: the script declares the argument as a C string, and a NULL was replaced.
        unsafe { CStr::from_ptr(pointer) }
    }

    /// Returns argument `i`, which must be declared `name`; `None` if it is NULL or wasn't given.
    pub fn name(&self, i: usize) -> Option<CString> {
        self.check_declared(i, |declared| declared == pg_sys::NAMEOID);
        let datum = self.datum(i)?;
        // SAFETY: the script declares the argument as a name.
        let name: &pg_sys::NameData = unsafe { &*datum.cast_mut_ptr() };
        Some(CString::new(encoding::name_bytes(name)).expect("a name ends at its first zero byte"))
    }

    /// Returns the unread bytes of argument `i`, the message from which a receive function reads a
    /// binary value, and marks all of them as read, as PostgreSQL asks of such a function. Returns
    /// no bytes if the argument is NULL.
    ///
    /// # Safety
    /// The argument must be a message. Its type, `internal`, is also that of other things.
    pub unsafe fn message(&self, i: usize) -> &[u8] {
        let Some(datum) = self.datum(i) else {
            return &[];
        };
        self.check_declared(i, |declared| declared == pg_sys::INTERNALOID);
        // SAFETY: the caller promises a StringInfo, whose cursor is never beyond its length.
        unsafe {
            let message: &mut pg_sys::StringInfoData = &mut *datum.cast_mut_ptr();
            let unread = message.data.add(message.cursor as usize);
            let unread_len = (message.len - message.cursor) as usize;
            message.cursor = message.len;
            std::slice::from_raw_parts(unread.cast(), unread_len)
        }
    }

    /// Returns the pointer in argument `i`, which must be declared `internal`; `None` if it is NULL
    /// or wasn't given. PostgreSQL, or another function of the same aggregate, has made it.
    #[inline(always)]
    pub fn internal<T>(&self, i: usize) -> Option<*mut T> {
        self.datum(i).map(|datum| datum.cast_mut_ptr())
    }

    /// Notes that this call owns what argument `i` points to, and may move it. `i` must be below 8.
    /// Panics if that was noted before.
    #[inline(always)]
    pub fn use_internal(&self, i: usize) {
        assert!(i < MOST_INTERNALS, "argument {i} of type internal");
        let in_use = self.internals_in_use.get();
        let bit = 1 << i;
        assert!(in_use & bit == 0, "an argument of type internal is used once in a call");
        self.internals_in_use.set(in_use | bit);
    }

    /// Returns the collation of the call, invalid if it has none.
    pub fn collation(&self) -> pg_sys::Oid {
        self.info().fncollation
    }

    /// Returns PostgreSQL's struct of the call site, the place in a query from which the function
    /// is called again and again. Fails with 55000 if there is none, as when C code calls the
    /// function directly.
    fn flinfo(&self) -> Result<*mut pg_sys::FmgrInfo> {
        let flinfo = self.info().flinfo;
        if flinfo.is_null() {
            return Err(Error::new(
                SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "function called without information about its call",
            ));
        }
        Ok(flinfo)
    }

    /// Returns the object identifier of the function that is called. Fails with 55000 without a
    /// call site.
    pub fn function(&self) -> Result<pg_sys::Oid> {
        let flinfo = self.flinfo()?;
        // SAFETY: it is valid for the call.
        Ok(unsafe { (*flinfo).fn_oid })
    }

    /// Returns the type of argument `i` in the query; if the query doesn't tell, the type that the
    /// function is declared with, unless that is `anyelement` or `anyarray`.
    ///
    /// Fails with 42P18 if neither is known, since the function is declared for any type, and with
    /// 55000 without a call site.
    pub fn argument_type(&self, i: usize) -> Result<pg_sys::Oid> {
        let flinfo = self.flinfo()?;
        // SAFETY: `flinfo` is valid, and has the expression that is being executed, if any.
        let in_query = lookup::valid(unsafe { pg_sys::get_fn_expr_argtype(flinfo, i as i32) });
        if let Some(in_query) = in_query {
            return Ok(in_query);
        }

        let polymorphic = [pg_sys::ANYELEMENTOID, pg_sys::ANYARRAYOID];
        match catalog::argument_type(self.function()?, i) {
            Some(declared) if !polymorphic.contains(&declared) => Ok(declared),
            _ => Err(Error::new(
                SqlState::ERRCODE_INDETERMINATE_DATATYPE,
                "could not determine the type of the element",
            )
            .hint("Cast the element to its type.")),
        }
    }

    /// Returns the expression of the call; `None` if the executor hasn't prepared it. For the
    /// functions of an aggregate, it is an expression that PostgreSQL makes in place of the
    /// aggregate, without the arguments.
    pub fn expression(&self) -> Option<*mut pg_sys::Node> {
        let flinfo = self.flinfo().ok()?;
        // SAFETY: `flinfo` is valid for the call.
        let expression = unsafe { (*flinfo).fn_expr };
        if expression.is_null() { None } else { Some(expression) }
    }

    /// Returns the executor's node on whose behalf the function is called, if it has this tag.
    pub(in crate::pg) fn node(&self, tag: pg_sys::NodeTag) -> Option<*mut pg_sys::Node> {
        let node: *mut pg_sys::Node = self.info().context;
        if node.is_null() {
            return None;
        }
        // SAFETY: PostgreSQL passes a null pointer or a node.
        let tag_of_node = unsafe { (*node).type_ };
        if tag_of_node == tag { Some(node) } else { None }
    }

    /// Returns whether the executor has prepared this call.
    ///
    /// It hasn't where another extension calls the functions of an aggregate itself, to spread one
    /// over servers: that looks them up for each row, and what the call site remembers ends with
    /// that row.
    pub fn is_prepared(&self) -> bool {
        self.expression().is_some()
    }

    /// Returns the memory that lives as long as the call site. Fails with 55000 without one.
    pub fn site_context(&self) -> Result<Context<'_>> {
        let flinfo = self.flinfo()?;
        // SAFETY: `flinfo` is valid for the call, and lives in this memory.
        Ok(unsafe { Context::new((*flinfo).fn_mcxt) })
    }

    /// Returns the current memory, which lives at least as long as the call.
    pub fn context(&self) -> Context<'_> {
        // SAFETY: the caller of a function keeps its memory until the function has returned. Code
        // here that changes the current memory sets it back before it returns.
        unsafe { Context::new(pg_sys::CurrentMemoryContext) }
    }

    /// Returns the memory context in which PostgreSQL keeps the states of the aggregate on whose
    /// behalf the function is called; it lives longer than the call. Fails with 55000 and this hint
    /// if the function isn't called by an aggregate.
    pub fn require_aggregate(&self, hint: &'static str) -> Result<Context<'_>> {
        let mut context = std::ptr::null_mut();
        // SAFETY: `fcinfo` is valid for the call.
        let is_aggregate = unsafe { pg_sys::AggCheckCallContext(self.fcinfo, &mut context) } != 0;
        if !is_aggregate {
            return Err(Error::new(
                SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "aggregate function called in non-aggregate context",
            )
            .hint(hint));
        }
        // SAFETY: PostgreSQL has set the memory context, which lives longer than the call.
        Ok(unsafe { Context::new(context) })
    }

    /// Begins the set of rows that the function returns, which PostgreSQL keeps in memory or,
    /// beyond `work_mem`, on disk. Returns a copy of the struct that the caller of the function
    /// will read: it has the set and the function's row type.
    ///
    /// Raises 0A000 if the caller doesn't accept a set.
    pub(in crate::pg) fn begin_set(&self) -> pg_sys::ReturnSetInfo {
        // SAFETY: `fcinfo` is valid for the call. The function returns only if `resultinfo` is such
        // a struct.
        unsafe {
            version::begin_set(self.fcinfo, 0);
            *self.info().resultinfo.cast()
        }
    }

    pub(in crate::pg) fn fcinfo(&self) -> pg_sys::FunctionCallInfo {
        self.fcinfo
    }

    /// Ends the call: returns the function's result to PostgreSQL, or raises its error.
    #[inline(always)]
    pub fn finish(self, result: Outcome) -> pg_sys::Datum {
        let value = result.unwrap_or_else(|error| raise(error));
        // SAFETY: `fcinfo` is valid for the call.
        unsafe { (*self.fcinfo).isnull = value.is_none() };
        value.unwrap_or(pg_sys::Datum::null())
    }
}
