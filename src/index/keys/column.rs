//! The column of an index over ranges: which types it may have, and how elements are hashed that it is compared with.

use crate::element::{Column, Hasher};
use crate::index::session::{self, Kind};
use crate::index::validate;
use crate::pg::call::error::Result;
use crate::pg::catalog;
use crate::pg::storage::relation::Relation;
use pg_bloom_core::index::keys::Directory;
use pgrx::pg_sys::Oid;
use std::cell::RefCell;
use std::collections::HashMap;

/// An index over ranges in use.
pub type Index<'r> = session::Index<'r, Elements>;

/// A column of elements.
pub struct Elements {
    column: Column,
    /// How elements of other types are hashed that the column is compared with.
    others: RefCell<HashMap<u32, Hasher>>,
}

impl Kind for Elements {
    type Directory = Directory;

    fn of(relation: Relation) -> Result<Elements> {
        Ok(Elements { column: column(relation)?, others: RefCell::default() })
    }
}

impl Index<'_> {
    /// The indexed column.
    pub fn column(&self) -> &Column {
        &self.kind().column
    }

    /// How what the column is compared with is hashed: elements of this type, or of the operator class's own if it is
    /// invalid.
    ///
    /// # Errors
    /// 0A000 for a comparison whose equality the hash does not follow.
    pub fn hasher_of(&self, asked: Oid) -> Result<Hasher> {
        let (family, declared, collation) = self.relation.column_class();
        if asked == Oid::INVALID || asked == declared {
            return Ok(self.column().hasher().clone());
        }
        let others = &self.kind().others;
        if let Some(hasher) = others.borrow().get(&asked.to_u32()) {
            return Ok(hasher.clone());
        }
        let other = Column::new(self.relation.handler(), asked, collation)?;
        if !other.compares_with(self.column()) || !validate::is_usual_equality(family, declared, asked) {
            return Err(validate::refuse_comparison(declared, asked));
        }
        others.borrow_mut().insert(asked.to_u32(), other.hasher().clone());
        Ok(other.hasher().clone())
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
/// index on `citext` would answer no lookup about `citext`. One that is there already is rebuilt. Fails by 0A000.
pub fn check_type_of_column(relation: Relation) -> Result<()> {
    if relation.is_being_reindexed() {
        return Ok(());
    }
    let (_, _, collation) = relation.column_class();
    Column::new(relation.handler(), relation.column_type(), collation).map(drop)
}
