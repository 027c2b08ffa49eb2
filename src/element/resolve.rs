//! What each type is as an element, or as a part of one: how its values are read, and its key kind.
//!
//! Types whose equality a hash of ours cannot follow are refused rather than answered wrongly: text
//! under a nondeterministic collation; `citext`, which compares by its own rules; names of objects,
//! which are kept as identifiers that a dump doesn't keep; a `bloom` itself, which would be a
//! filter of filters where a merge was meant; and what is made of any of these.
//!
//! A kind must stand for one hash for as long as filters are stored. Of most types the canonical
//! bytes are ours. The others, of kind "other", are hashed by a function of PostgreSQL's catalogs.
//! If the type's name alone doesn't say which function that is, the kind names the function too:
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
use crate::pg::catalog::{self, Storage, TypeKind, invalidation};
use crate::pg::value::encoding;
use crate::pg::value::range::RangeEntry;
use crate::pg::value::row_type::{RowType, version_of};
use pg_bloom_core::kind::{Tag, shortened_name};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{BuiltinOid, Oid};
use std::collections::HashMap;
use std::rc::Rc;

/// How the values of a type that is not made of others are read, and its kinds.
#[derive(Clone, Copy)]
pub struct BuiltIn {
    pub source: Source,
    pub tag: Tag,
    /// The kind in a filter of the `parquet` layout.
    pub parquet_tag: Tag,
}

/// Returns how the values of a type that comes with PostgreSQL are read, and its key kind, by which
/// filters tell the types of their elements apart: types of one kind, such as `integer` and
/// `bigint`, may be elements of one filter. `None` for other types: these are hashed by a function
/// of their own, or made of other types.
///
/// Filters of the layout `parquet`, which Parquet files can contain, have kinds of their own. Types
/// for which these files have no filters keep their general kind there.
pub fn built_in(oid: Oid) -> Option<BuiltIn> {
    let in_parquet = |source, tag, parquet_tag| BuiltIn { source, tag, parquet_tag };
    let not_in_parquet = |source, tag| BuiltIn { source, tag, parquet_tag: tag };
    let text = |source| in_parquet(source, Tag::Text, Tag::ParquetByteArray);
    Some(match BuiltinOid::try_from(oid).ok()? {
        BuiltinOid::INT2OID => in_parquet(Source::Int2, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT4OID => in_parquet(Source::Int4, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT8OID => in_parquet(Source::Int8, Tag::Integer, Tag::ParquetInt64),
        BuiltinOid::FLOAT4OID => in_parquet(Source::Float4, Tag::Float, Tag::ParquetFloat),
        BuiltinOid::FLOAT8OID => in_parquet(Source::Float8, Tag::Float, Tag::ParquetDouble),
        BuiltinOid::NUMERICOID => not_in_parquet(Source::Numeric, Tag::Numeric),
        // These types store the same text in different ways.
        BuiltinOid::TEXTOID | BuiltinOid::VARCHAROID => text(Source::Text),
        BuiltinOid::BPCHAROID => text(Source::Bpchar),
        BuiltinOid::CHAROID => text(Source::Char),
        BuiltinOid::NAMEOID => text(Source::Name),
        BuiltinOid::BYTEAOID => in_parquet(Source::Bytea, Tag::Bytea, Tag::ParquetByteArray),
        BuiltinOid::UUIDOID => in_parquet(Source::Uuid, Tag::Uuid, Tag::ParquetFixed16),
        BuiltinOid::DATEOID => in_parquet(Source::Date, Tag::Date, Tag::ParquetDate),
        BuiltinOid::TIMESTAMPOID => {
            in_parquet(Source::Timestamp, Tag::Timestamp, Tag::ParquetTimestamp)
        }
        BuiltinOid::TIMESTAMPTZOID => {
            in_parquet(Source::Timestamp, Tag::Timestamptz, Tag::ParquetTimestamptz)
        }
        BuiltinOid::BOOLOID => not_in_parquet(Source::Bool, Tag::Boolean),
        BuiltinOid::TIMEOID => not_in_parquet(Source::Time, Tag::Time),
        BuiltinOid::TIMETZOID => not_in_parquet(Source::Timetz, Tag::Timetz),
        BuiltinOid::INTERVALOID => not_in_parquet(Source::Interval, Tag::Interval),
        // Both are unsigned numbers of 64 bits.
        BuiltinOid::PG_LSNOID => not_in_parquet(Source::Unsigned64, Tag::PgLsn),
        BuiltinOid::XID8OID => not_in_parquet(Source::Unsigned64, Tag::Xid8),
        BuiltinOid::JSONBOID => not_in_parquet(Source::Jsonb, Tag::Jsonb),
        _ => return None,
    })
}

/// How the values of a type are read, and its key kind, by which filters tell types apart.
#[derive(Clone)]
pub struct ResolvedType {
    pub reader: Reader,
    /// The kind in a filter of any layout but `parquet`.
    pub tag: Tag,
    /// The kind in a filter of the `parquet` layout.
    pub parquet_tag: Tag,
    /// The name of the kind, if the tag alone doesn't say which type it is; otherwise empty.
    pub name: String,
}

impl ResolvedType {
    /// Returns a type that is made of other types. A name that is too long to be stored is
    /// shortened.
    fn composite(parts: Parts, tag: Tag, name: String) -> ResolvedType {
        ResolvedType {
            reader: Reader::Composite(Rc::new(parts)),
            tag,
            parquet_tag: tag,
            name: shortened_name(name),
        }
    }

    /// Returns the kind as the name of another kind has it, such as `integer` in `array of
    /// integer`.
    fn kind(&self) -> &str {
        if self.tag.has_name() { &self.name } else { self.tag.name() }
    }
}

/// The catalog entries by which a type was resolved and that can be altered, each with its version
/// at that time.
#[derive(Default)]
pub struct Dependencies {
    /// The composite types in the type, or the type itself if it is one: columns can be altered.
    rows: List<RowVersion>,
    /// The version of all operator classes, if values are compared or hashed by a class that
    /// somebody can make or drop.
    classes: Option<u64>,
}

/// A composite type, and a number that changes whenever its columns do.
struct RowVersion {
    oid: Oid,
    version: u64,
}

impl Dependencies {
    /// Returns whether there are none: no command can alter how the type is hashed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.classes.is_none()
    }

    /// Returns whether no command that this session knows of has altered one of them since the type
    /// was resolved.
    pub fn are_current(&self) -> bool {
        let is_current = |version| version == invalidation::known_version_of_classes();
        self.classes.is_none_or(is_current)
            && self.rows.iter().all(|row| version_of(row.oid) == row.version)
    }

    /// Adds a composite type.
    fn add_row(&mut self, oid: Oid) {
        self.rows.push(RowVersion { oid, version: version_of(oid) });
    }

    /// Adds the operator classes. Must be called before they are read, so that a change during the
    /// reading makes the version an old one.
    fn add_classes(&mut self) {
        // If they were added before, the version of that time counts: some were read since.
        self.classes.get_or_insert_with(invalidation::version_of_classes);
    }
}

/// A hash function of a type that a command could replace by another one, by making or dropping an
/// operator class.
#[derive(Clone, Copy)]
pub struct ReplaceableHash {
    pub hashed_type: Oid,
    /// The hash function that the type has now.
    pub function: Oid,
}

/// Finds out how the values of a type are read, and of which kind they are, with all types that the
/// type is made of.
pub struct Resolver {
    /// A function of the extension, which tells its schema.
    function: Oid,
    /// The type that messages name, of which the others are parts.
    whole: Oid,
    /// The encoding from which text is converted to UTF-8, if it must be.
    encoding: Option<&'static str>,
    /// The types resolved so far, so that the time taken depends on the number of types rather than
    /// on how they are combined; `None` while a type is being resolved.
    known: HashMap<Oid, Option<ResolvedType>>,
    pub dependencies: Dependencies,
    /// The hash function of the first type in `whole` that has one which can be replaced.
    pub replaceable_hash: Option<ReplaceableHash>,
}

impl Resolver {
    /// Returns a resolver for the type `whole` and its parts. `function` is any function of the
    /// extension. Text is converted to UTF-8 from `encoding`; with `None` it is hashed as it is.
    pub fn new(function: Oid, whole: Oid, encoding: Option<&'static str>) -> Resolver {
        Resolver {
            function,
            whole,
            encoding,
            known: HashMap::new(),
            dependencies: Dependencies::default(),
            replaceable_hash: None,
        }
    }

    /// Returns how the values of type `oid`, the whole type or a part of it, are read, and its key
    /// kind, by which filters tell types apart. A domain counts as the type below it.
    ///
    /// Fails with 0A000 for a type that can't be an element or in one, and raises 54001 if types
    /// are nested deeper than the stack allows.
    pub fn resolve(&mut self, oid: Oid) -> Result<ResolvedType> {
        interrupt::check_stack_depth();
        let oid = catalog::base_type(oid);
        if let Some(BuiltIn { source, tag, parquet_tag }) = built_in(oid) {
            return Ok(self.scalar(source, tag, parquet_tag));
        }
        if let Some(known) = self.known.get(&oid) {
            // A type that is being resolved contains itself, and has no hash of its own.
            return known.clone().ok_or_else(|| self.refuse_unhashable(oid));
        }
        self.known.insert(oid, None);
        let resolved = self.resolve_by_kind(oid)?;
        self.known.insert(oid, Some(resolved.clone()));
        Ok(resolved)
    }

    /// Returns how the values of a type that isn't built in are read and hashed, by the type's
    /// kind: whether it is made of other types, and of which ones. Fails with 0A000 for a type
    /// that can't be an element or in one, and raises 54001 if types are nested deeper than the
    /// stack allows.
    fn resolve_by_kind(&mut self, oid: Oid) -> Result<ResolvedType> {
        let type_kind = catalog::type_kind(oid);
        let compares_by_members = matches!(
            type_kind,
            TypeKind::Enum
                | TypeKind::Array(_)
                | TypeKind::Range(..)
                | TypeKind::Multirange(_)
                | TypeKind::Composite
        );
        if compares_by_members {
            self.check_no_own_operator_class(oid)?;
        }
        match type_kind {
            TypeKind::Enum => Ok(self.scalar(Source::Enum, Tag::Text, Tag::ParquetByteArray)),
            TypeKind::Domain(base) => self.resolve(base),
            TypeKind::Array(element) => {
                let (kind, member) = self.member(element, catalog::storage(element))?;
                let name = format!("array of {kind}");
                Ok(ResolvedType::composite(Parts::Array(member), Tag::Array, name))
            }
            TypeKind::Range(..) => {
                let (kind, range) = self.range_type(oid)?;
                let name = format!("{} of {kind}", catalog::qualified_name(oid));
                Ok(ResolvedType::composite(Parts::Range(range), Tag::Range, name))
            }
            TypeKind::Multirange(of_range) => {
                let (kind, range) = self.range_type(of_range)?;
                let name = format!("{} of {kind}", catalog::qualified_name(oid));
                Ok(ResolvedType::composite(Parts::Multirange(range), Tag::Multirange, name))
            }
            TypeKind::Composite => self.resolve_row(oid),
            TypeKind::AnonymousRow => Err(unsupported(
                "an anonymous row cannot be an element of a bloom filter",
                "The types of its columns are not known. Cast it to a named composite type, or use an array or jsonb.",
            )),
            TypeKind::ForeignString => Err(self.refuse_foreign_string(oid)),
            TypeKind::ObjectName => Err(self.refuse(
                "The hash of an object's name depends on object identifiers, which a dump does not keep. Cast it to text.",
            )),
            TypeKind::Base => self.resolve_by_own_hash(oid),
        }
    }

    /// Returns the kind of type `oid`, and how its values are read that are stored like this in a
    /// value of another type. Fails as [`Resolver::resolve`] does.
    fn member(&mut self, oid: Oid, storage: Storage) -> Result<(String, Member)> {
        let resolved = self.resolve(oid)?;
        let kind = resolved.kind().to_owned();
        Ok((kind, Member { reader: resolved.reader, storage }))
    }

    /// Returns the name of the key kind of a range type's bounds, such as `integer`, and how ranges
    /// of the type are read. `range` is the identifier of the range type. Notes that the type
    /// depends on operator classes. Fails with 0A000 if bounds can't be in an element, or if the
    /// range type compares them by an operator class or a collation of its own, by which bounds
    /// with other bytes may be equal.
    fn range_type(&mut self, range: Oid) -> Result<(String, RangeType)> {
        let TypeKind::Range(subtype, collation) = catalog::type_kind(range) else {
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
        Ok((kind, RangeType { entry: RangeEntry::of(range), bound }))
    }

    /// Returns how the rows of a composite type are read and hashed, column by column, dropped ones
    /// left out. The name of the key kind, by which filters tell types apart, has the type's name
    /// and the names and kinds of its columns in their order, as `public.point("x" float, "y"
    /// float)`: a dump keeps all of these, and a column that replaces a dropped one has another
    /// name.
    ///
    /// Notes that `ALTER TYPE` can change the result. Fails with 0A000 if a column can't be in an
    /// element.
    fn resolve_row(&mut self, oid: Oid) -> Result<ResolvedType> {
        self.dependencies.add_row(oid);
        let row = RowType::new(oid);
        let mut members = List::new();
        let mut kinds = List::new();
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

    /// Returns how the values of a type are hashed that isn't made of others, such as `inet`: by
    /// the type's own extended (64-bit) hash function. The function's name is a part of the key
    /// kind if it can be replaced. Fails with 0A000 if the type has no such function, or is a
    /// filter.
    fn resolve_by_own_hash(&mut self, oid: Oid) -> Result<ResolvedType> {
        self.refuse_filter(oid)?;
        let hash = self.own_hash_function(oid)?;
        let name = shortened_name(self.kind_name(oid, &hash));
        let reader = ScalarReader {
            source: Source::Other,
            convert: self.encoding.is_some(),
            extended_hash: default_class::prepared_function(hash.function),
        };
        Ok(ResolvedType {
            reader: Reader::Scalar(reader),
            tag: Tag::Other,
            parquet_tag: Tag::Other,
            name,
        })
    }

    /// Returns the extended (64-bit) hash function of a type, which PostgreSQL finds by the type's
    /// default operator class for hashing.
    ///
    /// If the type has no such class, PostgreSQL uses that of a type to which a cast `WITHOUT
    /// FUNCTION` leads, until somebody makes a class for the type itself. So the resolver remembers
    /// that its result depends on operator classes and, in `replaceable_hash`, that this function
    /// can be replaced.
    ///
    /// Fails with 0A000 if there is no function, if values that the type's `=` holds equal may have
    /// different hashes, or if the function is that of a type that can't be an element.
    fn own_hash_function(&mut self, oid: Oid) -> Result<TypeHash> {
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

        // A type that is compared and hashed as another one can't be an element if that one can't:
        // neither strings with rules of their own, such as citext, nor filters.
        let is_hashed_as_other_type = hash.class_type != oid;
        if is_hashed_as_other_type {
            if catalog::type_kind(hash.class_type) == TypeKind::ForeignString {
                return Err(self.refuse_foreign_string(oid));
            }
            self.refuse_filter(hash.class_type)?;
        }

        if !hash.is_permanent && self.replaceable_hash.is_none() {
            let function = hash.function;
            self.replaceable_hash = Some(ReplaceableHash { hashed_type: oid, function });
        }
        Ok(hash)
    }

    /// Returns the name of the kind of a type that is hashed by a function of its own. Beside the
    /// type, the name says all that the hash depends on: the function, if that can be replaced; the
    /// encoding of the database and the byte order of the CPU, if they may matter. A filter that
    /// was moved elsewhere, or whose type was altered, then has another kind than the elements,
    /// which is an error and no wrong answer.
    fn kind_name(&self, oid: Oid, hash: &TypeHash) -> String {
        let mut name = catalog::qualified_name(oid);
        if !hash.is_permanent {
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

    /// Returns a type whose values are read as `source` says, and that isn't made of others. `tag`
    /// is its key kind, by which filters tell types apart, and `parquet_tag` the one in filters of
    /// Parquet files. Neither needs a name.
    fn scalar(&self, source: Source, tag: Tag, parquet_tag: Tag) -> ResolvedType {
        let reader = ScalarReader {
            source,
            convert: self.encoding.is_some(),
            extended_hash: std::ptr::null_mut(),
        };
        ResolvedType {
            reader: Reader::Scalar(reader),
            tag,
            parquet_tag,
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

    /// Checks that `part`, a type in the type of an element, is not `bloom` or `counting_bloom`:
    /// users who pass a filter as an element want to merge filters. Fails with 0A000 and a hint if
    /// it is.
    fn refuse_filter(&self, part: Oid) -> Result<()> {
        let hint = if part == catalog::type_in_schema_of(self.function, c"bloom") {
            "To merge filters use bloom_union_agg(filter) or filter | filter."
        } else if part == catalog::type_in_schema_of(self.function, c"counting_bloom") {
            "To add filters use counting_bloom_union_agg(filter) or filter + filter."
        } else {
            return Ok(());
        };
        if part == self.whole {
            return Err(unsupported("a bloom filter cannot be an element of a bloom filter", hint));
        }
        Err(self.refuse(hint))
    }

    /// Returns the refusal of a type like `citext`, a string that is compared by rules of its own,
    /// or of a type that has this one in it.
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

    /// Checks that text under a collation is equal only if its bytes are. Fails with 0A000
    /// otherwise.
    fn check_collation(&self, collation: Oid) -> Result<()> {
        if catalog::is_deterministic(collation) {
            return Ok(());
        }
        Err(self.refuse("It has text with a nondeterministic collation, which holds values equal whose bytes differ."))
    }

    /// Returns the refusal of the whole type as an element, with a hint that says why and what to
    /// do.
    fn refuse(&self, hint: impl Into<String>) -> Error {
        let name = catalog::display_name(self.whole);
        unsupported(format!("type {name} cannot be an element of a bloom filter"), hint)
    }

    /// Returns the refusal of the whole type because a part of it, or the type itself, has no hash
    /// function.
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

/// Returns whether a type is known to have no text in its values, so that no hash depends on the
/// encoding of the database. False for types that aren't listed here.
fn is_without_text(oid: Oid) -> bool {
    use BuiltinOid as B;
    matches!(
        BuiltinOid::try_from(oid),
        Ok(B::INETOID | B::CIDROID | B::MACADDROID | B::MACADDR8OID)
            | Ok(B::OIDOID | B::XIDOID | B::CIDOID | B::TIDOID | B::OIDVECTOROID)
    )
}
