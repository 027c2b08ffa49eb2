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
    let (text, int) = (Kind::unnamed(Tag::Text), Kind::unnamed(Tag::Integer));
    assert_eq!(Kind::NONE.unify(text), Some(text));
    assert_eq!(text.unify(Kind::NONE), Some(text));
    assert_eq!(text.unify(int), None);
    assert_eq!(Kind::other("a").unify(Kind::other("b")), None);
    assert_eq!(Kind::other("a").unify(Kind { tag: Tag::Array, name: "a" }), None);
}

proptest! {
    #[test]
    fn names_fit(name in ".{0,700}", other in ".{0,700}", common in "[aก😀]{0,300}") {
        let (name, other) = (format!("{common}{name}"), format!("{common}{other}"));
        let (short, other_short) = (shortened_name(name.clone()), shortened_name(other.clone()));
        prop_assert!(short.len() <= MAX_NAME_BYTES && short.len() + 4 > name.len().min(MAX_NAME_BYTES));
        prop_assert_eq!(name.len() <= MAX_NAME_BYTES, short == name);
        prop_assert_eq!(&shortened_name(short.clone()), &short);
        prop_assert_eq!(name == other, short == other_short);
    }
}

#[test]
fn tails_of_names_are_frozen() {
    let name = format!("row({})", vec!["integer"; 100].join(", "));
    let short = shortened_name(name.clone());
    assert_eq!(short, format!("{}#{:016x}", &name[..495], hash(name.as_bytes())));
    assert_eq!(shortened_name("ก".repeat(171)).len(), 495 + 17);
    assert_eq!(shortened_name("é".repeat(300)).len(), 494 + 17);
}
