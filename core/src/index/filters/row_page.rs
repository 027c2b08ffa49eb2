//! Row pages: the rows that the slots of tiles belong to, and which slots are free.
//!
//! ```text
//! payload    │ state of each slot, a byte │ row of each slot: page u32, line u16 │
//!              0                            R = payload / 7
//! ```

use crate::index::page::{ByteChange, Damage, PageKind, PageNumber, PageSize, RowId, Special};

/// Whether a slot belongs to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotState {
    /// It belongs to no row, and its blocks may be anything.
    Free = 0,
    /// It belongs to an uncommitted row, and its blocks are being written.
    Claimed = 1,
    /// It belongs to a row.
    Used = 2,
}

impl SlotState {
    /// Returns the state that a stored code stands for; `None` if it stands for none.
    fn from_code(code: u8) -> Option<SlotState> {
        match code {
            0 => Some(SlotState::Free),
            1 => Some(SlotState::Claimed),
            2 => Some(SlotState::Used),
            _ => None,
        }
    }
}

/// Bytes of a slot in a row page: its state, and its row.
const SLOT_BYTES: usize = 1 + RowId::BYTES;

/// Returns how many slots a row page has room for.
pub(super) const fn slots_per_row_page(size: PageSize) -> u16 {
    (size.payload_bytes() / SLOT_BYTES) as u16
}

/// A row page: where it is, and how many slots the tiles that use it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPage {
    pub number: PageNumber,
    /// The number of the group that it belongs to.
    pub group: u32,
    /// How many slots the tiles have so far: those with smaller numbers.
    pub slots: u16,
    pub size: PageSize,
}

impl RowPage {
    /// Returns what the end of the page says.
    pub const fn special(&self) -> Special {
        Special { kind: PageKind::Rows, number: self.group }
    }

    /// Returns where the state of a slot is in the page.
    fn state_offset(&self, slot: u16) -> u16 {
        self.size.payload().start as u16 + slot
    }

    /// Returns where the row of a slot is in the page: after the states of all slots.
    fn row_offset(&self, slot: u16) -> u16 {
        self.state_offset(slots_per_row_page(self.size)) + slot * RowId::BYTES as u16
    }

    /// Returns the bytes of the page if it was ever written; `None` if it is all zero or after the
    /// end of the file. `page` has the bytes, `None` after the end of the file.
    ///
    /// Fails if it is another page.
    pub fn bytes_if_written<'p>(&self, page: Option<&'p [u8]>) -> Result<Option<&'p [u8]>, Damage> {
        self.special().bytes_if_written(page, self.size, self.number)
    }

    /// Returns the first free slot; `None` if all slots that tiles have are taken. `page` has the
    /// bytes of the page, `None` after the end of the file.
    ///
    /// Fails if it is another page.
    pub fn first_free(&self, page: Option<&[u8]>) -> Result<Option<u16>, Damage> {
        let Some(page) = self.bytes_if_written(page)? else {
            // No slot of a page that was never written is taken.
            return Ok((self.slots > 0).then_some(0));
        };
        let states = &page[self.size.payload()][..usize::from(self.slots)];
        let free = states.iter().position(|&state| state == SlotState::Free as u8);
        Ok(free.map(|slot| slot as u16))
    }

    /// Returns whether a slot, a place for one filter in the index, belongs to a row of the table,
    /// and to which one. The row of a free slot has no meaning. `page` has the bytes of this row
    /// page, which must have been written.
    ///
    /// Fails if the state of the slot has an unknown code.
    pub fn slot(&self, page: &[u8], slot: u16) -> Result<(SlotState, RowId), Damage> {
        let code = page[usize::from(self.state_offset(slot))];
        let state = SlotState::from_code(code)
            .ok_or_else(|| Damage::field(self.number, "the state of a slot", code))?;

        let row = page[usize::from(self.row_offset(slot))..]
            .first_chunk()
            .expect("a row page has room for the row of each slot");
        Ok((state, RowId::from_bytes(*row)))
    }

    /// Calls `visit` for each of these slots, which are places for filters, unless it is free: with
    /// its number, its state, and the row that it belongs to. `page` has the bytes of this row
    /// page, `None` if the file ends before it.
    ///
    /// Fails if these are the bytes of another page, or if the state of a slot has an unknown code.
    pub fn rows(
        &self,
        page: Option<&[u8]>,
        slots: impl Iterator<Item = u16>,
        mut visit: impl FnMut(u16, SlotState, RowId),
    ) -> Result<(), Damage> {
        let Some(page) = self.bytes_if_written(page)? else {
            // All slots of a page that was never written are free.
            return Ok(());
        };
        for slot in slots {
            let (state, row) = self.slot(page, slot)?;
            if state != SlotState::Free {
                visit(slot, state, row);
            }
        }
        Ok(())
    }

    /// Returns the changes of the page that give a free slot to a row, before the blocks of the
    /// slot are written.
    ///
    /// From then on no other session takes the slot, and lookups don't find it yet. After a crash
    /// or an error it stays claimed by a dead row, and VACUUM frees it.
    pub fn claim(&self, slot: u16, row: RowId) -> [ByteChange; SLOT_BYTES] {
        let mut changes = [self.change_state(slot, SlotState::Claimed); SLOT_BYTES];
        let row_changes = &mut changes[1..];
        let offsets = self.row_offset(slot)..;
        for ((change, offset), value) in row_changes.iter_mut().zip(offsets).zip(row.to_bytes()) {
            *change = ByteChange { offset, value };
        }
        changes
    }

    /// Returns the change of the page after which lookups find the row of a claimed slot.
    pub fn publish(&self, slot: u16) -> ByteChange {
        self.change_state(slot, SlotState::Used)
    }

    /// Returns the change of the page after which a slot belongs to no row.
    pub fn free(&self, slot: u16) -> ByteChange {
        self.change_state(slot, SlotState::Free)
    }

    fn change_state(&self, slot: u16, state: SlotState) -> ByteChange {
        ByteChange { offset: self.state_offset(slot), value: state as u8 }
    }
}
