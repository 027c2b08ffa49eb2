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
use super::resolve::{ReplaceableHash, ResolvedType, Resolver};
use super::scalar::{ScalarReader, Source};
use crate::error::unsupported;
use crate::pg::call::{Error, Result, interrupt};
use crate::pg::catalog::{self, TypeKind, default_class};
use pg_bloom_core::kind::Tag;
use pgrx::pg_sys::{self, OIDVECTOROID, Oid};

/// The support function of an operator class that hashes the column's values, where the class is
/// for a type whose own hash function can be replaced. PostgreSQL drops neither this function nor
/// its place in the class while an index uses the class.
pub const HASH_SUPPORT: i16 = 4;

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
        let (mut column, replaceable_hash) = Column::resolve(function, whole, collation)?;
        if let Some(replaceable_hash) = replaceable_hash {
            return Err(refuse_replaceable_hash(whole, replaceable_hash));
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

    /// Returns how an index hashes the values of a column of type `column_type` if the operator
    /// class of the column names `hash_function` as the function for it.
    ///
    /// Such a function has the form of PostgreSQL's extended hash functions, `(value, seed bigint)
    /// → bigint`. Its value may be of another type than the column, if the values of both are
    /// stored in the same way: with the same length and alignment, and both by value or not.
    ///
    /// Fails with 0A000 for a function with other arguments or another result, and for a collation
    /// by which texts with different bytes can be equal.
    pub fn with_hash_function(
        hash_function: Oid,
        column_type: Oid,
        collation: Oid,
    ) -> Result<Column> {
        require_deterministic(collation)?;

        let argument_types = [
            catalog::argument_type(hash_function, 0),
            catalog::argument_type(hash_function, 1),
        ];
        let [Some(value_type), Some(pg_sys::INT8OID)] = argument_types else {
            return Err(refuse_function(hash_function, column_type));
        };
        let is_possible = catalog::result_type(hash_function) == pg_sys::INT8OID
            && catalog::storage(value_type) == catalog::storage(column_type);
        if !is_possible {
            return Err(refuse_function(hash_function, column_type));
        }

        let reader = ScalarReader {
            source: Source::Other,
            // The function hashes the values themselves, text in the encoding of the database.
            convert: false,
            extended_hash: default_class::prepared_function(hash_function),
        };
        // Two columns are comparable if their names are equal. The name contains the function,
        // since other functions make other hashes.
        let name = format!(
            "{}@{}",
            catalog::qualified_name(column_type),
            default_class::hash_function_name(hash_function)
        );
        Ok(Column {
            hasher: Hasher { reader: Reader::Scalar(reader), form: Form::General },
            tag: Tag::Other,
            name,
        })
    }

    /// Returns a column of type `whole`, which is no domain, hashed as elements of filters are; and
    /// the first type in it whose hash function can be replaced, if there is one. Fails with 0A000
    /// for a collation by which texts with different bytes can be equal, and for a type that an
    /// index can't have in its column.
    fn resolve(
        function: Oid,
        whole: Oid,
        collation: Oid,
    ) -> Result<(Column, Option<ReplaceableHash>)> {
        require_deterministic(collation)?;
        if catalog::type_kind(whole) != TypeKind::Enum {
            refuse_alterable(whole, whole)?;
        }
        // Text that never leaves its database is taken as it is.
        let mut resolver = Resolver::new(function, whole, None);
        let ResolvedType { reader, tag, name, .. } = resolver.resolve(whole)?;
        let hasher = Hasher { reader, form: Form::General };
        Ok((Column { hasher, tag, name }, resolver.replaceable_hash))
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

/// Returns the error 0A000 for a column of type `whole` in an index. The reason is about the type
/// `part`, which is the type itself or one that it contains, as an array contains the type of its
/// elements.
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

/// Returns the error 0A000 for a column of type `whole` in an index, because a command could
/// replace a hash function by which its values are hashed. That is the function of the type itself
/// or, for an array or a range, of a type in it.
///
/// For the type itself, the hint says what to do: an operator class can name the function, and then
/// PostgreSQL keeps it as long as an index uses the class.
fn refuse_replaceable_hash(whole: Oid, hash: ReplaceableHash) -> Error {
    let signature = catalog::function_signature(hash.function);
    let reason = format!(
        "Its hash function, now {signature}, depends on operator classes that can be changed, and then an index would miss rows."
    );
    let error = refuse(whole, hash.hashed_type, &reason);
    if hash.hashed_type != whole {
        return error;
    }
    let name = catalog::display_name(whole);
    error.hint(format!(
        "Name the function in an operator class: CREATE OPERATOR CLASS ... FOR TYPE {name} USING bloom_filter AS OPERATOR 1 =, FUNCTION {HASH_SUPPORT} {signature}."
    ))
}

/// Returns the error 0A000 for a function that an operator class names to hash columns of a type,
/// if the function can't do that.
fn refuse_function(hash_function: Oid, column_type: Oid) -> Error {
    let signature = catalog::function_signature(hash_function);
    let name = catalog::display_name(column_type);
    unsupported(
        format!("function {signature} cannot hash the column of an index USING bloom_filter"),
        format!(
            "Support function {HASH_SUPPORT} of an operator class takes {name}, or a type that is stored as it is, and bigint, and returns bigint."
        ),
    )
}
