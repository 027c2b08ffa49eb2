//! An element in a form with which any filter can be probed: its kinds, and its hashes in all forms. The value of the
//! type `bloom_key`.
//!
//! ```text
//!  0  version      u8   = 1          8  hash, general     u64
//!  1  tag          u8               16  hash as INT32     u64
//!  2  tag, parquet u8               24  hash as FLOAT     u64
//!  3  hashes       u8   bit i: there is one
//!  4  name length  u16              32  name
//!  6  reserved     u16  0
//! ```

use super::hasher::Form;
use crate::pg::call::error::{Error, Result, SqlState};
use pg_bloom_core::Header;
use pg_bloom_core::filter::build::meet_kind;
use pg_bloom_core::kind::{Kind, MAX_NAME, Tag};

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 32;

/// An element that filters are probed for.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeKey {
    pub(super) tag: Tag,
    /// The kind in a filter of the `parquet` layout.
    pub(super) parquet: Tag,
    pub(super) name: String,
    /// In the forms general, INT32 and FLOAT; nothing for a number that a form doesn't have.
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
    fn in_form(&self, form: Form) -> Option<u64> {
        match form {
            Form::General => self.hashes[0],
            Form::Int32 => self.hashes[1],
            Form::Float32 => self.hashes[2],
        }
    }

    /// The hash that filters of a kind other than [`Kind::NONE`] have for the element: `Some(None)` if they can't have
    /// it; `None` if probing them is an error.
    pub fn hash_of_kind(&self, kind: Kind<'_>) -> Option<Option<u64>> {
        if let Some(form) = other_form(self.tag, kind.tag) {
            return Some(self.in_form(form));
        }
        // General kinds that have a form in Parquet are in filters of other layouts only.
        let is_own = kind.name == self.name && (kind.tag == self.tag || kind.tag == self.parquet);
        is_own.then_some(self.hashes[0])
    }

    /// The hash that a filter has for the element; `None` if it can't have it.
    ///
    /// # Errors
    /// 42804 when the filter holds elements of another kind.
    pub fn hash_for(&self, filter: &Header<'_>) -> Result<Option<u64>> {
        if filter.kind.is_none() {
            return Ok(None);
        }
        if let Some(hash) = self.hash_of_kind(filter.kind) {
            return Ok(hash);
        }
        let tag = if filter.layout == pg_bloom_core::Layout::Parquet { self.parquet } else { self.tag };
        meet_kind(filter.kind, Kind { tag, name: &self.name })?;
        Ok(None)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let there = (0..3).filter(|&i| self.hashes[i].is_some()).fold(0, |bits, i| bits | 1 << i);
        bytes[..4].copy_from_slice(&[VERSION, self.tag as u8, self.parquet as u8, there]);
        bytes[4..6].copy_from_slice(&(self.name.len() as u16).to_le_bytes());
        for (bytes, hash) in bytes[8..].chunks_exact_mut(8).zip(self.hashes) {
            bytes.copy_from_slice(&hash.unwrap_or(0).to_le_bytes());
        }
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    /// # Errors
    /// 22P03 for other bytes.
    pub fn parse(bytes: &[u8]) -> Result<ProbeKey> {
        ProbeKey::read(bytes).ok_or_else(|| {
            Error::new(SqlState::ERRCODE_INVALID_BINARY_REPRESENTATION, "malformed bloom_key")
                .hint("Make it with bloom_key(element).")
        })
    }

    fn read(bytes: &[u8]) -> Option<ProbeKey> {
        let (header, name) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [version, tag, parquet, there, n0, n1, 0, 0, hashes @ ..] = header else { return None };
        let hash = |i: usize| {
            let bytes = hashes[8 * i..].first_chunk::<8>()?;
            (there >> i & 1 == 1).then_some(u64::from_le_bytes(*bytes))
        };
        let is_whole = *version == VERSION
            && *there < 8
            && name.len() == usize::from(u16::from_le_bytes([*n0, *n1]))
            && name.len() <= MAX_NAME;
        is_whole.then_some(())?;
        Some(ProbeKey {
            tag: Tag::from_code(*tag)?,
            parquet: Tag::from_code(*parquet)?,
            name: std::str::from_utf8(name).ok()?.to_owned(),
            hashes: [hash(0), hash(1), hash(2)],
        })
    }
}
