//! Of which kind an index is: its operator class says it.

use super::filters::FILTERS;
use super::kind::IndexKind;
use super::ranges::RANGES;
use crate::key_condition::KEY_OF_ELEMENT;
use crate::pg::catalog::operators;
use crate::pg::method::planning::Planned;
use crate::pg::storage::relation::Relation;
use pgrx::pg_sys::Oid;

#[inline]
pub fn of(index: Relation) -> &'static IndexKind {
    with_support(|number| index.support_function(number) != Oid::INVALID)
}

pub fn of_planned(planned: &Planned) -> &'static IndexKind {
    with_support(|number| planned.support_function(number).1.is_some())
}

/// Whether an operator class is one that an index can have; says what is wrong with it.
pub fn validate(class: Oid) -> bool {
    let (family, declared) = operators::operator_class(class);
    let kind = with_support(|number| operators::family_function(family, declared, number).is_some());
    (kind.validate)(family, declared)
}

/// Operator classes over filters have a support function of their own.
#[inline]
fn with_support(has: impl Fn(i16) -> bool) -> &'static IndexKind {
    if has(KEY_OF_ELEMENT) { &FILTERS } else { &RANGES }
}
