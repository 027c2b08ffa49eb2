//! Of which kind an index is: its operator class says it.

use super::filters::Filters;
use super::keys::Keys;
use super::kind::IndexKind;
use super::validate::KEY_OF_ELEMENT;
use crate::pg::method::planning::Planned;
use crate::pg::storage::relation::Relation;

/// The kind of an index.
#[inline]
pub fn of(index: Relation) -> &'static dyn IndexKind {
    kind(index.has_support_function(KEY_OF_ELEMENT))
}

/// The kind of an index that the planner considers.
pub fn of_planned(planned: &Planned) -> &'static dyn IndexKind {
    kind(planned.has_support_function(KEY_OF_ELEMENT))
}

/// Only operator classes over filters have support functions.
#[inline]
fn kind(is_over_filters: bool) -> &'static dyn IndexKind {
    if is_over_filters { &Filters } else { &Keys }
}
