//! From an element to its hash in the filters of one key kind.

use super::members::Reader;
use super::scalar::{Source, with_value};
use crate::pg::call::SqlValue;
use pg_bloom_core::canonical::scalar;
use pg_bloom_core::hash::{HashSink, hash as hash_bytes};
use pg_bloom_core::kind::Tag;

/// The width in which a filter keeps numbers: one for each family, or those of Parquet's physical
/// types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The canonical bytes of the key kind: 64 bits, for a number.
    General,
    /// Parquet's INT32.
    Int32,
    /// Parquet's FLOAT.
    Float32,
}

/// Returns the width in which numbers of key kind `own_tag` are hashed for a filter of
/// `filter_tag`, one of the kinds in filters of Parquet files. `None` if it isn't one of these, or
/// has no such numbers.
pub(super) fn parquet_form(own_tag: Tag, filter_tag: Tag) -> Option<Form> {
    match (own_tag, filter_tag) {
        (Tag::Integer, Tag::ParquetInt32) => Some(Form::Int32),
        (Tag::Integer, Tag::ParquetInt64) | (Tag::Float, Tag::ParquetDouble) => Some(Form::General),
        (Tag::Float, Tag::ParquetFloat) => Some(Form::Float32),
        _ => None,
    }
}

/// How elements of one type are hashed for one key kind.
#[derive(Clone)]
pub struct Hasher {
    pub(super) reader: Reader,
    pub(super) form: Form,
}

impl Hasher {
    /// Returns the hash of an element, which is that of its canonical bytes: bytes that are equal
    /// for equal elements, in whatever way PostgreSQL stores them. May call PostgreSQL and check
    /// for interrupts.
    ///
    /// `None` for a number that no filter of this kind can have: filters of Parquet files keep some
    /// integers in 32 bits, into which 2^40 doesn't fit.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    #[inline(always)]
    pub unsafe fn hash(&self, element: SqlValue) -> Option<u64> {
        let datum = element.datum;
        // SAFETY: the element is of the reader's type, as the caller promises, and the source says
        // how values of that type are stored.
        unsafe {
            let Reader::Scalar(reader) = &self.reader else {
                return self.hash_rarer_type(element);
            };
            // The most frequent types are hashed here, in line.
            match reader.source {
                Source::Text => Some(with_value(element, |text| reader.in_utf8(text, hash_bytes))),
                Source::Int2 => hash_integer(self.form, i64::from(datum.value() as i16)),
                Source::Int4 => hash_integer(self.form, i64::from(datum.value() as i32)),
                Source::Int8 => hash_integer(self.form, datum.value() as i64),
                _ => self.hash_rarer_type(element),
            }
        }
    }

    /// Returns the width in which elements are hashed.
    #[inline(always)]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns whether elements are hashed without calling PostgreSQL, if they are stored in line
    /// and uncompressed.
    pub fn is_in_place(&self) -> bool {
        let Reader::Scalar(reader) = &self.reader else {
            return false;
        };
        !reader.convert && !reader.source.needs_postgres()
    }

    /// Returns the hash of an element without calling PostgreSQL. `None` if that isn't possible,
    /// for instance since the element is compressed, and for a number that doesn't fit into the
    /// width of the filter's numbers: the caller then asks [`Hasher::hash`], which tells these
    /// cases apart.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    #[inline(always)]
    pub unsafe fn hash_in_place(&self, element: SqlValue) -> Option<u64> {
        let Reader::Scalar(reader) = &self.reader else {
            return None;
        };
        // SAFETY: the element is of the reader's type, as the caller promises, and stays for the
        // call.
        unsafe {
            match reader.source {
                Source::Text => reader.text_in_place(element).map(|text| hash_bytes(&text)),
                Source::Int2 | Source::Int4 | Source::Int8 => self.hash(element),
                _ if reader.reads_in_place(element) => self.hash(element),
                _ => None,
            }
        }
    }

    /// Returns the hash of an element of any type except text and integers, which [`Hasher::hash`]
    /// hashes itself. `None` for a number that no filter of this kind can have.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    #[inline(never)]
    unsafe fn hash_rarer_type(&self, element: SqlValue) -> Option<u64> {
        let datum = element.datum;
        // SAFETY: the element is of the reader's type, as the caller promises, and the source says
        // how values of that type are stored. Types with long canonical bytes are of variable
        // length.
        unsafe {
            let reader = match &self.reader {
                Reader::Scalar(reader) => reader,
                Reader::Composite(parts) => {
                    return Some(HashSink::hash(|stream| parts.write(element, stream)));
                }
            };
            match reader.source {
                Source::Float4 => {
                    hash_float(self.form, f64::from(f32::from_bits(datum.value() as u32)))
                }
                Source::Float8 => hash_float(self.form, f64::from_bits(datum.value() as u64)),
                _ if reader.is_long() => Some(with_value(element, |value| {
                    HashSink::hash(|stream| reader.write_long(value, stream))
                })),
                _ => Some(reader.with_bytes(element, hash_bytes)),
            }
        }
    }
}

/// Returns the hash of an integer; `None` if the form doesn't have it.
#[inline(always)]
fn hash_integer(form: Form, value: i64) -> Option<u64> {
    match form {
        Form::Int32 => i32::try_from(value)
            .ok()
            .map(|narrow| hash_bytes(&narrow.to_le_bytes())),
        _ => Some(hash_bytes(&scalar::integer(value))),
    }
}

/// Returns the hash of a floating-point number; `None` if the form doesn't have it.
fn hash_float(form: Form, value: f64) -> Option<u64> {
    if form != Form::Float32 {
        return Some(hash_bytes(&scalar::float(value)));
    }
    let narrow = value as f32;
    (value.is_nan() || f64::from(narrow) == value).then(|| hash_bytes(&scalar::float32(narrow)))
}
