//! Letters that stand for characters of a regular expression that PostgreSQL doesn't name.
//!
//! An automaton that PostgreSQL exports names the characters of a transition only below U+0800. Of
//! most scripts, from Thai to Han, all characters are above. So they are replaced in the expression
//! by letters below U+0800 that the expression doesn't have, and that have no case. The automaton
//! of the replaced expression is the same, with other names for these characters; the caller
//! [renames](StandIns::original) them back.
//!
//! ```text
//! expression   漢字+(か|漢)é
//! replaced     אב+(ג|א)é        א stands for 漢, ב for 字, ג for か
//! ```
//!
//! # Why it finds all matches
//!
//! Each piece of an expression that reads a character is a character, or a set of them: `.`,
//! `[漢字]`, `[^a]`, `[一-龥]`, `\w`. Only characters of which a piece says that they are meant are
//! replaced. A character of a text from U+0800 on that a piece reads
//!
//! - is one of them: then the replaced piece reads its letter;
//! - or is in a range or a class, or isn't excluded: so it is in the replaced set, too. PostgreSQL
//!   names none of its transitions by a character from U+0800 on, so such a transition counts as
//!   one by any character.
//!
//! A letter may be in a text as itself. A set that it is in has many other characters, which count
//! as any character. That isn't so for a range that ends between U+0080 and U+0800, such as
//! `[א-ב]`: an expression with one is refused.
//!
//! `~*` also takes other cases of a character for equal. All of them fold to the same. So if case
//! is ignored, one letter stands for all characters that fold to the same. A character of which
//! locales may disagree is left as it is.
//!
//! If two pieces judge the same character, as in `(?=\w)漢`, `\m漢` or `(?=k)K` with a sign for
//! Kelvin, a letter may be in a set in which the character isn't. So an expression is refused that
//! has word boundaries, or that has pieces that look around, and beside them classes or characters
//! with case.

use crate::conditions::text::{LetterCase, fold};
use crate::memory::List;
use std::iter::Peekable;
use std::ops::RangeInclusive;
use std::str::Chars;

/// The first character that PostgreSQL doesn't name.
const FIRST_UNNAMED: u32 = 0x800;
/// Letters without case: of Hebrew, Arabic, Syriac, Thaana and NKo.
const LETTERS: [RangeInclusive<u32>; 7] = [
    0x5D0..=0x5EA,
    0x620..=0x63F,
    0x641..=0x64A,
    0x671..=0x6D3,
    0x712..=0x72F,
    0x74D..=0x7A5,
    0x7CA..=0x7EA,
];
/// Letters behind a backslash that stand for a class of characters.
const CLASS_ESCAPES: &str = "dDsSwW";
/// Letters and digits behind a backslash that stand for one ASCII character, the start or the end
/// of the text, or what a group has matched.
const HARMLESS_ESCAPES: &str = "aAbBefnrtvZ0123456789";
/// Options at the start of an expression that change neither what is a special character nor what
/// is one piece.
const HARMLESS_OPTIONS: &str = "cimnpstw";

/// A regular expression in which letters stand for other characters.
pub struct StandIns {
    /// The expression with the letters, in UTF-8.
    pub pattern: List<u8>,
    stand_ins: List<StandIn>,
}

struct StandIn {
    letter: char,
    /// The first character of the expression that the letter stands for.
    original: char,
}

impl StandIns {
    /// Replaces characters from U+0800 on in a regular expression by letters that the expression
    /// doesn't have, each character by its own letter. The reason is that PostgreSQL's automaton of
    /// an expression doesn't say which characters from U+0800 on it reads. The letters are few:
    /// when none is left, further characters stay as they are.
    ///
    /// `expression` is in UTF-8. `case` says whether the operator ignores letter case, unless an
    /// option in the expression says otherwise.
    ///
    /// Returns `None` if nothing is replaced, or if the replaced expression might match other
    /// texts.
    pub fn replace_in(expression: &[u8], case: LetterCase) -> Option<StandIns> {
        let expression = str::from_utf8(expression).ok()?;
        if !expression.contains(is_unnamed) {
            return None;
        }
        let options = RegexOptions::parse(expression)?;
        let ignore_case = options.case.unwrap_or(case) == LetterCase::Ignored;

        let mut replacement = RegexReplacement {
            expression,
            ignore_case,
            replaced: StandIns {
                // A letter has two bytes, and each character that it stands for has more.
                pattern: List::with_capacity(expression.len()),
                stand_ins: List::new(),
            },
            has_classes: false,
            looks_around: false,
        };
        let (options_text, rest) = expression.split_at(options.length);
        replacement
            .replaced
            .pattern
            .extend_from_slice(options_text.as_bytes());
        replacement.replace_all(rest)?;

        let may_match_differently = replacement.pieces_may_disagree();
        let replaced = replacement.replaced;
        (!may_match_differently && !replaced.stand_ins.is_empty()).then_some(replaced)
    }

    /// Returns the character that a letter stands for, or `c` itself if it stands for none.
    pub fn original(&self, c: u32) -> u32 {
        let is_letter = |stand_in: &&StandIn| u32::from(stand_in.letter) == c;
        match self.stand_ins.iter().find(is_letter) {
            Some(stand_in) => stand_in.original.into(),
            None => c,
        }
    }
}

/// Options at the start of an expression.
struct RegexOptions {
    /// The bytes of the options, in front of the expression proper.
    length: usize,
    /// `None` if the options don't say.
    case: Option<LetterCase>,
}

impl RegexOptions {
    /// Parses the options with which an expression may begin in PostgreSQL: an optional *director*
    /// `***:`, which says that an advanced regular expression follows, and then option letters in
    /// parentheses, as in `(?i)abc`. Most expressions have none.
    ///
    /// Returns `None` if an option isn't known, or changes which characters are special, as `(?x)`
    /// and the director `***=` do.
    fn parse(expression: &str) -> Option<RegexOptions> {
        let without_options = RegexOptions { length: 0, case: None };
        let after_director = match expression.strip_prefix("***") {
            Some(rest) => rest.strip_prefix(':')?,
            None => expression,
        };
        let Some(after_bracket) = after_director.strip_prefix("(?") else {
            return Some(without_options);
        };
        // Without a letter behind `(?` it is a group, such as `(?:abc)`, and not options.
        if !after_bracket.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Some(without_options);
        }

        let (letters, rest) = after_bracket.split_once(')')?;
        if !letters.chars().all(|letter| HARMLESS_OPTIONS.contains(letter)) {
            return None;
        }
        // If several letters are about case, PostgreSQL follows the last one.
        let case = letters.chars().rev().find_map(|letter| match letter {
            'i' => Some(LetterCase::Ignored),
            'c' => Some(LetterCase::Compared),
            _ => None,
        });
        Some(RegexOptions { length: expression.len() - rest.len(), case })
    }
}

/// An expression that is being replaced.
struct RegexReplacement<'a> {
    expression: &'a str,
    ignore_case: bool,
    replaced: StandIns,
    /// Whether it has classes such as `\d`, or ranges from U+0800 on.
    has_classes: bool,
    /// Whether it has pieces such as `(?=a)`.
    looks_around: bool,
}

impl RegexReplacement<'_> {
    /// Replaces characters from U+0800 on in a whole expression, each by the letter that stands for
    /// it, since an automaton of PostgreSQL's names only characters below. Appends the result to
    /// `self.replaced`. `expression` must be without the options at its start.
    ///
    /// Returns `None` if the expression may match other texts once characters are replaced: if it
    /// has an escape, a bracket expression or a group that isn't known to be safe.
    fn replace_all(&mut self, expression: &str) -> Option<()> {
        let mut characters = expression.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '\\' => self.keep_escape(characters.next()?)?,
                '[' => self.replace_bracket(&mut characters)?,
                '(' if characters.peek() == Some(&'?') => {
                    characters.next();
                    let group_kind = characters.next()?;
                    self.keep_start_of_group(group_kind)?;
                }
                c => self.replace(c),
            }
        }
        Some(())
    }

    /// Appends a backslash and the character behind it, unchanged. Returns `None` for escapes that
    /// are not known to match the same texts in the replaced expression, such as word boundaries.
    fn keep_escape(&mut self, escaped: char) -> Option<()> {
        let is_itself = escaped.is_ascii() && !escaped.is_ascii_alphanumeric();
        if CLASS_ESCAPES.contains(escaped) {
            self.has_classes = true;
        } else if !is_itself && !HARMLESS_ESCAPES.contains(escaped) {
            return None;
        }
        self.keep('\\');
        self.keep(escaped);
        Some(())
    }

    /// Appends the start of a group to the replaced expression: `(?` and the character behind it,
    /// `kind`, unchanged. Notes whether the group looks around, as `(?=a)` does. Returns `None` if
    /// `(?` begins a comment or something unknown.
    fn keep_start_of_group(&mut self, kind: char) -> Option<()> {
        match kind {
            ':' => {}
            '=' | '!' | '<' => self.looks_around = true,
            // A comment, or nothing that PostgreSQL knows.
            _ => return None,
        }
        self.keep('(');
        self.keep('?');
        self.keep(kind);
        Some(())
    }

    /// Replaces characters from U+0800 on by letters in a bracket expression such as `[^a-z漢]`, and
    /// appends the result to the replaced expression. Ends of ranges stay as they are. The `[` has
    /// been read already; reads up to the `]`. Returns `None` if the bracket expression isn't
    /// complete, or has something that might match other characters with letters in place of these.
    fn replace_bracket(&mut self, characters: &mut Peekable<Chars>) -> Option<()> {
        self.keep('[');
        if let Some(sign) = characters.next_if_eq(&'^') {
            self.keep(sign);
        }
        // The first character may be a bracket that doesn't end it.
        if let Some(bracket) = characters.next_if_eq(&']') {
            self.keep(bracket);
        }

        let mut is_behind_minus = false;
        loop {
            let c = characters.next()?;
            let is_before_minus = characters.peek() == Some(&'-');
            match c {
                ']' => {
                    self.keep(c);
                    return Some(());
                }
                '\\' => self.keep_escape(characters.next()?)?,
                '[' if characters.peek() == Some(&':') => self.keep_class(characters)?,
                // A collating element or an equivalence class.
                '[' if matches!(characters.peek(), Some('.' | '=')) => return None,
                c if is_behind_minus || is_before_minus => self.keep_end_of_range(c)?,
                c => self.replace(c),
            }
            is_behind_minus = c == '-';
        }
    }

    /// Appends a class of characters such as `[:alpha:]`, which stands within a bracket expression,
    /// unchanged to the replaced expression. Its `[` has been read already; reads up to the `]`.
    /// Returns `None` if the class isn't complete, or is a word boundary, such as `[:<:]`.
    fn keep_class(&mut self, characters: &mut Peekable<Chars>) -> Option<()> {
        self.has_classes = true;
        self.keep('[');
        loop {
            let c = characters.next()?;
            self.keep(c);
            match c {
                ']' => return Some(()),
                // Word boundaries are written like classes: `[[:<:]]`.
                '<' | '>' => return None,
                _ => {}
            }
        }
    }

    /// Appends a character that begins or ends a range such as `a-z`, unchanged. Returns `None` for
    /// one from U+0080 to U+07FF: letters that stand for other characters may be in its range.
    fn keep_end_of_range(&mut self, c: char) -> Option<()> {
        if is_unnamed(c) {
            self.has_classes = true;
        } else if !c.is_ascii() {
            return None;
        }
        self.keep(c);
        Some(())
    }

    /// Appends a character to the replaced expression, or the letter that stands for it.
    fn replace(&mut self, c: char) {
        let letter = if is_unnamed(c) { self.letter_for(c) } else { None };
        self.keep(letter.unwrap_or(c));
    }

    /// Appends a character to the replaced expression.
    fn keep(&mut self, c: char) {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        self.replaced.pattern.extend_from_slice(bytes);
    }

    /// Returns the letter that replaces a character: the same letter each time the character
    /// occurs. If case is ignored, characters that fold to the same have one letter. A character
    /// that has no letter yet gets the next one of [`LETTERS`] that doesn't occur in the expression
    /// itself.
    ///
    /// Returns `None` if the character must stay as it is: no letter is left, or case is ignored
    /// and locales may disagree about the character's case.
    fn letter_for(&mut self, c: char) -> Option<char> {
        if self.ignore_case && !fold::is_known(c.into()) {
            return None;
        }
        // If case is ignored, characters that differ only in case must stay equal.
        let stands_for_c = |stand_in: &&StandIn| {
            let original = stand_in.original;
            original == c || (self.ignore_case && folded(original) == folded(c))
        };
        if let Some(stand_in) = self.replaced.stand_ins.iter().find(stands_for_c) {
            return Some(stand_in.letter);
        }

        // Letters are taken in ascending order, so those up to the last one are used.
        let last_used = self.replaced.stand_ins.last().map(|stand_in| stand_in.letter);
        let is_free = |letter: &char| {
            last_used.is_none_or(|last| *letter > last) && !self.expression.contains(*letter)
        };
        let mut letters = LETTERS.into_iter().flatten().filter_map(char::from_u32);
        let letter = letters.find(is_free)?;
        self.replaced.stand_ins.push(StandIn { letter, original: c });
        Some(letter)
    }

    /// Returns whether two pieces of the expression may look at the same character of a text, and
    /// one of them may tell the letter from the character that it stands for: `(?=\w)漢` looks at
    /// one character twice.
    fn pieces_may_disagree(&self) -> bool {
        let has_case = |stand_in: &StandIn| !fold::is_without_case(stand_in.original.into());
        let replaced_letter_case = self.ignore_case && self.replaced.stand_ins.iter().any(has_case);
        self.looks_around && (self.has_classes || replaced_letter_case)
    }
}

/// Returns whether PostgreSQL leaves this character unnamed in an automaton.
fn is_unnamed(c: char) -> bool {
    u32::from(c) >= FIRST_UNNAMED
}

/// Returns the characters that a character folds to.
fn folded(c: char) -> List<u32> {
    let mut folded = List::new();
    fold::fold(c.into(), |one| folded.push(one));
    folded
}
