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
//! each syllable of Hangul by itself. Such a pattern has few windows: those of two characters have
//! two hashes, all others one. Without windows of three, `%传F%` reads what has 传, and `%ン2%` all.
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
use crate::memory;

pub(super) const MOST_HASHES: usize = 256;
/// What characters of a window weigh together.
pub(super) const WEIGHT: u32 = 4;
const PAIR_WEIGHT: u32 = 3;
const WIDE: u32 = 0x2000;

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

/// The character that bytes begin with, which has more than one, and its length. `None` if they
/// begin with none. What follows a part of a character is read as if the part weren't there, so
/// that a run is read the same in every text.
#[inline(always)]
fn character(bytes: &[u8]) -> Option<(u32, usize)> {
    let length = match *bytes.first()? {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let rest = bytes.get(1..length)?;
    let first = u32::from(bytes[0]) & (0x7F >> length);
    let c = rest.iter().try_fold(first, |c, &byte| {
        (byte & 0xC0 == 0x80).then_some(c << 6 | u32::from(byte & 0x3F))
    })?;
    Some((c, length))
}

/// Calls `visit` with each character of a text, not folded; with `None` for a byte that is of none.
#[inline(always)]
fn each_character(text: &[u8], encoding: Encoding, mut visit: impl FnMut(Option<u32>)) {
    let (mut rest, mut meter) = (text, Meter::default());
    while let Some(&byte) = rest.first() {
        let mut length = 1;
        if byte.is_ascii() || encoding == Encoding::Other {
            visit(Some(byte.into()));
        } else if let Some((c, bytes)) = character(rest) {
            visit(Some(c));
            length = bytes;
        } else {
            visit(None);
        }
        rest = &rest[length..];
        meter.add_bytes(length);
    }
}

/// The last characters of a run, for the windows that end with the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LastCharacters {
    /// The last in the lowest 32 bits; 0 where there is none.
    pub(super) characters: u128,
    /// How many of them, up to four, are not wide, counted from the last.
    pub(super) narrow: u32,
}

impl LastCharacters {
    /// Adds a character. Calls `visit` with the windows that it completes.
    #[inline(always)]
    pub(super) fn add(&mut self, c: u32, visit: &mut impl FnMut(Window)) {
        self.characters = self.characters << 32 | u128::from(c);
        if c < WIDE {
            self.narrow += 1;
            if self.narrow >= WEIGHT {
                return visit(Window::of(self.characters, 4));
            }
        } else {
            self.narrow = 0;
            if is_whole(c) {
                visit(Window::of(self.characters, 1));
            }
        }
        self.add_mixed(visit);
    }

    /// The windows that end with the last character, where one of them is wide.
    #[inline(never)]
    fn add_mixed(&self, visit: &mut impl FnMut(Window)) {
        let character = |back: u32| (self.characters >> (32 * back)) as u32;
        let mut weighs = weight(character(0));
        for back in 1..WEIGHT {
            let c = character(back);
            weighs += weight(c);
            if c == 0 || weighs > WEIGHT {
                return;
            }
            if weighs == WEIGHT || (back == 1 && weighs == PAIR_WEIGHT) {
                visit(Window::of(self.characters, back + 1));
            }
        }
    }
}

pub(super) const fn weight(c: u32) -> u32 {
    if c < WIDE { 1 } else { 2 }
}

/// Whether a character is a window: one of Han or a syllable of Hangul.
const fn is_whole(c: u32) -> bool {
    matches!(c, 0x3005..=0x3007 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Calls `visit` with each window of a text, as often as the text has it.
#[inline(always)]
pub fn each_window(text: &[u8], encoding: Encoding, visit: impl FnMut(Window)) {
    each_window_between(text, encoding, |_| false, visit);
}

/// The same where a run ends at characters beyond ASCII for which `ends` is true.
#[inline(always)]
fn each_window_between(
    text: &[u8],
    encoding: Encoding,
    ends: impl Fn(u32) -> bool,
    mut visit: impl FnMut(Window),
) {
    let mut last = LastCharacters::default();
    each_character(text, encoding, |c| match c {
        // No text has a character 0.
        None | Some(0) => last = LastCharacters::default(),
        Some(c) if c < 0x80 => last.add(u32::from((c as u8).to_ascii_lowercase()), &mut visit),
        Some(c) if ends(c) => last = LastCharacters::default(),
        Some(c) if encoding == Encoding::Other => last.add(c, &mut visit),
        Some(c) => fold::fold(c, |c| last.add(c, &mut visit)),
    });
}

/// Distinct windows of texts, as many as are added.
#[derive(Default)]
pub struct Windows {
    /// A window in each place that is not 0, of which half are at least; none before the first
    /// window.
    places: Vec<u64>,
    found: Vec<Window>,
}

impl Windows {
    /// Adds those of a text. Returns how many it has.
    pub fn add(&mut self, text: &[u8], encoding: Encoding) -> usize {
        let mut count = 0;
        each_window(text, encoding, |window| {
            count += 1;
            if self.found.len() * 2 >= self.places.len() {
                self.places = memory::zeroed((self.places.len() * 4).max(1 << 12));
                self.found
                    .iter()
                    .for_each(|&window| _ = put(&mut self.places, window));
            }
            if put(&mut self.places, window) {
                memory::push(&mut self.found, window);
            }
        });
        count
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Their hashes, after which there are none.
    pub fn take(&mut self) -> Vec<u64> {
        self.places.fill(0);
        hashes_of(std::mem::take(&mut self.found).into_iter())
    }
}

/// Puts a window into its place. Returns whether it wasn't there.
#[inline(always)]
fn put(places: &mut [u64], window: Window) -> bool {
    let place = place_of(places, window.0, window.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32);
    let is_new = places[place] == 0;
    places[place] = window.0;
    is_new
}

pub(super) fn hashes_of(windows: impl Iterator<Item = Window>) -> Vec<u64> {
    memory::collect(windows.flat_map(Window::hashes))
}

/// The windows of these runs, which end with a byte that is 0: a text must have all of them.
fn windows_of(runs: &[u8], encoding: Encoding, case: LetterCase) -> Condition {
    let mut windows = Vec::new();
    let ends = |c| case == LetterCase::Ignored && !fold::is_known(c);
    each_window_between(runs, encoding, ends, |window| memory::push(&mut windows, window));
    all_windows(windows)
}

/// All of these windows: those that are characters last, since many ranges have them.
pub(super) fn all_windows(mut windows: Vec<Window>) -> Condition {
    windows.sort_unstable_by_key(|window| (window.has_at_most(1), window.0));
    windows.dedup();
    let (long, alone) = windows.split_at(windows.partition_point(|window| !window.has_at_most(1)));
    let [long, alone] = [long, alone]
        .map(|windows| Condition::all_of(hashes_of(windows.iter().copied()), MOST_HASHES));
    Condition::all([long, alone])
}

/// What a text must have that has this one in it, at its start or as a whole.
pub fn having(text: &[u8], encoding: Encoding) -> Condition {
    windows_of(text, encoding, LetterCase::Compared)
}

/// What a text must have that is LIKE a pattern, or ILIKE it if case is ignored.
///
/// A pattern that ends in an escape character is for PostgreSQL to refuse: any row may be the one
/// for which it does.
pub fn like(pattern: &[u8], encoding: Encoding, case: LetterCase) -> Condition {
    if case == LetterCase::Ignored && encoding == Encoding::Other {
        return Condition::Unknown;
    }
    let mut runs = memory::with_capacity(pattern.len());
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        runs.push(match byte {
            b'%' | b'_' => 0,
            b'\\' => match bytes.next() {
                Some(&escaped) => escaped,
                None => return Condition::Unknown,
            },
            byte => byte,
        });
    }
    windows_of(&runs, encoding, case)
}

#[cfg(test)]
mod tests;
