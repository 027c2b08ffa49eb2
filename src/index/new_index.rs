//! The pages of an index that is being built.
//!
//! The first one is the metapage, which comes last.

use super::session;
use crate::pg::error::{Error, Result, SqlState};
use crate::pg::new_pages::NewPages;
use crate::pg::page_batches::PageBatches;
use crate::pg::page_file::PageFile;
use crate::pg::relation::{PAGE_BYTES, Relation};
use crate::pg::wal;
use pg_bloom_core::index::page::{SPECIAL_BYTES, Sink};

/// A new index.
pub struct NewIndex {
    relation: Relation,
    pages: NewPages,
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
        Ok(NewIndex { relation, pages: NewPages::begin(relation) })
    }

    /// The file of its pages, for [`IndexFile`].
    pub fn file(&self) -> PageFile {
        self.pages.file()
    }

    /// Writes the metapage, when all other pages are in the file.
    pub fn finish(self, meta: &[u8]) {
        self.pages.finish(meta, SPECIAL_BYTES);
        session::forget(self.relation);
    }
}

/// The pages of a new index behind its metapage, one by one.
pub struct IndexFile(PageBatches);

impl IndexFile {
    /// Begins, with a place for the metapage. A worker may write the pages if there are many.
    pub fn begin(file: PageFile, may_have_writer: bool) -> IndexFile {
        IndexFile(PageBatches::new(file, SPECIAL_BYTES, may_have_writer))
    }

    /// Writes what was not written yet.
    pub fn finish(self) {
        self.0.finish();
    }
}

impl Sink for IndexFile {
    type Error = Error;

    fn write(&mut self, _number: u32, page: &[u8]) -> Result<()> {
        self.0.add(page);
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
