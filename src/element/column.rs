//! Columns of indexes: an index hashes elements as a filter does, except for what can change under
//! it.
//!
//! | type | a filter | an index |
//! |---|---|---|
//! | an enum | its label | its object identifier, since `ALTER TYPE … RENAME VALUE` keeps values equal |
//! | a row | its columns | refused, since `ALTER TYPE` changes what is in it |
//! | arrays and ranges of these | what is in them | refused |
//! | text in a database that is not in UTF-8 | its form in UTF-8 | as it is, since some has no form in UTF-8 |
//!
//! All else is the same, refusals included.

use super::element_type::require_deterministic;
use super::hasher::{Form, Hasher};
use super::members::Reader;
use super::resolve::{Resolved, Resolver};
use super::scalar::Source;
use crate::error::unsupported;
use crate::pg::call::{Error, Result, interrupt};
use crate::pg::catalog::{self, Shape};
use pg_bloom_core::kind::Tag;
use pgrx::pg_sys::{OIDVECTOROID, Oid};

/// A column of an index, or what it is compared with.
#[derive(Clone)]
pub struct Column {
    hasher: Hasher,
    tag: Tag,
    /// The name of the kind, for those that have one; for enums the type.
    name: String,
}

impl Column {
    /// `function` is one of the extension. Errors: 0A000 for a type or collation that can't be in
    /// an index.
    pub fn new(function: Oid, oid: Oid, collation: Oid) -> Result<Column> {
        let whole = catalog::base_type(oid);
        require_deterministic(collation)?;
        if catalog::shape(whole) != Shape::Enum {
            refuse_alterable(whole, whole)?;
        }
        // What never leaves its database is taken as it is.
        let Resolved { mut reader, mut tag, mut name, .. } =
            Resolver::new(function, whole, false).part(whole)?;
        if let Reader::Scalar(scalar) = &mut reader
            && scalar.source == Source::Enum
        {
            // An enum is kept as the object identifier of its label.
            scalar.source = Source::EnumOid;
            (tag, name) = (Tag::Other, catalog::qualified_name(whole));
        }
        Ok(Column { hasher: Hasher { reader, form: Form::General }, tag, name })
    }

    #[inline]
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Whether equal elements of both have the same hash.
    pub fn compares_with(&self, other: &Column) -> bool {
        (self.tag, &self.name) == (other.tag, &other.name)
    }
}

/// Refuses what `ALTER TYPE` can change, and what has that in it.
fn refuse_alterable(whole: Oid, part: Oid) -> Result<()> {
    interrupt::check_stack_depth();
    let part = catalog::base_type(part);
    if part == OIDVECTOROID {
        return Err(refuse(whole, part, "It compares as an array of oid does not."));
    }
    match catalog::shape(part) {
        Shape::Array(inner) | Shape::Range(inner, _) | Shape::Multirange(inner) => {
            refuse_alterable(whole, inner)
        }
        Shape::Composite => Err(refuse(
            whole,
            part,
            "Its columns can be altered, and then an index would miss rows.",
        )),
        Shape::Enum => Err(refuse(
            whole,
            part,
            "Its values can be renamed, and then an index would miss rows.",
        )),
        _ => Ok(()),
    }
}

fn refuse(whole: Oid, part: Oid, reason: &str) -> Error {
    let (name, inner) = (catalog::display_name(whole), catalog::display_name(part));
    let detail = if whole == part {
        reason.to_owned()
    } else {
        format!("It has {inner} in it. {reason}")
    };
    unsupported(
        format!("type {name} cannot be the column of an index USING bloom_filter"),
        "Index an expression that is of another type, for instance the column cast to text.",
    )
    .detail(detail)
}
