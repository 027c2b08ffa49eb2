//! Parts of a value, for an index that finds rows by what is in them: members of an array, windows
//! of a text, words, what a JSON document says.
//!
//! A row gives the index the hashes of its parts; a lookup has a [`Condition`] on such hashes. Both
//! sides get them from the functions here, so that they cannot differ. The hash of a part is XXH64
//! over its bytes with a seed for each kind of part. So a part never meets one of another kind, nor
//! a whole value, whose seed is 0. All are frozen, since stored indexes depend on them: "Keys of
//! values with several" in core/src/index/pages.md lists the seeds and the bytes.
//!
//! | module | what it knows |
//! |---|---|
//! | `alternatives` | conditions with many alternatives, and which of these a row may match |
//! | `regex` | the condition of a regular expression, from its automaton |
//! | `text` | windows of a text, and of what it is compared with |

pub mod alternatives;
pub mod regex;
pub mod text;

use crate::canonical::Sink;
use crate::hash::{HashSink, hash_with_seed};
use crate::memory;

const MEMBER: u64 = 2;
const WINDOW: u64 = 3;
const WORD: u64 = 4;
/// The seed of the path without keys; that of a path is the hash of its last key with the seed of
/// the path before it.
const ROOT: u64 = 5;
const KEY: u64 = 6;
/// A window of two characters once more.
const AGAIN: u64 = 7;

/// The hash of a member of an array, from its hash as an element.
#[inline]
pub fn member(element: u64) -> u64 {
    hash_with_seed(&element.to_le_bytes(), MEMBER)
}

/// A window of a folded text: one to four characters, in one number. The last is in the lowest
/// bits. One below U+2000 has 13 bits, a wide one 21. Above 60 bits is which of them are wide, a
/// bit for each, that of the last one lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(u64);

impl Window {
    const CHARACTERS: u32 = 60;
    const NARROW: u32 = 13;
    const WIDE: u32 = 21;

    /// The last of these characters, each of 32 bits and none 0, of which the last is the lowest.
    #[inline(always)]
    fn of(characters: u128, count: u32) -> Window {
        let (mut bits, mut wide, mut at) = (0, 0, 0);
        for back in 0..count {
            let c = (characters >> (32 * back)) as u32;
            let is_wide = c >= 1 << Window::NARROW;
            bits |= u64::from(c) << at;
            wide |= u64::from(is_wide) << back;
            at += if is_wide { Window::WIDE } else { Window::NARROW };
        }
        Window(bits | wide << Window::CHARACTERS)
    }

    /// Whether it has at most so many characters, one or two.
    const fn has_at_most(self, count: u32) -> bool {
        self.0 & ((1 << Window::CHARACTERS) - 1) < 1 << (count * Window::WIDE)
    }

    /// Its hashes: two for two characters, else one.
    #[inline]
    pub fn hashes(self) -> impl Iterator<Item = u64> {
        let bytes = self.0.to_le_bytes();
        let has_two = self.has_at_most(2) && !self.has_at_most(1);
        [hash_with_seed(&bytes, WINDOW)]
            .into_iter()
            .chain(has_two.then(|| hash_with_seed(&bytes, AGAIN)))
    }
}

pub fn word(lexeme: &[u8]) -> u64 {
    hash_with_seed(lexeme, WORD)
}

/// The hash of a key at the top of a JSON document, or of a string that `?` finds as one.
pub fn key(key: &[u8]) -> u64 {
    hash_with_seed(key, KEY)
}

/// Where a value is in a JSON document: the keys that lead to it. Arrays are not part of a path:
/// `{"a": [1]}` has the value 1 at `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonPath(u64);

/// The type of a value in a JSON document that has no others in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    Null = 0,
    False = 1,
    True = 2,
    Number = 3,
    String = 4,
}

impl JsonPath {
    pub const ROOT: JsonPath = JsonPath(ROOT);

    /// The value of a key in an object at this path.
    pub fn key(self, key: &[u8]) -> JsonPath {
        JsonPath(hash_with_seed(key, self.0))
    }

    /// The hash of a value at this path, of which `write` writes the canonical bytes.
    pub fn leaf(self, leaf: Leaf, write: impl FnOnce(&mut HashSink)) -> u64 {
        HashSink::hash_with_seed(self.0, |stream| {
            stream.write(&[leaf as u8]);
            write(stream);
        })
    }
}

/// How deep conditions may be nested: what is deeper counts as unknown, which is right for any
/// condition.
pub const MAX_DEPTH: usize = 64;

/// What the hashes of a row's parts must be, if the row can match. Where an index can't tell, it is
/// unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Any row may match. Only a whole condition is ever unknown, none within another.
    Unknown,
    /// The row must have this hash.
    Has(u64),
    /// All of these; never empty.
    All(Vec<Condition>),
    /// One of these. If there is none, no row matches.
    Any(Vec<Condition>),
}

impl Condition {
    pub const NONE: Condition = Condition::Any(Vec::new());

    /// All of these conditions: what is unknown among them is left out.
    pub fn all(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut all = Vec::new();
        for condition in conditions {
            match condition {
                Condition::Unknown => {}
                Condition::Any(any) if any.is_empty() => return Condition::NONE,
                Condition::All(more) => more
                    .into_iter()
                    .for_each(|condition| memory::push(&mut all, condition)),
                other => memory::push(&mut all, other),
            }
        }
        match all.len() {
            0 => Condition::Unknown,
            1 => all.remove(0),
            _ => Condition::All(all),
        }
    }

    /// One of these conditions: unknown if one of them is.
    pub fn any(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut any = Vec::new();
        for condition in conditions {
            match condition {
                Condition::Unknown => return Condition::Unknown,
                Condition::Any(mut more) => {
                    // Of many ORs in each other, the few are added to the many.
                    if more.len() > any.len() {
                        std::mem::swap(&mut any, &mut more);
                    }
                    more.into_iter()
                        .for_each(|condition| memory::push(&mut any, condition));
                }
                other => memory::push(&mut any, other),
            }
        }
        if any.len() == 1 { any.remove(0) } else { Condition::Any(any) }
    }

    /// All of these hashes. They are looked for in an order of their own, so that neighbouring
    /// windows, which often come together, don't follow each other; and beyond `most` of them the
    /// rest is left out.
    pub fn all_of(mut hashes: Vec<u64>, most: usize) -> Condition {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.truncate(most);
        Condition::all(hashes.into_iter().map(Condition::Has))
    }

    /// Whether any row may match.
    pub fn is_unknown(&self) -> bool {
        *self == Condition::Unknown
    }

    /// Whether it holds for a row that has the hashes for which `has` is true.
    pub fn holds(&self, has: &impl Fn(u64) -> bool) -> bool {
        match self {
            Condition::Unknown => true,
            Condition::Has(hash) => has(*hash),
            Condition::All(conditions) => conditions.iter().all(|condition| condition.holds(has)),
            Condition::Any(conditions) => conditions.iter().any(|condition| condition.holds(has)),
        }
    }

    /// The same condition on what `of` makes of the hashes.
    #[must_use]
    pub fn map(&self, of: &mut impl FnMut(u64) -> u64) -> Condition {
        let mut each = |conditions: &[Condition]| {
            memory::collect(conditions.iter().map(|condition| condition.map(of)))
        };
        match self {
            Condition::Unknown => Condition::Unknown,
            Condition::Has(hash) => Condition::Has(of(*hash)),
            Condition::All(conditions) => Condition::All(each(conditions)),
            Condition::Any(conditions) => Condition::Any(each(conditions)),
        }
    }

    /// Returns the hash that [`Condition::slots`] asks for first; `None` if it asks for none.
    pub fn first_hash(&self) -> Option<u64> {
        match self {
            Condition::Unknown => None,
            Condition::Has(hash) => Some(*hash),
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.first()?.first_hash()
            }
        }
    }

    /// Calls `visit` with some hashes, of which a row must have one if the condition holds.
    pub(super) fn watched(&self, visit: &mut impl FnMut(u64)) {
        match self {
            Condition::Unknown => {}
            Condition::Has(hash) => visit(*hash),
            Condition::All(conditions) => conditions
                .iter()
                .take(1)
                .for_each(|condition| condition.watched(visit)),
            Condition::Any(conditions) => {
                conditions.iter().for_each(|condition| condition.watched(visit))
            }
        }
    }

    /// Returns those slots of `all` for which the condition may hold; slot i is bit i. `having` returns
    /// the slots that may have a hash. It is not called for a hash that can't change the answer.
    ///
    /// Fails if `having` fails.
    pub fn slots<E>(
        &self,
        all: u128,
        having: &mut impl FnMut(u64) -> Result<u128, E>,
    ) -> Result<u128, E> {
        match self {
            _ if all == 0 => Ok(0),
            Condition::Unknown => Ok(all),
            Condition::Has(hash) => Ok(all & having(*hash)?),
            Condition::All(conditions) => {
                conditions.iter().try_fold(all, |left, one| one.slots(left, having))
            }
            Condition::Any(conditions) => conditions
                .iter()
                .try_fold(0, |found, one| Ok(found | one.slots(all & !found, having)?)),
        }
    }
}

/// The place of a number in a table, of 2^n places and one at least that is 0: the one that `from`
/// says, or one after it. If the table lacks the number, a place that is 0.
#[inline(always)]
fn place_of(places: &[u64], number: u64, from: u64) -> usize {
    let last = places.len() - 1;
    let mut place = from as usize & last;
    while places[place] != 0 && places[place] != number {
        place = (place + 1) & last;
    }
    place
}

#[cfg(test)]
mod tests;
