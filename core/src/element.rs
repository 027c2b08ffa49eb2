//! Values of Rust as elements of filters: their key kind and their hash.

use crate::canonical::members;
use crate::canonical::numeric::Numeric;
use crate::canonical::{ByteCounter, Sink, scalar};
use crate::error::{Error, InvalidParameter, KindMismatch, Result};
use crate::hash::{HashSink, hash};
use crate::kind::{Kind, Tag, shortened_name};
use crate::layout::Layout;
use crate::memory::List;
use std::borrow::Cow;

/// An element of a filter. Elements of one type that are equal in PostgreSQL have the same hash.
#[derive(Clone, Debug, PartialEq)]
pub enum Element<'a> {
    /// smallint, integer, bigint.
    Integer(i64),
    /// text, varchar, char(n) without its trailing blanks, an enum's label.
    Text(Cow<'a, str>),
    /// bytea.
    Bytea(Cow<'a, [u8]>),
    /// real, double precision.
    Float(f64),
    /// numeric.
    Numeric(Numeric),
    /// uuid.
    Uuid([u8; 16]),
    /// date: days since 2000-01-01.
    Date(i32),
    /// timestamp: microseconds since 2000-01-01.
    Timestamp(i64),
    /// timestamptz: microseconds since 2000-01-01 in UTC.
    Timestamptz(i64),
    /// boolean.
    Boolean(bool),
    /// time: microseconds since midnight.
    Time(i64),
    /// timetz.
    Timetz {
        /// Microseconds since midnight.
        microseconds: i64,
        /// The zone in seconds west of UTC.
        zone: i32,
    },
    /// interval, in the three parts that PostgreSQL keeps.
    Interval {
        /// Months of 30 days.
        months: i32,
        /// Days of 24 hours.
        days: i32,
        /// The rest in microseconds.
        microseconds: i64,
    },
    /// An array.
    Array(Array<'a>),
}

/// An array of elements of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<'a> {
    /// The name of its kind; empty if all members are NULL, since then no member tells the kind.
    name: String,
    /// The length of each dimension; empty if there are no members.
    lengths: List<i32>,
    /// The members in order of storage; `None` is NULL.
    members: List<Option<Element<'a>>>,
}

impl<'a> Array<'a> {
    /// Returns the array with these members, as PostgreSQL has it: `lengths` are the lengths of its
    /// dimensions, whose lower bounds are 1. Members are in order of storage, in which the last
    /// index changes fastest: the rows of a matrix one after the other. A member that is `None` is
    /// NULL. An array without members has no dimensions, whatever the lengths.
    ///
    /// The key kind of an array is that of arrays of its members' kind. It isn't known if all
    /// members are NULL.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if members have different kinds, and with
    /// [`crate::Class::InvalidParameter`] if there are more or fewer members than the lengths say,
    /// or if members are arrays: in PostgreSQL, these are dimensions.
    #[allow(clippy::disallowed_types, reason = "callers have a `Vec`")]
    pub fn new(lengths: Vec<i32>, members: Vec<Option<Element<'a>>>) -> Result<Array<'a>> {
        let kind = kind_of_members(&members)?;

        // The product of the lengths; `None` if it exceeds 64 bits, so that there can't be as many.
        let num_members = lengths
            .iter()
            .try_fold(1, |product: i64, &length| product.checked_mul(i64::from(length)));
        let has_as_many_as_lengths_say = if lengths.is_empty() {
            members.is_empty()
        } else {
            num_members == Some(members.len() as i64)
        };
        let has_arrays = kind.is_some_and(|kind| kind.tag == Tag::Array);
        if !has_as_many_as_lengths_say || has_arrays {
            return Err(InvalidParameter::Ragged.into());
        }

        // Arrays of all kinds have one tag, and the name tells their kinds apart.
        let name = match kind {
            Some(kind) => shortened_name(format!("array of {kind}")),
            None => String::new(),
        };
        let lengths = if members.is_empty() { List::new() } else { lengths.into() };
        Ok(Array { name, lengths, members: members.into() })
    }

    /// Returns the array as one of members of this kind, if no member tells the kind: all are NULL, or
    /// there are none. Then it can be the first element of a filter.
    #[must_use]
    pub fn or_of_kind(mut self, members: Kind<'_>) -> Array<'a> {
        if self.name.is_empty() {
            self.name = shortened_name(format!("array of {members}"));
        }
        self
    }

    /// Writes the canonical bytes of the array, which are what is hashed: its dimensions, and then
    /// each member, with its length before it. Equal arrays have equal bytes.
    fn write(&self, into: &mut impl Sink) {
        /// Arrays of SQL begin at 1 unless they are told otherwise.
        const LOWER_BOUND: i32 = 1;
        let dimensions = self.lengths.iter().map(|&length| (length, LOWER_BOUND));
        members::write_array_start(dimensions, into);

        for member in &self.members {
            let Some(member) = member else {
                members::write_null(into);
                continue;
            };
            // The length comes first, so the member is written twice: once to be counted.
            let length = ByteCounter::count(|counter| member.write(counter));
            members::write_value_start(length, into);
            member.write(into);
        }
    }
}

/// Returns the key kind that all members of an array have; `None` if all are NULL, or there are
/// none.
///
/// Fails with [`KindMismatch::Members`] if they have different kinds.
fn kind_of_members<'m>(members: &'m [Option<Element<'_>>]) -> Result<Option<Kind<'m>>> {
    // Arrays have the same name in all layouts, so their members have the general kinds.
    let mut kinds = members.iter().flatten().map(|member| member.kind(Layout::Blocked));
    let Some(first) = kinds.next() else {
        return Ok(None);
    };
    match kinds.find(|&kind| kind != first) {
        Some(other) => {
            let mismatch = KindMismatch::Members { a: first.to_string(), b: other.to_string() };
            Err(mismatch.into())
        }
        None => Ok(Some(first)),
    }
}

impl Element<'_> {
    /// Returns the same element with copies of the texts and bytes that it borrows, so that it can
    /// outlive them. Members of arrays are copied, too; names of kinds are never borrowed.
    pub fn into_owned(self) -> Element<'static> {
        match self {
            Element::Text(text) => Element::Text(text.into_owned().into()),
            Element::Bytea(bytes) => Element::Bytea(bytes.into_owned().into()),
            Element::Array(Array { name, lengths, members }) => {
                let members = members
                    .into_iter()
                    .map(|member| member.map(Element::into_owned))
                    .collect();
                Element::Array(Array { name, lengths, members })
            }
            Element::Integer(value) => Element::Integer(value),
            Element::Float(value) => Element::Float(value),
            Element::Numeric(value) => Element::Numeric(value),
            Element::Uuid(value) => Element::Uuid(value),
            Element::Date(days) => Element::Date(days),
            Element::Timestamp(microseconds) => Element::Timestamp(microseconds),
            Element::Timestamptz(microseconds) => Element::Timestamptz(microseconds),
            Element::Boolean(value) => Element::Boolean(value),
            Element::Time(microseconds) => Element::Time(microseconds),
            Element::Timetz { microseconds, zone } => Element::Timetz { microseconds, zone },
            Element::Interval { months, days, microseconds } => {
                Element::Interval { months, days, microseconds }
            }
        }
    }

    /// Returns the key kind of the element in filters of a layout: an empty filter that gets this
    /// element as its first has this kind from then on.
    ///
    /// The layout `parquet` has kinds of its own for types whose hashes the Parquet format defines,
    /// and the general ones for all others. An integer is taken for a `bigint`, a float for a
    /// `double precision`.
    #[inline]
    pub fn kind(&self, layout: Layout) -> Kind<'_> {
        let (general_tag, parquet_tag) = match self {
            // Arrays have one tag in all layouts, and are told apart by name.
            Element::Array(array) => return Kind { tag: Tag::Array, name: &array.name },
            Element::Integer(_) => (Tag::Integer, Tag::ParquetInt64),
            Element::Text(_) => (Tag::Text, Tag::ParquetByteArray),
            Element::Bytea(_) => (Tag::Bytea, Tag::ParquetByteArray),
            Element::Float(_) => (Tag::Float, Tag::ParquetDouble),
            Element::Uuid(_) => (Tag::Uuid, Tag::ParquetFixed16),
            Element::Date(_) => (Tag::Date, Tag::ParquetDate),
            Element::Timestamp(_) => (Tag::Timestamp, Tag::ParquetTimestamp),
            Element::Timestamptz(_) => (Tag::Timestamptz, Tag::ParquetTimestamptz),
            // The Parquet format doesn't say how these are hashed.
            Element::Numeric(_) => (Tag::Numeric, Tag::Numeric),
            Element::Boolean(_) => (Tag::Boolean, Tag::Boolean),
            Element::Time(_) => (Tag::Time, Tag::Time),
            Element::Timetz { .. } => (Tag::Timetz, Tag::Timetz),
            Element::Interval { .. } => (Tag::Interval, Tag::Interval),
        };
        match layout {
            Layout::Parquet => Kind::unnamed(parquet_tag),
            Layout::Blocked | Layout::Classic => Kind::unnamed(general_tag),
        }
    }

    /// Returns the hash by which filters of this key kind and layout have the element. `kind` may
    /// also be the kind of a filter without elements, which can take any element.
    ///
    /// Returns `None` if the element is a number that is out of the range of the kind, so that no
    /// filter of this kind can have it: an integer such as 2^40 if elements have 32 bits, or a
    /// double that no float of 32 bits equals.
    ///
    /// Fails with [`crate::Class::KindMismatch`] if the element has another kind.
    #[inline]
    pub fn hash_in(&self, kind: Kind<'_>, layout: Layout) -> Result<Option<u64>> {
        match (self, kind.tag) {
            (Element::Integer(value), Tag::ParquetInt32) => {
                let Ok(narrow) = i32::try_from(*value) else {
                    return Ok(None);
                };
                Ok(Some(hash(&narrow.to_le_bytes())))
            }
            (Element::Float(value), Tag::ParquetFloat) => {
                let narrow = *value as f32;
                let is_exact = value.is_nan() || f64::from(narrow) == *value;
                if !is_exact {
                    return Ok(None);
                }
                Ok(Some(hash(&scalar::float32(narrow))))
            }
            // If all members of an array are NULL, it may be one of any kind.
            (Element::Array(array), Tag::Array) if array.name.is_empty() => Ok(Some(self.hash())),
            _ => {
                let own_kind = self.kind(layout);
                if kind.unify(own_kind).is_none() {
                    return Err(mismatch(kind, own_kind));
                }
                Ok(Some(self.hash()))
            }
        }
    }

    /// Returns the hash of the canonical bytes.
    #[doc(hidden)]
    #[inline]
    pub fn hash(&self) -> u64 {
        match self {
            // Bytes that are at hand are hashed faster than those that are written to a sink.
            Element::Integer(value) => hash(&scalar::integer(*value)),
            Element::Float(value) => hash(&scalar::float(*value)),
            Element::Text(text) => hash(text.as_bytes()),
            _ => self.hash_by_writing(),
        }
    }

    /// Returns the hash of the canonical bytes, which are written to a sink.
    #[inline(never)]
    fn hash_by_writing(&self) -> u64 {
        HashSink::hash(|sink| self.write(sink))
    }

    /// Writes the canonical bytes of the element, which are what is hashed. Elements of one key
    /// kind that are equal in PostgreSQL have the same bytes, whatever their SQL type.
    fn write(&self, into: &mut impl Sink) {
        match self {
            Element::Integer(value) => into.write(&scalar::integer(*value)),
            Element::Text(text) => into.write(text.as_bytes()),
            Element::Bytea(bytes) => into.write(bytes),
            Element::Float(value) => into.write(&scalar::float(*value)),
            Element::Numeric(Numeric(text)) => into.write(text),
            Element::Uuid(bytes) => into.write(bytes),
            Element::Date(days) => into.write(&scalar::date(*days)),
            Element::Timestamp(microseconds) | Element::Timestamptz(microseconds) => {
                into.write(&scalar::timestamp(*microseconds))
            }
            Element::Boolean(value) => into.write(&scalar::boolean(*value)),
            Element::Time(microseconds) => into.write(&scalar::integer(*microseconds)),
            Element::Timetz { microseconds, zone } => {
                into.write(&scalar::timetz(*microseconds, *zone))
            }
            Element::Interval { months, days, microseconds } => {
                into.write(&scalar::interval(*months, *days, *microseconds))
            }
            Element::Array(array) => array.write(into),
        }
    }
}

/// Returns the error for an element of kind `element` in a filter of kind `filter`.
#[cold]
fn mismatch(filter: Kind<'_>, element: Kind<'_>) -> Error {
    let filter = filter.to_string();
    let element = element.to_string();
    KindMismatch::Element { filter, element }.into()
}

/// Implements the conversion of types of Rust into elements.
macro_rules! impl_into_element {
    ($($from:ty => $variant:ident),*) => {
        $(impl<'a> From<$from> for Element<'a> {
            fn from(value: $from) -> Element<'a> {
                Element::$variant(value.into())
            }
        })*
    };
}

impl_into_element! {
    i64 => Integer, i32 => Integer, i16 => Integer, &'a str => Text, String => Text, &'a [u8] => Bytea, List<u8> => Bytea,
    f64 => Float, f32 => Float, bool => Boolean, Numeric => Numeric, Array<'a> => Array
}

#[allow(clippy::disallowed_types, reason = "callers have a `Vec`")]
impl From<Vec<u8>> for Element<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Element::Bytea(bytes.into())
    }
}

#[cfg(test)]
mod tests;
