//! From a datum to the hash of its canonical bytes.

use super::call::Element;
use super::catalog;
use super::members::Parts;
use super::{jsonb, numeric};
use pg_bloom_core::canonical::members;
use pg_bloom_core::canonical::scalar as canonical;
use pg_bloom_core::canonical::{Count, Sink};
use pg_bloom_core::hash::{Stream, hash};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::rc::Rc;

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
    /// time without time zone.
    Time,
    /// time with time zone.
    Timetz,
    /// interval.
    Interval,
    /// pg_lsn, xid8.
    Unsigned,
    /// jsonb.
    Jsonb,
    /// An array, row, range or multirange.
    Composite,
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
#[derive(Clone)]
pub struct Reader {
    source: Source,
    /// Text must be converted to UTF-8.
    convert: bool,
    /// For [`Source::Other`].
    extended_hash: *mut pg_sys::FmgrInfo,
    /// For [`Source::Composite`].
    parts: Option<Rc<Parts>>,
}

impl PartialEq for Reader {
    fn eq(&self, other: &Reader) -> bool {
        let same_parts = match (&self.parts, &other.parts) {
            (None, None) => true,
            (Some(own), Some(others)) => Rc::ptr_eq(own, others),
            _ => false,
        };
        same_parts
            && (self.source, self.convert, self.extended_hash) == (other.source, other.convert, other.extended_hash)
    }
}

impl Reader {
    /// A reader for elements of type `oid`, which `source` describes; `None` when that is [`Source::Other`] and the type
    /// has no extended hash.
    pub fn new(source: Source, oid: pg_sys::Oid) -> Option<Reader> {
        let extended_hash = match source {
            Source::Other => catalog::extended_hash(oid)?,
            _ => std::ptr::null_mut(),
        };
        Some(Reader { source, convert: catalog::foreign_encoding().is_some(), extended_hash, parts: None })
    }

    /// A reader for elements that are made of others.
    pub fn composite(parts: Parts) -> Reader {
        Reader {
            source: Source::Composite,
            convert: false,
            extended_hash: std::ptr::null_mut(),
            parts: Some(Rc::new(parts)),
        }
    }

    /// The hash of an element; `None` for a number that a narrow form doesn't have, which no filter of that form holds.
    ///
    /// The element must be of the reader's type: it comes from the argument that the reader was made for.
    #[inline(always)]
    pub fn hash(&self, form: Form, element: Element) -> Option<u64> {
        let datum = element.datum;
        match self.source {
            Source::Text => Some(self.with_text(element, |bytes| bytes, hash)),
            Source::Int2 => hash_integer(form, i64::from(datum.value() as i16)),
            Source::Int4 => hash_integer(form, i64::from(datum.value() as i32)),
            Source::Int8 => hash_integer(form, datum.value() as i64),
            _ => self.hash_rarer(form, element),
        }
    }

    #[inline(never)]
    fn hash_rarer(&self, form: Form, element: Element) -> Option<u64> {
        let datum = element.datum;
        Some(match self.source {
            Source::Float4 => return hash_float(form, f64::from(f32::from_bits(datum.value() as u32))),
            Source::Float8 => return hash_float(form, f64::from_bits(datum.value() as u64)),
            Source::Numeric | Source::Jsonb => {
                with_value(element, |value| Stream::of(|stream| self.write_long(value, stream)))
            }
            Source::Composite => Stream::of(|stream| self.write_parts(element, stream)),
            _ => self.with_bytes(element, hash),
        })
    }

    /// Writes an element that is a member of another.
    pub(super) fn write_member(&self, element: Element, into: &mut Stream) {
        match self.source {
            Source::Numeric | Source::Jsonb => with_value(element, |value| {
                members::value(Count::of(|count| self.write_long(value, count)), into);
                self.write_long(value, into);
            }),
            Source::Composite => {
                members::composite(into);
                self.write_parts(element, into);
            }
            _ => self.with_bytes(element, |bytes| members::whole_value(bytes, into)),
        }
    }

    /// Writes the canonical bytes of a value that can have many more of them than of its own.
    fn write_long(&self, value: &[u8], into: &mut impl Sink) {
        match self.source {
            Source::Numeric => numeric::write(value, into),
            _ => jsonb::write(value, self.convert, into),
        }
    }

    /// Writes the canonical bytes of an element that is made of others.
    fn write_parts(&self, element: Element, into: &mut Stream) {
        if let Some(parts) = &self.parts {
            parts.write(element, into);
        }
    }

    /// What `work` makes of the canonical bytes of an element of any other kind.
    fn with_bytes<T>(&self, element: Element, work: impl FnOnce(&[u8]) -> T) -> T {
        let datum = element.datum;
        // SAFETY (of the reads by reference below): the source says how the type's values are kept.
        match self.source {
            Source::Text => self.with_text(element, |bytes| bytes, work),
            Source::Bpchar => self.with_text(element, canonical::without_trailing_blanks, work),
            Source::Int2 => work(&canonical::integer(i64::from(datum.value() as i16))),
            Source::Int4 => work(&canonical::integer(i64::from(datum.value() as i32))),
            Source::Int8 => work(&canonical::integer(datum.value() as i64)),
            Source::Float4 => work(&canonical::float(f64::from(f32::from_bits(datum.value() as u32)))),
            Source::Float8 => work(&canonical::float(f64::from_bits(datum.value() as u64))),
            Source::Char => {
                let (bytes, len) = canonical::single_char(datum.value() as u8);
                work(&bytes[..len])
            }
            Source::Name => self.with_c_string(datum.cast_mut_ptr(), work),
            Source::Enum => {
                let label = output(pg_sys::enum_out, datum);
                let result = self.with_c_string(label, work);
                // SAFETY: the output function allocated it for this call.
                unsafe { pg_sys::pfree(label.cast()) };
                result
            }
            Source::Bytea => with_value(element, work),
            Source::Uuid => work(unsafe { &*datum.cast_mut_ptr::<[u8; 16]>() }),
            Source::Date => work(&canonical::date(datum.value() as i32)),
            Source::Timestamp => work(&canonical::timestamp(datum.value() as i64)),
            Source::Bool => work(&canonical::boolean(datum.value() as u8 != 0)),
            Source::Time => work(&canonical::time(datum.value() as i64)),
            Source::Timetz => {
                let pg_sys::TimeTzADT { time, zone } = unsafe { *datum.cast_mut_ptr() };
                work(&canonical::timetz(time, zone))
            }
            Source::Interval => {
                let pg_sys::Interval { month, day, time } = unsafe { *datum.cast_mut_ptr() };
                work(&canonical::interval(month, day, time))
            }
            Source::Unsigned => work(&canonical::unsigned(datum.value() as u64)),
            Source::Other | Source::Numeric | Source::Jsonb | Source::Composite => {
                work(&self.own_hash(datum).to_le_bytes())
            }
        }
    }

    #[inline(always)]
    fn with_text<T>(&self, element: Element, canonical: impl Fn(&[u8]) -> &[u8], work: impl FnOnce(&[u8]) -> T) -> T {
        with_value(element, |bytes| self.in_utf8(canonical(bytes), work))
    }

    fn with_c_string<T>(&self, text: *const std::ffi::c_char, work: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: a name, or the output of a type, ends in a zero byte.
        self.in_utf8(unsafe { CStr::from_ptr(text) }.to_bytes(), work)
    }

    #[inline(always)]
    fn in_utf8<T>(&self, text: &[u8], work: impl FnOnce(&[u8]) -> T) -> T {
        if self.convert && !text.is_ascii() { catalog::with_utf8(text, work) } else { work(text) }
    }

    /// The extended hash of the element's type.
    fn own_hash(&self, datum: pg_sys::Datum) -> u64 {
        // The hash of a type that can hold text must not depend on a collation that compares by bytes anyway.
        let collation = pg_sys::Oid::from(pg_sys::C_COLLATION_OID.to_u32());
        // SAFETY: the type's extended hash takes a value of the type and a seed.
        unsafe {
            pg_sys::FunctionCall2Coll(self.extended_hash, collation, datum, pg_sys::Datum::from(0)).value() as u64
        }
    }
}

/// What `work` makes of the bytes of an element, whose type must be of variable length.
#[inline(always)]
fn with_value<T>(element: Element, work: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: the sources that come here are of variable length.
    let value = unsafe { element.value() };
    let result = work(value.bytes());
    value.free();
    result
}

#[inline(always)]
fn hash_integer(form: Form, value: i64) -> Option<u64> {
    match form {
        Form::Int32 => i32::try_from(value).ok().map(|v| hash(&v.to_le_bytes())),
        _ => Some(hash(&canonical::integer(value))),
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
