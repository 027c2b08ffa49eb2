//! A numeric as PostgreSQL stores it.

use pg_bloom_core::canonical::{Sink, numeric};

/// What the two highest bits of the first word say.
const FORM: u16 = 0xC000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;
/// In the short form: the sign, and a weight of seven bits with a sign.
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_WEIGHT: u16 = 0x7F;
/// What a special value is.
const SPECIAL_FORM: u16 = 0xF000;
const POSITIVE_INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Writes the canonical bytes of a numeric, given without the length before it.
pub fn write(numeric: &[u8], into: &mut impl Sink) {
    let words = numeric.as_chunks::<2>().0;
    let mut words = words.iter().map(|&word| u16::from_ne_bytes(word));
    let header = words.next().unwrap_or(SPECIAL);
    match header & FORM {
        SPECIAL => into.write(match header & SPECIAL_FORM {
            POSITIVE_INFINITY => b"Infinity",
            NEGATIVE_INFINITY => b"-Infinity",
            _ => b"NaN",
        }),
        SHORT => {
            // Seven bits moved to the top of a byte and back keep their sign.
            let weight = (((header & SHORT_WEIGHT) as u8) << 1) as i8 >> 1;
            numeric::write(header & SHORT_NEGATIVE != 0, i32::from(weight), words, into);
        }
        sign => {
            let weight = words.next().unwrap_or(0) as i16;
            numeric::write(sign == NEGATIVE, i32::from(weight), words, into);
        }
    }
}
