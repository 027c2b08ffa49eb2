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
//! A reader must skip unknown fields of any type: [`ThriftReader::skip_field`]. Every value except
//! a boolean field takes at least one byte, and values nest no deeper than [`MAX_DEPTH`], so
//! reading takes no more steps than there are bytes.

use crate::memory::List;

/// How deep skipped values may nest: as Thrift's own readers allow.
pub const MAX_DEPTH: u32 = 64;

/// The byte that ends a struct.
const STOP: u8 = 0;

/// The codes of the types of values.
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

/// The bit of a varint's byte that says that more bytes follow.
const MORE_FOLLOW: u8 = 0x80;
/// How many bits of a number each byte of a varint has.
const VARINT_BITS: usize = 7;

/// Why bytes can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThriftError {
    /// They end too early.
    CutOff,
    /// The text says what is wrong with them, without a full stop.
    Invalid(String),
}

/// A result with a [`ThriftError`].
pub type ThriftResult<T> = Result<T, ThriftError>;

/// Fails with [`ThriftError::Invalid`]. `why` says what is wrong, without a full stop.
pub fn invalid<T>(why: impl Into<String>) -> ThriftResult<T> {
    Err(ThriftError::Invalid(why.into()))
}

/// What comes before the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThriftField {
    /// The number of the field, by which the declaration of the struct tells its meaning.
    pub id: i16,
    /// The code of the value's type.
    pub wire_type: u8,
}

/// Reads bytes from their front.
#[derive(Clone, Copy, Debug)]
pub struct ThriftReader<'a> {
    /// The bytes that were not read yet.
    unread: &'a [u8],
}

impl<'a> ThriftReader<'a> {
    /// Returns a reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> ThriftReader<'a> {
        ThriftReader { unread: bytes }
    }

    /// Returns how many bytes were not read yet.
    pub fn unread_bytes(&self) -> usize {
        self.unread.len()
    }

    /// Reads the next `count` bytes. Fails if there are fewer.
    fn take(&mut self, count: usize) -> ThriftResult<&'a [u8]> {
        let (taken, rest) = self.unread.split_at_checked(count).ok_or(ThriftError::CutOff)?;
        self.unread = rest;
        Ok(taken)
    }

    /// Reads the next byte. Fails if there is none.
    fn byte(&mut self) -> ThriftResult<u8> {
        let taken = self.take(1)?;
        Ok(taken[0])
    }

    /// Reads an unsigned number in a variable number of bytes: seven bits of it in each byte, the
    /// lowest first; the eighth bit of a byte says whether more bytes follow.
    ///
    /// Fails if it is cut off, or has more than 64 bits.
    fn varint(&mut self) -> ThriftResult<u64> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(VARINT_BITS) {
            let byte = self.byte()?;
            let bits = u64::from(byte & !MORE_FOLLOW);
            // The tenth byte has only one bit that fits.
            let fits = bits << shift >> shift == bits;
            if !fits {
                break;
            }
            value |= bits << shift;
            if byte & MORE_FOLLOW == 0 {
                return Ok(value);
            }
        }
        invalid("a number has more than 64 bits")
    }

    /// Reads a signed number, of which 0, -1, 1, -2 … were written as the varints 0, 1, 2, 3 ….
    ///
    /// Fails if it is cut off, or has more than 64 bits.
    fn zigzag(&mut self) -> ThriftResult<i64> {
        let encoded = self.varint()?;
        let magnitude = (encoded >> 1) as i64;
        let is_negative = (encoded & 1) as i64;
        // Negating 0 and 1 gives masks of clear and of set bits.
        Ok(magnitude ^ -is_negative)
    }

    /// Reads a value of type i32.
    ///
    /// Fails if it is cut off, or has more than 32 bits.
    pub fn i32(&mut self) -> ThriftResult<i32> {
        let value = self.zigzag()?;
        i32::try_from(value).or_else(|_| invalid(format!("{value} is no 32-bit number")))
    }

    /// Reads what comes before the value of the next field of a struct: its number and the code of
    /// its type, in one byte, or in a byte and a number after it. Returns `None` at the end of the
    /// struct, which a zero byte marks. `previous_id` is the number of the field before, or 0
    /// before the first field: most fields are stored by their distance to that.
    ///
    /// Fails if the bytes are cut off, or if the number of the field has more than 16 bits.
    pub fn field(&mut self, previous_id: i16) -> ThriftResult<Option<ThriftField>> {
        let byte = self.byte()?;
        if byte == STOP {
            return Ok(None);
        }
        // The high half of the byte is the distance to the previous number. It is 0 if the number
        // follows in full.
        let distance = byte >> 4;
        let id = if distance == 0 {
            self.zigzag()?
        } else {
            i64::from(previous_id) + i64::from(distance)
        };
        let Ok(id) = i16::try_from(id) else {
            return invalid(format!("{id} is no number of a field"));
        };
        Ok(Some(ThriftField { id, wire_type: byte & 15 }))
    }

    /// Reads past the value of a field. `depth` is the number of structs, lists and maps that the
    /// field is in.
    ///
    /// Fails if the value is cut off, is of an unknown type, or nests too deep.
    pub fn skip_field(&mut self, field: ThriftField, depth: u32) -> ThriftResult<()> {
        match field.wire_type {
            // The type of a boolean field is its value.
            TRUE | FALSE => Ok(()),
            other => self.skip_value(other, depth),
        }
    }

    /// Reads past a value whose type has the code `wire_type`. `depth` is the number of structs,
    /// lists and maps that it is in.
    ///
    /// Fails if it is cut off, is of an unknown type, or is in more than [`MAX_DEPTH`] others.
    fn skip_value(&mut self, wire_type: u8, depth: u32) -> ThriftResult<()> {
        if depth > MAX_DEPTH {
            return invalid(format!("values nest more than {MAX_DEPTH} deep"));
        }
        match wire_type {
            // Outside of fields a boolean has a byte of its own.
            TRUE | FALSE | BYTE => self.skip_bytes(1),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.skip_bytes(8),
            UUID => self.skip_bytes(16),
            BINARY => {
                let length = self.length()?;
                self.skip_bytes(length)
            }
            LIST | SET => self.skip_list(depth),
            MAP => self.skip_map(depth),
            STRUCT => self.skip_struct(depth),
            unknown => invalid(format!("type {unknown} is unknown")),
        }
    }

    /// Reads past `count` bytes. Fails if there are fewer.
    fn skip_bytes(&mut self, count: usize) -> ThriftResult<()> {
        self.take(count).map(drop)
    }

    /// Reads past a list or a set: a byte with the number of items, if that is below 15, and their
    /// type; the number in full, if it isn't; and the items. Fails as [`Self::skip_value`].
    fn skip_list(&mut self, depth: u32) -> ThriftResult<()> {
        let start = self.byte()?;
        let item_type = start & 15;
        let short_count = start >> 4;
        let count = if short_count == 15 { self.length()? } else { short_count.into() };
        for _ in 0..count {
            self.skip_value(item_type, depth + 1)?;
        }
        Ok(())
    }

    /// Reads past a map: the number of entries; a byte with the types of keys and values, unless
    /// the map is empty; and a key and a value for each entry. Fails as [`Self::skip_value`].
    fn skip_map(&mut self, depth: u32) -> ThriftResult<()> {
        let count = self.length()?;
        if count == 0 {
            return Ok(());
        }
        let types = self.byte()?;
        let key_type = types >> 4;
        let value_type = types & 15;
        for _ in 0..count {
            self.skip_value(key_type, depth + 1)?;
            self.skip_value(value_type, depth + 1)?;
        }
        Ok(())
    }

    /// Reads past the fields of a struct and its end. Fails as [`Self::skip_value`].
    fn skip_struct(&mut self, depth: u32) -> ThriftResult<()> {
        let mut previous_id = 0;
        while let Some(field) = self.field(previous_id)? {
            previous_id = field.id;
            self.skip_field(field, depth + 1)?;
        }
        Ok(())
    }

    /// Reads how many bytes or items follow.
    ///
    /// Fails if there are more than bytes left: each item has at least one.
    fn length(&mut self) -> ThriftResult<usize> {
        let length = self.varint()?;
        if length > self.unread.len() as u64 {
            return Err(ThriftError::CutOff);
        }
        Ok(length as usize)
    }
}

/// A field number that is one more than that of the field before.
const NEXT_FIELD: u8 = 1 << 4;

/// Writes a field of type i32. Its number is one more than that of the field before; 1 in the
/// first.
pub fn write_i32_field(into: &mut List<u8>, value: i32) {
    into.push(NEXT_FIELD | I32);
    // 0, -1, 1, -2 … become 0, 1, 2, 3 ….
    let mut unwritten = (value << 1 ^ value >> 31) as u32;
    while unwritten >= u32::from(MORE_FOLLOW) {
        into.push(unwritten as u8 | MORE_FOLLOW);
        unwritten >>= VARINT_BITS;
    }
    into.push(unwritten as u8);
}

/// Writes a field that is a union whose member is the first one, an empty struct. The number of the
/// field is one more than that of the field before.
pub fn write_union_field(into: &mut List<u8>) {
    into.push(NEXT_FIELD | STRUCT);
    // The member is a field of the union, and has no fields itself.
    into.push(NEXT_FIELD | STRUCT);
    into.push(STOP);
    into.push(STOP);
}

/// Writes the end of a struct.
pub fn write_stop(into: &mut List<u8>) {
    into.push(STOP);
}
