use super::*;
use std::collections::BTreeSet;

fn windows(text: &str) -> BTreeSet<Window> {
    let mut windows = BTreeSet::new();
    each_window(text.as_bytes(), Encoding::Utf8, |window| {
        windows.insert(window);
    });
    windows
}

fn folded(text: &str) -> String {
    let mut bytes = Vec::new();
    each_folded_byte(text.as_bytes(), Encoding::Utf8, |byte| bytes.push(byte));
    String::from_utf8(bytes).expect("folding keeps characters whole")
}

/// Whether a text with these windows may match.
fn may_match(text: &str, condition: &Condition) -> bool {
    let has: BTreeSet<u64> = windows(text).into_iter().flat_map(Window::hashes).collect();
    let found = condition.slots(1, &mut |hash| Ok::<_, ()>(u128::from(has.contains(&hash))));
    found == Ok(1)
}

/// LIKE as PostgreSQL's documentation has it, by trying everything; `None` for a pattern that ends in an escape.
fn is_like(text: &[char], pattern: &[char]) -> Option<bool> {
    match pattern {
        [] => Some(text.is_empty()),
        ['%', rest @ ..] => {
            let matches = (0..=text.len()).map(|n| is_like(&text[n..], rest)).collect::<Option<Vec<_>>>()?;
            Some(matches.contains(&true))
        }
        ['\\'] => None,
        ['_', rest @ ..] => match text {
            [] => is_like(&[], rest).map(|_| false),
            [_, more @ ..] => is_like(more, rest),
        },
        ['\\', literal, rest @ ..] | [literal, rest @ ..] => match text {
            [first, more @ ..] if first == literal => is_like(more, rest),
            _ => is_like(&[], rest).map(|_| false),
        },
    }
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        crate::hash::reduce(crate::hash::word(self.0, 7), n as u64) as usize
    }

    fn text(&mut self, letters: &[char], most: usize) -> String {
        (0..self.below(most + 1)).map(|_| letters[self.below(letters.len())]).collect()
    }

    /// A pattern that a text is like, or nearly so.
    fn pattern_of(&mut self, text: &str) -> String {
        let piece = |this: &mut Random, character: char| match this.below(10) {
            0 => "_".to_owned(),
            1 => "%".to_owned(),
            2 => format!("\\{character}"),
            _ if "\\%_".contains(character) => format!("\\{character}"),
            _ => character.to_string(),
        };
        text.chars().map(|character| piece(self, character)).collect()
    }
}

#[test]
fn every_match_of_a_pattern_has_its_windows() {
    let mut random = Random(1);
    let letters: Vec<char> = "abAB12\\%_éÉİıſ\u{307}".chars().collect();
    let pattern_letters: Vec<char> = "abAB12\\%%__éı\u{307}".chars().collect();
    let (mut matches, mut sharp) = (0, 0);
    for i in 0..200_000 {
        let text = random.text(&letters, 8);
        let pattern = if i % 2 == 0 { random.text(&pattern_letters, 7) } else { random.pattern_of(&text) };
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let condition = like(pattern.as_bytes(), Encoding::Utf8, false);
        match is_like(&chars(&text), &chars(&pattern)) {
            Some(true) => {
                assert!(may_match(&text, &condition), "{text:?} LIKE {pattern:?}: {condition:?}");
                matches += 1;
                sharp += u32::from(!condition.is_unknown());
            }
            Some(false) => {}
            None => assert!(condition.is_unknown(), "{pattern:?}"),
        }
    }
    assert!(matches > 10_000 && sharp > 10_000, "{matches} matches, {sharp} with windows");
}

#[test]
fn runs_end_at_wildcards_and_escapes_are_understood() {
    let of = |runs: &[&str]| {
        let runs: Vec<Vec<u8>> = runs.iter().map(|run| run.as_bytes().to_vec()).collect();
        windows_of(&runs, Encoding::Utf8)
    };
    let like = |pattern: &str| like(pattern.as_bytes(), Encoding::Utf8, false);
    assert_eq!(like("%abcd_efg%"), of(&["abcd", "efg"]));
    assert_eq!(like(r"a\%c"), of(&["a%c"]));
    assert_eq!(like(r"a\\c\_"), of(&[r"a\c_"]));
    assert_eq!(like(r"\a\b\c"), of(&["abc"]));
    assert!(like("%ab%cd%").is_unknown());
    assert!(like("").is_unknown());
    assert!(like(r"abcdef\").is_unknown());
    assert_eq!(having(b"abcd", Encoding::Utf8), of(&["abcd"]));
}

#[test]
fn ilike_uses_ascii_alone() {
    let ilike = |pattern: &str| like(pattern.as_bytes(), Encoding::Utf8, true);
    assert_eq!(ilike("%ABC%"), ilike("abc"));
    assert_eq!(ilike("abcÉdef"), ilike("abc%def"));
    assert!(ilike("aÉbÉ").is_unknown());
    assert!(like(b"abc", Encoding::Other, true).is_unknown());
    assert!(!like(b"abc", Encoding::Other, false).is_unknown());
}

#[test]
fn what_rust_lowers_or_raises_to_ascii_is_folded_to_it() {
    // Unicode's own rules, without those of languages, which the tests with a server have.
    for character in '\0'..=char::MAX {
        let ascii = |text: &str| text.chars().filter(char::is_ascii).collect::<String>().to_ascii_lowercase();
        let lower = ascii(&character.to_lowercase().to_string());
        let own = ascii(&folded(&character.to_string()));
        assert!(lower.is_empty() || lower == own, "{character:?}");
        let upper: Vec<char> = character.to_uppercase().collect();
        if let [upper] = upper[..]
            && upper.is_ascii()
        {
            assert_eq!(ascii(&upper.to_string()), own, "{character:?}");
        }
    }
    assert_eq!(folded("xİbI\u{307}ıKſÌÍĨ"), "xibiiksi\u{300}i\u{301}i\u{303}");
    assert_eq!(folded("ÄöñΣ漢字🙂"), "ÄöñΣ漢字🙂");
}

#[test]
fn gathered_windows_are_those_of_all_texts() {
    let mut gathered = Windows::default();
    let many: Vec<String> = (0..30_000).map(|i| format!("line {i} of many")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for texts in [&["abcabc", "BCD", "ab"][..], &["", "xyzzy"], &[], &many, &["a1b2c3"]] {
        texts.iter().for_each(|text| _ = gathered.add(text.as_bytes(), Encoding::Utf8));
        let expected: BTreeSet<u64> = texts.iter().flat_map(|text| windows(text)).flat_map(Window::hashes).collect();
        assert_eq!(gathered.is_empty(), expected.is_empty());
        let hashes = gathered.take();
        assert_eq!(hashes.len(), expected.len());
        assert_eq!(hashes.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn windows_with_digits_are_longer() {
    let of = |text: &str| {
        let words = |window: Window| {
            let bytes = window.0.to_be_bytes();
            String::from_utf8(bytes[if window.is_long() { 3 } else { 5 }..].to_vec()).unwrap()
        };
        windows(text).into_iter().map(words).collect::<BTreeSet<_>>()
    };
    let expected = ["job", "ob ", "b 17,", " 17, ", "17, o", "7, ok", ", o", " ok"];
    assert_eq!(of("job 17, ok"), expected.map(str::to_owned).into());
    assert_eq!(of("1234"), BTreeSet::new());
    assert_eq!(of("12345"), ["12345".to_owned()].into());
    assert_eq!(of("abc1"), ["abc".to_owned()].into());
}
