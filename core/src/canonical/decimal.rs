//! Numbers in plain decimal text: no exponent, no zeros at the end of the fraction, no point without a fraction.

use super::Sink;

/// Decimal digits of a group.
const GROUP: usize = 4;
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

    fn plain(is_negative: bool, weight: i32, groups: &[u16]) -> String {
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
            assert_eq!(plain(is_negative, weight, groups), expected, "{groups:?}, {weight}");
        }
    }

    #[test]
    fn many_zeros_are_written() {
        assert_eq!(plain(false, 32_767, &[1]).len(), 131_069);
        assert_eq!(plain(false, -4_000, &[1]).len(), 16_002);
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
            prop_assert_eq!(plain(is_negative, weight, &groups), expected);
        }
    }
}
