//! Values as elements. What a value stands for depends on the kind of the filter: `'2026-02-28'` is
//! a text in a filter of texts, and a day in one of dates.

use crate::failure::{Failure, Outcome};
use crate::text::{self, Unread};
use crate::value::{Frequent, Value};
use pg_bloom_core::memory::List;
use pg_bloom_core::{Array, Element, Kind, Layout, Numeric, Tag};

/// Integers up to this magnitude are exact in a float of 64 bits: 2^53 - 1.
const GREATEST_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
/// Microseconds from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;
/// What the names of kinds of arrays begin with.
const ARRAY_PREFIX: &str = "array of ";
/// How much of a text or a number messages show.
const MOST_BYTES_SHOWN: usize = 40;

/// Returns the tag of the kind of elements with this name, such as `integer` or `date`, if values
/// of the caller can be its elements. Arrays aren't among these kinds. Fails for other names.
pub fn kind_by_name(name: &str) -> Outcome<Tag> {
    let tag = (0..=u8::MAX)
        .filter_map(Tag::from_code)
        .find(|tag| tag.name() == name);
    let is_of_values = |tag: &Tag| {
        let is_general = !tag.is_parquet() && !tag.has_name();
        is_general && !matches!(tag, Tag::None | Tag::PgLsn | Tag::Xid8 | Tag::Jsonb)
    };
    tag.filter(is_of_values)
        .ok_or_else(|| Failure::range(format!("unknown kind of elements \"{name}\"")))
}

/// Returns the name of the kind of an array's members, given the name of the array's kind; `None` if
/// the kind is not that of an array.
pub fn kind_of_members(name: &str) -> Option<&str> {
    name.strip_prefix(ARRAY_PREFIX).or_else(|| name.strip_suffix("[]"))
}

/// Returns the hash of the element that a value stands for in a filter of this kind, if it is one of
/// those that are asked for most: a text in a filter of texts, an integer in one of integers, a float
/// in one of floats. Returns `None` for all others: [`element`] then returns the element, in a longer
/// time.
#[inline(always)]
pub fn frequent_hash(value: Frequent<'_>, kind: Kind<'_>) -> Option<u64> {
    match (value, kind.tag) {
        (Frequent::Text(text), Tag::Text | Tag::ParquetByteArray) => {
            Some(Element::from(text).hash())
        }
        (Frequent::Integer(integer), Tag::Integer | Tag::ParquetInt64) => {
            Some(Element::from(integer).hash())
        }
        (Frequent::Number(number), Tag::Integer | Tag::ParquetInt64) if is_safe(number) => {
            Some(Element::from(number as i64).hash())
        }
        (Frequent::Number(number), Tag::Float | Tag::ParquetDouble) => {
            Some(Element::from(number).hash())
        }
        _ => None,
    }
}

/// Returns whether a number is an integer that a float of 64 bits tells from its neighbours.
#[inline(always)]
fn is_safe(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= GREATEST_SAFE_INTEGER
}

/// Returns the element that a value stands for in a filter of this kind; `None` for null. A value
/// that can't be of the kind is returned as an element of its own kind, which the filter refuses.
///
/// Fails if the value is out of the range of the kind's type, or if a text isn't written as the
/// kind requires. If the filter has no kind yet, fails for a number, which may be an integer or a
/// float.
pub fn element<'a>(value: &Value<'a>, kind: Kind<'_>) -> Outcome<Option<Element<'a>>> {
    let Value::Array { lengths, members } = value else {
        return scalar(value, kind);
    };

    let member_kind = kind_for_members(kind);
    let mut elements = List::with_capacity(members.len());
    for member in members {
        elements.push(scalar(member, member_kind)?);
    }
    let array = Array::new(lengths.clone().into(), elements.into())?;
    // An array of NULLs is of the kind that the filter's arrays have.
    let tells_kind = kind.tag == Tag::Array && !member_kind.is_none();
    let array = if tells_kind { array.or_of_kind(member_kind) } else { array };
    Ok(Some(array.into()))
}

/// Returns the kind by which the members of an array become elements, given the filter's kind.
fn kind_for_members(kind: Kind<'_>) -> Kind<'static> {
    if kind.is_none() {
        return Kind::NONE;
    }
    if kind.tag != Tag::Array {
        // The filter refuses any array, whatever its members are. With this kind they are of their
        // own kinds, since no text or number is converted to it.
        return Kind::unnamed(Tag::Boolean);
    }
    // Members of a kind without values, such as inet, are refused as elements of another kind.
    let tag = kind_of_members(kind.name).and_then(|name| kind_by_name(name).ok());
    tag.map_or(Kind::NONE, Kind::unnamed)
}

/// Returns the element that a value, which is not an array, stands for in a filter of this kind;
/// `None` for null. A value of another kind is returned as an element of its own kind, which the
/// filter refuses. Fails if the value is out of range, if a text isn't written as the kind
/// requires, and for an array.
fn scalar<'a>(value: &Value<'a>, kind: Kind<'_>) -> Outcome<Option<Element<'a>>> {
    let element = match *value {
        Value::Null => return Ok(None),
        Value::Text(text) => by_text(text, kind)?,
        Value::Bytes(bytes) => bytes.into(),
        Value::Integer(integer) if kind.tag == Tag::Numeric => numeric(&integer.to_string(), kind)?,
        Value::Integer(integer) => integer.into(),
        Value::LargeInteger(digits) => by_large_integer(digits, kind)?,
        Value::Number(number) => by_number(number, kind)?,
        Value::Boolean(boolean) => boolean.into(),
        Value::Instant(microseconds) => {
            let since_2000 = microseconds.checked_sub(EPOCH_MICROSECONDS);
            match since_2000.filter(|instant| text::is_timestamp(*instant)) {
                Some(instant) => Element::Timestamptz(instant),
                None => impossible_instant(kind, out_of_range(kind))?,
            }
        }
        Value::NoInstant(reason) => impossible_instant(kind, Failure::range(reason))?,
        Value::UnpairedText(text) => match kind.tag {
            Tag::None | Tag::Text | Tag::ParquetByteArray => {
                let message = "a string with a lone surrogate is not Unicode";
                return Err(Failure::range(message));
            }
            _ => by_text(text, kind)?,
        },
        // The form of arrays has no arrays within.
        Value::Array { .. } => return Err(Failure::range("an array is a member of an array")),
    };
    Ok(Some(element))
}

/// Fails with `failure` for an instant that no element can be, if the elements of this kind are
/// instants, or if the filter has no kind yet. Otherwise returns an instant, which the filter refuses
/// as an element of another kind.
fn impossible_instant<'a>(kind: Kind<'_>, failure: Failure) -> Outcome<Element<'a>> {
    match kind.tag {
        Tag::None | Tag::Timestamptz | Tag::ParquetTimestamptz => Err(failure),
        _ => Ok(Element::Timestamptz(0)),
    }
}

/// Returns the element that a number of 64 bits (a float) stands for in a filter of this kind: an
/// integer if the filter has integers and the number is whole. Fails if the filter has no kind yet,
/// and for a whole number that is too large to be exact.
fn by_number<'a>(number: f64, kind: Kind<'_>) -> Outcome<Element<'a>> {
    match kind.tag {
        Tag::None => Err(Failure::kind(
            "a number may be an integer or a float: name the kind, \"integer\" or \"float\"",
        )),
        Tag::Integer | Tag::ParquetInt32 | Tag::ParquetInt64 if number.fract() == 0.0 => {
            if number.abs() > GREATEST_SAFE_INTEGER {
                return Err(Failure::range(format!(
                    "number {number} is not a safe integer: give a bigint or a string"
                )));
            }
            Ok((number as i64).into())
        }
        _ => Ok(number.into()),
    }
}

/// Returns the element that an integer of more than 64 bits, given by its decimal digits, stands
/// for in a filter of this kind. Fails if the filter has integers or no kind yet: no element is so
/// large.
fn by_large_integer<'a>(digits: &str, kind: Kind<'_>) -> Outcome<Element<'a>> {
    match kind.tag {
        Tag::Numeric => numeric(digits, kind),
        Tag::None | Tag::Integer | Tag::ParquetInt32 | Tag::ParquetInt64 => {
            let shown = shown(digits);
            Err(Failure::range(format!("{shown} is out of range for an integer of 64 bits")))
        }
        // The filter has no integers and refuses any, so the value is irrelevant.
        _ => Ok(Element::Integer(0)),
    }
}

/// Returns the element that a text stands for in a filter of this kind: the text is parsed as an
/// integer, a numeric, a UUID, a date, a time and so on if the filter has such elements. Otherwise
/// the element is the text itself. Fails if the text isn't written as the kind requires, or is out
/// of its range.
fn by_text<'a>(text: &'a str, kind: Kind<'_>) -> Outcome<Element<'a>> {
    let read = match kind.tag {
        Tag::Integer | Tag::ParquetInt32 | Tag::ParquetInt64 => {
            text::integer(text).map(Element::Integer)
        }
        Tag::Numeric => return numeric(text, kind),
        Tag::Uuid | Tag::ParquetFixed16 => text::uuid(text).map(Element::Uuid),
        Tag::Date | Tag::ParquetDate => text::date(text).map(Element::Date),
        Tag::Timestamp | Tag::ParquetTimestamp => text::timestamp(text).map(Element::Timestamp),
        Tag::Timestamptz | Tag::ParquetTimestamptz => {
            text::timestamptz(text).map(Element::Timestamptz)
        }
        Tag::Time => text::time(text).map(Element::Time),
        Tag::Timetz => text::timetz(text),
        Tag::Interval => text::interval(text),
        _ => Ok(text.into()),
    };
    read.map_err(|unread| unreadable(text, kind, unread))
}

/// Returns the element of kind numeric that a text stands for, a decimal number. Fails if the text
/// isn't a number, or has more digits than PostgreSQL's type.
fn numeric<'a>(text: &str, kind: Kind<'_>) -> Outcome<Element<'a>> {
    if let Some(numeric) = Numeric::parse(text) {
        return Ok(numeric.into());
    }
    // A number that is too long for the type is still a number.
    let unread = if text::is_decimal(text) { Unread::Range } else { Unread::Syntax };
    Err(unreadable(text, kind, unread))
}

/// Returns a text, or its beginning and an ellipsis, for a message.
#[cold]
fn shown(text: &str) -> String {
    let beginning = &text[..text.floor_char_boundary(MOST_BYTES_SHOWN)];
    let ellipsis = if beginning.len() < text.len() { "…" } else { "" };
    format!("{beginning}{ellipsis}")
}

/// Returns the failure for a text that can't be parsed as an element of a kind. `unread` says why:
/// it is written in another way, which the message explains with an example, or out of range.
#[cold]
fn unreadable(text: &str, kind: Kind<'_>, unread: Unread) -> Failure {
    let shown = shown(text);
    match unread {
        Unread::Range => Failure::range(format!("\"{shown}\" is out of range for kind {kind}")),
        Unread::Syntax => {
            let mismatch = Element::from(text).hash_in(Kind::unnamed(kind.tag), Layout::Blocked);
            let message = mismatch.err().map(|error| error.to_string()).unwrap_or_default();
            let form = written_form(kind.tag);
            Failure::kind(format!("{message} \"{shown}\" is not written like {form}."))
        }
    }
}

/// Returns an example of how elements of a kind are written as text, for a message.
fn written_form(tag: Tag) -> &'static str {
    match tag {
        Tag::Integer | Tag::ParquetInt32 | Tag::ParquetInt64 => "42",
        Tag::Numeric => "12.5",
        Tag::Uuid | Tag::ParquetFixed16 => "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        Tag::Date | Tag::ParquetDate => "2026-02-28",
        Tag::Timestamp | Tag::ParquetTimestamp => "2026-02-28T12:34:56.789012",
        Tag::Timestamptz | Tag::ParquetTimestamptz => "2026-02-28T12:34:56.789012Z",
        Tag::Time => "12:34:56.789012",
        Tag::Timetz => "12:34:56.789012+02:00",
        Tag::Interval => "P1Y2M3DT4H5M6.789012S",
        _ => "a text",
    }
}

/// Returns the failure for a value that elements of a kind can't be.
#[cold]
fn out_of_range(kind: Kind<'_>) -> Failure {
    if kind.is_none() {
        return Failure::range("element is out of range");
    }
    Failure::range(format!("element is out of range for a bloom filter of kind {kind}"))
}
