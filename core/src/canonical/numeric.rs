//! Numbers of kind numeric, as plain decimal text: no exponent, no zeros at the end of the
//! fraction, no point without a fraction. They are read from decimal text, or given in groups of
//! four digits, as PostgreSQL stores them.

use super::Sink;
use crate::memory::List;
use std::iter;
use std::ops::Range;

/// The most digits before the point that PostgreSQL's type can have.
const MOST_WHOLE_DIGITS: i64 = 131_072;
/// The most digits after the point that PostgreSQL's type can have.
const MOST_FRACTION_DIGITS: i64 = 16_383;

/// The sign of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Positive,
    Negative,
}

/// A number of kind numeric: its canonical bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric(pub(crate) List<u8>);

impl Numeric {
    /// Reads a decimal: digits, at most one point, an optional exponent; or `NaN`, `Infinity`,
    /// `-Infinity`, in any case.
    ///
    /// Returns `None` for other text, and for a number that PostgreSQL's type doesn't have: one
    /// with more than 131,072 digits before the point or 16,383 after it.
    ///
    /// ```
    /// # use pg_bloom_core::Numeric;
    /// assert_eq!(Numeric::parse("1.50"), Numeric::parse("15e-1"));
    /// assert_eq!(Numeric::parse("1e200000"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Numeric> {
        let (minus, magnitude) = match text.strip_prefix('-') {
            Some(magnitude) => ("-", magnitude),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        if magnitude.eq_ignore_ascii_case("nan") {
            return Some(Numeric(b"NaN".into()));
        }
        if magnitude.eq_ignore_ascii_case("infinity") {
            return Some(Numeric(format!("{minus}Infinity").into_bytes().into()));
        }

        let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (magnitude, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

        let decimal = Decimal::parse(whole, fraction, exponent)?;
        if decimal.digits.is_empty() {
            // Zero has no sign.
            return Some(Numeric(b"0".into()));
        }
        let plain_text = decimal.plain_text(minus)?;
        Some(Numeric(plain_text))
    }
}

/// A finite number of no sign: an integer, times ten to the power of `exponent`.
///
/// Example: 0.0120 has the digits `12` and the exponent -3.
struct Decimal {
    /// The decimal digits of the integer, in ASCII, without zeros at either end; none for zero.
    digits: List<u8>,
    exponent: i64,
}

impl Decimal {
    /// Returns the decimal number that is written with the digits `whole` before the point and the
    /// digits `fraction` after it, times ten to the power of `exponent`. Zeros at both ends of the
    /// digits are dropped: 12.50 and exponent 1 become the digits 125 and the exponent 0.
    ///
    /// Returns `None` if there is no digit, or a character that isn't a digit, or if the exponent
    /// leaves the range of an `i64`.
    fn parse(whole: &str, fraction: &str, exponent: i64) -> Option<Decimal> {
        let characters = || whole.bytes().chain(fraction.bytes());
        let has_digits = characters().next().is_some();
        let has_only_digits = characters().all(|character| character.is_ascii_digit());
        if !has_digits || !has_only_digits {
            return None;
        }

        // The point moves behind the last digit, and zeros there become part of the exponent.
        let mut digits = characters().collect::<List<_>>();
        let mut exponent = exponent.checked_sub(fraction.len() as i64)?;
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent = exponent.checked_add(1)?;
        }

        let leading_zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.drain(..leading_zeros);
        Some(Decimal { digits, exponent })
    }

    /// Returns the number as decimal text without an exponent, such as `1200`, `0.012` or `1.2` for
    /// the digits `12`. It must not be zero. `minus` is written before it: a minus sign or nothing.
    ///
    /// Returns `None` if it has more digits than PostgreSQL's type allows.
    fn plain_text(&self, minus: &str) -> Option<List<u8>> {
        let Decimal { digits, exponent } = self;
        // Negative for a number below 0.1, which begins with zeros after the point: -1 means one
        // zero.
        let digits_before_point = exponent.checked_add(digits.len() as i64)?;
        let digits_after_point = exponent.checked_neg()?;
        if digits_before_point > MOST_WHOLE_DIGITS || digits_after_point > MOST_FRACTION_DIGITS {
            return None;
        }

        // Zeros stand between the digits and the point: behind the digits of a multiple of ten, or
        // before those of a number below 0.1.
        let num_zeros = if *exponent > 0 { *exponent } else { (-digits_before_point).max(0) };
        let room = minus.len() + b"0.".len() + digits.len() + num_zeros as usize;
        let mut text = List::with_capacity(room);
        text.extend_from_slice(minus.as_bytes());

        let zeros = iter::repeat_n(b'0', num_zeros as usize);
        if digits_after_point <= 0 {
            text.extend_from_slice(digits);
            text.extend(zeros);
        } else if digits_before_point <= 0 {
            text.extend_from_slice(b"0.");
            text.extend(zeros);
            text.extend_from_slice(digits);
        } else {
            let (whole, fraction) = digits.split_at(digits_before_point as usize);
            text.extend_from_slice(whole);
            text.push(b'.');
            text.extend_from_slice(fraction);
        }
        Some(text)
    }
}

/// Writes a finite number as decimal text without an exponent, and without zeros at its end. Zero
/// is written without a sign.
///
/// The number is given as PostgreSQL stores it: in groups of four decimal digits, each from 0 to
/// 9,999. Group i, counted from 0, is multiplied by 10,000 to the power of `weight - i`.
///
/// Example: weight 0 and the groups 12, 3400, 100 stand for 12 · 10,000^0 + 3400 · 10,000^-1 + 100
/// · 10,000^-2. The point follows the group of power 0: `12.3400 0100`. Without its last zeros,
/// that is written as `12.340001`.
pub fn write_groups(
    sign: Sign,
    weight: i32,
    groups: impl Iterator<Item = u16> + Clone,
    into: &mut impl Sink,
) {
    let significant = significant_groups(groups.clone());
    if significant.is_empty() {
        return into.write(b"0");
    }
    if sign == Sign::Negative {
        into.write(b"-");
    }

    // The powers of 10,000 of the first and the last group that is not 0.
    let first_power = i64::from(weight) - significant.start as i64;
    let last_power = i64::from(weight) - (significant.end as i64 - 1);
    let mut groups = groups.skip(significant.start);
    write_whole(first_power, &mut groups, into);
    write_fraction(first_power, last_power, &mut groups, into);
}

/// Writes the digits of a number before its point: `0` if it is below 1.
///
/// `groups` must begin with the group of the power `first_power` of 10,000, which is the first that
/// is not 0. The groups of the powers from there down to 0 are taken from it; after its end, groups
/// are 0. Example: 12, 5 with the first power 2 is written as `12` `0005` `0000`.
fn write_whole(first_power: i64, groups: &mut impl Iterator<Item = u16>, into: &mut impl Sink) {
    if first_power < 0 {
        return into.write(b"0");
    }
    let first_group = groups.next().unwrap_or(0);
    into.write(without_leading_zeros(&digits_of(first_group)));
    for _ in 0..first_power {
        let group = groups.next().unwrap_or(0);
        into.write(&digits_of(group));
    }
}

/// Writes the point of a number and the digits after it; nothing if there are none.
///
/// `first_power` and `last_power` are the powers of 10,000 of the first and the last group that is
/// not 0. `groups` must begin with the first group after the point that is stored. Example: 5, 700
/// with the first power -2 and the last power -3 is written as `.` `0000` `0005` `07`.
fn write_fraction(
    first_power: i64,
    last_power: i64,
    groups: &mut impl Iterator<Item = u16>,
    into: &mut impl Sink,
) {
    if last_power >= 0 {
        return;
    }
    into.write(b".");

    // Groups of zeros that aren't stored, between the point and the first group.
    for _ in first_power + 1..0 {
        into.write(b"0000");
    }
    let first_stored = first_power.min(-1);
    for _ in last_power..first_stored {
        let group = groups.next().unwrap_or(0);
        into.write(&digits_of(group));
    }
    let last_group = groups.next().unwrap_or(0);
    into.write(without_trailing_zeros(&digits_of(last_group)));
}

/// Returns the four decimal digits of a group, in ASCII.
fn digits_of(group: u16) -> [u8; 4] {
    [1000, 100, 10, 1].map(|unit| b'0' + (group / unit % 10) as u8)
}

/// Returns the positions of the groups from the first to the last that is not 0; an empty range if
/// all are.
fn significant_groups(groups: impl Iterator<Item = u16>) -> Range<usize> {
    let mut positions = groups
        .enumerate()
        .filter(|&(_, group)| group != 0)
        .map(|(position, _)| position);
    match positions.next() {
        Some(first) => first..positions.last().unwrap_or(first) + 1,
        None => 0..0,
    }
}

/// Returns the digits without zeros before them. The last digit is kept even if it is 0.
fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let last = digits.len() - 1;
    let zeros = digits[..last].iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

/// Returns the digits without zeros after them.
fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
    &digits[..digits.len() - zeros]
}

#[cfg(test)]
mod tests;
