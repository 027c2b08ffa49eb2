//! What a session keeps of an index between uses: where its tiles are, and how its elements are hashed.
//!
//! It is found by the index and a number in the relation cache, which forgets the number whenever anything about the
//! index changes, and so what was kept of a file that is no longer the index's. What is kept stays true while it is
//! used: tiles never move. A directory may lack tiles that were added since, which is found out by comparing four bytes
//! of the metapage.

use super::page::{BelowMeta, Failure, IndexPages, PAGE_SIZE};
use super::validate;
use crate::element::{Column, Hasher};
use crate::pg::buffer::Pin;
use crate::pg::catalog;
use crate::pg::error::{Error, Result, SqlState};
use crate::pg::relation::{File, Fork, Relation};
use pg_bloom_core::range::{Damage, Defect, Directory, META_PAGE};
use pgrx::pg_sys::Oid;
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
    column: Column,
    directory: RefCell<Rc<Directory>>,
    /// How many pages the file has at least.
    pages: Cell<u32>,
    /// How elements of other types are hashed that the column is compared with.
    others: RefCell<HashMap<u32, Rc<Column>>>,
}

/// An index in use.
pub struct Index {
    relation: Relation,
    kept: Rc<Kept>,
}

impl Index {
    /// An index that PostgreSQL opened.
    ///
    /// # Errors
    /// XX002 for damage; 0A000 for a column that can't be in such an index any more.
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
        let column = column(relation)?;
        let pages = Cell::new(0);
        let directory = Directory::read(&mut IndexPages::new(relation, &pages), PAGE_SIZE);
        let directory = RefCell::new(Rc::new(directory.map_err(|failure| failure.of(relation))?));
        let kept = Rc::new(Kept { file: relation.file(), column, directory, pages, others: RefCell::default() });
        let number = LAST.get() + 1;
        LAST.set(number);
        KEPT.with_borrow_mut(|all| {
            if all.len() >= MAX_REMEMBERED {
                all.clear();
            }
            all.insert(relation.oid().to_u32(), (number, kept.clone()));
        });
        relation.set_cached_number(number);
        Ok(Index { relation, kept })
    }

    /// The relation.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// The indexed column.
    pub fn column(&self) -> &Column {
        &self.kept.column
    }

    /// Its pages.
    pub fn pages(&self) -> IndexPages<'_> {
        IndexPages::new(self.relation, &self.kept.pages)
    }

    /// Where the tiles are, as far as this session knows: for those that add elements.
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
        let read = Directory::read(&mut self.pages(), PAGE_SIZE).map_err(|failure| failure.of(self.relation))?;
        Ok(self.remember(read))
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

    /// How what the column is compared with is hashed: elements of this type, or of the operator class's own if it is
    /// invalid.
    ///
    /// # Errors
    /// 0A000 for a comparison whose equality the hash does not follow.
    pub fn hasher_of(&self, asked: Oid) -> Result<Hasher> {
        let (family, declared, collation) = self.relation.column_class();
        if asked == Oid::INVALID || asked == declared {
            return Ok(self.kept.column.hasher().clone());
        }
        let known = self.kept.others.borrow().get(&asked.to_u32()).cloned();
        if let Some(other) = known {
            return Ok(other.hasher().clone());
        }
        let other = Column::new(self.relation.handler(), asked, collation)?;
        if !other.compares_with(&self.kept.column) || !validate::is_usual_equality(family, declared, asked) {
            return Err(validate::refuse_comparison(declared, asked));
        }
        let hasher = other.hasher().clone();
        self.kept.others.borrow_mut().insert(asked.to_u32(), Rc::new(other));
        Ok(hasher)
    }
}

/// The column of an index, hashed as its operator class compares it: `char(n)` without trailing blanks where the class
/// is that of `char(n)`, whatever the column's own type is. `ALTER TABLE … TYPE` can change that one to another with
/// the same bytes and keep the index.
///
/// # Errors
/// 0A000 for a type, a collation or an operator class that an index can't have.
pub fn column(relation: Relation) -> Result<Column> {
    let (family, declared, collation) = relation.column_class();
    let compared = if catalog::is_polymorphic(declared) { relation.column_type() } else { declared };
    let column = Column::new(relation.handler(), compared, collation)?;
    if !validate::is_usual_equality(family, declared, declared) {
        return Err(validate::refuse_comparison(declared, declared));
    }
    Ok(column)
}

/// Refuses a new index whose column is of a type that can't be an element, though it has the bytes of one that can: an
/// index on `citext` would answer no question about `citext`. One that is there already is built anew.
///
/// # Errors
/// 0A000 for such a type.
pub fn check_type_of_column(relation: Relation) -> Result<()> {
    if relation.is_being_reindexed() {
        return Ok(());
    }
    let (_, _, collation) = relation.column_class();
    Column::new(relation.handler(), relation.column_type(), collation).map(drop)
}

/// Forgets what is kept of an index: its file gets other contents.
pub fn forget(relation: Relation) {
    relation.set_cached_number(0);
    KEPT.with_borrow_mut(|kept| kept.remove(&relation.oid().to_u32()));
}
