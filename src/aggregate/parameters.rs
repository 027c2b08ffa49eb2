//! What the groups of a call site share: kept once rather than with each of a million states.

use crate::pg::call::Call;
use crate::pg::call::error::Result;
use crate::pg::memory::{self, Context};
use pg_bloom_core::{Header, Kind};

/// The header of the filters being built, in memory of PostgreSQL's; its kind is that of the elements, even if there
/// are none yet.
pub type Params = *const Header<'static>;

/// Parameters that live as long as `context`.
pub fn allocate(context: Context<'_>, header: &Header<'_>) -> Params {
    let name = header.kind.name;
    // SAFETY: the allocation has room for the parameters and the name after them, which is valid UTF-8.
    unsafe {
        let bytes = size_of::<Header<'static>>() + name.len();
        let params: *mut Header<'static> = memory::allocate(context, bytes).cast();
        let copy: *mut u8 = params.add(1).cast();
        std::ptr::copy_nonoverlapping(name.as_ptr(), copy, name.len());
        let name = std::str::from_utf8_unchecked(std::slice::from_raw_parts(copy, name.len()));
        params.write(Header { kind: Kind { name, ..header.kind }, ..*header });
        params
    }
}

/// The parameters that a call site used first, kept as long as the site; others are kept with the state that needs
/// them.
pub struct SharedParams {
    first: Params,
}

impl SharedParams {
    /// # Safety
    /// A call site must remember it, by [`Call::remembered`], and only calls of that site use it.
    pub unsafe fn new() -> Self {
        SharedParams { first: std::ptr::null() }
    }

    /// # Errors
    /// 55000 outside an aggregate.
    pub fn params(&mut self, call: &Call, header: &Header<'_>) -> Result<Params> {
        if call.is_prepared() {
            if self.first.is_null() {
                self.first = allocate(call.site_context()?, header);
            }
            // SAFETY: allocated here or before, in memory that lives as long as the site.
            if unsafe { &*self.first } == header {
                return Ok(self.first);
            }
        }
        Ok(allocate(call.require_aggregate()?, header))
    }
}
