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
//! | a type whose hash function another one can replace | that function, which the kind names | the function that the operator class names, or refused |
//!
//! All else is the same, refusals included.

use super::element_type::require_deterministic;
use super::hasher::{Form, Hasher};
use super::members::Reader;
use super::resolve::{ResolvedType, Resolver, Unsettled};
use super::scalar::{ScalarReader, Source};
use crate::error::unsupported;
use crate::pg::call::{Error, Result, interrupt};
use crate::pg::catalog::{self, Shape, default_class};
use pg_bloom_core::kind::Tag;
use pgrx::pg_sys::{self, OIDVECTOROID, Oid};

/// The support function of an operator class that hashes the column's values, where the class is for
/// a type whose own hash function can be replaced. PostgreSQL drops neither this function nor its
/// place in the class while an index uses the class.
pub const HASH: i16 = 4;

/// A column of an index, or what it is compared with.
#[derive(Clone)]
pub struct Column {
    hasher: Hasher,
    tag: Tag,
    /// The name of the kind, for those that have one; for enums the type.
    name: String,
}

impl Column {
    /// A column that is compared as the type `oid` is; `function` is one of the extension. Fails with
    /// 0A000 for a type or collation that can't be in an index.
    pub fn new(function: Oid, oid: Oid, collation: Oid) -> Result<Column> {
        let whole = catalog::base_type(oid);
        let (mut column, unsettled) = Column::resolve(function, whole, collation)?;
        if let Some(unsettled) = unsettled {
            return Err(refuse_unsettled(whole, unsettled));
        }
        if let Reader::Scalar(scalar) = &mut column.hasher.reader
            && scalar.source == Source::Enum
        {
            // An enum is kept as the object identifier of its label.
            scalar.source = Source::EnumOid;
            column.tag = Tag::Other;
            column.name = catalog::qualified_name(whole);
        }
        Ok(column)
    }

    /// Checks the type of a column that an index compares as another type. Fails with 0A000 for a type
    /// or collation that can't be in an index.
    pub fn check(function: Oid, oid: Oid, collation: Oid) -> Result<()> {
        Column::resolve(function, catalog::base_type(oid), collation).map(drop)
    }

    /// A column of the type `oid` that a function of its operator class hashes. Fails with 0A000 for a
    /// function that can't do this.
    pub fn hashed_by(hash: Oid, oid: Oid, collation: Oid) -> Result<Column> {
        require_deterministic(collation)?;
        let takes = [
            catalog::argument_type(hash, 0),
            catalog::argument_type(hash, 1),
        ];
        let [Some(value), Some(pg_sys::INT8OID)] = takes else {
            return Err(refuse_function(hash, oid));
        };
        let is_hash = catalog::result_type(hash) == pg_sys::INT8OID
            && catalog::storage(value) == catalog::storage(oid);
        if !is_hash {
            return Err(refuse_function(hash, oid));
        }
        let reader = ScalarReader {
            source: Source::Other,
            convert: false,
            extended_hash: default_class::prepared_function(hash),
        };
        Ok(Column {
            hasher: Hasher { reader: Reader::Scalar(reader), form: Form::General },
            tag: Tag::Other,
            name: format!(
                "{}@{}",
                catalog::qualified_name(oid),
                default_class::hash_function_name(hash)
            ),
        })
    }

    /// A column of a type, hashed as elements of filters are, and what in it has a hash function that
    /// can be replaced.
    fn resolve(function: Oid, whole: Oid, collation: Oid) -> Result<(Column, Option<Unsettled>)> {
        require_deterministic(collation)?;
        if catalog::shape(whole) != Shape::Enum {
            refuse_alterable(whole, whole)?;
        }
        // Text that never leaves its database is taken as it is.
        let mut resolver = Resolver::new(function, whole, None);
        let ResolvedType { reader, tag, name, .. } = resolver.part(whole)?;
        let hasher = Hasher { reader, form: Form::General };
        Ok((Column { hasher, tag, name }, resolver.unsettled))
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
        return Err(refuse(
            whole,
            part,
            "It is compared by an operator = of its own, not by that of arrays.",
        ));
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

fn refuse_unsettled(whole: Oid, unsettled: Unsettled) -> Error {
    let hash = catalog::function_signature(unsettled.hash);
    let reason = format!(
        "Its hash function, now {hash}, depends on operator classes that can be changed, and then an index would miss rows."
    );
    let refused = refuse(whole, unsettled.oid, &reason);
    if whole != unsettled.oid {
        return refused;
    }
    let name = catalog::display_name(whole);
    refused.hint(format!(
        "Name the function in an operator class: CREATE OPERATOR CLASS ... FOR TYPE {name} USING bloom_filter AS OPERATOR 1 =, FUNCTION {HASH} {hash}."
    ))
}

fn refuse_function(hash: Oid, oid: Oid) -> Error {
    let (hash, name) = (catalog::function_signature(hash), catalog::display_name(oid));
    unsupported(
        format!("function {hash} cannot hash the column of an index USING bloom_filter"),
        format!(
            "Support function {HASH} of an operator class takes {name}, or a type that is stored as it is, and bigint, and returns bigint."
        ),
    )
}
