//! From an element to its hash: by a [`Hasher`] for one kind of filter, or in a form with which any
//! filter can be probed, a [`ProbeKey`], which has its kinds, and its hashes in all forms. That is
//! the value of the type `bloom_key`.
//!
//! ```text
//!  0  version      u8   = 1          8  hash, general     u64
//!  1  tag          u8               16  hash as INT32     u64
//!  2  tag, parquet u8               24  hash as FLOAT     u64
//!  3  hashes       u8   bit i: there is one
//!  4  name length  u16              32  name
//!  6  reserved     u16  0
//! ```

use super::members::Reader;
use super::scalar::{Source, with_value};
use crate::pg::call::{Element, Error, Result, SqlState};
use pg_bloom_core::Header;
use pg_bloom_core::canonical::scalar;
use pg_bloom_core::filter::build::unify_with_element;
use pg_bloom_core::hash::{HashSink, hash};
use pg_bloom_core::kind::{Kind, MAX_NAME_BYTES, Tag};

/// The width in which a filter keeps numbers: one for each family, or those of Parquet's physical
/// types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The canonical bytes of the key kind.
    General,
    Int32,
    Float32,
}

/// How elements of one type are hashed for one key kind.
#[derive(Clone)]
pub struct Hasher {
    pub(super) reader: Reader,
    pub(super) form: Form,
}

impl Hasher {
    /// The hash of an element; `None` for a number that a narrow form doesn't have, which no filter
    /// of that form holds.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    #[inline(always)]
    pub unsafe fn hash(&self, element: Element) -> Option<u64> {
        let datum = element.datum;
        // SAFETY: promised by the caller.
        unsafe {
            let Reader::Scalar(reader) = &self.reader else {
                return self.hash_rarer(element);
            };
            match reader.source {
                Source::Text => Some(with_value(element, |text| reader.in_utf8(text, hash))),
                Source::Int2 => hash_integer(self.form, i64::from(datum.value() as i16)),
                Source::Int4 => hash_integer(self.form, i64::from(datum.value() as i32)),
                Source::Int8 => hash_integer(self.form, datum.value() as i64),
                _ => self.hash_rarer(element),
            }
        }
    }

    /// Returns the width in which elements are hashed.
    #[inline(always)]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether elements that are whole and uncompressed are hashed without calling PostgreSQL.
    pub fn is_in_place(&self) -> bool {
        let Reader::Scalar(reader) = &self.reader else {
            return false;
        };
        !reader.convert && !matches!(reader.source, Source::Enum | Source::Jsonb | Source::Other)
    }

    /// The hash of an element, if that needs nothing of PostgreSQL.
    ///
    /// # Safety
    /// As [`Hasher::hash`].
    #[inline(always)]
    pub unsafe fn hash_in_place(&self, element: Element) -> Option<u64> {
        let Reader::Scalar(reader) = &self.reader else {
            return None;
        };
        // SAFETY: promised by the caller.
        unsafe {
            match reader.source {
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
    if form != Form::Float32 {
        return Some(hash(&scalar::float(value)));
    }
    let narrow = value as f32;
    (value.is_nan() || f64::from(narrow) == value).then(|| hash(&scalar::float32(narrow)))
}

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 32;

#[derive(Clone, Debug, PartialEq)]
pub struct ProbeKey {
    pub(super) tag: Tag,
    pub(super) parquet: Tag,
    pub(super) name: String,
    /// One for each [`Form`]; nothing for a number that a form doesn't have.
    pub(super) hashes: [Option<u64>; 3],
}

/// Kinds of the `parquet` layout that are not a type's own but compare with it.
pub(super) fn other_form(own: Tag, tag: Tag) -> Option<Form> {
    match (own, tag) {
        (Tag::Integer, Tag::ParquetInt32) => Some(Form::Int32),
        (Tag::Integer, Tag::ParquetInt64) | (Tag::Float, Tag::ParquetDouble) => Some(Form::General),
        (Tag::Float, Tag::ParquetFloat) => Some(Form::Float32),
        _ => None,
    }
}

impl ProbeKey {
    /// The hash for a kind that isn't [`Kind::NONE`]: `Some(None)` if it can't have it; `None` if
    /// that is an error.
    pub fn hash_of_kind(&self, kind: Kind<'_>) -> Option<Option<u64>> {
        if let Some(form) = other_form(self.tag, kind.tag) {
            return Some(self.hashes[form as usize]);
        }
        // General kinds that have a form in Parquet are in filters of other layouts only.
        let is_own = kind.name == self.name && (kind.tag == self.tag || kind.tag == self.parquet);
        is_own.then_some(self.hashes[0])
    }

    /// The hash for a filter; `None` if it can't have the element. Errors: 42804 for a filter of
    /// another kind.
    pub fn hash_for(&self, filter: &Header<'_>) -> Result<Option<u64>> {
        if filter.kind.is_none() {
            return Ok(None);
        }
        if let Some(hash) = self.hash_of_kind(filter.kind) {
            return Ok(hash);
        }
        let tag = if filter.layout == pg_bloom_core::Layout::Parquet {
            self.parquet
        } else {
            self.tag
        };
        unify_with_element(filter.kind, Kind { tag, name: &self.name })?;
        Ok(None)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let there: u8 = (0..3).map(|i| u8::from(self.hashes[i].is_some()) << i).sum();
        bytes[..4].copy_from_slice(&[VERSION, self.tag as u8, self.parquet as u8, there]);
        bytes[4..6].copy_from_slice(&(self.name.len() as u16).to_le_bytes());
        for (bytes, hash) in bytes[8..].chunks_exact_mut(8).zip(self.hashes) {
            bytes.copy_from_slice(&hash.unwrap_or(0).to_le_bytes());
        }
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    /// Errors: 22P03 for other bytes.
    pub fn parse(bytes: &[u8]) -> Result<ProbeKey> {
        ProbeKey::read(bytes).ok_or_else(|| {
            Error::new(SqlState::ERRCODE_INVALID_BINARY_REPRESENTATION, "malformed bloom_key")
                .hint("Make it with bloom_key(element).")
        })
    }

    fn read(bytes: &[u8]) -> Option<ProbeKey> {
        let (header, name) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [version, tag, parquet, there, n0, n1, 0, 0, hashes @ ..] = header else {
            return None;
        };
        let hash = |i: usize| {
            let bytes = hashes[8 * i..].first_chunk::<8>()?;
            (there >> i & 1 == 1).then_some(u64::from_le_bytes(*bytes))
        };
        let length = usize::from(u16::from_le_bytes([*n0, *n1]));
        let is_whole =
            *version == VERSION && *there < 8 && name.len() == length && length <= MAX_NAME_BYTES;
        let name = std::str::from_utf8(name).ok().filter(|_| is_whole)?.to_owned();
        let hashes = [hash(0), hash(1), hash(2)];
        Some(ProbeKey {
            tag: Tag::from_code(*tag)?,
            parquet: Tag::from_code(*parquet)?,
            name,
            hashes,
        })
    }
}
