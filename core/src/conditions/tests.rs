use super::Condition::{All, Any, Has, Unknown};
use super::text::{Encoding, LetterCase, each_window, like};
use super::*;
use std::collections::BTreeSet;

/// Returns the windows of a text.
pub(super) fn windows(text: &str) -> BTreeSet<Window> {
    let mut windows = BTreeSet::new();
    each_window(text.as_bytes(), Encoding::Utf8, |window| {
        windows.insert(window);
    });
    windows
}

/// Returns the hashes of a condition, whatever their order.
pub(super) fn hashes(condition: &Condition) -> BTreeSet<String> {
    format!("{condition:?}")
        .split(|c: char| !c.is_ascii_digit())
        .map(str::to_owned)
        .collect()
}

/// Returns what a text must have that is LIKE a pattern.
pub(super) fn like_condition(pattern: &str) -> Condition {
    like(pattern.as_bytes(), Encoding::Utf8, LetterCase::Compared)
}

/// Returns whether a text with the windows of this one may match.
pub(super) fn may_match(text: &str, condition: &Condition) -> bool {
    let has: BTreeSet<u64> = windows(text).into_iter().flat_map(Window::hashes).collect();
    let found = condition.slots(1, &mut |hash| Ok::<_, ()>(u128::from(has.contains(&hash))));
    found == Ok(1)
}

/// Numbers that look random, the same in each run.
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        crate::hash::reduce(crate::hash::word(self.0, 7), n as u64) as usize
    }

    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns a text of at most so many of these letters.
    pub fn text(&mut self, letters: &[char], most: usize) -> String {
        let length = self.below(most + 1);
        (0..length).map(|_| *self.one_of(letters)).collect()
    }
}

#[test]
fn hashes_are_frozen() {
    // By Python's xxhash: xxh64(bytes, seed).
    let hashes = [
        member(crate::hash::hash(b"abc")),
        word(b"abc"),
        key(b"abc"),
        JsonPath::ROOT
            .key(b"a")
            .key(b"b")
            .leaf(Leaf::String, |stream| stream.write(b"abc")),
        JsonPath::ROOT.leaf(Leaf::Null, |_| ()),
    ];
    let expected = [
        0x18E3_CBF5_E8E4_C818,
        0x4CAE_0D84_933B_C718,
        0x28D2_A0D4_8F7C_2643,
        0x5BF6_00D6_44B5_614C,
        0x72B1_2317_E8A8_B952,
    ];
    assert_eq!(hashes, expected);
    let of = |text: &str| {
        let characters = text.chars().fold(0, |all, c| all << 32 | u128::from(u32::from(c)));
        Window::of_last(characters, text.chars().count() as u32)
            .hashes()
            .collect::<Vec<u64>>()
    };
    assert_eq!(of("abcd"), [0xAD8D_4989_510B_FE34]);
    assert_eq!(of("漢字"), [0x31F7_8000_7A8B_DCB0, 0x17E3_53C4_1787_8A1E]);
    assert_eq!(of("漢"), [0x4DF5_A13F_B7BC_8026]);
    assert_eq!(of("漢a"), [0x8D30_AB01_2B3A_CED4, 0x7B5F_511D_36D6_827A]);
}

#[test]
fn parts_of_different_kinds_have_different_hashes() {
    let whole = crate::hash::hash(b"abc");
    let window = Window::of_last(u128::from(u32::from('漢')) << 32 | 0x5B57, 2);
    let mut hashes = vec![whole, member(whole), word(b"abc"), key(b"abc")];
    hashes.extend(window.hashes());
    for (i, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..i].contains(hash));
    }
}

#[test]
fn unknown_is_left_out_of_all_and_makes_any_unknown() {
    assert_eq!(Condition::all([Unknown, Has(1)]), Has(1));
    assert_eq!(Condition::all([Unknown, Unknown]), Unknown);
    assert_eq!(Condition::all([]), Unknown);
    assert_eq!(Condition::any([Unknown, Has(1)]), Unknown);
    assert_eq!(Condition::any([]), Condition::NONE);
    assert_eq!(Condition::all([Has(1), Condition::NONE]), Condition::NONE);
    assert_eq!(Condition::any([Has(1), Condition::NONE]), Has(1));
    assert_eq!(
        Condition::all([Has(1), All(List::from([Has(2), Has(3)]))]),
        All(List::from([Has(1), Has(2), Has(3)]))
    );
    assert_eq!(Condition::all_of(List::from([3, 1, 3, 2]), 2), All(List::from([Has(1), Has(2)])));
}

#[test]
fn slots_are_those_for_which_the_condition_holds() {
    // Slot s has the hashes that are bits of s.
    let having = |bit: u64| {
        (0..128)
            .filter(|s| s >> bit & 1 == 1)
            .fold(0, |slots, s| slots | 1u128 << s)
    };
    let condition = All(List::from([
        Any(List::from([Has(0), Has(1)])),
        Has(2),
        Any(List::from([All(List::from([Has(0), Has(3)])), Has(4)])),
    ]));
    let holds = |s: u32| {
        let has = |bit: u32| s >> bit & 1 == 1;
        (has(0) || has(1)) && has(2) && (has(0) && has(3) || has(4))
    };
    let expected = (0..128).filter(|&s| holds(s)).fold(0, |slots, s| slots | 1u128 << s);
    let found = condition.slots(u128::MAX, &mut |hash| Ok::<_, ()>(having(hash)));
    assert_eq!(found, Ok(expected));
}

#[test]
fn what_cannot_change_the_answer_is_not_asked_for() {
    let mut asked = Vec::new();
    let condition = All(List::from([Has(1), Has(2)]));
    let found = condition.slots(u128::MAX, &mut |hash| {
        asked.push(hash);
        Ok::<_, ()>(0)
    });
    assert_eq!((found, asked), (Ok(0), vec![1]));
    assert_eq!(Unknown.slots(5, &mut |_| Err(())), Ok(5));
}
