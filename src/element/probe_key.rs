//! An element in a form with which any filter can be probed: the value of the type `bloom_key`.
//!
//! A filter has one key kind, and an element is hashed for that. The index over a column of filters
//! asks filters of several kinds, so a key has the kinds of its element and the hash in each form:
//!
//! ```text
//!  0  version          u8   = 1
//!  1  tag              u8   of the key kind
//!  2  parquet_tag      u8   of the key kind in filters of the parquet layout
//!  3  present          u8   bit i is set if hash i is there
//!  4  name_bytes       u16
//!  6  reserved         u16  = 0
//!  8  hashes           3 u64: in the general form, as INT32, as FLOAT; 0 if it isn't there
//! 32  name             of the key kind, in UTF-8
//! ```

use super::hasher::{Form, parquet_form};
use crate::pg::call::{Error, Result, SqlState};
use pg_bloom_core::filter::build::unify_with_element;
use pg_bloom_core::kind::{Kind, MAX_NAME_BYTES, Tag};
use pg_bloom_core::memory::List;
use pg_bloom_core::{Header, Layout};
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
const RECORD_BYTES: usize = 32;
/// As many as [`Form`] has.
const FORMS: usize = 3;

/// An element with its key kinds, and its hash in each form.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeKey {
    pub(super) tag: Tag,
    /// What the tag is in filters of the `parquet` layout.
    pub(super) parquet_tag: Tag,
    /// The name of both kinds; empty for types that are built in.
    pub(super) name: String,
    /// One for each [`Form`], in their order; `None` for a number that a form doesn't have. Without
    /// an element there is none.
    pub(super) hashes: [Option<u64>; FORMS],
}

/// The bytes of a key before its name.
#[derive(Serialize, Deserialize)]
struct KeyRecord {
    version: u8,
    tag: u8,
    parquet_tag: u8,
    present: u8,
    name_bytes: u16,
    reserved: u16,
    hashes: [u64; FORMS],
}

impl KeyRecord {
    /// Returns whether all fields are allowed in a key that has this number of bytes behind them.
    fn is_sound(&self, name_bytes: usize) -> bool {
        self.version == VERSION
            && self.present < 1 << FORMS
            && usize::from(self.name_bytes) == name_bytes
            && name_bytes <= MAX_NAME_BYTES
            && self.reserved == 0
    }

    /// Returns the hash in the form of this number; `None` if the key has none.
    fn hash(&self, form: usize) -> Option<u64> {
        let is_present = self.present >> form & 1 == 1;
        is_present.then_some(self.hashes[form])
    }
}

/// Whether filters of some kind can have the element of a key.
pub enum HashForKind {
    /// A filter of this kind may hold the element, under this hash.
    Hash(u64),
    /// No filter of this kind can hold the element.
    Absent,
    /// Filters of this kind have other elements: to ask for this one is an error.
    OtherKind,
}

impl ProbeKey {
    /// Returns the hash that the element has in filters of a key kind, or why it has none. A *kind*
    /// is the type of a filter's elements: a tag and, for types that aren't built in, a name.
    /// Filters of Parquet files keep numbers in widths of their own, so their kinds have other
    /// hashes. The kind must not be [`Kind::NONE`], which filters without elements have.
    pub fn hash_for_kind(&self, kind: Kind<'_>) -> HashForKind {
        let is_own_tag = kind.tag == self.tag || kind.tag == self.parquet_tag;
        let form = match parquet_form(self.tag, kind.tag) {
            Some(form) => form,
            None if is_own_tag && kind.name == self.name => Form::General,
            None => return HashForKind::OtherKind,
        };
        match self.hashes[form as usize] {
            Some(hash) => HashForKind::Hash(hash),
            None => HashForKind::Absent,
        }
    }

    /// Returns the hash by which a filter with this header is probed for the element; `None` if the
    /// filter can't have the element: it is empty, or the element is a number that doesn't fit into
    /// the width of the filter's numbers. Fails with 42804 if the filter has elements of another
    /// type.
    pub fn hash_for_filter(&self, filter: &Header<'_>) -> Result<Option<u64>> {
        if filter.kind.is_none() {
            return Ok(None);
        }
        match self.hash_for_kind(filter.kind) {
            HashForKind::Hash(hash) => Ok(Some(hash)),
            HashForKind::Absent => Ok(None),
            HashForKind::OtherKind => {
                let is_parquet = filter.layout == Layout::Parquet;
                let tag = if is_parquet { self.parquet_tag } else { self.tag };
                // Makes the error. Kinds that unify are equal, and don't come here.
                unify_with_element(filter.kind, Kind { tag, name: &self.name })?;
                Ok(None)
            }
        }
    }

    /// Returns the bytes of the key as a value of SQL type `bloom_key`, without the length before
    /// them: the fields that the drawing at the top of this file shows, and then the name.
    pub fn to_bytes(&self) -> List<u8> {
        let mut present = 0;
        for (form, hash) in self.hashes.iter().enumerate() {
            present |= u8::from(hash.is_some()) << form;
        }
        let record = KeyRecord {
            version: VERSION,
            tag: self.tag as u8,
            parquet_tag: self.parquet_tag as u8,
            present,
            name_bytes: self.name.len() as u16,
            reserved: 0,
            hashes: self.hashes.map(|hash| hash.unwrap_or(0)),
        };
        let mut bytes = List::new();
        bincode::serialize_into(&mut bytes, &record).expect("numbers can be written");
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    /// Parses the bytes of a value of type `bloom_key`, without the length before them. Fails with
    /// 22P03 for bytes that [`ProbeKey::to_bytes`] can't have written.
    pub fn parse(bytes: &[u8]) -> Result<ProbeKey> {
        ProbeKey::read(bytes).ok_or_else(|| {
            Error::new(SqlState::ERRCODE_INVALID_BINARY_REPRESENTATION, "malformed bloom_key")
                .hint("Make it with bloom_key(element).")
        })
    }

    /// Parses the bytes of a value of type `bloom_key`; `None` for bytes that aren't a key, such as
    /// those of another version.
    fn read(bytes: &[u8]) -> Option<ProbeKey> {
        let (record, name) = bytes.split_first_chunk::<RECORD_BYTES>()?;
        let record: KeyRecord = bincode::deserialize(record).ok()?;
        if !record.is_sound(name.len()) {
            return None;
        }
        Some(ProbeKey {
            tag: Tag::from_code(record.tag)?,
            parquet_tag: Tag::from_code(record.parquet_tag)?,
            name: std::str::from_utf8(name).ok()?.to_owned(),
            hashes: std::array::from_fn(|form| record.hash(form)),
        })
    }
}
