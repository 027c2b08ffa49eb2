//! Elements: which SQL values may be added and asked for, and as which key kind.
//!
//! Types whose equality our hash cannot follow are refused rather than answered wrongly: text under a nondeterministic
//! collation; `citext`, which compares by its own rules; arrays, rows and ranges of enums, whose hash depends on object
//! identifiers that a dump doesn't keep; a `bloom` itself, which would be a filter of filters where a merge was meant.

use crate::datum::catalog::{self, Shape};
use crate::datum::expression;
use crate::datum::{Call, Element, Form, Reader, Source};
use crate::error::{Failure, unsupported};
use pg_bloom_core::build::meet_kind;
use pg_bloom_core::hash::hash;
use pg_bloom_core::kind::{Kind, MAX_NAME, Tag};
use pg_bloom_core::{Code, Error, Header, Layout, memory};
use pgrx::pg_sys::{BuiltinOid, Oid};

/// A type of elements, resolved once for a call site.
pub struct ElementType {
    reader: Reader,
    tag: Tag,
    /// The kind in a filter of the `parquet` layout.
    parquet: Tag,
    /// The type's name for kind "other".
    name: String,
}

/// How elements of one type are hashed for one key kind.
#[derive(Clone, Copy, PartialEq)]
pub struct Reading {
    reader: Reader,
    form: Form,
}

impl Reading {
    /// The hash of an element; `None` if no filter of the kind can hold it.
    #[inline(always)]
    pub fn hash(&self, element: Element) -> Option<u64> {
        self.reader.hash(self.form, element)
    }
}

/// How elements of one type go into, or are looked for in, one filter.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    /// The kind that the filter has, or gets.
    pub kind: Kind<'a>,
    reading: Reading,
}

impl Key<'_> {
    /// How the elements are hashed.
    #[inline(always)]
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// The hash of an element; `None` if no filter of this kind can hold it.
    #[inline(always)]
    pub fn hash(&self, element: Element) -> Option<u64> {
        self.reading.hash(element)
    }
}

impl ElementType {
    /// The type of argument `i`, an element.
    ///
    /// # Errors
    /// 0A000 for a type or collation that can't be an element.
    pub fn of_argument(call: &Call, i: usize) -> Result<ElementType, Failure> {
        let oid = call.argument_type(i)?;
        resolve(call, i, oid)
    }

    /// This type, of elements that the call has not as an argument, compared under the collation of the call.
    ///
    /// # Errors
    /// As [`ElementType::of_argument`].
    pub fn of_type(call: &Call, oid: Oid) -> Result<ElementType, Failure> {
        resolve(call, 0, oid)
    }

    /// The type of the elements of argument `i`, an array, and its object identifier.
    ///
    /// # Errors
    /// As [`ElementType::of_argument`].
    pub fn of_array(call: &Call, i: usize) -> Result<(ElementType, Oid), Failure> {
        let array = catalog::base_type(call.argument_type(i)?);
        let element = catalog::element_type(array).ok_or_else(|| {
            unsupported(format!("type {} is no array", catalog::display_name(array)), "Use an array.")
        })?;
        Ok((resolve(call, i, element)?, element))
    }

    /// The kind that elements of this type have in a new filter.
    pub fn kind(&self, layout: Layout) -> Kind<'_> {
        let tag = if layout == Layout::Parquet { self.parquet } else { self.tag };
        Kind { tag, name: &self.name }
    }

    /// How elements of this type go into, or are looked for in, a filter.
    ///
    /// # Errors
    /// 42804 when the filter holds elements of another kind.
    pub fn key<'a>(&'a self, filter: &Header<'a>, operation: &str) -> Result<Key<'a>, Failure> {
        let own = self.kind(filter.layout);
        let kind = if filter.kind.is_none() { own } else { filter.kind };
        if let Some(form) = self.other_form(kind.tag) {
            return Ok(Key { kind, reading: Reading { reader: self.reader, form } });
        }
        let kind = meet_kind(kind, own, operation)?;
        Ok(Key { kind, reading: self.reading(filter.layout) })
    }

    /// How elements of this type are hashed for a new filter of this layout.
    pub fn reading(&self, layout: Layout) -> Reading {
        let form = match self.kind(layout).tag {
            Tag::ParquetInt32 => Form::Int32,
            Tag::ParquetFloat => Form::Float32,
            _ => Form::General,
        };
        Reading { reader: self.reader, form }
    }

    /// Kinds of the `parquet` layout that are not this type's own but compare with it.
    fn other_form(&self, tag: Tag) -> Option<Form> {
        match (self.tag, tag) {
            (Tag::Integer, Tag::ParquetInt32) => Some(Form::Int32),
            (Tag::Integer, Tag::ParquetInt64) | (Tag::Float, Tag::ParquetDouble) => Some(Form::General),
            (Tag::Float, Tag::ParquetFloat) => Some(Form::Float32),
            _ => None,
        }
    }
}

/// How each type that is not "other" is read, and its kinds: in general, and in the `parquet` layout.
fn built_in(oid: Oid) -> Option<(Source, Tag, Tag)> {
    Some(match BuiltinOid::try_from(oid).ok()? {
        BuiltinOid::INT2OID => (Source::Int2, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT4OID => (Source::Int4, Tag::Integer, Tag::ParquetInt32),
        BuiltinOid::INT8OID => (Source::Int8, Tag::Integer, Tag::ParquetInt64),
        BuiltinOid::FLOAT4OID => (Source::Float4, Tag::Float, Tag::ParquetFloat),
        BuiltinOid::FLOAT8OID => (Source::Float8, Tag::Float, Tag::ParquetDouble),
        BuiltinOid::NUMERICOID => (Source::Numeric, Tag::Numeric, Tag::Numeric),
        BuiltinOid::TEXTOID | BuiltinOid::VARCHAROID => (Source::Text, Tag::Text, Tag::ParquetByteArray),
        BuiltinOid::BPCHAROID => (Source::Bpchar, Tag::Text, Tag::ParquetByteArray),
        BuiltinOid::CHAROID => (Source::Char, Tag::Text, Tag::ParquetByteArray),
        BuiltinOid::NAMEOID => (Source::Name, Tag::Text, Tag::ParquetByteArray),
        BuiltinOid::BYTEAOID => (Source::Bytea, Tag::Bytea, Tag::ParquetByteArray),
        BuiltinOid::UUIDOID => (Source::Uuid, Tag::Uuid, Tag::ParquetFixed16),
        BuiltinOid::DATEOID => (Source::Date, Tag::Date, Tag::ParquetDate),
        BuiltinOid::TIMESTAMPOID => (Source::Timestamp, Tag::Timestamp, Tag::ParquetTimestamp),
        BuiltinOid::TIMESTAMPTZOID => (Source::Timestamp, Tag::Timestamptz, Tag::ParquetTimestamptz),
        BuiltinOid::BOOLOID => (Source::Bool, Tag::Boolean, Tag::Boolean),
        _ => return None,
    })
}

/// The kind that elements of a type have in the filters of Parquet files.
///
/// # Errors
/// 22023 for a type that has no form there, and for what is no type.
pub fn parquet_tag(oid: Oid) -> Result<Tag, Failure> {
    let (tag, name) = if catalog::is_type(oid) {
        let base = catalog::base_type(oid);
        let tag = match built_in(base) {
            Some((_, _, tag)) => Some(tag),
            None => (catalog::shape(base) == Shape::Enum).then_some(Tag::ParquetByteArray),
        };
        (tag, catalog::display_name(oid))
    } else {
        (None, oid.to_u32().to_string())
    };
    tag.filter(|tag| tag.is_parquet()).ok_or_else(|| {
        crate::error::invalid_parameter(format!("bloom filters of Parquet files have no elements of type {name}"))
        .hint(
            "Give the type that the column's values are stored as: integer, bigint, real, double precision, text, bytea, uuid, date, timestamp or timestamptz.",
        )
        .into()
    })
}

/// What elements of type `oid` are, which are argument `i` or in it.
fn resolve(call: &Call, i: usize, oid: Oid) -> Result<ElementType, Failure> {
    if let Some(source) = expression::quiet_string(call, i) {
        return Err(refuse_string(source));
    }
    let oid = catalog::base_type(oid);
    for collation in expression::collations(call, i) {
        check_collation(call, oid, collation)?;
    }
    let (source, tag, parquet) = match built_in(oid) {
        Some(known) => known,
        None if catalog::shape(oid) == Shape::Enum => (Source::Enum, Tag::Text, Tag::ParquetByteArray),
        None => {
            refuse_parts(oid, oid, &Filters::of(call)?)?;
            (Source::Other, Tag::Other, Tag::Other)
        }
    };
    let reader = Reader::new(source, oid).ok_or_else(|| {
        unsupported(
            format!("type {} cannot be an element of a bloom filter", catalog::display_name(oid)),
            "The type has no hash operator class. Cast the element to a type that has one, for instance text.",
        )
    })?;
    let name = if tag == Tag::Other { kind_name(oid) } else { String::new() };
    Ok(ElementType { reader, tag, parquet, name })
}

/// Refuses elements of type `oid` with a collation that does not compare bytes.
///
/// # Errors
/// 0A000 for such a collation; 42P22 for none, unless who calls the function has no expression that could have one.
fn check_collation(call: &Call, oid: Oid, collation: Oid) -> Result<(), Failure> {
    if call.is_prepared() && catalog::is_collatable(oid) && collation == Oid::INVALID {
        let message = "could not determine which collation to use for elements of a bloom filter";
        let error = Error::new(Code::InvalidParameter, message).hint("Use the COLLATE clause on the element.");
        return Err(Failure::IndeterminateCollation(error));
    }
    if !catalog::is_deterministic(collation) {
        return Err(unsupported(
            "a nondeterministic collation cannot be used for elements of a bloom filter",
            "Values that it holds equal have different bytes. Use another collation, for instance COLLATE \"C\".",
        ));
    }
    Ok(())
}

/// The types of the extension itself.
struct Filters {
    bloom: Oid,
    counting_bloom: Oid,
}

impl Filters {
    fn of(call: &Call) -> Result<Filters, Failure> {
        Ok(Filters {
            bloom: catalog::own_type(call, c"bloom")?,
            counting_bloom: catalog::own_type(call, c"counting_bloom")?,
        })
    }

    /// Refuses a filter as an element.
    fn refuse(&self, part: Oid) -> Result<(), Failure> {
        let hint = if part == self.bloom {
            "To merge filters use bloom_union_agg(filter) or filter | filter."
        } else if part == self.counting_bloom {
            "To add filters use counting_bloom_union_agg(filter) or filter + filter."
        } else {
            return Ok(());
        };
        Err(unsupported("a bloom filter cannot be an element of a bloom filter", hint))
    }
}

/// Refuses a type with a part whose hash does not follow its equality. `whole` is what the user sees.
fn refuse_parts(whole: Oid, part: Oid, filters: &Filters) -> Result<(), Failure> {
    filters.refuse(part)?;
    let collated = |collation| {
        if catalog::is_deterministic(collation) {
            return Ok(());
        }
        Err(unsupported(
            format!("type {} cannot be an element of a bloom filter", catalog::display_name(whole)),
            "It has text with a nondeterministic collation, which holds values equal whose bytes differ.",
        ))
    };
    match catalog::shape(part) {
        Shape::Base => Ok(()),
        Shape::ObjectName => Err(unsupported(
            format!("type {} cannot be an element of a bloom filter", catalog::display_name(whole)),
            "The hash of an object's name depends on object identifiers, which a dump does not keep. Cast it to text.",
        )),
        Shape::ForeignString => Err(refuse_string(part)),
        Shape::Enum => Err(unsupported(
            format!("type {} cannot be an element of a bloom filter", catalog::display_name(whole)),
            "The hash of an enum inside another type depends on object identifiers, which a dump does not keep. Cast it to text.",
        )),
        Shape::AnonymousRow => Err(unsupported(
            "an anonymous row cannot be an element of a bloom filter",
            "The types of its columns are not known. Cast it to a named composite type, or use an array or jsonb.",
        )),
        Shape::Domain(base) | Shape::Array(base) => refuse_parts(whole, base, filters),
        Shape::Range(base, collation) => collated(collation).and_then(|()| refuse_parts(whole, base, filters)),
        Shape::Composite(columns) => columns.into_iter().try_for_each(|(column, collation)| {
            collated(collation).and_then(|()| refuse_parts(whole, column, filters))
        }),
    }
}

/// The refusal of a string type of another extension.
pub fn refuse_string(oid: Oid) -> Failure {
    unsupported(
        format!("type {} cannot be an element of a bloom filter", catalog::display_name(oid)),
        "It compares by rules that a hash of its bytes does not follow. Cast it to text, for instance lower(x::text).",
    )
}

/// The name that tells this type from others in the kind of a filter. The columns of a row are part of it: a row type
/// that was altered hashes otherwise. Where the type's hash depends on the encoding of the database or on the CPU, so does
/// the name. A filter that was moved, or whose type was altered, then gives an error and no wrong answer.
fn kind_name(oid: Oid) -> String {
    /// What the name of a type and all that is added to it may take, so that the columns are at most the rest.
    const BESIDE_COLUMNS: usize = 320;
    let mut name = catalog::qualified_name(oid);
    let columns = column_kinds(oid);
    if columns.len() > MAX_NAME - BESIDE_COLUMNS {
        name.push_str(&format!("(#{:016x})", hash(columns.as_bytes())));
    } else {
        name.push_str(&columns);
    }
    if let Some(encoding) = catalog::foreign_encoding()
        && may_hold_text(oid)
    {
        name.push('@');
        name.push_str(encoding);
    }
    if cfg!(target_endian = "big") {
        name.push_str("@big-endian");
    }
    // PostgreSQL hashes a "char" as the number that it is to the C compiler: -128 to 127 on x86, 0 to 255 on ARM.
    if std::ffi::c_char::MIN == 0 && holds(oid, &|part| part == pgrx::pg_sys::CHAROID) {
        name.push_str("@unsigned-char");
    }
    name
}

/// The kinds of the columns of a row, or of the rows that a type is made of: `(integer, text)`. Empty for other types.
fn column_kinds(oid: Oid) -> String {
    match catalog::shape(oid) {
        Shape::Domain(part) | Shape::Array(part) | Shape::Range(part, _) => column_kinds(part),
        Shape::Composite(columns) => {
            let kinds: Vec<String> = columns.into_iter().map(|(column, _)| column_kind(column)).collect();
            format!("({})", kinds.join(", "))
        }
        _ => String::new(),
    }
}

/// The kind of a column. PostgreSQL's hash is the same for equal values of the types of one of our kinds, but for "char".
fn column_kind(oid: Oid) -> String {
    let oid = catalog::base_type(oid);
    match built_in(oid) {
        Some((source, tag, _)) if source != Source::Char => tag.name().into(),
        _ => catalog::qualified_name(oid) + &column_kinds(oid),
    }
}

/// Whether values of a type may have text in them; types not known here may.
fn may_hold_text(oid: Oid) -> bool {
    use BuiltinOid as B;
    const WITHOUT_TEXT: [BuiltinOid; 12] = [
        B::INETOID,
        B::CIDROID,
        B::MACADDROID,
        B::MACADDR8OID,
        B::INTERVALOID,
        B::TIMEOID,
        B::TIMETZOID,
        #[cfg(feature = "pg13")]
        B::LSNOID,
        #[cfg(not(feature = "pg13"))]
        B::PG_LSNOID,
        B::OIDOID,
        B::XIDOID,
        B::CIDOID,
        B::TIDOID,
    ];
    holds(oid, &|part| match built_in(part) {
        Some((_, tag, _)) => tag == Tag::Text,
        None => !BuiltinOid::try_from(part).is_ok_and(|known| WITHOUT_TEXT.contains(&known)),
    })
}

/// Whether a type, or one that it is made of, is such.
fn holds(oid: Oid, such: &dyn Fn(Oid) -> bool) -> bool {
    match catalog::shape(oid) {
        Shape::Domain(part) | Shape::Array(part) | Shape::Range(part, _) => holds(part, such),
        Shape::Composite(columns) => columns.into_iter().any(|(column, _)| holds(column, such)),
        _ => such(oid),
    }
}

/// The hashes of the elements of argument `i`, an array, ascending and without repetition.
///
/// # Errors
/// 22023 for a number that the filter's kind does not have.
pub fn hashes(elements: &[Element], key: &Key<'_>) -> Result<Vec<u64>, Failure> {
    let mut hashes = memory::try_collect(elements.iter().map(|&e| hash_to_add(key, e)))?;
    let distinct = pg_bloom_core::sparse::sort_distinct(&mut hashes, 0);
    hashes.truncate(distinct);
    Ok(hashes)
}

/// The hash of an element that is added: unlike one that is asked for, it must be one that the filter can hold.
///
/// # Errors
/// 22023 for a number that the filter's kind does not have.
#[inline(always)]
pub fn hash_to_add(key: &Key<'_>, element: Element) -> Result<u64, Failure> {
    key.hash(element).ok_or_else(|| out_of_range(key.kind))
}

/// Refuses a number that the filter's kind does not have.
#[cold]
pub fn out_of_range(kind: Kind<'_>) -> Failure {
    crate::error::invalid_parameter(format!("element is out of range for a bloom filter of kind {kind}"))
        .hint("Build the filter from elements of the wider type.")
        .into()
}
