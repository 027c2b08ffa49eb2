//! Keys of a value, for an index that finds rows by what is in them: members of an array, windows
//! of a text, words, leaves of a JSON document.
//!
//! A row gives the index the hashes of its keys; a lookup has a [`Condition`] on such hashes. Both
//! sides get them from the functions here, so that they cannot differ. The hash of a key is XXH64
//! over its bytes with a seed for each kind of key. So a key never meets one of another kind, nor a
//! whole value, whose seed is 0. All are frozen, since stored indexes depend on them: "Keys of
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
use crate::memory::List;

// Seeds for the hashes of each kind of key.
const MEMBER: u64 = 2;
const WINDOW: u64 = 3;
const WORD: u64 = 4;
/// The seed of the path without keys; that of a path is the hash of its last key with the seed of
/// the path before it.
const ROOT: u64 = 5;
const KEY: u64 = 6;
/// The seed of the second hash of a window of two characters.
const AGAIN: u64 = 7;

/// Returns the hash of a member of an array, from its hash as an element.
#[inline]
pub fn member(element: u64) -> u64 {
    hash_with_seed(&element.to_le_bytes(), MEMBER)
}

/// A window of a folded text: one to four characters, in one number.
///
/// The last character is in the lowest bits. A character below U+2000 takes 13 bits, another one,
/// called wide, 21. The four bits from bit 60 on say which characters are wide, that of the last
/// character lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(u64);

impl Window {
    /// The bits that all characters take together at most: four narrow ones take 52, two wide ones
    /// 42, a wide and two narrow ones 47. Bits that say which characters are wide follow.
    const CHARACTER_BITS: u32 = 60;
    const CHARACTER_MASK: u64 = (1 << Window::CHARACTER_BITS) - 1;
    const NARROW_BITS: u32 = 13;
    const WIDE_BITS: u32 = 21;

    /// Returns the window that consists of the last `count` characters, one to four, of a text.
    /// `characters` has these characters, 32 bits for each, the last one in the lowest bits. None
    /// may be 0.
    #[inline(always)]
    fn of_last(characters: u128, count: u32) -> Window {
        let mut character_bits = 0;
        let mut wide_bits = 0;
        let mut shift = 0;
        // From the last character to the first: the last one gets the lowest bits.
        for back in 0..count {
            let c = (characters >> (32 * back)) as u32;
            let is_wide = c >= 1 << Window::NARROW_BITS;
            character_bits |= u64::from(c) << shift;
            wide_bits |= u64::from(is_wide) << back;
            shift += if is_wide { Window::WIDE_BITS } else { Window::NARROW_BITS };
        }
        Window(character_bits | wide_bits << Window::CHARACTER_BITS)
    }

    /// Returns whether the window is a wide character by itself, which has 21 bits at most. All
    /// other windows have more: one character at least in front of a wide one or of a narrow one
    /// behind a wide one.
    const fn is_single_character(self) -> bool {
        self.0 & Window::CHARACTER_MASK < 1 << Window::WIDE_BITS
    }

    /// Returns whether the window has a second hash: each window of two characters, and most
    /// windows of three, since their characters fit into the bits of two wide ones, too.
    const fn has_second_hash(self) -> bool {
        let characters = self.0 & Window::CHARACTER_MASK;
        characters < 1 << (2 * Window::WIDE_BITS) && !self.is_single_character()
    }

    /// Returns the hashes of the window: one, or two for a window of a few characters. A pattern of
    /// two characters has hardly more windows, so a second hash makes its lookup more precise.
    #[inline]
    pub fn hashes(self) -> impl Iterator<Item = u64> {
        let bytes = self.0.to_le_bytes();
        let first = hash_with_seed(&bytes, WINDOW);
        let second = self.has_second_hash().then(|| hash_with_seed(&bytes, AGAIN));
        [first].into_iter().chain(second)
    }
}

/// Returns the hash of a word of a text search vector or query.
pub fn word(lexeme: &[u8]) -> u64 {
    hash_with_seed(lexeme, WORD)
}

/// Returns the hash of a key at the top of a JSON document, or of a string that `?` finds as one.
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

    /// Returns the path to the value of a key in an object that is at this path.
    pub fn key(self, key: &[u8]) -> JsonPath {
        JsonPath(hash_with_seed(key, self.0))
    }

    /// Returns the hash of a value at this path. `write` writes its canonical bytes; nothing for a
    /// value that its type says all about, such as true.
    pub fn leaf(self, leaf: Leaf, write: impl FnOnce(&mut HashSink)) -> u64 {
        HashSink::hash_with_seed(self.0, |stream| {
            stream.write(&[leaf as u8]);
            write(stream);
        })
    }
}

/// How deep conditions may be nested. A deeper part counts as unknown, which is never wrong: it
/// only rules out fewer rows.
pub const MAX_DEPTH: usize = 64;

/// Which hashes a row's keys must have if the row matches a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Any row may match: keys can't tell. Only a whole condition is ever unknown, none within
    /// another.
    Unknown,
    /// The row must have this hash.
    Has(u64),
    /// All of these; never empty.
    All(List<Condition>),
    /// One of these. If there is none, no row matches.
    Any(List<Condition>),
}

impl Condition {
    pub const NONE: Condition = Condition::Any(List::new());

    /// Returns the condition that all of these hold. Unknown ones are left out; if there are no
    /// others, the result is unknown. If one can't hold, the result can't either.
    ///
    /// Conditions that are ANDs themselves are taken apart, so that no AND is within an AND.
    pub fn all(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut all = List::new();
        for condition in conditions {
            match condition {
                Condition::Unknown => {}
                Condition::Any(any) if any.is_empty() => return Condition::NONE,
                Condition::All(nested) => {
                    for condition in nested {
                        all.push(condition);
                    }
                }
                other => all.push(other),
            }
        }
        match all.len() {
            0 => Condition::Unknown,
            1 => all.remove(0),
            _ => Condition::All(all),
        }
    }

    /// Returns the condition that at least one of these holds. It is unknown if one of them is. If
    /// there are none, it is [`Condition::NONE`], which never holds.
    ///
    /// Conditions that are ORs themselves are taken apart, so that no OR is within an OR.
    pub fn any(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut any = List::new();
        for condition in conditions {
            match condition {
                Condition::Unknown => return Condition::Unknown,
                Condition::Any(mut nested) => {
                    // `a OR b OR c …` comes as one OR for each word, within each other. The shorter
                    // list is added to the longer one, so that all of them take linear time.
                    if nested.len() > any.len() {
                        std::mem::swap(&mut any, &mut nested);
                    }
                    for condition in nested {
                        any.push(condition);
                    }
                }
                other => any.push(other),
            }
        }
        if any.len() == 1 { any.remove(0) } else { Condition::Any(any) }
    }

    /// Returns the condition that a row has all of these hashes, or the lowest `most` of them if
    /// there are more.
    ///
    /// Hashes are looked up in ascending order, which is a random order of the keys: neighbouring
    /// windows of a text often occur together, so after one the next one would rule out little.
    pub fn all_of(mut hashes: List<u64>, most: usize) -> Condition {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.truncate(most);
        Condition::all(hashes.into_iter().map(Condition::Has))
    }

    /// Returns whether any row may match, so that looking the condition up would tell nothing.
    pub fn is_unknown(&self) -> bool {
        *self == Condition::Unknown
    }

    /// Returns whether the condition holds for a row that has the hashes for which `has` is true.
    /// An unknown condition holds for any row.
    pub fn holds(&self, has: &impl Fn(u64) -> bool) -> bool {
        match self {
            Condition::Unknown => true,
            Condition::Has(hash) => has(*hash),
            Condition::All(conditions) => conditions.iter().all(|condition| condition.holds(has)),
            Condition::Any(conditions) => conditions.iter().any(|condition| condition.holds(has)),
        }
    }

    /// Returns the same condition on other hashes: each is replaced by the one that `replace`
    /// returns for it. `replace` is called in the order in which the hashes stand in the condition.
    #[must_use]
    pub fn map(&self, replace: &mut impl FnMut(u64) -> u64) -> Condition {
        match self {
            Condition::Unknown => Condition::Unknown,
            Condition::Has(hash) => Condition::Has(replace(*hash)),
            Condition::All(conditions) => Condition::All(map_each(conditions, replace)),
            Condition::Any(conditions) => Condition::Any(map_each(conditions, replace)),
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

    /// Calls `visit` with each hash of the condition, as often as the condition has it.
    fn visit_hashes(&self, visit: &mut impl FnMut(u64)) {
        match self {
            Condition::Unknown => {}
            Condition::Has(hash) => visit(*hash),
            Condition::All(conditions) | Condition::Any(conditions) => {
                for condition in conditions {
                    condition.visit_hashes(visit);
                }
            }
        }
    }

    /// Calls `visit` with a few hashes, such that every row for which the condition holds has at
    /// least one of them. So a row that has none can be dismissed without testing the condition.
    ///
    /// Of an AND these are the hashes of its first part only; of an OR those of all parts. Example:
    /// of `(a OR b) AND c` they are a and b. `visit` is not called at all if the condition is
    /// unknown, so that it may hold for any row, or if it never holds.
    fn visit_necessary_hashes(&self, visit: &mut impl FnMut(u64)) {
        match self {
            Condition::Unknown => {}
            Condition::Has(hash) => visit(*hash),
            Condition::All(conditions) => {
                if let Some(first) = conditions.first() {
                    first.visit_necessary_hashes(visit);
                }
            }
            Condition::Any(conditions) => {
                for condition in conditions {
                    condition.visit_necessary_hashes(visit);
                }
            }
        }
    }

    /// Returns the slots for which the condition may hold, of those that `all_slots` has. Slots are
    /// up to 128 parts of a table, each with a Bloom filter of its keys, and bit i of a number is
    /// set if slot i belongs to a set of slots.
    ///
    /// `slots_with_hash` returns the slots that may have a hash, which reads a page of the index.
    /// It isn't called for hashes that can't change the result.
    ///
    /// Fails if `slots_with_hash` fails.
    pub fn slots<E>(
        &self,
        all_slots: u128,
        slots_with_hash: &mut impl FnMut(u64) -> Result<u128, E>,
    ) -> Result<u128, E> {
        if all_slots == 0 {
            return Ok(0);
        }
        match self {
            Condition::Unknown => Ok(all_slots),
            Condition::Has(hash) => Ok(all_slots & slots_with_hash(*hash)?),
            Condition::All(conditions) => {
                let mut possible = all_slots;
                for condition in conditions {
                    possible = condition.slots(possible, slots_with_hash)?;
                }
                Ok(possible)
            }
            Condition::Any(conditions) => {
                let mut found = 0;
                for condition in conditions {
                    let not_found_yet = all_slots & !found;
                    found |= condition.slots(not_found_yet, slots_with_hash)?;
                }
                Ok(found)
            }
        }
    }
}

/// Returns these conditions on the hashes that `replace` returns for theirs.
fn map_each(conditions: &[Condition], replace: &mut impl FnMut(u64) -> u64) -> List<Condition> {
    let mut mapped = List::with_capacity(conditions.len());
    for condition in conditions {
        mapped.push(condition.map(replace));
    }
    mapped
}

/// Returns the index of a number in a hash table with open addressing; if the table lacks the
/// number, the index of the free place at which it must be inserted.
///
/// A free place has the value 0, so `number` must not be 0. The table must have 2^n places, of
/// which at least one is free. The search begins at `first_place` modulo 2^n, where the number
/// belongs, and goes on to the next place as long as another number is there.
#[inline(always)]
fn place_of(table: &[u64], number: u64, first_place: u64) -> usize {
    let last = table.len() - 1;
    let mut place = first_place as usize & last;
    while table[place] != 0 && table[place] != number {
        place = (place + 1) & last;
    }
    place
}

#[cfg(test)]
mod tests;
