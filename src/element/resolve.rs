//! What each type is as an element, or as a part of one: how it is read, and its key kind.

use super::members::{Member, Parts, RangeType, Reader};
use super::scalar::{ScalarReader, Source};
use crate::error::unsupported;
use crate::pg::call::{Error, Result, interrupt};
use crate::pg::catalog::{self, Shape, Storage};
use crate::pg::value::encoding;
use crate::pg::value::range::RangeEntry;
use crate::pg::value::row_type::{RowType, version_of};
use pg_bloom_core::kind::{Tag, shortened_name};
use pgrx::pg_sys::{BuiltinOid, Oid};
use std::collections::HashMap;
use std::rc::Rc;

/// How each type that is not "other" is read, and its kinds: in general, and in the `parquet`
/// layout.
pub fn built_in(oid: Oid) -> Option<(Source, Tag, Tag)> {
    let general = |source, tag| (source, tag, tag);
    Some(match BuiltinOid::try_from(oid).ok()? {
        BuiltinOid::INT2OID => (Source::Int2, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT4OID => (Source::Int4, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT8OID => (Source::Int8, Tag::Integer, Tag::ParquetInt64),
        BuiltinOid::FLOAT4OID => (Source::Float4, Tag::Float, Tag::ParquetFloat),
        BuiltinOid::FLOAT8OID => (Source::Float8, Tag::Float, Tag::ParquetDouble),
        BuiltinOid::NUMERICOID => general(Source::Numeric, Tag::Numeric),
        BuiltinOid::TEXTOID | BuiltinOid::VARCHAROID => {
            (Source::Text, Tag::Text, Tag::ParquetByteArray)
        }
        BuiltinOid::BPCHAROID => (Source::Bpchar, Tag::Text, Tag::ParquetByteArray),
        BuiltinOid::CHAROID => (Source::Char, Tag::Text, Tag::ParquetByteArray),
        BuiltinOid::NAMEOID => (Source::Name, Tag::Text, Tag::ParquetByteArray),
        BuiltinOid::BYTEAOID => (Source::Bytea, Tag::Bytea, Tag::ParquetByteArray),
        BuiltinOid::UUIDOID => (Source::Uuid, Tag::Uuid, Tag::ParquetFixed16),
        BuiltinOid::DATEOID => (Source::Date, Tag::Date, Tag::ParquetDate),
        BuiltinOid::TIMESTAMPOID => (Source::Timestamp, Tag::Timestamp, Tag::ParquetTimestamp),
        BuiltinOid::TIMESTAMPTZOID => {
            (Source::Timestamp, Tag::Timestamptz, Tag::ParquetTimestamptz)
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

#[derive(Clone)]
pub struct Resolved {
    pub reader: Reader,
    pub tag: Tag,
    /// The kind in a filter of the `parquet` layout.
    pub parquet: Tag,
    /// The name of the kind, for those that have one.
    pub name: String,
}

impl Resolved {
    fn composite(parts: Parts, tag: Tag, name: String) -> Resolved {
        Resolved {
            reader: Reader::Composite(Rc::new(parts)),
            tag,
            parquet: tag,
            name: shortened_name(name),
        }
    }

    fn kind(&self) -> &str {
        if self.tag.has_name() { &self.name } else { self.tag.name() }
    }
}

/// Finds out what a type is, and all that it is made of.
pub struct Resolver {
    /// A function of the extension, which tells its schema.
    function: Oid,
    /// What the user sees.
    whole: Oid,
    convert: bool,
    /// What is known so far, so that the time taken depends on the number of types rather than on
    /// how they are combined; nothing yet of a type that is being looked at.
    known: HashMap<Oid, Option<Resolved>>,
    /// The types of rows in it, and their versions.
    pub rows: Vec<(Oid, u64)>,
}

impl Resolver {
    pub fn new(function: Oid, whole: Oid, convert: bool) -> Resolver {
        Resolver {
            function,
            whole,
            convert,
            known: HashMap::new(),
            rows: Vec::new(),
        }
    }

    /// Errors: 0A000 for a type that can't be an element, or a part of one; 54001 for a type that
    /// is too complex.
    pub fn part(&mut self, oid: Oid) -> Result<Resolved> {
        interrupt::check_stack_depth();
        let oid = catalog::base_type(oid);
        if let Some((source, tag, parquet)) = built_in(oid) {
            return self.plain(source, tag, parquet, oid);
        }
        if let Some(known) = self.known.get(&oid) {
            return known.clone().ok_or_else(|| self.refuse_unhashable(oid));
        }
        self.known.insert(oid, None);
        let resolved = self.made_of_parts(oid)?;
        self.known.insert(oid, Some(resolved.clone()));
        Ok(resolved)
    }

    fn made_of_parts(&mut self, oid: Oid) -> Result<Resolved> {
        let shape = catalog::shape(oid);
        let is_made_by_users = matches!(
            shape,
            Shape::Enum | Shape::Range(..) | Shape::Multirange(_) | Shape::Composite
        );
        if is_made_by_users && catalog::has_own_operator_class(oid) {
            return Err(self.refuse(format!(
                "Type {} has an operator class of its own, whose equality a hash of its values does not follow. Cast it to text.",
                catalog::display_name(oid)
            )));
        }
        match shape {
            Shape::Enum => self.plain(Source::Enum, Tag::Text, Tag::ParquetByteArray, oid),
            Shape::Domain(base) => self.part(base),
            Shape::Array(element) => {
                let (kind, member) = self.member(element, catalog::storage(element))?;
                Ok(Resolved::composite(Parts::Array(member), Tag::Array, format!("array of {kind}")))
            }
            Shape::Range(..) => self.range(oid, oid, Parts::Range, Tag::Range),
            Shape::Multirange(range) => self.range(oid, range, Parts::Multirange, Tag::Multirange),
            Shape::Composite => self.row(oid),
            Shape::AnonymousRow => Err(unsupported(
                "an anonymous row cannot be an element of a bloom filter",
                "The types of its columns are not known. Cast it to a named composite type, or use an array or jsonb.",
            )),
            Shape::ForeignString if oid == self.whole => Err(self.refuse(
                "It compares by rules that a hash of its bytes does not follow. Cast it to text, for instance lower(x::text).",
            )),
            Shape::ForeignString => Err(self.refuse(format!(
                "It has {} in it, which compares by rules that a hash of its bytes does not follow. Cast that to text.",
                catalog::display_name(oid)
            ))),
            Shape::ObjectName => Err(self.refuse(
                "The hash of an object's name depends on object identifiers, which a dump does not keep. Cast it to text.",
            )),
            Shape::Base => self.other(oid),
        }
    }

    /// The kind of members of a type, and how they are read when they are kept like this.
    fn member(&mut self, oid: Oid, storage: Storage) -> Result<(String, Member)> {
        let resolved = self.part(oid)?;
        Ok((resolved.kind().to_owned(), Member { reader: resolved.reader, storage }))
    }

    fn range(
        &mut self,
        oid: Oid,
        range: Oid,
        parts: fn(RangeType) -> Parts,
        tag: Tag,
    ) -> Result<Resolved> {
        let Shape::Range(subtype, collation) = catalog::shape(range) else {
            return Err(self.refuse_unhashable(range));
        };
        self.check_collation(collation)?;
        if !catalog::compares_as_its_bounds(range, subtype) {
            return Err(self.refuse(format!(
                "Type {} compares its bounds by an operator class that is not the default of their type. Cast it to text.",
                catalog::display_name(range)
            )));
        }
        let (kind, bound) = self.member(subtype, catalog::storage(subtype))?;
        let parts = parts(RangeType { entry: RangeEntry::of(range), bound });
        Ok(Resolved::composite(parts, tag, format!("{} of {kind}", catalog::qualified_name(oid))))
    }

    /// Row types are distinguished by their names and the names and kinds of their columns, in
    /// order. Only the name of a column tells it from another that was dropped, and is kept by a
    /// dump.
    fn row(&mut self, oid: Oid) -> Result<Resolved> {
        self.rows.push((oid, version_of(oid)));
        let row = RowType::new(oid);
        let (mut members, mut kinds) = (Vec::new(), Vec::new());
        for column in row.columns() {
            if column.attisdropped {
                members.push(None);
                continue;
            }
            self.check_collation(column.attcollation)?;
            let (kind, member) = self.member(column.atttypid, Storage::of(&column))?;
            kinds.push(format!("{} {kind}", catalog::quoted(&encoding::name(&column.attname))));
            members.push(Some(member));
        }
        let name = format!("{}({})", catalog::qualified_name(oid), kinds.join(", "));
        Ok(Resolved::composite(Parts::Row(row, members), Tag::Row, name))
    }

    /// A type that is known by its name and its own hash only.
    fn other(&self, oid: Oid) -> Result<Resolved> {
        self.refuse_filter(oid)?;
        Ok(Resolved {
            name: shortened_name(other_name(oid)),
            ..self.plain(Source::Other, Tag::Other, Tag::Other, oid)?
        })
    }

    /// A type that is not made of others, without a name of its kind.
    fn plain(&self, source: Source, tag: Tag, parquet: Tag, oid: Oid) -> Result<Resolved> {
        let extended_hash = match source {
            Source::Other => {
                catalog::extended_hash(oid).ok_or_else(|| self.refuse_unhashable(oid))?
            }
            _ => std::ptr::null_mut(),
        };
        let reader = Reader::Scalar(ScalarReader { source, convert: self.convert, extended_hash });
        Ok(Resolved { reader, tag, parquet, name: String::new() })
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

    fn check_collation(&self, collation: Oid) -> Result<()> {
        if catalog::is_deterministic(collation) {
            return Ok(());
        }
        Err(self.refuse("It has text with a nondeterministic collation, which holds values equal whose bytes differ."))
    }

    fn refuse(&self, hint: impl Into<String>) -> Error {
        unsupported(
            format!(
                "type {} cannot be an element of a bloom filter",
                catalog::display_name(self.whole)
            ),
            hint,
        )
    }

    fn refuse_unhashable(&self, part: Oid) -> Error {
        let subject = if part == self.whole {
            "The type".into()
        } else {
            format!("Type {} in it", catalog::display_name(part))
        };
        self.refuse(format!(
            "{subject} has no extended (64-bit) hash function. Cast the element to a type that has one, for instance text."
        ))
    }
}

/// The name that tells a type with a hash of its own from others. Where that hash may depend on the
/// encoding of the database or on the CPU, so does the name: a filter that was moved then gives an
/// error and no wrong answer.
fn other_name(oid: Oid) -> String {
    let mut name = catalog::qualified_name(oid);
    if let Some(encoding) = encoding::foreign_encoding().filter(|_| !is_without_text(oid)) {
        name += &format!("@{encoding}");
    }
    if cfg!(target_endian = "big") {
        name.push_str("@big-endian");
    }
    name
}

/// Whether values of a type certainly contain no text. Types that are not known here may.
fn is_without_text(oid: Oid) -> bool {
    use BuiltinOid as B;
    matches!(
        BuiltinOid::try_from(oid),
        Ok(B::INETOID | B::CIDROID | B::MACADDROID | B::MACADDR8OID)
            | Ok(B::OIDOID | B::XIDOID | B::CIDOID | B::TIDOID | B::OIDVECTOROID)
    )
}
