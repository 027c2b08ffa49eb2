//! Elements that are not made of others: from a datum to canonical bytes.

use super::jsonb;
use crate::pg::call::Element;
use crate::pg::call::guard::{guard, raw};
use crate::pg::value::encoding;
use crate::pg::value::varlena::Value;
use pg_bloom_core::canonical::{Sink, scalar};
use pg_bloom_core::interrupt::STRIDE_BYTES;
use pgrx::pg_sys;
use std::ffi::CStr;

/// The longest numeric that is hashed without checking for interrupts. PostgreSQL stores no longer
/// ones, except for numbers of more than 130,000 digits.
const MOST_NUMERIC_BYTES_IN_PLACE: usize = 1 << 16;

// Canonical bytes are written one by one, with a check for interrupts after each stride, which may
// call PostgreSQL. A numeric has a group of four digits in two bytes, and up to 32,768 groups of
// zeros that are not stored.
const _: () = {
    let most_groups = MOST_NUMERIC_BYTES_IN_PLACE / 2 + 32_768;
    let sign_and_point = 2;
    assert!(4 * most_groups + sign_and_point < STRIDE_BYTES);
};

/// How the values of a type are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Bpchar,
    Char,
    Name,
    /// An enum, by its label.
    Enum,
    /// An enum in an index, by its object identifier: labels can be renamed, and indexes stay in
    /// their database.
    EnumOid,
    Bytea,
    Uuid,
    Date,
    Timestamp,
    Bool,
    Time,
    Timetz,
    Interval,
    Unsigned,
    Jsonb,
    /// Another type, by its own extended hash.
    Other,
}

#[derive(Clone, Copy)]
pub struct ScalarReader {
    pub source: Source,
    /// Text must be converted to UTF-8.
    pub convert: bool,
    /// For [`Source::Other`].
    pub extended_hash: *mut pg_sys::FmgrInfo,
}

impl ScalarReader {
    /// Whether the canonical bytes may be many more than those of the value: they are written piece
    /// by piece.
    pub fn is_long(&self) -> bool {
        matches!(self.source, Source::Numeric | Source::Jsonb)
    }

    pub fn write_long(&self, value: &[u8], into: &mut impl Sink) {
        match self.source {
            Source::Numeric => jsonb::write_numeric(value, into),
            _ => jsonb::write(value, self.convert, into),
        }
    }

    /// What `work` makes of the canonical bytes of an element that has no long ones.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    pub unsafe fn with_bytes<T>(&self, element: Element, work: impl FnOnce(&[u8]) -> T) -> T {
        let datum = element.datum;
        // SAFETY: promised by the caller; the source says how the type's values are kept. The
        // output function of enums needs no more than the datum, and allocates the label for this
        // call.
        unsafe {
            match self.source {
                Source::Text => with_value(element, |text| self.in_utf8(text, work)),
                Source::Bpchar => with_value(element, |text| {
                    self.in_utf8(scalar::without_trailing_blanks(text), work)
                }),
                Source::Int2 => work(&scalar::integer(i64::from(datum.value() as i16))),
                Source::Int4 => work(&scalar::integer(i64::from(datum.value() as i32))),
                Source::Int8 | Source::Time | Source::Unsigned => {
                    work(&scalar::integer(datum.value() as i64))
                }
                Source::Float4 => {
                    work(&scalar::float(f64::from(f32::from_bits(datum.value() as u32))))
                }
                Source::Float8 => work(&scalar::float(f64::from_bits(datum.value() as u64))),
                Source::Char => work(scalar::single_char(datum.value() as u8).as_bytes()),
                Source::Name => self.in_utf8(encoding::name_bytes(&*datum.cast_mut_ptr()), work),
                Source::Enum => {
                    let label =
                        pgrx::direct_function_call_as_datum(pg_sys::enum_out, &[Some(datum)]);
                    let label: *mut std::ffi::c_char =
                        label.expect("every value has a label").cast_mut_ptr();
                    let result = self.in_utf8(CStr::from_ptr(label).to_bytes(), work);
                    pg_sys::pfree(label.cast());
                    result
                }
                Source::EnumOid => work(&scalar::integer(datum.value() as u32 as i64)),
                Source::Bytea => with_value(element, work),
                Source::Uuid => work(&*datum.cast_mut_ptr::<[u8; 16]>()),
                Source::Date => work(&scalar::date(datum.value() as i32)),
                Source::Timestamp => work(&scalar::timestamp(datum.value() as i64)),
                Source::Bool => work(&scalar::boolean(datum.value() as u8 != 0)),
                Source::Timetz => {
                    let pg_sys::TimeTzADT { time, zone } = *datum.cast_mut_ptr();
                    work(&scalar::timetz(time, zone))
                }
                Source::Interval => {
                    let pg_sys::Interval { month, day, time } = *datum.cast_mut_ptr();
                    work(&scalar::interval(month, day, time))
                }
                Source::Other | Source::Numeric | Source::Jsonb => {
                    work(&self.own_hash(datum).to_le_bytes())
                }
            }
        }
    }

    /// Returns whether an element can be read without calling PostgreSQL: it is stored as it was
    /// given, nothing of it is converted, and hashing it ends before it would check for interrupts.
    ///
    /// # Safety
    /// As [`ScalarReader::with_bytes`].
    pub unsafe fn reads_in_place(&self, element: Element) -> bool {
        // SAFETY: promised by the caller: what is read as a value is of variable length.
        unsafe {
            match self.source {
                Source::Enum | Source::Jsonb | Source::Other => false,
                Source::Name => !self.convert,
                Source::Text | Source::Bpchar => self.text_in_place(element).is_some(),
                Source::Bytea => Value::in_place(element.datum).is_some(),
                Source::Numeric => {
                    let value = Value::in_place(element.datum);
                    value.is_some_and(|value| value.len() <= MOST_NUMERIC_BYTES_IN_PLACE)
                }
                // The others are of a fixed length.
                _ => true,
            }
        }
    }

    /// A text that is whole, uncompressed and in UTF-8 as it was given.
    ///
    /// # Safety
    /// The element must be a text, and be there for `'a`.
    #[inline(always)]
    pub unsafe fn text_in_place<'a>(&self, element: Element) -> Option<Value<'a>> {
        // SAFETY: texts are of variable length.
        let text = unsafe { Value::in_place(element.datum) }?;
        (!self.convert || text.is_ascii()).then_some(text)
    }

    /// What `work` makes of a text in UTF-8.
    #[inline(always)]
    pub fn in_utf8<T>(&self, text: &[u8], work: impl FnOnce(&[u8]) -> T) -> T {
        if self.convert && !text.is_ascii() {
            encoding::with_utf8(text, work)
        } else {
            work(text)
        }
    }

    /// # Safety
    /// As [`ScalarReader::with_bytes`].
    unsafe fn own_hash(&self, datum: pg_sys::Datum) -> u64 {
        // The hash of a type that can hold text must not depend on a collation that compares by
        // bytes anyway.
        let collation = pg_sys::Oid::from(pg_sys::C_COLLATION_OID.to_u32());
        // SAFETY: the type's extended hash takes a value of the type and a seed.
        unsafe {
            let (hash, seed) = (self.extended_hash, pg_sys::Datum::from(0));
            guard(|| raw::FunctionCall2Coll(hash, collation, datum, seed)).value() as u64
        }
    }
}

/// # Safety
/// The element must be of a type of variable length.
#[inline(always)]
pub unsafe fn with_value<T>(element: Element, work: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: promised by the caller.
    let value = unsafe { Value::detoast(element.datum) };
    let result = work(value.bytes());
    value.free();
    result
}
