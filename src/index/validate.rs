//! Operator classes: which equality the hash of an element follows.
//!
//! Elements are hashed so that values have one hash if their types' own `=` holds them equal: the operator of the
//! default operator class for sorting, or for hashing. An operator class with another operator would miss rows.

use crate::error::unsupported;
use crate::key_condition::{ASKS, KEY_OF_ARRAY};
use crate::pg::call::error::{Error, info};
use crate::pg::catalog;
use crate::pg::catalog::operators;
use pgrx::pg_sys::Oid;

/// The strategy of equality, the only one over elements.
pub const EQUAL: i16 = 1;
/// The support function of operator classes over parts.
pub const PARTS: i16 = 3;

/// Whether a family's operator for comparing these types is the equality of the left one.
pub fn is_usual_equality(family: Oid, left: Oid, right: Oid) -> bool {
    let own = operators::family_member(family, left, right, EQUAL);
    own.is_some() && operators::equality(left, right) == own
}

/// The refusal of an operator class whose equality is another.
pub fn refuse_comparison(left: Oid, right: Oid) -> Error {
    unsupported(
        format!(
            "the operator for types {} and {} of an operator class for access method bloom_filter is not their usual equality",
            catalog::display_name(left),
            catalog::display_name(right)
        ),
        "Use an operator class whose operator is the = of the default operator class for btree or hash.",
    )
}

/// Whether an operator class over keys is one that an index can have; says what is wrong with it.
pub fn over_keys(family: Oid, declared: Oid) -> bool {
    let mut is_valid = true;
    let mut complain = |message: String| {
        is_valid = false;
        info(unsupported(message, "See docs/index.md."));
    };
    for operator in &operators::family_operators(family) {
        let name = operators::display(operator);
        if operator.strategy != EQUAL || !operator.is_for_search {
            complain(format!("operator {name} is not of strategy 1 for search"));
        } else if !is_usual_equality(family, operator.left, operator.right) {
            complain(format!("operator {name} is not the usual equality of these types"));
        }
    }
    if operators::family_member(family, declared, declared, EQUAL).is_none() {
        complain(format!("the operator class has no equality of {}", catalog::display_name(declared)));
    }
    is_valid
}

/// Whether an operator class over filters is one that an index can have. Who owns the operators' functions is checked
/// when an index is opened.
pub fn over_filters(family: Oid, declared: Oid) -> bool {
    let mut is_valid = operators::family_function(family, declared, KEY_OF_ARRAY).is_some();
    if !is_valid {
        info(unsupported("the operator class has no support function 2", "See docs/index.md."));
    }
    for operator in &operators::family_operators(family) {
        if operator.strategy != ASKS || !operator.is_for_search || operator.left != declared {
            is_valid = false;
            let message = format!("operator {} is not of strategy 2 for search", operators::display(operator));
            info(unsupported(message, "See docs/index.md."));
        }
    }
    is_valid
}
