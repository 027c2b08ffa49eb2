//! What a session keeps of an index between uses: where its tiles are, and what it found out about
//! its column.
//!
//! It is found by the index and a number in the relation cache, which drops the number whenever
//! anything about the index changes. Tiles never move: a directory may only lack some that were
//! added since, which four bytes of the metapage tell. Its pages are read and changed under the
//! lock of that, which comes first.

use super::page::{BelowMeta, IndexPages, PAGE_SIZE, damaged};
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
    /// The [`Kept`] of each index's kind, by the index's identifier.
    static KEPT: RefCell<BTreeMap<u32, Rc<dyn Any>>> = const { RefCell::new(BTreeMap::new()) };
    /// The last number given.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// What is known of the column of an index of some kind.
pub trait IndexColumn: Sized + 'static {
    type Directory: IndexDirectory + 'static;

    /// Describes the column of an index. Fails with 0A000 if such a column can't be in an index of this
    /// kind, or can't any more.
    fn of(relation: Relation) -> Result<Self>;
}

/// What the session keeps of an index between statements.
struct Kept<K: IndexColumn> {
    file: File,
    /// What its entry of the relation cache has, and nothing else that was kept ever had.
    number: u64,
    kind: K,
    directory: RefCell<Rc<K::Directory>>,
    /// How many pages the file has at least.
    pages: Cell<u32>,
}

/// An open index, with what the session has kept of it.
pub struct Index<'r, K: IndexColumn> {
    pub relation: Relation<'r>,
    kept: Rc<Kept<K>>,
}

impl<'r, K: IndexColumn> Index<'r, K> {
    /// Returns what the session has kept of an index, or reads it. Fails with XX002 if the index is
    /// damaged, and as [`IndexColumn::of`] does.
    pub fn of(relation: Relation<'r>) -> Result<Index<'r, K>> {
        let number = relation.cached_number();
        let known = KEPT.with(|kept| kept.borrow().get(&relation.oid().to_u32()).cloned());
        match known.and_then(|kept| kept.downcast::<Kept<K>>().ok()) {
            Some(kept) if kept.number == number && kept.file == relation.file() => {
                Ok(Index { relation, kept })
            }
            _ => Index::load(relation),
        }
    }

    #[cold]
    fn load(relation: Relation<'r>) -> Result<Index<'r, K>> {
        if relation.is_of_other_session() {
            let message = "cannot access temporary indexes of other sessions";
            return Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message));
        }
        let kind = K::of(relation)?;
        let pages = Cell::new(0);
        let own = IndexPages::new(relation, &pages);
        let directory = RefCell::new(Rc::new(read_directory(&own.meta()?.shared(), own)?));
        let number = LAST.with(|last| last.replace(last.get() + 1)) + 1;
        let kept = Rc::new(Kept { file: relation.file(), number, kind, directory, pages });
        KEPT.with(|all| {
            let mut all = all.borrow_mut();
            if all.len() >= MAX_REMEMBERED {
                all.clear();
            }
            all.insert(relation.oid().to_u32(), kept.clone());
        });
        relation.set_cached_number(number);
        Ok(Index { relation, kept })
    }

    pub fn kind(&self) -> &K {
        &self.kept.kind
    }

    /// A number, from one up, that no other file has had in this session, nor this one with other
    /// contents.
    pub fn number(&self) -> u64 {
        self.kept.number
    }

    pub fn pages(&self) -> IndexPages<'_> {
        IndexPages::new(self.relation, &self.kept.pages)
    }

    /// Where the tiles are, as far as this session knows: for those that add to the index.
    pub fn known_directory(&self) -> Rc<K::Directory> {
        self.kept.directory.borrow().clone()
    }

    /// Where the tiles are now: for those that ask. XX002 for damage.
    pub fn directory(&self) -> Result<Rc<K::Directory>> {
        self.directory_under(&self.pages().meta()?.shared())
    }

    /// Where the tiles are, by the metapage, which the caller has locked. XX002 for damage.
    pub fn directory_under(&self, meta: &[u8]) -> Result<Rc<K::Directory>> {
        let known = self.known_directory();
        if known.chain().is_current(meta) {
            return Ok(known);
        }
        Ok(self.remember(read_directory(meta, self.pages())?))
    }

    fn remember(&self, directory: K::Directory) -> Rc<K::Directory> {
        let directory = Rc::new(directory);
        *self.kept.directory.borrow_mut() = directory.clone();
        directory
    }

    /// Writes a newer directory, with one record: the metapage, which the caller has locked, and
    /// the directory page that changes. Returns it. If the file lacks that page, only extends the
    /// file, and returns the directory so far. XX002 if the page was not allocated.
    pub fn write_directory(
        &self,
        mut meta: Exclusive,
        growth: Growth<K::Directory>,
    ) -> Result<Rc<K::Directory>> {
        let Growth { directory, page } = growth;
        let metapage = directory.metapage();
        let meta_change = Change::Page(&metapage);
        match &page {
            Some(page) if !self.pages().has(page.number) => {
                // Up to there are the pages of all tiles, which may be many. The metapage is not
                // locked for that.
                drop(meta);
                self.pages().extend_to(page.number, directory.chain())?;
                return Ok(self.known_directory());
            }
            Some(page) => {
                let pin = self.pages().existing(page.number, directory.chain())?;
                let mut locked = pin.exclusive();
                let page_edit = Edit::new(&mut locked, Change::Page(&page.bytes));
                wal::change(&mut [Edit::new(&mut meta, meta_change), page_edit]);
            }
            None => wal::change(&mut [Edit::new(&mut meta, meta_change)]),
        }
        Ok(self.remember(directory))
    }

    pub fn checked<T>(&self, found: std::result::Result<T, Damage>) -> Result<T> {
        found.map_err(|damage| damaged(self.relation, damage))
    }

    /// What `read` makes of the bytes of a page; `None` is one behind the end of the file. XX002
    /// for damage.
    pub fn read<T>(
        &self,
        page: u32,
        read: impl FnOnce(Option<&[u8]>) -> std::result::Result<T, Damage>,
    ) -> Result<T> {
        self.checked(self.pages().read(page, read))
    }
}

/// What the metapage says, which is locked, and the pages that it names.
fn read_directory<D: IndexDirectory>(meta: &[u8], pages: IndexPages) -> Result<D> {
    let relation = pages.relation;
    D::read(&mut BelowMeta { meta, pages }, PAGE_SIZE).map_err(|damage| damaged(relation, damage))
}

/// Forgets what is kept of an index: its file gets other contents.
pub fn forget(relation: Relation) {
    relation.set_cached_number(0);
    KEPT.with(|kept| kept.borrow_mut().remove(&relation.oid().to_u32()));
}
