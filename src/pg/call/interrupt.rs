//! Questions of a long operation to PostgreSQL: whether it was cancelled, and whether the stack has
//! room.

use pgrx::pg_sys;

/// Raises PostgreSQL's error if the user has cancelled the query, or the server ends the session.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}

/// Raises 54001 if the stack has grown beyond the setting `max_stack_depth`, as in a deep
/// recursion.
pub fn check_stack_depth() {
    // SAFETY: the function compares the stack pointer with a setting.
    unsafe { pg_sys::check_stack_depth() };
}
