//! A type of elements, as a call site remembers it: its key kind, and how its values are hashed for
//! a filter.

use super::hasher::{Form, Hasher, parquet_form};
use super::probe_key::ProbeKey;
use super::resolve::{Dependencies, ResolvedType, Resolver, built_in};
use crate::error::{WithFunctionName, invalid_parameter, unsupported};
use crate::pg::call::{Call, Error, Result, SqlState, SqlValue, nodes};
use crate::pg::catalog::{self, TypeKind};
use crate::pg::value::array::elements;
use crate::pg::value::encoding;
use pg_bloom_core::error::InvalidParameter;
use pg_bloom_core::filter::build::unify_with_element;
use pg_bloom_core::memory::List;
use pg_bloom_core::{Header, Kind, Layout, Tag};
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
    /// Returns the type of argument `i`, which is an element, compared under the collation that the
    /// query has for it.
    ///
    /// Fails with 0A000 for a type that can't be an element and for a collation by which texts with
    /// different bytes can be equal, with 42P22 if the query has no collation for a text, with
    /// 42704 if the type was dropped, and with 42P18 if the query doesn't tell the type.
    pub fn of_argument(call: &Call, i: usize) -> Result<ElementType> {
        ElementType::of_type(call, i, existing(call.argument_type(i)?)?)
    }

    /// Returns type `oid`, of elements that are compared under the collation of argument `i`. Fails
    /// with 0A000 and 42P22 as [`ElementType::of_argument`] does.
    pub fn of_type(call: &Call, i: usize, oid: Oid) -> Result<ElementType> {
        let base = catalog::base_type(oid);
        for collation in nodes::collations(call, i) {
            check_collation(call, base, collation)?;
        }
        ElementType::new(call.function()?, oid, base)
    }

    /// Returns type `oid`, of elements that other calls will have, compared under the type's own
    /// collation. Fails with 0A000, 42P22 and 42704 as [`ElementType::of_argument`] does.
    pub fn of_later_elements(call: &Call, oid: Oid) -> Result<ElementType> {
        let base = catalog::base_type(existing(oid)?);
        check_collation(call, base, catalog::collation(oid))?;
        ElementType::new(call.function()?, oid, base)
    }

    /// Returns the type of the elements of argument `i`, which is an array. Fails as
    /// [`ElementType::of_argument`] does, and with 0A000 if the argument is no array.
    pub fn of_array(call: &Call, i: usize) -> Result<ElementType> {
        let array = catalog::base_type(existing(call.argument_type(i)?)?);
        let element = catalog::element_type(array).ok_or_else(|| refuse_array(array))?;
        ElementType::of_type(call, i, element)
    }

    /// Returns type `oid`, of keys of an index scan that are compared under a collation. `function`
    /// is any function of the extension. Fails with 0A000 for a type that can't be an element and
    /// for a collation by which texts with different bytes can be equal.
    pub fn of_key(function: Oid, oid: Oid, collation: Oid) -> Result<ElementType> {
        require_deterministic(collation)?;
        ElementType::new(function, oid, catalog::base_type(oid))
    }

    /// Resolves type `oid`, whose type below domains is `base`, for elements in this database.
    fn new(function: Oid, oid: Oid, base: Oid) -> Result<ElementType> {
        ElementType::in_encoding(function, oid, base, encoding::foreign_encoding())
    }

    /// Resolves type `oid` as [`ElementType::new`] does, for elements in a database whose text is
    /// converted to UTF-8 from `encoding`, or hashed as it is for `None`.
    fn in_encoding(
        function: Oid,
        oid: Oid,
        base: Oid,
        encoding: Option<&'static str>,
    ) -> Result<ElementType> {
        let mut resolver = Resolver::new(function, base, encoding);
        let resolved = resolver.resolve(base)?;
        Ok(ElementType { oid, base, resolved, dependencies: resolver.dependencies })
    }

    /// Returns the encoding, such as `LATIN1`, of a database in which this type would be as
    /// `is_wanted` says; `None` if there is no such encoding.
    ///
    /// The hash of some types depends on the database's encoding, which their key kind names then.
    /// By comparing kinds, a caller can find out in which encoding the database was that built a
    /// filter. For each encoding in turn, the type is resolved as in a database of that encoding,
    /// and given to `is_wanted`. `UTF8` is returned for SQL_ASCII, too, where hashes are the same.
    /// Fails with 0A000 if the type can't be an element.
    pub fn find_encoding(
        &self,
        call: &Call,
        is_wanted: impl Fn(&ElementType) -> bool,
    ) -> Result<Option<&'static str>> {
        let function = call.function()?;
        let resolve_in =
            |encoding| ElementType::in_encoding(function, self.oid, self.base, encoding);

        // `None` is the encoding from which text needn't be converted.
        if is_wanted(&resolve_in(None)?) {
            return Ok(Some("UTF8"));
        }
        for encoding in encoding::foreign_encodings() {
            if is_wanted(&resolve_in(Some(encoding))?) {
                return Ok(Some(encoding));
            }
        }
        Ok(None)
    }

    /// Returns whether a command can alter how these elements are hashed: the columns of a row type
    /// in them, or an operator class.
    pub fn is_alterable(&self) -> bool {
        !self.dependencies.is_empty()
    }

    /// Returns whether no command has altered how these elements are hashed since the type was
    /// resolved.
    #[inline(always)]
    pub fn is_current(&self) -> bool {
        self.dependencies.is_empty() || self.dependencies.are_current()
    }

    /// Resolves the type again if a command has altered how its elements are hashed, and returns
    /// the type as it was before; `None` if nothing was altered. Fails with 0A000 if the type can
    /// no longer be an element; then it is left as it was.
    #[inline]
    pub fn refresh(&mut self, call: &Call) -> Result<Option<ElementType>> {
        if self.is_current() {
            return Ok(None);
        }
        let altered = ElementType::new(call.function()?, self.oid, self.base)?;
        Ok(Some(std::mem::replace(self, altered)))
    }

    /// Returns the type of the elements in argument `i`, which is one element or an array, as
    /// `element_argument` says. The call site, a place in a query, keeps the type from one call to
    /// the next; it is resolved again if a command has altered how the elements are hashed.
    ///
    /// All calls of a call site must be for one argument; another one panics. Fails as
    /// [`ElementType::of_argument`] and [`ElementType::of_array`] do.
    pub fn remembered(
        call: &Call,
        i: usize,
        element_argument: ElementArgument,
    ) -> Result<&ElementType> {
        let (argument, element_type) = call.remembered(|| {
            let element_type = match element_argument {
                ElementArgument::Array => ElementType::of_array(call, i)?,
                ElementArgument::OneElement => ElementType::of_argument(call, i)?,
            };
            Ok(((i, element_argument), element_type))
        })?;
        assert!(
            *argument == (i, element_argument),
            "a call site remembers the type of one argument"
        );
        element_type.refresh(call)?;
        Ok(element_type)
    }

    /// Returns the key kind that elements of this type have in a new filter of a layout. Elements
    /// can be looked for only in filters of their kind.
    pub fn kind(&self, layout: Layout) -> Kind<'_> {
        let tag = if layout == Layout::Parquet {
            self.resolved.parquet_tag
        } else {
            self.resolved.tag
        };
        Kind { tag, name: &self.resolved.name }
    }

    /// Returns the hasher by which elements of this type are added to a filter with this header, or
    /// looked for in it. A filter without elements takes any type; a filter of a Parquet file may
    /// keep numbers in another width, which the hasher then uses. `function` is the SQL function
    /// that does this, for messages. Fails with 42804 if the filter has elements of another type.
    pub fn hasher_for(&self, filter: &Header<'_>, function: &str) -> Result<Hasher> {
        let own_kind = self.kind(filter.layout);
        let kind = if filter.kind.is_none() { own_kind } else { filter.kind };
        if let Some(form) = parquet_form(self.resolved.tag, kind.tag) {
            return Ok(self.hasher_in(form));
        }
        unify_with_element(kind, own_kind).with_function_name(function)?;
        Ok(self.hasher_in(Form::General))
    }

    /// Returns how elements of this type are hashed for a new filter of a layout.
    pub fn hasher(&self, layout: Layout) -> Hasher {
        let form = parquet_form(self.resolved.tag, self.kind(layout).tag);
        self.hasher_in(form.unwrap_or(Form::General))
    }

    /// Returns how elements of this type are hashed if numbers have the width of this form.
    fn hasher_in(&self, form: Form) -> Hasher {
        Hasher { reader: self.resolved.reader.clone(), form }
    }

    /// Returns the key with which any filter can be probed for an element: the element's key kind,
    /// and its hash in each width that numbers have in filters. The key of `None` matches no
    /// filter.
    ///
    /// # Safety
    /// The element must be of this type.
    pub unsafe fn probe_key(&self, element: Option<SqlValue>) -> ProbeKey {
        // SAFETY: the element is of this type, as the caller promises.
        let hash = |form: Form| unsafe { self.hasher_in(form).hash(element?) };
        let ResolvedType { tag, parquet_tag, ref name, .. } = self.resolved;
        let general = hash(Form::General);
        let int32 = if tag == Tag::Integer { hash(Form::Int32) } else { None };
        let float32 = if tag == Tag::Float { hash(Form::Float32) } else { None };
        ProbeKey {
            tag,
            parquet_tag,
            name: name.clone(),
            hashes: [general, int32, float32],
        }
    }
}

/// Returns the key kind, the type of a filter's elements, that values of SQL type `oid` have in the
/// Bloom filters of Parquet files. An enum counts as text. Fails with 22023 if such files store no
/// values of the type, or if no type has this identifier.
pub fn parquet_tag(oid: Oid) -> Result<Tag> {
    let is_type = catalog::is_type(oid);
    let base = if is_type { catalog::base_type(oid) } else { Oid::INVALID };
    let tag = match built_in(base) {
        Some(built_in) => Some(built_in.parquet_tag),
        None => {
            (is_type && catalog::type_kind(base) == TypeKind::Enum).then_some(Tag::ParquetByteArray)
        }
    };
    tag.filter(|tag| tag.is_parquet()).ok_or_else(|| {
        let name = if is_type { catalog::display_name(oid) } else { oid.to_u32().to_string() };
        invalid_parameter(format!("bloom filters of Parquet files have no elements of type {name}"))
        .hint(
            "Give the type that the column's values are stored as: integer, bigint, real, double precision, text, bytea, uuid, date, timestamp or timestamptz.",
        )
    })
}

/// Returns `oid`, the identifier of a type. Fails with 42704 if the type was dropped, which a plan
/// of PL/pgSQL may still name.
fn existing(oid: Oid) -> Result<Oid> {
    if catalog::is_type(oid) {
        return Ok(oid);
    }
    let message = format!("type with identifier {} does not exist", oid.to_u32());
    Err(Error::new(SqlState::ERRCODE_UNDEFINED_OBJECT, message))
}

/// Returns the refusal of a type that isn't the type of arrays with one type of elements. Columns
/// of PostgreSQL's statistics have the type `anyarray`, of which each value has a type of its own.
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

/// Checks that elements of type `oid` under a collation are equal only if their bytes are. Fails
/// with 0A000 if they may be otherwise, and with 42P22 if the type needs a collation and the call
/// has none; a call without an expression can't have one.
fn check_collation(call: &Call, oid: Oid, collation: Oid) -> Result<()> {
    if call.is_prepared() && catalog::collation(oid) != Oid::INVALID && collation == Oid::INVALID {
        let message = "could not determine which collation to use for elements of a bloom filter";
        return Err(Error::new(SqlState::ERRCODE_INDETERMINATE_COLLATION, message)
            .hint("Use the COLLATE clause on the element."));
    }
    require_deterministic(collation)
}

/// Checks that texts under a collation are equal only if their bytes are. Fails with 0A000 for a
/// nondeterministic collation.
pub(super) fn require_deterministic(collation: Oid) -> Result<()> {
    if catalog::is_deterministic(collation) {
        return Ok(());
    }
    Err(unsupported(
        "a nondeterministic collation cannot be used for elements of a bloom filter",
        "Values that it holds equal have different bytes. Use another collation, for instance COLLATE \"C\".",
    ))
}

/// What an argument of a call is that has elements.
#[derive(Clone, Copy, PartialEq)]
pub enum ElementArgument {
    /// One element, even if that is an array.
    OneElement,
    /// An array, of which each member is an element.
    Array,
}

/// The hashes of the elements that are to be added to a filter, or removed from it.
pub struct ArgumentHashes<'a> {
    /// The key kind, the type of its elements, that the filter has with these elements. It is
    /// [`Kind::NONE`] if the argument is one element, and NULL.
    pub kind: Kind<'a>,
    /// The hashes that elements have in filters of this kind, in the order of the elements and with
    /// repetitions. None for a NULL.
    pub hashes: List<u64>,
}

/// Returns the hashes of the elements in argument `i` of the call, as a filter has them to which
/// they are added or from which they are removed: which hash an element has depends on the filter's
/// layout, and on the width of its numbers.
///
/// `header` is the header of that filter, `element_argument` says whether the argument is one
/// element or an array, and `function` is the SQL function that changes the filter, for messages.
///
/// Fails as [`ElementType::of_argument`] and [`ElementType::hasher_for`] do, and with 22023 for a
/// number that the kind doesn't have, such as 2^40 in a filter of 32-bit integers.
pub fn hashes_of_argument<'a>(
    call: &'a Call,
    i: usize,
    element_argument: ElementArgument,
    header: &Header<'a>,
    function: &str,
) -> Result<ArgumentHashes<'a>> {
    let element_type = ElementType::remembered(call, i, element_argument)?;
    let elements = match element_argument {
        ElementArgument::Array => elements(call, i, element_type.oid),
        ElementArgument::OneElement => List::from_iter(call.element(i)),
    };
    // A NULL is no element: it doesn't even have to be of the filter's type.
    if element_argument == ElementArgument::OneElement && elements.is_empty() {
        return Ok(ArgumentHashes { kind: Kind::NONE, hashes: List::new() });
    }

    let hasher = element_type.hasher_for(header, function)?;
    let kind = if header.kind.is_none() {
        element_type.kind(header.layout)
    } else {
        header.kind
    };
    // SAFETY: the hasher is for the type of the argument's elements.
    let hash = |element| unsafe { hasher.hash(element) }.ok_or_else(|| out_of_range(kind));
    let hashes = elements.into_iter().map(hash).collect::<Result<_>>()?;
    Ok(ArgumentHashes { kind, hashes })
}

/// Returns the error 22023 for an element that filters of this kind can't have: a number that is
/// out of the kind's range, or not exact in it.
#[cold]
pub fn out_of_range(kind: Kind<'_>) -> Error {
    pg_bloom_core::Error::from(InvalidParameter::OutOfRange(kind.to_string())).into()
}
