//! The pages of an index that is being built.
//!
//! The first one is the metapage, which comes last: until then it has zeros.

use super::session;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::storage::buffer::{self, Pin};
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::chain::META_PAGE;
use pg_bloom_core::index::page::{PAGE_HEADER_BYTES, SPECIAL_BYTES, Sink};

/// A new index, whose pages behind the metapage are written one by one.
pub struct NewIndex {
    relation: Relation,
}

impl NewIndex {
    /// Begins with an index without pages.
    ///
    /// # Errors
    /// 55000 if it has some.
    pub fn begin(relation: Relation) -> Result<NewIndex> {
        if relation.pages() > 0 {
            let message = format!("index \"{}\" already contains data", relation.name());
            return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        buffer::extend(relation, META_PAGE + 1);
        Ok(NewIndex { relation })
    }

    /// Writes the metapage, when all other pages were written.
    pub fn finish(self, meta: &[u8]) {
        let mut pin = Pin::read(self.relation, META_PAGE);
        wal::change(self.relation, &mut [Edit::new(&mut pin.exclusive(), Change::Page(meta, SPECIAL_BYTES))]);
        session::forget(self.relation);
    }
}

impl Sink for NewIndex {
    type Error = Error;

    fn write(&mut self, number: u32, bytes: &[u8]) -> Result<()> {
        let (payload, special) = bytes.split_at(PAGE_BYTES - SPECIAL_BYTES);
        buffer::extend(self.relation, number + 1);
        let mut pin = Pin::read(self.relation, number);
        let mut page = pin.exclusive();
        // A page without a hole, since it will get more bits.
        wal::make_empty(self.relation, &mut page, special);
        let payload = Change::Piece(PAGE_HEADER_BYTES as u16, &payload[PAGE_HEADER_BYTES..]);
        wal::change(self.relation, &mut [Edit::new(&mut page, payload)]);
        Ok(())
    }
}

/// A page with what a directory writes on it: the metapage.
pub fn meta_page(write: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    write(&mut page);
    page
}

/// Writes what an unlogged index is after a crash: one without rows, of which there is only the metapage.
pub fn write_empty(relation: Relation, meta: &[u8]) {
    wal::write_init_page(relation, meta, SPECIAL_BYTES);
}
