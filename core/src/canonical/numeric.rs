//! Numbers of kind numeric, as plain decimal text: no exponent, no zeros at the end of the
//! fraction, no point without a fraction. They are read from decimal text, or given in groups of
//! four digits, as PostgreSQL stores them.

use super::Sink;
use crate::memory;
use std::iter;

/// Decimal digits of a group.
const GROUP: usize = 4;
/// Digits before the point that PostgreSQL's type can have.
const MOST_WHOLE: i64 = 131_072;
/// Digits after it.
const MOST_FRACTION: i64 = 16_383;

/// Whether a number is below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Positive,
    Negative,
}

/// A number of kind numeric: its canonical bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Numeric(pub(crate) Vec<u8>);

impl Numeric {
    /// Reads a decimal: digits, at most one point, an optional exponent; or `NaN`, `Infinity`,
    /// `-Infinity`, in any case. `None` for other text, and for a number with more than 131,072
    /// digits before the point or 16,383 after it, which PostgreSQL's type doesn't have.
    ///
    /// ```
    /// # use pg_bloom_core::Numeric;
    /// assert_eq!(Numeric::parse("1.50"), Numeric::parse("15e-1"));
    /// assert_eq!(Numeric::parse("1e200000"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Numeric> {
        let (sign, magnitude) = match text.strip_prefix('-') {
            Some(magnitude) => ("-", magnitude),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        if magnitude.eq_ignore_ascii_case("nan") {
            return Some(Numeric(b"NaN".into()));
        }
        if magnitude.eq_ignore_ascii_case("infinity") {
            return Some(Numeric(format!("{sign}Infinity").into()));
        }
        let (number, exponent) = match magnitude.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
            None => (magnitude, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        finite(sign, whole, fraction, exponent).map(Numeric)
    }
}

/// The number that has these digits before and after the point, times a power of ten.
fn finite(sign: &str, whole: &str, fraction: &str, exponent: i64) -> Option<Vec<u8>> {
    if (whole.is_empty() && fraction.is_empty())
        || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let mut digits = memory::collect(whole.bytes().chain(fraction.bytes()));
    // The number is its digits, without zeros at either end, times this power of ten.
    let mut exponent = exponent.checked_sub(fraction.len() as i64)?;
    while digits.last() == Some(&b'0') {
        digits.pop();
        exponent = exponent.checked_add(1)?;
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[zeros..];
    if digits.is_empty() {
        return Some(b"0".into());
    }
    // So many digits are before the point.
    let point = exponent.checked_add(digits.len() as i64)?;
    if exponent < -MOST_FRACTION || point > MOST_WHOLE {
        return None;
    }
    let (whole, fraction) = digits.split_at(point.clamp(0, digits.len() as i64) as usize);
    let [before_point, after_point] =
        [exponent, -point].map(|zeros| iter::repeat_n(b'0', zeros.max(0) as usize));
    let mut plain = memory::with_capacity(
        sign.len() + digits.len() + before_point.len() + after_point.len() + 2,
    );
    plain.extend_from_slice(sign.as_bytes());
    plain.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    plain.extend(before_point);
    if exponent < 0 {
        plain.push(b'.');
        plain.extend(after_point);
        plain.extend_from_slice(fraction);
    }
    Some(plain)
}

/// Writes a finite number: the sum of `groups[i] · 10000^(weight - i)`, negated if the sign is negative.
/// Each group is below 10,000. Zero has no sign.
pub fn write_groups(
    sign: Sign,
    weight: i32,
    groups: impl Iterator<Item = u16> + Clone,
    into: &mut impl Sink,
) {
    let (skipped, used) = significant(groups.clone());
    if used == 0 {
        return into.write(b"0");
    }
    if sign == Sign::Negative {
        into.write(b"-");
    }
    // The powers of 10,000 of the first and the last group, and of the first that is written.
    let (first, last) = (i64::from(weight) - skipped as i64, i64::from(weight) - used as i64 + 1);
    let highest = first.max(0);
    let mut groups = groups.skip(skipped);
    for power in (last.min(0)..=highest).rev() {
        let group = if (last..=first).contains(&power) { groups.next().unwrap_or(0) } else { 0 };
        let text = [1000, 100, 10, 1].map(|unit| b'0' + (group / unit % 10) as u8);
        let is_zero = |digit: &&u8| **digit == b'0';
        let leading = if power == highest {
            text[..GROUP - 1].iter().take_while(is_zero).count()
        } else {
            0
        };
        let trailing = if power == last && last < 0 {
            text.iter().rev().take_while(is_zero).count()
        } else {
            0
        };
        if power == -1 {
            into.write(b".");
        }
        into.write(&text[leading..GROUP - trailing]);
    }
}

/// Which groups are between the first and the last that are not 0: from, and before.
fn significant(groups: impl Iterator<Item = u16>) -> (usize, usize) {
    let mut used = groups.enumerate().filter(|&(_, group)| group != 0).map(|(i, _)| i);
    used.next()
        .map_or((0, 0), |first| (first, used.last().unwrap_or(first) + 1))
}

#[cfg(test)]
mod tests;
