//! What a long operation asks PostgreSQL: whether it was interrupted, and whether the stack has
//! room.

use pgrx::pg_sys;

/// Lets the user cancel: raises an error if that was asked for.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}

pub fn check_stack_depth() {
    // SAFETY: it compares the stack pointer with a setting.
    unsafe { pg_sys::check_stack_depth() };
}
