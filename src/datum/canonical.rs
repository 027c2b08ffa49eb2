//! From a datum to the hash of its canonical bytes.

use super::call::Element;
use super::catalog;
use pg_bloom_core::element as canonical;
use pg_bloom_core::hash::hash;
use pgrx::pg_sys;
use std::ffi::CStr;

/// How the values of a type are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// smallint.
    Int2,
    /// integer.
    Int4,
    /// bigint.
    Int8,
    /// real.
    Float4,
    /// double precision.
    Float8,
    /// numeric.
    Numeric,
    /// text, varchar.
    Text,
    /// char(n).
    Bpchar,
    /// "char".
    Char,
    /// name.
    Name,
    /// An enum.
    Enum,
    /// bytea.
    Bytea,
    /// uuid.
    Uuid,
    /// date.
    Date,
    /// timestamp with or without time zone.
    Timestamp,
    /// boolean.
    Bool,
    /// Another type, by its own extended hash.
    Other,
}

/// The width in which a filter keeps numbers: one for each family, or those of Parquet's physical types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The canonical bytes of the key kind.
    General,
    /// INT32.
    Int32,
    /// FLOAT.
    Float32,
}

/// Hashes the elements of one type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reader {
    source: Source,
    /// Text must be converted to UTF-8.
    convert: bool,
    /// For [`Source::Other`].
    extended_hash: *mut pg_sys::FmgrInfo,
}

impl Reader {
    /// A reader for elements of type `oid`, which `source` describes; `None` when that is [`Source::Other`] and the type
    /// has no extended hash.
    pub fn new(source: Source, oid: pg_sys::Oid) -> Option<Reader> {
        let extended_hash = match source {
            Source::Other => catalog::extended_hash(oid)?,
            _ => std::ptr::null_mut(),
        };
        Some(Reader { source, convert: catalog::foreign_encoding().is_some(), extended_hash })
    }

    /// The hash of an element; `None` for a number that a narrow form doesn't have, which no filter of that form holds.
    ///
    /// The element must be of the reader's type: it comes from the argument that the reader was made for.
    #[inline(always)]
    pub fn hash(&self, form: Form, element: Element) -> Option<u64> {
        let datum = element.datum;
        // SAFETY (of the calls below): the source says how the type's values are kept.
        match self.source {
            Source::Text => Some(self.hash_text(element, |bytes| bytes)),
            Source::Int2 => self.hash_integer(form, i64::from(datum.value() as i16)),
            Source::Int4 => self.hash_integer(form, i64::from(datum.value() as i32)),
            Source::Int8 => self.hash_integer(form, datum.value() as i64),
            _ => self.hash_rarer(form, element),
        }
    }

    #[inline(always)]
    fn hash_integer(&self, form: Form, value: i64) -> Option<u64> {
        match form {
            Form::Int32 => i32::try_from(value).ok().map(|v| hash(&v.to_le_bytes())),
            _ => Some(hash(&canonical::integer(value))),
        }
    }

    #[inline(always)]
    fn hash_text(&self, element: Element, canonical: impl Fn(&[u8]) -> &[u8]) -> u64 {
        // SAFETY: a string type is of variable length.
        let value = unsafe { element.value() };
        let bytes = canonical(value.bytes());
        let result = if self.convert && !bytes.is_ascii() { hash(&catalog::to_utf8(bytes)) } else { hash(bytes) };
        value.free();
        result
    }

    #[inline(never)]
    fn hash_rarer(&self, form: Form, element: Element) -> Option<u64> {
        let datum = element.datum;
        let hash = match self.source {
            Source::Float4 => return hash_float(form, f64::from(f32::from_bits(datum.value() as u32))),
            Source::Float8 => return hash_float(form, f64::from_bits(datum.value() as u64)),
            Source::Bpchar => self.hash_text(element, canonical::without_trailing_blanks),
            Source::Char => {
                let (bytes, len) = canonical::single_char(datum.value() as u8);
                hash(&bytes[..len])
            }
            Source::Name => self.hash_c_string(datum.cast_mut_ptr()),
            Source::Enum => self.hash_c_string(output(pg_sys::enum_out, datum)),
            Source::Numeric => {
                // SAFETY: numeric_out prints ASCII.
                let text = unsafe { CStr::from_ptr(output(pg_sys::numeric_out, datum)) };
                hash(canonical::numeric(&text.to_string_lossy()).as_bytes())
            }
            Source::Bytea => {
                // SAFETY: bytea is of variable length.
                let value = unsafe { element.value() };
                let result = hash(value.bytes());
                value.free();
                result
            }
            // SAFETY: a uuid is 16 bytes, by reference.
            Source::Uuid => hash(unsafe { &*datum.cast_mut_ptr::<[u8; 16]>() }),
            Source::Date => hash(&canonical::date(datum.value() as i32)),
            Source::Timestamp => hash(&canonical::timestamp(datum.value() as i64)),
            Source::Bool => hash(&canonical::boolean(datum.value() as u8 != 0)),
            _ => self.hash_other(datum),
        };
        Some(hash)
    }

    fn hash_c_string(&self, text: *const std::ffi::c_char) -> u64 {
        // SAFETY: a name, or the output of a type, ends in a zero byte.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        if self.convert && !bytes.is_ascii() { hash(&catalog::to_utf8(bytes)) } else { hash(bytes) }
    }

    fn hash_other(&self, datum: pg_sys::Datum) -> u64 {
        // The hash of a type that can hold text must not depend on a collation that compares by bytes anyway.
        let collation = pg_sys::Oid::from(pg_sys::C_COLLATION_OID.to_u32());
        // SAFETY: the type's extended hash takes a value of the type and a seed.
        let own = unsafe { pg_sys::FunctionCall2Coll(self.extended_hash, collation, datum, pg_sys::Datum::from(0)) };
        hash(&(own.value() as u64).to_le_bytes())
    }
}

fn hash_float(form: Form, value: f64) -> Option<u64> {
    match form {
        Form::Float32 => {
            let narrow = value as f32;
            (value.is_nan() || f64::from(narrow) == value).then(|| hash(&canonical::float32(narrow)))
        }
        _ => Some(hash(&canonical::float(value))),
    }
}

/// The text of a value, by its type's output function.
fn output(
    function: unsafe fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    datum: pg_sys::Datum,
) -> *mut std::ffi::c_char {
    // SAFETY: the function is the output function of the datum's type and needs no more than the datum.
    unsafe {
        pgrx::direct_function_call_as_datum(function, &[Some(datum)])
            .map_or(c"".as_ptr().cast_mut(), |d| d.cast_mut_ptr())
    }
}
