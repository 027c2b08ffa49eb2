use super::*;
use crate::memory::List;

#[test]
fn strings_are_escaped_where_they_must_be() {
    for (text, expected) in [
        ("", r#""""#),
        ("a/b", r#""a/b""#),
        ("a\"b\\", r#""a\"b\\""#),
        ("\u{8}\u{c}\n\r\t", r#""\b\f\n\r\t""#),
        ("\u{1}\u{b}\u{1f}\u{7f}", "\"\\u0001\\u000b\\u001f\u{7f}\""),
        ("é€😀", "\"é€😀\""),
    ] {
        let mut written = List::new();
        write_string(text.as_bytes(), &mut written);
        assert_eq!(String::from_utf8(written.into()).unwrap(), expected);
    }
}

#[test]
fn keys_go_by_length_first() {
    let mut keys = ["é", "b", "aa", "", "ab", "z"];
    keys.sort_by(|a, b| compare_keys(a.as_bytes(), b.as_bytes()));
    assert_eq!(keys, ["", "b", "z", "aa", "ab", "é"]);
}
