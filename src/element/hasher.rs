//! From an element to its hash.

use super::members::Reader;
use super::scalar::{Source, with_value};
use crate::pg::call::Element;
use pg_bloom_core::canonical::scalar;
use pg_bloom_core::hash::{Stream, hash};

/// The width in which a filter keeps numbers: one for each family, or those of Parquet's physical types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The canonical bytes of the key kind.
    General,
    Int32,
    Float32,
}

/// How elements of one type are hashed for one key kind.
#[derive(Clone, PartialEq)]
pub struct Hasher {
    pub(super) reader: Reader,
    pub(super) form: Form,
}

impl Hasher {
    /// The hash of an element; `None` for a number that a narrow form doesn't have, which no filter of that form holds.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    #[inline(always)]
    pub unsafe fn hash(&self, element: Element) -> Option<u64> {
        let datum = element.datum;
        // SAFETY: promised by the caller.
        unsafe {
            match &self.reader {
                Reader::Scalar(reader) => match reader.source() {
                    Source::Text => Some(reader.with_text(element, |bytes| bytes, hash)),
                    Source::Int2 => hash_integer(self.form, i64::from(datum.value() as i16)),
                    Source::Int4 => hash_integer(self.form, i64::from(datum.value() as i32)),
                    Source::Int8 => hash_integer(self.form, datum.value() as i64),
                    _ => self.hash_rarer(element),
                },
                Reader::Composite(_) => self.hash_rarer(element),
            }
        }
    }

    /// Whether elements that are whole and uncompressed are hashed without calling PostgreSQL.
    pub fn is_in_place(&self) -> bool {
        matches!(&self.reader, Reader::Scalar(reader) if reader.is_in_place())
    }

    /// The hash of an element, if that needs nothing of PostgreSQL.
    ///
    /// # Safety
    /// As [`Hasher::hash`].
    #[inline(always)]
    pub unsafe fn hash_in_place(&self, element: Element) -> Option<u64> {
        let Reader::Scalar(reader) = &self.reader else { return None };
        // SAFETY: promised by the caller.
        unsafe {
            match reader.source() {
                Source::Text => reader.text_in_place(element).map(|text| hash(&text)),
                Source::Int2 | Source::Int4 | Source::Int8 => self.hash(element),
                _ if reader.reads_in_place(element) => self.hash(element),
                _ => None,
            }
        }
    }

    /// # Safety
    /// As [`Hasher::hash`].
    #[inline(never)]
    unsafe fn hash_rarer(&self, element: Element) -> Option<u64> {
        let datum = element.datum;
        // SAFETY: promised by the caller.
        unsafe {
            let reader = match &self.reader {
                Reader::Scalar(reader) => reader,
                Reader::Composite(parts) => return Some(Stream::of(|stream| parts.write(element, stream))),
            };
            match reader.source() {
                Source::Float4 => hash_float(self.form, f64::from(f32::from_bits(datum.value() as u32))),
                Source::Float8 => hash_float(self.form, f64::from_bits(datum.value() as u64)),
                _ if reader.is_long() => {
                    Some(with_value(element, |value| Stream::of(|stream| reader.write_long(value, stream))))
                }
                _ => Some(reader.with_bytes(element, hash)),
            }
        }
    }
}

#[inline(always)]
fn hash_integer(form: Form, value: i64) -> Option<u64> {
    match form {
        Form::Int32 => i32::try_from(value).ok().map(|v| hash(&v.to_le_bytes())),
        _ => Some(hash(&scalar::integer(value))),
    }
}

fn hash_float(form: Form, value: f64) -> Option<u64> {
    match form {
        Form::Float32 => {
            let narrow = value as f32;
            (value.is_nan() || f64::from(narrow) == value).then(|| hash(&scalar::float32(narrow)))
        }
        _ => Some(hash(&scalar::float(value))),
    }
}
