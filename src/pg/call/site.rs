//! What a call site remembers between calls.
//!
//! A **call site** is a place in an expression where a function is called. PostgreSQL prepares it
//! once and then uses it for every row. It has one pointer for the function's own use, `fn_extra`;
//! [`Remembered`] is what that points to:
//!
//! ```text
//! FmgrInfo of the call site          Remembered
//! fn_extra ────────────────────────▶ | type of the value | time of the last warning | value |
//! fn_mcxt, the memory that both live in
//! ```

use super::Call;
use super::error::Result;
use crate::pg::memory::{self, Context};
use pgrx::pg_sys;
use std::any::TypeId;
use std::ffi::c_void;

/// What a call site remembers. The value comes last, so that the other fields can be read before it
/// is known what type it has.
#[repr(C)]
struct Remembered<T> {
    /// The type of the value, `T`.
    type_id: TypeId,
    /// When the client's statement began in which the call site last gave a warning, or
    /// [`NEVER_WARNED`].
    warned_in_statement: pg_sys::TimestampTz,
    value: T,
}

/// The fields before the value, which are at the same place whatever type the value has.
type RememberedStart = Remembered<()>;

/// A time at which no client's statement began: that of midnight on 1 January 2000.
const NEVER_WARNED: pg_sys::TimestampTz = 0;

impl Call {
    /// Returns the value that this call site remembers. A *call site* is a place in a query that
    /// calls the function once for each row. At its first call, `make` makes the value; it is kept
    /// as long as the query's expression is prepared for execution, and dropped then.
    ///
    /// Panics if the call has asked for it before, since that would make two references to one
    /// value, and if the site remembers a value of another type. Fails if `make` fails, and with
    /// 55000 if the function is called without a call site.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "PostgreSQL uses a call site in one call at a time, and the call returns the value once"
    )]
    pub fn remembered<T: 'static>(&self, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
        let flinfo = self.flinfo()?;
        // SAFETY: `flinfo` is valid for the call.
        unsafe {
            if (*flinfo).fn_extra.is_null() {
                store_in_site(flinfo, make)?;
            }
        }
        Ok(self
            .recalled()
            .expect("a call site remembers one value, and a call asks for it once"))
    }

    /// Returns the value that this call site, the place in a query that calls the function, has
    /// remembered by an earlier [`Call::remembered`]. `None` if it remembers no value, or one of
    /// another type, or if this call has asked for the value before: there must be only one
    /// reference to it.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "as for `remembered`")]
    pub fn recalled<T: 'static>(&self) -> Option<&mut T> {
        let remembered = self.remembered_start()?;
        // SAFETY: what is remembered lives as long as the call site, and its type is compared
        // before it is used. There is no other reference: this call hasn't returned one, and
        // PostgreSQL doesn't use a call site in two calls at once.
        unsafe {
            if (*remembered).type_id != TypeId::of::<T>() || self.is_site_in_use.replace(true) {
                return None;
            }
            Some(&mut (*remembered.cast::<Remembered<T>>()).value)
        }
    }

    /// Returns a pointer to what the call site remembers, by which only the fields before the value
    /// may be used, since the type of the value isn't known yet. `None` if it remembers nothing.
    #[inline(always)]
    fn remembered_start(&self) -> Option<*mut RememberedStart> {
        let flinfo = self.info().flinfo;
        if flinfo.is_null() {
            return None;
        }
        // SAFETY: `flinfo` is valid for the call.
        let extra = unsafe { (*flinfo).fn_extra };
        // Only `store_in_site` sets this pointer, and all that it stores begins with these fields.
        if extra.is_null() { None } else { Some(extra.cast()) }
    }

    /// Returns whether this call site has given a warning in the client's current statement, as
    /// [`Call::remember_warning`] was told.
    pub fn has_warned_in_statement(&self) -> bool {
        let Some(remembered) = self.remembered_start() else {
            return false;
        };
        // SAFETY: what is remembered lives as long as the call site.
        let warned_in_statement = unsafe { (*remembered).warned_in_statement };
        warned_in_statement == start_of_statement()
    }

    /// Remembers that this call site, the place in a query that calls the function for each row,
    /// gives a warning, so that the function needn't repeat it for each row:
    /// [`Call::has_warned_in_statement`] returns true from now on, until the client's next
    /// statement. Does nothing if the function is called without a call site.
    ///
    /// This is stored beside the value that the site remembers. If there is none yet, the site
    /// remembers `()` from now on, and no other value. So a function that needs a value as well
    /// must call [`Call::remembered`] first.
    pub fn remember_warning(&self) {
        if self.remembered_start().is_none() {
            let Ok(flinfo) = self.flinfo() else {
                return;
            };
            let make_no_value = || Ok(());
            // SAFETY: `flinfo` is valid for the call.
            let stored = unsafe { store_in_site(flinfo, make_no_value) };
            if stored.is_err() {
                return;
            }
        }
        if let Some(remembered) = self.remembered_start() {
            // SAFETY: what is remembered lives as long as the call site.
            unsafe { (*remembered).warned_in_statement = start_of_statement() };
        }
    }
}

/// Returns when the client's current statement began, which tells statements apart.
fn start_of_statement() -> pg_sys::TimestampTz {
    // SAFETY: reads a variable of the session.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() }
}

/// Stores a value with a call site, the place in a query that calls a function, so that later calls
/// by the same site find it. `make` makes the value. It is moved into memory that lives as long as
/// the call site, and dropped with that memory. The site has given no warning yet.
///
/// Panics if the call site has a value already. Fails if `make` fails.
///
/// # Safety
/// `flinfo` must be valid.
#[cold]
#[inline(never)]
unsafe fn store_in_site<T: 'static>(
    flinfo: *mut pg_sys::FmgrInfo,
    make: impl FnOnce() -> Result<T>,
) -> Result<()> {
    let remembered = Remembered {
        type_id: TypeId::of::<T>(),
        warned_in_statement: NEVER_WARNED,
        value: make()?,
    };
    // SAFETY: the caller promises a valid struct.
    unsafe {
        // `make` may have called this function again, by the same site.
        assert!((*flinfo).fn_extra.is_null(), "a call site remembers only one value");
        let site_memory = Context::new((*flinfo).fn_mcxt);
        (*flinfo).fn_extra = memory::keep(site_memory, remembered).cast::<c_void>();
    }
    Ok(())
}
