//! What each type is as an element, or as a part of one: how its values are read, and its key kind.
//!
//! Types whose equality a hash of ours cannot follow are refused rather than answered wrongly: text
//! under a nondeterministic collation; `citext`, which compares by its own rules; names of objects,
//! which are kept as identifiers that a dump doesn't keep; a `bloom` itself, which would be a filter
//! of filters where a merge was meant; and what is made of any of these.
//!
//! A kind must stand for one hash for as long as filters are stored. Of most types the canonical
//! bytes are ours. The others, of kind "other", are hashed by a function of PostgreSQL's catalogs. If
//! the type's name alone doesn't say which function that is, the kind names the function too:
//!
//! | type | hashed by | kind |
//! |---|---|---|
//! | `inet` | `hashinetextended`, which nobody can replace | `pg_catalog.inet` |
//! | `hstore` of the extension | the extension's function | `public.hstore` |
//! | `tick`, which a cast `WITHOUT FUNCTION` makes a `bigint` | the function of `bigint`, until `tick` gets an operator class | `public.tick@pg_catalog.hashint8extended(pg_catalog.int8)` |
//! | `tick` with a class of its own | the function of that class, until it is dropped | `public.tick@public.tick_hash(public.tick)` |

use super::members::{Member, Parts, RangeType, Reader};
use super::scalar::{ScalarReader, Source};
use crate::error::unsupported;
use crate::pg::call::{Error, Result, interrupt};
use crate::pg::catalog::default_class::{self, TypeHash, Unhashable};
use crate::pg::catalog::{self, Shape, Storage, invalidation};
use crate::pg::value::encoding;
use crate::pg::value::range::RangeEntry;
use crate::pg::value::row_type::{RowType, version_of};
use pg_bloom_core::kind::{Tag, shortened_name};
use pgrx::pg_sys::{BuiltinOid, Oid};
use std::collections::HashMap;
use std::rc::Rc;

/// How the values of a type that is not made of others are read, and its kinds.
#[derive(Clone, Copy)]
pub struct BuiltIn {
    pub source: Source,
    pub tag: Tag,
    /// The kind in a filter of the `parquet` layout.
    pub parquet: Tag,
}

/// Returns how a type of PostgreSQL's is read; `None` if it is of kind "other" or made of others.
pub fn built_in(oid: Oid) -> Option<BuiltIn> {
    let with_parquet = |source, tag, parquet| BuiltIn { source, tag, parquet };
    let general = |source, tag| BuiltIn { source, tag, parquet: tag };
    let text = |source| BuiltIn { source, tag: Tag::Text, parquet: Tag::ParquetByteArray };
    Some(match BuiltinOid::try_from(oid).ok()? {
        BuiltinOid::INT2OID => with_parquet(Source::Int2, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT4OID => with_parquet(Source::Int4, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT8OID => with_parquet(Source::Int8, Tag::Integer, Tag::ParquetInt64),
        BuiltinOid::FLOAT4OID => with_parquet(Source::Float4, Tag::Float, Tag::ParquetFloat),
        BuiltinOid::FLOAT8OID => with_parquet(Source::Float8, Tag::Float, Tag::ParquetDouble),
        BuiltinOid::NUMERICOID => general(Source::Numeric, Tag::Numeric),
        BuiltinOid::TEXTOID | BuiltinOid::VARCHAROID => text(Source::Text),
        BuiltinOid::BPCHAROID => text(Source::Bpchar),
        BuiltinOid::CHAROID => text(Source::Char),
        BuiltinOid::NAMEOID => text(Source::Name),
        BuiltinOid::BYTEAOID => with_parquet(Source::Bytea, Tag::Bytea, Tag::ParquetByteArray),
        BuiltinOid::UUIDOID => with_parquet(Source::Uuid, Tag::Uuid, Tag::ParquetFixed16),
        BuiltinOid::DATEOID => with_parquet(Source::Date, Tag::Date, Tag::ParquetDate),
        BuiltinOid::TIMESTAMPOID => {
            with_parquet(Source::Timestamp, Tag::Timestamp, Tag::ParquetTimestamp)
        }
        BuiltinOid::TIMESTAMPTZOID => {
            with_parquet(Source::Timestamp, Tag::Timestamptz, Tag::ParquetTimestamptz)
        }
        BuiltinOid::BOOLOID => general(Source::Bool, Tag::Boolean),
        BuiltinOid::TIMEOID => general(Source::Time, Tag::Time),
        BuiltinOid::TIMETZOID => general(Source::Timetz, Tag::Timetz),
        BuiltinOid::INTERVALOID => general(Source::Interval, Tag::Interval),
        BuiltinOid::PG_LSNOID => general(Source::Unsigned, Tag::PgLsn),
        BuiltinOid::XID8OID => general(Source::Unsigned, Tag::Xid8),
        BuiltinOid::JSONBOID => general(Source::Jsonb, Tag::Jsonb),
        _ => return None,
    })
}

/// What a type is as an element.
#[derive(Clone)]
pub struct ResolvedType {
    pub reader: Reader,
    pub tag: Tag,
    /// The kind in a filter of the `parquet` layout.
    pub parquet: Tag,
    /// The name of the kind, for those that have one.
    pub name: String,
}

impl ResolvedType {
    fn composite(parts: Parts, tag: Tag, name: String) -> ResolvedType {
        ResolvedType {
            reader: Reader::Composite(Rc::new(parts)),
            tag,
            parquet: tag,
            name: shortened_name(name),
        }
    }

    /// The kind, as it is written in the name of a kind that is made of this one.
    fn kind(&self) -> &str {
        if self.tag.has_name() { &self.name } else { self.tag.name() }
    }
}

/// What can change what a type is as an element, as it was when the type was resolved.
#[derive(Default)]
pub struct Dependencies {
    rows: Vec<RowVersion>,
    /// The version of all operator classes, if values are compared or hashed by some that somebody can
    /// make or drop.
    classes: Option<u64>,
}

/// A composite type that is part of a type, or the whole of it.
struct RowVersion {
    oid: Oid,
    version: u64,
}

impl Dependencies {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.classes.is_none()
    }

    /// Whether nothing has changed since.
    pub fn are_current(&self) -> bool {
        let is_known = |seen| seen == invalidation::known_version_of_classes();
        self.classes.is_none_or(is_known)
            && self.rows.iter().all(|row| version_of(row.oid) == row.version)
    }

    fn add_row(&mut self, oid: Oid) {
        self.rows.push(RowVersion { oid, version: version_of(oid) });
    }

    /// Must be called before the catalogs are read.
    fn add_classes(&mut self) {
        // The oldest version counts.
        self.classes.get_or_insert_with(invalidation::version_of_classes);
    }
}

/// A type whose hash function another one can replace.
#[derive(Clone, Copy)]
pub struct Unsettled {
    pub oid: Oid,
    pub hash: Oid,
}

/// Finds out what a type is, and all that it is made of.
pub struct Resolver {
    /// A function of the extension, which tells its schema.
    function: Oid,
    /// The type that the user sees.
    whole: Oid,
    /// The encoding from which text is converted to UTF-8, if it must be.
    encoding: Option<&'static str>,
    /// What is known so far, so that the time taken depends on the number of types rather than on
    /// how they are combined; `None` while a type is being looked at.
    known: HashMap<Oid, Option<ResolvedType>>,
    pub dependencies: Dependencies,
    /// The first type in it whose hash function can be replaced.
    pub unsettled: Option<Unsettled>,
}

impl Resolver {
    /// A resolver for the type `whole` and its parts. Text is converted to UTF-8 if it is in
    /// `encoding`; without one it is taken as it is.
    pub fn new(function: Oid, whole: Oid, encoding: Option<&'static str>) -> Resolver {
        Resolver {
            function,
            whole,
            encoding,
            known: HashMap::new(),
            dependencies: Dependencies::default(),
            unsettled: None,
        }
    }

    /// Returns what the type `oid` is. Fails with 0A000 for a type that can't be an element, or a part
    /// of one, and with 54001 for a type that is too complex.
    pub fn part(&mut self, oid: Oid) -> Result<ResolvedType> {
        interrupt::check_stack_depth();
        let oid = catalog::base_type(oid);
        if let Some(BuiltIn { source, tag, parquet }) = built_in(oid) {
            return Ok(self.scalar(source, tag, parquet));
        }
        if let Some(known) = self.known.get(&oid) {
            return known.clone().ok_or_else(|| self.refuse_unhashable(oid));
        }
        self.known.insert(oid, None);
        let resolved = self.of_shape(oid)?;
        self.known.insert(oid, Some(resolved.clone()));
        Ok(resolved)
    }

    fn of_shape(&mut self, oid: Oid) -> Result<ResolvedType> {
        let shape = catalog::shape(oid);
        let compares_by_members = matches!(
            shape,
            Shape::Enum
                | Shape::Array(_)
                | Shape::Range(..)
                | Shape::Multirange(_)
                | Shape::Composite
        );
        if compares_by_members {
            self.check_no_own_operator_class(oid)?;
        }
        match shape {
            Shape::Enum => Ok(self.scalar(Source::Enum, Tag::Text, Tag::ParquetByteArray)),
            Shape::Domain(base) => self.part(base),
            Shape::Array(element) => {
                let (kind, member) = self.member(element, catalog::storage(element))?;
                let name = format!("array of {kind}");
                Ok(ResolvedType::composite(Parts::Array(member), Tag::Array, name))
            }
            Shape::Range(..) => self.range(oid, oid, Parts::Range, Tag::Range),
            Shape::Multirange(range) => self.range(oid, range, Parts::Multirange, Tag::Multirange),
            Shape::Composite => self.row(oid),
            Shape::AnonymousRow => Err(unsupported(
                "an anonymous row cannot be an element of a bloom filter",
                "The types of its columns are not known. Cast it to a named composite type, or use an array or jsonb.",
            )),
            Shape::ForeignString => Err(self.refuse_foreign_string(oid)),
            Shape::ObjectName => Err(self.refuse(
                "The hash of an object's name depends on object identifiers, which a dump does not keep. Cast it to text.",
            )),
            Shape::Base => self.other(oid),
        }
    }

    /// The kind of members of a type, and how they are read when they are kept like this.
    fn member(&mut self, oid: Oid, storage: Storage) -> Result<(String, Member)> {
        let resolved = self.part(oid)?;
        let kind = resolved.kind().to_owned();
        Ok((kind, Member { reader: resolved.reader, storage }))
    }

    /// The type `oid`, of ranges of the type `range`, or of multiranges of them.
    fn range(
        &mut self,
        oid: Oid,
        range: Oid,
        parts: fn(RangeType) -> Parts,
        tag: Tag,
    ) -> Result<ResolvedType> {
        let Shape::Range(subtype, collation) = catalog::shape(range) else {
            return Err(self.refuse_unhashable(range));
        };
        self.check_collation(collation)?;
        self.dependencies.add_classes();
        if !default_class::compares_as_its_bounds(range, subtype) {
            return Err(self.refuse(format!(
                "Type {} compares its bounds by an operator class that is not the default of their type. Cast it to text.",
                catalog::display_name(range)
            )));
        }
        let (kind, bound) = self.member(subtype, catalog::storage(subtype))?;
        let parts = parts(RangeType { entry: RangeEntry::of(range), bound });
        let name = format!("{} of {kind}", catalog::qualified_name(oid));
        Ok(ResolvedType::composite(parts, tag, name))
    }

    /// Row types are distinguished by their names and the names and kinds of their columns, in
    /// order. Only the name of a column tells it from another that was dropped, and is kept by a
    /// dump.
    fn row(&mut self, oid: Oid) -> Result<ResolvedType> {
        self.dependencies.add_row(oid);
        let row = RowType::new(oid);
        let mut members = Vec::new();
        let mut kinds = Vec::new();
        for column in row.columns() {
            if column.attisdropped {
                members.push(None);
                continue;
            }
            self.check_collation(column.attcollation)?;
            let (kind, member) = self.member(column.atttypid, Storage::of(&column))?;
            let column_name = catalog::quoted(&encoding::name(&column.attname));
            kinds.push(format!("{column_name} {kind}"));
            members.push(Some(member));
        }
        let name = format!("{}({})", catalog::qualified_name(oid), kinds.join(", "));
        Ok(ResolvedType::composite(Parts::Row(row, members), Tag::Row, name))
    }

    /// A type that is hashed by a function of its own.
    fn other(&mut self, oid: Oid) -> Result<ResolvedType> {
        self.refuse_filter(oid)?;
        let hash = self.hash_of(oid)?;
        let name = shortened_name(self.name_of_other(oid, &hash));
        let reader = ScalarReader {
            source: Source::Other,
            convert: self.encoding.is_some(),
            extended_hash: default_class::prepared_function(hash.function),
        };
        Ok(ResolvedType {
            reader: Reader::Scalar(reader),
            tag: Tag::Other,
            parquet: Tag::Other,
            name,
        })
    }

    /// How a type hashes its values. Fails with 0A000 if it doesn't, or otherwise than its values are
    /// equal.
    fn hash_of(&mut self, oid: Oid) -> Result<TypeHash> {
        self.dependencies.add_classes();
        let hash = match default_class::type_hash(oid) {
            Ok(hash) => hash,
            Err(Unhashable::NoFunction) => return Err(self.refuse_unhashable(oid)),
            Err(Unhashable::OtherEquality) => {
                return Err(self.refuse(format!(
                    "The default operator classes of type {} for btree and hash have different operators =. Cast it to text.",
                    catalog::display_name(oid)
                )));
            }
        };
        // The type is hashed as the other one is: what can't be an element of that can't be of this.
        if hash.class_type != oid {
            if catalog::shape(hash.class_type) == Shape::ForeignString {
                return Err(self.refuse_foreign_string(oid));
            }
            self.refuse_filter(hash.class_type)?;
        }
        if !hash.is_settled && self.unsettled.is_none() {
            self.unsettled = Some(Unsettled { oid, hash: hash.function });
        }
        Ok(hash)
    }

    /// The name that tells a type with a hash of its own from others. It has what the hash depends on
    /// beside the type: a function, if that can be replaced; the encoding of the database and the
    /// CPU, where they may matter. A filter that was moved, or whose type was altered, then gives an
    /// error and no wrong answer.
    fn name_of_other(&self, oid: Oid, hash: &TypeHash) -> String {
        let mut name = catalog::qualified_name(oid);
        if !hash.is_settled {
            name.push('@');
            name.push_str(&default_class::hash_function_name(hash.function));
        }
        if let Some(encoding) = self.encoding
            && !is_without_text(oid)
        {
            name.push('@');
            name.push_str(encoding);
        }
        if cfg!(target_endian = "big") {
            name.push_str("@big-endian");
        }
        name
    }

    /// A type that is not made of others, and whose kind has no name.
    fn scalar(&self, source: Source, tag: Tag, parquet: Tag) -> ResolvedType {
        let reader = ScalarReader {
            source,
            convert: self.encoding.is_some(),
            extended_hash: std::ptr::null_mut(),
        };
        ResolvedType {
            reader: Reader::Scalar(reader),
            tag,
            parquet,
            name: String::new(),
        }
    }

    /// Checks a type whose values are equal if their members are: fails with 0A000 if it has an
    /// operator class of its own, which may hold others equal.
    fn check_no_own_operator_class(&mut self, oid: Oid) -> Result<()> {
        self.dependencies.add_classes();
        if !default_class::has_own_operator_class(oid) {
            return Ok(());
        }
        Err(self.refuse(format!(
            "Type {} has an operator class of its own, whose equality a hash of its values does not follow. Cast it to text.",
            catalog::display_name(oid)
        )))
    }

    /// Refuses a filter as an element, or in one.
    fn refuse_filter(&self, part: Oid) -> Result<()> {
        let hint = if part == catalog::type_beside(self.function, c"bloom") {
            "To merge filters use bloom_union_agg(filter) or filter | filter."
        } else if part == catalog::type_beside(self.function, c"counting_bloom") {
            "To add filters use counting_bloom_union_agg(filter) or filter + filter."
        } else {
            return Ok(());
        };
        if part == self.whole {
            return Err(unsupported("a bloom filter cannot be an element of a bloom filter", hint));
        }
        Err(self.refuse(hint))
    }

    fn refuse_foreign_string(&self, oid: Oid) -> Error {
        if oid == self.whole {
            return self.refuse(
                "It compares by rules that a hash of its bytes does not follow. Cast it to text, for instance lower(x::text).",
            );
        }
        self.refuse(format!(
            "It has {} in it, which compares by rules that a hash of its bytes does not follow. Cast that to text.",
            catalog::display_name(oid)
        ))
    }

    fn check_collation(&self, collation: Oid) -> Result<()> {
        if catalog::is_deterministic(collation) {
            return Ok(());
        }
        Err(self.refuse("It has text with a nondeterministic collation, which holds values equal whose bytes differ."))
    }

    fn refuse(&self, hint: impl Into<String>) -> Error {
        let name = catalog::display_name(self.whole);
        unsupported(format!("type {name} cannot be an element of a bloom filter"), hint)
    }

    fn refuse_unhashable(&self, part: Oid) -> Error {
        let subject = if part == self.whole {
            "The type".to_owned()
        } else {
            format!("Type {} in it", catalog::display_name(part))
        };
        self.refuse(format!(
            "{subject} has no extended (64-bit) hash function. Cast the element to a type that has one, for instance text."
        ))
    }
}

/// Whether values of a type certainly contain no text, whose hash would depend on its encoding. Types
/// that are not known here may.
fn is_without_text(oid: Oid) -> bool {
    use BuiltinOid as B;
    matches!(
        BuiltinOid::try_from(oid),
        Ok(B::INETOID | B::CIDROID | B::MACADDROID | B::MACADDR8OID)
            | Ok(B::OIDOID | B::XIDOID | B::CIDOID | B::TIDOID | B::OIDVECTOROID)
    )
}
