//! Settings that hold while something runs.

use pgrx::pg_sys;
use std::ffi::CStr;

/// The name of a setting, and its value as SQL writes it.
pub type Setting<'a> = (&'a CStr, &'a CStr);

/// Runs `statements` with these settings, which every user must be allowed to change, and returns
/// its result. Afterwards, and after an error, they have the values that they had before.
pub fn with_settings<T>(settings: &[Setting<'_>], statements: impl FnOnce() -> T) -> T {
    if settings.is_empty() {
        return statements();
    }
    // SAFETY: these are PostgreSQL's own steps for settings that hold during a function. The names
    // and the values are C strings. After an error PostgreSQL ends the level itself.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for (name, value) in settings {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
        let result = statements();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}
