//! Regular expressions with characters whose arcs PostgreSQL doesn't name.
//!
//! An automaton that PostgreSQL exports names the characters of an arc only below U+0800: those of Han, kana and Hangul
//! are above. So each of these in the expression gets another character that stands for it, a letter of Thaana, which
//! has no case, and the automaton is that of the expression with these.
//!
//! That is the same automaton with the characters renamed, wherever an expression can only compare characters. It isn't
//! where it can order or classify them: where it has a range with such a character, a class, a collating element, an
//! escape such as `\w` or `\y` (`\d` and `\s` never match a letter), an option at its start (`(?x)` ignores blanks), or
//! a letter of Thaana. There nothing stands for anything.

use super::fold;
use crate::memory;
use std::str;

/// The first character that isn't named.
const UNNAMED: u32 = 0x800;
/// Letters of Thaana.
const FIRST: u32 = 0x780;
const COUNT: usize = 38;

/// An expression in which other characters stand for some.
pub struct StandIns {
    /// The expression, in UTF-8.
    pub pattern: Vec<u8>,
    /// The characters, of which the letter of Thaana at the same place stands for each.
    of: Vec<u32>,
}

impl StandIns {
    /// Replaces the characters of an expression. `None` if none has to be replaced, or if that might change more than
    /// names.
    pub fn new(pattern: &[u8], ignore_case: bool) -> Option<StandIns> {
        let text = str::from_utf8(pattern).ok()?;
        let only_compares = !["***", "(?", "[:", "[.", "[="].iter().any(|part| text.contains(part));
        let stands_in = |c: char| (FIRST..FIRST + 0x40).contains(&u32::from(c));
        if text.is_ascii() || !only_compares || text.contains(stands_in) {
            return None;
        }
        let mut stand_ins = StandIns { pattern: memory::list(pattern.len()), of: Vec::new() };
        let (mut before, mut has_classes) = (None, false);
        for c in text.chars() {
            has_classes |= before == Some('\\') && "dDsS".contains(c);
            let is_refused = match before {
                Some('\\') => (c.is_ascii_alphanumeric() && !"dDsS".contains(c)) || !c.is_ascii(),
                Some('-') => !c.is_ascii(),
                Some(before) => c == '-' && !before.is_ascii(),
                None => false,
            };
            if is_refused || (u32::from(c) >= UNNAMED && ignore_case && !fold::is_without_case(c.into())) {
                return None;
            }
            stand_ins.push(c)?;
            // An escaped backslash escapes nothing.
            before = if (before, c) == (Some('\\'), '\\') { None } else { Some(c) };
        }
        let is_letter = |&c: &u32| char::from_u32(c).is_some_and(|c| c.is_alphabetic() && !c.is_numeric());
        let stays_outside = !has_classes || stand_ins.of.iter().all(is_letter);
        (!stand_ins.of.is_empty() && stays_outside).then_some(stand_ins)
    }

    /// Adds a character of the expression; `None` if there are no more letters.
    fn push(&mut self, c: char) -> Option<()> {
        let mut written = u32::from(c);
        if written >= UNNAMED {
            let known = self.of.iter().position(|&of| of == written);
            let place = known.unwrap_or(self.of.len());
            if known.is_none() {
                if place == COUNT {
                    return None;
                }
                memory::push(&mut self.of, written);
            }
            written = FIRST + place as u32;
        }
        let mut bytes = [0; 4];
        let written = char::from_u32(written)?.encode_utf8(&mut bytes);
        memory::reserve(&mut self.pattern, written.len());
        self.pattern.extend_from_slice(written.as_bytes());
        Some(())
    }

    /// The character that another one stands for; itself if it stands for none.
    pub fn original(&self, c: u32) -> u32 {
        let place = c.checked_sub(FIRST).map(|place| place as usize);
        place.and_then(|place| self.of.get(place)).copied().unwrap_or(c)
    }
}
