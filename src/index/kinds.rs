//! Of which kind an index is: its operator class says it.

use super::filters::FILTERS;
use super::keys::KEYS;
use super::kind::IndexKind;
use super::parts;
use super::validate::{self, KEY_OF_ELEMENT, PARTS};
use crate::pg::catalog::operators;
use crate::pg::method::planning::Planned;
use crate::pg::storage::relation::Relation;
use pgrx::pg_sys::Oid;

/// The kind of an index.
#[inline]
pub fn of(index: Relation) -> &'static IndexKind {
    let has = |number| index.support_function(number) != Oid::INVALID;
    kind(has(KEY_OF_ELEMENT), has(PARTS))
}

/// The kind of an index that the planner considers.
pub fn of_planned(planned: &Planned) -> &'static IndexKind {
    kind(planned.has_support_function(KEY_OF_ELEMENT), planned.has_support_function(PARTS))
}

/// Whether an operator class is one that an index can have; says what is wrong with it.
pub fn validate(class: Oid) -> bool {
    let (family, declared) = operators::operator_class(class);
    let has = |number| operators::family_function(family, declared, number).is_some();
    if has(KEY_OF_ELEMENT) {
        validate::over_filters(family, declared)
    } else if has(PARTS) {
        parts::validate(family, declared)
    } else {
        validate::over_keys(family, declared)
    }
}

/// Operator classes over filters and over parts have support functions of their own, those over keys have none.
#[inline]
fn kind(is_over_filters: bool, is_over_parts: bool) -> &'static IndexKind {
    match (is_over_filters, is_over_parts) {
        (true, _) => &FILTERS,
        (false, true) => &parts::PARTS,
        (false, false) => &KEYS,
    }
}
