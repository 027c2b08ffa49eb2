//! Key kinds: which elements can be in one filter.
//!
//! Two SQL types share a kind if equal values of them have the same canonical bytes. A filter has
//! the kind of its elements; probing an element of another kind is an error, since the result would
//! be a wrong "no".
//!
//! Kinds 32 and above are the physical and logical types of Parquet, whose hashes are defined by
//! that format; a filter of the `parquet` layout uses those wherever the type has one.

use crate::hash::hash;
use crate::layout::Layout;
use std::fmt;

/// The longest name of a kind, in bytes.
pub const MAX_NAME_BYTES: usize = 512;

/// A name of at most [`MAX_NAME_BYTES`] bytes: the end of a longer one is replaced by `#` and the 16
/// hexadecimal digits of the hash of the whole name.
pub fn shortened_name(name: String) -> String {
    const TAIL: usize = 17;
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let end = name.floor_char_boundary(MAX_NAME_BYTES - TAIL);
    format!("{}#{:016x}", &name[..end], hash(name.as_bytes()))
}

/// Defines [`Tag`], and the list of all tags with the names shown to users. After a colon is what
/// elements these are, unless the name says it.
macro_rules! tags {
    ($($tag:ident = $code:literal, $name:literal $(: $elements:literal)?;)*) => {
        /// The code of a key kind, as stored. Frozen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Tag {
            $(#[doc = concat!($name $(, ": ", $elements)?)] $tag = $code,)*
        }

        /// Every tag with its name, in the order of the codes.
        const TAGS: &[(Tag, &str)] = &[$((Tag::$tag, $name)),*];
    };
}

tags! {
    None = 0, "none": "no element yet; adopts the kind of the first";
    Integer = 1, "integer": "smallint, integer, bigint";
    Text = 2, "text": "text, varchar, char(n), \"char\", name, enums by label";
    Bytea = 3, "bytea";
    Float = 4, "float": "real, double precision";
    Numeric = 5, "numeric";
    Uuid = 6, "uuid";
    Date = 7, "date";
    Timestamp = 8, "timestamp": "without time zone";
    Timestamptz = 9, "timestamptz": "timestamp with time zone";
    Boolean = 10, "boolean";
    Other = 11, "other": "any other hashable type, distinguished by its name";
    Time = 12, "time": "without time zone";
    Timetz = 13, "timetz": "time with time zone";
    Interval = 14, "interval";
    PgLsn = 15, "pg_lsn";
    Xid8 = 16, "xid8";
    Jsonb = 17, "jsonb";
    Array = 18, "array": "distinguished by the kind of their elements, which is in the name";
    Row = 19, "row": "distinguished by their type and the names and kinds of its columns";
    Range = 20, "range": "distinguished by their type and the kind of their bounds";
    Multirange = 21, "multirange": "distinguished as ranges are";
    ParquetInt32 = 32, "parquet INT32": "smallint, integer";
    ParquetInt64 = 33, "parquet INT64": "bigint";
    ParquetFloat = 34, "parquet FLOAT": "real";
    ParquetDouble = 35, "parquet DOUBLE": "double precision";
    ParquetByteArray = 36, "parquet BYTE_ARRAY": "text, bytea";
    ParquetFixed16 = 37, "parquet FIXED_LEN_BYTE_ARRAY(16)": "uuid";
    ParquetDate = 38, "parquet DATE": "days in an INT32";
    ParquetTimestamp = 39, "parquet TIMESTAMP_MICROS": "not adjusted to UTC, in an INT64";
    ParquetTimestamptz = 40, "parquet TIMESTAMP_MICROS (UTC)": "in an INT64";
}

impl Tag {
    /// The tag with this stored code.
    pub fn from_code(code: u8) -> Option<Tag> {
        TAGS.iter().map(|&(tag, _)| tag).find(|&tag| tag as u8 == code)
    }

    /// The name shown to users.
    pub fn name(self) -> &'static str {
        TAGS.iter()
            .find(|&&(tag, _)| tag == self)
            .map_or("none", |&(_, name)| name)
    }

    /// Whether kinds with this tag are distinguished by a name.
    pub fn has_name(self) -> bool {
        matches!(self, Tag::Other | Tag::Array | Tag::Row | Tag::Range | Tag::Multirange)
    }

    /// Whether this is a type of Parquet.
    pub fn is_parquet(self) -> bool {
        self as u8 >= Tag::ParquetInt32 as u8
    }

    /// Whether a filter of this layout may have this kind. In `parquet`, types without a Parquet
    /// form keep their general kind.
    pub fn is_allowed_in(self, layout: Layout) -> bool {
        use Tag::{Bytea, Date, Float, Integer, Text, Timestamp, Timestamptz, Uuid};
        let has_parquet_form =
            matches!(self, Integer | Text | Bytea | Float | Uuid | Date | Timestamp | Timestamptz);
        if layout == Layout::Parquet { !has_parquet_form } else { !self.is_parquet() }
    }
}

/// A key kind: its tag and, for those that [have one](Tag::has_name), its name: that of the type
/// with its schema, arrays excepted, and what the values are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind<'a> {
    /// Which kind.
    pub tag: Tag,
    /// The name, or empty.
    pub name: &'a str,
}

impl<'a> Kind<'a> {
    /// No element yet.
    pub const NONE: Kind<'static> = Kind { tag: Tag::None, name: "" };

    /// A kind that needs no name.
    pub const fn unnamed(tag: Tag) -> Self {
        Kind { tag, name: "" }
    }

    /// Elements of a type that is known by its name only.
    pub const fn other(name: &'a str) -> Self {
        Kind { tag: Tag::Other, name }
    }

    /// Whether no element was added yet.
    pub fn is_none(self) -> bool {
        self.tag == Tag::None
    }

    /// The kind of a filter with elements of both kinds, if there is one: without elements it
    /// adopts the other's.
    pub fn unify(self, other: Kind<'a>) -> Option<Kind<'a>> {
        match (self.is_none(), other.is_none()) {
            (true, _) => Some(other),
            (_, true) => Some(self),
            // Most kinds have no name: memcmp takes 100 ns for empty names, as it loads from their
            // dangling addresses.
            _ if self.name.is_empty() && other.name.is_empty() => {
                (self.tag == other.tag).then_some(self)
            }
            _ => (self == other).then_some(self),
        }
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.name.is_empty() { self.tag.name() } else { self.name })
    }
}

#[cfg(test)]
mod tests;
