//! Row pages: the rows that the slots of tiles belong to, and which slots are free.
//!
//! ```text
//! payload    │ state of each slot, a byte │ row of each slot: page u32, line u16 │
//!              0                            R = payload / 7
//! ```

use crate::index::page::{Damage, PageKind, PageNumber, PageSize, RowId, Special};

/// What a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It belongs to no row, and its blocks may be anything.
    Free = 0,
    /// It belongs to an uncommitted row, and its blocks are being written.
    Claimed = 1,
    /// It belongs to a row.
    Used = 2,
}

/// Slots that a row page has room for.
pub(super) const fn room(size: PageSize) -> u16 {
    (size.payload_bytes() / (1 + RowId::BYTES)) as u16
}

/// A row page and the tiles that use it. A change of it is a byte: its offset in the page, and its
/// new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPage {
    pub page: PageNumber,
    /// The number of the group that it belongs to.
    pub group: u32,
    /// How many slots the tiles have so far.
    pub slots: u16,
    pub size: PageSize,
}

impl RowPage {
    pub const fn special(&self) -> Special {
        Special { kind: PageKind::Rows, number: self.group }
    }

    fn state_at(&self, slot: u16) -> u16 {
        self.size.payload().start as u16 + slot
    }

    fn row_at(&self, slot: u16) -> u16 {
        self.state_at(room(self.size)) + slot * RowId::BYTES as u16
    }

    /// The page, if it was written. Errors: for another page.
    pub fn written<'p>(&self, page: Option<&'p [u8]>) -> Result<Option<&'p [u8]>, Damage> {
        self.special().written(page, self.size, self.page)
    }

    /// The first free slot. Errors: for another page.
    pub fn first_free(&self, page: Option<&[u8]>) -> Result<Option<u16>, Damage> {
        let Some(page) = self.written(page)? else {
            return Ok((self.slots > 0).then_some(0));
        };
        let states = &page[self.size.payload()][..usize::from(self.slots)];
        Ok(states
            .iter()
            .position(|&state| state == State::Free as u8)
            .map(|slot| slot as u16))
    }

    /// The state of a slot, and its row. Errors: for an unknown state.
    pub fn slot(&self, page: &[u8], slot: u16) -> Result<(State, RowId), Damage> {
        let found = page[usize::from(self.state_at(slot))];
        let state = [State::Free, State::Claimed, State::Used]
            .get(usize::from(found))
            .copied();
        let state = state.ok_or_else(|| Damage::field(self.page, "the state of a slot", found))?;
        let row = page[usize::from(self.row_at(slot))..]
            .first_chunk()
            .expect("a row is in the page");
        Ok((state, RowId::from_bytes(*row)))
    }

    /// Calls `found` with each of these slots that is not free. Errors: for another page, and for
    /// an unknown state.
    pub fn rows(
        &self,
        page: Option<&[u8]>,
        slots: impl Iterator<Item = u16>,
        mut found: impl FnMut(u16, State, RowId),
    ) -> Result<(), Damage> {
        let Some(page) = self.written(page)? else {
            return Ok(());
        };
        for slot in slots {
            let (state, row) = self.slot(page, slot)?;
            if state != State::Free {
                found(slot, state, row);
            }
        }
        Ok(())
    }

    /// The changes that give a free slot to a row, before its blocks are written. Other sessions
    /// don't take it then, and lookups don't find it yet. After a crash or an error it stays
    /// claimed by a dead row, and VACUUM frees it.
    pub fn claim(&self, slot: u16, row: RowId) -> [(u16, u8); 1 + RowId::BYTES] {
        let ([a, b, c, d, e, f], at) = (row.to_bytes(), self.row_at(slot));
        let claimed = (self.state_at(slot), State::Claimed as u8);
        [
            claimed,
            (at, a),
            (at + 1, b),
            (at + 2, c),
            (at + 3, d),
            (at + 4, e),
            (at + 5, f),
        ]
    }

    /// The change after which lookups find the row of a claimed slot.
    pub fn publish(&self, slot: u16) -> (u16, u8) {
        (self.state_at(slot), State::Used as u8)
    }

    pub fn free(&self, slot: u16) -> (u16, u8) {
        (self.state_at(slot), State::Free as u8)
    }
}
