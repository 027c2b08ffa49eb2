//! What a session keeps of an index between uses: where its tiles are, and what it found out about its column.
//!
//! It is found by the index and a number in the relation cache, which drops the number whenever anything about the
//! index changes: then what was kept is no longer found. What is kept stays true while it is used: tiles never move. A
//! directory may lack tiles that were added since, which is found out by comparing four bytes of the metapage.
//!
//! A page of the directory is changed only under the lock of the metapage, which comes before all others; so it is read
//! under that lock.

use super::page::{BelowMeta, Failure, IndexPages, PAGE_SIZE};
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::storage::buffer::{Exclusive, Pin};
use crate::pg::storage::relation::{File, Relation};
use crate::pg::storage::wal::{self, Change, Edit};
use pg_bloom_core::index::chain::{META_PAGE, Tiles};
use pg_bloom_core::index::page::{Damage, PageNumber};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Indexes that a session remembers; when there are more, all are forgotten.
const MAX_REMEMBERED: usize = 4096;

session_locals! {
    /// What is kept, by the index's identifier.
    static KEPT: RefCell<BTreeMap<u32, KeptIndex>> = const { RefCell::new(BTreeMap::new()) };
    /// The last number given.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

struct KeptIndex {
    /// What its entry of the relation cache must have.
    number: u64,
    /// A [`Kept`] of its kind.
    kept: Rc<dyn Any>,
}

/// A kind of index: what is known of the column of one.
pub trait IndexColumn: Sized + 'static {
    type Directory: Tiles + 'static;

    /// # Errors
    /// 0A000 for a column that can't be in such an index, or can't any more.
    fn of(relation: Relation) -> Result<Self>;
}

struct Kept<K: IndexColumn> {
    file: File,
    /// The number in its entry of the relation cache, which nothing else that was kept ever had.
    number: u64,
    kind: K,
    directory: RefCell<Rc<K::Directory>>,
    /// How many pages the file has at least.
    pages: Cell<u32>,
}

pub struct Index<'r, K: IndexColumn> {
    relation: Relation<'r>,
    kept: Rc<Kept<K>>,
}

impl<'r, K: IndexColumn> Index<'r, K> {
    /// # Errors
    /// XX002 for damage; those of [`IndexColumn::of`].
    pub fn of(relation: Relation<'r>) -> Result<Index<'r, K>> {
        let number = relation.cached_number();
        let known = KEPT.with(|kept| {
            let kept = kept.borrow();
            let entry = kept.get(&relation.oid().to_u32()).filter(|entry| entry.number == number)?;
            entry.kept.clone().downcast::<Kept<K>>().ok()
        });
        match known {
            Some(kept) if kept.file == relation.file() => Ok(Index { relation, kept }),
            _ => Index::load(relation),
        }
    }

    #[cold]
    fn load(relation: Relation<'r>) -> Result<Index<'r, K>> {
        if relation.is_of_other_session() {
            return Err(Error::new(
                SqlState::ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot access temporary indexes of other sessions",
            ));
        }
        let kind = K::of(relation)?;
        let pages = Cell::new(0);
        let directory = RefCell::new(Rc::new(read_directory(relation, &pages)?));
        let number = LAST.with(|last| {
            last.set(last.get() + 1);
            last.get()
        });
        let kept = Rc::new(Kept { file: relation.file(), number, kind, directory, pages });
        KEPT.with(|all| {
            let mut all = all.borrow_mut();
            if all.len() >= MAX_REMEMBERED {
                all.clear();
            }
            all.insert(relation.oid().to_u32(), KeptIndex { number, kept: kept.clone() });
        });
        relation.set_cached_number(number);
        Ok(Index { relation, kept })
    }

    pub fn relation(&self) -> Relation<'r> {
        self.relation
    }

    /// What is known of its column.
    pub fn kind(&self) -> &K {
        &self.kept.kind
    }

    /// A number, from one up, that no other file has had in this session, nor this one with other contents.
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

    /// Where the tiles are now: for those that ask.
    ///
    /// # Errors
    /// XX002 for damage.
    pub fn directory(&self) -> Result<Rc<K::Directory>> {
        let known = self.known_directory();
        let pin = self.meta()?;
        let is_current = known.chain().is_current(&pin.shared());
        drop(pin);
        if is_current {
            return Ok(known);
        }
        Ok(self.remember(read_directory(self.relation, &self.kept.pages)?))
    }

    /// Where the tiles are, by the metapage, which the caller has locked.
    ///
    /// # Errors
    /// XX002 for damage.
    pub fn directory_under(&self, meta: &[u8]) -> std::result::Result<Rc<K::Directory>, Failure> {
        let known = self.known_directory();
        if known.chain().is_current(meta) {
            return Ok(known);
        }
        Ok(self.remember(Tiles::read(&mut BelowMeta { meta, pages: self.pages() }, PAGE_SIZE)?))
    }

    /// Keeps a directory that is newer.
    fn remember(&self, directory: K::Directory) -> Rc<K::Directory> {
        let directory = Rc::new(directory);
        *self.kept.directory.borrow_mut() = directory.clone();
        directory
    }

    /// Writes a newer directory, with one record: the metapage with these bytes, which the caller has locked, and the
    /// directory page that changes. Returns it. If the file lacks that page, only extends the file, and returns the
    /// directory so far.
    ///
    /// # Errors
    /// XX002 if the page was not allocated.
    pub fn write_directory(
        &self,
        mut meta: Exclusive,
        meta_bytes: &[u8],
        directory: K::Directory,
        page: Option<&(PageNumber, Vec<u8>)>,
    ) -> Result<Rc<K::Directory>> {
        let meta_change = Change::Page(meta_bytes);
        match page {
            Some((number, _)) if !self.pages().has(*number) => {
                // Up to there are the pages of all tiles, which may be many. The metapage is not locked for that.
                drop(meta);
                self.pages().extend_to(*number, directory.chain())?;
                return Ok(self.known_directory());
            }
            Some((number, bytes)) => {
                let mut page = self.pages().existing(*number, directory.chain())?.exclusive();
                let page = Edit::new(&mut page, Change::Page(bytes));
                wal::change(&mut [Edit::new(&mut meta, meta_change), page]);
            }
            None => wal::change(&mut [Edit::new(&mut meta, meta_change)]),
        }
        Ok(self.remember(directory))
    }

    /// # Errors
    /// XX002 if there is no metapage.
    pub fn meta(&self) -> Result<Pin<'r>> {
        meta(self.relation, &self.kept.pages)
    }
}

fn meta<'r>(relation: Relation<'r>, known: &Cell<u32>) -> Result<Pin<'r>> {
    if known.get() == 0 && relation.pages() == 0 {
        return Err(Failure::Damage(Damage::empty(META_PAGE)).of(relation));
    }
    Ok(Pin::read(relation, META_PAGE))
}

fn read_directory<D: Tiles>(relation: Relation, known: &Cell<u32>) -> Result<D> {
    let pin = meta(relation, known)?;
    let meta = pin.shared();
    let mut pages = BelowMeta { meta: &meta, pages: IndexPages::new(relation, known) };
    D::read(&mut pages, PAGE_SIZE).map_err(|failure| failure.of(relation))
}

/// Forgets what is kept of an index: its file gets other contents.
pub fn forget(relation: Relation) {
    relation.set_cached_number(0);
    KEPT.with(|kept| kept.borrow_mut().remove(&relation.oid().to_u32()));
}
