use super::*;
use proptest::prelude::*;

#[test]
fn codes_are_frozen() {
    let codes: Vec<u8> = TAGS.iter().map(|&(tag, _)| tag as u8).collect();
    let expected: Vec<u8> = (0..=21).chain(32..=40).collect();
    assert_eq!(codes, expected);
    assert!(codes.iter().all(|&c| Tag::from_code(c).is_some_and(|t| t as u8 == c)));
    assert_eq!(Tag::from_code(22), None);
}

#[test]
fn meet_adopts_and_refuses() {
    let (text, int) = (Kind::of(Tag::Text), Kind::of(Tag::Integer));
    assert_eq!(Kind::NONE.meet(text), Some(text));
    assert_eq!(text.meet(Kind::NONE), Some(text));
    assert_eq!(text.meet(int), None);
    assert_eq!(Kind::other("a").meet(Kind::other("b")), None);
    assert_eq!(Kind::other("a").meet(Kind { tag: Tag::Array, name: "a" }), None);
}

proptest! {
    #[test]
    fn names_fit(name in ".{0,700}", other in ".{0,700}", common in "[aก😀]{0,300}") {
        let (name, other) = (format!("{common}{name}"), format!("{common}{other}"));
        let (short, other_short) = (fit(name.clone()), fit(other.clone()));
        prop_assert!(short.len() <= MAX_NAME && short.len() + 4 > name.len().min(MAX_NAME));
        prop_assert_eq!(name.len() <= MAX_NAME, short == name);
        prop_assert_eq!(&fit(short.clone()), &short);
        prop_assert_eq!(name == other, short == other_short);
    }
}

#[test]
fn tails_of_names_are_frozen() {
    let name = format!("row({})", vec!["integer"; 100].join(", "));
    let short = fit(name.clone());
    assert_eq!(short, format!("{}#{:016x}", &name[..495], hash(name.as_bytes())));
    assert_eq!(fit("ก".repeat(171)).len(), 495 + 17);
    assert_eq!(fit("é".repeat(300)).len(), 494 + 17);
}
