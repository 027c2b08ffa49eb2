use super::*;
use crate::conditions::tests::{Random, hashes, like_condition, may_match, windows};
use std::collections::BTreeSet;

fn folded(text: &str) -> String {
    let mut folded = String::new();
    text.chars().for_each(|c| {
        fold::fold(c.into(), |c| folded.push(char::from_u32(c).expect("folding keeps characters")))
    });
    folded
}

/// The windows of some texts, written out; an empty one is none.
fn of(texts: &[&str]) -> BTreeSet<Window> {
    texts
        .iter()
        .map(|text| {
            Window::of_last(
                text.chars().fold(0, |all, c| all << 32 | u128::from(u32::from(c))),
                text.chars().count() as u32,
            )
        })
        .collect()
}

/// LIKE as PostgreSQL's documentation has it, by trying everything; `None` for a pattern that ends
/// in an escape.
fn is_like(text: &[char], pattern: &[char]) -> Option<bool> {
    match pattern {
        [] => Some(text.is_empty()),
        ['%', rest @ ..] => {
            let matches = (0..=text.len())
                .map(|n| is_like(&text[n..], rest))
                .collect::<Option<Vec<_>>>()?;
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

/// A pattern that a text is like, or nearly so.
fn pattern_of(random: &mut Random, text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        match random.below(10) {
            0 => pattern.push('_'),
            1 => pattern.push('%'),
            2 => pattern.extend(['\\', character]),
            _ if "\\%_".contains(character) => pattern.extend(['\\', character]),
            _ => pattern.push(character),
        }
    }
    pattern
}

#[test]
fn every_match_of_a_pattern_has_its_windows() {
    let mut random = Random(1);
    let letters: Vec<char> = "abAB12\\%_éÉİıſ\u{307}漢字カ한ж".chars().collect();
    let pattern_letters: Vec<char> = "abAB12\\%%__éı\u{307}漢字한".chars().collect();
    let (mut matches, mut sharp) = (0, 0);
    for i in 0..200_000 {
        let text = random.text(&letters, 8);
        let pattern = if i % 2 == 0 {
            random.text(&pattern_letters, 7)
        } else {
            pattern_of(&mut random, &text)
        };
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let condition = like_condition(&pattern);
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
        windows_of(runs.join("\0").as_bytes(), Encoding::Utf8, LetterCase::Compared)
    };
    let same = |pattern: &str, runs: &[&str]| {
        let (found, expected) = (like_condition(pattern), of(runs));
        assert_eq!(hashes(&found), hashes(&expected), "{pattern}");
    };
    same("%abcde_fghi%", &["abcde", "fghi"]);
    same(r"a\%cd", &["a%cd"]);
    same(r"a\\c\_", &[r"a\c_"]);
    same(r"\a\b\c\d", &["abcd"]);
    same("%漢字_字漢%", &["漢字", "字漢"]);
    assert!(like_condition("%abc%def%").is_unknown());
    assert!(like_condition("").is_unknown());
    assert!(like_condition(r"abcdef\").is_unknown());
    assert_eq!(having(b"abcd", Encoding::Utf8), of(&["abcd"]));
}

#[test]
fn runs_of_ilike_end_at_what_locales_may_disagree_about() {
    let ilike = |pattern: &str| like(pattern.as_bytes(), Encoding::Utf8, LetterCase::Ignored);
    assert_eq!(ilike("%ABCD%"), ilike("abcd"));
    assert_eq!(ilike("%ПРИВЕТ%"), ilike("привет"));
    assert_eq!(ilike("%ΟΔΟΣ%"), ilike("οδος"));
    assert_eq!(ilike("abcÉdef"), like_condition("abcédef"));
    assert_eq!(ilike("%漢字%"), like_condition("漢字"));
    assert_eq!(hashes(&ilike("abcd\u{278}efgh")), hashes(&ilike("abcd%efgh")));
    assert!(ilike("ab\u{378}cd\u{278}").is_unknown());
    assert!(like(b"abcd", Encoding::Other, LetterCase::Ignored).is_unknown());
    assert!(!like(b"abcd", Encoding::Other, LetterCase::Compared).is_unknown());
}

#[test]
fn what_rust_makes_of_a_character_in_lower_case_folds_to_the_same() {
    // Unicode's own rules, without those of languages, which the tests with a server have. What is
    // beyond the table's Unicode is no letter that a pattern of ILIKE has.
    for character in '\0'..=char::MAX {
        let own = folded(&character.to_string());
        let lower = character.to_lowercase().to_string();
        assert!(
            folded(&lower) == own || lower.chars().all(|c| !fold::is_known(c.into())),
            "{character:?}"
        );
        assert_eq!(folded(&own), own, "{character:?}");
        let is_known = |text: &str| text.chars().all(|c| fold::is_known(c.into()));
        assert!(
            !fold::is_known(character.into()) || is_known(&lower) && is_known(&own),
            "{character:?}"
        );
    }
    assert_eq!(
        folded("xİbI\u{307}ıKſÌÍĨìíĩ"),
        "xibiiksi\u{300}i\u{301}i\u{303}i\u{300}i\u{301}i\u{303}"
    );
    assert_eq!(folded("ÄÖñΣς漢字🙂ЁЖ"), "äöñσσ漢字🙂ёж");
}

#[test]
fn gathered_windows_are_those_of_all_texts() {
    let mut gathered = Windows::default();
    let many: Vec<String> = (0..30_000).map(|i| format!("line {i} of many")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for texts in [
        &["abcabc", "BCD", "ab"][..],
        &["", "xyzzy"],
        &[],
        &many,
        &["a1b2c3"],
    ] {
        texts
            .iter()
            .for_each(|text| _ = gathered.add(text.as_bytes(), Encoding::Utf8));
        let expected: BTreeSet<u64> = texts
            .iter()
            .flat_map(|text| windows(text))
            .flat_map(Window::hashes)
            .collect();
        assert_eq!(gathered.is_empty(), expected.is_empty());
        let hashes = gathered.take();
        assert_eq!(hashes.len(), expected.len());
        assert_eq!(hashes.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn windows_are_characters_that_weigh_four() {
    assert_eq!(windows("GET/index"), of(&["get/", "et/i", "t/in", "/ind", "inde", "ndex"]));
    assert_eq!(windows("第17回会"), of(&["第17", "17回", "回会", "第1", "7回", "第", "回", "会"]));
    assert_eq!(windows("abc漢d"), of(&["bc漢", "c漢d", "c漢", "漢d", "漢"]));
    assert_eq!(windows("カナ한"), of(&["カナ", "ナ한", "한"]));
    assert_eq!(windows("中a中"), of(&["中a", "a中", "中"]));
    assert_eq!(windows("ン2"), of(&["ン2"]));
    assert_eq!(windows("abc"), of(&[]));
    assert_eq!(windows("Жёлт"), of(&["жёлт"]));
}

/// The windows of bytes that are no text of UTF-8: those of what can be read.
#[test]
fn a_run_is_read_the_same_within_damaged_bytes() {
    let has = |text: &[u8]| {
        let mut windows = BTreeSet::new();
        each_window(text, Encoding::Utf8, |window| _ = windows.insert(window));
        windows
    };
    let run = "漢字abcdж".as_bytes();
    let pieces: [&[u8]; 8] = [
        b"\xE6",
        b"\xE6\xBC",
        b"\xBC",
        b"\xFF",
        b"\xC2",
        b"\xF0\x90",
        b"a",
        b"",
    ];
    for before in pieces {
        for after in pieces {
            let text = [before, run, after].concat();
            assert!(has(&text).is_superset(&has(run)), "{text:X?}");
        }
    }
}

#[test]
fn different_windows_are_different_numbers() {
    let letters: Vec<char> = "a\u{1FFF}漢\u{10FFFF}".chars().collect();
    let texts = (0..4usize.pow(4)).flat_map(|n| (1..=4).map(move |length| (n, length)));
    let texts: BTreeSet<String> = texts
        .map(|(n, length)| (0..length).map(|i| letters[n >> (2 * i) & 3]).collect())
        .collect();
    let weighs = |text: &str| text.chars().map(|c| weight(c.into())).sum::<u32>();
    let possible: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|text| weighs(text) <= 5)
        .collect();
    assert_eq!(of(&possible).len(), possible.len());
}
