//! The pages of an index that is being built.
//!
//! Nobody else sees it meanwhile, so its pages are written without WAL, and logged as wholes.

use super::page::Failure;
use super::session;
use crate::pg::error::{Error, Result, SqlState};
use crate::pg::relation::{PAGE_BYTES, Relation};
use crate::pg::wal::{self, Filling};
use pg_bloom_core::page::{SPECIAL_BYTES, Sink};

/// A new index, page by page. The first one is the metapage, which comes last.
pub struct NewIndex {
    relation: Relation,
    filling: Filling,
    meta: u32,
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
        let mut filling = Filling::new(relation, SPECIAL_BYTES);
        let meta = filling.reserve();
        Ok(NewIndex { relation, filling, meta })
    }

    /// Writes the metapage, and what is not in the WAL yet.
    pub fn finish(mut self, meta: &[u8]) {
        self.filling.set(self.meta, meta);
        self.filling.finish();
        session::forget(self.relation);
    }
}

impl Sink for NewIndex {
    type Error = Failure;

    fn write(&mut self, _number: u32, page: &[u8]) -> std::result::Result<(), Failure> {
        self.filling.add(page);
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
