//! Parts of a value, for an index that finds rows by what is in them: members of an array, windows of a text, words,
//! what a JSON document says.
//!
//! A row gives the index the hashes of its parts; a lookup has a [`Condition`] on such hashes. Both sides get them
//! from the functions here, so that they cannot differ. The hash of a part is XXH64 over its bytes with a seed for each
//! kind of part. So a part never meets one of another kind, nor a whole value, whose seed is 0. All are frozen, since
//! stored indexes depend on them.
//!
//! | part | seed | bytes |
//! |---|---:|---|
//! | a member of an array | 2 | the hash of the member as an element, little-endian |
//! | a window of a text | 3 | its number, little-endian: see [`Window`] and [`text`] |
//! | one with a wide character and others once more | 7 | the same |
//! | a word | 4 | the lexeme |
//! | a value in a JSON document | that of its path | a byte for its type, then its canonical bytes |
//! | a key of a JSON document, at its top | 6 | the key |
//!
//! The seed of the path `a.b` is XXH64 of `b` with the seed XXH64 of `a` with the seed 5. Arrays are not part of a
//! path: `{"a": [1]}` has the value 1 at `a`.
//!
//! | module | what it knows |
//! |---|---|
//! | `condition` | a condition on the hashes of a row's parts |
//! | `alternatives` | conditions with many alternatives, and which of these a row may match |
//! | `automaton` | what a text must have in which an automaton finds a match, for regular expressions |
//! | `text` | windows of a text, and of what it is compared with |

mod alternatives;
pub mod automaton;
mod condition;
pub mod text;

pub use alternatives::{Alternatives, RowTest};
pub use condition::{Condition, MAX_DEPTH};

use crate::canonical::Sink;
use crate::hash::{Stream, seeded};

const MEMBER: u64 = 2;
const WINDOW: u64 = 3;
const WORD: u64 = 4;
const ROOT: u64 = 5;
const KEY: u64 = 6;
const AGAIN: u64 = 7;

/// The hash of a member of an array, from its hash as an element.
#[inline]
pub fn member(element: u64) -> u64 {
    seeded(&element.to_le_bytes(), MEMBER)
}

/// A window of a folded text: one to four characters, in one number. The last is in the lowest bits. One below U+2000
/// has 13 bits, a wide one 21. Above 60 bits is which of them are wide, a bit for each, that of the last one lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(u64);

impl Window {
    const CHARACTERS: u32 = 60;
    const NARROW: u32 = 13;
    const WIDE: u32 = 21;

    /// The last of these characters, each of 32 bits and none 0, of which the last is the lowest.
    #[inline(always)]
    const fn of(characters: u128, count: u32) -> Window {
        let (mut bits, mut wide, mut at, mut back) = (0, 0, 0, 0);
        while back < count {
            let c = (characters >> (32 * back)) as u32;
            bits |= (c as u64) << at;
            let is_wide = c >= 1 << Window::NARROW;
            wide |= (is_wide as u64) << back;
            at += if is_wide { Window::WIDE } else { Window::NARROW };
            back += 1;
        }
        Window(bits | wide << Window::CHARACTERS)
    }

    /// Whether it is a single character, which is wide.
    const fn is_alone(self) -> bool {
        self.0 & ((1 << Window::CHARACTERS) - 1) < 1 << Window::WIDE
    }

    /// Whether it has two characters at most.
    const fn is_short(self) -> bool {
        self.0 & ((1 << Window::CHARACTERS) - 1) < 1 << (2 * Window::WIDE)
    }

    /// Its hashes: two for two characters, else one.
    #[inline]
    pub fn hashes(self) -> impl Iterator<Item = u64> {
        let bytes = self.0.to_le_bytes();
        let has_two = self.is_short() && !self.is_alone();
        [seeded(&bytes, WINDOW)].into_iter().chain(has_two.then(|| seeded(&bytes, AGAIN)))
    }
}

/// The hash of a lexeme.
pub fn word(lexeme: &[u8]) -> u64 {
    seeded(lexeme, WORD)
}

/// The hash of a key at the top of a JSON document, or of a string that `?` finds as one.
pub fn key(key: &[u8]) -> u64 {
    seeded(key, KEY)
}

/// Where a value is in a JSON document: the keys that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonPath(u64);

/// The type of a value in a JSON document that has no others in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// `null`
    Null = 0,
    /// `false`
    False = 1,
    /// `true`
    True = 2,
    /// A number, by its value.
    Number = 3,
    /// A string.
    String = 4,
}

impl JsonPath {
    /// The document itself.
    pub const ROOT: JsonPath = JsonPath(ROOT);

    /// The value of a key in an object at this path.
    pub fn key(self, key: &[u8]) -> JsonPath {
        JsonPath(seeded(key, self.0))
    }

    /// The hash of a value at this path, of which `write` writes the canonical bytes.
    pub fn leaf(self, leaf: Leaf, write: impl FnOnce(&mut Stream)) -> u64 {
        Stream::seeded(self.0, |stream| {
            stream.write(&[leaf as u8]);
            write(stream);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_frozen() {
        // By Python's xxhash: xxh64(bytes, seed).
        let hashes = [
            member(crate::hash::hash(b"abc")),
            word(b"abc"),
            key(b"abc"),
            JsonPath::ROOT.key(b"a").key(b"b").leaf(Leaf::String, |stream| stream.write(b"abc")),
            JsonPath::ROOT.leaf(Leaf::Null, |_| ()),
        ];
        let expected = [
            0x18E3_CBF5_E8E4_C818,
            0x4CAE_0D84_933B_C718,
            0x28D2_A0D4_8F7C_2643,
            0x5BF6_00D6_44B5_614C,
            0x72B1_2317_E8A8_B952,
        ];
        assert_eq!(hashes, expected);
        let of = |text: &str| {
            let characters = text.chars().fold(0, |all, c| all << 32 | u128::from(u32::from(c)));
            Window::of(characters, text.chars().count() as u32).hashes().collect::<Vec<u64>>()
        };
        assert_eq!(of("abcd"), [0xAD8D_4989_510B_FE34]);
        assert_eq!(of("漢字"), [0x31F7_8000_7A8B_DCB0, 0x17E3_53C4_1787_8A1E]);
        assert_eq!(of("漢"), [0x4DF5_A13F_B7BC_8026]);
        assert_eq!(of("漢a"), [0x8D30_AB01_2B3A_CED4, 0x7B5F_511D_36D6_827A]);
    }

    #[test]
    fn parts_of_different_kinds_have_different_hashes() {
        let whole = crate::hash::hash(b"abc");
        let window = Window::of(u128::from(u32::from('漢')) << 32 | 0x5B57, 2);
        let mut hashes = vec![whole, member(whole), word(b"abc"), key(b"abc")];
        hashes.extend(window.hashes());
        for (i, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(hash));
        }
    }
}
