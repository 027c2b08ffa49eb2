//! What a call site remembers between calls.
//!
//! A **call site** is a place in an expression where a function is called. PostgreSQL prepares it
//! once and then uses it for every row. It has one pointer for the function's own use, `fn_extra`;
//! [`Remembered`] is what that points to:
//!
//! ```text
//! FmgrInfo of the call site          Remembered
//! fn_extra ────────────────────────▶ | type of the thing | time of the mark | thing |
//! fn_mcxt, the memory that both live in
//! ```

use super::Call;
use super::error::Result;
use crate::pg::memory::{self, Context};
use pgrx::pg_sys;
use std::any::TypeId;
use std::ffi::c_void;

/// What a call site remembers. The thing comes last, so that the other fields can be read before it
/// is known what type it has.
#[repr(C)]
struct Remembered<T> {
    type_id: TypeId,
    /// When the client's statement began in which the call site was marked; 0 if it wasn't.
    marked_at: pg_sys::TimestampTz,
    thing: T,
}

impl Call {
    /// Returns what this call site remembers. A *call site* is a place in a query that calls the
    /// function once for each row. At its first call, `make` makes the thing; it is kept as long as
    /// the query's expression is prepared for execution, and dropped then.
    ///
    /// Panics if the call has asked for it before, since that would make two references to one
    /// thing, and if the site remembers a thing of another type. Fails if `make` fails, and with
    /// 55000 if the function is called without a call site.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "PostgreSQL uses a call site in one call at a time, and the call returns the thing once"
    )]
    pub fn remembered<T: 'static>(&self, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
        let flinfo = self.flinfo()?;
        // SAFETY: `flinfo` is valid for the call.
        unsafe {
            if (*flinfo).fn_extra.is_null() {
                remember(flinfo, make)?;
            }
        }
        Ok(self
            .recalled()
            .expect("a call site remembers one thing, and a call asks for it once"))
    }

    /// Returns what this call site, the place in a query that calls the function, has remembered by
    /// an earlier [`Call::remembered`]. `None` if it remembers nothing, or something of another
    /// type, or if this call has asked for the thing before: there must be only one reference to
    /// it.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "as for `remembered`")]
    pub fn recalled<T: 'static>(&self) -> Option<&mut T> {
        let remembered = self.remembered_of_any_type()?;
        // SAFETY: what is remembered lives as long as the call site, and its type is compared
        // before it is used. There is no other reference: this call hasn't returned one, and
        // PostgreSQL doesn't use a call site in two calls at once.
        unsafe {
            if (*remembered).type_id != TypeId::of::<T>() || self.is_site_in_use.replace(true) {
                return None;
            }
            Some(&mut (*remembered.cast::<Remembered<T>>()).thing)
        }
    }

    /// Returns a pointer to what the call site remembers, whose type isn't known yet.
    #[inline(always)]
    fn remembered_of_any_type(&self) -> Option<*mut Remembered<()>> {
        let flinfo = self.info().flinfo;
        if flinfo.is_null() {
            return None;
        }
        // SAFETY: `flinfo` is valid for the call.
        let extra = unsafe { (*flinfo).fn_extra };
        // Only `remember` sets this pointer, and all it makes begins like `Remembered<()>`.
        if extra.is_null() { None } else { Some(extra.cast()) }
    }

    /// Returns whether this call site was marked, by [`Call::mark`], during the client's current
    /// statement.
    pub fn is_marked(&self) -> bool {
        let Some(remembered) = self.remembered_of_any_type() else {
            return false;
        };
        // SAFETY: what is remembered lives as long as the call site.
        unsafe { (*remembered).marked_at == pg_sys::GetCurrentStatementStartTimestamp() }
    }

    /// Marks this call site, the place in a query that calls the function, so that
    /// [`Call::is_marked`] is true until the client's next statement. A warning that was given once
    /// is then not repeated for each row. Does nothing if the function is called without a call
    /// site.
    ///
    /// A function that also remembers something must have asked for that before.
    pub fn mark(&self) {
        if self.remembered_of_any_type().is_none() {
            let Ok(flinfo) = self.flinfo() else {
                return;
            };
            // SAFETY: `flinfo` is valid for the call. Making nothing can't fail.
            if unsafe { remember(flinfo, || Ok(())) }.is_err() {
                return;
            }
        }
        if let Some(remembered) = self.remembered_of_any_type() {
            // SAFETY: what is remembered lives as long as the call site.
            unsafe { (*remembered).marked_at = pg_sys::GetCurrentStatementStartTimestamp() };
        }
    }
}

/// Makes a thing and stores it with a call site, the place in a query that calls a function, in
/// memory that lives as long as the call site. The thing is dropped with that memory. Panics if the
/// call site remembers something already. Fails if `make` fails.
///
/// # Safety
/// `flinfo` must be valid.
#[cold]
#[inline(never)]
unsafe fn remember<T: 'static>(
    flinfo: *mut pg_sys::FmgrInfo,
    make: impl FnOnce() -> Result<T>,
) -> Result<()> {
    let remembered = Remembered { type_id: TypeId::of::<T>(), marked_at: 0, thing: make()? };
    // SAFETY: the caller promises a valid struct.
    unsafe {
        // Making the thing may have called this function again, by the same site.
        assert!((*flinfo).fn_extra.is_null(), "a call site remembers only one thing");
        let context = Context::new((*flinfo).fn_mcxt);
        (*flinfo).fn_extra = memory::keep(context, remembered).cast::<c_void>();
    }
    Ok(())
}
