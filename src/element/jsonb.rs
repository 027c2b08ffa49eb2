//! A jsonb as PostgreSQL stores it, and a numeric, as its numbers are. A jsonb may be nested as
//! deep as it is long, so it is walked without recursion.
//!
//! ```text
//! container   header u32 (count and what it is), entries u32 each, then their values
//! array       an entry per element; an array that stands for a scalar has just that
//! object      the entries of all keys, then those of all values
//! entry       type, and the length of its value or where that ends
//! ```

use crate::pg::call::{Error, SqlState, interrupt, raise};
use crate::pg::value::encoding;
use pg_bloom_core::canonical::{Sink, json, numeric};
use pg_bloom_core::memory;

/// Bits of a container's header.
const COUNT: u32 = 0x0FFF_FFFF;
const IS_SCALAR: u32 = 0x1000_0000;
const IS_OBJECT: u32 = 0x2000_0000;
/// Bits of an entry.
const LENGTH: u32 = 0x0FFF_FFFF;
const TYPE: u32 = 0x7000_0000;
const IS_END: u32 = 0x8000_0000;
/// Bytes of a header or an entry, and what numbers and containers are aligned to.
const WORD: usize = 4;

/// Writes the canonical bytes of a jsonb, given without its length; its strings are converted to
/// UTF-8 if `convert`.
pub fn write(jsonb: &[u8], convert: bool, into: &mut impl Sink) {
    let mut open = Vec::new();
    enter(jsonb, convert, &mut open, into);
    while let Some(level) = open.last_mut() {
        let Some((key, value)) = level.sorted.next().or_else(|| level.members.next()) else {
            into.write(level.closing);
            open.pop();
            continue;
        };
        if level.is_started {
            into.write(b",");
        }
        level.is_started = true;
        if let Some(key) = key {
            in_utf8(key, convert, |key| json::write_string(key, into));
            into.write(b":");
        }
        match value {
            JsonItem::Scalar(Scalar::Null) => into.write(b"null"),
            JsonItem::Scalar(Scalar::Bool(is_true)) => {
                into.write(if is_true { &b"true"[..] } else { b"false" })
            }
            JsonItem::Scalar(Scalar::Number(number)) => write_numeric(number, into),
            JsonItem::Scalar(Scalar::String(text)) => {
                in_utf8(text, convert, |text| json::write_string(text, into))
            }
            JsonItem::Container(container) => enter(container, convert, &mut open, into),
        }
    }
}

/// A value in a container that has no others in it.
pub enum Scalar<'a> {
    Null,
    Bool(bool),
    /// As PostgreSQL stores it.
    Number(&'a [u8]),
    String(&'a [u8]),
}

/// Calls `visit` with each value of a jsonb, given without the length before it, that has no others
/// in it, and with what `step` makes of the keys that lead there from `root`. An array is no step.
pub fn each_scalar<P: Copy>(
    jsonb: &[u8],
    root: P,
    step: impl Fn(P, &[u8]) -> P,
    mut visit: impl FnMut(P, Scalar<'_>),
) {
    let mut open = Vec::new();
    memory::push(&mut open, (root, Members::of(jsonb)));
    while let Some((path, members)) = open.last_mut() {
        interrupt::check_for_interrupts();
        let Some((key, value)) = members.next() else {
            open.pop();
            continue;
        };
        let path = key.map_or(*path, |key| step(*path, key));
        match value {
            JsonItem::Scalar(scalar) => visit(path, scalar),
            JsonItem::Container(container) => {
                memory::push(&mut open, (path, Members::of(container)))
            }
        }
    }
}

/// Calls `visit` with each string that `?` finds in a jsonb: a key of an object, one in an array,
/// or all there is.
pub fn each_key(jsonb: &[u8], mut visit: impl FnMut(&[u8])) {
    for member in Members::of(jsonb) {
        if let (Some(string), _) | (None, JsonItem::Scalar(Scalar::String(string))) = member {
            visit(string);
        }
    }
}

fn enter<'a>(container: &'a [u8], convert: bool, open: &mut Vec<Level<'a>>, into: &mut impl Sink) {
    let mut members = Members::of(container);
    let (opening, closing): (&[u8], &[u8]) = match &members.keys {
        Some(_) => (b"{", b"}"),
        None if word(container, 0) & IS_SCALAR != 0 => (b"", b""),
        None => (b"[", b"]"),
    };
    into.write(opening);
    let mut sorted = Vec::new();
    if let Some(mut keys) = members.keys.clone().filter(|_| convert)
        && !keys.all(|key| key.string().is_ascii())
    {
        memory::reserve(&mut sorted, keys.until);
        sorted.extend(members.by_ref());
        let order = |a, b| in_utf8(a, true, |a| in_utf8(b, true, |b| json::compare_keys(a, b)));
        sorted.sort_by(|(a, _), (b, _)| order(a.unwrap_or_default(), b.unwrap_or_default()));
    }
    memory::push(
        open,
        Level {
            closing,
            is_started: false,
            sorted: sorted.into_iter(),
            members,
        },
    );
}

/// A container, with some of its members written.
struct Level<'a> {
    closing: &'static [u8],
    is_started: bool,
    /// Members in the order of their keys in UTF-8, where that may be another one than stored.
    sorted: std::vec::IntoIter<(Option<&'a [u8]>, JsonItem<'a>)>,
    /// The others.
    members: Members<'a>,
}

/// The members of a container in the order in which they are stored: values, each with its key in
/// an object.
struct Members<'a> {
    keys: Option<Entries<'a>>,
    values: Entries<'a>,
}

impl<'a> Members<'a> {
    fn of(container: &'a [u8]) -> Members<'a> {
        let header = word(container, 0);
        let count = (header & COUNT) as usize;
        if header & IS_OBJECT == 0 {
            return Members {
                keys: None,
                values: Entries { container, entries: count, next: 0, until: count, at: 0 },
            };
        }
        let keys = Entries { container, entries: 2 * count, next: 0, until: count, at: 0 };
        let mut passed = keys.clone();
        passed.by_ref().for_each(drop);
        Members {
            keys: Some(keys),
            values: Entries { until: 2 * count, ..passed },
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Option<&'a [u8]>, JsonItem<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.keys.as_mut().and_then(Iterator::next).map(JsonItem::string);
        Some((key, self.values.next()?))
    }
}

/// What `work` makes of a string in UTF-8.
fn in_utf8<T>(string: &[u8], convert: bool, work: impl FnOnce(&[u8]) -> T) -> T {
    if convert { encoding::with_utf8(string, work) } else { work(string) }
}

/// A value in a container, or a key.
enum JsonItem<'a> {
    Scalar(Scalar<'a>),
    Container(&'a [u8]),
}

impl<'a> JsonItem<'a> {
    fn string(self) -> &'a [u8] {
        let JsonItem::Scalar(Scalar::String(bytes)) = self else {
            damaged()
        };
        bytes
    }
}

/// The entries of a container from one on, with their values.
#[derive(Clone)]
struct Entries<'a> {
    container: &'a [u8],
    /// How many entries there are in all.
    entries: usize,
    next: usize,
    until: usize,
    /// Where the next value starts, after the entries.
    at: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = JsonItem<'a>;

    fn next(&mut self) -> Option<JsonItem<'a>> {
        if self.next == self.until {
            return None;
        }
        let entry = word(self.container, WORD * (1 + self.next));
        self.next += 1;
        let length = (entry & LENGTH) as usize;
        let (from, to) = (self.at, if entry & IS_END != 0 { length } else { self.at + length });
        self.at = to;
        let values = WORD * (1 + self.entries);
        let bytes = |from: usize| {
            self.container
                .get(values + from..values + to)
                .unwrap_or_else(|| damaged())
        };
        let aligned = || bytes(from.next_multiple_of(WORD));
        Some(JsonItem::Scalar(match (entry & TYPE) >> 28 {
            0 => Scalar::String(bytes(from)),
            // Its length always has four bytes.
            1 => Scalar::Number(aligned().get(WORD..).unwrap_or_else(|| damaged())),
            is @ (2 | 3) => Scalar::Bool(is == 3),
            4 => Scalar::Null,
            5 => return Some(JsonItem::Container(aligned())),
            _ => damaged(),
        }))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<WORD>());
    u32::from_ne_bytes(*word.unwrap_or_else(|| damaged()))
}

#[cold]
fn damaged() -> ! {
    raise(
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, "invalid jsonb")
            .detail("The value is damaged."),
    )
}

/// What the two highest bits of the first word say.
const FORM: u16 = 0xC000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;
/// In the short form: the sign, and a weight of seven bits with a sign.
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_WEIGHT: u16 = 0x7F;
/// What a special value is.
const SPECIAL_FORM: u16 = 0xF000;
const POSITIVE_INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Writes the canonical bytes of a numeric, given without the length before it.
pub fn write_numeric(numeric: &[u8], into: &mut impl Sink) {
    let words = numeric.as_chunks::<2>().0;
    let mut words = words.iter().map(|&word| u16::from_ne_bytes(word));
    let header = words.next().unwrap_or(SPECIAL);
    match header & FORM {
        SPECIAL => into.write(match header & SPECIAL_FORM {
            POSITIVE_INFINITY => b"Infinity",
            NEGATIVE_INFINITY => b"-Infinity",
            _ => b"NaN",
        }),
        SHORT => {
            // Seven bits moved to the top of a byte and back keep their sign.
            let weight = (((header & SHORT_WEIGHT) as u8) << 1) as i8 >> 1;
            numeric::write_groups(
                sign_of(header & SHORT_NEGATIVE != 0),
                i32::from(weight),
                words,
                into,
            );
        }
        sign => {
            let weight = words.next().unwrap_or(0) as i16;
            numeric::write_groups(sign_of(sign == NEGATIVE), i32::from(weight), words, into);
        }
    }
}

/// Returns the sign of a number.
fn sign_of(is_negative: bool) -> numeric::Sign {
    if is_negative { numeric::Sign::Negative } else { numeric::Sign::Positive }
}
