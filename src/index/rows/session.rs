//! What a session keeps of an index between uses: where its tiles are. It is found and forgotten as for indexes over
//! ranges.

use super::super::page::{BelowMeta, Failure, IndexPages, PAGE_SIZE};
use super::super::validate::{ASKS, KEY_OF_ELEMENT};
use crate::pg::buffer::Pin;
use crate::pg::catalog;
use crate::pg::error::{Error, Result, SqlState};
use crate::pg::operators;
use crate::pg::relation::{File, Fork, Relation};
use pg_bloom_core::page::{Damage, Defect};
use pg_bloom_core::range::META_PAGE;
use pg_bloom_core::rows::Directory;
use pgrx::pg_sys::{self, Oid};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// The most indexes that are remembered; then all are forgotten.
const MAX_REMEMBERED: usize = 4096;

thread_local! {
    /// What is kept, by the index's identifier, with the number that its entry of the relation cache must have.
    static KEPT: RefCell<HashMap<u32, (u64, Rc<Kept>)>> = RefCell::default();
    /// The last number given.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// What is kept of an index.
struct Kept {
    file: File,
    directory: RefCell<Rc<Directory>>,
    /// How many pages the file has at least.
    pages: Cell<u32>,
    /// The type `bloom_key`.
    key: Oid,
}

/// An index in use.
pub struct Index {
    relation: Relation,
    kept: Rc<Kept>,
}

/// Whether an index is over a column of filters, by its operator class.
#[inline]
pub fn is_over_filters(relation: Relation) -> bool {
    relation.has_support_function(KEY_OF_ELEMENT)
}

/// The type `bloom_key`, given that the operator class of the index asks filters as they should be asked.
///
/// # Errors
/// 0A000 for an operator class of somebody else's.
pub fn key_type(relation: Relation) -> Result<Oid> {
    let (family, declared, _) = relation.column_class();
    let handler = relation.handler();
    let key = catalog::type_beside(handler, c"bloom_key");
    let asks =
        [(pg_sys::TEXTOID, c"bloom_contains"), (pg_sys::CHAROID, c"bloom_contains"), (key, c"bloom_contains_key")];
    let is_own = declared == catalog::type_beside(handler, c"bloom")
        && asks.into_iter().all(|(right, name)| {
            operators::family_member(family, declared, right, ASKS)
                .is_some_and(|operator| catalog::is_beside(operators::function_of(operator), handler, name))
        });
    if is_own {
        return Ok(key);
    }
    let message = format!("index \"{}\" has an operator class that does not ask filters", relation.name());
    Err(Error::new(SqlState::ERRCODE_FEATURE_NOT_SUPPORTED, message).hint("Use the operator class bloom_ops."))
}

impl Index {
    /// An index that PostgreSQL opened.
    ///
    /// # Errors
    /// XX002 for damage.
    pub fn of(relation: Relation) -> Result<Index> {
        let number = relation.cached_number();
        let known = KEPT.with_borrow(|kept| {
            kept.get(&relation.oid().to_u32()).filter(|entry| entry.0 == number).map(|entry| entry.1.clone())
        });
        match known {
            Some(kept) if kept.file == relation.file() => Ok(Index { relation, kept }),
            _ => Index::load(relation),
        }
    }

    #[cold]
    fn load(relation: Relation) -> Result<Index> {
        if relation.is_of_other_session() {
            return Err(Error::new(
                SqlState::ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot access temporary indexes of other sessions",
            ));
        }
        let key = key_type(relation)?;
        let pages = Cell::new(0);
        let directory = RefCell::new(Rc::new(Directory::empty(PAGE_SIZE)));
        let kept = Rc::new(Kept { file: relation.file(), directory, pages, key });
        let index = Index { relation, kept: kept.clone() };
        index.read()?;
        let number = LAST.get() + 1;
        LAST.set(number);
        KEPT.with_borrow_mut(|all| {
            if all.len() >= MAX_REMEMBERED {
                all.clear();
            }
            all.insert(relation.oid().to_u32(), (number, kept.clone()));
        });
        relation.set_cached_number(number);
        Ok(index)
    }

    /// Reads where the tiles are. Nobody changes a page of the directory without the lock of the metapage, which is
    /// held meanwhile: of all locks it is the first.
    fn read(&self) -> Result<Rc<Directory>> {
        let pin = self.meta()?;
        let meta = pin.shared();
        let directory = Directory::read(&mut BelowMeta { meta: &meta, pages: self.pages() }, PAGE_SIZE);
        Ok(self.remember(directory.map_err(|failure| failure.of(self.relation))?))
    }

    /// The relation.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// The type `bloom_key`.
    pub fn key_type(&self) -> Oid {
        self.kept.key
    }

    /// Its pages.
    pub fn pages(&self) -> IndexPages<'_> {
        IndexPages::new(self.relation, &self.kept.pages)
    }

    /// Where the tiles are, as far as this session knows: for those that add rows.
    pub fn known_directory(&self) -> Rc<Directory> {
        self.kept.directory.borrow().clone()
    }

    /// Where the tiles are now: for those that ask.
    ///
    /// # Errors
    /// XX002 for damage.
    pub fn directory(&self) -> Result<Rc<Directory>> {
        let known = self.known_directory();
        let pin = self.meta()?;
        let is_current = known.is_current(&pin.shared());
        drop(pin);
        if is_current {
            return Ok(known);
        }
        self.read()
    }

    /// Where the tiles are, by the metapage, which the caller has locked.
    ///
    /// # Errors
    /// XX002 for damage.
    pub fn directory_under(&self, meta: &[u8]) -> std::result::Result<Rc<Directory>, Failure> {
        let known = self.known_directory();
        if known.is_current(meta) {
            return Ok(known);
        }
        Ok(self.remember(Directory::read(&mut BelowMeta { meta, pages: self.pages() }, PAGE_SIZE)?))
    }

    /// Keeps a directory that is newer.
    pub fn remember(&self, directory: Directory) -> Rc<Directory> {
        let directory = Rc::new(directory);
        *self.kept.directory.borrow_mut() = directory.clone();
        directory
    }

    /// The metapage.
    ///
    /// # Errors
    /// XX002 if there is none.
    pub fn meta(&self) -> Result<Pin> {
        if self.kept.pages.get() == 0 && self.relation.pages() == 0 {
            let damage = Damage { page: META_PAGE, defect: Defect::NewPage };
            return Err(Failure::Damage(damage).of(self.relation));
        }
        Ok(Pin::read(self.relation, Fork::Main, META_PAGE))
    }
}

/// Forgets what is kept of an index: its file gets other contents.
pub fn forget(relation: Relation) {
    relation.set_cached_number(0);
    KEPT.with_borrow_mut(|kept| kept.remove(&relation.oid().to_u32()));
}
