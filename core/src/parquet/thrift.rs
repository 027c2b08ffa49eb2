//! The part of Thrift's compact protocol that the header of a Parquet filter is written in (Apache
//! Thrift, `doc/specs/thrift-compact-protocol.md`).
//!
//! ```text
//! struct   field* 00
//! field    dddd tttt value             d > 0: its number is that of the field before plus d; t: its type
//!          0000 tttt number value      the number in full, as a zigzag varint
//! varint   seven bits per byte, least significant first; the eighth is set if more bytes follow
//! zigzag   0, -1, 1, -2, … as 0, 1, 2, 3, …
//! ```
//!
//! A reader must skip unknown fields of any type: [`ThriftReader::skip`]. Every value except a
//! boolean field takes at least one byte, and values nest no deeper than [`MAX_DEPTH`], so reading
//! takes no more steps than there are bytes.

/// How deep skipped values may nest: as Thrift's own readers allow.
pub const MAX_DEPTH: u32 = 64;

/// The end of a struct.
pub const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
pub const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Why a header can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    CutOff,
    Invalid(String),
}

pub type Read<T> = Result<T, Malformed>;

pub(super) fn invalid<T>(detail: impl Into<String>) -> Read<T> {
    Err(Malformed::Invalid(detail.into()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub id: i16,
    pub wire_type: u8,
}

/// The bytes that were not read yet; they are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct ThriftReader<'a>(pub &'a [u8]);

impl<'a> ThriftReader<'a> {
    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Read<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn varint(&mut self) -> Read<u64> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        invalid("a number has more than 64 bits")
    }

    fn zigzag(&mut self) -> Read<i64> {
        self.varint().map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub fn i32(&mut self) -> Read<i32> {
        let value = self.zigzag()?;
        i32::try_from(value).or_else(|_| invalid(format!("{value} is no 32-bit number")))
    }

    /// The next field of a struct; `None` at its end. `last` is the number of the field before, at
    /// first 0.
    pub fn field(&mut self, last: &mut i16) -> Read<Option<Field>> {
        let byte = self.byte()?;
        if byte == STOP {
            return Ok(None);
        }
        let id = match byte >> 4 {
            0 => self.zigzag()?,
            more => i64::from(*last) + i64::from(more),
        };
        *last = i16::try_from(id).or_else(|_| invalid(format!("{id} is no number of a field")))?;
        Ok(Some(Field { id: *last, wire_type: byte & 15 }))
    }

    /// Skips the value of a field, which is nested `depth` deep.
    pub fn skip(&mut self, field: Field, depth: u32) -> Read<()> {
        match field.wire_type {
            // The type of a boolean field is its value.
            TRUE | FALSE => Ok(()),
            other => self.skip_value(other, depth),
        }
    }

    fn skip_value(&mut self, wire_type: u8, depth: u32) -> Read<()> {
        if depth > MAX_DEPTH {
            return invalid(format!("values nest more than {MAX_DEPTH} deep"));
        }
        match wire_type {
            TRUE | FALSE | BYTE => self.take(1).map(drop),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.take(8).map(drop),
            UUID => self.take(16).map(drop),
            BINARY => {
                let length = self.length()?;
                self.take(length).map(drop)
            }
            LIST | SET => {
                let start = self.byte()?;
                let count = if start >> 4 == 15 { self.length()? } else { usize::from(start >> 4) };
                (0..count).try_for_each(|_| self.skip_value(start & 15, depth + 1))
            }
            MAP => {
                let count = self.length()?;
                let types = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.skip_value(types >> 4, depth + 1)?;
                    self.skip_value(types & 15, depth + 1)
                })
            }
            STRUCT => {
                let mut last = 0;
                while let Some(field) = self.field(&mut last)? {
                    self.skip(field, depth + 1)?;
                }
                Ok(())
            }
            unknown => invalid(format!("type {unknown} is unknown")),
        }
    }

    /// How many bytes or items follow, which is at most the number of bytes left.
    fn length(&mut self) -> Read<usize> {
        let length = self.varint()?;
        usize::try_from(length)
            .ok()
            .filter(|&length| length <= self.0.len())
            .ok_or(Malformed::CutOff)
    }
}

/// Writes a field of type i32, whose number is one more than that of the field before.
pub fn write_i32(into: &mut Vec<u8>, value: i32) {
    into.push(0x10 | I32);
    let mut rest = (value << 1 ^ value >> 31) as u32;
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

/// A field that is a union of its first member, an empty struct. Its number is one more than that
/// of the field before.
pub const UNION_OF_FIRST: [u8; 4] = [0x10 | STRUCT, 0x10 | STRUCT, STOP, STOP];
