//! What a call site does at most once in a statement.
//!
//! A call site is what PostgreSQL prepares: the place of a function in an expression, or of an aggregate in a plan. It
//! may live for shorter than what the client sent as a statement (a statement in a function, executed for each row, is
//! prepared each time), and for longer (an expression of PL/pgSQL lives for the transaction). So what was done is
//! forgotten when either ends: the site's memory, or that of the portal that runs the statement. Where there is no
//! portal, as in parallel workers, the transaction's memory stands for it.

use super::call::Call;
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use std::cell::RefCell;

/// Addresses of call sites, and of the memory of the statements in which they did it.
struct Done {
    sites: Vec<(usize, usize)>,
    /// Statements whose end will be noticed.
    statements: Vec<usize>,
}

thread_local! {
    static DONE: RefCell<Done> = const { RefCell::new(Done { sites: Vec::new(), statements: Vec::new() }) };
}

/// Lives in the memory of a call site.
struct Site(usize);

impl Drop for Site {
    fn drop(&mut self) {
        forget(|done| done.sites.retain(|&(site, _)| site != self.0));
    }
}

/// Lives in the memory of a statement.
struct Statement(usize);

impl Drop for Statement {
    fn drop(&mut self) {
        forget(|done| {
            done.sites.retain(|&(_, statement)| statement != self.0);
            done.statements.retain(|&statement| statement != self.0);
        });
    }
}

/// Memory may be freed at any time, so this must not fail.
fn forget(change: impl FnOnce(&mut Done)) {
    let _ = DONE.try_with(|done| {
        if let Ok(mut done) = done.try_borrow_mut() {
            change(&mut done);
        }
    });
}

/// The memory of the statement that is being executed.
fn statement() -> pg_sys::MemoryContext {
    // SAFETY: reading globals; within a function there is a transaction.
    unsafe { if pg_sys::PortalContext.is_null() { pg_sys::TopTransactionContext } else { pg_sys::PortalContext } }
}

/// Whether this call site did it in this statement.
pub fn was_done(call: &Call) -> bool {
    let Some((site, _)) = call.site() else { return false };
    DONE.with_borrow(|done| done.sites.contains(&(site, statement() as usize)))
}

/// Remembers that this call site did it in this statement.
pub fn done(call: &Call) {
    let Some((site, context)) = call.site() else { return };
    let statement = statement();
    let entry = (site, statement as usize);
    if statement.is_null() || DONE.with_borrow(|done| done.sites.contains(&entry)) {
        return;
    }
    // What is noticed before it is entered is noticed at any rate.
    PgMemoryContexts::For(context).leak_and_drop_on_delete(Site(site));
    if DONE.with_borrow(|done| !done.statements.contains(&entry.1)) {
        PgMemoryContexts::For(statement).leak_and_drop_on_delete(Statement(entry.1));
        DONE.with_borrow_mut(|done| done.statements.push(entry.1));
    }
    DONE.with_borrow_mut(|done| done.sites.push(entry));
}
