//! What a session keeps of an index between statements: its directory, which says where the tiles
//! are, and a description of its column.
//!
//! Each time the session reads both, it gives that reading a number, and puts the number into
//! PostgreSQL's relation cache, which drops it whenever anything about the index changes. What the
//! session keeps is valid as long as its number is still there. Tiles never move, so a directory
//! that was read earlier can only lack tiles that were added since. Four bytes of the metapage tell
//! whether it does. The pages of the directory are read and changed under the lock of the metapage,
//! which is taken first.

use super::page::{BelowMeta, IndexFile, IndexPages, PAGE_SIZE, damaged};
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::storage::buffer::Exclusive;
use crate::pg::storage::relation::{File, Relation};
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::chain::{Growth, IndexDirectory};
use pg_bloom_core::index::page::Damage;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Indexes that a session remembers; when there are more, all are forgotten.
const MAX_REMEMBERED: usize = 4096;

session_locals! {
    /// A [`RememberedIndex`] for each index, by the index's OID.
    static REMEMBERED: RefCell<BTreeMap<u32, Rc<dyn Any>>> = const { RefCell::new(BTreeMap::new()) };
    /// How often this session has read an index's column and directory, over all indexes.
    static NUM_LOADS: Cell<u64> = const { Cell::new(0) };
}

/// What the session keeps of an index between statements.
struct RememberedIndex<C: IndexColumn> {
    file: File,
    /// What [`NUM_LOADS`] was when this was read. No other index, and no other file, has it.
    load_number: u64,
    column: C,
    directory: RefCell<Rc<C::Directory>>,
    index_file: IndexFile,
}

/// An open index, with what the session remembers of it.
pub struct OpenIndex<'r, C: IndexColumn> {
    pub relation: Relation<'r>,
    remembered: Rc<RememberedIndex<C>>,
    /// How many of its pages the session had read before it was opened.
    pages_read_before: u64,
}

impl<'r, C: IndexColumn> OpenIndex<'r, C> {
    /// Returns an open index with what this session remembers of it: a description of its column,
    /// and its directory, the list of its tiles. Reads both if the session has none, or if the
    /// index was altered or got another file since. The directory may lack tiles that other
    /// sessions have added.
    ///
    /// Fails with XX002 if the index is damaged, and with 0A000 if it belongs to another session,
    /// or its column can't be in such an index.
    pub fn open(relation: Relation<'r>) -> Result<OpenIndex<'r, C>> {
        // 0, which no reading has, if the index has changed since it was read.
        let load_number = relation.cached_number();
        let remembered =
            REMEMBERED.with(|indexes| indexes.borrow().get(&relation.oid().to_u32()).cloned());
        match remembered.and_then(|index| index.downcast::<RememberedIndex<C>>().ok()) {
            Some(index) if index.load_number == load_number && index.file == relation.file() => {
                let pages_read_before = index.index_file.pages_read();
                Ok(OpenIndex { relation, remembered: index, pages_read_before })
            }
            _ => OpenIndex::load(relation),
        }
    }

    /// Reads an index's directory, the list of its tiles, and the description of its column from
    /// the catalogs, and returns the open index. Locks the metapage for sharing while the directory
    /// is read.
    ///
    /// The session remembers both for later statements, together with a number for this reading.
    /// The number is also put into PostgreSQL's relation cache, which drops it when the index
    /// changes: so later statements notice the change. A session remembers up to 4,096 indexes;
    /// before one more is added, all others are forgotten.
    ///
    /// Fails as [`OpenIndex::open`] does.
    #[cold]
    fn load(relation: Relation<'r>) -> Result<OpenIndex<'r, C>> {
        if relation.is_of_other_session() {
            let message = "cannot access temporary indexes of other sessions";
            return Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message));
        }

        let column = C::describe_column(relation)?;
        let index_file = IndexFile::default();
        let index_pages = IndexPages::new(relation, &index_file);
        let directory = read_directory(&index_pages.meta()?.shared(), index_pages)?;

        let load_number = NUM_LOADS.with(|loads| {
            loads.set(loads.get() + 1);
            loads.get()
        });
        let remembered = Rc::new(RememberedIndex {
            file: relation.file(),
            load_number,
            column,
            directory: RefCell::new(Rc::new(directory)),
            index_file,
        });
        REMEMBERED.with(|indexes| {
            let mut indexes = indexes.borrow_mut();
            if indexes.len() >= MAX_REMEMBERED {
                indexes.clear();
            }
            indexes.insert(relation.oid().to_u32(), remembered.clone());
        });
        relation.set_cached_number(load_number);
        Ok(OpenIndex { relation, remembered, pages_read_before: 0 })
    }

    /// Returns how many of its pages were read since it was opened.
    pub fn pages_read(&self) -> u64 {
        self.remembered.index_file.pages_read() - self.pages_read_before
    }

    /// Returns the description of the index's column.
    pub fn column(&self) -> &C {
        &self.remembered.column
    }

    /// Returns the number, from 1 up, of the reading by which this session knows the index. No two
    /// indexes have the same, and an index whose file was replaced or emptied gets another one.
    pub fn load_number(&self) -> u64 {
        self.remembered.load_number
    }

    /// Returns the pages of the index, with nothing announced.
    pub fn pages(&self) -> IndexPages<'_> {
        IndexPages::new(self.relation, &self.remembered.index_file)
    }

    /// Returns the directory as this session has read it last. It may lack tiles that other
    /// sessions have added since, so it is for insertion, not for lookups.
    pub fn known_directory(&self) -> Rc<C::Directory> {
        self.remembered.directory.borrow().clone()
    }

    /// Returns the directory as it is now, with all tiles. Locks the metapage while it looks. Fails
    /// with XX002 if the index is damaged.
    pub fn directory(&self) -> Result<Rc<C::Directory>> {
        self.directory_under(&self.pages().meta()?.shared())
    }

    /// Returns the directory as it is now, by the contents of the metapage, which the caller has
    /// locked. Fails with XX002 if the index is damaged.
    pub fn directory_under(&self, meta: &[u8]) -> Result<Rc<C::Directory>> {
        let known = self.known_directory();
        if known.chain().is_current(meta) {
            return Ok(known);
        }
        Ok(self.remember(read_directory(meta, self.pages())?))
    }

    /// Remembers a directory that was read or written, and returns it.
    fn remember(&self, directory: C::Directory) -> Rc<C::Directory> {
        let directory = Rc::new(directory);
        *self.remembered.directory.borrow_mut() = directory.clone();
        directory
    }

    /// Writes a directory that has grown, the list of an index's tiles: the metapage, and the page
    /// behind it that lists tiles for which the metapage has no room, if there is a new one. Both
    /// changes have one WAL record. Returns the new directory, which the session keeps.
    ///
    /// `meta` is the metapage under the caller's exclusive lock, which ends here. If the file
    /// doesn't have the other page yet, this only unlocks the metapage, extends the file and
    /// returns the directory as it was: the caller plans the growth again. Fails with XX002 if the
    /// index is damaged.
    pub fn write_directory(
        &self,
        mut meta: Exclusive,
        growth: Growth<C::Directory>,
    ) -> Result<Rc<C::Directory>> {
        let Growth { directory, page } = growth;
        let metapage = directory.metapage();
        let meta_change = Change::Page(&metapage);
        match &page {
            Some(page) if !self.pages().has(page.number) => {
                // Before that page come the pages of all tiles, which may be many, and nobody
                // should wait for the metapage meanwhile.
                drop(meta);
                self.pages().extend_to(page.number, directory.chain())?;
                return Ok(self.known_directory());
            }
            Some(page) => {
                let pin = self.pages().existing(page.number, directory.chain())?;
                let mut locked = pin.exclusive();
                let page_edit = Edit::prepare(&mut locked, Change::Page(&page.bytes));
                wal::change(&mut [Edit::prepare(&mut meta, meta_change), page_edit]);
            }
            None => wal::change(&mut [Edit::prepare(&mut meta, meta_change)]),
        }
        Ok(self.remember(directory))
    }

    /// Returns what was found in the index's pages, or an error with the index's name. Fails with
    /// XX002 if damage was found.
    pub fn checked<T>(&self, found: std::result::Result<T, Damage>) -> Result<T> {
        found.map_err(|damage| damaged(self.relation, damage))
    }

    /// Returns what `read` returns for the bytes of a page, which is locked meanwhile; `None`
    /// stands for a page behind the end of the file. Fails with XX002 if `read` finds damage.
    pub fn read<T>(
        &self,
        page: u32,
        read: impl FnOnce(Option<&[u8]>) -> std::result::Result<T, Damage>,
    ) -> Result<T> {
        self.checked(self.pages().read(page, read))
    }
}

/// Reads a directory from the metapage, which is locked, and from the pages that it names. Fails
/// with XX002 if they are damaged.
fn read_directory<D: IndexDirectory>(meta: &[u8], pages: IndexPages) -> Result<D> {
    let relation = pages.relation;
    D::read(&mut BelowMeta { meta, pages }, PAGE_SIZE).map_err(|damage| damaged(relation, damage))
}

/// Forgets what this session remembers of an index, whose file is about to get other contents. Other
/// sessions learn by PostgreSQL's invalidation messages that the index has changed.
pub fn forget(relation: Relation) {
    relation.set_cached_number(0);
    REMEMBERED.with(|indexes| indexes.borrow_mut().remove(&relation.oid().to_u32()));
}

/// What this session remembers of the column of an index. Each kind of index, over ranges of a
/// table's pages or over a column of filters, has a type of its own for that.
pub trait IndexColumn: Sized + 'static {
    /// The list of the tiles of such an index.
    type Directory: IndexDirectory + 'static;

    /// Returns a description of the column of an index, by the catalogs. Fails with 0A000 if such a
    /// column can't be in an index of this kind, or can't any more.
    fn describe_column(index: Relation) -> Result<Self>;
}
