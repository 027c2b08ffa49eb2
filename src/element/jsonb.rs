//! Reads a jsonb as PostgreSQL stores it, and a numeric, which is how a jsonb stores numbers. A
//! jsonb may be nested as deep as it is long, so it is walked without recursion.
//!
//! ```text
//! container   header u32 (count and what it is), entries u32 each, then their values
//! array       an entry per element; an array that stands for a scalar has just that
//! object      the entries of all keys, then those of all values
//! entry       type, and the length of its value or where that ends
//! ```
//!
//! For instance `{"a": 1, "b": true}`, whose values begin at byte 20 of the container:
//!
//! ```text
//! header  0x2000_0002   an object with two members
//! entry   0x8000_0001   a string that ends at byte 1: the key "a"
//! entry   0x0000_0001   a string of length 1: the key "b"
//! entry   0x1000_000A   a number of length 10: 2 bytes of padding, its length of 4 bytes, its digits
//! entry   0x3000_0000   true, which has no bytes
//! ```

use crate::pg::call::{Error, SqlState, interrupt, raise};
use crate::pg::value::encoding;
use pg_bloom_core::canonical::{Sink, json, numeric};
use pg_bloom_core::memory::List;

/// Bits of a container's header.
const COUNT: u32 = 0x0FFF_FFFF;
const IS_SCALAR: u32 = 0x1000_0000;
const IS_OBJECT: u32 = 0x2000_0000;
/// Bits of an entry.
const LENGTH: u32 = 0x0FFF_FFFF;
const TYPE: u32 = 0x7000_0000;
const IS_END: u32 = 0x8000_0000;
/// Types of an entry.
const STRING: u32 = 0x0000_0000;
const NUMBER: u32 = 0x1000_0000;
const FALSE: u32 = 0x2000_0000;
const TRUE: u32 = 0x3000_0000;
const NULL: u32 = 0x4000_0000;
const CONTAINER: u32 = 0x5000_0000;
/// Bytes of a header, of an entry, and of the length before a number. Numbers and containers are
/// aligned to them.
const WORD: usize = 4;

/// Writes the canonical bytes of a jsonb, which are what is hashed of it: its JSON without blanks,
/// with the keys of each object in one order, and with numbers in one form.
///
/// `jsonb` has the bytes of the value without its length. If `convert` is true, its strings are
/// converted from the database's encoding to UTF-8. Raises XX001 for a damaged value.
pub fn write(jsonb: &[u8], convert: bool, into: &mut impl Sink) {
    let mut open = List::new();
    open.push(OpenContainer::start(jsonb, convert, into));
    while let Some(innermost) = open.last_mut() {
        let Some(JsonMember { key, value }) = innermost.next_member() else {
            into.write(innermost.closing);
            open.pop();
            continue;
        };
        if innermost.is_started {
            into.write(b",");
        }
        innermost.is_started = true;

        if let Some(key) = key {
            write_string(key, convert, into);
            into.write(b":");
        }
        match value {
            JsonItem::Scalar(Scalar::Null) => into.write(b"null"),
            JsonItem::Scalar(Scalar::Bool(true)) => into.write(b"true"),
            JsonItem::Scalar(Scalar::Bool(false)) => into.write(b"false"),
            JsonItem::Scalar(Scalar::Number(number)) => write_numeric(number, into),
            JsonItem::Scalar(Scalar::String(text)) => write_string(text, convert, into),
            JsonItem::Container(container) => {
                open.push(OpenContainer::start(container, convert, into));
            }
        }
    }
}

/// Writes a string as JSON has it, quoted and escaped.
fn write_string(string: &[u8], convert: bool, into: &mut impl Sink) {
    if convert {
        encoding::with_utf8(string, |utf8| json::write_string(utf8, into));
    } else {
        json::write_string(string, into);
    }
}

/// A value of a jsonb that is neither an object nor an array.
pub enum Scalar<'a> {
    Null,
    Bool(bool),
    /// A numeric as PostgreSQL stores it, without its length.
    Number(&'a [u8]),
    /// A string in the database's encoding.
    String(&'a [u8]),
}

/// Calls `visit` with each scalar in a jsonb, a value that is neither an object nor an array, and
/// with its path. The path begins as `root`, and `step` adds a key of an object to a path; arrays
/// add nothing. For `{"a": [1, {"b": 2}]}` these are 1 with `step(root, "a")` and 2 with
/// `step(step(root, "a"), "b")`.
///
/// `jsonb` has the bytes of the value without its length. Raises XX001 for a damaged value.
pub fn each_scalar<Path: Copy>(
    jsonb: &[u8],
    root: Path,
    step: impl Fn(Path, &[u8]) -> Path,
    mut visit: impl FnMut(Path, Scalar<'_>),
) {
    let mut open = List::new();
    open.push((root, Members::new(jsonb)));
    while let Some((path_of_container, members)) = open.last_mut() {
        interrupt::check_for_interrupts();
        let Some(JsonMember { key, value }) = members.next() else {
            open.pop();
            continue;
        };
        let path = match key {
            Some(key) => step(*path_of_container, key),
            None => *path_of_container,
        };
        match value {
            JsonItem::Scalar(scalar) => visit(path, scalar),
            JsonItem::Container(container) => open.push((path, Members::new(container))),
        }
    }
}

/// Calls `visit` with each string that the operator `?` finds in a jsonb: the keys if the jsonb is
/// an object, the strings in it if it is an array, and the string itself if it is one. The strings
/// are in the database's encoding.
///
/// `jsonb` has the bytes of the value without its length. Raises XX001 for a damaged value.
pub fn each_key(jsonb: &[u8], mut visit: impl FnMut(&[u8])) {
    for member in Members::new(jsonb) {
        match member {
            JsonMember { key: Some(key), .. } => visit(key),
            JsonMember { key: None, value: JsonItem::Scalar(Scalar::String(string)) } => {
                visit(string)
            }
            _ => {}
        }
    }
}

/// An object or an array of which the beginning has been written.
struct OpenContainer<'a> {
    /// The bracket that ends the container.
    closing: &'static [u8],
    /// Whether a member has been written, so that a comma precedes the next one.
    is_started: bool,
    /// All members in the order of their keys in UTF-8, if PostgreSQL may store them in another
    /// one; otherwise empty.
    sorted: std::vec::IntoIter<JsonMember<'a>>,
    /// All members in the order in which they are stored; none if they are in `sorted`.
    members: Members<'a>,
}

impl<'a> OpenContainer<'a> {
    /// Writes the bracket that begins an object or an array of a jsonb, and returns the container
    /// with all of its members yet to be written. `convert` says whether strings are converted to
    /// UTF-8; then keys that aren't ASCII are sorted again here, in memory for all members.
    fn start(container: &'a [u8], convert: bool, into: &mut impl Sink) -> OpenContainer<'a> {
        let mut members = Members::new(container);
        let (opening, closing): (&[u8], &[u8]) = match &members.keys {
            Some(_) => (b"{", b"}"),
            // A jsonb that is a scalar is stored as an array with this one element.
            None if word(container, 0) & IS_SCALAR != 0 => (b"", b""),
            None => (b"[", b"]"),
        };
        into.write(opening);

        // Keys are stored in the order of their bytes in the database's encoding. In UTF-8 these
        // may have another order, except for ASCII.
        let mut sorted = List::new();
        if convert
            && let Some(mut keys) = members.keys.clone()
            && !keys.all(|key| key.string().is_ascii())
        {
            sorted.reserve_exact(keys.until);
            sorted.extend(members.by_ref());
            sorted.sort_by(JsonMember::compare_in_utf8);
        }
        OpenContainer {
            closing,
            is_started: false,
            sorted: sorted.into_iter(),
            members,
        }
    }

    /// Returns the member to be written next; `None` if all have been.
    fn next_member(&mut self) -> Option<JsonMember<'a>> {
        self.sorted.next().or_else(|| self.members.next())
    }
}

/// A value of an object with its key, or of an array without one.
struct JsonMember<'a> {
    key: Option<&'a [u8]>,
    value: JsonItem<'a>,
}

impl JsonMember<'_> {
    /// Compares the keys of two members, once these are converted to UTF-8.
    fn compare_in_utf8(&self, other: &JsonMember<'_>) -> std::cmp::Ordering {
        let own_key = self.key.unwrap_or_default();
        let other_key = other.key.unwrap_or_default();
        encoding::with_utf8(own_key, |own_key| {
            encoding::with_utf8(other_key, |other_key| json::compare_keys(own_key, other_key))
        })
    }
}

/// The members of a container in the order in which they are stored.
struct Members<'a> {
    /// The keys of an object; `None` for an array.
    keys: Option<Entries<'a>>,
    values: Entries<'a>,
}

impl<'a> Members<'a> {
    /// Returns an iterator over the members of an object or an array of a jsonb, in the order in
    /// which they are stored. `container` has the bytes from the container's header on. The values
    /// of an object are stored behind all of its keys, so this reads the lengths of the keys first.
    /// Raises XX001 for a damaged value.
    fn new(container: &'a [u8]) -> Members<'a> {
        let header = word(container, 0);
        let count = (header & COUNT) as usize;
        if header & IS_OBJECT == 0 {
            let values = Entries {
                container,
                entries: count,
                next: 0,
                until: count,
                next_start: 0,
            };
            return Members { keys: None, values };
        }

        let keys = Entries {
            container,
            entries: 2 * count,
            next: 0,
            until: count,
            next_start: 0,
        };
        // A second iterator runs over all keys, to find where the values begin.
        let mut after_keys = keys.clone();
        after_keys.by_ref().for_each(drop);
        let values = Entries { until: 2 * count, ..after_keys };
        Members { keys: Some(keys), values }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = JsonMember<'a>;

    fn next(&mut self) -> Option<JsonMember<'a>> {
        let key = self.keys.as_mut().and_then(Iterator::next).map(JsonItem::string);
        let value = self.values.next()?;
        Some(JsonMember { key, value })
    }
}

/// A value in a container, or a key.
enum JsonItem<'a> {
    Scalar(Scalar<'a>),
    Container(&'a [u8]),
}

impl<'a> JsonItem<'a> {
    /// Returns the string that this is. Raises XX001 if it is something else, as no key is.
    fn string(self) -> &'a [u8] {
        let JsonItem::Scalar(Scalar::String(bytes)) = self else {
            damaged()
        };
        bytes
    }
}

/// Some entries of a container that follow each other, with their values.
#[derive(Clone)]
struct Entries<'a> {
    container: &'a [u8],
    /// The number of all entries of the container.
    entries: usize,
    /// The number of the next entry to be read.
    next: usize,
    /// The number of the entry at which these end.
    until: usize,
    /// The place of the next entry's value: bytes from the end of the container's entries.
    next_start: usize,
}

impl<'a> Entries<'a> {
    /// Returns bytes of a value, from and to these numbers of bytes behind the container's entries.
    /// Raises XX001 if the container is shorter.
    fn value(&self, start: usize, end: usize) -> &'a [u8] {
        let values_start = WORD * (1 + self.entries);
        let value = self.container.get(values_start + start..values_start + end);
        value.unwrap_or_else(|| damaged())
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = JsonItem<'a>;

    /// Returns the next key or value of the container; `None` after the last one. Each has an
    /// *entry*, a number with its type and where its bytes end. Raises XX001 if these are not in
    /// the container.
    fn next(&mut self) -> Option<JsonItem<'a>> {
        if self.next == self.until {
            return None;
        }
        let entry = word(self.container, WORD * (1 + self.next));
        self.next += 1;

        // Some entries say where the value ends, others how long it is.
        let start = self.next_start;
        let length_or_end = (entry & LENGTH) as usize;
        let is_end = entry & IS_END != 0;
        let end = if is_end { length_or_end } else { start + length_or_end };
        self.next_start = end;

        let aligned_start = start.next_multiple_of(WORD);
        let scalar = match entry & TYPE {
            STRING => Scalar::String(self.value(start, end)),
            NUMBER => {
                let with_length = self.value(aligned_start, end);
                Scalar::Number(with_length.get(WORD..).unwrap_or_else(|| damaged()))
            }
            FALSE => Scalar::Bool(false),
            TRUE => Scalar::Bool(true),
            NULL => Scalar::Null,
            CONTAINER => return Some(JsonItem::Container(self.value(aligned_start, end))),
            _ => damaged(),
        };
        Some(JsonItem::Scalar(scalar))
    }
}

/// Returns the header or entry at byte `at` of a container. Raises XX001 if it is shorter.
fn word(container: &[u8], at: usize) -> u32 {
    let word = container.get(at..).and_then(|rest| rest.first_chunk::<WORD>());
    u32::from_ne_bytes(*word.unwrap_or_else(|| damaged()))
}

/// Raises the error for a value whose bytes contradict each other.
#[cold]
fn damaged() -> ! {
    raise(
        Error::new(SqlState::ERRCODE_DATA_CORRUPTED, "invalid jsonb")
            .detail("The value is damaged."),
    )
}

/// The two highest bits of a numeric's first word, and the forms that they stand for. The long
/// forms have a second word for the weight: the power of 10,000 by which the first group of digits
/// counts.
const FORM: u16 = 0xC000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;
/// In the short form: the sign, and a weight of seven bits with a sign.
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_WEIGHT: u16 = 0x7F;
/// In the special form: which value it is. Others than these are NaN.
const SPECIAL_FORM: u16 = 0xF000;
const POSITIVE_INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Writes the canonical bytes of a numeric, which are what is hashed of it: its decimal digits
/// without trailing zeros, so that equal numbers of different scales have the same bytes.
///
/// `numeric` has the bytes of the value without its length. Bytes that are missing count as zeros,
/// and without any it is NaN.
pub fn write_numeric(numeric: &[u8], into: &mut impl Sink) {
    let words = numeric.as_chunks::<2>().0;
    let mut words = words.iter().map(|&word| u16::from_ne_bytes(word));
    let header = words.next().unwrap_or(SPECIAL);
    let is_negative;
    let weight;
    match header & FORM {
        SPECIAL => {
            return into.write(match header & SPECIAL_FORM {
                POSITIVE_INFINITY => b"Infinity",
                NEGATIVE_INFINITY => b"-Infinity",
                _ => b"NaN",
            });
        }
        SHORT => {
            is_negative = header & SHORT_NEGATIVE != 0;
            // The weight is a number of seven bits, the highest of which is its sign. Seven bits
            // moved to the top of a byte and back keep their sign.
            let extended = (((header & SHORT_WEIGHT) as u8) << 1) as i8 >> 1;
            weight = i32::from(extended);
        }
        long_form => {
            is_negative = long_form == NEGATIVE;
            weight = i32::from(words.next().unwrap_or(0) as i16);
        }
    }
    // The other words are groups of four decimal digits.
    numeric::write_groups(sign_of(is_negative), weight, words, into);
}

/// Returns the sign of a number.
fn sign_of(is_negative: bool) -> numeric::Sign {
    if is_negative { numeric::Sign::Negative } else { numeric::Sign::Positive }
}
