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
fn unify_adopts_and_refuses() {
    let text = Kind::unnamed(Tag::Text);
    assert_eq!(text.unify(text), Some(text));
    assert_eq!(Kind::NONE.unify(text), Some(text));
    assert_eq!(text.unify(Kind::NONE), Some(text));
    assert_eq!(text.unify(Kind::unnamed(Tag::Integer)), None);

    let inet = Kind::other("inet");
    assert_eq!(inet.unify(inet), Some(inet));
    assert_eq!(inet.unify(Kind::other("cidr")), None);
    assert_eq!(inet.unify(Kind { tag: Tag::Array, name: "inet" }), None);
}

proptest! {
    /// Long names become short, and different names stay different.
    #[test]
    fn shortened_names_are_short_and_different(name in ".{0,700}", other in ".{0,700}", common in "[aก😀]{0,300}") {
        let name = format!("{common}{name}");
        let other = format!("{common}{other}");
        let short = shortened_name(name.clone());
        let other_short = shortened_name(other.clone());

        // A character of up to four bytes may not fit any more.
        prop_assert!(short.len() <= MAX_NAME_BYTES);
        prop_assert!(short.len() + 4 > name.len().min(MAX_NAME_BYTES));
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
