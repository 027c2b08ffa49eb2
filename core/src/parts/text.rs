//! Windows of a text: each three bytes that follow each other, once letters are folded, or five where there are digits.
//!
//! ```text
//! text       G E T   / i n d e x         pattern    %/ind_x%
//! folded     g e t   / i n d e x         runs       /ind   x
//! windows    get "et " "t /" " /i" /in ind nde dex   windows   /in ind
//!
//! text       j o b   1 7 ,   o k
//! windows    job "ob " "b 17," " 17, " "17, o" "7, ok" ", o" " ok"
//! ```
//!
//! A row that matches has every run of the pattern in its text, byte for byte, so it has the windows of the run: which
//! window begins at a byte, if any, follows from that byte and the four after it.
//!
//! Lines of a log are full of digits. In 16 pages of them all groups of three digits occur, which so tell nothing, and
//! most groups with one. So **a window with a digit among its three bytes has two more**. There are ten times as many
//! of these, most of them rare, and a pattern has several: one hash for each is enough. The others, of which a changed
//! letter makes only three, have two. By a model of 150,000 lines, 29 % digits, in ranges of 16 pages, a pattern of 8
//! to 20 bytes that no row has reads 8 to 10 % of the ranges instead of 27 %, with an index of the same size.
//!
//! # Folding
//!
//! The same index serves LIKE and ILIKE. What ILIKE takes for equal depends on the locale, and locales change with
//! upgrades of the operating system. So texts are folded by a table of our own, the same for both sides. It has what
//! any locale converts to an ASCII letter or from one:
//!
//! | | folded to | because |
//! |---|---|---|
//! | `A` to `Z` | `a` to `z` | |
//! | U+0130 `İ`, U+0131 `ı` | `i` | in Turkish lower case of `İ` is `i`, of `I` `ı`; upper case of `ı` is `I` |
//! | U+212A Kelvin sign, U+017F `ſ` | `k`, `s` | its lower case; its upper case is `S` |
//! | U+00CC, U+00CD, U+0128: `ÌÍĨ` | `i` and U+0300, U+0301, U+0303 | in Lithuanian lower case has `i` and U+0307 |
//! | U+0307, a dot above | nothing | lower case of `İ` is `i` with it; Turkish takes it from `I` |
//!
//! Each character is folded for itself, so a text that has another one in it has its folded form in its own. All other
//! letters stay as they are. So windows with them serve LIKE. For ILIKE a run ends at them, since what they are equal
//! to is the locale's matter.
//!
//! In encodings other than UTF-8 only `A` to `Z` are folded. No byte of another character can be taken for these, nor
//! for a wildcard, in any encoding of a server. What other bytes are to ILIKE is not known here, so it is left out.

use super::{Condition, Window};
use crate::interrupt;
use crate::memory;

/// The most hashes that are looked for.
const MOST_HASHES: usize = 256;

/// How the bytes of a text make characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// Any other.
    Other,
}

/// The folded form of the character that begins with a byte that is not ASCII, and how many bytes it stands for. Of a
/// character that stays as it is, that is its first byte.
#[inline(always)]
fn fold_character(bytes: &[u8]) -> (&[u8], usize) {
    match bytes {
        [0xC3, 0x8C, ..] => (b"i\xCC\x80", 2),
        [0xC3, 0x8D, ..] => (b"i\xCC\x81", 2),
        [0xC4, 0xA8, ..] => (b"i\xCC\x83", 2),
        [0xC4, 0xB0 | 0xB1, ..] => (b"i", 2),
        [0xC5, 0xBF, ..] => (b"s", 2),
        [0xCC, 0x87, ..] => (b"", 2),
        [0xE2, 0x84, 0xAA, ..] => (b"k", 3),
        _ => (&bytes[..1], 1),
    }
}

/// Calls `visit` with each byte of the folded text.
#[inline(always)]
fn each_folded_byte(text: &[u8], encoding: Encoding, mut visit: impl FnMut(u8)) {
    let (mut at, mut stop) = (0, interrupt::STRIDE);
    while at < text.len() {
        let byte = text[at];
        if byte.is_ascii() || encoding == Encoding::Other {
            visit(byte.to_ascii_lowercase());
            at += 1;
        } else {
            let (folded, length) = fold_character(&text[at..]);
            folded.iter().copied().for_each(&mut visit);
            at += length;
        }
        if at >= stop {
            interrupt::check();
            stop += interrupt::STRIDE;
        }
    }
}

/// Calls `visit` with each window of a text, as often as the text has it.
#[inline(always)]
pub fn each_window(text: &[u8], encoding: Encoding, mut visit: impl FnMut(Window)) {
    // The last bytes, and which of them are digits: the last in the lowest bits.
    let (mut bytes, mut digits, mut count) = (0u64, 0u32, 0);
    each_folded_byte(text, encoding, |byte| {
        bytes = bytes << 8 | u64::from(byte);
        digits = digits << 1 | u32::from(byte.is_ascii_digit());
        count += 1;
        if count >= 3 && digits & 0b111 == 0 {
            visit(Window::short(bytes));
        }
        if count >= 5 && digits & 0b11100 != 0 {
            visit(Window::long(bytes));
        }
    });
}

/// Distinct windows of texts, as many as are added.
#[derive(Default)]
pub struct Windows {
    /// A window in each place that is not 0: the one that its number says, or one after it. Half of them are 0 at
    /// least. There are none before the first window.
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
                self.found.iter().for_each(|&window| _ = put(&mut self.places, window));
            }
            if put(&mut self.places, window) {
                memory::push(&mut self.found, window);
            }
        });
        count
    }

    /// Whether there are none.
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
    let last = places.len() - 1;
    let mut place = (window.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & last;
    while places[place] != 0 {
        if places[place] == window.0 {
            return false;
        }
        place = (place + 1) & last;
    }
    places[place] = window.0;
    true
}

/// The hashes of windows.
pub fn hashes_of(windows: impl Iterator<Item = Window>) -> Vec<u64> {
    memory::collect(windows.flat_map(Window::hashes))
}

/// The windows of these runs, all of which a text must have: the long ones first, since few ranges have them.
fn windows_of(runs: &[Vec<u8>], encoding: Encoding) -> Condition {
    let mut windows = Vec::new();
    for run in runs {
        each_window(run, encoding, |window| memory::push(&mut windows, window));
    }
    windows.sort_unstable_by_key(|window| std::cmp::Reverse(window.0));
    windows.dedup();
    let (long, short) = windows.split_at(windows.partition_point(|window| window.is_long()));
    let [long, short] = [long, short].map(|windows| Condition::all_of(hashes_of(windows.iter().copied()), MOST_HASHES));
    Condition::all([long, short])
}

/// What a text must have that has this one in it, at its start or as a whole.
pub fn having(text: &[u8], encoding: Encoding) -> Condition {
    windows_of(&[memory::copy(text)], encoding)
}

/// What a text must have that is LIKE a pattern; ILIKE it if `ignore_case`.
///
/// A pattern that ends in an escape character is for PostgreSQL to refuse: any row may be the one for which it does.
pub fn like(pattern: &[u8], encoding: Encoding, ignore_case: bool) -> Condition {
    if ignore_case && encoding == Encoding::Other {
        return Condition::Unknown;
    }
    let mut runs = vec![Vec::new()];
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        let literal = match byte {
            b'%' | b'_' => None,
            b'\\' => match bytes.next() {
                Some(&escaped) => Some(escaped),
                None => return Condition::Unknown,
            },
            byte => Some(byte),
        };
        match literal.filter(|byte| !ignore_case || byte.is_ascii()) {
            Some(byte) => memory::push(runs.last_mut().expect("there is always one"), byte),
            None if runs.last().is_some_and(Vec::is_empty) => {}
            None => memory::push(&mut runs, Vec::new()),
        }
    }
    windows_of(&runs, encoding)
}

#[cfg(test)]
mod tests;
