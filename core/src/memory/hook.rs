//! What happens if memory can't be allocated.

use std::alloc::{Layout, handle_alloc_error};
use std::sync::OnceLock;

static HOOK: OnceLock<fn(usize) -> !> = OnceLock::new();

/// Installs the function that is called, with the number of bytes, if that much memory can't be
/// allocated. It must unwind or end the process.
///
/// The first hook stays: later calls have no effect.
pub fn set_hook(hook: fn(usize) -> !) {
    HOOK.get_or_init(|| hook);
}

/// Ends the operation because `bytes` bytes can't be allocated: calls the installed hook, or aborts
/// the process if there is none.
#[cold]
pub fn exhausted(bytes: usize) -> ! {
    if let Some(hook) = HOOK.get() {
        hook(bytes);
    }
    // More bytes than a `Layout` can describe are reported as one.
    let layout = Layout::from_size_align(bytes, 1).unwrap_or(Layout::new::<u8>());
    handle_alloc_error(layout)
}
