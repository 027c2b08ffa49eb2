//! Canonical bytes: what of an element is hashed.
//!
//! Elements that compare equal must have the same canonical bytes, whatever their SQL type within one key kind,
//! whatever the CPU, build or server encoding. Frozen like the hash.
//!
//! | key kind | canonical bytes |
//! |---|---|
//! | integer | int64, little-endian |
//! | text | UTF-8, no length, no terminator; `char(n)` without trailing blanks |
//! | bytea | the bytes |
//! | float | float64, little-endian; -0 is 0, every NaN is one |
//! | numeric | shortest plain decimal text: `100`, `-0.5`, `NaN`, `Infinity` |
//! | uuid | 16 bytes |
//! | date | int32 days since 1970-01-01, little-endian |
//! | timestamp, timestamptz | int64 microseconds since 1970-01-01, little-endian |
//! | boolean | one byte, 0 or 1 |
//! | other | the type's own 64-bit extended hash, little-endian |

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's day zero.
const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// An integer of any width.
#[inline(always)]
pub fn integer(value: i64) -> [u8; 8] {
    value.to_le_bytes()
}

/// A float of either width: -0 becomes 0, every NaN the same one.
#[inline]
pub fn float(value: f64) -> [u8; 8] {
    let value = if value.is_nan() {
        f64::from_bits(0x7FF8_0000_0000_0000)
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    value.to_bits().to_le_bytes()
}

/// A float kept in Parquet's 32-bit form, normalised as [`float`] does.
#[inline]
pub fn float32(value: f32) -> [u8; 4] {
    let value = if value.is_nan() {
        f32::from_bits(0x7FC0_0000)
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    value.to_bits().to_le_bytes()
}

/// A boolean.
pub fn boolean(value: bool) -> [u8; 1] {
    [u8::from(value)]
}

/// A date given as PostgreSQL keeps it (days since 2000-01-01); the two infinities stay the smallest and largest.
pub fn date(days: i32) -> [u8; 4] {
    let days = if days == i32::MIN || days == i32::MAX { days } else { days.wrapping_add(EPOCH_DAYS) };
    days.to_le_bytes()
}

/// A timestamp with or without time zone as PostgreSQL keeps it (microseconds since 2000-01-01); the two infinities
/// stay the smallest and largest.
pub fn timestamp(microseconds: i64) -> [u8; 8] {
    let microseconds = if microseconds == i64::MIN || microseconds == i64::MAX {
        microseconds
    } else {
        microseconds.wrapping_add(EPOCH_MICROSECONDS)
    };
    microseconds.to_le_bytes()
}

/// A `char(n)` value: its trailing blanks mean nothing.
pub fn without_trailing_blanks(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1);
    &bytes[..end]
}

/// A numeric from its plain decimal text (what `numeric_out` prints): zeros after the last significant digit of the
/// fraction mean nothing.
pub fn numeric(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A `"char"`: the empty string for zero, itself below 128, and `\ooo` above, as PostgreSQL 16 and later print it; the
/// byte alone would be no UTF-8. Returns the bytes and how many of them count.
pub fn single_char(value: u8) -> ([u8; 4], usize) {
    match value {
        0 => ([0; 4], 0),
        1..=127 => ([value, 0, 0, 0], 1),
        _ => ([b'\\', b'0' + (value >> 6), b'0' + ((value >> 3) & 7), b'0' + (value & 7)], 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_that_are_equal_are_one() {
        assert_eq!(float(-0.0), float(0.0));
        assert_eq!(float(f64::NAN), float(-f64::NAN));
        assert_eq!(float(f64::from_bits(0x7FF0_0000_0000_0001)), float(f64::NAN));
        assert_eq!(float32(-0.0), [0; 4]);
        assert_eq!(float(f64::from(1.5f32)), 1.5f64.to_le_bytes());
    }

    #[test]
    fn numerics_that_are_equal_are_one() {
        for (given, canonical) in [
            ("1.00", "1"),
            ("1", "1"),
            ("100", "100"),
            ("0.00", "0"),
            ("-0.50", "-0.5"),
            ("1000.10", "1000.1"),
            ("NaN", "NaN"),
            ("-Infinity", "-Infinity"),
        ] {
            assert_eq!(numeric(given), canonical);
        }
    }

    #[test]
    fn days_and_microseconds_count_from_1970() {
        assert_eq!(date(-10_957), 0i32.to_le_bytes());
        assert_eq!(date(i32::MAX), i32::MAX.to_le_bytes());
        assert_eq!(timestamp(-946_684_800_000_000), 0i64.to_le_bytes());
        assert_eq!(timestamp(i64::MIN), i64::MIN.to_le_bytes());
        // The largest date of PostgreSQL, 5874897-12-31, does not wrap yet.
        assert_eq!(date(2_145_031_948), (2_145_031_948i32.wrapping_add(10_957)).to_le_bytes());
    }

    #[test]
    fn blanks_only_at_the_end() {
        assert_eq!(without_trailing_blanks(b" a b  "), b" a b");
        assert_eq!(without_trailing_blanks(b"   "), b"");
    }

    #[test]
    fn char_above_127_prints_in_octal() {
        assert_eq!(single_char(200), (*b"\\310", 4));
        assert_eq!(single_char(0).1, 0);
    }
}
