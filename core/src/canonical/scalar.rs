//! Canonical bytes: the bytes of an element that are hashed.
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

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's day zero.
const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// An integer of any width, a time of day, a `pg_lsn` or an `xid8`.
#[inline(always)]
pub fn integer(value: i64) -> [u8; 8] {
    value.to_le_bytes()
}

/// A float of either width: -0 becomes 0, every NaN the same one.
#[inline]
pub fn float(value: f64) -> [u8; 8] {
    const NAN: f64 = f64::from_bits(0x7FF8_0000_0000_0000);
    // -0 + 0 is 0.
    let value = if value.is_nan() { NAN } else { value + 0.0 };
    value.to_bits().to_le_bytes()
}

/// A float in Parquet's 32-bit form, normalised as by [`float`].
#[inline]
pub fn float32(value: f32) -> [u8; 4] {
    const NAN: f32 = f32::from_bits(0x7FC0_0000);
    let value = if value.is_nan() { NAN } else { value + 0.0 };
    value.to_bits().to_le_bytes()
}

pub fn boolean(value: bool) -> [u8; 1] {
    [u8::from(value)]
}

/// A date in PostgreSQL's form (days since 2000-01-01); the two infinities stay the smallest and
/// largest.
pub fn date(days: i32) -> [u8; 4] {
    let days = if days == i32::MIN || days == i32::MAX {
        days
    } else {
        days.wrapping_add(EPOCH_DAYS)
    };
    days.to_le_bytes()
}

/// A timestamp in PostgreSQL's form (microseconds since 2000-01-01); the two infinities stay as
/// [`date`]'s do.
pub fn timestamp(microseconds: i64) -> [u8; 8] {
    let microseconds = if microseconds == i64::MIN || microseconds == i64::MAX {
        microseconds
    } else {
        microseconds.wrapping_add(EPOCH_MICROSECONDS)
    };
    microseconds.to_le_bytes()
}

/// A time of day with its zone in seconds west of UTC. The same instant in another zone is another
/// value.
pub fn timetz(microseconds: i64, zone: i32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&microseconds.to_le_bytes());
    bytes[8..].copy_from_slice(&zone.to_le_bytes());
    bytes
}

/// An interval in microseconds, with months of 30 days and days of 24 hours, so that equal
/// intervals are the same.
pub fn interval(months: i32, days: i32, microseconds: i64) -> [u8; 16] {
    const DAY: i128 = 86_400_000_000;
    let days = i128::from(months) * 30 + i128::from(days);
    (days * DAY + i128::from(microseconds)).to_le_bytes()
}

/// A `char(n)` value: its trailing blanks are not significant.
pub fn without_trailing_blanks(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1);
    &bytes[..end]
}

/// A `"char"`: the empty string for zero, itself below 128, and `\ooo` above, as PostgreSQL 16 and
/// later print it; the byte alone would be no UTF-8. Returns the bytes and how many of them count.
pub fn single_char(value: u8) -> ([u8; 4], usize) {
    match value {
        0 => ([0; 4], 0),
        1..=127 => ([value, 0, 0, 0], 1),
        _ => (
            [
                b'\\',
                b'0' + (value >> 6),
                b'0' + ((value >> 3) & 7),
                b'0' + (value & 7),
            ],
            4,
        ),
    }
}

#[cfg(test)]
mod tests;
