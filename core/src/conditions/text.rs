//! Windows of a text: characters that follow each other, once letters are folded, and weigh four
//! together. Wide ones, from U+2000 on (Han, kana, Hangul and their punctuation), weigh two, others
//! one.
//!
//! ```text
//! text       G E T / i n d e x                          pattern    %/ind_x%
//! folded     g e t / i n d e x                          runs       /ind   x
//! windows    get/ et/i t/in /ind inde ndex              windows    /ind
//!
//! text       第 1 7 回 会 议                            pattern    %会议%
//! windows    第17 17回 回会 会议  第1 7回  第 回 会 议  windows    会议 会 议
//! ```
//!
//! A row that matches has every run of the pattern in its text, character for character, so it has
//! the windows of the run: whether some characters are a window follows from them alone.
//!
//! Of scripts with wide characters people look for two, or for one. So a wide character and a
//! narrow one beside it are a window too, though they weigh three, and so is each Han character and
//! each syllable of Hangul by itself. Such a pattern has few windows: those of two characters, and
//! most of three, have two hashes, all others one. Without windows of three, `%传F%` reads what has
//! 传, and `%ン2%` all.
//!
//! By a model on fourteen corpora, windows of three bytes, of five, longer ones for digits, and
//! ones chosen by their content all read more of the text at the same size of the index.
//!
//! # Folding
//!
//! The same index serves LIKE and ILIKE: texts and patterns are folded before they have windows
//! (`fold`). Characters that are not known there end the runs of a pattern of ILIKE; in a text they
//! make windows for LIKE.
//!
//! Bytes that make no character end a run, and no window of a text has them. In encodings other
//! than UTF-8 each byte is taken for a character and weighs one, and only `A` to `Z` are folded. No
//! byte of another character can be taken for these, nor for a wildcard, in any encoding of a
//! server. What other bytes are to ILIKE is not known here, so it is left out.

pub(super) mod fold;

use super::{Condition, Window, place_of};
use crate::interrupt::Meter;
use crate::memory::List;

/// The most windows of a pattern that are looked up, those that are single characters apart.
pub(super) const MOST_HASHES: usize = 256;
/// The weight that the characters of a window have together.
pub(super) const WEIGHT: u32 = 4;
/// The weight of a wide and a narrow character, which are a window by exception.
const PAIR_WEIGHT: u32 = 3;
/// The first wide character.
const FIRST_WIDE: u32 = 0x2000;

/// How the bytes of a text make characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Other,
}

/// Whether an operator tells capitals from small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterCase {
    /// As `LIKE` and `~` do.
    Compared,
    /// As `ILIKE` and `~*` do.
    Ignored,
}

/// Decodes a character of two to four bytes at the start of some UTF-8 bytes. Returns its code
/// point and its length in bytes; `None` if the bytes begin with ASCII, or with no whole character.
///
/// Only the bits that tell lengths are checked. PostgreSQL refuses texts with surrogates or
/// overlong forms; from a damaged text they are decoded like others.
#[inline(always)]
fn multibyte_character(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    let length = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let following = bytes.get(1..length)?;

    // The first byte begins with as many ones as the character has bytes, and a zero; the other
    // bits belong to the code point. Each following byte begins with 10, and has six bits of it.
    let mut code_point = u32::from(first & (0x7F >> length));
    for &byte in following {
        if byte & 0xC0 != 0x80 {
            return None;
        }
        code_point = code_point << 6 | u32::from(byte & 0x3F);
    }
    Some((code_point, length))
}

/// Calls `visit` with each character of a text, before letter case is folded; with `None` for each
/// byte that belongs to no whole character. In encodings other than UTF-8 each byte is a character.
///
/// After the first byte of an incomplete character, decoding goes on at the next byte. So undamaged
/// characters are the same wherever they stand in a text.
#[inline(always)]
fn each_character(text: &[u8], encoding: Encoding, mut visit: impl FnMut(Option<u32>)) {
    let mut rest = text;
    let mut meter = Meter::default();
    while let Some(&byte) = rest.first() {
        let mut length = 1;
        if byte.is_ascii() || encoding == Encoding::Other {
            visit(Some(byte.into()));
        } else if let Some((c, bytes)) = multibyte_character(rest) {
            visit(Some(c));
            length = bytes;
        } else {
            visit(None);
        }
        rest = &rest[length..];
        meter.add_bytes(length);
    }
}

/// The last characters of a run, which is a stretch of text without gaps: as many as windows need
/// that end with the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LastCharacters {
    /// The last in the lowest 32 bits, up to three before it in the others; 0 where there is none.
    pub(super) characters: u128,
    /// How many of the last characters are narrow, up to the last wide one. Exact up to four.
    pub(super) narrow_at_end: u32,
}

impl LastCharacters {
    /// Adds the next character of a text, and calls `visit` with each *window* that ends with it. A
    /// window is a short piece of text that an index keeps. There are three sorts of them:
    ///
    /// - characters that weigh 4 together: a narrow character weighs 1, a wide one, from U+2000 on,
    ///   2;
    /// - a wide character beside a narrow one;
    /// - a Han character or a syllable of Hangul by itself.
    ///
    /// The character `c` must not be 0, and upper case must have been folded to lower case.
    #[inline(always)]
    pub(super) fn add(&mut self, c: u32, visit: &mut impl FnMut(Window)) {
        self.characters = self.characters << 32 | u128::from(c);
        if c < FIRST_WIDE {
            self.narrow_at_end += 1;
            // By far the most frequent case: the last four characters are narrow. They are a
            // window, and no other window ends with them.
            if self.narrow_at_end >= WEIGHT {
                return visit(Window::of_last(self.characters, 4));
            }
        } else {
            self.narrow_at_end = 0;
            if is_window_by_itself(c) {
                visit(Window::of_last(self.characters, 1));
            }
        }
        self.visit_mixed_windows(visit);
    }

    /// Calls `visit` with each window of two to four characters that ends with the last character,
    /// shortest first. [`LastCharacters::add`] calls this unless the last four are all narrow.
    ///
    /// A window is characters that follow each other and weigh 4 together ([`WEIGHT`]): a narrow
    /// character, such as a Latin letter, weighs 1, and a wide one, from U+2000 on, 2. So it is
    /// four narrow ones, two wide ones, or two narrow ones and a wide one. As an exception, a
    /// narrow and a wide character that follow each other, which weigh 3 ([`PAIR_WEIGHT`]), are a
    /// window as well.
    #[inline(never)]
    fn visit_mixed_windows(&self, visit: &mut impl FnMut(Window)) {
        // `character(0)` is the last character, `character(1)` the one before it, and so on; 0 if
        // there are fewer characters.
        let character = |back: u32| (self.characters >> (32 * back)) as u32;
        let mut total_weight = weight(character(0));
        for back in 1..WEIGHT {
            let c = character(back);
            total_weight += weight(c);
            if c == 0 || total_weight > WEIGHT {
                return;
            }
            let is_pair = back == 1 && total_weight == PAIR_WEIGHT;
            if total_weight == WEIGHT || is_pair {
                visit(Window::of_last(self.characters, back + 1));
            }
        }
    }
}

/// Returns what a character weighs in a window: a wide one twice as much as a narrow one.
pub(super) const fn weight(c: u32) -> u32 {
    if c < FIRST_WIDE { 1 } else { 2 }
}

/// Returns whether a character is a window by itself: a Han character or a syllable of Hangul.
const fn is_window_by_itself(c: u32) -> bool {
    matches!(c, 0x3005..=0x3007 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Calls `visit` with each window of a text, as often as the text has it.
#[inline(always)]
pub fn each_window(text: &[u8], encoding: Encoding, visit: impl FnMut(Window)) {
    each_window_within_runs(text, encoding, |_| false, visit);
}

/// Calls `visit` with each window of a text, a few characters that follow each other, as often as
/// the text has it. Windows lie within *runs*, which end at a byte 0, at bytes that make no
/// character, and at a character beyond ASCII for which `ends_run` is true: no window has these.
///
/// Letter case is folded: by tables for UTF-8, that of ASCII only for other encodings.
#[inline(always)]
fn each_window_within_runs(
    text: &[u8],
    encoding: Encoding,
    ends_run: impl Fn(u32) -> bool,
    mut visit: impl FnMut(Window),
) {
    let mut last = LastCharacters::default();
    each_character(text, encoding, |c| match c {
        // No text has a character 0; in a pattern it stands for a wildcard.
        None | Some(0) => last = LastCharacters::default(),
        Some(c) if c < 0x80 => last.add(u32::from((c as u8).to_ascii_lowercase()), &mut visit),
        Some(c) if ends_run(c) => last = LastCharacters::default(),
        Some(c) if encoding == Encoding::Other => last.add(c, &mut visit),
        Some(c) => fold::fold(c, |folded| last.add(folded, &mut visit)),
    });
}

/// The distinct windows of all texts that have been added.
#[derive(Default)]
pub struct Windows {
    /// A hash table of the windows, 0 where a place is free. At least half of its places are free;
    /// it has none before the first window.
    table: List<u64>,
    /// The windows in the order in which they were found.
    found: List<Window>,
}

impl Windows {
    /// Adds the windows of a text (pieces of a few neighbouring characters, the keys of an index)
    /// that weren't added before. Returns how many windows the text has, each counted as often as
    /// it occurs.
    pub fn add(&mut self, text: &[u8], encoding: Encoding) -> usize {
        let mut count = 0;
        each_window(text, encoding, |window| {
            count += 1;
            // At least half of the places stay free, so that searches are short.
            if self.found.len() * 2 >= self.table.len() {
                self.grow_table();
            }
            if insert(&mut self.table, window) {
                self.found.push(window);
            }
        });
        count
    }

    /// Makes the table four times as large, with the same windows.
    fn grow_table(&mut self) {
        const FIRST_PLACES: usize = 1 << 12;
        self.table = List::zeroed((self.table.len() * 4).max(FIRST_PLACES));
        for &window in &self.found {
            insert(&mut self.table, window);
        }
    }

    /// Returns whether no window has been added since the last [`Windows::take`].
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Takes all windows out, and returns their hashes.
    pub fn take(&mut self) -> List<u64> {
        self.table.fill(0);
        hashes_of(std::mem::take(&mut self.found).into_iter())
    }
}

/// Adds a window to a hash table. Returns whether it wasn't there.
#[inline(always)]
fn insert(table: &mut [u64], window: Window) -> bool {
    // 2^64 divided by the golden ratio spreads similar numbers (Knuth's multiplicative hashing);
    // the upper half of the product depends on most bits.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let place = place_of(table, window.0, window.0.wrapping_mul(SPREAD) >> 32);
    let is_new = table[place] == 0;
    table[place] = window.0;
    is_new
}

/// Returns the hashes of windows, one or two for each.
pub(super) fn hashes_of(windows: impl Iterator<Item = Window>) -> List<u64> {
    windows.flat_map(Window::hashes).collect()
}

/// Returns the condition that a text has all windows of these runs, each of which ends with a byte
/// 0 or at the end. If case is ignored, characters of which locales may disagree end a run, too.
fn windows_of(runs: &[u8], encoding: Encoding, case: LetterCase) -> Condition {
    let mut windows = List::new();
    let ends_run = |c| case == LetterCase::Ignored && !fold::is_known(c);
    each_window_within_runs(runs, encoding, ends_run, |window| windows.push(window));
    all_windows(windows)
}

/// Returns the condition that a text has all of these windows; of more than [`MOST_HASHES`] hashes
/// only some are required.
///
/// Windows that are single characters are looked up last, since many ranges have them.
pub(super) fn all_windows(mut windows: List<Window>) -> Condition {
    windows.sort_unstable_by_key(|window| (window.is_single_character(), window.0));
    windows.dedup();
    let num_long = windows.partition_point(|window| !window.is_single_character());
    let (long, single) = windows.split_at(num_long);

    let all_of =
        |windows: &[Window]| Condition::all_of(hashes_of(windows.iter().copied()), MOST_HASHES);
    Condition::all([all_of(long), all_of(single)])
}

/// Returns the condition that a text contains this one, at its start or as a whole.
pub fn having(text: &[u8], encoding: Encoding) -> Condition {
    windows_of(text, encoding, LetterCase::Compared)
}

/// Returns a condition that holds for every text that is LIKE a pattern, or ILIKE it if `case` is
/// ignored: the text must have all windows (a few characters that follow each other) of the pieces
/// of the pattern between wildcards. A pattern whose pieces are too short for a window gives
/// [`Condition::Unknown`], which any text meets.
///
/// The condition is also unknown
///
/// - if the pattern ends in an escape character. PostgreSQL raises an error for that as soon as it
///   compares a row, so the index must not rule out any;
/// - if case is ignored in an encoding other than UTF-8. Which characters differ only in case is
///   known for UTF-8 alone.
pub fn like(pattern: &[u8], encoding: Encoding, case: LetterCase) -> Condition {
    if case == LetterCase::Ignored && encoding == Encoding::Other {
        return Condition::Unknown;
    }

    // The pattern without escapes, and with a byte 0, which no text has, for each wildcard.
    let mut runs = List::with_capacity(pattern.len());
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'%' | b'_' => runs.push(0),
            b'\\' => {
                let Some(&escaped) = bytes.next() else {
                    return Condition::Unknown;
                };
                runs.push(escaped);
            }
            byte => runs.push(byte),
        }
    }
    windows_of(&runs, encoding, case)
}

#[cfg(test)]
mod tests;
