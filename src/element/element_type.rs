//! Elements: which SQL values may be added and probed for, and as which key kind.
//!
//! Types whose equality our hash cannot follow are refused rather than answered wrongly: text under a nondeterministic
//! collation; `citext`, which compares by its own rules; names of objects, which are kept as identifiers that a dump
//! doesn't keep; a `bloom` itself, which would be a filter of filters where a merge was meant; and what is made of any
//! of these.

use super::hasher::{Form, Hasher, ProbeKey, other_form};
use super::resolve::{Resolved, Resolver, built_in};
use crate::error::{During, invalid_parameter, unsupported};
use crate::pg::call::error::{Error, Result, SqlState};
use crate::pg::call::nodes;
use crate::pg::call::{Call, Element};
use crate::pg::catalog::{self, Shape};
use crate::pg::value::encoding;
use crate::pg::value::row_type::version_of;
use pg_bloom_core::error::InvalidParameter;
use pg_bloom_core::filter::build::meet_kind;
use pg_bloom_core::kind::{Kind, Tag};
use pg_bloom_core::{Header, Layout, memory};
use pgrx::pg_sys::Oid;

/// What a call site remembers of the type of an argument. Nobody else can make one.
struct Remembered<T> {
    argument: usize,
    types: T,
}

/// A type of elements, resolved once for a call site.
pub struct ElementType {
    oid: Oid,
    resolved: Resolved,
    /// The types of rows that the elements are made of, and their versions.
    rows: Vec<(Oid, u64)>,
}

/// How elements of one type go into, or are looked for in, one filter.
#[derive(Clone)]
pub struct FilterKey<'a> {
    /// The kind that the filter has, or gets.
    pub kind: Kind<'a>,
    pub hasher: Hasher,
}

impl ElementType {
    /// The type of argument `i`, an element.
    ///
    /// # Errors
    /// 0A000 for a type or collation that can't be an element.
    pub fn of_argument(call: &Call, i: usize) -> Result<ElementType> {
        let oid = existing_type(call, i)?;
        resolve(call, i, oid)
    }

    /// This type, for elements that are not an argument of the call, compared under the collation of the call.
    ///
    /// # Errors
    /// As [`ElementType::of_argument`].
    pub fn of_type(call: &Call, oid: Oid) -> Result<ElementType> {
        resolve(call, 0, oid)
    }

    /// This type, of elements that other calls will have, compared under its own collation.
    ///
    /// # Errors
    /// As [`ElementType::of_argument`]; 42704 for a type that is not there.
    pub fn of_later_elements(call: &Call, oid: Oid) -> Result<ElementType> {
        check_existence(oid)?;
        let base = catalog::base_type(oid);
        check_collation(call, base, catalog::collation(oid))?;
        ElementType::new(call.function()?, base)
    }

    /// The type of the elements of argument `i`, an array, and its object identifier.
    ///
    /// # Errors
    /// As [`ElementType::of_argument`].
    pub fn of_array(call: &Call, i: usize) -> Result<(ElementType, Oid)> {
        let array = catalog::base_type(existing_type(call, i)?);
        let element = catalog::element_type(array).ok_or_else(|| {
            unsupported(format!("type {} is no array", catalog::display_name(array)), "Use an array.")
        })?;
        Ok((resolve(call, i, element)?, element))
    }

    /// Elements of a type that is not a domain, for a function of the extension.
    ///
    /// # Errors
    /// 0A000 for a type that can't be an element.
    fn new(function: Oid, oid: Oid) -> Result<ElementType> {
        let mut resolver = Resolver::new(function, oid, encoding::foreign_encoding().is_some());
        let resolved = resolver.part(oid)?;
        Ok(ElementType { oid, resolved, rows: resolver.rows })
    }

    /// Whether what these elements are made of can be altered.
    pub fn is_alterable(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Resolves the type again if what its elements are made of was altered since. Returns what it was before in that
    /// case.
    ///
    /// # Errors
    /// 0A000 for a type that can no longer be an element.
    #[inline]
    pub fn refresh(&mut self, call: &Call) -> Result<Option<ElementType>> {
        if self.rows.iter().all(|&(oid, known)| version_of(oid) == known) {
            return Ok(None);
        }
        let now = ElementType::new(call.function()?, self.oid)?;
        Ok(Some(std::mem::replace(self, now)))
    }

    /// The type of argument `i`, an element, as this call site remembers it.
    ///
    /// # Errors
    /// As [`ElementType::of_argument`].
    ///
    /// # Panics
    /// If it remembers another argument's.
    pub fn remembered(call: &Call, i: usize) -> Result<&ElementType> {
        let Remembered { argument, types: element } =
            call.remembered(|| Ok(Remembered { argument: i, types: ElementType::of_argument(call, i)? }))?;
        assert!(*argument == i, "a call site remembers the type of one argument");
        element.refresh(call)?;
        Ok(element)
    }

    /// The type of the elements of argument `i`, an array, and its object identifier, as this call site remembers them.
    ///
    /// # Errors
    /// As [`ElementType::of_argument`].
    ///
    /// # Panics
    /// If it remembers another argument's.
    pub fn remembered_of_array(call: &Call, i: usize) -> Result<&(ElementType, Oid)> {
        let Remembered { argument, types } =
            call.remembered(|| Ok(Remembered { argument: i, types: ElementType::of_array(call, i)? }))?;
        assert!(*argument == i, "a call site remembers the type of one argument");
        types.0.refresh(call)?;
        Ok(types)
    }

    /// The kind that elements of this type have in a new filter.
    pub fn kind(&self, layout: Layout) -> Kind<'_> {
        let tag = if layout == Layout::Parquet { self.resolved.parquet } else { self.resolved.tag };
        Kind { tag, name: &self.resolved.name }
    }

    /// How elements of this type go into, or are looked for in, a filter by this SQL function.
    ///
    /// # Errors
    /// 42804 when the filter holds elements of another kind.
    pub fn key<'a>(&'a self, filter: &Header<'a>, function: &str) -> Result<FilterKey<'a>> {
        let own = self.kind(filter.layout);
        let kind = if filter.kind.is_none() { own } else { filter.kind };
        if let Some(form) = other_form(self.resolved.tag, kind.tag) {
            return Ok(FilterKey { kind, hasher: Hasher { reader: self.resolved.reader.clone(), form } });
        }
        let kind = meet_kind(kind, own).during(function)?;
        Ok(FilterKey { kind, hasher: self.hasher(filter.layout) })
    }

    /// How elements of this type are hashed for a new filter of this layout.
    pub fn hasher(&self, layout: Layout) -> Hasher {
        let form = match self.kind(layout).tag {
            Tag::ParquetInt32 => Form::Int32,
            Tag::ParquetFloat => Form::Float32,
            _ => Form::General,
        };
        Hasher { reader: self.resolved.reader.clone(), form }
    }

    /// The type `oid`, of keys of an index scan.
    ///
    /// # Errors
    /// 0A000 for a type that can't be an element, and for a collation that does not compare bytes.
    pub fn of_key(function: Oid, oid: Oid, collation: Oid) -> Result<ElementType> {
        require_deterministic(collation)?;
        ElementType::new(function, oid)
    }

    /// The element in a form with which any filter can be probed; without one, a form that matches no filter.
    ///
    /// # Safety
    /// The element must be of this type.
    pub unsafe fn probe_key(&self, element: Option<Element>) -> ProbeKey {
        let hash = |form| {
            let hasher = Hasher { reader: self.resolved.reader.clone(), form };
            // SAFETY: promised by the caller.
            element.and_then(|element| unsafe { hasher.hash(element) })
        };
        let general = hash(Form::General);
        let Resolved { tag, parquet, ref name, .. } = self.resolved;
        let (int32, float32) = match tag {
            Tag::Integer => (hash(Form::Int32), None),
            Tag::Float => (None, hash(Form::Float32)),
            _ => (None, None),
        };
        ProbeKey { tag, parquet, name: name.clone(), hashes: [general, int32, float32] }
    }
}

/// The kind that elements of a type have in the filters of Parquet files.
///
/// # Errors
/// 22023 for a type that has no form there, and for an identifier that is not a type's.
pub fn parquet_tag(oid: Oid) -> Result<Tag> {
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
        invalid_parameter(format!("bloom filters of Parquet files have no elements of type {name}"))
        .hint(
            "Give the type that the column's values are stored as: integer, bigint, real, double precision, text, bytea, uuid, date, timestamp or timestamptz.",
        )
    })
}

/// The type of argument `i`, which a plan of PL/pgSQL may still name after it was dropped.
fn existing_type(call: &Call, i: usize) -> Result<Oid> {
    let oid = call.argument_type(i)?;
    check_existence(oid)?;
    Ok(oid)
}

fn check_existence(oid: Oid) -> Result<()> {
    if catalog::is_type(oid) {
        return Ok(());
    }
    let message = format!("type with identifier {} does not exist", oid.to_u32());
    Err(Error::new(SqlState::ERRCODE_UNDEFINED_OBJECT, message))
}

/// Resolves type `oid`, of elements that are argument `i` or in it.
fn resolve(call: &Call, i: usize, oid: Oid) -> Result<ElementType> {
    let oid = catalog::base_type(oid);
    for collation in nodes::collations(call, i) {
        check_collation(call, oid, collation)?;
    }
    ElementType::new(call.function()?, oid)
}

/// Refuses elements of type `oid` with a collation that does not compare bytes, by 0A000, or with none, by 42P22,
/// unless the function is called without an expression that could have one.
fn check_collation(call: &Call, oid: Oid, collation: Oid) -> Result<()> {
    if call.is_prepared() && catalog::collation(oid) != Oid::INVALID && collation == Oid::INVALID {
        let message = "could not determine which collation to use for elements of a bloom filter";
        return Err(Error::new(SqlState::ERRCODE_INDETERMINATE_COLLATION, message)
            .hint("Use the COLLATE clause on the element."));
    }
    require_deterministic(collation)
}

/// Refuses a collation that does not compare bytes, by 0A000.
pub(super) fn require_deterministic(collation: Oid) -> Result<()> {
    if catalog::is_deterministic(collation) {
        return Ok(());
    }
    Err(unsupported(
        "a nondeterministic collation cannot be used for elements of a bloom filter",
        "Values that it holds equal have different bytes. Use another collation, for instance COLLATE \"C\".",
    ))
}

/// The hashes of the elements of argument `i`, an array, ascending and without repetition.
///
/// # Errors
/// 22023 for a number that the filter's kind does not have.
///
/// # Safety
/// As [`hash_to_add`], for each of them.
pub unsafe fn hashes(elements: &[Element], key: &FilterKey<'_>) -> Result<Vec<u64>> {
    // SAFETY: promised by the caller.
    let mut hashes = memory::try_collect(elements.iter().map(|&e| unsafe { hash_to_add(key, e) }))?;
    let distinct = pg_bloom_core::filter::sparse::sort_distinct(&mut hashes, 0);
    hashes.truncate(distinct);
    Ok(hashes)
}

/// The hash of an element that is added: unlike one that is probed for, it must be one that the filter can hold.
///
/// # Errors
/// 22023 for a number that the filter's kind does not have.
///
/// # Safety
/// The element must be of the type whose key it is.
#[inline(always)]
pub unsafe fn hash_to_add(key: &FilterKey<'_>, element: Element) -> Result<u64> {
    // SAFETY: promised by the caller.
    unsafe { key.hasher.hash(element) }.ok_or_else(|| out_of_range(key.kind))
}

/// Refuses a number that the filter's kind does not have.
#[cold]
pub fn out_of_range(kind: Kind<'_>) -> Error {
    pg_bloom_core::Error::from(InvalidParameter::OutOfRange(kind.to_string())).into()
}
