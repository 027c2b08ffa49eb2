use super::*;
use proptest::prelude::*;

fn plain(text: &str) -> Option<String> {
    Numeric::parse(text)
        .map(|number| String::from_utf8(number.0.into()).expect("canonical text is ASCII"))
}

#[test]
fn special_values_and_limits() {
    for (text, expected) in [
        ("nan", Some("NaN")),
        ("-Infinity", Some("-Infinity")),
        ("+INFINITY", Some("Infinity")),
        ("-0.00", Some("0")),
        (".5", Some("0.5")),
        ("5.", Some("5")),
        ("1.23E+5", Some("123000")),
        ("", None),
        (".", None),
        ("1e", None),
        ("1.2.3", None),
        ("0x10", None),
        ("1e-16384", None),
        ("1e99999999999999999999", None),
        ("1e9223372036854775807", None),
    ] {
        assert_eq!(plain(text).as_deref(), expected, "{text}");
    }
    assert_eq!(plain("1e131071").map(|text| text.len()), Some(131_072));
    assert_eq!(plain("1e131072"), None);
}

proptest! {
    /// Moving the point and adding zeros doesn't change a number.
    #[test]
    fn equal_numbers_are_written_alike(digits in "[1-9][0-9]{0,30}", point in -40i64..40, zeros in 0usize..9) {
        let exact = plain(&format!("{digits}e{point}"));
        let padded = format!("{}{digits}{}", "0".repeat(zeros), "0".repeat(zeros));
        prop_assert_eq!(&plain(&format!("{padded}e{}", point - zeros as i64)), &exact);
        let (whole, fraction) = digits.split_at(digits.len() / 2);
        prop_assert_eq!(&plain(&format!("{whole}.{fraction}e{}", point + fraction.len() as i64)), &exact);
        let trimmed = digits.trim_end_matches('0');
        if point >= 0 {
            prop_assert_eq!(exact, Some(format!("{digits}{}", "0".repeat(point as usize))));
        } else if (trimmed.len() as i64) < -point - (digits.len() - trimmed.len()) as i64 {
            let places = (-point) as usize - digits.len();
            prop_assert_eq!(exact, Some(format!("0.{}{trimmed}", "0".repeat(places))));
        }
    }
}

fn written(is_negative: bool, weight: i32, groups: &[u16]) -> String {
    let sign = if is_negative { Sign::Negative } else { Sign::Positive };
    let mut text = List::new();
    write_groups(sign, weight, groups.iter().copied(), &mut text);
    String::from_utf8(text.into()).unwrap()
}

#[test]
fn numbers_are_plain() {
    for (is_negative, weight, groups, expected) in [
        (false, 0, &[][..], "0"),
        (true, 3, &[0, 0], "0"),
        (false, 0, &[1], "1"),
        (false, 0, &[10], "10"),
        (false, 1, &[1], "10000"),
        (true, 1, &[1, 20], "-10020"),
        (false, 7, &[1], "10000000000000000000000000000"),
        (false, -1, &[5000], "0.5"),
        (true, -1, &[500], "-0.05"),
        (false, -2, &[5], "0.00000005"),
        (false, 0, &[1, 5000, 0], "1.5"),
        (false, 0, &[0, 5000], "0.5"),
        (false, 1, &[0, 5], "5"),
        (false, 0, &[12, 3400, 100], "12.340001"),
        (false, 2, &[12, 0, 0, 1], "1200000000.0001"),
    ] {
        assert_eq!(written(is_negative, weight, groups), expected, "{groups:?}, {weight}");
    }
}

#[test]
fn many_zeros_are_written() {
    assert_eq!(written(false, 32_767, &[1]).len(), 131_069);
    assert_eq!(written(false, -4_000, &[1]).len(), 16_002);
}

proptest! {
    /// Against the same digits written out one by one.
    #[test]
    fn digits_are_those_of_a_naive_text(
        is_negative: bool,
        weight in -5i32..6,
        groups in proptest::collection::vec(prop_oneof![Just(0u16), 0u16..10_000], 0..8),
    ) {
        let mut whole = String::new();
        let mut fraction = String::new();
        let last = weight - groups.len() as i32;
        for place in (last.min(-6)..=weight.max(6)).rev() {
            let group = usize::try_from(weight - place).ok().and_then(|i| groups.get(i)).copied().unwrap_or(0);
            let side = if place >= 0 { &mut whole } else { &mut fraction };
            side.push_str(&format!("{group:04}"));
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let mut expected = if whole.is_empty() { "0".to_owned() } else { whole.to_owned() };
        if !fraction.is_empty() {
            expected = format!("{expected}.{fraction}");
        }
        if is_negative && expected != "0" {
            expected.insert(0, '-');
        }
        prop_assert_eq!(written(is_negative, weight, &groups), expected);
    }
}
