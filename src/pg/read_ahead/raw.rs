//! PostgreSQL's functions and function pointers that are called for each row. Each call through the bindings of the
//! others sets a place to return to after an error, which takes as long as much of what is done for a row. These are
//! called with one such place for many rows, or by frames that own nothing, which an error may jump over.

#![allow(ffi_unwind_calls, reason = "called under `guarded`, once for many rows, or by frames that own nothing")]

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    fn ExecScan(
        node: *mut pg_sys::ScanState,
        next: pg_sys::ExecScanAccessMtd,
        recheck: pg_sys::ExecScanRecheckMtd,
    ) -> *mut pg_sys::TupleTableSlot;
    fn slot_getsomeattrs_int(slot: *mut pg_sys::TupleTableSlot, columns: i32);
    fn MemoryContextReset(context: pg_sys::MemoryContext);
}

/// Runs calls of this file's functions.
///
/// # Safety
/// `work` must own nothing: an error jumps out of it.
pub unsafe fn guarded<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: promised by the caller.
    unsafe { pg_sys::submodules::ffi::pg_guard_ffi_boundary(work) }
}

/// The loop of every scan of a table.
///
/// # Safety
/// The arguments must be those of a scan's state; an error jumps out of it.
pub unsafe fn scan(
    state: *mut pg_sys::ScanState,
    next: pg_sys::ExecScanAccessMtd,
    recheck: pg_sys::ExecScanRecheckMtd,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: promised by the caller.
    unsafe { ExecScan(state, next, recheck) }
}

/// Reads the next row of a table into a slot. Whether there is one.
///
/// # Safety
/// The scan must be of the slot's table. For [`guarded!`].
#[inline(always)]
pub unsafe fn next_row(scan: pg_sys::TableScanDesc, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: promised by the caller; the access method of a table has the function.
    unsafe {
        let next = (*(*(*scan).rs_rd).rd_tableam).scan_getnextslot.unwrap_unchecked();
        next(scan, pg_sys::ScanDirection::ForwardScanDirection, slot)
    }
}

/// The value of a column of a row; `None` if it is NULL.
///
/// # Safety
/// The slot must have a row with such a column. For [`guarded!`].
#[inline(always)]
pub unsafe fn column(slot: *mut pg_sys::TupleTableSlot, column: i16) -> Option<pg_sys::Datum> {
    // SAFETY: promised by the caller: after this as many values are there.
    unsafe {
        if (*slot).tts_nvalid < column {
            slot_getsomeattrs_int(slot, i32::from(column));
        }
        let at = column as usize - 1;
        (!*(*slot).tts_isnull.add(at)).then(|| *(*slot).tts_values.add(at))
    }
}

/// What an expression gives, in the current memory; `None` for NULL.
///
/// # Safety
/// It must be one that is prepared, and have what it refers to in its context. For [`guarded!`].
#[inline(always)]
pub unsafe fn evaluate(expression: *mut pg_sys::ExprState, context: *mut pg_sys::ExprContext) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    // SAFETY: promised by the caller.
    unsafe {
        let evaluate = (*expression).evalfunc.unwrap_unchecked();
        let value = evaluate(expression, context, &mut is_null);
        (!is_null).then_some(value)
    }
}

/// What a function gives; `None` for NULL.
///
/// # Safety
/// Its arguments must be there. For [`guarded!`].
pub unsafe fn call(call: pg_sys::FunctionCallInfo) -> Option<pg_sys::Datum> {
    // SAFETY: promised by the caller.
    unsafe {
        (*call).isnull = false;
        let function = (*(*call).flinfo).fn_addr.unwrap_unchecked();
        let value = function(call);
        (!(*call).isnull).then_some(value)
    }
}

/// Whether a row passes conditions; null for none. Forgets what they needed for the row before.
///
/// # Safety
/// As [`evaluate`]; the slot must have a row.
#[inline(always)]
pub unsafe fn passes(
    conditions: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    if conditions.is_null() {
        return true;
    }
    // SAFETY: promised by the caller.
    unsafe {
        (*context).ecxt_scantuple = slot;
        MemoryContextReset((*context).ecxt_per_tuple_memory);
        let before = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = (*context).ecxt_per_tuple_memory;
        let result = evaluate(conditions, context);
        pg_sys::CurrentMemoryContext = before;
        result.is_some_and(|value| value.value() != 0)
    }
}
