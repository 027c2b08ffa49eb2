use super::*;
use crate::conditions::automaton::{Automaton, Transition};
use crate::conditions::stand_ins::StandIns;
use std::collections::BTreeSet;

fn windows(text: &str) -> BTreeSet<Window> {
    let mut windows = BTreeSet::new();
    each_window(text.as_bytes(), Encoding::Utf8, |window| {
        windows.insert(window);
    });
    windows
}

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
            Window::of(
                text.chars().fold(0, |all, c| all << 32 | u128::from(u32::from(c))),
                text.chars().count() as u32,
            )
        })
        .collect()
}

/// The hashes of a condition, in any order.
fn hashes(condition: &Condition) -> BTreeSet<String> {
    format!("{condition:?}")
        .split(|c: char| !c.is_ascii_digit())
        .map(str::to_owned)
        .collect()
}

/// What a text must have that is LIKE a pattern.
fn like_condition(pattern: &str) -> Condition {
    like(pattern.as_bytes(), Encoding::Utf8, false)
}

/// Whether a text with these windows may match.
fn may_match(text: &str, condition: &Condition) -> bool {
    let has: BTreeSet<u64> = windows(text).into_iter().flat_map(Window::hashes).collect();
    let found = condition.slots(1, &mut |hash| Ok::<_, ()>(u128::from(has.contains(&hash))));
    found == Ok(1)
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

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        crate::hash::reduce(crate::hash::word(self.0, 7), n as u64) as usize
    }

    fn text(&mut self, letters: &[char], most: usize) -> String {
        (0..self.below(most + 1))
            .map(|_| letters[self.below(letters.len())])
            .collect()
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
    let letters: Vec<char> = "abAB12\\%_éÉİıſ\u{307}漢字カ한ж".chars().collect();
    let pattern_letters: Vec<char> = "abAB12\\%%__éı\u{307}漢字한".chars().collect();
    let (mut matches, mut sharp) = (0, 0);
    for i in 0..200_000 {
        let text = random.text(&letters, 8);
        let pattern = if i % 2 == 0 {
            random.text(&pattern_letters, 7)
        } else {
            random.pattern_of(&text)
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
    let of = |runs: &[&str]| windows_of(runs.join("\0").as_bytes(), Encoding::Utf8, false);
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
    let ilike = |pattern: &str| like(pattern.as_bytes(), Encoding::Utf8, true);
    assert_eq!(ilike("%ABCD%"), ilike("abcd"));
    assert_eq!(ilike("%ПРИВЕТ%"), ilike("привет"));
    assert_eq!(ilike("%ΟΔΟΣ%"), ilike("οδος"));
    assert_eq!(ilike("abcÉdef"), like_condition("abcédef"));
    assert_eq!(ilike("%漢字%"), like_condition("漢字"));
    assert_eq!(hashes(&ilike("abcd\u{278}efgh")), hashes(&ilike("abcd%efgh")));
    assert!(ilike("ab\u{378}cd\u{278}").is_unknown());
    assert!(like(b"abcd", Encoding::Other, true).is_unknown());
    assert!(!like(b"abcd", Encoding::Other, false).is_unknown());
}

/// An automaton for a list of steps between neighbouring states, each one of some texts, after any
/// characters.
fn automaton(steps: &[&[&str]]) -> Automaton {
    let mut automaton = Automaton { transitions: vec![Vec::new()], ..Automaton::default() };
    let color = |automaton: &mut Automaton, c: char| {
        automaton.colors.push(Some(vec![c.into()]));
        automaton.colors.len() - 1
    };
    automaton.colors.push(None);
    automaton.transitions[0].push(Transition { color: 0, to: 0 });
    for c in "abcdefxy".chars() {
        let color = color(&mut automaton, c);
        automaton.transitions[0].push(Transition { color, to: 0 });
    }
    let mut from = 0;
    for texts in steps {
        let to = automaton.transitions.len();
        automaton.transitions.push(Vec::new());
        for text in *texts {
            let (mut at, count) = (from, text.chars().count());
            for (i, c) in text.chars().enumerate() {
                let color = color(&mut automaton, c);
                let next = if i + 1 == count { to } else { automaton.transitions.len() };
                if next != to {
                    automaton.transitions.push(Vec::new());
                }
                automaton.transitions[at].push(Transition { color, to: next });
                at = next;
            }
        }
        from = to;
    }
    automaton.last = from;
    automaton
}

#[test]
fn a_match_of_an_automaton_has_windows_of_each_cut() {
    let condition = |steps: &[&[&str]]| automaton(steps).condition(Encoding::Utf8);
    assert_eq!(condition(&[&["abcdef"]]), like_condition("abcdef"));
    assert_eq!(condition(&[&["abCDef"]]), like_condition("abcdef"));
    assert_eq!(
        hashes(&condition(&[&["a"], &["b", "c"], &["def"]])),
        hashes(&Condition::all([
            Condition::any([like_condition("abde"), like_condition("acde")]),
            Condition::any([like_condition("bdef"), like_condition("cdef")]),
        ]))
    );
    assert_eq!(condition(&[&["漢字", "漢字"]]), like_condition("漢字"));
    assert_eq!(
        hashes(&condition(&[&["ab"], &["cd", "xy"], &["ef"]])),
        hashes(&Condition::all([
            Condition::any([like_condition("abcd"), like_condition("abxy")]),
            Condition::any([like_condition("bcde"), like_condition("bxye")]),
            Condition::any([like_condition("cdef"), like_condition("xyef")]),
        ]))
    );
    assert!(condition(&[&["abc"]]).is_unknown());
    assert!(condition(&[&["abcdef", "ab"]]).is_unknown());
    assert!(
        Automaton {
            transitions: vec![Vec::new(); 2],
            last: 1,
            ..Automaton::default()
        }
        .condition(Encoding::Utf8)
        .is_unknown()
    );
}

/// Numbers below `n`, from a seed.
fn below(seed: &mut u64, n: usize) -> usize {
    *seed = crate::hash::hash_with_seed(&seed.to_le_bytes(), 1);
    (*seed % n as u64) as usize
}

#[test]
fn texts_that_random_automata_match_are_found() {
    const CHARACTERS: [&str; 7] = ["a", "bB", "c", "dDeé", "漢", "字", "İiIı"];
    let (mut told, mut seed) = (0, 7);
    for _ in 0..4000 {
        let states = 3 + below(&mut seed, 9);
        let mut colors: Vec<_> = CHARACTERS
            .iter()
            .map(|of| Some(of.chars().map(u32::from).collect()))
            .collect();
        colors.push(None);
        let mut transitions = vec![Vec::new(); states];
        for (state, out) in transitions.iter_mut().enumerate().take(states - 1) {
            for _ in 0..1 + below(&mut seed, 2) {
                let to = if below(&mut seed, 3) > 0 { state + 1 } else { below(&mut seed, states) };
                out.push(Transition { color: below(&mut seed, 15) % 8, to });
            }
            if below(&mut seed, 4) == 0 {
                out.push(Transition { color: 7, to: state });
            }
        }
        let automaton = Automaton { transitions, colors, initial: 0, last: states - 1 };
        let condition = automaton.condition(Encoding::Utf8);
        told += usize::from(!condition.is_unknown());
        // A walk through it, with something before and behind.
        let (mut text, mut state) = (String::from("ab"), 0);
        for _ in 0..60 {
            if state == automaton.last {
                assert!(
                    may_match(&(text.clone() + "xab"), &condition),
                    "{text}: {automaton:?} {condition:?}"
                );
                break;
            }
            let out = &automaton.transitions[state];
            let Transition { color, to } = out[below(&mut seed, out.len())];
            let of: Vec<char> = CHARACTERS.get(color).unwrap_or(&"a漢xyz").chars().collect();
            text.push(of[below(&mut seed, of.len())]);
            state = to;
        }
    }
    assert!(told > 1000, "{told}");
}

#[test]
fn letters_stand_in_for_characters_that_are_only_compared() {
    let of = |pattern: &str, ignore_case| StandIns::new(pattern.as_bytes(), ignore_case);
    let stand_ins = of(r"漢字+(か|漢)é\\ [a-z]\d", true).expect("they are only compared");
    assert_eq!(stand_ins.pattern, "\u{780}\u{781}+(\u{782}|\u{780})é\\\\ [a-z]\\d".as_bytes());
    assert_eq!(
        ['\u{780}', '\u{782}', '\u{783}', 'a'].map(|c| stand_ins.original(c.into())),
        ['漢', 'か', '\u{783}', 'a'].map(u32::from)
    );
    for refused in [
        "abc",
        "é",
        "[一-龥]",
        r"漢\w",
        r"漢\y",
        r"\漢",
        "(?x)漢 字",
        "***=漢",
        "[[:alpha:]]漢",
        "漢\u{781}",
        r"。\d",
        "[é-漢]",
    ] {
        assert!(of(refused, false).is_none(), "{refused}");
    }
    assert!(of("Ａ", false).is_some());
    assert!(of("Ａ", true).is_none());
    let many: String = (0..39)
        .map(|i| char::from_u32(0x4E00 + i).expect("one of Han"))
        .collect();
    assert!(of(&many, false).is_none());
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
