//! A hook that long loops call, so that a database can cancel them.

use std::sync::OnceLock;

static HOOK: OnceLock<fn()> = OnceLock::new();

/// How many bytes a loop may work through between two calls of [`check`]: well under a millisecond of work.
pub const STRIDE: usize = 1 << 20;

/// Installs the function that [`check`] calls. The first call wins; the hook may unwind.
pub fn install(hook: fn()) {
    HOOK.get_or_init(|| hook);
}

/// Calls the installed hook, if there is one.
#[inline]
pub fn check() {
    if let Some(hook) = HOOK.get() {
        hook();
    }
}
