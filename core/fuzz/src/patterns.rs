//! Arbitrary texts and patterns of LIKE and ILIKE: no match without its windows, and never a panic.

use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::text::{Encoding, LetterCase, Windows, each_window, like};
use std::collections::BTreeSet;

/// The most bytes of a text or a pattern: the oracle tries everything.
const MOST: usize = 200;

/// An input is a byte, a text and a pattern: the byte says how long the text is, and how its bytes
/// make characters.
pub fn run(data: &[u8]) {
    let Some((&shape, rest)) = data.split_first() else {
        return;
    };
    let (text, pattern) = rest.split_at(rest.len().min(usize::from(shape / 2)));
    let (text, pattern) = (&text[..text.len().min(MOST)], &pattern[..pattern.len().min(MOST)]);
    // A server takes nothing in UTF-8 that isn't: a pattern has no part of a character.
    let is_utf8 = [text, pattern].iter().all(|bytes| std::str::from_utf8(bytes).is_ok());
    let encoding = if shape & 1 == 0 && is_utf8 { Encoding::Utf8 } else { Encoding::Other };
    let has = windows(text, encoding);
    let holds = |condition: &Condition| {
        let found = condition.slots(1, &mut |hash| Ok::<_, ()>(u128::from(has.contains(&hash))));
        found == Ok(1)
    };
    if is_like(text, pattern) {
        assert!(holds(&like(pattern, encoding, LetterCase::Compared)), "{text:?} LIKE {pattern:?}");
    }
    let (lower, lower_pattern) = (text.to_ascii_lowercase(), pattern.to_ascii_lowercase());
    if is_like(&lower, &lower_pattern) {
        assert!(holds(&like(pattern, encoding, LetterCase::Ignored)), "{text:?} ILIKE {pattern:?}");
    }
}

/// The hashes of a text's windows, gathered in both ways that there are.
fn windows(text: &[u8], encoding: Encoding) -> BTreeSet<u64> {
    let mut each = BTreeSet::new();
    each_window(text, encoding, |found| {
        each.extend(found.hashes());
    });
    let mut gathered = Windows::default();
    gathered.add(text, encoding);
    assert_eq!(gathered.take().into_iter().collect::<BTreeSet<_>>(), each);
    each
}

/// Whether a text is like a pattern that does not end in an escape, by bytes: `_` is one or more of
/// them, since a character may have several.
fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    // Which beginnings of the text are like the pattern so far.
    let mut like = vec![false; text.len() + 1];
    like[0] = true;
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        let literal = match byte {
            b'%' | b'_' => None,
            b'\\' => match bytes.next() {
                Some(&escaped) => Some(escaped),
                None => return false,
            },
            byte => Some(byte),
        };
        let mut next = vec![false; text.len() + 1];
        let mut before = false;
        for end in 0..=text.len() {
            next[end] = match literal {
                Some(literal) => end > 0 && like[end - 1] && text[end - 1] == literal,
                None => before || byte == b'%' && like[end],
            };
            before |= like[end];
        }
        like = next;
    }
    like[text.len()]
}
