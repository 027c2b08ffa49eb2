//! A column of elements: which types and which operator classes it may have, and how elements are
//! hashed that it is compared with.
//!
//! Elements are hashed so that values have one hash if their types' own `=` holds them equal: the
//! operator of the default operator class for sorting, or for hashing. An operator class with
//! another operator would miss rows.
//!
//! The hash of the types of PostgreSQL and of extensions stays what it is. For other types, whose
//! default operator class for hashing may be another one tomorrow, the operator class of the index
//! has the hash function: support function 4.

use crate::element::{Column, HASH, Hasher};
use crate::error::unsupported;
use crate::pg::call::error::info;
use crate::pg::call::{Error, Result};
use crate::pg::catalog::{self, operators};
use crate::pg::storage::relation::Relation;
use pgrx::pg_sys::Oid;
use std::cell::RefCell;
use std::collections::HashMap;

/// The strategy of equality, the only one over elements.
const EQUAL: i16 = 1;

pub struct ElementColumn {
    column: Column,
    /// How elements of other types are hashed that the column is compared with.
    others: RefCell<HashMap<u32, Hasher>>,
}

impl ElementColumn {
    /// Hashed as the operator class compares, whatever the column's own type is:
    /// `ALTER TABLE … TYPE` can change that and keep the index. 0A000 for a type, a collation or an
    /// operator class that an index can't have.
    pub fn of(relation: Relation) -> Result<ElementColumn> {
        let (family, declared, collation) = relation.column_class();
        let compared = if catalog::is_polymorphic(declared) {
            relation.column_type()
        } else {
            declared
        };
        let hash = relation.support_function(HASH);
        let column = if hash == Oid::INVALID {
            Column::new(relation.handler(), compared, collation)?
        } else {
            Column::hashed_by(hash, compared, collation)?
        };
        if !is_usual_equality(family, declared, declared) {
            return Err(refuse_comparison(declared, declared));
        }
        Ok(ElementColumn { column, others: RefCell::default() })
    }

    pub fn hasher(&self) -> &Hasher {
        self.column.hasher()
    }

    /// How what the column of this index is compared with is hashed: elements of this type, or of
    /// the operator class's own if it is invalid. 0A000 for a comparison whose equality the hash
    /// does not follow.
    pub fn hasher_of(&self, index: Relation, asked: Oid) -> Result<Hasher> {
        let (family, declared, collation) = index.column_class();
        if asked == Oid::INVALID || asked == declared {
            return Ok(self.hasher().clone());
        }
        if let Some(hasher) = self.others.borrow().get(&asked.to_u32()) {
            return Ok(hasher.clone());
        }
        let other = Column::new(index.handler(), asked, collation)?;
        if !other.compares_with(&self.column) || !is_usual_equality(family, declared, asked) {
            return Err(refuse_comparison(declared, asked));
        }
        self.others
            .borrow_mut()
            .insert(asked.to_u32(), other.hasher().clone());
        Ok(other.hasher().clone())
    }
}

/// Whether a family's operator for comparing these types is the equality of the left one.
fn is_usual_equality(family: Oid, left: Oid, right: Oid) -> bool {
    let own = operators::family_member(family, left, right, EQUAL);
    own.is_some() && operators::equality(left, right) == own
}

/// The refusal of an operator class whose equality is another.
fn refuse_comparison(left: Oid, right: Oid) -> Error {
    let (left, right) = (catalog::display_name(left), catalog::display_name(right));
    let message = format!(
        "the operator for types {left} and {right} of an operator class for access method bloom_filter is not their \
         usual equality"
    );
    let hint = "Use an operator class whose operator is the = of the default operator class for btree or hash.";
    unsupported(message, hint)
}

pub fn validate(family: Oid, declared: Oid) -> bool {
    let mut is_valid = true;
    let mut complain = |message: String| {
        is_valid = false;
        info(unsupported(message, "See docs/index.md."));
    };
    for operator in &operators::family_operators(family) {
        let name = operators::display(operator);
        if operator.amopstrategy != EQUAL || !operators::is_for_search(operator) {
            complain(format!("operator {name} is not of strategy 1 for search"));
        } else if !is_usual_equality(family, operator.amoplefttype, operator.amoprighttype) {
            complain(format!("operator {name} is not the usual equality of these types"));
        }
    }
    if operators::family_member(family, declared, declared, EQUAL).is_none() {
        complain(format!(
            "the operator class has no equality of {}",
            catalog::display_name(declared)
        ));
    }
    if let Some(hash) = operators::family_function(family, declared, HASH)
        && let Err(error) = Column::hashed_by(hash, declared, Oid::INVALID)
    {
        is_valid = false;
        info(error);
    }
    is_valid
}
