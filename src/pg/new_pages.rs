//! The pages of a relation that is being made, which nobody else sees.
//!
//! They go to the file without the shared buffers, as those of PostgreSQL's B-trees do: through the buffers each page
//! would be written as zeros first, and once more when its buffer is needed. A batch of them is logged with one record
//! while it is in the processor's cache, and then written:
//!
//! ```text
//! page ─▶ batch ─▶ WAL ─▶ file ─▶ the checkpointer is told of a file to bring to disk
//!           └──▶ a worker, which does the rest when there are many pages
//! ```
//!
//! A crash replays the WAL from where the last complete checkpoint began. A page whose record is older than that must
//! be on disk then; but a checkpoint that begins between the record and the writing may not know of the page. So if one
//! began since the first record, the file is brought to disk at the end, before the transaction can commit. A later one
//! has been told of all pages.

use super::buffer::Pin;
use super::page_file::PageFile;
use super::relation::{Fork, PAGE_BYTES, Relation};
use super::wal::{critical_section, fill};
use pgrx::pg_sys;

/// A relation without pages, whose file gets all of them but the first by [`super::page_batches`].
pub struct NewPages {
    relation: Relation,
    file: PageFile,
    /// Where a crash would have begun to replay the WAL before the first page.
    redo: u64,
}

impl NewPages {
    /// Begins, before anything is written.
    pub fn begin(relation: Relation) -> NewPages {
        // SAFETY: reads where the last checkpoint began.
        let redo = unsafe { pg_sys::GetRedoRecPtr() };
        NewPages { relation, file: PageFile::of(relation), redo }
    }

    /// The file that pages are written to.
    pub fn file(&self) -> PageFile {
        self.file
    }

    /// Sets the first page, when all are in the file.
    pub fn finish(self, first: &[u8], special_bytes: usize) {
        assert_eq!(first.len(), PAGE_BYTES, "the size of a page");
        let needs_wal = self.relation.needs_wal();
        let mut pin = Pin::read(self.relation, Fork::Main, 0);
        let mut page = pin.exclusive();
        critical_section(|| {
            fill(page.bytes_mut(), first, special_bytes);
            // SAFETY: the page is pinned and locked exclusively.
            unsafe {
                pg_sys::MarkBufferDirty(page.number());
                if needs_wal {
                    pg_sys::log_newpage_buffer(page.number(), true);
                }
            }
        });
        // SAFETY: reads where the last checkpoint began.
        if needs_wal && unsafe { pg_sys::GetRedoRecPtr() } != self.redo {
            self.file.sync();
        }
    }
}
