//! Numbers of kind numeric, as plain decimal text: no exponent, no zeros at the end of the fraction, no point without a
//! fraction. They are read from decimal text, or given in groups of four digits, as PostgreSQL stores them.

use super::Sink;
use crate::memory;

/// Decimal digits of a group.
const GROUP: usize = 4;
/// Digits before the point that PostgreSQL's type can have.
const MOST_WHOLE: i64 = 131_072;
/// Digits after it.
const MOST_FRACTION: i64 = 16_383;

/// A number of kind numeric.
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric(Value);

#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// One that is written as this word.
    Special(&'static str),
    /// The arguments of [`write`].
    Finite { is_negative: bool, weight: i32, groups: Vec<u16> },
}

impl Numeric {
    /// Reads a decimal: digits, at most one point, an optional exponent; or `NaN`, `Infinity`, `-Infinity`, in any
    /// case. `None` for other text, and for a number with more than 131,072 digits before the point or 16,383 after it,
    /// which PostgreSQL's type doesn't have.
    ///
    /// ```
    /// # use pg_bloom_core::Numeric;
    /// assert_eq!(Numeric::parse("1.50"), Numeric::parse("15e-1"));
    /// assert_eq!(Numeric::parse("1e200000"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Numeric> {
        let (is_negative, magnitude) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if magnitude.eq_ignore_ascii_case("nan") {
            return Some(Numeric(Value::Special("NaN")));
        }
        if magnitude.eq_ignore_ascii_case("infinity") {
            return Some(Numeric(Value::Special(if is_negative { "-Infinity" } else { "Infinity" })));
        }
        let (number, exponent) = match magnitude.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
            None => (magnitude, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        finite(is_negative, whole, fraction, exponent).map(Numeric)
    }

    /// Writes its canonical bytes.
    pub(crate) fn write(&self, into: &mut impl Sink) {
        match &self.0 {
            Value::Special(word) => into.write(word.as_bytes()),
            Value::Finite { is_negative, weight, groups } => {
                write(*is_negative, *weight, groups.iter().copied(), into);
            }
        }
    }
}

/// The number that has these digits before and after the point, times a power of ten.
fn finite(is_negative: bool, whole: &str, fraction: &str, exponent: i64) -> Option<Value> {
    if (whole.is_empty() && fraction.is_empty()) || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut digits = memory::copy(whole.as_bytes());
    memory::reserve(&mut digits, fraction.len());
    digits.extend_from_slice(fraction.as_bytes());
    // The number is its digits, without zeros at either end, times this power of ten.
    let mut exponent = exponent.checked_sub(fraction.len() as i64)?;
    while digits.last() == Some(&b'0') {
        digits.pop();
        exponent = exponent.checked_add(1)?;
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[zeros..];
    if digits.is_empty() {
        return Some(Value::Finite { is_negative: false, weight: 0, groups: Vec::new() });
    }
    if exponent < -MOST_FRACTION || exponent.checked_add(digits.len() as i64)? > MOST_WHOLE {
        return None;
    }
    // Groups end at powers of 10,000.
    let (last, shift) = (exponent.div_euclid(GROUP as i64), exponent.rem_euclid(GROUP as i64) as usize);
    let count = (digits.len() + shift).div_ceil(GROUP);
    let mut groups = memory::zeroed::<u16>(count);
    for (i, digit) in digits.iter().rev().enumerate() {
        let place = i + shift;
        groups[count - 1 - place / GROUP] += u16::from(digit - b'0') * 10u16.pow((place % GROUP) as u32);
    }
    Some(Value::Finite { is_negative, weight: last as i32 + count as i32 - 1, groups })
}

/// The text of groups that are 0, written at once.
const ZEROS: [u8; 1024] = [b'0'; 1024];

/// Writes a finite number: the sum of `groups[i] · 10000^(weight - i)`, negated if `is_negative`. Each group
/// is below 10,000. Zero has no sign.
pub fn write(is_negative: bool, weight: i32, groups: impl Iterator<Item = u16> + Clone, into: &mut impl Sink) {
    let (skipped, used) = significant(groups.clone());
    if used == 0 {
        return into.write(b"0");
    }
    let groups = groups.skip(skipped).take(used - skipped);
    let weight = i64::from(weight) - skipped as i64;
    if is_negative {
        into.write(b"-");
    }
    let whole = usize::try_from(weight + 1).unwrap_or(0);
    let mut digits = groups.clone().take(whole);
    match digits.next() {
        Some(first) => {
            let text = text(first);
            let zeros = text.iter().take(GROUP - 1).take_while(|&&digit| digit == b'0').count();
            into.write(&text[zeros..]);
        }
        None => into.write(b"0"),
    }
    let mut written = 1;
    for group in digits {
        into.write(&text(group));
        written += 1;
    }
    if whole > 0 {
        zeros((whole - written) * GROUP, into);
    }
    fraction(weight, groups.skip(whole), into);
}

/// Writes what comes after the point: `groups` is what is left of a number whose first group has this weight.
fn fraction(weight: i64, groups: impl Iterator<Item = u16>, into: &mut impl Sink) {
    let mut groups = groups.peekable();
    if groups.peek().is_none() {
        return;
    }
    into.write(b".");
    zeros(usize::try_from(-1 - weight).unwrap_or(0) * GROUP, into);
    while let Some(group) = groups.next() {
        let text = text(group);
        let is_last = groups.peek().is_none();
        let end = if is_last { text.iter().rposition(|&digit| digit != b'0').map_or(0, |i| i + 1) } else { GROUP };
        into.write(&text[..end]);
    }
}

/// Which groups are between the first and the last that are not 0: from, and before.
fn significant(groups: impl Iterator<Item = u16>) -> (usize, usize) {
    let mut range = None;
    for (i, _) in groups.enumerate().filter(|&(_, group)| group != 0) {
        let from = range.map_or(i, |(from, _)| from);
        range = Some((from, i + 1));
    }
    range.unwrap_or((0, 0))
}

fn text(group: u16) -> [u8; GROUP] {
    [1000, 100, 10, 1].map(|unit| b'0' + (group / unit % 10) as u8)
}

fn zeros(mut count: usize, into: &mut impl Sink) {
    while count > 0 {
        let now = count.min(ZEROS.len());
        into.write(&ZEROS[..now]);
        count -= now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: &str) -> Option<String> {
        let mut written = Vec::new();
        Numeric::parse(text)?.write(&mut written);
        Some(String::from_utf8(written).expect("canonical text is ASCII"))
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
        let mut text = Vec::new();
        write(is_negative, weight, groups.iter().copied(), &mut text);
        String::from_utf8(text).unwrap()
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
}
