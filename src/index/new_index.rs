//! The pages of an index that is being built.
//!
//! The first one is the metapage, which comes last.

use super::session;
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::storage::bulk_write::BulkWrite;
use crate::pg::storage::relation::{PAGE_BYTES, Relation};
use crate::pg::storage::wal;
use pg_bloom_core::index::page::PageSink;

/// A new index, whose pages behind the metapage are written one by one.
pub struct NewIndex<'r> {
    relation: Relation<'r>,
    pages: BulkWrite<'r>,
}

impl<'r> NewIndex<'r> {
    /// Begins with an index without pages.
    ///
    /// # Errors
    /// 55000 if it has some.
    pub fn begin(relation: Relation<'r>) -> Result<NewIndex<'r>> {
        if relation.pages() > 0 {
            let message = format!("index \"{}\" already contains data", relation.name());
            return Err(Error::new(SqlState::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        Ok(NewIndex { relation, pages: BulkWrite::start(relation) })
    }

    /// Writes the metapage, when all other pages were written.
    pub fn finish(self, meta: &[u8]) {
        self.pages.finish(meta);
        session::forget(self.relation);
    }
}

impl PageSink for NewIndex<'_> {
    type Error = Error;

    fn write(&mut self, _number: u32, page: &[u8]) -> Result<()> {
        self.pages.write(page);
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
    wal::write_init_page(relation, meta);
}
