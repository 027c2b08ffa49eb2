//! Letters that stand for characters of a regular expression whose transitions PostgreSQL doesn't
//! name.
//!
//! An automaton that PostgreSQL exports names the characters of a transition only below U+0800.
//! Han, kana and Hangul are above. So each such character of the expression is replaced by a letter
//! of Thaana, which has no case. The automaton of the replaced expression is the same, with these
//! characters renamed; the caller renames them back.
//!
//! ```text
//! expression   漢字+(か|漢)é
//! replaced     T₁T₂+(T₃|T₁)é    T₁ is U+0780 and stands for 漢, T₂ is U+0781 (字), T₃ U+0782 (か)
//! ```
//!
//! The automaton is the same wherever the expression only compares characters. An expression is
//! refused that may order or classify them, or already has a letter of Thaana:
//!
//! - a range that begins or ends with a character beyond ASCII, as in `[一-龥]`;
//! - a class, a collating element or an equivalence class: `[:alpha:]`, `[.ch.]`, `[=e=]`;
//! - an escape such as `\w` or `\y`. `\d` and `\s` never match a letter, so they do no harm if only
//!   letters are replaced;
//! - an option at its start, such as `(?x)`, which ignores blanks, or `***=`.

use super::text::fold;
use crate::memory;
use std::ops::Range;

/// The first character that PostgreSQL doesn't name.
const FIRST_UNNAMED: u32 = 0x800;
/// The block of Thaana in Unicode.
const THAANA: Range<u32> = 0x780..0x7C0;
/// How many characters at the start of that block are letters.
const NUM_LETTERS: usize = 38;
/// Escapes that match all letters or none of them: digits, blanks, and what is neither.
const ESCAPES_OF_CLASSES: &str = "dDsS";

/// A regular expression in which letters of Thaana stand for other characters.
pub struct StandIns {
    /// The expression with the letters, in UTF-8.
    pub pattern: Vec<u8>,
    /// The character that each letter stands for, in the order of the letters.
    originals: Vec<u32>,
}

impl StandIns {
    /// Replaces the characters of a regular expression that PostgreSQL leaves unnamed in automatons
    /// (those from U+0800 on) by letters of Thaana.
    ///
    /// Returns `None` if there are no such characters, if there are more of them than letters, or
    /// if the replaced expression might match differently: where it has letters of Thaana already,
    /// or may order or classify characters instead of only comparing them.
    pub fn new(pattern: &[u8], ignore_case: bool) -> Option<StandIns> {
        let expression = str::from_utf8(pattern).ok()?;
        if expression.is_ascii() || classifies(expression) || has_thaana(expression) {
            return None;
        }

        let mut stand_ins = StandIns {
            pattern: memory::with_capacity(pattern.len()),
            originals: Vec::new(),
        };
        let mut has_class = false;
        let mut previous = None;
        for c in expression.chars() {
            if !is_only_compared(previous, c) {
                return None;
            }
            // Letters of Thaana have no case, so they can't stand for a character that has one.
            if ignore_case && is_unnamed(c) && !fold::is_without_case(c.into()) {
                return None;
            }
            has_class |= previous == Some('\\') && ESCAPES_OF_CLASSES.contains(c);
            stand_ins.push(c)?;

            // The second of two backslashes escapes nothing.
            let is_escaped_backslash = previous == Some('\\') && c == '\\';
            previous = if is_escaped_backslash { None } else { Some(c) };
        }

        if stand_ins.originals.is_empty() {
            return None;
        }
        // A class such as \d treats a letter of Thaana as it treats other letters, but not as it
        // treats, for example, a digit.
        if has_class && !stand_ins.originals.iter().all(|&c| is_letter(c)) {
            return None;
        }
        Some(stand_ins)
    }

    /// Appends a character of the original expression to the pattern, or the letter that stands for
    /// it. Returns `None` if there are no more letters.
    fn push(&mut self, c: char) -> Option<()> {
        let written = if is_unnamed(c) { self.letter_for(c)? } else { c };
        // There is room: a letter has two bytes, and each character that it stands for has more.
        let mut buffer = [0; 4];
        let bytes = written.encode_utf8(&mut buffer).as_bytes();
        self.pattern.extend_from_slice(bytes);
        Some(())
    }

    /// Returns the letter that stands for a character: the same one each time. Returns `None` if a
    /// new letter is needed and there are no more.
    fn letter_for(&mut self, c: char) -> Option<char> {
        let original = u32::from(c);
        let known_place = self.originals.iter().position(|&known| known == original);
        let place = match known_place {
            Some(place) => place,
            None if self.originals.len() == NUM_LETTERS => return None,
            None => {
                self.originals.push(original);
                self.originals.len() - 1
            }
        };
        char::from_u32(THAANA.start + place as u32)
    }

    /// Returns the character that a letter stands for, or `c` itself if it stands for none.
    pub fn original(&self, c: u32) -> u32 {
        let Some(place) = c.checked_sub(THAANA.start) else {
            return c;
        };
        self.originals.get(place as usize).copied().unwrap_or(c)
    }
}

/// Returns whether PostgreSQL leaves this character unnamed in an automaton.
fn is_unnamed(c: char) -> bool {
    u32::from(c) >= FIRST_UNNAMED
}

/// Returns whether a regular expression may have options, or a class, a collating element or an
/// equivalence class in brackets.
fn classifies(expression: &str) -> bool {
    let signs = ["***", "(?", "[:", "[.", "[="];
    signs.iter().any(|sign| expression.contains(sign))
}

fn has_thaana(expression: &str) -> bool {
    expression.contains(|c: char| THAANA.contains(&u32::from(c)))
}

/// Returns whether a regular expression only compares the character `c`, given the one before it.
///
/// It may do more if both are an escape such as `\w`, or may be part of a range with an end beyond
/// ASCII. If `previous` is a backslash, it must be one that escapes `c`.
fn is_only_compared(previous: Option<char>, c: char) -> bool {
    match previous {
        Some('\\') if c.is_ascii_alphanumeric() => ESCAPES_OF_CLASSES.contains(c),
        Some('\\') => c.is_ascii(),
        // Within brackets, `c` is the upper end of a range.
        Some('-') => c.is_ascii(),
        // Within brackets, `previous` is its lower end.
        Some(previous) if c == '-' => previous.is_ascii(),
        _ => true,
    }
}

/// Returns whether classes such as `\d` treat a character as they treat the letters of Thaana.
fn is_letter(c: u32) -> bool {
    char::from_u32(c).is_some_and(|c| c.is_alphabetic() && !c.is_numeric())
}
