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

use crate::element::{Column, HASH_SUPPORT, Hasher};
use crate::error::unsupported;
use crate::pg::call::error::info;
use crate::pg::call::{Error, Result};
use crate::pg::catalog::operators::FamilyOperator;
use crate::pg::catalog::{self, operators};
use crate::pg::method::scan::Key;
use crate::pg::storage::relation::{ColumnClass, Relation};
use pgrx::pg_sys::Oid;
use std::cell::RefCell;
use std::collections::HashMap;

/// The strategy of equality, the only one over elements.
const EQUAL: i16 = 1;

/// A column whose values are hashed as a whole: how that is done.
pub struct ElementColumn {
    column: Column,
    /// How values of other types are hashed, with which queries of this session have compared the
    /// column: by the OIDs of their types.
    hashers_by_type: RefCell<HashMap<u32, Hasher>>,
}

impl ElementColumn {
    /// Returns how the values of an indexed column are hashed, each as a whole.
    ///
    /// They are hashed as values of the type for which the index's operator class is declared. The
    /// column's own type counts only if the class is declared for a pseudo-type such as `anyenum`:
    /// `ALTER TABLE … TYPE` can change the column's type, say from varchar to text, and keep the
    /// index with its hashes.
    ///
    /// Fails with 0A000 for a type, a collation or an operator class that an index can't have. In
    /// particular `=` of the class must be the default one of its type, since values that are equal
    /// by that, and only these, have equal hashes; and there must be no other operators.
    pub fn of_index(index: Relation) -> Result<ElementColumn> {
        let ColumnClass { family, declared: declared_type, collation } = index.column_class();
        let hashed_type = if catalog::is_polymorphic(declared_type) {
            index.column_type()
        } else {
            declared_type
        };

        let hash_function = index.support_function(HASH_SUPPORT);
        let column = if hash_function == Oid::INVALID {
            Column::new(index.handler(), hashed_type, collation)?
        } else {
            Column::with_hash_function(hash_function, hashed_type, collation)?
        };
        if !is_usual_equality(family, declared_type, declared_type) {
            return Err(refuse_comparison(declared_type, declared_type));
        }
        for operator in &operators::family_operators(family) {
            if !has_strategy_of_equality(operator) {
                return Err(refuse_comparison(operator.amoplefttype, operator.amoprighttype));
            }
        }
        Ok(ElementColumn { column, hashers_by_type: RefCell::default() })
    }

    /// Returns the hasher of the column's own values.
    pub fn hasher(&self) -> &Hasher {
        self.column.hasher()
    }

    /// Returns the hasher for the values of a scan key, a comparison of the query with the column.
    ///
    /// Fails with 0A000 as [`ElementColumn::hasher_of`] does, and for another operator than `=`. A
    /// superuser can add one to the operator family after the index was opened, and a lookup of the
    /// values' hashes would miss rows.
    pub fn hasher_of_scan_key(&self, index: Relation, scan_key: &Key) -> Result<Hasher> {
        let asked_type = scan_key.asked_type;
        if scan_key.strategy != EQUAL {
            let declared_type = index.column_class().declared;
            let right_type = if asked_type == Oid::INVALID { declared_type } else { asked_type };
            return Err(refuse_comparison(declared_type, right_type));
        }
        self.hasher_of(index, asked_type)
    }

    /// Returns the hasher for values of type `asked_type` that a query compares the column with,
    /// such as an `integer` with a column of `bigint`. An invalid OID stands for the type that the
    /// operator class is declared for. The hashers of other types are kept for the session.
    ///
    /// Fails with 0A000 if equal values of the two types needn't have equal hashes, or if the
    /// operator isn't the usual `=` of these types.
    pub fn hasher_of(&self, index: Relation, asked_type: Oid) -> Result<Hasher> {
        let ColumnClass { family, declared: declared_type, collation } = index.column_class();
        if asked_type == Oid::INVALID || asked_type == declared_type {
            return Ok(self.hasher().clone());
        }
        if let Some(hasher) = self.hashers_by_type.borrow().get(&asked_type.to_u32()) {
            return Ok(hasher.clone());
        }
        let asked = Column::new(index.handler(), asked_type, collation)?;
        if !asked.compares_with(&self.column)
            || !is_usual_equality(family, declared_type, asked_type)
        {
            return Err(refuse_comparison(declared_type, asked_type));
        }
        self.hashers_by_type
            .borrow_mut()
            .insert(asked_type.to_u32(), asked.hasher().clone());
        Ok(asked.hasher().clone())
    }
}

/// Returns whether the operator by which an operator family compares these types for equality is
/// the one that PostgreSQL uses by default: that of their default operator class.
fn is_usual_equality(family: Oid, left: Oid, right: Oid) -> bool {
    let operator = operators::family_member(family, left, right, EQUAL);
    operator.is_some() && operator == operators::equality(left, right)
}

/// Returns whether an operator of a family is there to search an index for equal values, by its
/// strategy.
fn has_strategy_of_equality(operator: &FamilyOperator) -> bool {
    operator.amopstrategy == EQUAL && operators::is_for_search(operator)
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
        if !has_strategy_of_equality(operator) {
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
    if let Some(hash) = operators::family_function(family, declared, HASH_SUPPORT)
        && let Err(error) = Column::with_hash_function(hash, declared, Oid::INVALID)
    {
        is_valid = false;
        info(error);
    }
    is_valid
}
