//! A type of elements, as a call site remembers it: its key kind, and how its values are hashed for a
//! filter.

use super::hasher::{Form, Hasher, parquet_form};
use super::probe_key::ProbeKey;
use super::resolve::{Dependencies, ResolvedType, Resolver, built_in};
use crate::error::{During, invalid_parameter, unsupported};
use crate::pg::call::{Call, Element, Error, Result, SqlState, nodes};
use crate::pg::catalog::{self, Shape};
use crate::pg::value::array::elements;
use crate::pg::value::encoding;
use pg_bloom_core::error::InvalidParameter;
use pg_bloom_core::filter::build::unify_with_element;
use pg_bloom_core::{Header, Kind, Layout, Tag, memory};
use pgrx::pg_sys::Oid;

/// A type of elements, resolved once for a call site.
pub struct ElementType {
    /// As it was given: it may be a domain, which may be dropped while a plan still names it.
    pub oid: Oid,
    base: Oid,
    resolved: ResolvedType,
    dependencies: Dependencies,
}

impl ElementType {
    /// The type of argument `i`, an element. Errors, of the others as well: 0A000 for a type or
    /// collation that can't be an element, 42704 for a type that is not there.
    pub fn of_argument(call: &Call, i: usize) -> Result<ElementType> {
        ElementType::of_type(call, i, existing(call.argument_type(i)?)?)
    }

    /// Type `oid`, of elements that are compared under the collation of argument `i`.
    pub fn of_type(call: &Call, i: usize, oid: Oid) -> Result<ElementType> {
        let base = catalog::base_type(oid);
        nodes::collations(call, i)
            .into_iter()
            .try_for_each(|collation| check_collation(call, base, collation))?;
        ElementType::new(call.function()?, oid, base)
    }

    /// This type, of elements that other calls will have, compared under its own collation.
    pub fn of_later_elements(call: &Call, oid: Oid) -> Result<ElementType> {
        let base = catalog::base_type(existing(oid)?);
        check_collation(call, base, catalog::collation(oid))?;
        ElementType::new(call.function()?, oid, base)
    }

    pub fn of_array(call: &Call, i: usize) -> Result<ElementType> {
        let array = catalog::base_type(existing(call.argument_type(i)?)?);
        let element = catalog::element_type(array).ok_or_else(|| refuse_array(array))?;
        ElementType::of_type(call, i, element)
    }

    /// The type `oid`, of keys of an index scan, compared under this collation.
    pub fn of_key(function: Oid, oid: Oid, collation: Oid) -> Result<ElementType> {
        require_deterministic(collation)?;
        ElementType::new(function, oid, catalog::base_type(oid))
    }

    fn new(function: Oid, oid: Oid, base: Oid) -> Result<ElementType> {
        ElementType::in_encoding(function, oid, base, encoding::foreign_encoding())
    }

    fn in_encoding(
        function: Oid,
        oid: Oid,
        base: Oid,
        encoding: Option<&'static str>,
    ) -> Result<ElementType> {
        let mut resolver = Resolver::new(function, base, encoding);
        let resolved = resolver.part(base)?;
        Ok(ElementType { oid, base, resolved, dependencies: resolver.dependencies })
    }

    /// Returns the encoding of a database in which this type has a kind for which `is_it` holds; UTF8
    /// stands for SQL_ASCII as well. `None` if there is none. Fails if the type can't be an element.
    pub fn encoding_where(
        &self,
        call: &Call,
        is_it: impl Fn(&ElementType) -> bool,
    ) -> Result<Option<&'static str>> {
        let function = call.function()?;
        for encoding in std::iter::once(None).chain(encoding::foreign_encodings().map(Some)) {
            let there = ElementType::in_encoding(function, self.oid, self.base, encoding)?;
            if is_it(&there) {
                return Ok(Some(encoding.unwrap_or("UTF8")));
            }
        }
        Ok(None)
    }

    /// Whether what these elements are made of, or how they are hashed, can be altered.
    pub fn is_alterable(&self) -> bool {
        !self.dependencies.is_empty()
    }

    /// Whether nothing of that was altered since the type was resolved.
    #[inline(always)]
    pub fn is_current(&self) -> bool {
        self.dependencies.is_empty() || self.dependencies.are_current()
    }

    /// Resolves the type again if what its elements are made of, or how they are hashed, was altered
    /// since. Returns what it was before in that case. Fails with 0A000 for a type that can no longer
    /// be an element.
    #[inline]
    pub fn refresh(&mut self, call: &Call) -> Result<Option<ElementType>> {
        if self.is_current() {
            return Ok(None);
        }
        let now = ElementType::new(call.function()?, self.oid, self.base)?;
        Ok(Some(std::mem::replace(self, now)))
    }

    /// The type of argument `i`, or of the elements in it, as this call site remembers it.
    pub fn remembered(call: &Call, i: usize, given: Given) -> Result<&ElementType> {
        let find = if given == Given::Array {
            ElementType::of_array
        } else {
            ElementType::of_argument
        };
        let (of, element_type) = call.remembered(|| Ok(((i, given), find(call, i)?)))?;
        assert!(*of == (i, given), "a call site remembers the type of one argument");
        element_type.refresh(call)?;
        Ok(element_type)
    }

    /// The kind that elements of this type have in a new filter.
    pub fn kind(&self, layout: Layout) -> Kind<'_> {
        let tag = if layout == Layout::Parquet {
            self.resolved.parquet
        } else {
            self.resolved.tag
        };
        Kind { tag, name: &self.resolved.name }
    }

    /// How elements are hashed that this SQL function adds to a filter, or looks for in it. Errors:
    /// 42804 for a filter of another kind.
    pub fn hasher_for(&self, filter: &Header<'_>, function: &str) -> Result<Hasher> {
        let own = self.kind(filter.layout);
        let kind = if filter.kind.is_none() { own } else { filter.kind };
        let form = parquet_form(self.resolved.tag, kind.tag);
        if form.is_none() {
            unify_with_element(kind, own).during(function)?;
        }
        Ok(self.hasher_in(form.unwrap_or(Form::General)))
    }

    /// How elements of this type are hashed for a new filter of this layout.
    pub fn hasher(&self, layout: Layout) -> Hasher {
        self.hasher_in(
            parquet_form(self.resolved.tag, self.kind(layout).tag).unwrap_or(Form::General),
        )
    }

    fn hasher_in(&self, form: Form) -> Hasher {
        Hasher { reader: self.resolved.reader.clone(), form }
    }

    /// The element in a form with which any filter can be probed; without one, a form that matches
    /// no filter.
    ///
    /// # Safety
    /// The element must be of this type.
    pub unsafe fn probe_key(&self, element: Option<Element>) -> ProbeKey {
        let ResolvedType { tag, parquet, ref name, .. } = self.resolved;
        let int32 = (tag == Tag::Integer).then_some(Form::Int32);
        let float32 = (tag == Tag::Float).then_some(Form::Float32);
        // SAFETY: promised by the caller.
        let hash = |form: Option<Form>| unsafe { self.hasher_in(form?).hash(element?) };
        let hashes = [Some(Form::General), int32, float32].map(hash);
        ProbeKey { tag, parquet_tag: parquet, name: name.clone(), hashes }
    }
}

/// Returns the kind that elements of a type have in the filters of Parquet files. Fails with 22023 if
/// the type has no form there, or if `oid` is not a type's.
pub fn parquet_tag(oid: Oid) -> Result<Tag> {
    let is_type = catalog::is_type(oid);
    let base = if is_type { catalog::base_type(oid) } else { Oid::INVALID };
    let tag = match built_in(base) {
        Some(built_in) => Some(built_in.parquet),
        None => (is_type && catalog::shape(base) == Shape::Enum).then_some(Tag::ParquetByteArray),
    };
    tag.filter(|tag| tag.is_parquet()).ok_or_else(|| {
        let name = if is_type { catalog::display_name(oid) } else { oid.to_u32().to_string() };
        invalid_parameter(format!("bloom filters of Parquet files have no elements of type {name}"))
        .hint(
            "Give the type that the column's values are stored as: integer, bigint, real, double precision, text, bytea, uuid, date, timestamp or timestamptz.",
        )
    })
}

/// Returns `oid` if there is such a type: a plan of PL/pgSQL may still name one that was dropped.
/// Fails with 42704 if it was.
fn existing(oid: Oid) -> Result<Oid> {
    if catalog::is_type(oid) {
        return Ok(oid);
    }
    let message = format!("type with identifier {} does not exist", oid.to_u32());
    Err(Error::new(SqlState::ERRCODE_UNDEFINED_OBJECT, message))
}

/// The refusal of a type whose elements have no type. Columns of PostgreSQL's statistics are of the
/// type `anyarray`, whose values alone know what is in them.
fn refuse_array(oid: Oid) -> Error {
    let name = catalog::display_name(oid);
    if catalog::is_polymorphic(oid) {
        return unsupported(
            format!("could not determine the type of the elements of a value of type {name}"),
            "Cast it to text, and that to an array of their type, for instance histogram_bounds::text::integer[].",
        );
    }
    unsupported(format!("type {name} is not an array"), "Use an array.")
}

/// Refuses elements of type `oid` with a collation that does not compare bytes, by 0A000, or with
/// none, by 42P22, unless the function is called without an expression that could have one.
fn check_collation(call: &Call, oid: Oid, collation: Oid) -> Result<()> {
    if call.is_prepared() && catalog::collation(oid) != Oid::INVALID && collation == Oid::INVALID {
        let message = "could not determine which collation to use for elements of a bloom filter";
        return Err(Error::new(SqlState::ERRCODE_INDETERMINATE_COLLATION, message)
            .hint("Use the COLLATE clause on the element."));
    }
    require_deterministic(collation)
}

pub(super) fn require_deterministic(collation: Oid) -> Result<()> {
    if catalog::is_deterministic(collation) {
        return Ok(());
    }
    Err(unsupported(
        "a nondeterministic collation cannot be used for elements of a bloom filter",
        "Values that it holds equal have different bytes. Use another collation, for instance COLLATE \"C\".",
    ))
}

#[derive(Clone, Copy, PartialEq)]
pub enum Given {
    Element,
    Array,
}

/// Returns the kind that a filter with this header has, or gets from the elements in argument `i`,
/// and the hashes of these elements for it: in their order and with repetitions, none for NULL.
/// `function` is the SQL function that changes the filter, for messages.
///
/// Fails as [`ElementType::of_argument`] and [`ElementType::hasher_for`] do, and with 22023 for a
/// number that the kind doesn't have.
pub fn hashes_of<'a>(
    call: &'a Call,
    i: usize,
    given: Given,
    header: &Header<'a>,
    function: &str,
) -> Result<(Kind<'a>, Vec<u64>)> {
    let element_type = ElementType::remembered(call, i, given)?;
    let elements = match given {
        Given::Array => elements(call, i, element_type.oid),
        Given::Element => Vec::from_iter(call.element(i)),
    };
    if given == Given::Element && elements.is_empty() {
        return Ok((Kind::NONE, Vec::new()));
    }
    let hasher = element_type.hasher_for(header, function)?;
    let kind = if header.kind.is_none() {
        element_type.kind(header.layout)
    } else {
        header.kind
    };
    // SAFETY: the type is that of the elements.
    let hash = |element| unsafe { hasher.hash(element) }.ok_or_else(|| out_of_range(kind));
    Ok((kind, memory::try_collect(elements.into_iter().map(hash))?))
}

/// Refuses a number that the filter's kind does not have.
#[cold]
pub fn out_of_range(kind: Kind<'_>) -> Error {
    pg_bloom_core::Error::from(InvalidParameter::OutOfRange(kind.to_string())).into()
}
