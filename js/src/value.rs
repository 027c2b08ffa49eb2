//! Values of the caller, as it writes them into the input, one after the other. All numbers are
//! little-endian:
//!
//! ```text
//! 0                                            null
//! 1  length u32, UTF-8                         a text
//! 2  length u32, bytes                         bytes
//! 3  i64                                       an integer
//! 4  f64                                       a number that may be an integer or not
//! 5  u8                                        a boolean, 0 or 1
//! 6  i64                                       an instant: microseconds since 1970-01-01 in UTC
//! 7  length u32, decimal digits                an integer that has more than 64 bits
//! 8  dimensions u32, length u32 of each,
//!    the members in order of storage           an array; its members are of the other forms
//! ```
//!
//! Two more forms are for values that no element can be, in a filter of any kind. A filter of
//! elements of another type refuses them as it does other values of their type:
//!
//! ```text
//! 12  length u32, UTF-8                        a text with U+FFFD for each lone surrogate
//! 13  length u32, UTF-8                        an instant; the text says why none can be an element
//! ```
//!
//! Values of one type that follow each other can be written together, as a *run*:
//!
//! ```text
//!  9  3 unused bytes, count u32, length u32 of each, UTF-8 of all    texts
//! 10  3 unused bytes, count u32, i64 of each                         integers
//! 11  3 unused bytes, count u32, f64 of each                         numbers
//! ```
//!
//! The unused bytes put numbers of 64 bits to multiples of 8, if the run begins at one.

use crate::failure::{Failure, Outcome};
use pg_bloom_core::memory::List;

/// A value of the caller.
pub enum Value<'a> {
    Null,
    Text(&'a str),
    Bytes(&'a [u8]),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    /// Microseconds since 1970-01-01 in UTC.
    Instant(i64),
    /// The decimal digits of an integer that has more than 64 bits.
    LargeInteger(&'a str),
    /// A text that had lone surrogates, so that it isn't Unicode.
    UnpairedText(&'a str),
    /// Why an instant can't be an element.
    NoInstant(&'a str),
    Array {
        lengths: List<i32>,
        members: List<Value<'a>>,
    },
}

/// A value of one of the forms that elements mostly have.
#[derive(Clone, Copy)]
pub enum Frequent<'a> {
    Text(&'a str),
    Integer(i64),
    Number(f64),
}

impl Value<'_> {
    /// Returns whether no element can be this value, or an array with it.
    pub fn is_impossible(&self) -> bool {
        match self {
            Value::UnpairedText(_) | Value::NoInstant(_) => true,
            Value::Array { members, .. } => members.iter().any(Value::is_impossible),
            _ => false,
        }
    }
}

impl<'a> From<Frequent<'a>> for Value<'a> {
    fn from(value: Frequent<'a>) -> Value<'a> {
        match value {
            Frequent::Text(text) => Value::Text(text),
            Frequent::Integer(integer) => Value::Integer(integer),
            Frequent::Number(number) => Value::Number(number),
        }
    }
}

/// Parses one value from the start of `bytes`, if it is a text, an integer or a number, and moves
/// `bytes` behind it. Returns `None`, and leaves `bytes` as they are, for others and damaged ones.
#[inline(always)]
pub fn take_frequent<'a>(bytes: &mut &'a [u8]) -> Option<Frequent<'a>> {
    let mut rest = *bytes;
    let [form] = take_array(&mut rest)?;
    let value = match form {
        1 => Frequent::Text(take_text(&mut rest)?),
        3 => Frequent::Integer(i64::from_le_bytes(take_array(&mut rest)?)),
        4 => Frequent::Number(f64::from_le_bytes(take_array(&mut rest)?)),
        _ => return None,
    };
    *bytes = rest;
    Some(value)
}

/// Values of one type that were written together.
pub enum Run<'a> {
    Texts(Texts<'a>),
    /// Integers of 64 bits.
    Integers(&'a [[u8; 8]]),
    /// Floats of 64 bits.
    Numbers(&'a [[u8; 8]]),
}

/// Texts whose bytes stand one behind the other, in their order.
pub struct Texts<'a> {
    /// The length of each, in bytes: a number of 32 bits.
    lengths: &'a [[u8; 4]],
    joined: &'a str,
}

impl<'a> Iterator for Texts<'a> {
    type Item = Outcome<&'a str>;

    /// Returns the next text. Fails if it would end within a character.
    #[inline(always)]
    fn next(&mut self) -> Option<Outcome<&'a str>> {
        let (length, lengths) = self.lengths.split_first()?;
        self.lengths = lengths;
        let length = u32::from_le_bytes(*length) as usize;
        let Some((text, rest)) = self.joined.split_at_checked(length) else {
            return Some(Err(damaged()));
        };
        self.joined = rest;
        Some(Ok(text))
    }
}

/// Parses a run from the start of `bytes`, and moves `bytes` behind it. Returns `None`, and leaves
/// `bytes` as they are, if a single value begins there. Fails if the bytes end early, or if texts are
/// not UTF-8.
pub fn take_run<'a>(bytes: &mut &'a [u8]) -> Outcome<Option<Run<'a>>> {
    match bytes.first() {
        Some(form @ 9..=11) => read_run(*form, bytes).map(Some).ok_or_else(damaged),
        _ => Ok(None),
    }
}

/// Parses a run of a form, and moves `bytes` behind it; `None` if they end early, or if texts are not
/// UTF-8.
fn read_run<'a>(form: u8, bytes: &mut &'a [u8]) -> Option<Run<'a>> {
    let _form_and_unused: [u8; 4] = take_array(bytes)?;
    let count = u32::from_le_bytes(take_array(bytes)?) as usize;
    if form == 9 {
        let (lengths, _) = take(bytes, count.checked_mul(4)?)?.as_chunks();
        let all_lengths = lengths.iter().map(|length| u64::from(u32::from_le_bytes(*length)));
        let joined = take(bytes, usize::try_from(all_lengths.sum::<u64>()).ok()?)?;
        return Some(Run::Texts(Texts { lengths, joined: std::str::from_utf8(joined).ok()? }));
    }
    let (numbers, _) = take(bytes, count.checked_mul(8)?)?.as_chunks();
    Some(if form == 10 { Run::Integers(numbers) } else { Run::Numbers(numbers) })
}

/// Parses one value from the start of `bytes`, in the form that this file's page describes, and
/// moves `bytes` behind it. Fails if they begin with no value.
pub fn read<'a>(bytes: &mut &'a [u8]) -> Outcome<Value<'a>> {
    read_value(bytes).ok_or_else(damaged)
}

/// Returns the failure for bytes that are no value.
#[cold]
fn damaged() -> Failure {
    Failure::range("the bytes of a value are damaged")
}

/// Parses one value from the start of `bytes`, and moves `bytes` behind it; `None` if they begin
/// with no value. The first byte says which form the value has. An array (form 8) has the number of
/// its dimensions, the length of each, and then its members, which are no arrays.
fn read_value<'a>(bytes: &mut &'a [u8]) -> Option<Value<'a>> {
    let [form] = take_array(bytes)?;
    if form != 8 {
        return read_scalar(form, bytes);
    }

    let dimensions = u32::from_le_bytes(take_array(bytes)?);
    let mut lengths = List::new();
    // An array without members may have no dimensions.
    let mut num_members = u64::from(dimensions > 0);
    for _ in 0..dimensions {
        let length = u32::from_le_bytes(take_array(bytes)?);
        num_members = num_members.checked_mul(length.into())?;
        lengths.push(i32::try_from(length).ok()?);
    }

    let mut members = List::new();
    for _ in 0..num_members {
        let [form] = take_array(bytes)?;
        members.push(read_scalar(form, bytes)?);
    }
    Some(Value::Array { lengths, members })
}

/// Parses the rest of a value that is not an array, whose first byte, `form`, was read; `None` if
/// there is no such form or the bytes end early.
fn read_scalar<'a>(form: u8, bytes: &mut &'a [u8]) -> Option<Value<'a>> {
    let value = match form {
        0 => Value::Null,
        1 => Value::Text(take_text(bytes)?),
        2 => Value::Bytes(take_bytes(bytes)?),
        3 => Value::Integer(i64::from_le_bytes(take_array(bytes)?)),
        4 => Value::Number(f64::from_le_bytes(take_array(bytes)?)),
        5 => Value::Boolean(take_array(bytes)? == [1]),
        6 => Value::Instant(i64::from_le_bytes(take_array(bytes)?)),
        7 => Value::LargeInteger(take_text(bytes)?),
        12 => Value::UnpairedText(take_text(bytes)?),
        13 => Value::NoInstant(take_text(bytes)?),
        _ => return None,
    };
    Some(value)
}

#[inline]
fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*array)
}

/// Takes bytes that follow their length.
#[inline]
fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take_array(bytes)?) as usize;
    take(bytes, length)
}

/// Takes so many bytes; `None` if there are fewer.
#[inline]
fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[inline]
fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_bytes(bytes)?).ok()
}
