//! Numbers of kind numeric, read from decimal text.

use super::Sink;
use super::decimal;
use crate::memory;

/// Digits of a group.
const GROUP: i64 = 4;
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
    /// The arguments of [`decimal::write`].
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
                decimal::write(*is_negative, *weight, groups.iter().copied(), into);
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
    let (last, shift) = (exponent.div_euclid(GROUP), exponent.rem_euclid(GROUP) as usize);
    let count = (digits.len() + shift).div_ceil(GROUP as usize);
    let mut groups = memory::zeroed::<u16>(count);
    for (i, digit) in digits.iter().rev().enumerate() {
        let place = i + shift;
        groups[count - 1 - place / 4] += u16::from(digit - b'0') * 10u16.pow((place % 4) as u32);
    }
    Some(Value::Finite { is_negative, weight: last as i32 + count as i32 - 1, groups })
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
}
