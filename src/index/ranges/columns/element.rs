//! A column whose values are elements: one key each, the hash of the value. This module says which
//! types and operator classes such a column may have, and how the values that it is compared with
//! are hashed.
//!
//! Two values have the same hash if the usual `=` of their types holds them equal, which is the
//! operator of the default operator class for btree or hash. An operator class with another
//! operator would miss rows, so it is refused.
//!
//! The hashes of PostgreSQL's own types, and of those of extensions, never change. The default
//! operator class of other types may be replaced. For such a type the operator class of the index
//! has the hash function, as support function 4.

use crate::element::{Column, HASH, Hasher};
use crate::error::unsupported;
use crate::pg::call::error::info;
use crate::pg::call::{Error, Result};
use crate::pg::catalog::{self, operators};
use crate::pg::storage::relation::{ColumnClass, Relation};
use pgrx::pg_sys::Oid;
use std::cell::RefCell;
use std::collections::HashMap;

/// The strategy of equality, the only one over elements.
const EQUAL: i16 = 1;

pub struct ElementColumn {
    column: Column,
    /// The hashers of other types that the column was compared with in this session, by their OIDs.
    hashers_of_others: RefCell<HashMap<u32, Hasher>>,
}

impl ElementColumn {
    /// Describes the column of an index of elements: how its values are hashed. They are hashed as
    /// values of the type that the index's operator class is declared for. The column's own type
    /// doesn't count, since `ALTER TABLE … TYPE` can change it and keep the index.
    ///
    /// Fails with 0A000 for a type, a collation or an operator class that an index can't have.
    pub fn of(relation: Relation) -> Result<ElementColumn> {
        let ColumnClass { family, declared, collation } = relation.column_class();
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
        Ok(ElementColumn { column, hashers_of_others: RefCell::default() })
    }

    /// Returns the hasher of the column's own values.
    pub fn hasher(&self) -> &Hasher {
        self.column.hasher()
    }

    /// Returns the hasher for values of type `asked` that a query compares the column with, such as
    /// an `integer` with a column of `bigint`. An invalid OID stands for the type that the operator
    /// class is declared for. The hashers of other types are kept for the session.
    ///
    /// Fails with 0A000 if equal values of the two types needn't have equal hashes, or if the
    /// operator isn't the usual `=` of these types.
    pub fn hasher_of(&self, index: Relation, asked: Oid) -> Result<Hasher> {
        let ColumnClass { family, declared, collation } = index.column_class();
        if asked == Oid::INVALID || asked == declared {
            return Ok(self.hasher().clone());
        }
        if let Some(hasher) = self.hashers_of_others.borrow().get(&asked.to_u32()) {
            return Ok(hasher.clone());
        }
        let other = Column::new(index.handler(), asked, collation)?;
        if !other.compares_with(&self.column) || !is_usual_equality(family, declared, asked) {
            return Err(refuse_comparison(declared, asked));
        }
        self.hashers_of_others
            .borrow_mut()
            .insert(asked.to_u32(), other.hasher().clone());
        Ok(other.hasher().clone())
    }
}

/// Returns whether the operator by which a family compares these types is their usual equality.
fn is_usual_equality(family: Oid, left: Oid, right: Oid) -> bool {
    let operator = operators::family_member(family, left, right, EQUAL);
    operator.is_some() && operator == operators::equality(left, right)
}

/// Returns the error for an operator class whose operator isn't the usual equality of its types.
fn refuse_comparison(left: Oid, right: Oid) -> Error {
    let (left, right) = (catalog::display_name(left), catalog::display_name(right));
    let message = format!(
        "the operator for types {left} and {right} of an operator class for access method bloom_filter is not their \
         usual equality"
    );
    let hint = "Use an operator class whose operator is the = of the default operator class for btree or hash.";
    unsupported(message, hint)
}

/// Returns whether an operator class, given by its family and the type that it is declared for, is
/// fit for an index of elements: its operators are all the usual `=` of their types, with strategy
/// 1, and there is one for the declared type. Reports each reason why not as INFO, for
/// `amvalidate`.
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
