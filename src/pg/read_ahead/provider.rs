//! The conditions that are evaluated for many rows at once.

use crate::pg::call::error::Result;
use crate::pg::call::{Call, Element};
use pgrx::pg_sys;
use std::cell::Cell;

/// Rows that are read ahead at most.
pub const MOST_ROWS: usize = 32;

/// A function that a scan can ask for many rows at once.
#[derive(Clone, Copy)]
pub struct Condition {
    /// The C function: strict, immutable, with two arguments and a boolean result.
    pub function: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    /// Which argument is the same for the whole scan; the other one is a column.
    pub fixed: usize,
    /// Answers for these values of the column, none of which is NULL. The call has the fixed argument, and remembers
    /// what it needs.
    pub ask: fn(&Call, &[Element], &mut [bool]) -> Result<()>,
}

impl Condition {
    /// Whether it is what a SQL function calls.
    pub fn is(&self, function: &pg_sys::FmgrInfo) -> bool {
        function.fn_addr.is_some_and(|address| address as usize == self.function as usize)
    }
}

/// The conditions, and what EXPLAIN shows of them.
#[derive(Clone, Copy)]
pub struct Provider {
    /// What a scan can ask.
    pub conditions: &'static [Condition],
    /// Whether the user wants it.
    pub is_wanted: fn() -> bool,
    /// The start of the names of SQL functions that may be conditions.
    pub names: &'static [&'static str],
    /// What EXPLAIN calls the condition.
    pub label: &'static std::ffi::CStr,
    /// What EXPLAIN calls the rows that it rejected.
    pub removed: &'static std::ffi::CStr,
}

thread_local! {
    static PROVIDER: Cell<Option<Provider>> = const { Cell::new(None) };
}

/// Reads ahead for these conditions from now on.
pub fn set(provider: Provider) {
    PROVIDER.set(Some(provider));
}

/// The conditions, once they are set.
pub fn provider() -> Option<Provider> {
    PROVIDER.get()
}
