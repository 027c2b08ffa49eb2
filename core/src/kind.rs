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

/// The most bytes that the name of a kind has. Longer ones are cut by [`shortened_name`].
pub const MAX_NAME_BYTES: usize = 512;

/// Returns the name of a kind, cut to at most [`MAX_NAME_BYTES`] bytes: the end of a longer name is
/// replaced by `#` and the 16 hexadecimal digits of the hash of the whole name, so that different
/// names stay different.
pub fn shortened_name(name: String) -> String {
    const TAIL_BYTES: usize = "#0123456789abcdef".len();
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let end = name.floor_char_boundary(MAX_NAME_BYTES - TAIL_BYTES);
    format!("{}#{:016x}", &name[..end], hash(name.as_bytes()))
}

/// Defines [`Tag`], and the list of all tags with the names shown to users. The text after a colon
/// says which elements have the tag, unless the name says it.
macro_rules! tags {
    ($($tag:ident = $code:literal, $name:literal $(: $elements:literal)?;)*) => {
        /// The part of a key kind that is stored as a number. The numbers are frozen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Tag {
            $(#[doc = concat!($name $(, ": ", $elements)?)] $tag = $code,)*
        }

        /// Every tag with the name that users see, in the order of the codes.
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
    /// Returns the tag with a stored code; `None` if there is none.
    pub fn from_code(code: u8) -> Option<Tag> {
        TAGS.iter().map(|&(tag, _)| tag).find(|&tag| tag as u8 == code)
    }

    /// Returns the name that users see.
    pub fn name(self) -> &'static str {
        let found = TAGS.iter().find(|&&(tag, _)| tag == self);
        let (_, name) = found.expect("every tag is in the list");
        name
    }

    /// Returns whether kinds with this tag have a name that tells them apart: there are many kinds
    /// of arrays, for instance.
    pub fn has_name(self) -> bool {
        matches!(self, Tag::Other | Tag::Array | Tag::Row | Tag::Range | Tag::Multirange)
    }

    /// Returns whether elements with this tag are hashed as the Parquet format says.
    pub fn is_parquet(self) -> bool {
        self as u8 >= Tag::ParquetInt32 as u8
    }

    /// Returns whether a filter of this layout can have elements with this tag.
    ///
    /// Only layout `parquet` has the tags of Parquet. It uses them for all types of which the
    /// Parquet format says how they are hashed, so it doesn't have the general tags of these types.
    pub fn is_allowed_in(self, layout: Layout) -> bool {
        use Tag::{Bytea, Date, Float, Integer, Text, Timestamp, Timestamptz, Uuid};
        match layout {
            Layout::Blocked | Layout::Classic => !self.is_parquet(),
            Layout::Parquet => {
                let is_type_of_parquet = matches!(
                    self,
                    Integer | Text | Bytea | Float | Uuid | Date | Timestamp | Timestamptz
                );
                !is_type_of_parquet
            }
        }
    }
}

/// A key kind. Only elements of one kind can be in one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind<'a> {
    /// The part of the kind that is stored as a number.
    pub tag: Tag,
    /// The name, if the [tag needs one](Tag::has_name), else empty. It is the name of the type with
    /// its schema, except for arrays, and the kinds that the values are made of.
    pub name: &'a str,
}

impl<'a> Kind<'a> {
    /// The kind of a filter that never had an element.
    pub const NONE: Kind<'static> = Kind { tag: Tag::None, name: "" };

    /// Returns the kind with this tag, which needs no name.
    pub const fn unnamed(tag: Tag) -> Self {
        Kind { tag, name: "" }
    }

    /// Returns the kind of elements of a type that is known only by its name, and hashed by its own
    /// hash function.
    pub const fn other(name: &'a str) -> Self {
        Kind { tag: Tag::Other, name }
    }

    /// Returns whether this is the kind of a filter that never had an element.
    pub fn is_none(self) -> bool {
        self.tag == Tag::None
    }

    /// Returns the kind that a filter gets if it has the elements of two filters of these kinds:
    /// the kind that both have; or the other kind, if one of them is [`Kind::NONE`], as of a filter
    /// that never had an element.
    ///
    /// Returns `None` if the kinds differ, so that no filter can have the elements of both.
    pub fn unify(self, other: Kind<'a>) -> Option<Kind<'a>> {
        if self.is_none() {
            return Some(other);
        }
        if other.is_none() {
            return Some(self);
        }

        // Most kinds have no name. Comparing empty names by memcmp takes 100 ns, since it loads
        // from their dangling addresses.
        let are_unnamed = self.name.is_empty() && other.name.is_empty();
        let are_equal = self.tag == other.tag && (are_unnamed || self.name == other.name);
        are_equal.then_some(self)
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { self.tag.name() } else { self.name };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests;
