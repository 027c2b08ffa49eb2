//! Rows that were read, and those among them that are handed out.

use super::provider::MOST_ROWS;
use super::raw;
use crate::pg::call::Element;
use pgrx::pg_sys;

/// Pages that the rows of one batch may be on: each stays pinned until the batch is read that follows it.
const MOST_PAGES: usize = 4;

/// Rows of a table, each in a slot of its own.
pub struct Batch {
    slots: [*mut pg_sys::TupleTableSlot; MOST_ROWS],
    elements: [Element; MOST_ROWS],
    /// Rows that were read.
    rows: usize,
    /// Which of them are handed out, how many, and how many were already.
    chosen: [u8; MOST_ROWS],
    len: usize,
    next: usize,
    /// Memory for what asking needs.
    memory: pg_sys::MemoryContext,
}

/// What reading found.
pub struct Read {
    /// Whether the table has no more rows.
    pub is_end: bool,
    /// Rows that the conditions before rejected.
    pub rejected: usize,
    /// Rows whose column is NULL.
    pub nulls: usize,
}

impl Batch {
    /// For rows of a table that is being scanned.
    ///
    /// # Safety
    /// The state must be that of the query, and the table one whose slots are those of a heap.
    pub unsafe fn new(state: *mut pg_sys::EState, table: pg_sys::Relation) -> Batch {
        // SAFETY: promised by the caller; the slots live as long as the query.
        unsafe {
            let operations = pg_sys::table_slot_callbacks(table);
            let slots = std::array::from_fn(|_| {
                pg_sys::ExecAllocTableSlot(&mut (*state).es_tupleTable, (*table).rd_att, operations)
            });
            let memory = pg_sys::AllocSetContextCreateInternal(
                pg_sys::CurrentMemoryContext,
                c"pg_bloom rows read ahead".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            let elements = [Element { datum: pg_sys::Datum::null() }; MOST_ROWS];
            Batch { slots, elements, rows: 0, chosen: [0; MOST_ROWS], len: 0, next: 0, memory }
        }
    }

    /// The next row to hand out.
    #[inline(always)]
    pub fn next(&mut self) -> Option<*mut pg_sys::TupleTableSlot> {
        let &chosen = self.chosen[..self.len].get(self.next)?;
        self.next += 1;
        self.slots.get(usize::from(chosen)).copied()
    }

    /// Reads up to so many rows that the conditions `before` pass, with a value in this column.
    ///
    /// # Safety
    /// The scan must be one of the table, and the conditions prepared for it. For [`raw::guarded`].
    pub unsafe fn read(
        &mut self,
        scan: pg_sys::TableScanDesc,
        most: usize,
        column: i16,
        before: *mut pg_sys::ExprState,
        context: *mut pg_sys::ExprContext,
    ) -> Read {
        let mut read = Read { is_end: false, rejected: 0, nulls: 0 };
        let (mut pages, mut last) = (0, 0);
        (self.rows, self.len, self.next) = (0, 0, 0);
        // SAFETY: promised by the caller.
        unsafe {
            while self.rows < most.min(MOST_ROWS) {
                let slot = self.slots[self.rows];
                if !raw::next_row(scan, slot) {
                    read.is_end = true;
                    break;
                }
                let page = keep(slot);
                if !raw::passes(before, context, slot) {
                    read.rejected += 1;
                    continue;
                }
                let Some(datum) = raw::column(slot, column) else {
                    read.nulls += 1;
                    continue;
                };
                self.elements[self.rows] = Element { datum };
                self.rows += 1;
                if page != last {
                    (pages, last) = (pages + 1, page);
                    if pages == MOST_PAGES {
                        break;
                    }
                }
            }
        }
        read
    }

    /// Chooses those rows for which `ask` says so. Returns how many it rejected.
    pub fn choose<E>(&mut self, ask: impl FnOnce(&[Element], &mut [bool]) -> Result<(), E>) -> Result<usize, E> {
        let mut answers = [false; MOST_ROWS];
        let rows = self.rows;
        if rows > 0 {
            // SAFETY: made by `new`; nothing of the batch before is used any more.
            let before = unsafe {
                pg_sys::MemoryContextReset(self.memory);
                pg_sys::MemoryContextSwitchTo(self.memory)
            };
            ask(&self.elements[..rows], &mut answers[..rows])?;
            // SAFETY: the memory that was current.
            unsafe { pg_sys::MemoryContextSwitchTo(before) };
        }
        for (row, &answer) in answers[..rows].iter().enumerate() {
            self.chosen[self.len] = row as u8;
            self.len += usize::from(answer);
        }
        Ok(rows - self.len)
    }

    /// Lets go of all rows.
    pub fn clear(&mut self) {
        (self.rows, self.len, self.next) = (0, 0, 0);
        for &slot in &self.slots {
            // SAFETY: a slot made by `new`, with the operations of its kind; it lets go of its page and its memory.
            unsafe {
                let clear = (*(*slot).tts_ops).clear.expect("slots can be cleared");
                guarded!(clear(slot));
            }
        }
    }
}

/// Makes a slot keep its row when the scan goes on, and says which buffer it is in. The scan has one place for the head
/// of its current row, to which the slot points.
///
/// # Safety
/// The slot must be one of a heap and have a row that its scan has just read.
#[inline(always)]
unsafe fn keep(slot: *mut pg_sys::TupleTableSlot) -> pg_sys::Buffer {
    let slot: *mut pg_sys::BufferHeapTupleTableSlot = slot.cast();
    // SAFETY: promised by the caller. The slot has the buffer pinned and a place of its own for the head; PostgreSQL
    // does the same when it copies such a slot.
    unsafe {
        (*slot).base.tupdata = *(*slot).base.tuple;
        (*slot).base.tuple = &mut (*slot).base.tupdata;
        (*slot).buffer
    }
}
