//! Rows that were read ahead, and those among them that are handed out.

use super::condition::ProbeState;
use crate::pg::call::Element;
use crate::pg::method::table::row_at;
use crate::probe::MOST_AT_ONCE;
use pgrx::pg_sys;

/// Rows that are read for one batch at most, with those that are rejected: then it is asked again
/// whether the query was cancelled, and memory is given back, that of arrays included, which isn't
/// counted below.
const MOST_READ: usize = 8 * MOST_AT_ONCE;
/// Pages that the rows of one batch may be on: each stays pinned until the batch is read that
/// follows it.
const MOST_PAGES: usize = 4;
/// Bytes of memory for elements after which a batch reads no more rows.
const MOST_BYTES: usize = 1 << 20;

/// Rows of a table, each in a slot of its own. All may be zero until it is made.
pub struct Batch {
    /// The slot that the scan of the table reads into.
    row: *mut pg_sys::TupleTableSlot,
    slots: [*mut pg_sys::TupleTableSlot; MOST_AT_ONCE],
    elements: [Element; MOST_AT_ONCE],
    /// Rows that were read and have an element.
    len: usize,
    /// Whether the filter may have each of them, and how many were looked at to be handed out.
    answers: [bool; MOST_AT_ONCE],
    next: usize,
    /// Rows to read next: few at first, as no more may be wanted.
    size: usize,
    /// Whether the table has no more rows.
    pub is_end: bool,
    /// Has the memory of the elements, and of what probing needs.
    context: *mut pg_sys::ExprContext,
    /// Conditions that are evaluated before ours; null for none.
    before: *mut pg_sys::ExprState,
    condition: ProbeState,
}

impl Batch {
    /// # Safety
    /// The state must be that of the query, which has the table open, and nothing be done with this
    /// when that has ended. The conditions must be prepared for its rows.
    pub unsafe fn new(
        state: *mut pg_sys::EState,
        table: pg_sys::Relation,
        before: *mut pg_sys::ExprState,
        condition: ProbeState,
    ) -> Batch {
        // SAFETY: promised by the caller; the slots live as long as the query.
        unsafe {
            let slot = || {
                let slot = pg_sys::table_slot_create(table, &mut (*state).es_tupleTable);
                // Copying a row into a slot leaves this as it is.
                (*slot).tts_tableOid = (*table).rd_id;
                slot
            };
            Batch {
                row: slot(),
                slots: std::array::from_fn(|_| slot()),
                elements: [Element { datum: pg_sys::Datum::null() }; MOST_AT_ONCE],
                len: 0,
                answers: [false; MOST_AT_ONCE],
                next: 0,
                size: 1,
                is_end: false,
                context: pg_sys::CreateExprContext(state),
                before,
                condition,
            }
        }
    }

    /// The next row that the filter may have. Never panics.
    #[inline(always)]
    pub fn next(&mut self) -> Option<*mut pg_sys::TupleTableSlot> {
        let skipped = self
            .answers
            .get(self.next..self.len)?
            .iter()
            .position(|&may_have| may_have)?;
        let slot = self.slots.get(self.next + skipped).copied();
        self.next += skipped + 1;
        slot
    }

    /// Reads rows that pass the conditions before ours and have an element, and asks which of them
    /// the filter may have. Returns how many conditions before ours reject, and how many have an
    /// element that is NULL or not in the filter.
    ///
    /// # Safety
    /// The scan must be one of the table.
    pub unsafe fn fill(&mut self, table: pg_sys::TableScanDesc) -> (usize, usize) {
        (self.len, self.next) = (0, 0);
        // SAFETY: promised by the caller; nothing of the batch before is used any more.
        unsafe {
            let memory = (*self.context).ecxt_per_tuple_memory;
            pg_sys::MemoryContextReset(memory);
            let (rejected, nulls) = self.read(table);
            let outside = pg_sys::MemoryContextSwitchTo(memory);
            let answers = &mut self.answers[..self.len];
            if self.len > 0 {
                self.condition.probe(&self.elements[..self.len], answers);
            }
            pg_sys::MemoryContextSwitchTo(outside);
            self.size = (self.size * 2).min(MOST_AT_ONCE);
            (rejected, nulls + answers.iter().filter(|&&may_have| !may_have).count())
        }
    }

    /// Reads rows and evaluates their elements, all under one guard. Returns how many rows
    /// conditions before ours rejected, and how many had no element.
    ///
    /// # Safety
    /// As [`Batch::fill`].
    unsafe fn read(&mut self, table: pg_sys::TableScanDesc) -> (usize, usize) {
        let (mut rejected, mut nulls) = (0, 0);
        let (mut pages, mut last) = (0, pg_sys::InvalidBlockNumber);
        let (size, before, element) = (self.size, self.before, self.condition.element);
        // SAFETY: promised by the caller; `len` stays below `size`, of which there are slots. What
        // is called has the arguments that it expects, and nothing here owns anything.
        unsafe {
            let memory = (*self.context).ecxt_per_tuple_memory;
            let next_row = (*(*(*table).rs_rd).rd_tableam)
                .scan_getnextslot
                .expect("tables can be scanned");
            let copy = (*(*self.row).tts_ops).copyslot.expect("slots can be copied");
            let context = self.context;
            guarded!({
                // What evaluates an expression may change with its first evaluation.
                let evaluate = |expression: *mut pg_sys::ExprState, is_null: &mut bool| {
                    let evaluate = (*expression).evalfunc.unwrap_unchecked();
                    evaluate(expression, context, is_null)
                };
                for _ in 0..MOST_READ {
                    if self.len >= size
                        || pages > MOST_PAGES
                        || (*memory).mem_allocated > MOST_BYTES
                    {
                        break;
                    }
                    if !next_row(table, pg_sys::ScanDirection::ForwardScanDirection, self.row) {
                        self.is_end = true;
                        break;
                    }
                    let slot = *self.slots.as_ptr().add(self.len);
                    copy(slot, self.row);
                    let page = row_at(&mut (*slot).tts_tid).page;
                    pages += usize::from(page != last);
                    last = page;
                    (*context).ecxt_scantuple = slot;
                    let (outside, mut is_null) = (pg_sys::CurrentMemoryContext, false);
                    pg_sys::CurrentMemoryContext = memory;
                    if !before.is_null() && evaluate(before, &mut is_null).value() == 0 {
                        rejected += 1;
                    } else {
                        let datum = evaluate(element, &mut is_null);
                        if is_null {
                            nulls += 1;
                        } else {
                            *self.elements.as_mut_ptr().add(self.len) = Element { datum };
                            self.len += 1;
                        }
                    }
                    pg_sys::CurrentMemoryContext = outside;
                }
            });
        }
        (rejected, nulls)
    }

    /// Begins again, perhaps with another filter.
    pub fn restart(&mut self) {
        self.clear();
        self.condition.forget();
        (self.size, self.is_end) = (1, false);
    }

    /// Lets go of all rows.
    pub fn clear(&mut self) {
        (self.len, self.next) = (0, 0);
        for &slot in self.slots.iter().chain([&self.row]) {
            // SAFETY: a slot made by `new`, which lets go of its page and its memory.
            unsafe {
                let clear = (*(*slot).tts_ops).clear.expect("slots can be cleared");
                guarded!(clear(slot));
            }
        }
    }
}
