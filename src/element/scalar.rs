//! Elements that are not made of others: from a datum to canonical bytes.

use super::jsonb;
use crate::pg::call::SqlValue;
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
    /// A `pg_lsn` or an `xid8`: an unsigned number of 64 bits. It is hashed as the `bigint` that
    /// has the same bits.
    Unsigned64,
    Jsonb,
    /// Another type, by its own extended hash.
    Other,
}

impl Source {
    /// Returns whether hashing a value may call PostgreSQL even if the value is stored in line and
    /// uncompressed, and text need not be converted. Says nothing about the length of numerics,
    /// which PostgreSQL stores in line only if they are short.
    pub fn needs_postgres(self) -> bool {
        match self {
            // The label of an enum is in the catalogs, and an own hash function is PostgreSQL's. A
            // jsonb of any size may be in line in memory, and hashing it checks for interrupts.
            Source::Enum | Source::Jsonb | Source::Other => true,
            Source::Int2
            | Source::Int4
            | Source::Int8
            | Source::Float4
            | Source::Float8
            | Source::Numeric
            | Source::Text
            | Source::Bpchar
            | Source::Char
            | Source::Name
            | Source::EnumOid
            | Source::Bytea
            | Source::Uuid
            | Source::Date
            | Source::Timestamp
            | Source::Bool
            | Source::Time
            | Source::Timetz
            | Source::Interval
            | Source::Unsigned64 => false,
        }
    }
}

/// Reads the values of one type that isn't made of other types.
///
/// Canonical bytes are what is hashed of a value: equal values have equal canonical bytes, on every
/// machine and in every encoding.
#[derive(Clone, Copy)]
pub struct ScalarReader {
    pub source: Source,
    /// Whether text must be converted to UTF-8, since the database has another encoding.
    pub convert: bool,
    /// The type's extended (64-bit) hash function, for [`Source::Other`]; null for others.
    pub extended_hash: *mut pg_sys::FmgrInfo,
}

impl ScalarReader {
    /// Returns whether a short value can have many canonical bytes, as `1e100000` has.
    /// [`ScalarReader::write_long`] writes these piece by piece, and [`ScalarReader::with_bytes`]
    /// is for the other types.
    pub fn is_long(&self) -> bool {
        matches!(self.source, Source::Numeric | Source::Jsonb)
    }

    /// Writes the canonical bytes of a numeric or a jsonb, the types for which
    /// [`ScalarReader::is_long`] is true. `value` has the bytes of the value without its length,
    /// uncompressed.
    pub fn write_long(&self, value: &[u8], into: &mut impl Sink) {
        match self.source {
            Source::Numeric => jsonb::write_numeric(value, into),
            Source::Jsonb => jsonb::write(value, self.convert, into),
            _ => unreachable!("the canonical bytes of a {:?} are short", self.source),
        }
    }

    /// Calls `use_bytes` with the canonical bytes of an element, which are what is hashed of it,
    /// and returns its result. Equal values have equal canonical bytes. The bytes exist for that
    /// call only.
    ///
    /// The type must not be numeric or jsonb, for which [`ScalarReader::is_long`] is true. May call
    /// PostgreSQL, which raises an error for text that can't be converted to UTF-8.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    pub unsafe fn with_bytes<T>(&self, element: SqlValue, use_bytes: impl FnOnce(&[u8]) -> T) -> T {
        let datum = element.datum;
        // SAFETY: the element is of the reader's type, as the caller promises, and the source says
        // how values of that type are stored: in the datum, or where it points to.
        unsafe {
            match self.source {
                Source::Int2 => use_bytes(&scalar::integer(i64::from(datum.value() as i16))),
                Source::Int4 => use_bytes(&scalar::integer(i64::from(datum.value() as i32))),
                Source::Int8 | Source::Time | Source::Unsigned64 => {
                    use_bytes(&scalar::integer(datum.value() as i64))
                }
                Source::Float4 => {
                    let number = f32::from_bits(datum.value() as u32);
                    use_bytes(&scalar::float(f64::from(number)))
                }
                Source::Float8 => use_bytes(&scalar::float(f64::from_bits(datum.value() as u64))),
                Source::Bool => use_bytes(&scalar::boolean(datum.value() as u8 != 0)),
                Source::Date => use_bytes(&scalar::date(datum.value() as i32)),
                Source::Timestamp => use_bytes(&scalar::timestamp(datum.value() as i64)),
                Source::Timetz => {
                    let pg_sys::TimeTzADT { time, zone } = *datum.cast_mut_ptr();
                    use_bytes(&scalar::timetz(time, zone))
                }
                Source::Interval => {
                    let pg_sys::Interval { month, day, time } = *datum.cast_mut_ptr();
                    use_bytes(&scalar::interval(month, day, time))
                }
                Source::Uuid => use_bytes(&*datum.cast_mut_ptr::<[u8; 16]>()),
                Source::Bytea => with_value(element, use_bytes),
                Source::EnumOid => use_bytes(&scalar::integer(datum.value() as u32 as i64)),
                Source::Other => use_bytes(&self.own_hash(datum).to_le_bytes()),
                Source::Text => with_value(element, |text| self.in_utf8(text, use_bytes)),
                Source::Bpchar => with_value(element, |text| {
                    self.in_utf8(scalar::without_trailing_blanks(text), use_bytes)
                }),
                Source::Char => use_bytes(scalar::single_char(datum.value() as u8).as_bytes()),
                Source::Name => {
                    self.in_utf8(encoding::name_bytes(&*datum.cast_mut_ptr()), use_bytes)
                }
                Source::Enum => self.with_label(datum, use_bytes),
                Source::Numeric | Source::Jsonb => {
                    unreachable!("the canonical bytes of a {:?} may be long", self.source)
                }
            }
        }
    }

    /// Calls `use_text` with the label of a value of an enum, in UTF-8, and returns its result. The
    /// label exists for that call only. Raises an error if it can't be converted to UTF-8.
    ///
    /// # Safety
    /// The datum must be a value of an enum.
    unsafe fn with_label<T>(&self, datum: pg_sys::Datum, use_text: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the datum is of an enum, as the caller promises. The output function of enums
        // reads nothing but the datum, and allocates the label, which ends here.
        unsafe {
            let label_datum = pgrx::direct_function_call_as_datum(pg_sys::enum_out, &[Some(datum)])
                .expect("every value of an enum has a label");
            let label: *mut std::ffi::c_char = label_datum.cast_mut_ptr();
            let result = self.in_utf8(CStr::from_ptr(label).to_bytes(), use_text);
            pg_sys::pfree(label.cast());
            result
        }
    }

    /// Returns whether an element can be hashed without calling PostgreSQL: the value is stored in
    /// line and uncompressed, no text must be converted to UTF-8, and hashing ends before the first
    /// check for interrupts.
    ///
    /// # Safety
    /// The element must be a value of the type that the reader was made for.
    pub unsafe fn reads_in_place(&self, element: SqlValue) -> bool {
        // SAFETY: the element is of the reader's type, as the caller promises. Texts, bytea and
        // numeric are the types of variable length among these.
        unsafe {
            match self.source {
                Source::Name => !self.convert,
                Source::Text | Source::Bpchar => self.text_in_place(element).is_some(),
                Source::Bytea => Value::in_place(element.datum).is_some(),
                Source::Numeric => {
                    let value = Value::in_place(element.datum);
                    value.is_some_and(|value| value.len() <= MOST_NUMERIC_BYTES_IN_PLACE)
                }
                // These have a fixed length, or are in the datum.
                Source::Int2
                | Source::Int4
                | Source::Int8
                | Source::Float4
                | Source::Float8
                | Source::Char
                | Source::EnumOid
                | Source::Uuid
                | Source::Date
                | Source::Timestamp
                | Source::Bool
                | Source::Time
                | Source::Timetz
                | Source::Interval
                | Source::Unsigned64 => true,
                // These need PostgreSQL.
                Source::Enum | Source::Jsonb | Source::Other => false,
            }
        }
    }

    /// Returns a text without copying it. `None` if the text is compressed or out of line, or may
    /// have to be converted to UTF-8.
    ///
    /// # Safety
    /// The element must be a text, and stay in memory for `'a`.
    #[inline(always)]
    pub unsafe fn text_in_place<'a>(&self, element: SqlValue) -> Option<Value<'a>> {
        // SAFETY: texts are of variable length, and the caller promises one that stays for `'a`.
        let text = unsafe { Value::in_place(element.datum) }?;
        let is_utf8 = !self.convert || text.is_ascii();
        if is_utf8 { Some(text) } else { None }
    }

    /// Calls `use_text` with a text in UTF-8, which is converted if the database has another
    /// encoding, and returns its result. `text` has the bytes of the value without its length.
    #[inline(always)]
    pub fn in_utf8<T>(&self, text: &[u8], use_text: impl FnOnce(&[u8]) -> T) -> T {
        // ASCII is the same in all encodings of databases.
        if self.convert && !text.is_ascii() {
            encoding::with_utf8(text, use_text)
        } else {
            use_text(text)
        }
    }

    /// Returns the hash that the type's own extended hash function computes.
    ///
    /// # Safety
    /// The datum must be a value of the type that the reader was made for, and that of
    /// [`Source::Other`].
    unsafe fn own_hash(&self, datum: pg_sys::Datum) -> u64 {
        // Collations of elements compare bytes; so the hash must not depend on which one it is.
        let collation = pg_sys::Oid::from(pg_sys::C_COLLATION_OID.to_u32());
        let seed = pg_sys::Datum::from(0);
        // SAFETY: an extended hash function takes a value of its type, as the caller promises, and
        // a seed.
        let hash =
            unsafe { guard(|| raw::FunctionCall2Coll(self.extended_hash, collation, datum, seed)) };
        hash.value() as u64
    }
}

/// Calls `use_bytes` with the bytes of a value, whole, uncompressed and without the length before
/// them, and returns its result. The bytes exist for that call only.
///
/// # Safety
/// The element must be of a type of variable length.
#[inline(always)]
pub unsafe fn with_value<T>(element: SqlValue, use_bytes: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: the type is of variable length, as the caller promises.
    let value = unsafe { Value::detoast(element.datum) };
    let result = use_bytes(value.bytes());
    value.free();
    result
}
