//! What the groups of a call site share: kept once rather than with each of a million states.

use crate::pg::call::Call;
use crate::pg::call::error::Result;
use pg_bloom_core::{Header, Kind};
use pgrx::pg_sys;

/// What the states of a call site share.
pub struct Params {
    /// The header of the filter being built; its kind is that of the elements, even if there are none yet.
    pub header: Header<'static>,
}

impl Params {
    /// Parameters that live as long as `context`.
    pub fn allocate(context: pg_sys::MemoryContext, header: &Header<'_>) -> *const Params {
        let name = header.kind.name;
        // SAFETY: the allocation has room for the parameters and the name after them, which is valid UTF-8.
        unsafe {
            let params: *mut Params = pg_sys::MemoryContextAlloc(context, size_of::<Params>() + name.len()).cast();
            let copy: *mut u8 = params.add(1).cast();
            std::ptr::copy_nonoverlapping(name.as_ptr(), copy, name.len());
            let name = std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, name.len()));
            params.write(Params { header: Header { kind: Kind { name, ..header.kind }, ..*header } });
            params
        }
    }
}

/// The parameters that a call site used first, kept as long as the site; others are kept with the state that needs
/// them.
pub struct SharedParams {
    first: *const Params,
    /// States are made for the caller to read immediately, in the memory of the call.
    short_lived: bool,
}

impl SharedParams {
    /// For the functions of an aggregate that keep states.
    pub fn new() -> Self {
        SharedParams { first: std::ptr::null(), short_lived: false }
    }

    /// For functions whose states are read immediately.
    pub fn short_lived() -> Self {
        SharedParams { first: std::ptr::null(), short_lived: true }
    }

    /// Parameters with this header.
    pub fn params(&mut self, call: &Call, header: &Header<'_>) -> Result<*const Params> {
        if !call.is_prepared() {
            return Ok(Params::allocate(self.context(call)?, header));
        }
        if self.first.is_null() {
            self.first = Params::allocate(call.site_context()?, header);
        }
        // SAFETY: allocated here or before, in memory that lives as long as the site.
        if unsafe { &(*self.first).header } == header {
            return Ok(self.first);
        }
        Ok(Params::allocate(self.context(call)?, header))
    }

    /// The memory of new states.
    pub fn context(&self, call: &Call) -> Result<pg_sys::MemoryContext> {
        let aggregate = call.require_aggregate()?;
        // SAFETY: reading a global that is always set.
        Ok(if self.short_lived { unsafe { pg_sys::CurrentMemoryContext } } else { aggregate })
    }
}
