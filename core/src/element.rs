//! Values of Rust as elements of filters: their key kind and their hash.

use crate::canonical::members;
use crate::canonical::numeric::Numeric;
use crate::canonical::{ByteCounter, Sink, scalar};
use crate::error::{InvalidParameter, KindMismatch, Result};
use crate::hash::{HashSink, hash};
use crate::kind::{Kind, Tag, shortened_name};
use crate::layout::Layout;
use std::borrow::Cow;

/// An element. Two elements that PostgreSQL's `=` of their type holds equal have the same hash.
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
    /// The name of its kind; empty if no member says which it is.
    name: String,
    lengths: Vec<i32>,
    members: Vec<Option<Element<'a>>>,
}

impl<'a> Array<'a> {
    /// An array of dimensions with these lengths and with the lower bound 1, from its members in
    /// order of storage; a member that is `None` is NULL. One without members has no dimensions.
    /// Errors: [`crate::Class::KindMismatch`] for members of different kinds;
    /// [`crate::Class::InvalidParameter`] for more or fewer members than the lengths say, and for
    /// arrays in arrays, which PostgreSQL has as dimensions.
    pub fn new(lengths: Vec<i32>, members: Vec<Option<Element<'a>>>) -> Result<Array<'a>> {
        let kinds = || members.iter().flatten().map(|member| member.kind(Layout::Blocked));
        let first = kinds().next();
        if let Some((first, other)) = first.zip(kinds().find(|kind| Some(*kind) != first)) {
            return Err(KindMismatch::Members { a: first.to_string(), b: other.to_string() }.into());
        }
        let counted = lengths
            .iter()
            .try_fold(1i64, |count, &length| count.checked_mul(i64::from(length)));
        let is_whole = if lengths.is_empty() {
            members.is_empty()
        } else {
            counted == Some(members.len() as i64)
        };
        if !is_whole || first.is_some_and(|kind| kind.tag == Tag::Array) {
            return Err(InvalidParameter::Ragged.into());
        }
        let name = first.map_or(String::new(), |kind| shortened_name(format!("array of {kind}")));
        Ok(Array {
            name,
            lengths: if members.is_empty() { Vec::new() } else { lengths },
            members,
        })
    }

    fn write(&self, into: &mut impl Sink) {
        members::write_array_start(self.lengths.iter().map(|&length| (length, 1)), into);
        for member in &self.members {
            match member {
                None => members::write_null(into),
                Some(member) => {
                    members::write_value_start(
                        ByteCounter::count(|counter| member.write(counter)),
                        into,
                    );
                    member.write(into);
                }
            }
        }
    }
}

impl Element<'_> {
    /// The same, with memory of its own.
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
            Element::Date(value) => Element::Date(value),
            Element::Timestamp(value) => Element::Timestamp(value),
            Element::Timestamptz(value) => Element::Timestamptz(value),
            Element::Boolean(value) => Element::Boolean(value),
            Element::Time(value) => Element::Time(value),
            Element::Timetz { microseconds, zone } => Element::Timetz { microseconds, zone },
            Element::Interval { months, days, microseconds } => {
                Element::Interval { months, days, microseconds }
            }
        }
    }

    /// The kind that it gives an empty filter of this layout. An integer is a bigint, a float a
    /// double precision.
    #[inline]
    pub fn kind(&self, layout: Layout) -> Kind<'_> {
        let (general, parquet) = match self {
            Element::Integer(_) => (Tag::Integer, Tag::ParquetInt64),
            Element::Text(_) => (Tag::Text, Tag::ParquetByteArray),
            Element::Bytea(_) => (Tag::Bytea, Tag::ParquetByteArray),
            Element::Float(_) => (Tag::Float, Tag::ParquetDouble),
            Element::Numeric(_) => (Tag::Numeric, Tag::Numeric),
            Element::Uuid(_) => (Tag::Uuid, Tag::ParquetFixed16),
            Element::Date(_) => (Tag::Date, Tag::ParquetDate),
            Element::Timestamp(_) => (Tag::Timestamp, Tag::ParquetTimestamp),
            Element::Timestamptz(_) => (Tag::Timestamptz, Tag::ParquetTimestamptz),
            Element::Boolean(_) => (Tag::Boolean, Tag::Boolean),
            Element::Time(_) => (Tag::Time, Tag::Time),
            Element::Timetz { .. } => (Tag::Timetz, Tag::Timetz),
            Element::Interval { .. } => (Tag::Interval, Tag::Interval),
            Element::Array(array) => return Kind { tag: Tag::Array, name: &array.name },
        };
        Kind::unnamed(if layout == Layout::Parquet { parquet } else { general })
    }

    /// Its hash in filters of a kind and layout; `None` for a number that the kind doesn't have, as
    /// no such filter has the element. Errors: [`crate::Class::KindMismatch`] for another kind.
    #[inline]
    pub fn hash_in(&self, kind: Kind<'_>, layout: Layout) -> Result<Option<u64>> {
        match (self, kind.tag) {
            (Element::Integer(value), Tag::ParquetInt32) => {
                return Ok(i32::try_from(*value).ok().map(|narrow| hash(&narrow.to_le_bytes())));
            }
            (Element::Float(value), Tag::ParquetFloat) => {
                let narrow = *value as f32;
                let is_exact = value.is_nan() || f64::from(narrow) == *value;
                return Ok(is_exact.then(|| hash(&scalar::float32(narrow))));
            }
            // An array without members that tell its kind is of any.
            (Element::Array(array), Tag::Array) if array.name.is_empty() => {}
            _ if kind.unify(self.kind(layout)).is_none() => {
                return Err(KindMismatch::Element {
                    filter: kind.to_string(),
                    element: self.kind(layout).to_string(),
                }
                .into());
            }
            _ => {}
        }
        Ok(Some(self.hash()))
    }

    #[inline]
    fn hash(&self) -> u64 {
        match self {
            Element::Integer(value) => hash(&scalar::integer(*value)),
            Element::Text(value) => hash(value.as_bytes()),
            _ => HashSink::hash(|stream| self.write(stream)),
        }
    }

    fn write(&self, into: &mut impl Sink) {
        match self {
            Element::Integer(value) | Element::Time(value) => into.write(&scalar::integer(*value)),
            Element::Text(value) => into.write(value.as_bytes()),
            Element::Bytea(value) => into.write(value),
            Element::Float(value) => into.write(&scalar::float(*value)),
            Element::Numeric(value) => into.write(&value.0),
            Element::Uuid(value) => into.write(value),
            Element::Date(days) => into.write(&scalar::date(*days)),
            Element::Timestamp(time) | Element::Timestamptz(time) => {
                into.write(&scalar::timestamp(*time))
            }
            Element::Boolean(value) => into.write(&scalar::boolean(*value)),
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

macro_rules! elements {
    ($($from:ty => $variant:ident),*) => {
        $(impl<'a> From<$from> for Element<'a> {
            fn from(value: $from) -> Element<'a> {
                Element::$variant(value.into())
            }
        })*
    };
}

elements! {
    i64 => Integer, i32 => Integer, i16 => Integer, &'a str => Text, String => Text, &'a [u8] => Bytea, Vec<u8> => Bytea,
    f64 => Float, f32 => Float, bool => Boolean, Numeric => Numeric, Array<'a> => Array
}

#[cfg(test)]
mod tests;
