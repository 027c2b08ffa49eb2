//! Canonical bytes of values that are not composed: the bytes of an element that are hashed.
//!
//! Elements that compare equal must have the same canonical bytes, whatever their SQL type within
//! one key kind, whatever the CPU, build or server encoding. Frozen like the hash.
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
//! | time | int64 microseconds since midnight, little-endian; 24:00 differs from 0:00 |
//! | timetz | the same, and int32 seconds west of UTC, little-endian |
//! | interval | int128 microseconds, a day of 24 hours and a month of 30 days, little-endian |
//! | pg_lsn, xid8 | 8 bytes, little-endian |
//! | jsonb, array, row, range, multirange | [`crate::canonical`] |
//! | other | the type's own 64-bit extended hash, little-endian |

/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;
/// As PostgreSQL compares intervals.
const DAYS_PER_MONTH: i128 = 30;
const MICROSECONDS_PER_DAY: i128 = 86_400_000_000;

/// Returns the canonical bytes of an integer of any width, a time of day, a `pg_lsn` or an `xid8`.
#[inline(always)]
pub fn integer(value: i64) -> [u8; 8] {
    value.to_le_bytes()
}

/// Returns the canonical bytes of a float of either width. -0 is taken for 0, and every NaN for the
/// same one, since they are equal in SQL.
#[inline]
pub fn float(value: f64) -> [u8; 8] {
    const NAN: f64 = f64::from_bits(0x7FF8_0000_0000_0000);
    // -0 + 0 is 0.
    let value = if value.is_nan() { NAN } else { value + 0.0 };
    value.to_bits().to_le_bytes()
}

/// Returns the canonical bytes of a float in Parquet's 32-bit form. -0 is taken for 0, and every
/// NaN for the same one, since they are equal in SQL.
#[inline]
pub fn float32(value: f32) -> [u8; 4] {
    const NAN: f32 = f32::from_bits(0x7FC0_0000);
    // -0 + 0 is 0.
    let value = if value.is_nan() { NAN } else { value + 0.0 };
    value.to_bits().to_le_bytes()
}

/// Returns the canonical byte of a boolean.
pub fn boolean(value: bool) -> [u8; 1] {
    [u8::from(value)]
}

/// Returns the canonical bytes of a date, given in days since 2000-01-01, as PostgreSQL stores it.
pub fn date(days: i32) -> [u8; 4] {
    // The smallest and the largest number stand for -infinity and infinity.
    let is_infinite = days == i32::MIN || days == i32::MAX;
    let days_since_1970 = if is_infinite { days } else { days.wrapping_add(EPOCH_DAYS) };
    days_since_1970.to_le_bytes()
}

/// Returns the canonical bytes of a timestamp, given in microseconds since 2000-01-01, as
/// PostgreSQL stores it.
pub fn timestamp(microseconds: i64) -> [u8; 8] {
    // The smallest and the largest number stand for -infinity and infinity.
    let is_infinite = microseconds == i64::MIN || microseconds == i64::MAX;
    let microseconds_since_1970 = if is_infinite {
        microseconds
    } else {
        microseconds.wrapping_add(EPOCH_MICROSECONDS)
    };
    microseconds_since_1970.to_le_bytes()
}

/// Returns the canonical bytes of a time of day with a time zone: microseconds since midnight, and
/// the zone in seconds west of UTC. The same instant in another zone is another value.
pub fn timetz(microseconds: i64, zone: i32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&microseconds.to_le_bytes());
    bytes[8..].copy_from_slice(&zone.to_le_bytes());
    bytes
}

/// Returns the canonical bytes of an interval, given in the three parts that PostgreSQL stores:
/// its length in microseconds, so that equal intervals have the same.
pub fn interval(months: i32, days: i32, microseconds: i64) -> [u8; 16] {
    let total_days = i128::from(months) * DAYS_PER_MONTH + i128::from(days);
    let total_microseconds = total_days * MICROSECONDS_PER_DAY + i128::from(microseconds);
    total_microseconds.to_le_bytes()
}

/// Returns the canonical bytes of a `char(n)` value, given in UTF-8: blanks at its end are not
/// significant.
pub fn without_trailing_blanks(text: &[u8]) -> &[u8] {
    let last = text.iter().rposition(|&byte| byte != b' ');
    let length = last.map_or(0, |last| last + 1);
    &text[..length]
}

/// The canonical bytes of a value of type `"char"`, at most four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleChar {
    bytes: [u8; 4],
    length: usize,
}

impl SingleChar {
    /// Returns the canonical bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Returns the canonical bytes of a value of type `"char"`, which is one byte, as PostgreSQL 16 and
/// later print it: 0 as nothing, bytes below 128 as they are, and the others as `\` and three octal
/// digits, since alone they would not be UTF-8.
pub fn single_char(value: u8) -> SingleChar {
    match value {
        0 => SingleChar { bytes: [0; 4], length: 0 },
        1..=127 => SingleChar { bytes: [value, 0, 0, 0], length: 1 },
        128..=255 => {
            let octal_digits = [value >> 6, (value >> 3) & 7, value & 7];
            let [high, middle, low] = octal_digits.map(|digit| b'0' + digit);
            SingleChar { bytes: [b'\\', high, middle, low], length: 4 }
        }
    }
}

#[cfg(test)]
mod tests;
