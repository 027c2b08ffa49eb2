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
use crate::pg::catalog::{self, TypeKind, default_class};
use pg_bloom_core::kind::Tag;
use pgrx::pg_sys::{self, OIDVECTOROID, Oid};

/// The support function of an operator class that hashes the column's values, where the class is
/// for a type whose own hash function can be replaced. PostgreSQL drops neither this function nor
/// its place in the class while an index uses the class.
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
    /// Returns how an index hashes the values of a column of type `oid`, under a collation: as the
    /// elements of a filter are hashed, except that an enum is hashed by its object identifier.
    /// `function` is any function of the extension, which tells its schema.
    ///
    /// Fails with 0A000 for a collation by which texts with different bytes can be equal, and for a
    /// type that an index can't hash for ever in one way, such as a row type.
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

    /// Checks that a column of type `oid` can be in an index that compares it as another type,
    /// whose hash function the operator class may name. Fails with 0A000 as [`Column::new`] does,
    /// except for a hash function that can be replaced.
    pub fn check(function: Oid, oid: Oid, collation: Oid) -> Result<()> {
        Column::resolve(function, catalog::base_type(oid), collation).map(drop)
    }

    /// Returns how an index hashes the values of a column of type `oid`, if its operator class
    /// names the hash function: `hash(value, seed bigint) → bigint`. The function may be declared
    /// for another type whose values are stored alike.
    ///
    /// Fails with 0A000 for a function with other arguments or another result, and for a collation
    /// by which texts with different bytes can be equal.
    pub fn hashed_by(hash: Oid, oid: Oid, collation: Oid) -> Result<Column> {
        require_deterministic(collation)?;
        let argument_types = [
            catalog::argument_type(hash, 0),
            catalog::argument_type(hash, 1),
        ];
        let [Some(value_type), Some(pg_sys::INT8OID)] = argument_types else {
            return Err(refuse_function(hash, oid));
        };
        let is_hash = catalog::result_type(hash) == pg_sys::INT8OID
            && catalog::storage(value_type) == catalog::storage(oid);
        if !is_hash {
            return Err(refuse_function(hash, oid));
        }
        let reader = ScalarReader {
            source: Source::Other,
            convert: false,
            extended_hash: default_class::prepared_function(hash),
        };
        // The name has the function, so that columns hashed by different ones aren't compared.
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

    /// Returns a column of type `whole`, which is no domain, hashed as elements of filters are; and
    /// the first type in it whose hash function can be replaced, if there is one. Fails with 0A000
    /// for a collation by which texts with different bytes can be equal, and for a type that an
    /// index can't have in its column.
    fn resolve(function: Oid, whole: Oid, collation: Oid) -> Result<(Column, Option<Unsettled>)> {
        require_deterministic(collation)?;
        if catalog::type_kind(whole) != TypeKind::Enum {
            refuse_alterable(whole, whole)?;
        }
        // Text that never leaves its database is taken as it is.
        let mut resolver = Resolver::new(function, whole, None);
        let ResolvedType { reader, tag, name, .. } = resolver.resolve(whole)?;
        let hasher = Hasher { reader, form: Form::General };
        Ok((Column { hasher, tag, name }, resolver.unsettled))
    }

    /// Returns how the column's values are hashed.
    #[inline]
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Returns whether values that are equal have one hash in both columns, as `integer` and
    /// `bigint` have.
    pub fn compares_with(&self, other: &Column) -> bool {
        self.tag == other.tag && self.name == other.name
    }
}

/// Checks that no `ALTER TYPE` can change how values of type `part` are hashed in an index. Looks
/// into arrays, ranges and multiranges, and raises 54001 if they are nested deeper than the stack
/// allows.
///
/// `whole` is the type of the column, which is `part` or has it in it; messages name both. Fails
/// with 0A000 for a row type, whose columns can be altered, for an enum, whose values can be
/// renamed, and for `oidvector`, which isn't compared as other arrays are.
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
    match catalog::type_kind(part) {
        TypeKind::Array(inner) | TypeKind::Range(inner, _) | TypeKind::Multirange(inner) => {
            refuse_alterable(whole, inner)
        }
        TypeKind::Composite => Err(refuse(
            whole,
            part,
            "Its columns can be altered, and then an index would miss rows.",
        )),
        TypeKind::Enum => Err(refuse(
            whole,
            part,
            "Its values can be renamed, and then an index would miss rows.",
        )),
        _ => Ok(()),
    }
}

/// Returns the refusal of type `whole` in an index, since type `part`, which it is or has in it,
/// can't be there for this reason.
fn refuse(whole: Oid, part: Oid, reason: &str) -> Error {
    let detail = if whole == part {
        reason.to_owned()
    } else {
        format!("It has {} in it. {reason}", catalog::display_name(part))
    };
    let name = catalog::display_name(whole);
    unsupported(
        format!("type {name} cannot be the column of an index USING bloom_filter"),
        "Index an expression that is of another type, for instance the column cast to text.",
    )
    .detail(detail)
}

/// Returns the refusal of type `whole` in an index, since the hash function of a type that it is or
/// has in it can be replaced. The hint says how to name the function for good.
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

/// Returns the refusal of a function that an operator class names to hash columns of type `oid`.
fn refuse_function(hash: Oid, oid: Oid) -> Error {
    let signature = catalog::function_signature(hash);
    let name = catalog::display_name(oid);
    unsupported(
        format!("function {signature} cannot hash the column of an index USING bloom_filter"),
        format!(
            "Support function {HASH} of an operator class takes {name}, or a type that is stored as it is, and bigint, and returns bigint."
        ),
    )
}
